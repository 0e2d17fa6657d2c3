"""The lines of the landscape: what is fitted, by whom, and how far an answer is from the best.

A linear task is to minimise, over weights w and intercept b,

    R(w, b) = mean_i loss(w.x_i + b, y_i) + l1 |w|_1 + l2 |w|^2 / 2

and an answer is judged by (R - least) / (R(0) - least), where ``least`` is the smallest R that anyone has
reached, a tight fit of ours among them. Where a peer would penalise the intercept, the task has none. SVMs
with kernels, trees and neighbours are judged by the share of queries on which they do not agree with ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.landscape.tables import Shape, Table

Array = NDArray[Any]
Options = dict[str, Any]
Judge = Callable[[Table, Any], float]

ALPHA = 0.01
EPOCHS = 20
DEPTH = 10
NEIGHBORS = 5
CUBIC, MOST_CUBIC = "newton-cholesky", 3_000  # a matrix of all coefficients is factored in every step


@dataclass(frozen=True)
class Setting:
    """One line of the landscape.

    Attributes
    ----------
    name : str
    classes : int
        0 for numbers.
    ours : tuple of a class of sixfold and its options
    peers : sequence of tuples of a path in scikit-learn and options
    judge : callable or None
        Maps a table and a fitted model to R; None where labels are compared.
    work : {"fit", "answer"}
        What is timed: the fit, or the fit and the answers to all queries.
    sparse : bool
        Whether sparse tables are measured too.
    values, rows : int
        The most that a table may hold.
    tall : bool
        Whether only tables with ten times as many rows as columns have an answer.
    """

    name: str
    classes: int
    ours: tuple[str, Options]
    peers: Sequence[tuple[str, Options]]
    judge: Judge | None = None
    work: str = "fit"
    sparse: bool = True
    values: int = 20_000_000
    rows: int = 1_000_000
    tall: bool = False

    def suits(self, shape: Shape) -> bool:
        """Return whether the setting is measured on a table of this shape."""
        if (shape.sparse and not self.sparse) or (self.tall and shape.rows < 10 * shape.columns):
            return False
        enough = shape.rows >= 10 * self.classes
        return enough and shape.values <= self.values and shape.rows <= self.rows

    @property
    def tunable(self) -> bool:
        """Whether a tighter tolerance brings an answer nearer to the best."""
        return self.judge is not None

    def model(self, tol: float | None = None) -> Any:
        """Return our estimator."""
        name, options = self.ours
        return _made("sixfold", name, options, tol)

    def peer(self, number: int, tol: float | None = None) -> Any:
        """Return one of the peers."""
        path, options = self.peers[number]
        module, _, name = path.rpartition(".")
        return _made(f"sklearn.{module}", name, options, tol)

    def peer_name(self, number: int) -> str:
        """Return what tells the peers from each other."""
        options = self.peers[number][1]
        told = (str(options[key]) for key in ("solver", "algorithm") if key in options)
        dual = ["dual" if options["dual"] else "primal"] if "dual" in options else []
        return ", ".join(("scikit-learn", *told, *dual))

    def peers_for(self, shape: Shape) -> list[int]:
        """Return the numbers of the peers that have a chance on a table of this shape."""
        coefficients = shape.columns * (1 if self.classes == 2 else max(self.classes, 1))
        return [
            number
            for number, (_, options) in enumerate(self.peers)
            if options.get("solver") != CUBIC or coefficients <= MOST_CUBIC
        ]


def _made(module: str, name: str, options: Options, tol: float | None) -> Any:
    return getattr(import_module(module), name)(**options, **({} if tol is None else {"tol": tol}))


# -- objectives ----------------------------------------------------------------------------------------------


def scores_of(table: Table, model: Any) -> Array:
    """Return the scores of all rows, a column each; those of the zero model where there is none."""
    if model is None:
        return np.zeros((table.y.size, max(np.unique(table.y).size, 1)))
    w = np.atleast_2d(model.coef_)
    return np.asarray(table.X @ w.T) + np.asarray(model.intercept_).reshape(1, -1)


def regression(table: Table, model: Any, l1: float = 0.0, l2: float = 0.0) -> float:
    """Return mean squares / 2 with penalties."""
    if model is None:
        return float(np.square(table.y).mean() / 2)
    w = np.ravel(model.coef_)
    residual = scores_of(table, model)[:, 0] - table.y
    return float(residual @ residual / (2 * residual.size) + l1 * np.abs(w).sum() + l2 * (w @ w) / 2)


def ridge(table: Table, model: Any) -> float:
    """Return mean squares / 2 with the penalty that alpha=1 stands for."""
    return regression(table, model, l2=1.0 / table.y.size)


def likelihood(table: Table, model: Any, strength: float = 1.0, power: int = 2) -> float:
    """Return the mean logarithmic loss of two or more classes, with a penalty."""
    scores = scores_of(table, model)
    if scores.shape[1] == 1:
        loss = np.logaddexp(0.0, -np.where(table.y > 0, 1.0, -1.0) * scores[:, 0])
    else:
        top = scores.max(axis=1)
        at = scores[np.arange(table.y.size), table.y]
        loss = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top - at
    return float(loss.mean()) + strength * _size(model, power) / table.y.size


def margins(table: Table, model: Any, power: int) -> float:
    """Return the mean hinge, to this power, of each class against the rest, added up, with |w|^2."""
    scores, classes = scores_of(table, model), np.unique(table.y).size
    if classes == 2:
        scores = scores[:, :1]
        sides = np.where(table.y > 0, 1.0, -1.0)[:, None]
    else:
        sides = np.where(table.y[:, None] == np.arange(classes), 1.0, -1.0)
    hinge = np.maximum(1.0 - sides * scores, 0.0) ** power
    return float(hinge.mean(axis=0).sum()) + _size(model, 2) / table.y.size


def _size(model: Any, power: int) -> float:
    """Return |w|_1, or |w|^2 / 2."""
    if model is None:
        return 0.0
    w = model.coef_
    return float(np.abs(w).sum() if power == 1 else np.square(w).sum() / 2)


# -- the lines -----------------------------------------------------------------------------------------------


def _logistic(solvers: Sequence[str], **options: Any) -> list[tuple[str, Options]]:
    path = "linear_model.LogisticRegression"
    return [(path, {"solver": solver, "max_iter": 10_000, **options}) for solver in solvers]


def _linear_svms() -> list[Setting]:
    found = []
    # The dual solver, the only one for the hinge, is at one million rows for a quarter of an hour.
    losses = (("squared_hinge", 2, (True, False), 1_000_000), ("hinge", 1, (True,), 100_000))
    for loss, power, duals, rows in losses:
        task = {"loss": loss, "fit_intercept": False}
        peers = [("svm.LinearSVC", {"dual": dual, "max_iter": 10_000, **task}) for dual in duals]
        found += [
            Setting(
                f"linear SVM, {loss.replace('_', ' ')}, {classes} classes",
                classes,
                ("LinearSVC", task),
                peers,
                partial(margins, power=power),
                values=5_000_000,
                rows=rows,
            )
            for classes in (2, 4)
        ]
    return found


def _with_labels(classes: int) -> list[Setting]:
    """Return the lines of learners whose labels are compared."""
    epochs = {"max_iter": EPOCHS, "tol": None}
    tree = {"criterion": "entropy", "max_depth": DEPTH}
    return [
        Setting(
            f"perceptron, {EPOCHS} epochs, {classes} classes",
            classes,
            ("Perceptron", epochs),
            [("linear_model.Perceptron", epochs)],
        ),
        Setting(
            f"SVM, RBF, {classes} classes",
            classes,
            ("SVC", {}),
            [("svm.SVC", {})],
            rows=10_000,
            values=2_000_000,
        ),
        Setting(
            f"tree of depth {DEPTH}, {classes} classes",
            classes,
            ("DecisionTreeClassifier", tree),
            [("tree.DecisionTreeClassifier", tree)],
            values=10_000_000,
            sparse=False,
        ),
    ]


SMOOTH = ("lbfgs", "newton-cholesky", "newton-cg")
LASSO, NET = {"alpha": ALPHA}, {"alpha": ALPHA, "l1_ratio": 0.5}
L1 = {"l1_ratio": 1.0, "fit_intercept": False}
FREE = {"C": np.inf}
NEAR = {"n_neighbors": NEIGHBORS}

SETTINGS = (
    Setting(
        "least squares", 0, ("LinearRegression", {}), [("linear_model.LinearRegression", {})], regression
    ),
    Setting(
        "ridge",
        0,
        ("Ridge", {}),
        [("linear_model.Ridge", {"solver": solver}) for solver in ("auto", "lsqr", "sparse_cg")],
        ridge,
    ),
    Setting(
        "lasso",
        0,
        ("Lasso", LASSO),
        [("linear_model.Lasso", {"max_iter": 100_000, **LASSO})],
        partial(regression, l1=ALPHA),
    ),
    Setting(
        "elastic net",
        0,
        ("ElasticNet", NET),
        [("linear_model.ElasticNet", {"max_iter": 100_000, **NET})],
        partial(regression, l1=ALPHA / 2, l2=ALPHA / 2),
    ),
    Setting("logistic", 2, ("LogisticRegression", {}), _logistic(SMOOTH), likelihood),
    Setting(
        "logistic, no penalty",
        2,
        ("LogisticRegression", FREE),
        _logistic(SMOOTH, **FREE),
        partial(likelihood, strength=0.0),
        sparse=False,
        tall=True,
    ),
    Setting(
        "logistic, L1",
        2,
        ("LogisticRegression", L1),
        _logistic(("liblinear", "saga"), **L1),
        partial(likelihood, power=1),
        values=5_000_000,
    ),
    *(
        Setting(
            f"softmax, {classes} classes",
            classes,
            ("LogisticRegression", {}),
            _logistic(SMOOTH),
            likelihood,
            values=10_000_000,
        )
        for classes in (4, 10)
    ),
    *_linear_svms(),
    *(one for classes in (2, 4, 10) for one in _with_labels(classes)),
    Setting(
        "neighbours, with queries",
        2,
        ("KNeighborsClassifier", NEAR),
        [("neighbors.KNeighborsClassifier", {"algorithm": name, **NEAR}) for name in ("brute", "kd_tree")],
        work="answer",
        sparse=False,
    ),
)
