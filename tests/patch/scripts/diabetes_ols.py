"""Ordinary least squares with one column and with all."""

from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_squared_error, r2_score

X, y = load_diabetes(return_X_y=True)
for columns in ([2], list(range(X.shape[1]))):
    part = X[:, columns]
    model = LinearRegression().fit(part[:-20], y[:-20])
    found = model.predict(part[-20:])
    print(model.coef_.round(4), round(model.intercept_, 4), model.rank_)
    print(round(mean_squared_error(y[-20:], found), 4), round(r2_score(y[-20:], found), 6))
