"""What a distance is: a measure of rows that search loops know, or a formula of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.geometry.distances.measure import EUCLIDEAN, Measure
from sixfold.geometry.distances.rows import RoundedOnce

Array = NDArray[Any]

BITS = 40  # that count of a distance that is rounded
NOTHING = 2.0**-98  # and below this it is 0: squares of differences that are the rounding of ones


@dataclass(frozen=True)
class Distance:
    """One way to say how far two rows are from each other.

    A subclass has a ``measure`` that search loops know, of the rows that ``embed`` returns, or computes all
    distances itself in ``between``. What the loops find is divided by ``divisor``.
    """

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

    @property
    def divisor(self) -> float:
        """What the measure is divided by."""
        return 1.0

    @property
    def rounded(self) -> bool:
        """Whether measured distances are known but for some rounding, so that only their first bits count."""
        return False

    def reported(self, measured: Array) -> Array:
        """Return the distances that the loops have measured as they are reported."""
        distances = measured / self.divisor
        return first_bits(distances) if self.rounded else distances

    def reach(self, distance: float) -> float:
        """Return what the loops measure at most for rows that are reported to be so far, or a little less."""
        with np.errstate(over="ignore"):
            more = (
                np.float64(distance) * (1.0 + 2.0 ** (2 - BITS)) + 2 * NOTHING if self.rounded else distance
            )
            return float(more if self.divisor == 1.0 else more * self.divisor * (1.0 + 2.0**-50))

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
    rounded: Array = np.ldexp(np.rint(mantissa * 2.0**BITS), exponent - BITS)
    return np.where(distances < NOTHING, 0.0, rounded)


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
