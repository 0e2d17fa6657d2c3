"""The table of ratios, headed by the facts of the machine, as Markdown and JSON.

Seconds are left out on purpose: they say more about the machine than about the code.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks.runner import Row

PACKAGES = (
    "sixfold",
    "numpy",
    "scipy",
    "scikit-learn",
    "scikit-learn-intelex",
    "skglm",
    "numba",
    "faiss-cpu",
    "lightgbm",
    "pycontree",
    "pystreed",
)
HEAD = (
    "case",
    "contender",
    "sixfold is faster by",
    "quartiles",
    "accuracy",
    "extra memory",
    "bar",
    "met",
    "remarks",
)
MARK = " †"
LOAD = "load before the run"


def machine_facts(threads: int) -> dict[str, str]:
    """Return what a reader must know to place the ratios."""
    from sixfold import _native

    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores, x86-64 level {_native.cpu.level()}",
        "sixfold's loops": f"built for {_native.level}",
        "threads": f"{threads} for every contender",
        LOAD: load,
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "packages": ", ".join(filter(None, map(_with_version, PACKAGES))),
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _with_version(package: str) -> str:
    """Return the name of a package and its version, or nothing where it is not installed."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return f"{package} {importlib.metadata.version(package)}"
    return ""


def markdown(rows: Sequence[Row], facts: Mapping[str, str], quick: bool = False) -> str:
    """Return the facts, the table and the verdict as Markdown."""
    lines = ["# sixfold beside its peers", ""]
    if quick:
        lines += ["**Quick run: the data are tiny, so the ratios mean nothing.**", ""]
    lines += [f"- {name}: {fact}" for name, fact in facts.items()]
    cells = [HEAD, *(_cells(row, first) for row, first in zip(rows, _firsts(rows), strict=True))]
    lines += ["", *table(cells), ""]
    if any(row.installed and not row.accurate for row in rows):
        lines += [
            f"{MARK.strip()} less accurate than demanded: this ratio compares unequal work.",
            "",
        ]
    return "\n".join([*lines, *verdict(rows), ""])


def _firsts(rows: Sequence[Row]) -> list[bool]:
    cases = [row.case for row in rows]
    return [index == 0 or cases[index - 1] != case for index, case in enumerate(cases)]


def table(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table, a case named once; the first of them is the head."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [(line[0] if line[0] != last[0] else "", *line[1:]) for last, line in pairwise([[""], *lines])]
    head, *body = (
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in shown
    )
    return [head, "|" + "|".join("-" * (width + 2) for width in widths) + "|", *body]


def _cells(row: Row, first: bool) -> tuple[str, ...]:
    """Return one line of the table; the first row of a case is sixfold's own."""
    mark = "" if row.accurate or not row.installed else MARK
    return (
        row.case,
        row.contender,
        "" if first or row.ratio is None else f"{at_least(row)}{row.ratio:.3g}x{mark}",
        "" if first or row.quartiles is None else "{:.3g} - {:.3g}".format(*row.quartiles),
        "" if row.error is None else f"{row.error:.0e}{mark}",
        "" if row.memory is None else f"{row.memory:.1%} of X",
        _bar(row, first),
        {True: "yes", False: "**no**", None: ""}[row.met],
        remarks(row),
    )


def at_least(row: Row) -> str:
    """Return what stands before a ratio that would be larger, had the contender been left to finish."""
    return ">= " if row.at_least else ""


def remarks(row: Row) -> str:
    """Return what is to be said about a contender beside its figures."""
    return "; ".join(filter(None, [row.remark, "one round" if row.rounds == 1 else ""]))


def _bar(row: Row, first: bool) -> str:
    if row.bar is None:
        return ""
    return f"memory < {row.bar:.0%}" if first else f">= {row.bar:.3g}x"


def verdict(rows: Sequence[Row]) -> list[str]:
    """Return the last lines: how many bars were met, and which were not."""
    barred = [row for row in rows if row.bar is not None]
    lines = [f"bars met: {sum(row.met is True for row in barred)} of {len(barred)}"]
    for row in barred:
        if row.met is not True:
            state = "missed" if row.installed else f"not measured ({row.remark.partition(' (')[0]})"
            lines.append(f"- {state}: {row.case}, {row.contender}")
    return lines


def write(rows: Sequence[Row], facts: Mapping[str, str], folder: Path, quick: bool = False) -> None:
    """Write ``table.md`` and ``table.json`` into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "table.md", markdown(rows, facts, quick))
    found = {
        "machine": dict(facts),
        "quick": quick,
        "rows": [dataclasses.asdict(row) for row in rows],
    }
    write_whole(folder / "table.json", json.dumps(found, indent=2))


def write_whole(path: Path, text: str) -> None:
    """Write the file beside its place and move it there, so that it is never half written."""
    beside = path.with_name(f"{path.name}.part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
