"""Which learners a comparison tries, and on which grids.

Grids are spread over decades and grow thinner where the rows are many, since kernels compare every row with
every other. Scales and penalties go together, so columns become numbers on one scale (:class:`TableEncoder`)
for all learners but trees, which ask only for the order, and Gower's distance, which has scales of its own:
these get them as they are. The learners stand in the order of what they cost, the cheap ones first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import Pipeline

from sixfold.data.encoder.encoded_column import kind_of
from sixfold.data.encoder.kept_table import DATES
from sixfold.data.encoder.table_encoder import TableEncoder
from sixfold.data.mixed_table import Column, columns_of
from sixfold.data.tree_table import FEW_ROWS, MANY_CATEGORIES
from sixfold.errors import check_option
from sixfold.selection.leaderboard import BASELINE

MANY_ROWS = 20_000  # beyond, no kernel machine is tried, its grid would take minutes, and others are thinner
SOME_ROWS = 5_000  # beyond, its grid is thinner
MANY_CLASSES = 5  # beyond, the weakest penalties are not tried
MANY_COMPARISONS = 5 * 10**8  # of values; beyond, the grid of Gower's distance, which skips none, takes long
TABLE, LEARNER = "table", "learner"  # the steps of every pipeline
GOWER = "nearest neighbours (Gower)"
AS_THEY_ARE = ("tree", GOWER)  # learners that read numbers and categories as they are


@dataclass(frozen=True)
class Contender:
    """A learner in a comparison.

    Attributes
    ----------
    name : str
    model : estimator
        Unfitted; a pipeline where columns are encoded first.
    grid : dict or list of dict
        What is tried, by the names of the model.
    left_out : str
        Why it does not take part; empty where it does.
    notes : tuple of str
        What becomes of columns that it cannot read.
    """

    name: str
    model: Any
    grid: Any
    left_out: str = ""
    notes: tuple[str, ...] = ()


def contenders(task: str, X: Any, y: Any, learners: Any) -> list[Contender]:
    """Return who takes part: the baseline, and those named, or all that suit the task."""
    known = CLASSIFIERS if task == "classification" else REGRESSORS
    chosen = [learners] if isinstance(learners, str) else list(learners)
    for one in chosen:
        check_option("learners", one, [*known, "all"])
    columns = _Columns(X)
    if "all" in chosen:
        chosen = [name for name in known if name != GOWER or "category" in columns.kinds]
    spread = float(np.std(np.asarray(y, dtype=np.float64))) if task == "regression" else 1.0
    scatter = columns.scatter() if "SVM (rbf)" in chosen and len(y) <= MANY_ROWS else 1.0
    classes = np.unique(np.asarray(y).astype(str)).size if task == "classification" else 0
    shape = _Shape(len(y), X.shape[1], classes, scatter, spread or 1.0)
    made = [_contender(name, known[name](shape), *columns.reading(name)) for name in chosen]
    baseline = DummyClassifier() if task == "classification" else DummyRegressor()
    return [Contender(BASELINE, baseline, {}), *made]


@dataclass(frozen=True)
class _Shape:
    """Training rows, columns, classes; the sum of the columns' variances, and the spread of the targets."""

    rows: int
    columns: int
    classes: int
    scatter: float
    spread: float


