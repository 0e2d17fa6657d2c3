"""Triplets of rows: who should be near, who has to be farther, and what it costs where they are not.

    h(i, j, l) = [1 + |z_i - z_j|^2 - |z_i - z_l|^2]_+,      z = L x

with j a target of row i (one of the k nearest rows of its class, in the columns as they are given) and l any
row of another class, an impostor where the hinge is above 0. There are n k n triplets; those that count are
found by an exact search of all rows of other classes within the square root of 1 + max_j |z_i - z_j|^2.

Source: Weinberger and Saul (2009), Distance metric learning for large margin nearest neighbor classification.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget, BudgetExhausted
from sixfold.geometry.distances import make_distance
from sixfold.solvers.neighbors.choose import make_search

Array = NDArray[Any]

LANES = 8  # native loops read rows whose width is a multiple of it
# Lists reach this much farther than they have to, so that they hold while the map changes. They are a third
# longer for it, and after the first 20 steps no search is needed any more.
SLACK = 0.2
ROUNDING = 1e-13  # of the eigenvalues of S


@dataclass(frozen=True)
class TripletProblem:
    """The rows that count, in the order of their classes, each column with mean 0 and spread 1.

    ``F(M) = pull sum_ij q_i d_ij^2 + (1 - pull) sum_ijl q_i h_ijl + trace tr(M)``, where q_i is the weight of
    row i, divided so that they add up to 1 over all pairs (row, target).

    Attributes
    ----------
    numbers : ndarray
        The numbers of the rows in the table that was given.
    rows : ndarray of float64, shape (n, columns)
    class_ends : ndarray of int64
        Class c is in rows ``class_ends[c]:class_ends[c + 1]``.
    targets : ndarray of int64, shape (n, k)
        -1 where a class is too small for more.
    weight : ndarray of shape (n,)
    pull, trace : float
    mean, unit : ndarray of shape (columns,)
        What a column was shifted and divided by.
    """

    numbers: Array
    rows: Array
    class_ends: Array
    targets: Array
    weight: Array
    pull: float
    trace: float
    mean: Array
    unit: Array

    def pulled(self) -> Array:
        """Return P = sum_ij q_i (x_i - x_j)(x_i - x_j)' over all targets j."""
        return mean_target_square(self.rows, self.targets, self.weight)


def state_problem(
    X: Array, index: Array, weight: Array | None, k: int, pull: float, trace_penalty: float, budget: Budget
) -> TripletProblem:
    """Return the problem of these rows of at least two classes, each with two rows of positive weight.

    ``trace_penalty`` is that of a column, as a part of the mean square difference of targets in it.
    """
    weights = np.ones(X.shape[0]) if weight is None else weight
    numbers = np.flatnonzero(weights > 0)
    numbers = numbers[np.argsort(index[numbers], kind="stable")]
    X, weights = X[numbers].astype(np.float64), weights[numbers]
    class_ends = np.concatenate([[0], np.cumsum(np.bincount(index[numbers]))]).astype(np.int64)
    most = int(np.diff(class_ends).max()) - 1  # targets that any row can have
    targets = find_targets(X, class_ends, min(k, most), budget)
    weights = weights / weights.max()
    q = weights / (weights @ (targets >= 0).sum(axis=1))
    mean, unit = _mean_and_spread(X, weights / weights.sum())
    rows = (X - mean) / unit
    square = float(np.trace(mean_target_square(rows, targets, q))) / X.shape[1]
    trace = trace_penalty * (square if square > 0 else 1.0)
    return TripletProblem(numbers, rows, class_ends, targets, q, pull, trace, mean, unit)


