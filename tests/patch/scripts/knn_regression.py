"""A noisy sine from its neighbours."""

import numpy as np
from sklearn.neighbors import KNeighborsRegressor

rng = np.random.RandomState(0)
X = np.sort(5 * rng.rand(40, 1), axis=0)
T = np.linspace(0, 5, 200)[:, np.newaxis]
y = np.sin(X).ravel()
y[::5] += 0.5 - rng.rand(8)
for weights in ("uniform", "distance"):
    found = KNeighborsRegressor(5, weights=weights).fit(X, y).predict(T)
    print(weights, round(float(((found - np.sin(T).ravel()) ** 2).mean()), 6))
