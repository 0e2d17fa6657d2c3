"""A grid of C and gamma."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

X, y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
grid = {"gamma": np.logspace(-5, 1, 4), "C": np.logspace(-1, 4, 4)}
cv = StratifiedShuffleSplit(n_splits=5, test_size=0.2, random_state=42)
search = GridSearchCV(SVC(), param_grid=grid, cv=cv).fit(X, y)
print(
    {name: round(float(value), 6) for name, value in search.best_params_.items()},
    round(search.best_score_, 4),
)
print(search.cv_results_["mean_test_score"].round(4))
