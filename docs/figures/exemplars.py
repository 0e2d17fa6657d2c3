"""The pictures of docs/exemplars.md, of Fashion-MNIST (Debian's package dataset-fashion-mnist)."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.datasets import image_labels, images
from sixfold import ExemplarSVC

BAG = 8
BLUE, ORANGE, GREY = "#2f6db3", "#d9772b", "#666666"


def fitted(rows: int = 12_000, exemplars: int = 300) -> tuple[ExemplarSVC, Any]:
    """Return machines of some bags against all that are none, and the images they were fitted on."""
    pixels, labels = images("train", rows, np.float64) / 255.0, image_labels("train", rows)
    weight = np.ones(rows)
    weight[np.flatnonzero(labels == BAG)[exemplars:]] = 0.0
    return ExemplarSVC(positive="bag").fit(pixels, np.where(labels == BAG, "bag", "other"), weight), pixels


def outlines(pixels: Any) -> Any:
    """Return where each image changes from background to object: an annotation of every image."""
    objects = pixels.reshape(-1, 28, 28) > 0.15
    padded = np.pad(objects, ((0, 0), (1, 1), (1, 1)))
    inner = padded[:, :-2, 1:-1] & padded[:, 2:, 1:-1] & padded[:, 1:-1, :-2] & padded[:, 1:-1, 2:]
    return objects & ~inner


def exemplars_retrieved() -> Any:
    """Draw queries, the exemplars that fire for them, and the outline of the first laid over the query."""
    model, pixels = fitted()
    tests, labels = images("t10k", 400, np.float64) / 255.0, image_labels("t10k", 400)
    bags, others = np.flatnonzero(labels == BAG), np.flatnonzero(labels != BAG)
    queries = tests[[*bags[[0, 3, 10, 17]], others[4]]]
    scores, rows = model.retrieve(queries, k=3)
    drawn = model.transfer(queries, outlines(pixels))
    figure, axes = plt.subplots(len(queries), 6, figsize=(9.0, 1.6 * len(queries)))
    looks, outline = "what the first\nmachine looks for", "its outline,\ntransferred"
    titles = ("query", looks, "fires most", "second", "third", outline)
    for line, query in enumerate(queries):
        for place, title in zip(axes[line], titles, strict=True):
            place.set(xticks=[], yticks=[], title=title if line == 0 else None)
            place.title.set_fontsize(9)
            place.spines[:].set_visible(False)
        axes[line, 0].imshow(query.reshape(28, 28), cmap="gray_r")
        w = model.coef_[np.searchsorted(model.exemplars_, rows[line, 0])].reshape(28, 28)
        axes[line, 1].imshow(w, cmap="RdBu", vmin=-np.abs(w).max(), vmax=np.abs(w).max())
        for k in range(3):
            axes[line, 2 + k].imshow(pixels[rows[line, k]].reshape(28, 28), cmap="gray_r")
            axes[line, 2 + k].set_xlabel(f"row {rows[line, k]}: {scores[line, k]:.0%}", fontsize=8)
        axes[line, 5].imshow(query.reshape(28, 28), cmap="gray_r", alpha=0.55)
        layer = np.zeros((28, 28, 4))
        layer[drawn[line]] = (*(int(ORANGE[i : i + 2], 16) / 255 for i in (1, 3, 5)), 1.0)
        axes[line, 5].imshow(layer)
    return figure


def exemplars_calibrated() -> Any:
    """Draw the scores of a machine that is sure of itself and of one that is not, and their sigmoids."""
    model, _ = fitted()
    tests, labels = images("t10k", 4000, np.float64) / 255.0, image_labels("t10k", 4000)
    decisions = tests @ model.coef_.T + model.intercept_
    steep, flat = np.argmax(model.calibration_[:, 0]), np.argmin(model.calibration_.sum(axis=1))
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4))
    grid = np.linspace(-1.6, 1.2, 200)
    for axes, machine in ((left, steep), (right, flat)):
        slope, offset = model.calibration_[machine]
        for own, colour, name in ((False, GREY, "other images"), (True, BLUE, "bags")):
            axes.hist(
                decisions[(labels == BAG) == own, machine], np.linspace(-1.6, 1.2, 57), log=True,
                color=colour, alpha=0.45, label=name,
            )  # fmt: skip
        other = axes.twinx()
        other.plot(grid, 1.0 / (1.0 + np.exp(-(slope * grid + offset))), color=ORANGE)
        other.set(ylim=(0, 1.05), ylabel="probability (line)")
        other.spines["right"].set_visible(True)
        axes.set(xlabel="score of the machine", ylabel="images, out of 4,000")
        axes.set(title=f"exemplar {model.exemplars_[machine]}")
        axes.axvline(-1.0, color="black", linewidth=0.8, linestyle=":")
    left.legend(frameon=False, loc="center right")
    return figure
