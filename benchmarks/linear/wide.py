"""Tables with more columns than rows, 300 x 2,000, against scikit-learn.

Each of scikit-learn's solvers has the loosest tolerance that reaches the accuracy demanded of all, and the
fastest of them takes part. The hinges are fitted without intercept, which scikit-learn would penalise.

Accuracy is the distance of the objective from that of a tighter fit, relative to the constant model. For the
neighbours it is the share of labels that another search disagrees with.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.linear.classifiers import SEARCH_SECONDS, fit_quietly
from benchmarks.peers import chosen, fastest_accurate, unchanged
from benchmarks.runner import Case, Contender

Array = NDArray[np.float64]
Answer = tuple[Array, Array]

ACCURACY = 1e-6
TIGHT = 1e-9
NEIGHBORS = 5

_LEAST: dict[str, float] = {}  # the objectives of tight fits, by task


class WideTask(NamedTuple):
    """Rows, targets and the penalised loss: sum_j l1 |w_j| + l2 w_j^2 / 2 + the mean loss."""

    name: str
    X: Array
    y: NDArray[Any]
    loss: str
    alpha: float
    l1_ratio: float = 0.0

    @property
    def inverse_penalty(self) -> float:
        """What classifiers call C."""
        return 1.0 / (self.alpha * len(self.y))


def wide(loss: str, classes: int, penalty: tuple[float, float], quick: bool) -> WideTask:
    """Return normal columns of which ten matter; ``classes`` of equal size, or 0 for numbers.

    ``penalty`` is alpha and the share of absolute values in it; alpha is that of C = 1 where it is 0.
    """
    n, d = (60, 200) if quick else (300, 2_000)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = X[:, :10].sum(axis=1) + rng.standard_normal(n)
    if classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    alpha, l1_ratio = penalty
    return WideTask(f"{loss} {classes} {penalty} {n} x {d}", X, y, loss, alpha or 1.0 / n, l1_ratio)


def objective(task: WideTask, answer: Answer) -> float:
    """Return the objective of weights (a row a score) and intercepts."""
    w, b = np.atleast_2d(answer[0]), np.atleast_1d(answer[1])
    scores = task.X @ w.T + b
    penalty = task.l1_ratio * np.abs(w).sum() + 0.5 * (1.0 - task.l1_ratio) * np.square(w).sum()
    return float(task.alpha * penalty + _losses(task, scores).mean())


def _losses(task: WideTask, scores: Array) -> Array:
    if task.loss == "squared":
        return 0.5 * np.square(scores[:, 0] - task.y)
    if task.loss == "softmax":
        own = scores[np.arange(len(task.y)), task.y]
        return np.asarray(np.logaddexp.reduce(scores, axis=1) - own)
    signs = np.where(task.y[:, None] == (np.arange(scores.shape[1]) if scores.shape[1] > 1 else 1), 1.0, -1.0)
    margins = signs * scores
    if task.loss == "logistic":
        return np.logaddexp(0.0, -margins[:, 0])
    short = np.maximum(1.0 - margins, 0.0)
    return np.asarray((short if task.loss == "hinge" else short**2).sum(axis=1))


def excess(task: WideTask, answer: Answer) -> float:
    """Return how far the objective is above that of a tight fit, relative to the constant model."""
    if task.name not in _LEAST:
        _LEAST[task.name] = objective(task, coefficients(sixfold(task, TIGHT).fit(task.X, task.y)))
    zero = np.zeros((1 if task.y.max() <= 1 or task.loss == "squared" else int(task.y.max()) + 1, 1))
    constant = task.y.mean() if task.loss == "squared" else 0.0
    scale = objective(task._replace(X=np.zeros((len(task.y), 1))), (zero, np.full(len(zero), constant)))
    return (objective(task, answer) - _LEAST[task.name]) / scale


def coefficients(model: Any) -> Answer:
    return model.coef_, np.asarray(model.intercept_, dtype=float)


def sixfold(task: WideTask, tol: float = ACCURACY) -> Any:
    from sixfold import LinearRegression, LinearSVC, LogisticRegression

    if task.loss == "squared":
        return LinearRegression(penalty="elasticnet", alpha=task.alpha, l1_ratio=task.l1_ratio, tol=tol)
    if task.loss in ("logistic", "softmax"):
        return LogisticRegression(C=task.inverse_penalty, tol=tol)
    return LinearSVC(C=task.inverse_penalty, loss=task.loss, fit_intercept=False, tol=tol)


def sklearn(task: WideTask) -> Any:
    """Return the fastest of scikit-learn's solvers that reaches the accuracy."""
    models, svm = import_module("sklearn.linear_model"), import_module("sklearn.svm")
    makers: list[Callable[[float], Any]]
    if task.loss == "squared":
        make = partial(models.ElasticNet, task.alpha, l1_ratio=task.l1_ratio, max_iter=100_000)
        makers = [lambda tol: make(tol=tol)]
    elif task.loss in ("logistic", "softmax"):
        make = partial(models.LogisticRegression, C=task.inverse_penalty, max_iter=10_000)
        makers = [lambda tol, own=own: make(tol=tol, solver=own) for own in ("lbfgs", "newton-cg")]
    else:
        make = partial(
            svm.LinearSVC, C=task.inverse_penalty, loss=task.loss, fit_intercept=False, max_iter=100_000
        )
        dual = (True, False) if task.loss == "squared_hinge" else (True,)
        makers = [lambda tol, own=own: make(tol=tol, dual=own) for own in dual]
    return fastest_accurate(
        makers, task, lambda model: excess(task, coefficients(model)) <= ACCURACY, patience=SEARCH_SECONDS
    )


