"""Stochastic gradient descent behind a scaler."""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
for model in (
    SGDClassifier(random_state=0),
    SGDClassifier(loss="log_loss", random_state=1),
    Perceptron(),
    SGDRegressor(random_state=0),
):
    chain = make_pipeline(StandardScaler(), model).fit(X_train, y_train)
    print(type(model).__name__, round(chain.score(X_test, y_test), 4))
