"""``docs/benchmarks.md``, the long table: a run renews the lines it measured and leaves the others.

A line belongs to a case and a peer, and its last cell is the number of the setup (machine, threads, packages)
it was measured in, so figures of several runs stand side by side without being mistaken for each other. Lines
of cases and peers that are no more are dropped. The README's short table has some of the lines, by the same
two cells, and is renewed with them. There are ratios and accuracies, and neither seconds nor dates.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from benchmarks.families import FAMILIES, Family
from benchmarks.report import LOAD, MARK, at_least, remarks, table, write_whole
from benchmarks.runner import Row

HEAD = (
    "work",
    "peer",
    "sixfold is faster by",
    "accuracy, sixfold / peer",
    "extra memory, sixfold / peer",
    "setup",
)
INTRODUCTION = """\
# sixfold beside its peers

Written by `make bench`, which measures sixfold and its peers in one process, in turns: what half an hour is
enough for. `python -m benchmarks --full` measures all, `python -m benchmarks trees` one family, and
`python -m benchmarks lasso svm_iris` two cases. Lines that the last run did not measure are carried over from
earlier runs; their setup says what of those was not kept.

* The ratio is the median over the rounds of (the peer's time / sixfold's time in the same round), with its
  quartiles in parentheses; below 1 the peer is faster. ">=" says that the peer was stopped before it had
  finished.
* Accuracy is 0 for the exact answer; each family says what it is. † marks a ratio of unequal work: one of the
  two answers is less accurate than the case demands.
* Extra memory is the peak beyond the data, in shares of X.
* Setup is the number of the machine and the packages, see the end of the page.
"""


# By work and peer: the cells of the line, all of them filled in, the setup in words.
Lines = dict[tuple[str, str], tuple[str, ...]]


def update(page: Path, readme: Path, rows: Sequence[Row], facts: Mapping[str, str]) -> None:
    """Renew the lines of the page and of the README's short table that were measured."""
    lines = read(page.read_text(encoding="utf-8")) if page.exists() else {}
    lines |= measured(rows, "; ".join(f"{name}: {fact}" for name, fact in facts.items() if name != LOAD))
    write_whole(page, render(lines))
    write_whole(readme, renew_short_table(readme.read_text(encoding="utf-8"), lines))


def read(text: str) -> Lines:
    """Return the lines of a page that was written by :func:`render`."""
    setups = dict(re.findall(r"^(\d+)\. (.*)$", text, flags=re.MULTILINE))
    lines: Lines = {}
    work = ""
    for cells in map(_cells, text.splitlines()):
        if len(cells) == len(HEAD) and cells[-1] in setups:
            work = cells[0] or work
            lines[work, _without_remark(cells[1])] = (work, *cells[1:-1], setups[cells[-1]])
    return lines


def measured(rows: Sequence[Row], setup: str) -> Lines:
    """Return the lines of what was measured; contenders and data that are not there have none."""
    lines: Lines = {}
    for work, of_case in groupby(rows, key=lambda row: row.case):
        ours, *peers = of_case
        for peer in peers or [ours]:
            if ours.installed and peer.installed:
                lines[work, peer.contender] = (work, *_compared(ours, peer), setup)
    return lines


def _compared(ours: Row, peer: Row) -> tuple[str, ...]:
    """Return the peer's name, the ratio, both accuracies and both memories; sixfold alone has no ratio."""
    both = [ours] if peer is ours else [ours, peer]
    said = remarks(peer)
    ratio = "" if peer is ours or peer.ratio is None else f"{at_least(peer)}{_short(peer.ratio)}x"
    if ratio and not all(row.accurate for row in both):
        ratio += MARK
    if ratio and peer.quartiles:
        ratio += " ({} to {})".format(*map(_short, peer.quartiles))
    return (
        peer.contender + f" ({said})" * bool(said),
        ratio,
        " / ".join(_error(row.error) for row in both if row.error is not None),
        " / ".join(f"{row.memory:.0%}" for row in both if row.memory is not None),
    )


def _short(value: float) -> str:
    return f"{float(f'{value:.2g}'):g}"


def _error(value: float | None) -> str:
    return "none" if value is None or math.isnan(value) else re.sub(r"e([+-])0", r"e\1", f"{value:.1g}")


def render(lines: Lines) -> str:
    """Return the page: a section a family, then the setups, numbered as they come."""
    numbers: dict[str, str] = {}
    sections = [_section(family, lines, numbers) for family in FAMILIES]
    setups = ["## Setups", "", *(f"{number}. {setup}" for setup, number in numbers.items()), ""]
    return "\n".join([INTRODUCTION, *sections, *setups])


def _section(family: Family, lines: Lines, numbers: dict[str, str]) -> str:
    """Return the section of a family; ``numbers`` of setups that are new are added."""
    shown = [HEAD]
    for title, peers in family.works:
        for peer in peers:
            if line := lines.get((title, peer)):
                shown.append((*line[:-1], numbers.setdefault(line[-1], str(len(numbers) + 1))))
    return "\n".join([f"## {family.title}", "", family.text, "", *table(shown), ""])


def renew_short_table(text: str, lines: Lines) -> str:
    """Return the text with new figures in the lines (work, peer, ratio, accuracy) that are known."""

    def renewed(line: str) -> str:
        cells = _cells(line)
        known = lines.get((cells[0], cells[1])) if len(cells) == 4 else None
        if known is None:
            return line
        return "| " + " | ".join([*cells[:2], _without_remark(known[2]), known[3]]) + " |"

    return "\n".join(map(renewed, text.split("\n")))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]] if line.startswith("|") else []


def _without_remark(cell: str) -> str:
    return cell.partition(" (")[0]
