"""Which columns of a table depend on others: decided here, by one rule, for every learner without penalty.

With z_j = x_j - mean_j (x_j itself without intercept), |z|^2 = sum_i q_i z_i^2 and |x| likewise, column j
depends on the columns k that are kept where the best combination leaves no more of it than rounding of the
entries does, or than a model can use:

    |z_j - sum_k C_kj z_k|  <=  eps sum_k |C_kj| (ROUNDED |x_k| + USABLE |z_k|),   C_jj = 1

and it is constant where nothing has to be subtracted. eps is that of the type of the data. A model that uses
what is left has coefficients of 1 / left, which are rounded by eps / left, and with them every score by 1 /
USABLE of what the column adds to it: such a model cannot be written down to the digits of a gap. The rule
does not grow with the number of rows, and units do not matter: columns are scaled to |z| = 1. Where there are
weights it has to hold for equal weights as well, since a row that hardly counts may still tell two columns
apart.

Columns are ordered by QR with pivoting. What it leaves of a column is known up to its own rounding, about
(sqrt(n) + d) eps; a column of which no more than that is left is looked at again in extended precision. So
columns that are collinear to 1e-12 are kept, and copies, sums and constants are found for any number of rows.
A dependence is exact where extended precision leaves nothing of the column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, qr

from sixfold.data.blocks import Block, Blocks

Array = NDArray[Any]
Columns = NDArray[np.intp]

LAST_DIGITS = (
    "columns {} count as combinations of others, from which they differ in their last digits only: the gap "
    "is the distance to the best of the models that do not tell them apart"
)

EPS = float(np.finfo(np.float64).eps)
EXTENDED = np.longdouble
EXTENDED_EPS = float(np.finfo(EXTENDED).eps)

ROUNDED = 4.0  # roundings that an entry may have been through
USABLE = 256.0  # times the rounding of a coefficient: below it least squares end 1e-6 to 1e-3 above the best
QR_ROUNDING = 32.0  # times (sqrt(n) + d) eps: more than QR was ever seen to lose
CHOLESKY_LOSS = 0.1  # up to this the products of the columns decide
WELL_CONDITIONED = 1e3  # |R^-1| up to which the factor of the products is off by |R^-1|^2 eps = 1e-10
FAR_OFF = 1e-3  # length by size below which the products of a sparse table say too little of a column
SPARSE_PIVOT = 1e-8  # of these products, beyond their rounding
PIECE = 1 << 18  # entries that are centred at a time, in the L2 cache
RESIDUAL_MEAN = 1e-3  # of a length: up to this its square can be subtracted from that of the column
TIE = 1e-9  # by which one column counts as shorter than the one before it
MOST_EXTENDED = 1 << 29  # products in extended precision, some seconds; beyond, QR alone decides
CONVERGED = 1e-3  # of what is left of a column: another correction of the combination changes nothing
NEGLIGIBLE = 1e-9  # of the largest coefficient of a combination: most follow from a few columns


_KNOWN: WeakKeyDictionary[Blocks, dict[bool, ColumnSpace]] = WeakKeyDictionary()


@dataclass(frozen=True)
class ColumnSpace:
    """The columns of a table by a basis of independent ones.

    Attributes
    ----------
    scale : ndarray of shape (columns,)
        The length of each centred column; its plain size where it is constant.
    kept : ndarray of int
        The independent columns, in the order of R.
    R : ndarray of shape (rank, rank)
        Upper triangular, R'R = sum_i q_i z_i z_i' of the kept columns divided by their scale.
    dependent : ndarray of int
        The other columns.
    combination : ndarray of shape (rank, dependent columns)
        How they follow in original units: z_dependent = z_kept @ combination.
    exact : ndarray of bool, one a dependent column
        Whether that holds exactly, and not up to the rounding of the entries.
    lost : float
        How far R is off at most: |R v| (1 - lost) <= |z v| for every v. Above 1/2 it bounds nothing.
    """

    scale: Array
    kept: Columns
    R: Array
    dependent: Columns
    combination: Array
    exact: NDArray[np.bool_]
    lost: float

    @property
    def rank(self) -> int:
        """The number of independent columns."""
        return self.kept.size

    @cached_property
    def condition(self) -> float:
        """An estimate of the condition number of the independent columns, scaled to length 1."""
        if self.rank == 0:
            return 1.0
        reciprocal, _ = lapack.dtrcon(self.R, norm="1", uplo="U", diag="N")
        return float(1.0 / max(reciprocal, 1e-300))

    @cached_property
    def inverse_norm(self) -> float:
        """The Frobenius norm of R^-1."""
        return inverse_norm(self.R)

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Which columns are constant, or zero without intercept: nothing is needed to explain them."""
        result = np.zeros(self.scale.size, dtype=bool)
        result[self.dependent] = ~self.combination.any(axis=0)
        return result

    @cached_property
    def _kept_scale(self) -> Array:
        return self.scale[self.kept, None]

    def half_solve(self, slope: Array) -> Array:
        """Return R^-T times the slope of the independent columns."""
        return _triangular(self.R, slope[self.kept] / self._kept_scale, transposed=True)

    def solve(self, slope: Array) -> Array:
        """Return beta with (sum_i q_i z_i z_i') beta = slope, zero on dependent columns."""
        result = np.zeros(slope.shape)
        half = self.half_solve(slope)
        result[self.kept] = _triangular(self.R, half) / self._kept_scale
        return result

    def shortest(self, w: Array) -> Array:
        """Return the shortest of all coefficients that predict the same as these."""
        if self.dependent.size == 0:
            return w
        null = np.zeros((w.shape[0], self.dependent.size))
        null[self.kept] = self.combination
        null[self.dependent, np.arange(self.dependent.size)] = -1.0
        shorter: Array = w - null @ np.linalg.lstsq(null, w, rcond=None)[0]
        return shorter

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of (sum_i q_i z_i z_i')^-1; not a number on dependent columns."""
        result = np.full(self.scale.size, np.nan)
        inverse = _triangular(self.R, np.eye(self.rank))
        result[self.kept] = np.square(inverse / self.scale[self.kept, None]).sum(axis=1)
        return result

    def singular_values(self) -> Array:
        """Return the singular values of the centred table, largest first, zero for what depends."""
        unscaled = np.zeros((self.rank, self.scale.size))
        unscaled[:, self.kept] = self.R * self.scale[self.kept]
        unscaled[:, self.dependent] = unscaled[:, self.kept] @ self.combination
        values = np.zeros(self.scale.size)
        if self.rank:
            values[: self.rank] = np.linalg.svd(unscaled, compute_uv=False)[: self.rank]
        return values


def independent_columns(R: Array, scale: Array, lost: float, inverse: float | None = None) -> ColumnSpace:
    """Return the space of columns that are all independent, with R in their order, and |R^-1| if known."""
    d = scale.size
    none = np.zeros(0, dtype=bool)
    space = ColumnSpace(scale, np.arange(d), R, np.arange(0), np.zeros((d, 0)), none, lost)
    if inverse is not None:
        vars(space)["inverse_norm"] = inverse
    return space


def inverse_norm(R: Array) -> float:
    """Return the Frobenius norm of R^-1, infinite where R is singular."""
    if R.size == 0:
        return 0.0
    inverse, singular = lapack.dtrtri(R, lower=0)
    return np.inf if singular else float(np.linalg.norm(inverse))


def cholesky_loss(R: Array, rounding: float) -> float:
    """Return what is lost by the factor of products that are off by ``rounding`` (their Frobenius norm).

    Of R'R = P + E it is |R^-1|^2 |E|, and Cholesky's own rounding of columns of length 1 adds to E.
    """
    return loss_of_products(R.shape[0], inverse_norm(R), rounding)


def loss_of_products(order: int, norm: float, rounding: float) -> float:
    """Return the same where the norm of R^-1 is known."""
    return norm**2 * (rounding + 0.5 * (order + 2) * order * EPS)


def qr_loss(R: Array, n_rows: int) -> float:
    """Return what is lost by QR of the rows, piece by piece: some times what it was ever seen to lose."""
    d = R.shape[0]
    pieces = n_rows / _step(d)
    return 8.0 * EPS * d**1.5 * (1.0 + np.sqrt(pieces)) * inverse_norm(R)


def beyond_doubt(space: ColumnSpace, size: Array, eps: float) -> bool:
    """Return whether no column can be one that rounding of the entries makes dependent.

    With a_jj the diagonal of (R'R)^-1, 1 / sqrt(a_jj) >= 1 / |R^-1| is left of column j, and no combination
    of columns, all or some of them, has a coefficient above sqrt(a_kk / a_jj) <= |R^-1|.
    """
    return independent_by_norm(space.inverse_norm, size / space.scale, eps)


def independent_by_norm(norm: float, sizes: Array, eps: float) -> bool:
    """Return the same from |R^-1| and how far columns of length 1 are from zero."""
    rounded = (ROUNDED * float(sizes.max(initial=0.0)) + USABLE) * eps * np.sqrt(sizes.size)
    return norm <= WELL_CONDITIONED and bool(2.0 * rounded * norm**2 <= 1.0)


def column_space(blocks: Blocks, centred: bool) -> ColumnSpace:
    """Return the column space of a table, centred where there is an intercept.

    Solvers, bounds and summaries of one fit ask for it: it is found once for one and the same ``blocks``.
    """
    known = _KNOWN.setdefault(blocks, {})
    if centred not in known:
        known[centred] = _column_space(blocks, centred)
    return known[centred]


def _column_space(blocks: Blocks, centred: bool) -> ColumnSpace:
    table = _Table(blocks, centred)
    constant = table.constant()
    d = blocks.n_columns
    if not constant.any() and not table.far_off.any() and table.most >= d:
        R, failed = lapack.dpotrf(table.products, lower=0, clean=1)
        if not failed:
            space = independent_columns(R, table.length, cholesky_loss(R, d * table.rounding))
            if space.lost <= CHOLESKY_LOSS and beyond_doubt(space, table.size, table.eps):
                return space
    return _by_pivoting(table, constant)


def _by_pivoting(table: _Table, constant: NDArray[np.bool_]) -> ColumnSpace:
    some = np.flatnonzero(~constant & ~table.far_off)
    R, order, clear = _pivoted_products(table, some) if table.sparse else _pivoted_rows(table, some)
    basis = _Basis(table, some[order[:clear]], R[:clear, :clear])
    products_loss = cholesky_loss(basis.R, some.size * table.rounding)
    basis.lost = products_loss if table.sparse else qr_loss(basis.R, table.blocks.n_rows)
    far = np.flatnonzero(~constant & table.far_off)
    doubtful = np.concatenate([some[order[clear:]], far])
    projected = _triangular(basis.R, table.products[np.ix_(basis.kept, far)], transposed=True)
    projected = np.hstack([R[:clear, clear:], projected])
    found: list[tuple[int, Array, bool]] = []
    for column, onto in zip(doubtful, projected.T, strict=True):
        C = np.zeros(basis.kept.size)
        C[:clear] = _triangular(R[:clear, :clear], onto[:, None])[:, 0]
        if basis.kept.size == table.most:
            found.append((column, C, True))  # there is no room for another
        elif basis.products_spent > MOST_EXTENDED:
            found.append((column, C, False))
        elif (dependence := basis.explain(column, C)) is not None:
            found.append((column, *dependence))
    return _space(table, constant, basis, found)


def _space(
    table: _Table, constant: NDArray[np.bool_], basis: _Basis, found: list[tuple[int, Array, bool]]
) -> ColumnSpace:
    """Return the column space from the basis, the columns that follow from it, and the constant ones."""
    for column in np.flatnonzero(constant):
        found.append((int(column), np.zeros(0), bool(table.length[column] == 0)))
    found.sort(key=lambda each: each[0])
    scale = np.where(constant, table.size, table.length)
    scale = np.where(scale > 0, scale, 1.0)
    combination = np.zeros((basis.kept.size, len(found)))
    for position, (follows, C, _) in enumerate(found):
        combination[: C.size, position] = C * (scale[follows] / scale[basis.kept[: C.size]])
    dependent = np.array([column for column, _, _ in found], dtype=np.intp)
    exact = np.array([each for _, _, each in found], dtype=bool)
    return ColumnSpace(scale, basis.kept, basis.R, dependent, combination, exact, basis.lost)


def _pivoted_rows(table: _Table, columns: Columns) -> tuple[Array, Columns, int]:
    """Return R of the ordered columns, their order, and how many are independent beyond doubt."""
    if columns.size == 0:
        return np.zeros((0, 0)), columns, 0
    # Of columns that explain each other the first is kept.
    earlier = 1.0 - TIE * np.arange(columns.size)
    R, order = qr(table.triangle(columns) * earlier, mode="r", pivoting=True, check_finite=False)
    R = np.asarray(R) / earlier[order]
    pivots = np.abs(np.diag(R))
    noise = QR_ROUNDING * (np.sqrt(table.blocks.n_rows) + columns.size) * EPS
    size = (_least(table.size, table.length) / np.where(table.length > 0, table.length, 1.0))[columns[order]]
    clear = min(int(np.count_nonzero(pivots > noise)), table.most)
    # Of columns far from zero, rounding of the entries may leave more than rounding of QR.
    far = 8.0 * table.eps * (1.0 + clear) * size.max(initial=0.0)
    for place in np.flatnonzero(pivots[:clear] <= noise + far):
        C = _triangular(R[:place, :place], R[:place, place : place + 1])[:, 0]
        if pivots[place] <= 2.0 * table.eps * (size[place] + np.abs(C) @ size[:place]) + noise:
            return R, order, int(place)
    return R, order, clear


def _pivoted_products(table: _Table, columns: Columns) -> tuple[Array, Columns, int]:
    """Return the same from the products of the columns, which are all that is at hand of a sparse table."""
    if columns.size == 0:
        return np.zeros((0, 0)), columns, 0
    earlier = 1.0 - TIE * np.arange(columns.size)
    products = table.products[np.ix_(columns, columns)] * np.outer(earlier, earlier)
    R, order, rank, _ = lapack.dpstrf(products, lower=0, tol=SPARSE_PIVOT)
    return np.triu(R) / earlier[order - 1], order - 1, min(int(rank), table.most)


class _Basis:
    """The columns that are independent so far, and R of them."""

    def __init__(self, table: _Table, kept: Columns, R: Array) -> None:
        self.table, self.kept, self.R = table, kept, R
        self.products_spent, self.lost = 0, 0.0

    def explain(self, column: int, C: Array) -> tuple[Array, bool] | None:
        """Return the combination of scaled columns that the column follows from, and whether exactly so.

        Where there is none the column becomes one of the basis, and None is returned.
        """
        large = np.flatnonzero(np.abs(C) > NEGLIGIBLE * np.abs(C).max(initial=0.0))
        for used in (large, np.arange(C.size)):
            fitted, left, equally_left, along = self._fit(column, used, C[used])
            C = np.zeros(C.size)
            C[used] = fitted
            lefts = left, equally_left
            weighted, equal = (self.table.size, self.table.length), self.table.equal_norms()
            if self._within(column, C, lefts, (_least(*weighted), _least(*equal)), self.table.eps):
                # x - mean is exact, or rounded by its own size and not by that of x.
                return C, self._within(column, C, lefts, (weighted[1], equal[1]), 8.0 * EXTENDED_EPS)
            if used.size == C.size:
                break
        rank = self.kept.size
        grown = np.zeros((rank + 1, rank + 1))
        grown[:rank, :rank], grown[:rank, rank], grown[rank, rank] = self.R, self.R @ C, left
        self.kept, self.R = np.append(self.kept, column), grown
        self.lost += along / left
        return None

    def _within(
        self, column: int, C: Array, lefts: tuple[float, float], sizes: tuple[Array, Array], eps: float
    ) -> bool:
        """Return whether eps times the sizes explains what is left, by the weights and by equal ones."""
        columns = np.append(self.kept, column)
        C = np.append(np.abs(C), 1.0) / self.table.length[columns]
        return all(left <= eps * float(C @ size[columns]) for left, size in zip(lefts, sizes, strict=True))

    def _fit(self, column: int, used: Columns, C: Array) -> tuple[Array, float, float, float]:
        """Return the best combination of some columns, and the lengths of what it leaves.

        The last of them is that of the part of what is left which still lies along the columns.

        Residuals in extended precision are fed back through R of double precision.
        """
        R = self.R if used.size == self.R.shape[0] else _triangle(self.R[:, used])
        best = C.astype(EXTENDED)
        for _ in range(8):
            slope, left, equally_left = self._residual(column, self.kept[used], best)
            change = _triangular(R, slope[:, None], transposed=True)
            along = float(np.linalg.norm(change))
            if not along > max(CONVERGED * left, EXTENDED_EPS):
                break
            best = best + _triangular(R, change)[:, 0]
        return best.astype(np.float64), left, equally_left, along

    def _residual(self, column: int, kept: Columns, C: Array) -> tuple[Array, float, float]:
        """Return sum_i q_i e_i z_i of the kept columns for e = z_column - z_kept C, and the lengths of e."""
        table = self.table
        self.products_spent += table.blocks.n_rows * (kept.size + 1)
        sums: Array = np.zeros((kept.size + 1, 2), dtype=EXTENDED)
        squares: Array = np.zeros((2, 3), dtype=EXTENDED)  # weighted and equally: of e^2, e, 1
        for Z, q in table.scaled(np.append(kept, column), extended=True):
            e = Z[:, -1] - Z[:, :-1] @ C
            share = np.stack([q, (q > 0) / table.rows])
            sums[:-1] += Z[:, :-1].T @ (q[:, None] * np.stack([e, np.ones_like(e)], axis=1))
            squares += share @ np.stack([e * e, e, np.ones_like(e)], axis=1)
        mean = squares[0, 1] if table.centred else EXTENDED(0.0)
        slope = sums[:-1, 0] - mean * sums[:-1, 1]
        left = np.sqrt(np.maximum(squares[:, 0] - 2 * mean * squares[:, 1] + mean**2 * squares[:, 2], 0.0))
        return slope.astype(np.float64), float(left[0]), float(left[1])


def _least(size: Array, length: Array) -> Array:
    """Return what has to be left of columns at least, in units of eps."""
    return ROUNDED * size + USABLE * length


class _Table:
    """The rows of a table as z / length, never all at once, and the products of these columns.

    The mean is subtracted in two parts. The first is rounded as the entries are; what it misses, which would
    grow with the number of rows, is the mean of what is left, and small. A constant column leaves zeros.
    """

    def __init__(self, blocks: Blocks, centred: bool) -> None:
        self.blocks, self.centred, self.sparse = blocks, centred, blocks.sparse
        self.eps = float(np.finfo(blocks.dtype).eps)
        self.rows = sum(int(np.count_nonzero(block.counts)) for block in blocks)
        self.most = max(min(self.rows - centred, blocks.n_columns), 0)
        d = blocks.n_columns
        self.mean, self.rest, self.size, self.length = np.zeros((4, d))
        self.far_off = np.zeros(d, dtype=bool)
        self._equal_norms: tuple[Array, Array] | None = None
        if self.sparse:
            self._sparse_products()
        else:
            self.products = self._dense_products()

    def constant(self) -> NDArray[np.bool_]:
        """Return which columns are constant but for rounding."""
        noise = ROUNDED * self.eps
        result: NDArray[np.bool_] = self.length <= noise * self.size
        if result.any():
            size, length = self.equal_norms()
            result &= length <= noise * size
        return result

    def equal_norms(self) -> tuple[Array, Array]:
        """Return the size and the length of each column, the weights set aside."""
        if all(block.weight is None for block in self.blocks):
            return self.size, self.length
        if self._equal_norms is None:
            every = np.arange(self.size.size)
            unit = self._unit(every)
            squares = np.zeros((2, every.size))
            for X, q in self._plain(every):
                centred = (X - self.mean) - self.rest
                squares += (q > 0) @ np.square(X / unit), (q > 0) @ np.square(centred / unit)
            size, length = np.sqrt(squares / self.rows) * unit
            self._equal_norms = size, length
        return self._equal_norms

    def scaled(self, columns: Columns, extended: bool = False) -> Iterator[tuple[Array, Array]]:
        """Go through the rows of z / length, with q."""
        kind = EXTENDED if extended else np.float64
        mean, rest = self.mean[columns].astype(kind), self.rest[columns].astype(kind)
        length = self._unit(columns).astype(kind)
        for X, q in self._plain(columns):
            yield ((X - mean) - rest) / length, q

    def triangle(self, columns: Columns) -> Array:
        """Return R, upper triangular with R'R = sum_i q_i z_i z_i', by Householder QR of the rows."""
        R = np.zeros((0, columns.size))
        for Z, q in self.scaled(columns):
            R = _triangle(np.vstack([R, np.sqrt(q)[:, None] * Z]))
        return R

    @property
    def rounding(self) -> float:
        """The relative rounding of the sums behind an entry of the products."""
        if self.sparse:
            return 0.5 * EPS * (self.blocks.n_rows + 16.0) / FAR_OFF**2
        step = min(_step(self.size.size), self.blocks.n_rows)
        return 0.5 * EPS * (step + self.blocks.n_rows / step + 16.0)

    def _unit(self, columns: Columns) -> Array:
        """Return lengths to divide by."""
        length = np.where(self.length > 0, self.length, self.size)[columns]
        return np.where(length > 0, length, 1.0)

    def _plain(self, columns: Columns) -> Iterator[tuple[Array, Array]]:
        """Go through the rows of some columns as they are, in float64, with q."""
        for block in self.blocks:
            X = block.X
            if columns.size < X.shape[1] or np.any(columns[1:] <= columns[:-1]):
                X = X[:, columns]
            step = _step(columns.size)
            for first in range(0, X.shape[0], step):
                rows = slice(first, first + step)
                part = X[rows].toarray() if self.sparse else X[rows]
                yield np.asarray(part, dtype=np.float64), _shares(block, rows, self.blocks)

    def _dense_products(self) -> Array:
        """Set mean, rest, size and length, and return the products, in three passes over the table."""
        every, d = np.arange(self.size.size), self.size.size
        unit = self._find_mean(every)
        plain = np.zeros((d, d))
        for X, q in self._plain(every):
            part = (X - self.mean) / unit
            self.rest += q @ part
            part *= np.sqrt(q)[:, None]
            plain += part.T @ part
        products = plain - np.outer(self.rest, self.rest) if self.centred else plain
        self.rest = self.rest * unit if self.centred else np.zeros(d)
        self.length = np.sqrt(np.maximum(np.diag(products), 0.0)) * unit
        if np.any(np.abs(self.rest) > RESIDUAL_MEAN * self.length):
            self._measure(every)
        self.size = np.hypot(self.length, self.mean + self.rest)
        unit = self._unit(every) / unit
        return products / np.outer(unit, unit)

    def _find_mean(self, columns: Columns) -> Array:
        """Set the mean of some columns, and return their largest entries."""
        mean, largest = np.zeros((2, columns.size))
        for X, q in self._plain(columns):
            mean += q @ X
            np.maximum(largest, np.abs(X).max(axis=0, initial=0.0), out=largest)
        if self.centred:
            self.mean[columns] = mean + sum((q @ (X - mean) for X, q in self._plain(columns)), 0.0)
        return np.where(largest > 0, largest, 1.0)

    def _measure(self, columns: Columns) -> None:
        """Set rest, length and size of some columns, also where the mean leaves little of them."""
        unit, mean = self._find_mean(columns), self.mean[columns]
        rest, square = np.zeros((2, columns.size))
        if self.centred:
            rest = sum((q @ (X - mean) for X, q in self._plain(columns)), rest)
        for X, q in self._plain(columns):
            square += q @ np.square(((X - mean) - rest) / unit)
        self.rest[columns], self.length[columns] = rest, np.sqrt(square) * unit
        self.size[columns] = np.hypot(self.length[columns], mean + rest)

    def _sparse_products(self) -> None:
        """Set everything from the products of the columns; of columns far from zero, from themselves."""
        plain, mean = 0.0, np.zeros(self.size.size)
        for block in self.blocks:
            X, q = block.X.astype(np.float64), _shares(block, slice(None), self.blocks)
            plain = plain + (X.T @ X.multiply(q[:, None]).tocsr()).toarray()
            mean += np.asarray(q @ X)
        self.mean = mean if self.centred else self.mean
        products = plain - np.outer(self.mean, self.mean)
        self.size, self.length = np.sqrt(np.diag(plain)), np.sqrt(np.maximum(np.diag(products), 0.0))
        self.far_off = self.length <= FAR_OFF * self.size
        self.products = products / np.outer(self._unit(every := np.arange(self.size.size)), self._unit(every))
        far = np.flatnonzero(self.far_off)
        if far.size:
            before = self._unit(far)
            self._measure(far)
            self.products[:, far] *= before / self._unit(far)
            self.products[far] *= (before / self._unit(far))[:, None]


def _step(columns: int) -> int:
    """Return how many rows of so many columns are taken at a time."""
    return max(PIECE // max(columns, 1), 2 * columns, 1)


def _shares(block: Block, rows: slice, blocks: Blocks) -> Array:
    """Return q of some rows of a block."""
    if block.weight is None:
        return np.full(block.y[rows].shape[0], 1.0 / blocks.weight_sum)
    return np.asarray(block.weight[rows], dtype=np.float64) / blocks.weight_sum


def _triangle(rows: Array) -> Array:
    return np.asarray(qr(rows, mode="r", overwrite_a=True, check_finite=False)[0])[: rows.shape[1]]


def _triangular(R: Array, right: Array, transposed: bool = False) -> Array:
    """Return R^-1 right or R^-T right, without the 60 microseconds that SciPy's own wrapper adds."""
    return np.asarray(lapack.dtrtrs(R, right, trans=int(transposed))[0]) if R.size else right