def find_targets(X: Array, class_ends: Array, k: int, budget: Budget) -> Array:
    """Return the k nearest rows of the same class of each row; -1 where there are not so many.

    >>> find_targets(np.array([[0.0], [1.0], [3.0], [9.0], [9.5]]), np.array([0, 3, 5]), 2, Budget())
    array([[ 1,  2],
           [ 0,  2],
           [ 1,  0],
           [ 4, -1],
           [ 3, -1]])
    """
    targets = np.full((X.shape[0], k), -1, dtype=np.int64)
    patience = Budget()  # without targets there is no problem, and no map that could be kept
    patience.flag = budget.flag
    # A power of two changes no order, and squares of what is huge or tiny are numbers as well.
    _, exponent = np.frexp(np.abs(X).max(initial=0.0))
    scaled = np.ldexp(X, -exponent)
    for first, last in pairwise(class_ends.tolist()):
        rows, count = scaled[first:last], min(k, last - first - 1)
        search = make_search(rows, make_distance("euclidean", rows), "auto", 30, patience)
        found = search.nearest(rows, count + 1, patience).rows
        own = found == np.arange(last - first)[:, None]
        own[~own.any(axis=1), -1] = True  # as many rows that are equal come before it
        targets[first:last, :count] = found[~own].reshape(-1, count) + first
    return targets


def mean_target_square(rows: Array, targets: Array, weight: Array) -> Array:
    """Return sum_ij weight_i (x_i - x_j)(x_i - x_j)' over the targets j of each row i."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for column in targets.T:
        there = np.flatnonzero(column >= 0)
        difference = (rows[there] - rows[column[there]]) * np.sqrt(weight[there])[:, None]
        total += difference.T @ difference
    return total


def _mean_and_spread(X: Array, share: Array) -> tuple[Array, Array]:
    """Return the mean of each column, and its standard deviation: 1 where all its numbers are equal."""
    low, high = X.min(axis=0), X.max(axis=0)
    mean = np.where(low < high, np.clip(share @ X, low, high), low)
    largest = np.maximum(high - mean, mean - low)
    largest = np.where(largest > 0, largest, 1.0)
    spread = np.sqrt(share @ np.square((X - mean) / largest)) * largest
    return mean, np.where((low < high) & (spread > 0), spread, 1.0)


# -- the triplets that count -------------------------------------------------------------------------------


class HingeSums(NamedTuple):
    """Sums over triplets, each times u = (1 - pull) q of its row: m is its margin, a the slope of H."""

    smooth: float  # H(m), the hinge rounded over a width g
    hinge: float  # [m]_+
    linear: float  # a m
    slopes: float  # a


class ActiveTriplets:
    """The impostors that each row may have, in lists that a search of all rows has filled.

    Attributes
    ----------
    problem : TripletProblem
    of_targets, of_impostors, farthest : ndarray
        What :meth:`sums` has found: the slope of each pair (row, target), (row, impostor), and 1 + the
        largest square distance of each row from a target.
    share : float
        The part of u that a hinge costs.
    searches : int
        How many have been needed.
    """

    def __init__(self, problem: TripletProblem) -> None:
        self.problem = problem
        n, k = problem.targets.shape
        there = problem.targets >= 0
        self._target_pairs = _with_way_back(
            np.concatenate([[0], np.cumsum(there.sum(axis=1))]), problem.targets[there], n
        )
        self._there = there
        self.lower_price(1.0)
        self.of_targets = np.zeros((n, k))
        self.farthest = np.zeros(n)
        self.searches = 0
        self._mapped: Array | None = None
        self._slack = np.zeros(0)

    def lower_price(self, share: float) -> None:
        """Let a hinge cost this part of u only."""
        self.share = share
        self._price = share * (1.0 - self.problem.pull) * self.problem.weight

    def search(self, Z: Array, smoothing: float, slack: float, budget: Budget) -> None:
        """Fill the lists by an exact search of all rows; none of those that count is left out."""
        need = self._reach(Z) + 0.5 * smoothing
        radius = (1.0 + slack) * need
        found = core.find_impostors(
            Z, self.problem.class_ends, radius, max(budget.seconds_left, 0.0), budget.flag
        )
        if found is None:
            raise BudgetExhausted
        ends, rows = found
        self._pairs = _with_way_back(ends, rows, Z.shape[0])
        self.of_impostors = np.zeros(rows.size)
        self._mapped, self._radius = Z, np.sqrt(radius)
        self.searches += 1

    def cover(self, Z: Array, smoothing: float, farthest: Array | None = None) -> bool:
        """Return whether the lists are known to hold every triplet that counts when rows are at Z.

        A pair that is in no list was at least as far apart as its radius, and is nearer by at most the ways
        that both rows have gone.
        """
        if self._mapped is None or self._mapped.shape != Z.shape:
            return False
        moved = Z - self._mapped
        way = np.sqrt(np.einsum("ij,ij->i", moved, moved)) * (1.0 + 1e-12)
        left = self._radius * (1.0 - 1e-12) - way - way.max()
        reach = self._reach(Z) if farthest is None else farthest * (1.0 + 1e-12)
        return bool((np.square(np.maximum(left, 0.0)) >= reach + 0.5 * smoothing).all())

    def _reach(self, Z: Array) -> Array:
        """Return 1 + max_j |z_i - z_j|^2, and a little for rounding."""
        far = np.zeros(Z.shape[0])
        for column in self.problem.targets.T:
            difference = Z - Z[np.maximum(column, 0)]
            square = np.einsum("ij,ij->i", difference, difference)
            np.maximum(far, np.where(column >= 0, square, 0.0), out=far)
        return (1.0 + far) * (1.0 + 1e-12)

    def sums(self, Z: Array, smoothing: float) -> HingeSums:
        """Return the sums over all triplets in the lists, and keep the slopes of their pairs."""
        problem = self.problem
        return HingeSums(
            *core.hinge_sums(
                Z,
                problem.targets,
                self._pairs.ends,
                self._pairs.rows,
                self._price,
                smoothing,
                self.of_targets,
                self.of_impostors,
                self.farthest,
            )
        )

    def products(self, Z: Array) -> Array:
        """Return Y with X'Y = sum_t a_t A_t for Z = X: y_i adds up slope (z_i - z_other) over its pairs."""
        near, far = np.empty_like(Z), np.empty_like(Z)
        pairs, targets = self._pairs, self._target_pairs
        core.pair_products(Z, *targets, self.of_targets[self._there], near)
        core.pair_products(Z, *pairs, self.of_impostors, far)
        near += far
        return near

    def listed(self, Z: Array, smoothing: float) -> tuple[Array, Array]:
        """Return (row, target, impostor) of all triplets with a slope above 0, and the slopes."""
        problem = self.problem
        i, place, far, a = core.list_triplets(
            Z, problem.targets, self._pairs.ends, self._pairs.rows, self._price, smoothing
        )
        return np.column_stack([i, problem.targets[i, place], far]), a


