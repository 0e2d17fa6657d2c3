"""Landmarks: a few rows C whose images span a space that holds most of the kernel, and all rows in it.

    K(x, z)  ~  phi(x).phi(z),      phi(x) = L^-1 K(C, x),      L L' = K(C, C)

phi(x) are the coordinates of the image of x in the space of the landmarks (Nystroem's method), and what the
space does not hold of a row is u(x) = K(x, x) - |phi(x)|^2 >= 0. Summed over the training rows that is the
trace error,

    tr(K - K_C K_CC^-1 K_C') / tr K,      weighted where rows have weights

Features of all rows grow by blocks of landmarks S, with V = L^-1 K(C, S) and the Cholesky factor B of
K(S, S) - V'V: one product [phi, K_S] [-B^-1 V', B^-1]' adds their columns. L is kept in float64 whatever the
features are.

Randomly pivoted Cholesky draws rows with probability u_i / sum u, some at a time. Of those drawn, one in
``CHOICE`` becomes a landmark: in turn the one that takes most of what is left of all rows,

    sum_i R_ij^2 / R_jj,      R = K - phi phi'

which the others that were drawn estimate, each standing for sum u / (number drawn u_i) rows. On 15,000 images
and 300 landmarks 23.5% of the trace was left by rows that were drawn one by one or uniformly, 22.3% so.

k-means++ draws by the squared distance to the nearest landmark in the kernel's space; many are drawn at once,
and each is kept with the probability that it still has when its turn comes, which leaves what drawing one at
a time would. A row of which almost nothing is left is never a landmark, so duplicates do no harm.

Sources: Williams and Seeger (2001), Using the Nystroem method to speed up kernel machines; Chen, Epperly,
Tropp and Webber (2025), Randomly pivoted Cholesky; Epperly, Tropp and Webber (2024), Embrace rejection;
Smola and Schoelkopf (2000), Sparse greedy matrix approximation, for the choice among a few; Arthur and
Vassilvitskii (2007), k-means++.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import lapack, solve_triangular

from sixfold._native import core
from sixfold.budget import Budget, BudgetExhausted
from sixfold.certificate import Certificate
from sixfold.errors import InputError
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.threads import one_blas_thread, single_threaded_blas

Array = NDArray[Any]

SELECTIONS = ("pivoted_cholesky", "kmeans++", "uniform")
# Rows a landmark, and in any case, among which landmarks are chosen. Of 60,000 images and a rank of 1,000,
# 15.6% of the trace is left; 15.2% if they are chosen among all rows, which takes twice as long.
SAMPLE, LEAST_SAMPLE = 4, 8192
STREAMED = 1 << 24  # features that are computed at a time
LARGEST_BLOCK, SMALLEST_BLOCK = 128, 8  # landmarks that are chosen at a time
BLOCKS = 10
CHOICE = 4  # rows that are drawn for each landmark; with 2, 23.0% of that trace was left, with 8, 21.9%
# Of the largest K(x, x): a row of which no more is left adds rounding and no direction.
LEAST_PIVOT = {np.dtype(np.float32): 3e-5, np.dtype(np.float64): 1e-9}
# Most of |row of L^-1|^2 times the largest K(x, x): features are off by its root, times what values of K are
# off. Rows in any order may have pivots above the least and be nearly dependent all the same.
MOST_INVERSE = {np.dtype(np.float32): 2e6, np.dtype(np.float64): 1e12}
# Of the largest K(x, x): what rounding may leave below 0.
NEGATIVE = {np.dtype(np.float32): 1e-2, np.dtype(np.float64): 1e-5}
ROUNDING_ROWS = 64  # whose features are computed again in float64
NOT_SAMPLED = 4.0
SQUARED_ROWS = 4096


@dataclass
class Landmarks:
    """Landmarks, and what their space holds of the training rows.

    Attributes
    ----------
    chosen : ndarray of int64 of shape (rank,)
        Their rows, in the order in which they were found.
    triangle : ndarray of float64 of shape (rank, rank)
        L above.
    features : ndarray of shape (rows, rank) or None
        phi of each training row; None where they were not asked for, or Ctrl-C came before their end.
    left : ndarray of float64 of shape (rows,)
        u of each training row.
    trace, trace_left : float
        The weighted sums of K(x, x) and of u.
    rounding : float
        How far ``trace_left`` may be off, with all of the rows that Ctrl-C has kept from being looked at.
    exhausted : bool
        Whether no row has anything left that rounding would not hide.
    dtype : dtype
        The precision of features.
    """

    chosen: Array
    triangle: Array
    features: Array | None
    left: Array
    trace: float
    trace_left: float
    rounding: float
    exhausted: bool
    dtype: np.dtype[Any]

    @property
    def error(self) -> float:
        """The relative trace error; 0 for rows whose images are all 0."""
        return self.trace_left / self.trace if self.trace > 0 else 0.0

    @property
    def error_rounding(self) -> float:
        """How far the relative trace error may be off."""
        return self.rounding / self.trace if self.trace > 0 else 0.0

    @property
    def inverse(self) -> Array:
        """L^-1, in float64."""
        return inverse_triangle(self.triangle)


def inverse_triangle(triangle: Array) -> Array:
    """Return the inverse of a lower triangle."""
    with single_threaded_blas(triangle.shape[0]):
        return np.ascontiguousarray(lapack.dtrtri(triangle, lower=1)[0]) if triangle.size else triangle.copy()


def find_landmarks(
    rows: KernelRows,
    rank: int,
    selection: str,
    random: np.random.RandomState,
    dtype: DTypeLike,
    budget: Budget,
    weight: Array | None = None,
    features: bool = True,
    first: Array | None = None,
) -> Landmarks:
    """Choose landmarks among the rows, and compute the features of all rows.

    Parameters
    ----------
    rows : KernelRows
    rank : int
        Most landmarks; fewer where the trace error falls to the budget's ``tol``.
    selection : {"pivoted_cholesky", "kmeans++", "uniform"}
    random : RandomState
    dtype : dtype
        Of the features.
    budget : Budget
        One record a block of landmarks. What was found when it ends is kept.
    weight : ndarray of shape (rows,), optional
        How much each row counts: in the choice, and in the trace.
    features : bool, default=True
        Whether features of all rows are wanted.
    first : ndarray of int64, optional
        Rows that become landmarks before any others, in this order.
    """
    n = rows.n_rows
    own = rows.diagonal()
    _require_positive(rows, np.arange(n), own, 0.0)
    size = sample_size(rank)
    everything = size >= n
    order = random.permutation(n) if selection == "uniform" or not everything else np.arange(n)
    sample = order[:size] if weight is None else order[weight[order] > 0][:size]
    given = np.empty(0, np.int64) if first is None else first[:rank]
    if given.size:
        sample = np.concatenate([given, sample[~np.isin(sample, given)][: size * (given.size < rank)]])
    factor = Factor(rows, sample, min(rank, n), dtype, own, weight)
    if factor.exhausted:
        _require_zeros(rows)
    draw, taken = _DRAWN[selection](factor, random), 0
    while factor.size < factor.rank and not factor.exhausted:
        # A model with no landmark would be none: the first few take no notice of limits.
        within = budget if factor.size else Budget()
        try:
            if taken < given.size:
                drawn, chooses = np.arange(taken, min(taken + draw.size, given.size)), False
                taken += drawn.size
            else:
                drawn, chooses = draw.block(), draw.chooses
            grown = factor.extend(drawn, within, budget.tol, chooses) if drawn.size else 0
        except BudgetExhausted:
            budget.exhausted()
            break
        if grown and budget.record(factor.error, factor.error, 1.0):
            break
    return factor.result(features, budget)


def sample_size(rank: int) -> int:
    """Return among how many rows so many landmarks are chosen."""
    return max(SAMPLE * rank, LEAST_SAMPLE)


class Factor:
    """Features of the rows among which landmarks are chosen, which grow by blocks of them."""

    def __init__(
        self, rows: KernelRows, sample: Array, rank: int, dtype: DTypeLike, own: Array, weight: Array | None
    ) -> None:
        self.rows, self.rank, self.dtype = rows, min(rank, sample.size), np.dtype(dtype)
        self.sample = np.ascontiguousarray(sample, dtype=np.int64)
        self.own, self.all_weights = own, weight
        self.diagonal: Array = own[sample]
        self.weight = None if weight is None else weight[sample]
        self.left: Array = self.diagonal.copy()
        self.largest = float(self.diagonal.max(initial=0.0))
        self.least = LEAST_PIVOT[self.dtype] * self.largest
        self.features = np.empty((sample.size, self.rank), self.dtype)
        self.triangle = np.zeros((self.rank, self.rank))
        self.inverse = np.zeros((self.rank, self.rank))  # of the triangle
        self.closed = np.zeros(sample.size, dtype=bool)  # rows that are to be no landmarks
        self.places = np.empty(self.rank, np.int64)  # of landmarks, in the sample
        self.size = 0
        self.trace = self._sum(self.diagonal)
        self.exhausted = not self.trace > 0.0

    @property
    def chosen(self) -> Array:
        """The rows of the landmarks."""
        return self.sample[self.places[: self.size]]

    def _sum(self, values: Array) -> float:
        return float(values.sum() if self.weight is None else self.weight @ values)

    @property
    def error(self) -> float:
        """The relative trace error of the sample."""
        return self._sum(self.left) / self.trace if self.trace > 0.0 else 0.0

    def extend(self, drawn: Array, budget: Budget, tol: float, choose: bool) -> int:
        """Make landmarks of rows that were drawn, and return of how many.

        Parameters
        ----------
        drawn : ndarray of int64
            Places in the sample.
        budget : Budget
        tol : float
            The trace error beyond which no landmark is wanted.
        choose : bool
            Whether the best of them are chosen, or all are taken of which anything is left.
        """
        size, most = self.size, self.rank - self.size
        if choose:
            # Features tell what is left between the rows that were drawn: to choose among them, that will do.
            known = self.features[drawn, :size]
            H = self.rows.gram(self.sample[drawn], self.dtype, budget) - known @ known.T
            most = min(most, max(drawn.size // CHOICE, 1))
            own = None if self.weight is None else self.weight[drawn]
            together = self._sum(self.left)
            with one_blas_thread:
                chosen = drawn[choose_pivots(H.astype(np.float64), self.least, most, together, own)]
            if chosen.size == 0:
                self.closed[drawn] = True
                return 0
            drawn = chosen
        H, V = self._beside(self.sample[drawn], budget)
        taken, B, inverse = self._pivots(drawn, H, V, most)
        if taken.size == 0:
            # What was drawn is as good as in the space already: features were rounded.
            self.closed[drawn] = True
            return 0
        self._add(drawn[taken], V[:, taken], B, inverse, budget)
        if tol > 0.0:
            self._cut(size, tol)
        return self.size - size

    def _beside(self, new: Array, budget: Budget) -> tuple[Array, Array]:
        """Return K(S, S) - V'V and V = L^-1 K(C, S) for rows S, in float64."""
        H = self.rows.gram(new, np.float64, budget)
        if not self.size:
            return H, np.zeros((0, new.size))
        K = self.rows.block(self.chosen, new, np.float64, budget)
        with single_threaded_blas(self.size):
            V = solve_triangular(self.triangle[: self.size, : self.size], K, lower=True, overwrite_b=True)
            return H - V.T @ V, V

    def _pivots(self, drawn: Array, H: Array, V: Array, most: int) -> tuple[Array, Array, Array]:
        """Return which rows become landmarks, the factor of their part, and their rows of L^-1.

        Those that are nearly combinations of others are left out, now and later.
        """
        kept, known = np.arange(drawn.size), self.inverse[: self.size, : self.size]
        while True:
            with one_blas_thread:
                taken, B = all_pivots(H[np.ix_(kept, kept)], self.least, most)
                inverse = inverse_triangle(B)
                rows = np.hstack([-(inverse @ V[:, kept[taken]].T) @ known, inverse])
            far = np.square(rows).sum(axis=1) * self.largest > MOST_INVERSE[self.dtype]
            if not far.any():
                return kept[taken], B, rows
            first = taken[far.argmax()]  # those after it may be far for its sake
            self.closed[drawn[kept[first]]] = True
            kept = np.delete(kept, first)

    def _add(self, new: Array, V: Array, B: Array, rows: Array, budget: Budget) -> None:
        """Add the columns of the features; ``rows`` are those of L^-1."""
        begin, end = self.size, self.size + new.size
        inverse = rows[:, begin:]
        factors = np.ascontiguousarray(np.hstack([-inverse @ V.T, inverse]), dtype=self.dtype)
        columns = self.features[:, begin:end]
        self.rows.block(self.sample, self.sample[new], self.dtype, budget, out=columns)
        multiply_rows(self.features[:, :end], factors, columns, budget)
        self.left -= squares(columns)
        _require_positive(self.rows, self.sample, self.left, NEGATIVE[self.dtype] * self.largest)
        np.maximum(self.left, 0.0, out=self.left)
        self.left[new] = 0.0
        self.triangle[begin:end, :begin], self.triangle[begin:end, begin:end] = V.T, B
        self.inverse[begin:end, :end] = rows
        self.places[begin:end], self.size = new, end

    def _cut(self, begin: int, tol: float) -> None:
        """Leave out the last landmarks of a block that are not needed for the tolerance."""
        columns = self.features[:, begin : self.size]
        if self.error > tol:
            return
        held = np.array([self._sum(squares(columns[:, [j]])) for j in range(columns.shape[1])])
        after = self._sum(self.left) + held[::-1].cumsum()[::-1] - held  # of a factor that ends there
        enough = int(np.argmax(after <= tol * self.trace))
        if enough + 1 < columns.shape[1]:
            self.left += squares(columns[:, enough + 1 :])
            self.size = begin + enough + 1

    def result(self, wanted: bool, budget: Budget) -> Landmarks:
        """Return the landmarks, with the features of all rows if they are wanted."""
        size, n, weight = self.size, self.rows.n_rows, self.all_weights
        triangle = self.triangle[:size, :size].copy()
        if self.sample.size == n:
            features: Array | None = np.empty_like(self.features[:, :size])
            left = np.empty(n)
            features[self.sample], left[self.sample] = self.features[:, :size], self.left  # type: ignore[index]
        else:
            features, left, n = self._all_features(triangle, wanted, budget)
        own = np.maximum(self.own, 0.0)
        seen, rest = left.copy(), left.copy()
        seen[n:], rest[:n] = 0.0, 0.0
        sums = (float(v.sum() if weight is None else weight @ v) for v in (own, seen, rest))
        trace, lost, unknown = sums
        found = Landmarks(self.chosen, triangle, features, left, trace, lost, 0.0, self.exhausted, self.dtype)
        found.rounding = self._rounding(found, n) + unknown
        return found

    def _all_features(self, triangle: Array, wanted: bool, budget: Budget) -> tuple[Array | None, Array, int]:
        """Return the features of all rows, what they leave of each, and of how many rows that is known.

        Time limits are of the choice, but Ctrl-C ends this: rows from there on may be left out whole, and
        there are no features.
        """
        n, size = self.rows.n_rows, self.size
        step = max(STREAMED // max(size, 1), 1)
        features = np.empty((n if wanted else min(step, n), size), self.dtype)
        left, inverse, chosen = np.maximum(self.own, 0.0), inverse_triangle(triangle), self.chosen
        unlimited, known = Budget(), n
        for start in range(0, n, step):
            if start and budget.interrupted:
                known, wanted = start, False
                break
            part = np.arange(start, min(start + step, n))
            out = features[part[0] : part[-1] + 1] if wanted else features[: part.size]
            self.rows.block(part, chosen, self.dtype, unlimited, out=out)
            left[part] = self.own[part] - features_in_place(out, inverse, unlimited)
        _require_positive(self.rows, np.arange(n), left, NEGATIVE[self.dtype] * float(self.own.max()))
        np.maximum(left, 0.0, out=left)
        left[chosen] = 0.0
        return (features if wanted else None), left, known

    def _rounding(self, found: Landmarks, known: int) -> float:
        """Return how far the trace error may be off: some of its terms are computed again in float64."""
        n = self.rows.n_rows
        some = np.unique(np.linspace(0, known - 1, min(ROUNDING_ROWS, known)).astype(np.int64))
        if not found.chosen.size:
            return 0.0
        K = self.rows.block(found.chosen, some, np.float64, Budget())
        with single_threaded_blas(found.chosen.size):
            phi = solve_triangular(found.triangle, K, lower=True, overwrite_b=True)
        exact = np.maximum(self.own[some] - np.square(phi).sum(axis=0), 0.0)
        unit = float(np.finfo(self.dtype).eps)
        apart = float(np.abs(exact - found.left[some]).max())
        total = float(n if self.all_weights is None else self.all_weights.sum())
        least = unit * float(self.own.max()) * (4.0 + found.chosen.size)
        least += self.rows.entry_error(self.dtype)
        return NOT_SAMPLED * max(apart, least) * total


def all_pivots(H: Array, least: float, most: int) -> tuple[Array, Array]:
    """Return which rows of a positive semi-definite matrix become landmarks, and the factor of their part.

    >>> taken, B = all_pivots(np.array([[4.0, 2.0, 4.0], [2.0, 2.0, 2.0], [4.0, 2.0, 4.0]]), 1e-9, 3)
    >>> taken, (B @ B.T).tolist()
    (array([0, 1]), [[4.0, 2.0], [2.0, 2.0]])
    """
    count = H.shape[0]
    left = np.diagonal(H).copy()
    columns = np.zeros((count, min(count, most)))
    taken: list[int] = []
    for i in range(count):
        if len(taken) == most:
            break
        if left[i] <= least:
            continue
        column = _eliminate(H, columns, len(taken), i, left)
        left -= column * column
        taken.append(i)
    index = np.array(taken, dtype=np.intp)
    return index, np.tril(columns[index, : index.size])


def choose_pivots(H: Array, least: float, most: int, together: float, weight: Array | None = None) -> Array:
    """Return which rows take most of what is left of all rows, one after the other.

    Parameters
    ----------
    H : ndarray of shape (count, count)
        R between rows that were drawn with probability weight_i R_ii / together.
    least : float
        No row with less left becomes a landmark.
    most : int
    together : float
        What is left of all rows, weighted.
    weight : ndarray of shape (count,), optional
        Of the rows that were drawn.
    """
    count, unit = H.shape[0], float(np.diagonal(H).max(initial=0.0)) or 1.0
    H, least, together = H / unit, least / unit, together / unit  # squares of what is left stay finite
    left = np.diagonal(H).copy()
    left[left <= least] = 0.0
    stands_for = np.divide(together / count, left, out=np.zeros(count), where=left > 0.0)
    own = np.ones(count) if weight is None else weight
    sums = stands_for @ np.square(H)  # sum_i stands_for_i R_ij^2, kept up to date as R falls
    columns = np.zeros((count, min(count, most)))
    taken: list[int] = []
    open_ = left > 0.0
    while open_.any() and len(taken) < most:
        # Its own square is known; the estimate would count it as that of many rows like it.
        taking = np.divide(sums - stands_for * left * left, left, out=np.zeros(count), where=open_)
        i = int(np.where(open_, taking + own * left, -1.0).argmax())
        done = len(taken)
        column = _eliminate(H, columns, done, i, left)
        weighted = stands_for * column
        across = H @ weighted - columns[:, :done] @ (columns[:, :done].T @ weighted)
        sums += column * (column * (weighted @ column) - 2.0 * across)
        left -= column * column
        taken.append(i)
        open_ &= left > least
        open_[i] = False
    return np.array(taken, dtype=np.intp)


def _eliminate(H: Array, columns: Array, done: int, i: int, left: Array) -> Array:
    """Return the next column of the factor, that of pivot i."""
    column: Array = (H[:, i] - columns[:, :done] @ columns[i, :done]) / np.sqrt(left[i])
    columns[:, done] = column
    return column


# -- which rows are drawn ----------------------------------------------------------------------------------


class Drawn:
    """Rows that may become landmarks, some at a time."""

    chooses = False  # whether only the best of them become landmarks

    def __init__(self, factor: Factor, random: np.random.RandomState) -> None:
        self.factor, self.random = factor, random
        self.size = int(np.clip(factor.rank // BLOCKS, SMALLEST_BLOCK, LARGEST_BLOCK))

    def by_share(self, share: Array, count: int) -> Array:
        """Return so many rows, drawn by their share; none, and no more from then on, where all are 0."""
        open_ = (self.factor.left > self.factor.least) & ~self.factor.closed
        left = np.where(open_, share, 0.0)
        left = left if self.factor.weight is None else left * self.factor.weight
        ends = np.cumsum(left)
        if not ends[-1] > 0.0:
            self.factor.exhausted = True
            return np.empty(0, np.int64)
        return np.searchsorted(ends, self.random.uniform(size=count) * ends[-1], side="right").astype(
            np.int64
        )


class _PivotedCholesky(Drawn):
    """Each with the probability of what is left of it."""

    chooses = True

    def block(self) -> Array:
        """Return the next rows."""
        return np.unique(self.by_share(self.factor.left, CHOICE * self.size))


class _Uniform(Drawn):
    """Every row of weight: the sample is in random order."""

    def __init__(self, factor: Factor, random: np.random.RandomState) -> None:
        super().__init__(factor, random)
        self.order = np.arange(factor.sample.size)
        if factor.weight is not None:
            # The order in which rows of these weights are drawn without replacement (Efraimidis, 2006).
            clocks = random.exponential(size=factor.sample.size) / factor.weight
            self.order = np.argsort(clocks, kind="stable")

    def block(self) -> Array:
        """Return the next rows."""
        size = min(self.size, self.factor.rank - self.factor.size)
        drawn, self.order = self.order[:size].astype(np.int64), self.order[size:]
        self.factor.exhausted = drawn.size == 0
        return drawn


class _KMeans(Drawn):
    """By the squared distance to the nearest landmark, in the space of the kernel."""

    def __init__(self, factor: Factor, random: np.random.RandomState) -> None:
        super().__init__(factor, random)
        self.distance = np.full(factor.sample.size, np.inf)  # squared, from the nearest landmark
        self.seen = 0

    def block(self) -> Array:
        """Return the next rows, each kept if it is still far enough from all landmarks."""
        factor = self.factor
        if factor.size == 0:
            return self.by_share(np.ones(factor.sample.size), 1)
        self._update()
        drawn = self.by_share(self.distance, self.size)
        keep = self.random.uniform(size=drawn.size)
        own = factor.diagonal[drawn]
        apart = own[:, None] + own - 2.0 * factor.rows.gram(factor.sample[drawn], np.float64, Budget())
        nearest, taken = self.distance[drawn].copy(), []
        for i in range(drawn.size):
            if nearest[i] > keep[i] * self.distance[drawn[i]]:
                taken.append(i)
                nearest = np.minimum(nearest, apart[i])
        return drawn[taken]

    def _update(self) -> None:
        """Look at the landmarks that are new."""
        factor = self.factor
        new = factor.places[self.seen : factor.size]
        self.seen = factor.size
        if not new.size:
            return
        K = factor.rows.block(factor.sample, factor.sample[new], factor.dtype, Budget())
        for start in range(0, K.shape[0], SQUARED_ROWS):  # what is held at a time stays in the cache
            part = slice(start, start + SQUARED_ROWS)
            near = (factor.diagonal[new] - 2.0 * K[part]).min(axis=1) + factor.diagonal[part]
            self.distance[part] = np.minimum(self.distance[part], np.maximum(near, 0.0))


_DRAWN: dict[str, Any] = {"pivoted_cholesky": _PivotedCholesky, "kmeans++": _KMeans, "uniform": _Uniform}


# -- the certificate ---------------------------------------------------------------------------------------


def certify_trace(found: Landmarks, tol: float | None) -> Certificate:
    """Return what is known of the space of landmarks: how much of the trace it leaves out.

    No space leaves out less than nothing, which is the bound. Without a tolerance none was asked for.
    """
    count, off = found.chosen.size, found.error_rounding
    objective = min(found.error + off, 1.0)
    plural = "s" * (count != 1)
    claim = f"the space of {count} landmark{plural} leaves out {objective:.4g} of the kernel's trace"
    notes = [] if not found.exhausted else ["another landmark would add nothing that rounding does not hide"]
    notes.append("no claim about the best space of as many dimensions")
    details: dict[str, Any] = {"landmarks": count, "trace": found.trace}
    tolerance = 1.0 if tol is None else tol
    return Certificate("trace error", objective, objective, 1.0, tolerance, details, claim, tuple(notes), off)


# -- products ----------------------------------------------------------------------------------------------


def multiply_rows(A: Array, B: Array, out: Array, budget: Budget) -> None:
    """Write A B' to ``out``, which may be columns of A; the same for any number of threads."""
    budget.check(core.multiply_rows(A, B, out, budget.seconds_left, budget.flag))


def features_in_place(K: Array, inverse: Array, budget: Budget) -> Array:
    """Write K(x, C) L'^-1 over K(x, C) for each row x, and return the squared lengths of the new rows."""
    lengths = np.empty(K.shape[0])
    triangle = np.ascontiguousarray(inverse, dtype=K.dtype)
    budget.check(core.triangle_rows(K, triangle, lengths, budget.seconds_left, budget.flag))
    return lengths


def squares(columns: Array) -> Array:
    """Return the sum of squares of each row, added up in float64."""
    lengths = np.empty(columns.shape[0])
    core.row_lengths(columns, lengths)
    return lengths


def _require_zeros(rows: KernelRows) -> None:
    """Raise an :class:`InputError` where K(x, x) is 0 for all rows, and K of two of them is not."""
    some = np.unique(np.linspace(0, rows.n_rows - 1, min(ROUNDING_ROWS, rows.n_rows)).astype(np.int64))
    values = rows.gram(some, np.float64, Budget())
    if values.any():
        i, j = np.unravel_index(int(np.abs(values).argmax()), values.shape)
        raise InputError(
            f"kernel={rows.kernel!r} is not positive semi-definite: it is 0 for each row with itself, and "
            f"{values[i, j]:.3g} for rows {some[i]} and {some[j]}. Use another kernel."
        )


def _require_positive(rows: KernelRows, index: Array, left: Array, allowed: float) -> None:
    """Raise an :class:`InputError` where less than nothing is left of a row."""
    worst = int(left.argmin())
    if left[worst] < -allowed:
        raise InputError(
            f"kernel={rows.kernel!r} is not positive semi-definite: row {index[worst]} has the squared "
            f"length {float(left[worst]):.3g} beside the landmarks, so it is no dot product in any space. Use"
            " another kernel, or other parameters of this one."
        )
