"""The penalty by cross-validation: ridge, lasso and elastic net."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import ElasticNetCV, LassoCV, RidgeCV

X, y = load_diabetes(return_X_y=True)
ridge = RidgeCV(np.logspace(-3, 3, 13)).fit(X, y)
print(round(float(ridge.alpha_), 6), ridge.coef_.round(2))
lasso = LassoCV(cv=5).fit(X, y)
print(round(float(lasso.alpha_), 4), round(lasso.score(X, y), 4), lasso.mse_path_.shape)
net = ElasticNetCV(l1_ratio=[0.5, 0.9], cv=5).fit(X, y)
print(round(float(net.alpha_), 4), net.l1_ratio_)
