"""What a run of the gauntlet showed: the table, what is not certified or confirmed, what was slow."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.report import table

Record = dict[str, Any]

SLOW_SECONDS, SLOW_RATIO = 10.0, 3.0  # the larger of this and of this times scikit-learn's
HEAD = ("learner, loss, penalty", "fits", "certified", "verified", "median s", "worst s", "worst ratio")


def failed(record: Record) -> bool:
    """Return whether the fit is not certified, or its certificate not confirmed."""
    return not (record["certified"] and record["verified"])


def too_slow(record: Record) -> bool:
    """Return whether a fit took longer than allowed."""
    return record["seconds"] > max(SLOW_SECONDS, SLOW_RATIO * record.get("peer_seconds", 0.0))


def wrong(record: Record) -> bool:
    """Return whether a fit is not as promised."""
    return failed(record) or too_slow(record)


def text(records: Sequence[Record]) -> str:
    """Return the report, as Markdown."""
    if not records:
        return "nothing was fitted"
    groups: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: record["group"]):
        groups.setdefault(record["group"], []).append(record)
    rows = [HEAD, *(_cells(name, some) for name, some in groups.items()), _cells("all", records)]
    slowest = sorted(records, key=lambda record: -record["seconds"])
    bad = sorted(filter(failed, records), key=lambda record: record["key"])
    slow = list(filter(too_slow, slowest))
    allowed = f"max({SLOW_SECONDS:g} s, {SLOW_RATIO:g} times scikit-learn's)"
    parts = {
        f"not certified or not verified: {len(bad)} of {len(records)}": bad,
        f"longer than {allowed}: {len(slow)}": slow,
        "the slowest ten": slowest[:10],
    }
    lines = table(rows)
    for title, some in parts.items():
        lines += ["", f"## {title}", "", *map(line, some)]
    return "\n".join(lines)


def _cells(name: str, some: Sequence[Record]) -> tuple[str, ...]:
    seconds = [record["seconds"] for record in some]
    ratios = [record["seconds"] / record["peer_seconds"] for record in some if "peer_seconds" in record]
    return (
        name,
        str(len(some)),
        str(sum(record["certified"] for record in some)),
        str(sum(record["verified"] for record in some)),
        f"{statistics.median(seconds):.3f}",
        f"{max(seconds):.2f}",
        f"{max(ratios):.1f}" if ratios else "",
    )


def line(record: Record) -> str:
    """Return a fit in one line: table, preparation, rows, setting, and what came of it."""
    facts = [f"{record['seconds']:.2f} s"]
    if "peer_seconds" in record:
        facts.append(f"scikit-learn {record['peer_seconds']:.2f} s")
    if "gap" in record:
        facts.append(f"gap {record['gap']:.1e} by {record['solver']} ({record['n_iter']} iterations)")
    facts += [record[name] for name in ("error", "verify_error") if name in record]
    if not record["certified"]:
        facts += record.get("warnings", [])[:1]
    return f"- {record['key']}: " + "; ".join(str(fact)[:160] for fact in facts)