class _Pairs(NamedTuple):
    """A list of other rows for each row, and for each row the pairs that end in it."""

    ends: Array
    rows: Array
    back_ends: Array
    back_rows: Array
    back_pairs: Array


def _with_way_back(ends: Array, rows: Array, n: int) -> _Pairs:
    numbers = np.arange(rows.size, dtype=np.int64)
    back = sp.csr_array((numbers, rows.astype(np.int32), ends), shape=(n, n)).tocsc()
    return _Pairs(
        ends.astype(np.int64),
        rows.astype(np.int32),
        back.indptr.astype(np.int64),
        back.indices.astype(np.int32),
        back.data.astype(np.int64),
    )


def feasible_share(Q: Array) -> float:
    """Return s <= 1 with I + s Q positive semi-definite, Q = sum_t a_t A_t: s a proves a bound."""
    values = np.linalg.eigvalsh(0.5 * (Q + Q.T))
    least = float(values[0]) - ROUNDING * (1.0 + float(np.abs(values).max()))
    return 1.0 if least >= -1.0 else -1.0 / least


def padded(L: Array) -> Array:
    """Return L with rows of zeros, as many as native loops want."""
    missing = -L.shape[0] % LANES
    return np.vstack([L, np.zeros((missing, L.shape[1]))]) if missing else L
