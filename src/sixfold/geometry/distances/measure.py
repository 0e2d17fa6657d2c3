"""The measures that search loops know: what is added up over the columns, and whether its root is taken.

    squares    sum_j (x_j - q_j)^2        largest    max_j |x_j - q_j|
    absolute   sum_j |x_j - q_j|          count      how many columns have x_j != q_j
    power      sum_j |x_j - q_j|^p

Terms are rounded to doubles and their sum is rounded once, as :func:`math.fsum` does it, so a distance does
not depend on the order of the columns.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Family = Literal["squares", "absolute", "largest", "power", "count"]


class Measure(NamedTuple):
    """What a loop computes for two rows; ``root`` reports the p-th root of a sum of powers."""

    family: Family
    p: float = 2.0
    root: bool = False


EUCLIDEAN = Measure("squares", 2.0, root=True)
