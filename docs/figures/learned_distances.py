"""The pictures of docs/learned-distances.md: rows before and after a learnt distance."""

from __future__ import annotations

import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from sixfold import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sixfold.errors import StoppedEarly

BLUE, ORANGE, GREEN, GREY = "#2f6db3", "#d9772b", "#3a8f5c", "#666666"
MARKS = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "D"))
WORDS = {"od280/od315_of_diluted_wines": "od280/od315", "nonflavanoid_phenols": "nonflav. phenols"}


def learned_distances() -> Any:
    """Return wines as plain distance has them, after the learnt one, and what each column counts in both."""
    wine = load_wine()
    X, X_test, y, y_test = train_test_split(wine.data, wine.target, random_state=0, stratify=wine.target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedEarly)
        learnt = NeighborhoodComponentsAnalysis(2).fit(X, y)
    figure, axes = plt.subplots(1, 3, width_ratios=(1, 1, 0.9))
    plain = PCA(2).fit(X)  # nearly all of plain distance: 99.9% of the variance
    Z, Z_test = learnt.transform(X), learnt.transform(X_test)
    shown = (
        ("Plain distance", X, X_test, plain.transform),
        ("Learnt distance, two components", Z, Z_test, np.asarray),
    )
    for ax, (title, rows, rows_test, view) in zip(axes, shown, strict=False):
        right = KNeighborsClassifier(5).fit(rows, y).score(rows_test, y_test)
        _scatter(ax, view(rows), y, filled=True)
        _scatter(ax, view(rows_test), y_test, filled=False)
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"{title}:\n{right:.0%} of new wines right")
    _shares(axes[2], X, learnt.components_, wine.feature_names)
    return figure


def _scatter(ax: Any, Z: Any, y: Any, filled: bool) -> None:
    for label, (colour, mark) in enumerate(MARKS):
        style = {"c": colour, "edgecolor": "white"} if filled else {"facecolor": "none", "edgecolor": colour}
        ax.scatter(*Z[y == label].T, s=22, marker=mark, linewidth=0.5 if filled else 1.1, **style)


def _shares(ax: Any, X: Any, L: Any, names: list[str]) -> None:
    """Draw how far a standard deviation of each column moves a row, before and after."""
    spread = X.std(axis=0)
    before, after = spread, np.sqrt(np.square(L).sum(axis=0)) * spread
    places = np.arange(len(names))[::-1]
    ax.barh(places + 0.2, before / before.max(), 0.38, color=GREY, label="plain")
    ax.barh(places - 0.2, after / after.max(), 0.38, color=ORANGE, label="learnt")
    ax.set_yticks(places, [WORDS.get(name, name).replace("_", " ") for name in names], fontsize=8)
    ax.set(xticks=[0, 1], xticklabels=["0", "most"])
    ax.set_title("How far a column moves a row,\nspread by spread")
    ax.legend(frameon=False, loc="center right")
