"""Softmax with absolute values in the penalty: many coefficients are 0."""

from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

X, y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
for l1_ratio in (0.0, 0.5, 1.0):
    model = LogisticRegression(
        C=0.2, l1_ratio=l1_ratio, solver="saga", tol=1e-6, max_iter=5000, random_state=0
    )
    model.fit(X, y)
    print(l1_ratio, round(model.score(X, y), 4), model.classes_, (abs(model.coef_) < 1e-4).sum())