def neighbors(module: str, task: WideTask) -> Any:
    return import_module(module).KNeighborsClassifier(NEIGHBORS)


def fit_and_predict(model: Any, task: WideTask) -> NDArray[Any]:
    return np.asarray(model.fit(task.X, task.y).predict(task.X))


def share_different(task: WideTask, labels: NDArray[Any]) -> float:
    """Return for how many rows the majority of the nearest rows has another label."""
    squares = np.square(task.X).sum(axis=1)
    distances = squares[:, None] + squares - 2.0 * task.X @ task.X.T
    nearest = np.argsort(distances, axis=1)[:, :NEIGHBORS]
    votes = task.y[nearest].mean(axis=1) > 0.5
    return float(np.mean(votes != labels))


def case(
    name: str, title: str, loss: str, classes: int = 0, penalty: tuple[float, float] = (0.0, 0.0)
) -> Case:
    """Return a case of two contenders, of whom sixfold is to be the faster."""
    contender = partial(Contender, run=fit_quietly, answer=coefficients)
    return Case(
        f"wide_{name}",
        f"{title}, 300 x 2,000",
        partial(wide, loss, classes, penalty),
        (contender("sixfold", sixfold), contender("scikit-learn", sklearn, remark=chosen)),
        error=excess,
        accuracy=ACCURACY,
        bars={"scikit-learn": 1},
        with_memory=False,
    )


CASES = (
    case("logistic", "logistic regression", "logistic", 2),
    case("softmax", "softmax regression, 4 classes", "softmax", 4),
    case("hinge", "linear SVM (hinge)", "hinge", 2),
    case("squared_hinge", "linear SVM (squared hinge)", "squared_hinge", 2),
    case("squared_hinge_4", "linear SVM (squared hinge), 4 classes", "squared_hinge", 4),
    case("elastic_net_most", "elastic net, most columns active", "squared", penalty=(1.0, 0.01)),
    case("elastic_net", "elastic net, a third of the columns active", "squared", penalty=(0.1, 0.1)),
    case("lasso", "lasso, as many columns active as rows", "squared", penalty=(1e-3, 1.0)),
    Case(
        "wide_neighbors",
        f"{NEIGHBORS} neighbours, fit and predict, 300 x 2,000",
        partial(wide, "neighbors", 2, (0.0, 0.0)),
        tuple(
            Contender(name, partial(neighbors, module), fit_and_predict, unchanged)
            for name, module in (("sixfold", "sixfold"), ("scikit-learn", "sklearn.neighbors"))
        ),
        error=share_different,
        accuracy=0.0,
        bars={"scikit-learn": 1},
        with_memory=False,
    ),
)
