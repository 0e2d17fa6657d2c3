"""The figure of the landscape: how many times faster, by setting and table."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
MOST = 16.0  # times, beyond which the colour stays the same
PALE = 4.0  # times, from which on white is read better than black


def landscape() -> Any:
    """Return the figure, as ``python -m benchmarks.landscape`` keeps what it measured."""
    records = json.loads((HERE / "landscape.json").read_text(encoding="utf-8"))
    records = [record for record in records if record["threads"] == 1]
    shapes = sorted({(one["sparse"], one["rows"], one["columns"]) for one in records})
    settings = list(dict.fromkeys(one["setting"] for one in records))
    ratios = np.full((len(settings), len(shapes)), np.nan)
    for one in records:
        place = shapes.index((one["sparse"], one["rows"], one["columns"]))
        ratios[settings.index(one["setting"]), place] = one["ratio"]
    figure, axes = plt.subplots(figsize=(9.0, 0.3 * len(settings) + 1.4))
    limit = math.log2(MOST)
    shown = axes.imshow(np.log2(ratios), cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
    for (row, column), ratio in np.ndenumerate(ratios):
        if math.isfinite(ratio):
            colour = "white" if ratio > PALE or ratio < 1 / PALE else "black"
            axes.text(column, row, f"{ratio:.2g}", ha="center", va="center", fontsize=7, color=colour)
    names = [f"{rows:,}\nx {columns:,}" + "\nsparse" * sparse for sparse, rows, columns in shapes]
    axes.set_xticks(range(len(shapes)), names, fontsize=6.5)
    axes.set_yticks(range(len(settings)), settings, fontsize=8)
    axes.tick_params(length=0)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    ticks = [1 / MOST, 1 / 4, 1, 4, MOST]
    bar = figure.colorbar(shown, ax=axes, ticks=[math.log2(tick) for tick in ticks], shrink=0.6)
    bar.ax.set_yticklabels([f"{tick:.2g}x" for tick in ticks], fontsize=8)
    return figure
