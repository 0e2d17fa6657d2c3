"""Landmarks for SVMs: the rows that span, with as few as possible, the SVMs of a sample.

Landmarks that hold much of the kernel's trace need not be those that an SVM needs: it bends where classes
meet. The binary SVMs of a sample are solved as they are,

    f_k = sum_i a_ik y_ik K(x_i, .),      i: support vectors of the sample

and their support vectors become landmarks in turn, each time the one that brings the nearest combinations of
the landmarks nearest to all f_k (orthogonal matching pursuit in the kernel's space): that of the largest

    sum_k r_k(x_i)^2 / u(x_i),      r_k = f_k - sum_j phi_j w_jk,      w_jk = sum_i a_ik y_ik phi_j(x_i)

where phi are the features of the landmarks so far and u(x) what they leave of K(x, x). Of 60,000 images and
a rank of 2,000, SVMs in the space of landmarks that were chosen for the trace are right on 88.3% of the test
images, and on 89.0% with these; the exact ones are on 90.0%.

Sources: Pati, Rezaiifar and Krishnaprasad (1993), Orthogonal matching pursuit; Keerthi, Chapelle and DeCoste
(2006), Building support vector machines with reduced classifier complexity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sixfold.budget import Budget, BudgetExhausted
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.kernel.landmarks import CHOICE, Drawn, Factor
from sixfold.solvers.kernel.one_vs_one import BinarySVM, fit_binary_svms
from sixfold.solvers.threads import one_blas_thread

Array = NDArray[Any]

LEAST_OF_A_CLASS = 32  # rows of the sample, if it has them
ENOUGH = 1e-2  # the gap of the SVMs of the sample
MOST_STEPS = 4  # of each of them, for each row of the sample
MOST_TARGETS = 64  # of more SVMs, random combinations stand for all: their squares add up to as much
# Of the largest K(x, x): a row of which less is left is no landmark for the sake of the SVMs, as rounding
# grows with what it is divided by.
LEAST_LEFT = 1e-3
SVM_SHARE = 0.25  # of the time that is left, for the SVMs of the sample


def choose_svm_landmarks(
    rows: KernelRows,
    labels: Array,
    n_classes: int,
    upper: Array,
    pairwise: bool,
    rank: int,
    size: int,
    dtype: DTypeLike,
    cache_size_mb: float,
    random: np.random.RandomState,
    budget: Budget,
) -> Array:
    """Return rows that are to be landmarks, the best first; fewer than ``rank`` if no others are of use.

    Parameters
    ----------
    rows, labels, n_classes, upper, pairwise
        As in :func:`~sixfold.solvers.kernel.one_vs_one.fit_binary_svms`.
    rank : int
    size : int
        Rows of the sample.
    dtype : dtype
        Of features.
    cache_size_mb : float
        Most megabytes for kernel values of the SVMs.
    random : RandomState
    budget : Budget
        What was found when it ends is kept.
    """
    sample = draw_sample(labels, upper, n_classes, size, random)
    some = np.zeros(upper.size)
    some[sample] = upper[sample]
    seconds = None if budget.time_limit is None else max(SVM_SHARE * budget.seconds_left, 1e-6)
    within = Budget(ENOUGH, None, seconds)
    within.flag = budget.flag
    svms = fit_binary_svms(
        rows, labels, n_classes, some, pairwise, ENOUGH, cache_size_mb, within, MOST_STEPS * sample.size
    )
    support, coefficients = _targets(svms, upper.size, random)
    if not support.size or budget.interrupted:
        return support
    own = rows.diagonal()
    factor = Factor(rows, support, min(rank, support.size), dtype, own, None)
    if factor.exhausted:
        return support[:0]
    try:
        draw = _Needed(factor, random, coefficients, budget)
        while factor.size < factor.rank and not factor.exhausted:
            drawn = draw.block()
            if drawn.size:
                factor.extend(drawn, budget, 0.0, draw.chooses)
    except BudgetExhausted:
        budget.exhausted()
    return factor.chosen


def draw_sample(
    labels: Array, upper: Array, n_classes: int, size: int, random: np.random.RandomState
) -> Array:
    """Return random rows of weight, with some of every class.

    >>> labels = np.repeat([0, 1], [99, 1])
    >>> sample = draw_sample(labels, np.ones(100), 2, 10, np.random.RandomState(0))
    >>> sample.size, 99 in sample
    (10, True)
    """
    order = random.permutation(labels.size)
    order = order[upper[order] > 0.0]
    by_class = order[np.argsort(labels[order], kind="stable")]
    counts = np.bincount(labels[order], minlength=n_classes)
    place = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)  # within its class
    least = by_class[place < max(min(LEAST_OF_A_CLASS, size // n_classes), 1)]
    rest = order[~np.isin(order, least)][: max(size - least.size, 0)]
    return np.sort(np.concatenate([least, rest]))


def _targets(svms: Sequence[BinarySVM], count: int, random: np.random.RandomState) -> tuple[Array, Array]:
    """Return the support vectors of SVMs, and a y of each in every SVM, or in combinations of them."""
    together = len(svms) > MOST_TARGETS
    mixed = random.normal(scale=MOST_TARGETS**-0.5, size=(len(svms), MOST_TARGETS)) if together else None
    parts = []
    there = np.zeros(count, dtype=bool)
    for svm in svms:
        point = svm.solution.alpha
        held = np.flatnonzero(point > 0.0)
        index = svm.problem.index[held]
        there[index] = True
        parts.append((index, (svm.problem.y * point)[held]))
    support = np.flatnonzero(there)
    place = np.cumsum(there) - 1
    coefficients = np.zeros((support.size, MOST_TARGETS if together else len(svms)))
    for number, (index, signed) in enumerate(parts):
        if mixed is None:
            coefficients[place[index], number] = signed
        else:
            coefficients[place[index]] += signed[:, None] * mixed[number]
    return support, coefficients


class _Needed(Drawn):
    """Support vectors, those first that bring the space nearest to the SVMs."""

    def __init__(
        self, factor: Factor, random: np.random.RandomState, coefficients: Array, budget: Budget
    ) -> None:
        super().__init__(factor, random)
        self.coefficients, self.budget, self.seen = coefficients.astype(factor.dtype), budget, 0
        self.least = max(LEAST_LEFT * factor.largest, factor.least)
        scores = factor.rows.scores(factor.sample, factor.sample, coefficients, factor.dtype, budget)
        self.apart: Array = scores.astype(factor.dtype)  # r of each row

    def block(self) -> Array:
        """Return the next rows; none, and no more from then on, where nothing is left of any."""
        factor = self.factor
        new = factor.features[:, self.seen : factor.size]
        self.apart -= new @ (new.T @ self.coefficients)
        self.seen = factor.size
        open_ = (factor.left > self.least) & ~factor.closed
        count = min(self.size * CHOICE, int(np.count_nonzero(open_)))
        if not count:
            factor.exhausted = True
            return np.empty(0, np.int64)
        squares = np.square(self.apart).sum(axis=1, dtype=np.float64)
        merit = np.where(open_, squares / np.maximum(factor.left, self.least), -1.0)
        drawn = np.sort(np.argpartition(-merit, count - 1)[:count])
        return self._best(drawn, min(self.size, factor.rank - factor.size))

    def _best(self, drawn: Array, most: int) -> Array:
        """Return the best of some rows, one after the other."""
        factor = self.factor
        known = factor.features[drawn, : factor.size]
        H = factor.rows.gram(factor.sample[drawn], factor.dtype, self.budget) - known @ known.T
        with one_blas_thread:
            taken = choose_nearest(H.astype(np.float64), self.apart[drawn], self.least, most)
        return np.asarray(drawn[taken])


def choose_nearest(H: Array, apart: Array, least: float, most: int) -> Array:
    """Return the rows that take most of what functions have at them, one after the other.

    Parameters
    ----------
    H : ndarray of shape (count, count)
        What is left of the kernel between the rows.
    apart : ndarray of shape (count, functions)
        What is left of each function at them.
    least : float
        No row of which less is left is taken.
    most : int

    Examples
    --------
    >>> H = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> choose_nearest(H, np.array([[3.0], [2.9], [1.0]]), 1e-9, 2)
    array([0, 2])
    """
    apart, left = apart.astype(np.float64), np.diagonal(H).copy()
    columns = np.zeros((H.shape[0], most))
    taken: list[int] = []
    open_ = left > least
    while open_.any() and len(taken) < most:
        squares = np.einsum("ij,ij->i", apart, apart)
        i = int(np.where(open_, squares / np.where(open_, left, 1.0), -1.0).argmax())
        done = len(taken)
        column = (H[:, i] - columns[:, :done] @ columns[i, :done]) / np.sqrt(left[i])
        apart -= np.outer(column, apart[i] / np.sqrt(left[i]))
        left -= column * column
        columns[:, done] = column
        taken.append(i)
        open_ &= left > least
        open_[i] = False
    return np.array(taken, dtype=np.intp)
