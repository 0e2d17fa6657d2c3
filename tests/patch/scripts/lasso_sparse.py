"""Lasso and elastic net find the few columns that count."""

import numpy as np
from sklearn.linear_model import ElasticNet, Lasso
from sklearn.metrics import r2_score

rng = np.random.RandomState(42)
n_samples, n_features, n_informative = 50, 100, 10
X = rng.randn(n_samples, n_features)
coef = np.zeros(n_features)
coef[:n_informative] = rng.randn(n_informative) * 5
y = X @ coef + 0.2 * rng.randn(n_samples)
for model in (Lasso(alpha=0.1, tol=1e-7), ElasticNet(alpha=0.1, l1_ratio=0.7, tol=1e-7)):
    found = model.fit(X[:25], y[:25]).predict(X[25:])
    print(type(model).__name__, round(r2_score(y[25:], found), 3), int((model.coef_ != 0).sum()))
