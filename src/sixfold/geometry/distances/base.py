"""What a distance is: a measure of rows that search loops know, or a formula of its own.

A measure says what is added up over the columns, and whether the root of the sum is taken:

    squares    sum_j (x_j - q_j)^2        largest    max_j |x_j - q_j|
    absolute   sum_j |x_j - q_j|          count      how many columns have x_j != q_j
    power      sum_j |x_j - q_j|^p

Terms are rounded to doubles and their sum is rounded once, as :func:`math.fsum` does it, so a distance does
not depend on the order of the columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.geometry.distances.transforms import RoundedOnce

Array = NDArray[Any]

REPORTED_BITS = 40  # that count of a distance that is rounded
REPORTED_AS_ZERO = 2.0**-98  # and below this it is 0: squares of differences that are the rounding of ones

Family = Literal["squares", "absolute", "largest", "power", "count"]


class Measure(NamedTuple):
    """What a loop computes for two rows; ``root`` reports the p-th root of a sum of powers."""

    family: Family
    p: float = 2.0
    root: bool = False


EUCLIDEAN = Measure("squares", 2.0, root=True)


@dataclass(frozen=True)
class Distance:
    """One way to say how far two rows are from each other.

    A subclass has a ``measure`` that search loops know, of the rows that ``embed`` returns, or computes all
    distances itself in ``between``. What the loops find is divided by ``divisor``; of a distance that is
    ``rounded``, known but for some rounding, only the first bits count.
    """

    divisor: ClassVar[float] = 1.0
    rounded: ClassVar[bool] = False
    takes_missing: ClassVar[bool] = False
    takes_sparse: ClassVar[bool] = False
    takes_categories: ClassVar[bool] = False

    @classmethod
    def of(cls, X: Any) -> Self:
        """Return the distance for training rows like these; further arguments are its parameters."""
        return cls()

    @property
    def measure(self) -> Measure | None:
        """What search loops compute; None where only ``between`` knows."""
        return None

    def reported(self, measured: Array) -> Array:
        """Return the distances that the loops have measured as they are reported."""
        distances = measured / self.divisor
        return first_bits(distances) if self.rounded else distances

    def radius_bound(self, radius: float) -> float:
        """Return what the loops measure at most for rows whose reported distance is at most the radius."""
        with np.errstate(over="ignore"):
            bound = np.float64(radius)
            if self.rounded:
                bound = bound * (1.0 + 2.0 ** (2 - REPORTED_BITS)) + 2 * REPORTED_AS_ZERO
            return float(bound if self.divisor == 1.0 else bound * self.divisor * (1.0 + 2.0**-50))

    def embed(self, rows: Any, query: bool = False) -> Any:
        """Return the rows whose measure is taken; of queries where they differ from training rows."""
        return rows

    def work(self, columns: int) -> int:
        """Return about how many terms ``between`` could add up in the time that one distance takes."""
        return columns

    def between(self, queries: Any, rows: Any) -> Array:
        """Return the distance of each query (a row of the result) from each row (a column), in float64."""
        family, p, root = self.measure or EUCLIDEAN
        total: Any = RoundedOnce()
        most = np.zeros((queries.shape[0], rows.shape[0]))
        for q, x in zip(
            columns_of(self.embed(queries, query=True)), columns_of(self.embed(rows)), strict=True
        ):
            difference = np.abs(q[:, None] - x)
            if family == "largest":
                np.maximum(most, difference, out=most)
            else:
                total.add(_TERMS[family](difference, p))
        result = most if family == "largest" else total.value()
        if root:
            result = np.sqrt(result) if p == 2 else result ** (1.0 / p)
        return self.reported(result)


def first_bits(distances: Array) -> Array:
    """Return distances rounded to their first bits: those that rounding has moved apart are equal again.

    >>> first_bits(np.array([1.0 - 2.0**-52, 1.0, 0.1, 1e-31])).tolist()
    [1.0, 1.0, 0.10000000000002274, 0.0]
    """
    mantissa, exponent = np.frexp(distances)
    rounded: Array = np.ldexp(np.rint(mantissa * 2.0**REPORTED_BITS), exponent - REPORTED_BITS)
    return np.where(distances < REPORTED_AS_ZERO, 0.0, rounded)


_TERMS: dict[str, Callable[[Array, float], Array]] = {
    "squares": lambda difference, p: difference * difference,
    "absolute": lambda difference, p: difference,
    "power": lambda difference, p: difference**p,
    "count": lambda difference, p: (difference != 0).astype(np.float64),
}


def columns_of(rows: Any) -> Array:
    """Return the columns of rows in float64."""
    dense = rows.toarray() if sp.issparse(rows) else rows
    return np.asarray(dense, dtype=np.float64).T
