"""What distances do to rows: scaling, unit lengths, whitening, and sums that are rounded once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.errors import InputError

Array = NDArray[Any]

BLOCK_ENTRIES = 1 << 16  # of rows that are worked on at a time: half a megabyte
PASS_ENTRIES = 1 << 22  # of rows that statistics are summed up of at a time: 32 MB, however many there are


class RoundedOnce:
    """A sum of arrays that keeps its rounding errors (Knuth's two-sum), so that the order does not matter.

    >>> total = RoundedOnce()
    >>> for term in (1e16, 1.0, 1.0):
    ...     total.add(np.array([term]))
    >>> total.value() - 1e16
    array([2.])
    """

    def __init__(self) -> None:
        self.sum: Any = 0.0
        self.error: Any = 0.0

    def add(self, term: Array) -> None:
        """Add one term."""
        following = self.sum + term
        part = following - self.sum
        self.error = self.error + ((self.sum - (following - part)) + (term - part))
        self.sum = following

    def value(self) -> Array:
        """Return the sum, rounded once."""
        return self.sum + self.error


def offsets(rows: Array) -> Array:
    """Return a number near the values of each column, to be subtracted before they are multiplied.

    A large offset would use up the digits of the product. It is a multiple of a power of two that is at least
    the range of the column, so that the difference is exact where digits could be lost, and 0 where none are.

    >>> offsets(np.array([[1e8, 3.0], [1e8 + 3.0, 5.0]]))
    array([1.e+08, 4.e+00])
    """
    low, high = (np.asarray(end(rows, axis=0), dtype=np.float64) for end in (np.min, np.max))
    span = high - low
    grid = 2.0 ** np.ceil(np.log2(np.where(span > 0, span, 1.0)))
    return np.where(span > 0, np.round(low / grid) * grid, low)


def _passed(rows: Array) -> Iterator[Array]:
    """Give all rows in float64, row by row, some at a time: sums must not depend on how they are kept."""
    step = max(PASS_ENTRIES // max(rows.shape[1], 1), 1)
    for start in range(0, rows.shape[0], step):
        yield np.ascontiguousarray(rows[start : start + step], dtype=np.float64)


def means_of(rows: Array) -> Array:
    """Return the mean of each column."""
    sums: Array = sum((some.sum(axis=0) for some in _passed(rows)), np.zeros(rows.shape[1]))
    return sums / rows.shape[0]


def variances_of(rows: Array) -> Array:
    """Return the variance of each column, n - 1 in the denominator."""
    mean = means_of(rows)
    sums: Array = sum((np.square(some - mean).sum(axis=0) for some in _passed(rows)), np.zeros(rows.shape[1]))
    return sums / max(rows.shape[0] - 1, 1)


def scaled(rows: Any, factor: Array, centre: Array | None = None) -> Any:
    """Return rows less a centre, with each column multiplied by its factor, in float64."""
    if sp.issparse(rows):
        result = sp.csr_array(rows, dtype=np.float64, copy=True)
        result.data *= factor[result.indices]
        return result
    return (np.asarray(rows, dtype=np.float64) - (0.0 if centre is None else centre)) * factor


def to_unit_length(rows: Any, query: bool) -> Any:
    """Return rows divided by their length, and two columns that are 1 for zero rows: training, queries."""
    if sp.issparse(rows):
        rows = sp.csr_array(rows, dtype=np.float64)
        owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        largest = np.zeros(rows.shape[0])
        np.maximum.at(largest, owner, np.abs(rows.data))
        # Divided by the largest entry first, so that no square overflows or vanishes.
        data = rows.data / np.where(largest > 0, largest, 1.0)[owner]
        data /= _lengths(data, rows.shape[1], lambda terms: np.bincount(owner, terms, rows.shape[0]))[owner]
        units = sp.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
        mark = np.zeros((rows.shape[0], 2))
        mark[largest == 0, int(query)] = 1.0
        return sp.csr_array(sp.hstack([units, sp.csr_array(mark)], format="csr"))
    result = np.zeros((rows.shape[0], rows.shape[1] + 2))
    step = max(BLOCK_ENTRIES // max(rows.shape[1], 1), 1)
    for start in range(0, rows.shape[0], step):
        part, units = result[start : start + step], result[start : start + step, :-2]
        units[:] = rows[start : start + step]
        largest = np.abs(units).max(axis=1, initial=0.0)
        units /= np.where(largest > 0, largest, 1.0)[:, None]
        units /= _lengths(units, units.shape[1], lambda terms: terms.sum(axis=1))[:, None]
        part[largest == 0, -2 + int(query)] = 1.0
    return result


def _lengths(entries: Array, columns: int, add: Callable[[Array], Array]) -> Array:
    """Return the root of the sums of squares that ``add`` adds up; 1 for rows of zeros.

    Entries are at most 1 and one of each row is 1 or -1. Squares are cut at two places, 2^-52 and 2^-105
    times powers of the number of columns, above which no sum of a row is rounded: the order does not matter.
    """
    squares = entries * entries
    most = 2.0 ** np.ceil(np.log2(max(columns, 2)))
    leading = (squares + 1.5 * most) - 1.5 * most
    fine = 1.5 * most * most * 2.0**-53
    following = ((squares - leading) + fine) - fine
    length = np.sqrt(add(leading) + add(following))
    return np.where(length > 0, length, 1.0)


def require_powers(rows: Any, p: float) -> None:
    """Raise an :class:`InputError` where the sum of p-th powers of differences may overflow."""
    values = rows.data if sp.issparse(rows) else rows
    largest = float(np.abs(values).max(initial=0.0))
    if largest > 0 and p * np.log2(2.0 * largest) + np.log2(rows.shape[1]) > 1023:
        raise InputError(
            f"X has values up to {largest:.3g}, whose differences overflow when they are raised to p={p:g}. "
            "Divide the columns by a power of ten first, or use metric='chebyshev', which large p comes near."
        )


def check_variances(name: str, values: Any, columns: int, least: float | None = None) -> Array:
    """Return one positive number a column, or one that is at least ``least``."""
    numbers = np.asarray(values, dtype=np.float64)
    good = numbers.shape == (columns,) and np.isfinite(numbers).all()
    if not good or not (numbers > 0 if least is None else numbers >= least).all():
        wanted = "positive numbers" if least is None else f"numbers that are at least {least:g}"
        raise InputError(
            f"metric_params={{{name!r}: ...}} has shape {numbers.shape}. Pass one number a column, {columns} "
            f"in all, and {wanted}."
        )
    return numbers


def check_covariance(name: str, values: Any, columns: int) -> Array:
    """Return a symmetric matrix with a row and a column for each column of the table."""
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.shape != (columns, columns) or not np.isfinite(matrix).all():
        raise InputError(
            f"metric_params={{{name!r}: ...}} has shape {matrix.shape}. Pass a matrix of finite numbers with "
            f"a row and a column for each of the {columns} columns."
        )
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-12 * np.abs(matrix).max(initial=0.0)):
        raise InputError(f"metric_params={{{name!r}: ...}} is not symmetric, as a covariance is.")
    return (matrix + matrix.T) / 2


def root_of_precision(precision: Array) -> Array:
    """Return R with R R' = precision."""
    values, vectors = np.linalg.eigh(precision)
    if values.min() < -1e-10 * np.abs(values).max():
        raise InputError(
            f"metric_params={{'VI': ...}} has the negative eigenvalue {values.min():.3g}: squared distances "
            "would be negative. Pass the inverse of a covariance."
        )
    return vectors * np.sqrt(np.maximum(values, 0.0))


def root_of_covariance(rows: Array, covariance: Array | None) -> Array:
    """Return R with R R' = covariance^-1; one that is learnt is shrunk where it is singular."""
    if covariance is None:
        return _learnt_root(rows)
    values, vectors = np.linalg.eigh(covariance)
    if _singular(values):
        raise InputError(
            f"metric_params={{'V': ...}} has the eigenvalue {values.min():.3g}, so it has no inverse. Pass a "
            "covariance whose eigenvalues are positive, or none to have it learnt and shrunk."
        )
    return vectors / np.sqrt(values)


def _learnt_root(rows: Array) -> Array:
    """Return that of the covariance of the rows, shrunk where it is singular (Ledoit and Wolf 2004)."""
    mean = means_of(rows)
    largest = max(float(np.abs(some - mean).max(initial=0.0)) for some in _passed(rows))
    if not largest > 1e-300:  # no column varies to speak of: nothing to learn
        return np.eye(rows.shape[1])
    unit = 2.0 ** np.floor(np.log2(largest))  # in which squares of squares neither overflow nor vanish
    scatter = np.zeros((rows.shape[1], rows.shape[1]))
    for some in _passed(rows):
        centred = (some - mean) / unit
        scatter += centred.T @ centred
    values, vectors = np.linalg.eigh(scatter / max(rows.shape[0] - 1, 1))
    if _singular(values):
        from sklearn.covariance import ledoit_wolf_shrinkage

        centred = (np.asarray(rows, dtype=np.float64) - mean) / unit
        amount = max(float(ledoit_wolf_shrinkage(centred)), 1e-6)  # enough for an inverse with digits
        values = (1.0 - amount) * np.maximum(values, 0.0) + amount * values.mean()
    return vectors / np.sqrt(values) / unit


def _singular(values: Array) -> bool:
    return not values.min() > 1e-12 * values.max()
