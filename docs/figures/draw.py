"""Draws the figures of the documentation: ``python docs/figures/draw.py`` (needs matplotlib).

Those of the chapters are functions below, or in a file beside it. Those of docs/figures.md are drawn by the
code of that page: a picture shows the figure of ``ax`` as the block above it leaves it. How long a search
takes is no two times the same, so the gap over time is drawn from figures that
``python -m benchmarks.trees.gap_over_time`` keeps.
"""

from __future__ import annotations

import io
import json
import re
import sys
import textwrap
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split

from sixfold import (
    SVC,
    DecisionTreeClassifier,
    ERMClassifier,
    KNeighborsClassifier,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Perceptron,
    kernels,
    plot,
)
from sixfold.data.examples import load_example
from sixfold.errors import StoppedEarly
from sixfold.risk.losses import LOSSES

HERE = Path(__file__).parent
PAGE = HERE.parent / "figures.md"
# Files beside this one whose functions return a figure each; images are Debian's dataset-fashion-mnist.
CHAPTERS = (
    ("learned_distances", "learned_distances"),
    ("large_margin", "large_margin"),
    ("landmarks", "landmarks"),
    ("exemplars", "exemplars_retrieved"),
    ("exemplars", "exemplars_calibrated"),
    ("scale", "scale"),
    ("landscape", "landscape"),
)
BLUE, ORANGE, GREEN, GREY = "#2f6db3", "#d9772b", "#3a8f5c", "#666666"
STYLE = {
    "figure.figsize": (9.0, 3.6),
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "font.size": 10,
    "svg.fonttype": "path",
    "svg.hashsalt": "sixfold",
}


def two_clouds(gap: float, seed: int = 3) -> tuple[Any, Any]:
    """Return two clouds of points in the plane, labels 0 and 1."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(60, 2))
    y = np.repeat([0, 1], 30)
    X[y == 1] += gap
    return X, y


def scatter(axes: Any, X: Any, y: Any, classes: int = 2) -> None:
    """Draw points, one colour and marker a class."""
    for label, colour, marker in zip(range(classes), (BLUE, ORANGE, GREEN), "osD", strict=False):
        axes.scatter(
            *X[y == label].T, s=22, c=colour, marker=marker, edgecolor="white", linewidth=0.5, zorder=3
        )


def line(axes: Any, w: Any, b: float, level: float = 0.0, **style: Any) -> None:
    """Draw w.x + b = level across the axes without changing their limits."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    x = np.array([left, right])
    axes.plot(x, (level - b - w[0] * x) / w[1], **style)
    axes.set(xlim=(left, right), ylim=(low, high))


def six_learners() -> None:
    """Draw one fit of each learner, with what its certificate says."""
    iris, (X, y) = load_example("iris"), make_moons(160, noise=0.2, random_state=0)
    length, width = iris.X[:, 2:3], iris.X[:, 3]
    fits = [
        (LinearRegression(), length, width),
        (LogisticRegression(), X, y),
        (Perceptron(), *two_clouds(5.0)),
        (SVC(), X, y),
        (DecisionTreeClassifier(), X, y),
        (KNeighborsClassifier(), X, y),
    ]
    figure, axes = plt.subplots(2, 3, figsize=(9.0, 6.4))
    for ax, (model, rows, target) in zip(axes.flat, fits, strict=True):
        model.fit(rows, target).predict(rows)
        proven = str(model.certificate_)
        if isinstance(model, LinearRegression):
            ax.scatter(rows, target, s=14, color=BLUE, edgecolor="white", linewidth=0.4)
            ends = np.array([[0.6], [7.2]])
            ax.plot(ends, model.predict(ends), color="black")
        else:
            sides(ax, model, rows, target)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        ax.set_title(type(model).__name__, weight="bold")
        ax.set_xlabel(textwrap.fill(proven, 44), fontsize=8.5, color="#333333")
    save(figure, "six-learners")


