"""The tasks of exemplar machines, and by how much the sum of their objectives is above what it has to be.

    P_e(w, b) = |w|^2 / 2 + C_e max(0, 1 - w.x_e - b)^2 + C sum_i max(0, 1 + w.x_i + b)^2,    C_e = 50 C

For any w and b, a_i = 2 C max(0, 1 + w.x_i + b) and A = sum_i a_i give the lower bound A^2 / (sum_i a_i^2 / 4
C + A^2 / 4 C_e + |sum_i a_i (x_i - x_e)|^2 / 2); all are compared with those of a fit to a relative gap of
1e-9.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

C, OWN = 0.01, 0.5  # of Malisiewicz, Gupta and Efros (2011)
_BOUNDS: dict[str, Array] = {}


class ExemplarTask(NamedTuple):
    """Rows with labels 0 and 1, all of 0 first; those of 1 are the exemplars."""

    name: str
    X: Array
    y: NDArray[np.int64]

    @property
    def negatives(self) -> Array:
        """The rows that all machines share."""
        return self.X[self.y == 0]

    @property
    def exemplars(self) -> Array:
        """The rows that have a machine each."""
        return self.X[self.y == 1]


def make_task(name: str, negatives: Array, exemplars: Array) -> ExemplarTask:
    y = np.repeat([0, 1], [len(negatives), len(exemplars)])
    return ExemplarTask(name, np.vstack([negatives, exemplars]), y)


def two_classes(quick: bool, exemplars: int = 200) -> ExemplarTask:
    """Return 20,000 negatives and some positive rows with 500 columns.

    They are scikit-learn's generator of two classes with 50 columns that tell something, standardised.
    """
    from sklearn.datasets import make_classification
    from sklearn.preprocessing import StandardScaler

    rows, columns = (400, 20) if quick else (42_000, 500)
    X, y = make_classification(
        rows, columns, n_informative=columns // 10, n_redundant=0, flip_y=0.0, random_state=0
    )
    X = StandardScaler().fit_transform(X)
    most = 150 if quick else 20_000
    return make_task(
        f"two classes, {rows}, {exemplars}", X[y == 0][:most], X[y == 1][: 5 if quick else exemplars]
    )


def unit_rows(quick: bool) -> ExemplarTask:
    """Return the same rows with length 1, as descriptors of images have: more negatives are hard then."""
    task = two_classes(quick)
    lengths = np.linalg.norm(task.X, axis=1)[:, None]
    return task._replace(name=f"unit {task.name}", X=task.X / lengths)


def objectives(task: ExemplarTask, w: Array, b: Array) -> Array:
    """Return P of each machine."""
    inside = np.maximum(1.0 + task.negatives @ w.T + b, 0.0)
    own = np.maximum(1.0 - (task.exemplars * w).sum(axis=1) - b, 0.0)
    found: Array = 0.5 * (w * w).sum(axis=1) + OWN * own**2 + C * (inside**2).sum(axis=0)
    return found


def bounds(task: ExemplarTask, w: Array, b: Array) -> Array:
    """Return what no machine is below, by what those with w and b say."""
    a = 2.0 * C * np.maximum(1.0 + task.negatives @ w.T + b, 0.0)
    total = a.sum(axis=0)
    pull = a.T @ task.negatives - total[:, None] * task.exemplars
    bracket = (a * a).sum(axis=0) / (4.0 * C) + total**2 / (4.0 * OWN) + 0.5 * (pull * pull).sum(axis=1)
    found: Array = total**2 / bracket
    return found


def excess(task: ExemplarTask, answer: tuple[Array, Array]) -> float:
    """Return by what part the sum of the objectives is above the sum of the bounds."""
    if task.name not in _BOUNDS:
        from sixfold import ExemplarSVC

        model = ExemplarSVC(positive=1, C=C, positive_weight=OWN / C, calibration=None, tol=1e-9)
        model.fit(task.X, task.y)
        _BOUNDS[task.name] = bounds(task, model.coef_, model.intercept_)
    return float(objectives(task, *answer).sum() / _BOUNDS[task.name].sum() - 1.0)
