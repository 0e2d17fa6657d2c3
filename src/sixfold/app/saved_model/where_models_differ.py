"""In which rows, and for which values of which column, two models differ most.

Each column is cut into at most four ranges of about as many rows (numbers, dates) or its commonest values;
the part whose mean difference stands out most from that of the other rows, measured by

    z = (mean inside - mean outside) / (spread of all rows * sqrt(1 / n_inside + 1 / n_outside))

is named, where z is at least 3: among a hundred parts chance alone gives a z of 3 about once in four tables.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.plain_text import shortened, visible

Array = NDArray[Any]

RANGES = 4
VALUES = 20  # of a column of categories
STANDS_OUT = 3.0
FEWEST = 5  # rows of a part


@dataclass(frozen=True)
class Part:
    """Rows that have something in common.

    Attributes
    ----------
    column, values : str
        Which rows they are.
    rows : int
    inside, outside : float
        The mean difference of the two models in these rows, and in the others.
    z : float
        How far that stands out.
    """

    column: str
    values: str
    rows: int
    inside: float
    outside: float
    z: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def parts_that_differ(typed: Any, difference: Array, most: int = 3) -> list[Part]:
    """Return the part of each column in which two models differ most, the clearest first."""
    spread = float(difference.std())
    if spread == 0.0 or typed.height < 2 * FEWEST:
        return []
    found = []
    for column in typed.iter_columns():
        parts = [_part(column.name, values, inside, difference, spread) for values, inside in _cut(column)]
        best = max((one for one in parts if one is not None), key=lambda one: one.z, default=None)
        if best is not None and best.z >= STANDS_OUT:
            found.append(best)
    return sorted(found, key=lambda one: -one.z)[:most]


def _part(column: str, values: str, inside: Array, difference: Array, spread: float) -> Part | None:
    rows = int(inside.sum())
    others = inside.size - rows
    if rows < FEWEST or others < FEWEST:
        return None
    within, without = float(difference[inside].mean()), float(difference[~inside].mean())
    z = (within - without) / (spread * math.sqrt(1.0 / rows + 1.0 / others))
    return Part(column, values, rows, within, without, z)


def _cut(column: Any) -> list[tuple[str, Array]]:
    """Return the parts of a column: what they are, and which rows are in them."""
    import polars as pl

    parts = [("missing", column.is_null().to_numpy())] if column.null_count() else []
    known = column.drop_nulls()
    if column.dtype == pl.String:
        common = known.value_counts(sort=True).head(VALUES)[known.name].to_list() if known.len() else []
        return parts + [
            (shortened(visible(value), 30), (column == value).fill_null(False).to_numpy())
            for value in sorted(common)
        ]
    numbers = column.cast(pl.Int64).cast(pl.Float64) if column.dtype.is_temporal() else column
    x = numbers.to_numpy().astype(np.float64)
    there = x[np.isfinite(x)]
    if not there.size:
        return parts
    edges = np.unique(np.quantile(there, np.linspace(0.0, 1.0, RANGES + 1)))
    if edges.size == 1:
        return parts
    for number, (low, high) in enumerate(pairwise(edges)):
        inside = (x >= low) & ((x <= high) if number == edges.size - 2 else (x < high))
        parts.append((_range(low, high, column), inside))
    return parts


def _range(low: float, high: float, column: Any) -> str:
    if column.dtype.is_temporal():
        low_day, high_day = (np.datetime64(int(one), "ms").astype("datetime64[D]") for one in (low, high))
        return f"{low_day} to {high_day}"
    return f"{low:.4g} to {high:.4g}"