def sides(axes: Any, model: Any, X: Any, y: Any) -> None:
    """Draw how sure a classifier of two classes is in the plane (or which it names), and the rows."""
    (left, low), (right, high) = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    grid = np.stack(np.meshgrid(np.linspace(left, right, 200), np.linspace(low, high, 200)), axis=-1)
    answer = model.predict_proba if hasattr(model, "predict_proba") else lambda Q: np.eye(2)[model.predict(Q)]
    colours = np.array([mpl.colors.to_rgb(colour) for colour in (BLUE, ORANGE)])
    picture = 1.0 - 0.4 * (1.0 - answer(grid.reshape(-1, 2)).reshape(200, 200, 2) @ colours)
    axes.imshow(picture, extent=(left, right, low, high), origin="lower", aspect="auto")
    scatter(axes, X, y)


def logistic_regression() -> None:
    """Draw class probabilities in the plane, and how the certified gap falls."""
    example = load_example("iris")
    X, names = example.X[:, 2:], np.unique(example.y)
    y = np.searchsorted(names, example.y)
    model = LogisticRegression().fit(X, y)
    figure, (left, right) = plt.subplots(1, 2)
    grid = np.stack(np.meshgrid(np.linspace(0.5, 7.3, 300), np.linspace(-0.1, 2.8, 300)), axis=-1)
    p = model.predict_proba(grid.reshape(-1, 2)).reshape(300, 300, 3)
    colours = np.array([mpl.colors.to_rgb(colour) for colour in (BLUE, ORANGE, GREEN)])
    left.imshow(1.0 - 0.45 * (1.0 - p @ colours), extent=(0.5, 7.3, -0.1, 2.8), origin="lower", aspect="auto")
    scatter(left, X, y, 3)
    left.set(
        xlabel=example.columns[2], ylabel=example.columns[3], title="Iris: probabilities mix the colours"
    )
    example = load_example("breast cancer")
    for solver, colour in (("newton", BLUE), ("lbfgs", GREEN), ("gd", ORANGE)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoppedEarly)  # steps along gradients need more than these
            fitted = LogisticRegression(solver=solver, max_iter=500).fit(example.X, example.y)
        gap = [max(record.gap / fitted.certificate_.scale, 1e-12) for record in fitted.history_]
        right.loglog(np.arange(1, len(gap) + 1), gap, color=colour, label=solver)
    right.axhline(1e-6, color=GREY, linewidth=0.8, linestyle=":")
    right.set(
        xlabel="iteration", ylabel="certified gap", title="Breast cancer, unscaled: history_ of three solvers"
    )
    right.legend(frameon=False)
    save(figure, "logistic-regression")


def perceptron() -> None:
    """Draw a separating plane with its margin, and the proof that there is none."""
    figure, (left, right) = plt.subplots(1, 2)
    X, y = two_clouds(4.0)
    model = Perceptron().fit(X, y)
    scatter(left, X, y)
    line(left, model.coef_[0], model.intercept_[0], color="black")
    left.set_title(f"Separated after {model.mistakes_} mistakes")
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    y = np.array([0, 0, 1, 1])
    proof = Perceptron().fit(X, y).proof_
    for label, colour in ((0, BLUE), (1, ORANGE)):
        right.plot(*X[y == label].T, color=colour, alpha=0.5)
        own = y[proof.rows] == label
        point = proof.weights[own] @ X[proof.rows[own]] / proof.weights[own].sum()
    scatter(right, X, y)
    right.scatter(*point, s=90, marker="*", color="black", zorder=4)
    right.set_title("Exclusive or: the star is in both hulls")
    right.margins(0.15)
    save(figure, "perceptron")


def support_vectors() -> None:
    """Draw soft and hard margins with the rows they rest on."""
    figure, axes = plt.subplots(1, 2, sharey=True)
    X, y = two_clouds(4.0)
    for ax, C in zip(axes, (0.02, np.inf), strict=True):
        model = LinearSVC(C=C, loss="hinge").fit(X, y)
        scatter(ax, X, y)
        ax.scatter(*X[model.support_].T, s=90, facecolor="none", edgecolor="black", linewidth=0.9, zorder=4)
        for level, style in ((-1.0, "--"), (0.0, "-"), (1.0, "--")):
            line(
                ax, model.coef_[0], model.intercept_[0], level, color="black", linestyle=style, linewidth=1.0
            )
        ax.set_title(f"C = {C:g}: margin {model.margin_:.2f}, {model.support_.size} support vectors")
    save(figure, "linear-svm")


