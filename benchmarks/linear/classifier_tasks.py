"""The tasks of linear classification, and how far an answer is from the best.

Every task is to minimise, over weights w and intercept b,

    R(w, b) = alpha penalty(w) + mean_i loss(w.x_i + b, y_i),      alpha = 1 / (C n)

and an answer is judged by (R - lower) / R(0), where ``lower`` bounds R from below: it comes from a dual point
of a tight fit, but is recomputed from the data and that point alone by Fenchel's inequality, so no contender
is trusted. The intercept is left out where a peer would penalise it, so that all solve the same problem.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import documents

Array = NDArray[np.float64]
Answer = tuple[Array, Array]

_LOWER: dict[str, float] = {}  # the bounds that were worked out, by task


class ClassificationTask(NamedTuple):
    """The data of a case: rows, labels, and the problem they are used for."""

    name: str
    X: Any
    y: NDArray[np.int64]
    loss: str
    C: float = 1.0
    penalty: str = "l2"
    fit_intercept: bool = True


def overlapping(loss: str, fit_intercept: bool, quick: bool) -> ClassificationTask:
    """Return 200,000 x 100: correlated columns with means, and labels that no plane gets all right."""
    n, d = (400, 10) if quick else (200_000, 100)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + rng.standard_normal((d, d)) / np.sqrt(d))
    score = X @ rng.standard_normal(d) / np.sqrt(d)
    X += rng.uniform(-1, 1, d)
    y = (score + rng.logistic(size=n) * 0.7 > 0).astype(np.int64)
    return ClassificationTask(f"{loss} {n} x {d}", X, y, loss, fit_intercept=fit_intercept)


def ten_classes(quick: bool) -> ClassificationTask:
    """Return 20,000 x 100 with ten classes that overlap; 30 of the columns, mixed, tell them apart."""
    from sklearn.datasets import make_classification

    n, d, classes = (400, 10, 4) if quick else (20_000, 100, 10)
    X, y = make_classification(
        n, d, n_informative=3 * d // 10, n_redundant=d // 5, n_classes=classes, random_state=0
    )
    return ClassificationTask(f"softmax {n} x {d}", X, y, "softmax")


def text_like(loss: str, quick: bool) -> ClassificationTask:
    """Return 50,000 documents over 100,000 words, about 80 words each, as rows of length 1."""
    n, d, words = (300, 500, 20) if quick else (50_000, 100_000, 80)
    rng = np.random.default_rng(0)
    X = documents(n, d, words, rng)
    score = X @ rng.standard_normal(d) * 4.0
    y = (score + rng.logistic(size=n) > 0).astype(np.int64)
    return ClassificationTask(f"sparse {loss} {n} x {d}", X, y, loss, fit_intercept=False)


def few_relevant(quick: bool) -> ClassificationTask:
    """Return 2,000 x 20,000, of which 100 columns matter; C is 20 times the one that empties the model."""
    n, d = (100, 400) if quick else (2_000, 20_000)
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((n, d)))
    relevant = d // 200
    score = X[:, :relevant] @ rng.standard_normal(relevant) / np.sqrt(relevant) * 3.0
    y = (score + rng.logistic(size=n) > 0).astype(np.int64)
    empties = float(np.abs(X.T @ (y - 0.5)).max()) / n
    return ClassificationTask(
        f"l1 {n} x {d}", X, y, "logistic", 20.0 / (n * empties), "l1", fit_intercept=False
    )


def problem_of(task: ClassificationTask) -> Any:
    """Return the task as sixfold's risk states it."""
    from sixfold.risk.losses import LOSSES
    from sixfold.risk.penalties import make_penalty
    from sixfold.risk.problem import Problem

    return Problem(
        LOSSES[task.loss], make_penalty(task.penalty), 1.0 / (task.C * len(task.y)), task.fit_intercept
    )


def blocks_of(task: ClassificationTask) -> Any:
    """Return the rows with labels as the loss reads them."""
    from sixfold.data.blocks import MemoryBlocks

    y = task.y.astype(float) if task.loss == "softmax" else np.where(task.y > 0, 1.0, -1.0)
    return MemoryBlocks(task.X, y[:, None])


def lower_bound(task: ClassificationTask) -> float:
    """Return a bound that no objective of the task is below."""
    if task.name not in _LOWER:
        from sixfold.budget import Budget
        from sixfold.solvers.base import choose
        from sixfold.solvers.registry import all_solvers

        problem, blocks = problem_of(task), blocks_of(task)
        with Budget(tol=1e-9, max_iter=5000) as budget:
            found = choose("auto", problem, blocks, all_solvers()).solve(problem, blocks, budget)
        gap = problem.gap(found.w, found.b, blocks, found.dual)
        _LOWER[task.name] = problem.objective(found.w, found.b, blocks) - gap
    return _LOWER[task.name]


def excess(task: ClassificationTask, answer: Answer) -> float:
    """Return (R - lower) / R(0)."""
    problem, blocks = problem_of(task), blocks_of(task)
    w, b = np.atleast_2d(answer[0]).T, np.atleast_1d(answer[1]).astype(float)
    if not task.fit_intercept:
        b = np.zeros_like(b)
    return float((problem.objective(w, b, blocks) - lower_bound(task)) / problem.constant_objective(blocks))


def share_wrong(task: ClassificationTask, answer: Answer) -> float:
    """Return the share of rows on the wrong side of the plane."""
    scores = task.X @ np.ravel(answer[0]) + float(np.ravel(answer[1])[0])
    return float(np.mean((scores > 0) != (task.y > 0)))


DENSE_LOGISTIC = partial(overlapping, "logistic", True)
DENSE_HINGE = partial(overlapping, "hinge", False)
