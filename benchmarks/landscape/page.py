"""What the landscape says: every case from the worst on, means, and how cost grows with the rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from benchmarks.report import table

Record = dict[str, Any]

UNEQUAL = "†"
INTRODUCTION = f"""\
Every learner over sizes, shapes and classes beside the fastest of scikit-learn's solvers for the same task,
which has its own tolerance where that brings it within 1e-4 of the best objective, and the loosest one that
does else. Time of the processor with one thread, the best of several fits in turns; `python -m
benchmarks.landscape` measures it. {UNEQUAL}: no setting of the peer comes as close. A ratio below 1 says
that the peer is faster."""
GROWTH = """\
Nanoseconds a row of the longest table of 10 columns, and exponents of time over rows, fitted to all of them;
where the larger exponent is ours, the peer overtakes at some size."""
BY_SHAPE = """\
Geometric means over all settings that were measured on a table."""
CLOCK = """\
The same by the clock, where everyone has {threads} threads."""


def shape(record: Record) -> str:
    """Return the size of the table of a case."""
    return f"{record['rows']:,} x {record['columns']:,}" + ", sparse" * record["sparse"]


def line(record: Record) -> str:
    """Return a case in one line."""
    unequal = "" if record["fair"] else f" {UNEQUAL}"
    errors = f"error {record['error']:.0e} / {record['peer error']:.0e}"
    return (
        f"{record['ratio']:8.2f}{unequal}  {record['setting']}, {shape(record)} "
        f"({1e3 * record['seconds']:.3g} ms; {record['peer']}, {errors})"
    )


def mean(records: Sequence[Record]) -> float:
    """Return the geometric mean of the ratios."""
    return statistics.geometric_mean(record["ratio"] for record in records)


def summary(records: Sequence[Record]) -> str:
    """Return the cases from the worst on, and the means."""
    lines = []
    for threads, own in _by_threads(records):
        lines += [line(record) for record in sorted(own, key=lambda record: record["ratio"])]
        lines.append(
            f"{threads} thread{'s' * (threads > 1)}: {len(own)} cases, geometric mean {mean(own):.2f}, "
            f"{sum(record['ratio'] < 1.0 for record in own)} below 1"
        )
        for name, some in _by_shape(own):
            lines.append(f"  {name}: {mean(some):.2f}")
    return "\n".join(lines)


def _by_threads(records: Sequence[Record]) -> list[tuple[int, list[Record]]]:
    ordered = sorted(records, key=lambda record: record["threads"])
    return [(key, list(some)) for key, some in groupby(ordered, key=lambda record: record["threads"])]


def _by_shape(records: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    found: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda one: (one["sparse"], one["rows"], one["columns"])):
        found.setdefault(shape(record), []).append(record)
    return list(found.items())


def exponent(records: Sequence[Record], key: str) -> float | None:
    """Return the slope of log seconds over log rows."""
    if len(records) < 3:
        return None
    x = [math.log(record["rows"]) for record in records]
    return statistics.linear_regression(x, [math.log(record[key]) for record in records]).slope


def text(records: Sequence[Record]) -> str:
    """Return the page; its first part is of the fewest threads."""
    (_, own), *by_the_clock = _by_threads(records)
    parts = [
        "# The landscape",
        "",
        INTRODUCTION,
        "",
        _count(own),
        "",
        "![How many times faster, by setting and table](figures/landscape.svg)",
        "",
        BY_SHAPE,
        "",
        *_means(own),
        "",
        "## From the worst on",
        "",
        *_cases(own),
        "",
        "## How cost grows with the rows",
        "",
        GROWTH,
        "",
        *_growth(own),
    ]
    for threads, some in by_the_clock:
        shown = [CLOCK.format(threads=threads), "", _count(some), "", *_means(some), "", *_cases(some)]
        parts += ["", "## By the clock", "", *shown]
    return "\n".join(parts) + "\n"


def _count(records: Sequence[Record]) -> str:
    below = sum(record["ratio"] < 1.0 for record in records)
    return f"{len(records)} cases, {below} below 1, geometric mean {mean(records):.1f}."


def _means(records: Sequence[Record]) -> list[str]:
    lines = [
        (name, str(len(some)), f"{mean(some):.1f}x", f"{min(one['ratio'] for one in some):.2g}x")
        for name, some in _by_shape(records)
    ]
    return table([("table", "cases", "mean", "least"), *lines])


def _cases(records: Sequence[Record]) -> list[str]:
    lines = [
        (
            record["setting"],
            shape(record),
            f"{record['ratio']:.2g}x{'' if record['fair'] else ' ' + UNEQUAL}",
            record["peer"],
        )
        for record in sorted(records, key=lambda record: record["ratio"])
    ]
    return table([("fit", "table", "sixfold is faster by", "peer"), *lines])


def _growth(records: Sequence[Record]) -> list[str]:
    sides = ("seconds", "peer seconds")
    lines = []
    for name in dict.fromkeys(record["setting"] for record in records):
        some = [r for r in records if r["setting"] == name and r["columns"] == 10 and not r["sparse"]]
        slopes = [exponent(some, side) for side in sides]
        if None not in slopes:
            longest = max(some, key=lambda record: record["rows"])
            costs = [f"{1e9 * longest[side] / longest['rows']:.3g}" for side in sides]
            lines.append((name, f"{longest['rows']:,}", *costs, *(f"{slope:.2f}" for slope in slopes)))
    head = ("fit", "rows", "ns a row, sixfold", "peer", "exponent, sixfold", "peer")
    return table([head, *lines])
