"""The tasks of choosing hyperparameters: tables, grids and folds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification, make_regression

Array = NDArray[Any]

PENALTIES = 100


class SearchTask(NamedTuple):
    """A table, what is tried on it by which names, how many folds, and what is best."""

    X: Array
    y: Array
    grid: Mapping[str, Any]
    folds: int
    scoring: str | None = None


def neighbours(quick: bool) -> SearchTask:
    """Return 5,000 x 50 rows of two classes, and k from 1 to 50."""
    X, y = _classes(quick, 5000, 50, n_informative=10, flip_y=0.1, random_state=3)
    return SearchTask(X, y, {"n_neighbors": list(range(1, 51))}, 5)


def depths(quick: bool) -> SearchTask:
    """Return 5,000 x 50 rows of two classes, and depths from 1 to 20."""
    X, y = _classes(quick, 5000, 50, n_informative=10, flip_y=0.1, random_state=2)
    return SearchTask(X, y, {"max_depth": list(range(1, 21))}, 5)


def kernels(quick: bool) -> SearchTask:
    """Return 3,000 x 30 rows of two classes, standardised, and five decades of C and of gamma each."""
    X, y = _classes(quick, 3000, 30, n_informative=8, flip_y=0.05, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return SearchTask(X, y, {"C": np.logspace(-1, 3, 5), "gamma": np.logspace(-4, 0, 5)}, 3)


def ridge(quick: bool) -> SearchTask:
    """Return 20,000 x 100 rows, and a hundred penalties as scikit-learn counts them."""
    rows = 500 if quick else 20_000
    X, y = make_regression(rows, 100, n_informative=30, noise=3.0, effective_rank=40, random_state=0)
    return SearchTask(X * 100, y, {"alpha": np.logspace(-4, 5, PENALTIES)}, 10)


def sparse_logistic(quick: bool) -> SearchTask:
    """Return 5,000 x 100 rows of two classes, and fifty values of C."""
    X, y = _classes(quick, 5000, 100, n_informative=15, flip_y=0.1, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    # The share of right answers is the same for many C, and rounding would choose among them.
    return SearchTask(X, y, {"C": np.logspace(-3, 1, 50)}, 5, "neg_log_loss")


def lasso(quick: bool) -> SearchTask:
    """Return 1,000 x 5,000 rows of which a hundred columns count; the path has a hundred penalties."""
    rows, columns = (60, 200) if quick else (1000, 5000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    w = np.zeros(columns)
    w[rng.choice(columns, columns // 50, replace=False)] = rng.normal(size=columns // 50)
    y = X @ w
    return SearchTask(X, y + rng.normal(size=rows) * y.std() / 2, {}, 5)


def _classes(quick: bool, rows: int, columns: int, **options: Any) -> tuple[Array, Array]:
    return make_classification(rows // 20 if quick else rows, columns, **options)