def two_rings(seed: int = 0) -> tuple[Any, Any]:
    """Return points about a ring and inside it, labels 0 and 1."""
    random = np.random.default_rng(seed)
    angle = random.uniform(0.0, 2.0 * np.pi, 120)
    y = np.repeat([0, 1], 60)
    radius = np.where(y == 0, random.normal(2.0, 0.18, 120), random.uniform(0.0, 1.3, 120))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def decision_regions(axes: Any, decision: Any, X: Any, y: Any, support: Any, title: str) -> None:
    """Draw the two sides of a decision in the plane, its margin (dashed), its support vectors (circles)."""
    (left, low), (right, high) = X.min(axis=0) - 0.35, X.max(axis=0) + 0.35
    columns, rows = np.meshgrid(np.linspace(left, right, 120), np.linspace(low, high, 120))
    values = decision(np.column_stack([columns.ravel(), rows.ravel()])).reshape(120, 120)
    sides = 1.0 - 0.25 * (1.0 - np.array([mpl.colors.to_rgb(colour) for colour in (BLUE, ORANGE)]))
    axes.contourf(columns, rows, values, levels=[-np.inf, 0.0, np.inf], colors=sides)
    styles = ["dashed", "solid", "dashed"]
    axes.contour(columns, rows, values, levels=[-1, 0, 1], colors="black", linestyles=styles, linewidths=0.9)
    scatter(axes, X, y)
    axes.scatter(*X[support].T, s=60, facecolor="none", edgecolor="black", linewidth=0.7, zorder=4)
    axes.set(xlim=(left, right), ylim=(low, high), title=title)


def kernel_trick() -> None:
    """Draw rings that no line separates, a conic that does, and the line it is in the kernel's space."""
    X, y = two_rings()
    figure, axes = plt.subplots(1, 3)
    for ax, kernel in zip(axes, ("linear", "quadratic"), strict=False):
        model = SVC(kernel=kernel, C=10.0).fit(X, y)
        title = f"{kernel}: {model.score(X, y):.0%} right"
        decision_regions(ax, model.decision_function, X, y, model.support_, title)
    w = (model.dual_coef_ @ kernels.quadratic.feature_map(model.support_vectors_))[0]
    squares = [0, 2]  # the third column, the product of both, plays no part here

    def plane(image: Any) -> Any:
        return image @ w[squares] + model.intercept_[0]

    image = kernels.quadratic.feature_map(X)[:, squares]
    decision_regions(axes[2], plane, image, y, model.support_, "the same in the kernel's space")
    for ax in axes:
        ax.set_aspect("equal")
    axes[2].set(xlabel="square of the first column", ylabel="square of the second")
    save(figure, "kernel-trick")


def kernel_width() -> None:
    """Draw what the width of the RBF kernel does."""
    X, y = make_moons(160, noise=0.2, random_state=0)
    figure, axes = plt.subplots(1, 3, sharey=True)
    for ax, sigma in zip(axes, (0.1, 0.5, 3.0), strict=True):
        model = SVC(sigma=sigma).fit(X, y)
        title = f"sigma = {sigma:g}: {model.support_.size} support vectors"
        decision_regions(ax, model.decision_function, X, y, model.support_, title)
    save(figure, "kernel-width")


def regions(axes: Any, model: Any, X: Any, y: Any) -> None:
    """Draw what a model makes of the plane of petals, and three classes of points in it."""
    low, high = (0.7, 0.0), (7.2, 2.7)
    steps = [np.linspace(a, b, 300) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*steps), axis=-1).reshape(-1, 2)
    colours = np.array([mpl.colors.to_rgb(colour) for colour in (BLUE, ORANGE, GREEN)])
    answers = 1.0 - 0.35 * (1.0 - colours[model.predict(grid).reshape(300, 300)])
    axes.imshow(answers, extent=(low[0], high[0], low[1], high[1]), origin="lower", aspect="auto")
    scatter(axes, X, y, 3)


