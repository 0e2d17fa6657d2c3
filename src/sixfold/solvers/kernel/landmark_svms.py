"""The binary SVMs of several classes in the space of a few landmarks (solvers/kernel/landmarks.py).

    minimise    P(w, b) = |w|^2 / 2 + sum_i U_i max(0, 1 - y_i f_i),     f_i = w.phi_i + b
    maximise    D(a) = sum_i a_i - |sum_i a_i y_i phi_i|^2 / 2,           0 <= a_i <= U_i,  sum_i a_i y_i = 0

over w in the space of the landmarks. For w = sum_i a_i y_i phi_i and any b

    P - D = sum_i a_i max(0, y_i f_i - 1) + (U_i - a_i) max(0, 1 - y_i f_i)

which is what the fit is judged by, over all rows. As a function of a row x it is f(x) = K(x, C) beta + b with
beta = L'^-1 w: a coefficient for each landmark, whatever the number of rows.

A round moves the multipliers of active rows, one row at a time (native/kernel/landmark_descent.hpp), every
SVM on a thread of its own; then all rows are scored by one product of matrices, and those on, inside or near
the margin, or whose multiplier is in between, are active next. The first round has a sample. Few rows, and
SVMs that end short of the tolerance, are solved by pairs as with any kernel, on features in place of rows
(solvers/kernel/decomposition.py).

Source: Hsieh, Chang, Lin, Keerthi and Sundararajan (2008), A dual coordinate descent method for large-scale
linear SVM; Mangasarian and Musicant (1999), Successive overrelaxation for support vector machines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.geometry.kernels import Linear
from sixfold.solvers.kernel.dual import cheapest_intercept, feasible
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.kernel.landmarks import NOT_SAMPLED, ROUNDING_ROWS, Landmarks, squares
from sixfold.solvers.kernel.one_vs_one import BinarySVM, class_sides, fit_binary_svms
from sixfold.solvers.threads import one_blas_thread

Array = NDArray[Any]

FEW_ROWS = 2000  # up to which pairs of rows take no longer
FIRST_SHARE, FIRST_ROWS = 6, 1000  # the sample of the first round: a row in six, but no fewer than that
ACTIVE_MARGIN = 0.2  # rows outside the margin by less are active, and those that far inside are not
DRAW = 30.0  # what the intercept is drawn by, relative to the mean of |phi|^2
FIRST_ENOUGH, ENOUGH = 4.0, 0.8  # of the tolerance: the gap of active rows at which a round ends
BEFORE_ROUNDING = 0.9  # of the tolerance: the rest is for what rounding does
PASSES = 200  # a round
MOST_ROUNDS = 30
MANY_ROWS = 5  # one row in so many
CONVERTED = 1 << 22  # features that are held in float64 at a time


@dataclass
class LandmarkSVM:
    """One binary SVM in the space of the landmarks.

    Attributes
    ----------
    positive : int
        The class of y = +1.
    negative : int or None
        The class of y = -1; None for all others.
    index : ndarray of int64
        Its rows.
    y, upper, alpha : ndarray of float64
        -1 or +1, U and a of each.
    normal : ndarray of float64 of shape (rank,)
        w.
    intercept : float
    scores : ndarray of float64
        w.phi of each of its rows.
    passes : int
        Over active rows; of a fit by pairs, iterations.
    objective, gap : float
        P, and P - D.
    """

    positive: int
    negative: int | None
    index: Array
    y: Array
    upper: Array
    alpha: Array
    normal: Array
    intercept: float
    scores: Array
    passes: int = 0
    objective: float = math.inf
    gap: float = math.inf

    @property
    def scale(self) -> float:
        """P of the best constant model."""
        positive = self.y > 0.0
        return 2.0 * min(float(self.upper[positive].sum()), float(self.upper[~positive].sum()))

    def judge(self) -> None:
        """Compute P and P - D, with the intercept for which P is least."""
        self.intercept = cheapest_intercept(self.y, self.upper, self.scores)
        slack = 1.0 - self.y * (self.scores + self.intercept)
        inside = np.maximum(slack, 0.0)
        self.objective = 0.5 * float(self.normal @ self.normal) + float(self.upper @ inside)
        self.gap = float(self.alpha @ (inside - slack)) + float((self.upper - self.alpha) @ inside)


def fit_landmark_svms(
    features: Array,
    labels: Array,
    n_classes: int,
    upper: Array,
    pairwise: bool,
    tol: float,
    cache_size_mb: float,
    budget: Budget,
    most_passes: int | None = None,
) -> list[LandmarkSVM]:
    """Solve the binary SVMs of all classes.

    Parameters
    ----------
    features : ndarray of shape (rows, rank)
    labels : ndarray of int
        0, ..., n_classes - 1.
    upper : ndarray of float
        C times the weight of each row; rows of 0 are left out.
    pairwise : bool
        Whether there is one for each pair of classes, or one for each class against the rest.
    tol : float
        The gap at which to stop, relative to P of the best constant model.
    cache_size_mb : float
        Of SVMs that are solved by pairs, most megabytes for products of features.
    budget : Budget
        One record a round.
    most_passes : int, optional
        Of each SVM.

    Returns
    -------
    list of LandmarkSVM
        In the order of :func:`~sixfold.solvers.kernel.one_vs_one.class_sides`.
    """
    by_pairs = _ByPairs(features, labels, n_classes, upper, pairwise, tol, cache_size_mb, most_passes)
    if np.count_nonzero(upper) <= FEW_ROWS:
        return by_pairs.fit(budget)
    rounds = _Rounds(features, labels, n_classes, upper, pairwise, tol, budget, most_passes)
    return rounds.run(by_pairs)


def _members(labels: Array, upper: Array, positive: int, negative: int | None) -> tuple[Array, Array]:
    """Return the rows of one SVM, and their y."""
    there = upper > 0.0
    if negative is not None:
        there = there & ((labels == positive) | (labels == negative))
    index = np.flatnonzero(there)
    return index, np.where(labels[index] == positive, 1.0, -1.0)


class _ByPairs:
    """The same SVMs with the linear kernel of features, by pairs of rows."""

    def __init__(
        self,
        features: Array,
        labels: Array,
        n_classes: int,
        upper: Array,
        pairwise: bool,
        tol: float,
        memory: float,
        most: int | None,
    ) -> None:
        self.features, self.labels, self.n_classes, self.upper = features, labels, n_classes, upper
        self.pairwise, self.tol, self.memory, self.most = pairwise, tol, memory, most

    def fit(self, budget: Budget, starts: Sequence[Array] | None = None) -> list[LandmarkSVM]:
        """Solve all of them."""
        rows = KernelRows(self.features, Linear())
        found = fit_binary_svms(
            rows,
            self.labels,
            self.n_classes,
            self.upper,
            self.pairwise,
            self.tol,
            self.memory,
            budget,
            self.most,
            starts,
        )
        return [self._converted(svm) for svm in found]

    def _converted(self, svm: BinarySVM) -> LandmarkSVM:
        problem, point = svm.problem, svm.solution
        signed = np.zeros((self.features.shape[0], 1))
        signed[problem.index, 0] = problem.y * point.alpha
        normal = normals(self.features, signed)[:, 0]
        scores = self.features[problem.index] @ normal
        converted = LandmarkSVM(
            svm.positive,
            svm.negative,
            problem.index,
            problem.y,
            problem.upper,
            point.alpha,
            normal,
            point.intercept,
            scores,
            point.iterations,
        )
        converted.judge()
        return converted


class _Rounds:
    """All SVMs, round by round."""

    def __init__(
        self,
        features: Array,
        labels: Array,
        n_classes: int,
        upper: Array,
        pairwise: bool,
        tol: float,
        budget: Budget,
        most_passes: int | None,
    ) -> None:
        self.features, self.tol, self.budget = features, tol, budget
        self.most_passes = math.inf if most_passes is None else most_passes
        self.square = squares(features)
        self.rho = DRAW / (float(self.square.mean()) or 1.0)
        self.labels, self.n_classes = labels, n_classes
        self.svms: list[LandmarkSVM] = []
        for positive, negative in class_sides(n_classes, pairwise):
            index, y = _members(labels, upper, positive, negative)
            zero, normal = np.zeros(index.size), np.zeros(features.shape[1])
            self.svms.append(LandmarkSVM(positive, negative, index, y, upper[index], zero, normal, 0.0, zero))
        with one_blas_thread:
            for svm in self.svms:
                svm.judge()
        self.enough = [FIRST_ENOUGH] * len(self.svms)

    def run(self, by_pairs: _ByPairs) -> list[LandmarkSVM]:
        """Go through rounds until all gaps are small enough, or the budget is used up."""
        limit = f"max_iter={self.most_passes}"
        for number in range(MOST_ROUNDS):
            left = self._left() or self._left_for_rounding()
            if not left:
                return self.svms
            if self.budget.exhausted():
                break
            left = [k for k in left if self.svms[k].passes < self.most_passes]
            if not left:
                self.budget.stopped_by = limit
                break
            self._descend(left, number == 0)
            self._score(left)
            objective, gap, scale = (
                sum(getattr(svm, name) for svm in self.svms) for name in ("objective", "gap", "scale")
            )
            self.budget.record(objective, max(gap, np.nextafter(self.tol * scale, math.inf)), scale)
        finish(self.features, self.svms)
        if self.budget.stopped_by is None and self._left():
            starts = [svm.alpha[_positive_first(svm)] for svm in self.svms]
            return by_pairs.fit(self.budget, starts)
        return self.svms

    def _left(self) -> list[int]:
        """Return which SVMs are to be moved on."""
        return [k for k, svm in enumerate(self.svms) if not self._finished(svm)]

    def _left_for_rounding(self) -> list[int]:
        """Return which are short of the tolerance for what is between normals and multipliers.

        They go on from the normals of their multipliers. To leave one of 45 to pairs, which begin at kernel
        values of all, took six times as long as all of the rounds.
        """
        exact = finish(self.features, self.svms)
        left = self._left()
        for k in left:
            self.svms[k].normal = exact[:, k]
        return left

    def _finished(self, svm: LandmarkSVM) -> bool:
        return svm.gap <= BEFORE_ROUNDING * self.tol * svm.scale

    def _descend(self, which: list[int], first: bool) -> None:
        """Move the multipliers of active rows of some SVMs."""
        workers = min(core.threads(), len(which))

        def work(k: int) -> None:
            before = core.limit_threads(1)
            try:
                self._descend_one(k, first)
            finally:
                core.limit_threads(before)

        if workers == 1:
            for k in which:
                self._descend_one(k, first)
            return
        with one_blas_thread, ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, which))

    def _descend_one(self, k: int, first: bool) -> None:
        svm = self.svms[k]
        active = _first_active(svm) if first else _active(svm)
        index = np.ascontiguousarray(svm.index[active])
        alpha, normal = svm.alpha[active], svm.normal.astype(self.features.dtype)
        most = int(min(PASSES, self.most_passes - svm.passes))
        goal = self.enough[k] * self.tol * svm.scale
        *_, passes, _ = core.descend_features(
            self.features,
            index,
            svm.y[active],
            svm.upper[active],
            self.square[index],
            alpha,
            normal,
            svm.intercept,
            0.0,
            self.rho,
            1 + svm.passes,
            goal,
            most,
            self.budget.seconds_left,
            self.budget.flag,
        )
        moved = svm.alpha.copy()
        moved[active] = alpha
        svm.alpha, svm.passes = feasible(svm.y, svm.upper, moved), svm.passes + passes
        svm.normal = normal.astype(np.float64)
        self.enough[k] = min(0.5 * self.enough[k], ENOUGH)

    def _score(self, which: list[int]) -> None:
        """Bring scores and gaps up to date: of all rows, by one product of matrices.

        Normals are those that descent has kept up to date: :func:`finish` adds them up again, and sees what
        is between them and the multipliers.
        """
        n = self.features.shape[0]
        there = np.zeros(n, dtype=bool)
        for k in which:
            there[self.svms[k].index] = True
        made = np.column_stack([self.svms[k].normal for k in which]).astype(self.features.dtype)
        scores = np.empty((n, len(which)), self.features.dtype)
        # To gather many rows takes longer than to multiply all of them.
        if MANY_ROWS * np.count_nonzero(there) > n:
            np.matmul(self.features, made, out=scores)
        else:
            scores[there] = self.features[there] @ made
        for column, k in enumerate(which):
            svm = self.svms[k]
            svm.scores = scores[svm.index, column].astype(np.float64)
        with one_blas_thread:  # to wake a second one for 12,000 numbers took ten times as long
            for k in which:
                self.svms[k].judge()


def finish(features: Array, svms: Sequence[LandmarkSVM]) -> Array:
    """Compute the gaps of SVMs whose normals were added up in the precision of features.

    P is that of the normal as it is; D is that of the multipliers, in float64. Returns their normals.
    """
    signed = np.zeros((features.shape[0], len(svms)))
    for column, svm in enumerate(svms):
        signed[svm.index, column] = svm.y * svm.alpha
    exact = normals(features, signed)
    for column, svm in enumerate(svms):
        dual = float(svm.alpha.sum()) - 0.5 * float(exact[:, column] @ exact[:, column])
        svm.gap = max(svm.objective - dual, 0.0)
    return exact


def _first_active(svm: LandmarkSVM) -> Array:
    """Return a sample of the rows: both classes by their share."""
    count = svm.index.size
    size = max(count // FIRST_SHARE, FIRST_ROWS)
    if size >= count:
        return np.arange(count)
    random = np.random.default_rng(0)
    parts = [np.flatnonzero(svm.y > 0.0), np.flatnonzero(svm.y < 0.0)]
    some = [
        random.choice(part, min(max(size * part.size // count, 1), part.size), replace=False)
        for part in parts
    ]
    return np.sort(np.concatenate(some))


def _active(svm: LandmarkSVM) -> Array:
    """Return the rows whose multipliers may have to move."""
    slack = 1.0 - svm.y * (svm.scores + svm.intercept)
    above, below = svm.alpha > 0.0, svm.alpha < svm.upper
    excess = np.where(above, np.where(below, math.inf, -slack), slack)
    active: Array = np.flatnonzero(excess > -ACTIVE_MARGIN)
    return active


def _positive_first(svm: LandmarkSVM) -> Array:
    """Return the order of rows in which pairs are solved."""
    return np.concatenate([np.flatnonzero(svm.y > 0.0), np.flatnonzero(svm.y < 0.0)])


def normals(features: Array, signed: Array) -> Array:
    """Return sum_i a_i y_i phi_i of every SVM, a column each, in float64.

    >>> normals(np.array([[1.0, 0.0], [1.0, 2.0]], dtype=np.float32), np.array([[1.0], [0.5]]))
    array([[1.5],
           [1. ]])
    """
    there = np.flatnonzero(signed.any(axis=1))
    result = np.zeros((features.shape[1], signed.shape[1]))
    step = max(CONVERTED // max(features.shape[1], 1), 1)
    for start in range(0, there.size, step):
        some = there[start : start + step]
        result += features[some].T.astype(np.float64) @ signed[some]
    return result


# -- the certificate ---------------------------------------------------------------------------------------


def measure_score_errors(
    svms: Sequence[LandmarkSVM], features: Array, rows: KernelRows, landmarks: Landmarks
) -> Array:
    """Return how far a score of each SVM may be off: beside K(x, C) beta in float64, on a sample of rows.

    Values of K are rounded themselves, those of rows far from the mean but close to each other most.
    """
    n = rows.n_rows
    some = np.unique(np.linspace(0, n - 1, min(ROUNDING_ROWS, n)).astype(np.int64))
    w = np.column_stack([svm.normal for svm in svms])
    beta = solve_triangular(landmarks.triangle, w, lower=True, trans=1)
    exact = rows.block(some, landmarks.chosen, np.float64, Budget()) @ beta
    apart = np.abs(features[some] @ w.astype(features.dtype) - exact).max(axis=0)
    unit = float(np.finfo(features.dtype).eps) * (1.0 + np.abs(exact).max(axis=0))
    lengths = np.sqrt(np.maximum(rows.diagonal(), 0.0))  # which rounding grows with
    shares = lengths[landmarks.chosen] / (float(lengths.max(initial=0.0)) or 1.0)
    entries = rows.entry_error(np.float64) * (shares @ np.abs(beta))
    errors: Array = NOT_SAMPLED * np.maximum(apart, unit) + entries
    return errors


def percent(held: float) -> str:
    """Return a share in words, rounded down: less than all is never 100%.

    >>> percent(0.99998), percent(0.5), percent(1.0)
    ('99.99%', '50%', '100%')
    """
    return f"{math.floor(1e4 * held) / 100.0:g}%"


def certify_landmark_svms(
    svms: Sequence[LandmarkSVM], landmarks: Landmarks, score_error: Array, tol: float
) -> Certificate:
    """Return what is known of all of them together.

    ``score_error`` is how far a score of each SVM may be off for the rounding of features. A score that is
    off by e moves the loss by U e, and w, of which D is made, moves |w|^2 by 2 sum_i a_i e at most.
    """
    rounding = 0.0
    for svm, error in zip(svms, score_error.tolist(), strict=True):
        short = 1.0 - svm.y * (svm.scores + svm.intercept)
        rounding += error * (float(svm.upper[short > -error].sum()) + float(svm.alpha.sum()))
    objective, gap, scale = (
        float(sum(getattr(svm, name) for svm in svms)) for name in ("objective", "gap", "scale")
    )
    rounding += 1e-12 * abs(objective)
    count, held = landmarks.chosen.size, 1.0 - landmarks.error
    plural = "s" * (count != 1)
    note = (
        f"the optimum is that in the space of {count} landmark{plural}, which holds {percent(held)} of the "
        "kernel's trace on these rows; nothing is claimed of the whole space of the kernel"
    )
    details: dict[str, Any] = {
        "dual_objective": objective - gap,
        "machines": len(svms),
        "landmarks": count,
        "trace_held": held,
        "trace_rounding": landmarks.error_rounding,
    }
    return Certificate(
        "duality gap", objective, gap + rounding, scale, tol, details, notes=(note,), rounding=rounding
    )
