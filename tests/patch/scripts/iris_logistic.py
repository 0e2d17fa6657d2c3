"""Three species by logistic regression."""

from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report, log_loss
from sklearn.model_selection import cross_val_score, train_test_split

X, y = load_iris(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
model = LogisticRegression(max_iter=1000).fit(X_train, y_train)
print(model.score(X_test, y_test), round(log_loss(y_test, model.predict_proba(X_test)), 4))
print(classification_report(y_test, model.predict(X_test)))
print(cross_val_score(LogisticRegression(C=0.1, max_iter=1000), X, y, cv=5).mean())