def nearest_neighbours() -> None:
    """Draw what one and fifteen neighbours make of the plane, and the neighbours of one flower."""
    example = load_example("iris")
    X, names = example.X[:, 2:], np.unique(example.y)
    y = np.searchsorted(names, example.y)
    figure, axes = plt.subplots(1, 3)
    for ax, k in zip(axes, (1, 15), strict=False):
        regions(ax, KNeighborsClassifier(n_neighbors=k).fit(X, y), X, y)
        ax.set(xlabel=example.columns[2], title=f"{k} neighbour{'s' * (k > 1)}")
    axes[0].set_ylabel(example.columns[3])
    flower = np.array([4.95, 1.62])
    found = KNeighborsClassifier(n_neighbors=7).fit(X, y).explain(flower)
    for row in found.rows:
        axes[2].plot(*np.stack([flower, X[row]]).T, color=GREY, linewidth=0.9)
    scatter(axes[2], X, y, 3)
    axes[2].scatter(*flower, s=90, marker="*", color="black", zorder=4)
    votes = ", ".join(f"{share * 7:.0f} {names[label]}" for label, share in found.votes.items() if share)
    axes[2].set(xlim=(4.2, 5.8), ylim=(1.1, 2.1), xlabel=example.columns[2], title=f"Star: {votes}")
    save(figure, "nearest-neighbours")


def decision_trees() -> None:
    """Draw what trees of two depths make of the plane, what pruning does, and a tree."""
    example = load_example("iris")
    X, names = example.X[:, 2:], np.unique(example.y)
    y = np.searchsorted(names, example.y)
    figure, axes = plt.subplots(1, 3)
    for ax, depth in zip(axes, (2, None), strict=False):
        model = DecisionTreeClassifier(max_depth=depth).fit(X, y)
        regions(ax, model, X, y)
        what = f"Depth {depth}" if depth else "Any depth"
        ax.set(xlabel=example.columns[2], title=f"{what}: {model.get_n_leaves()} leaves")
    axes[0].set_ylabel(example.columns[3])
    pruning(axes[2])
    save(figure, "decision-trees")
    model = DecisionTreeClassifier(max_depth=3).fit(example.X, example.y)
    model.feature_names_in_ = np.array(example.columns, dtype=object)
    model.export_svg(HERE / "iris-tree.svg")


def pruning(ax: Any) -> None:
    """Draw how many rows the nested trees of one growth get right, by their number of leaves."""
    example = load_example("breast cancer")
    X, X_test, y, y_test = train_test_split(example.X, example.y, random_state=0)
    full = DecisionTreeClassifier().fit(X, y)
    path = full.cost_complexity_pruning_path(X, y)
    trees = [full.pruned(ccp_alpha=alpha) for alpha in np.unique(path.ccp_alphas)]
    leaves = [tree.get_n_leaves() for tree in trees]
    ax.plot(leaves, [tree.score(X, y) for tree in trees], "o-", color=GREY, label="training rows", ms=3)
    ax.plot(leaves, [tree.score(X_test, y_test) for tree in trees], "o-", color=BLUE, label="held out", ms=3)
    ax.set(xlabel="leaves", ylabel="share right", title="Trees that pruning leaves")
    ax.legend(frameon=False, loc="lower right")


