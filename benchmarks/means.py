"""The geometric mean of the ratios of several cases: one figure for many tables, whatever their sizes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.runner import Row


class Mean(NamedTuple):
    """A mean over cases (by their titles) of the ratio of one peer, and what is required of it."""

    title: str
    cases: tuple[str, ...]
    peer: str
    bar: float | None = None


def geometric_mean(mean: Mean, rows: Sequence[Row]) -> list[Row]:
    """Return sixfold's row and the peer's; none where a case of the mean was not measured."""
    of_case = {(row.case, row.contender): row for row in rows if row.ratio is not None}
    measured = [of_case.get((case, mean.peer)) for case in mean.cases]
    if not measured or any(row is None for row in measured):
        return []
    ratio = statistics.geometric_mean(row.ratio for row in measured)
    ours = [of_case[case, "sixfold"] for case in mean.cases]
    accurate = all(row.accurate for row in ours)
    peer = Row(
        mean.title,
        mean.peer,
        ratio=ratio,
        at_least=any(row.at_least for row in measured),
        accurate=all(row.accurate for row in measured),
        bar=mean.bar,
        met=None if mean.bar is None else accurate and ratio >= mean.bar,
    )
    return [Row(mean.title, "sixfold", ratio=1.0, accurate=accurate), peer]
