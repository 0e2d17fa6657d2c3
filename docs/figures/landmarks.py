"""The figure of the chapter about landmarks: what more of them are good for, and where they lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from sixfold import SVC, Nystroem

HERE = Path(__file__).parent
BLUE, ORANGE, GREEN, GREY = "#2f6db3", "#d9772b", "#3a8f5c", "#666666"


def landmarks() -> Any:
    """Return the figure: what more landmarks are good for, and where they lie."""
    figure, (left, right) = plt.subplots(1, 2)
    accuracy_by_rank(left)
    where_they_lie(right)
    return figure


def accuracy_by_rank(axes: Any) -> None:
    """Draw accuracy and trace held over the rank, as ``benchmarks.kernel.accuracy_by_rank`` keeps them."""
    *fits, exact = json.loads((HERE / "landmarks.json").read_text(encoding="utf-8"))
    rank = [one["rank"] for one in fits]
    axes.semilogx(rank, [one["accuracy"] for one in fits], "o-", color=BLUE)
    axes.semilogx(rank, [one["held"] for one in fits], "s-", color=ORANGE)
    axes.axhline(exact["accuracy"], color=BLUE, linestyle=":", linewidth=1.2)
    axes.text(52, exact["accuracy"] + 0.008, "accuracy of the exact SVC", color=BLUE)
    axes.text(110, 0.83, "accuracy on test images", color=BLUE)
    axes.text(600, 0.69, "trace of the kernel\nthat the space holds", color=ORANGE)
    axes.set(
        xlabel="landmarks (rank)",
        ylim=(0.55, 0.94),
        ylabel="share",
        title="60,000 Fashion-MNIST images, RBF, C=10",
        xticks=[50, 100, 200, 400, 800, 1500, 3000],
    )
    axes.set_xticklabels(["50", "100", "200", "400", "800", "1,500", "3,000"])
    axes.minorticks_off()


def where_they_lie(axes: Any) -> None:
    """Draw two moons, the landmarks, and the boundaries of an SVM in their space and of the exact one."""
    from sklearn.datasets import make_moons

    X, y = make_moons(1500, noise=0.18, random_state=0)
    chosen = Nystroem(gamma=2.0, n_components=30).fit(X).components_
    exact, model = SVC(gamma=2.0).fit(X, y), SVC(gamma=2.0, rank=30).fit(X, y)
    for label, colour in ((0, BLUE), (1, ORANGE)):
        axes.scatter(*X[y == label][::2].T, s=4, c=colour, alpha=0.35, linewidth=0)
    axes.scatter(*chosen.T, s=70, marker="*", c="black", zorder=4, label="30 landmarks")
    grid = np.stack(np.meshgrid(np.linspace(-1.5, 2.5, 200), np.linspace(-0.9, 1.4, 200)), axis=-1)
    for one, style, colour, name in (
        (model, "-", "black", f"in their space ({100 * model.trace_held_:.3g}% held)"),
        (exact, "--", GREEN, "exact"),
    ):
        f = one.decision_function(grid.reshape(-1, 2)).reshape(200, 200)
        axes.contour(grid[..., 0], grid[..., 1], f, levels=[0.0], colors=colour, linestyles=style)
        axes.plot([], [], color=colour, linestyle=style, label=name)
    axes.legend(frameon=False, loc="lower left", fontsize=8)
    axes.set(title="Where landmarks lie", xticks=[], yticks=[], xlim=(-1.7, 2.7), ylim=(-1.75, 1.5))