def chequered(rows: int = 200, seed: int = 0) -> tuple[Any, Any]:
    """Return points whose class is told by two signs together and by neither alone, 5% of them wrong."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1.0, 1.0, size=(rows, 2)).round(2)
    return X, ((X[:, 0] * X[:, 1] > 0) ^ (random.random(rows) < 0.05)).astype(int)


def optimal_trees() -> None:
    """Draw the greedy and the best tree of depth two where no single question helps."""
    X, y = chequered()
    figure, axes = plt.subplots(2, 2, figsize=(9.0, 6.6), height_ratios=(5, 4))
    for (above, below), search in zip(axes.T, ("greedy", "optimal"), strict=True):
        model = DecisionTreeClassifier(search=search, max_depth=2).fit(X, y)
        sides(above, model, X, y)
        wrong = int((model.predict(X) != y).sum())
        what = "Greedy tree of depth 2" if search == "greedy" else "Best tree of depth 2"
        above.set(xlabel="x0", ylabel="x1", title=f"{what}: {wrong} of {y.size} rows wrong")
        plot.tree(model, below)
    save(figure, "optimal-trees")


def gap_over_time() -> None:
    """Draw the errors of the best tree so far, and those that are proven to be needed, over the seconds."""
    recorded = json.loads((HERE / "gap-over-time.json").read_text(encoding="utf-8"))
    figure, axes = plt.subplots(1, len(recorded["searches"]))
    for ax, search in zip(axes, recorded["searches"], strict=True):
        seconds, errors, bound = np.array(search["history"]).T
        end = max(seconds[-1], search["seconds"])
        seconds = np.append(seconds, end)
        errors, bound = np.append(errors, errors[-1]), np.append(bound, bound[-1])
        ax.fill_between(seconds, bound, errors, step="post", color=GREY, alpha=0.15, linewidth=0)
        ax.step(seconds, errors, where="post", color=ORANGE, label="errors of the best tree so far")
        ax.step(seconds, bound, where="post", color=BLUE, label="no tree has fewer")
        ax.axhline(search["greedy"], color=GREY, linewidth=0.9, linestyle=":", label="greedy tree")
        ax.set(xscale="log", xlim=(1e-2, 1.05 * end), ylim=(0, 1.1 * search["greedy"]), xlabel="seconds")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_title(f"{search['set']}: {search['claim']}")
    axes[0].set_ylabel("training errors, trees of depth 4")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    save(figure, "gap-over-time")


def losses() -> None:
    """Draw the losses of the margin, and what they make of one outlier."""
    figure, (left, right) = plt.subplots(1, 2)
    margin = np.linspace(-2.0, 3.0, 400)
    names = ("squared", "logistic", "perceptron", "hinge", "squared_hinge")
    for name, colour in zip(names, (GREY, BLUE, GREEN, ORANGE, "#8a5fb0"), strict=True):
        left.plot(margin, LOSSES[name].value(margin, np.ones_like(margin)), color=colour, label=name)
    left.set(xlabel="y s", ylabel="loss", ylim=(-0.1, 3.5), title="What a score costs")
    left.legend(frameon=False)
    X, y = two_clouds(3.0)
    X[-1] = [14.0, 4.0]  # far on its own side, which the squared loss holds against it
    scatter(right, X, y)
    for name, colour in (("squared", GREY), ("logistic", BLUE), ("hinge", ORANGE)):
        model = ERMClassifier(name, alpha=1e-3).fit(X, y)
        line(right, model.coef_[0], model.intercept_[0], color=colour, label=name)
    right.set_title("One far row pulls the squared loss")
    right.legend(frameon=False, loc="center right")
    save(figure, "losses")


def save(figure: Any, name: str) -> None:
    """Write the figure as SVG, the same bytes every time."""
    figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def figures_of_the_page(wanted: list[str]) -> None:
    """Run the code of docs/figures.md, and write the pictures that it draws (or the named ones)."""
    sys.path.insert(0, str(HERE.parents[1]))
    names: dict[str, Any] = {}
    parts = re.findall(
        r"```python\n(.*?)```|\]\(figures/([\w-]+)\.png\)", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    for code, picture in parts:
        if code:
            exec(compile(code, PAGE.name, "exec"), names)
        elif not wanted or picture in wanted:
            write_png(names["ax"].figure, HERE / f"{picture}.png")


def write_png(figure: Any, path: Path, dots: int = 140) -> None:
    """Write a figure as PNG with a palette of 256 colours, a third of the size, the same bytes every time."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dots, metadata={"Software": None})
    Image.open(buffer).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    if sys.argv[1:]:  # the names of some pictures of the page
        with mpl.rc_context(STYLE):
            figures_of_the_page(sys.argv[1:])
        sys.exit()
    sys.path[:0] = [str(HERE), str(HERE.parents[1])]
    with mpl.rc_context(STYLE):
        for draw in (
            six_learners,
            logistic_regression,
            perceptron,
            support_vectors,
            kernel_trick,
            kernel_width,
            nearest_neighbours,
            decision_trees,
            optimal_trees,
            gap_over_time,
            losses,
        ):
            draw()
        for module, figure in CHAPTERS:
            save(getattr(import_module(module), figure)(), figure.replace("_", "-"))
        figures_of_the_page([])
