"""The figure of the chapter about rows that do not fit: what a row costs, and what the process holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
GREY = "#666666"
LOOKS = {
    "logistic": ("o-", "#2f6db3", "logistic"),
    "least squares": ("s-", "#d9772b", "least squares"),
    "hinge": ("^-", "#3a8f5c", "hinge"),
    "tree": ("D-", "#8a5a9e", "tree of depth 8"),
    "neighbours": ("v-", "#b0413e", "1,000 neighbour queries"),
}
SIZES = (100_000, 1_000_000, 10_000_000)
ROW = 240  # bytes


def scale() -> Any:
    """Return the figure, as ``python -m benchmarks.scale --growth`` keeps what it measured."""
    fits = json.loads((HERE / "scale.json").read_text(encoding="utf-8"))["growth"]
    figure, (left, right) = plt.subplots(1, 2)
    for task, (marks, colour, name) in LOOKS.items():
        own = [one for one in fits if one["task"] == task]
        rows = [one["rows"] for one in own]
        left.loglog(rows, [1e6 * one["busy"] / one["rows"] for one in own], marks, color=colour, label=name)
        right.semilogx(rows, [one["peak"] / 1e9 for one in own], marks, color=colour)
    left.set(ylabel="microseconds of a processor a row", title="From the files to the model", ylim=(0.2, 30))
    left.legend(frameon=False, fontsize=8, ncols=2)
    right.axhline(1.5, color=GREY, linestyle=":", linewidth=1.0)
    limits = [size / 10 for size in range(1, 201)]
    right.plot(
        [1e6 * size for size in limits], [ROW * size / 1e3 for size in limits], color=GREY, linewidth=1.0
    )
    right.text(3.2e6, 1.55, "1.5 GB", color=GREY, fontsize=8, ha="right")
    right.text(1.15e7, 2.35, "the table", color=GREY, fontsize=8, ha="right")
    right.set(ylabel="GB that the process holds at most", title="memory_limit=1.4e9", ylim=(0, 2.5))
    for axes in (left, right):
        axes.set(xlabel="rows of 30 columns", xticks=SIZES, xticklabels=[f"{size:,}" for size in SIZES])
        axes.minorticks_off()
    return figure
