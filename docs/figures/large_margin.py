"""Draws the figure of docs/large-margin.md: rows before and after the learnt distance, and how sure it is."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from sixfold import LargeMarginNearestNeighbor
from sixfold.data.examples import load_example

BLUE, ORANGE, GREEN, RED, GREY = "#2f6db3", "#d9772b", "#3a8f5c", "#c03a3a", "#666666"


def strips() -> tuple[Any, Any]:
    """Return three classes in thin strips that lie slanted, close to each other."""
    random = np.random.default_rng(4)
    X = np.column_stack([random.normal(scale=4.0, size=90), np.tile([-1.0, 0.0, 1.0], 30)])
    X[:, 1] += random.normal(scale=0.17, size=90)
    turn = np.deg2rad(25.0)
    return X @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]), np.arange(90) % 3


def draw_triplets(axes: Any, Z: Any, y: Any, targets: Any) -> int:
    """Draw lines to targets, and to rows of other classes not farther by 1; return how many these are."""
    squares = np.square(Z[:, None] - Z).sum(axis=2)
    reach = 1.0 + np.take_along_axis(squares, targets, axis=1).max(axis=1)
    inside = (squares < reach[:, None]) & (y[:, None] != y)
    for i, far in zip(*np.nonzero(inside), strict=True):
        axes.plot(*Z[[i, far]].T, color=RED, linewidth=0.6, alpha=0.35, zorder=1)
    for i, near in enumerate(targets):
        for j in near:
            axes.plot(*Z[[i, j]].T, color=GREY, linewidth=0.9, zorder=2)
    for label, colour, marker in zip(range(3), (BLUE, ORANGE, GREEN), "osD", strict=True):
        axes.scatter(
            *Z[y == label].T, s=20, c=colour, marker=marker, edgecolor="white", linewidth=0.4, zorder=3
        )
    axes.set_aspect("equal", "datalim")
    return int(inside.sum())


def large_margin() -> Any:
    """Return the figure: rows with targets and impostors, before and after, and the certified gap."""
    X, y = strips()
    model = LargeMarginNearestNeighbor().fit(X, y)
    figure, (before, after, steps) = plt.subplots(1, 3, figsize=(10.5, 3.6), width_ratios=(1, 1, 0.9))
    count = draw_triplets(before, X, y, model.targets_)
    before.set_title(f"Before: {count} pairs with an impostor")
    count = draw_triplets(after, model.transform(X), y, model.targets_)
    after.set_title(f"After: {count}")
    before.plot([], [], color=GREY, label="target")
    before.plot([], [], color=RED, label="impostor")
    before.legend(frameon=False, loc="upper left")
    example = load_example("breast cancer")
    scaled = StandardScaler().fit_transform(example.X)
    history = LargeMarginNearestNeighbor(tol=1e-5, max_iter=3000).fit(scaled, example.y).history_[9::10]
    gaps = [record.gap / record.objective for record in history]
    steps.semilogy([record.iteration for record in history], gaps, color=BLUE, marker=".")
    steps.axhline(1e-4, color=GREY, linewidth=0.9, linestyle=":")
    steps.text(
        1.0,
        1.15e-4,
        "tol by default",
        color=GREY,
        fontsize=9,
        ha="right",
        transform=steps.get_yaxis_transform(),
    )
    steps.set(xlabel="step", title="Certified gap, 569 x 30")
    return figure
