"""Coefficients of ridge regression on Hilbert's matrix as the penalty grows."""

import numpy as np
from sklearn.linear_model import Ridge

X = 1.0 / (np.arange(1, 11) + np.arange(0, 10)[:, np.newaxis])
y = np.ones(10)
for alpha in np.logspace(-6, 0, 7):
    model = Ridge(alpha=alpha, fit_intercept=False).fit(X, y)
    print(f"{alpha:g}", round(float(np.abs(model.coef_).sum()), 3), round(model.score(X, y), 4))