class _Columns:
    """What the columns of a table hold, and how learners read them."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.names: list[Any] = []
        self.kinds: list[str] = []
        self.counts: list[int] = []  # of the different values of each column of categories
        if sp.issparse(X):
            return
        given, self.names = columns_of(X)
        for one, name in zip(given, self.names, strict=True):
            column = Column(one, f"Column {name!r}")
            self.kinds.append(kind_of(column))
            self.counts.append(len(column.distinct.values) if self.kinds[-1] == "category" else 0)

    def reading(self, learner: str) -> tuple[TableEncoder, tuple[str, ...]]:
        """Return how a learner reads the table, and what to say about it.

        Text with more than 20 values and few rows for each is not used: 5 in a tree, which would learn them
        by heart, else 2.
        """
        scarce = self._scarce(FEW_ROWS if learner == "tree" else 2)
        left_out = tuple(self.names[j] if isinstance(self.names[j], str) else j for j in scarce)
        dates = [name for name, kind in zip(self.names, self.kinds, strict=True) if kind in DATES]
        notes = []
        if scarce:
            text = "few rows for each value; dates can be used as numbers, such as days"
            notes.append(f"{_listed([self.names[j] for j in scarce])} not used: {text}")
        if dates:
            notes.append(f"{_listed(dates)} taken as numbers of days")
        way = "keep" if learner in AS_THEY_ARE else "one-hot"
        return TableEncoder(categories=way, leave_out=left_out), tuple(notes)

    def _scarce(self, rows_each: int) -> list[int]:
        rows = self.X.shape[0]
        return [j for j, one in enumerate(self.counts) if one > MANY_CATEGORIES and rows_each * one > rows]

    def scatter(self) -> float:
        """Return the sum of the variances of the encoded columns: half the mean squared distance of rows."""
        if sp.issparse(self.X):
            return float(self.X.shape[1])  # each is scaled to 1
        encoder, _ = self.reading("SVM (rbf)")
        return float(np.var(encoder.fit_transform(self.X), axis=0).sum()) or 1.0


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    return shown + f" and {len(names) - 5} more" * (len(names) > 5)


def _contender(name: str, described: Any, encoder: TableEncoder, notes: tuple[str, ...]) -> Contender:
    model, grid = described
    if isinstance(grid, str):
        return Contender(name, model, {}, grid)
    grids = grid if isinstance(grid, list) else [grid]
    prefixed = [{f"{LEARNER}__{key}": values for key, values in one.items()} for one in grids]
    return Contender(name, Pipeline([(TABLE, encoder), (LEARNER, model)]), prefixed, notes=notes)


def _decades(first: int, last: int, each: int = 1) -> list[float]:
    return np.logspace(first, last, (last - first) * each + 1).tolist()


def _largest_decade(shape: _Shape, usual: int) -> int:
    """Return the decade of the largest C.

    Of many rows C = 1 is next to no penalty already; of many classes the weakest penalties take most of the
    time (675 rows of 18 classes: two thirds from C = 100 on) and few of them are chosen.
    """
    return 0 if shape.rows > MANY_ROWS else min(usual, 1) if shape.classes > MANY_CLASSES else usual


def _ks(rows: int) -> list[int]:
    """Return numbers of neighbours, every one up to 20 and fewer further on; a fold has 4 of 5 rows."""
    every = [*range(1, 21), *range(25, 51, 5), 70, 100]
    return [k for k in every if k <= max(1, rows // 2)]


def _logistic(shape: _Shape) -> Any:
    from sixfold.learners.linear.logistic_regression import LogisticRegression

    return LogisticRegression(), {"C": _decades(-4, _largest_decade(shape, 4))}


def _sparse_logistic(shape: _Shape) -> Any:
    from sixfold.learners.linear.logistic_regression import LogisticRegression

    return LogisticRegression(penalty="l1"), {"C": _decades(-3, _largest_decade(shape, 3))}


def _perceptron(shape: _Shape) -> Any:
    from sixfold.learners.linear.perceptron import Perceptron

    return Perceptron(max_iter=50), {"average": [False, True]}


def _linear_svm(shape: _Shape) -> Any:
    from sixfold.learners.svm.linear_svc import LinearSVC

    return LinearSVC(loss="hinge"), {"C": _decades(-4, _largest_decade(shape, 2))}


def _kernel_svm(shape: _Shape) -> Any:
    from sixfold.learners.svm.svc import SVC

    if shape.rows > MANY_ROWS:
        return SVC(), f"{shape.rows:,} rows are more than a grid of kernel machines can take"
    scale = 1.0 / shape.scatter
    if shape.rows > SOME_ROWS:
        return SVC(), {"C": [1.0, 10.0, 100.0], "gamma": [scale * factor for factor in (0.1, 1.0)]}
    factors = (0.01, 0.1, 1.0, 10.0)
    return SVC(), {"C": _decades(-1, 3), "gamma": [scale * factor for factor in factors]}


def _tree(shape: _Shape) -> Any:
    from sixfold.learners.trees.decision_tree import DecisionTreeClassifier

    return DecisionTreeClassifier(), [
        {"max_depth": list(range(1, 21))},
        {"ccp_alpha": [0.0, *_decades(-4, -1, 3)]},
    ]


def _neighbours(shape: _Shape) -> Any:
    from sixfold.learners.neighbors.k_neighbors import KNeighborsClassifier

    return KNeighborsClassifier(), {"n_neighbors": _ks(shape.rows), "weights": ["uniform", "distance"]}


def _gower(shape: _Shape) -> Any:
    from sixfold.learners.neighbors.k_neighbors import KNeighborsClassifier

    return KNeighborsClassifier(metric="gower"), _gower_grid(shape)


def _gower_grid(shape: _Shape) -> Any:
    if shape.rows**2 * shape.columns > MANY_COMPARISONS:
        return f"{shape.rows:,} rows of {shape.columns} columns are more than can be compared one by one"
    return {"n_neighbors": _ks(shape.rows), "weights": ["uniform", "distance"]}


def _least_squares(shape: _Shape) -> Any:
    from sixfold.learners.linear.linear_regression import LinearRegression

    return LinearRegression(penalty="l2"), {"alpha": [1e-12, *_decades(-8, 2, 2)]}


def _lasso(shape: _Shape) -> Any:
    from sixfold.learners.linear.linear_regression import LinearRegression

    return LinearRegression(penalty="l1"), {"alpha": [shape.spread * one for one in _decades(-4, 0, 4)]}


def _absolute(shape: _Shape) -> Any:
    from sixfold.learners.linear.erm import ERMRegressor

    return ERMRegressor(loss="absolute", penalty="l2"), {
        "alpha": [one / shape.spread for one in _decades(-4, 0)]
    }


def _neighbours_regression(shape: _Shape) -> Any:
    from sixfold.learners.neighbors.k_neighbors import KNeighborsRegressor

    return KNeighborsRegressor(), {"n_neighbors": _ks(shape.rows), "weights": ["uniform", "distance"]}


def _gower_regression(shape: _Shape) -> Any:
    from sixfold.learners.neighbors.k_neighbors import KNeighborsRegressor

    return KNeighborsRegressor(metric="gower"), _gower_grid(shape)


CLASSIFIERS: dict[str, Callable[[_Shape], Any]] = {
    "logistic regression": _logistic,
    "tree": _tree,
    "perceptron": _perceptron,
    "nearest neighbours": _neighbours,
    "logistic regression (l1)": _sparse_logistic,
    "linear SVM": _linear_svm,
    GOWER: _gower,
    "SVM (rbf)": _kernel_svm,
}
REGRESSORS: dict[str, Callable[[_Shape], Any]] = {
    "ridge regression": _least_squares,
    "lasso": _lasso,
    "nearest neighbours": _neighbours_regression,
    "absolute loss": _absolute,
    GOWER: _gower_regression,
}
