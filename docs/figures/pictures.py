"""The pictures of docs/figures.md that sixfold.plot has no function for: from data and fits, on new axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from sklearn.base import clone

from sixfold import kernels, plot
from sixfold.risk.losses import LOSSES
from sixfold.solvers.trees.impurity import impurity

BLUE, ORANGE, GREEN, PINK, SKY, GOLD, GREY, INK = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f7f7f", "#1f2328"),
)
MARKS = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "D"))
Array = Any


def panels(columns: int = 1, height: float = 3.4, rows: int = 1, **options: Any) -> Any:
    """Return new axes beside each other; one alone for one column."""
    return Figure(figsize=(9.0, height), layout="constrained").subplots(rows, columns, **options)


def clouds(distance: float, rows: int = 30, seed: int = 3) -> tuple[Array, Array]:
    """Return two round clouds of points in the plane, labels 0 and 1."""
    y = np.repeat([0, 1], rows)
    return np.random.default_rng(seed).normal(size=(2 * rows, 2)) + distance * y[:, None], y


def rings(seed: int = 0) -> tuple[Array, Array]:
    """Return a ring of points and a disc inside of it, labels 0 and 1."""
    random = np.random.default_rng(seed)
    angle, y = random.uniform(0.0, 2.0 * np.pi, 120), np.repeat([0, 1], 60)
    radius = np.where(y == 0, random.normal(2.0, 0.18, 120), random.uniform(0.0, 1.3, 120))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def scatter(ax: Any, X: Array, y: Array) -> None:
    """Draw rows of two columns, one colour and marker a class."""
    for label, (colour, marker) in enumerate(MARKS):
        ax.scatter(*X[y == label].T, s=22, color=colour, marker=marker, edgecolor="white", lw=0.5, zorder=3)


def _frameless(ax: Any) -> Any:
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


def border(ax: Any, model: Any, **style: Any) -> None:
    """Draw the border of a linear classifier across the axes."""
    w, b = model.coef_[0], model.intercept_[0]
    ax.axline((0.0, -b / w[1]), slope=-w[0] / w[1], **style)


# -- linear regression ---------------------------------------------------------------------------------------


def regression_line(model: Any, x: Array, y: Array, new: float) -> Any:
    """Draw a line through points, and what it says of a new one."""
    ax, answer = panels(), model.predict([[new]])[0]
    ends = np.array([[0.5], [7.5]])
    ax.scatter(x, y, s=16, color=BLUE, label="irises")
    ax.plot(ends, model.predict(ends), color=ORANGE, label="least squares")
    said = f"a petal of {new} cm is {answer:.2f} cm wide"
    ax.plot([new, new, 0.5], [0.0, answer, answer], ":", color=INK, label=said)
    ax.plot(new, answer, "*", color=INK, markersize=11)
    ax.set(xlim=(0.5, 7.5), ylim=(0.0, 2.8), xlabel="petal length (cm)", ylabel="petal width (cm)")
    ax.legend(frameon=False)
    return ax


def bowl(model: Any, x: Array, y: Array) -> Any:
    """Draw the mean squared error over slope and intercept, and a cut through it."""
    ax, right = panels(2)
    slopes, intercepts = np.linspace(-0.2, 1.0, 80), np.linspace(-2.0, 1.3, 80)
    cost = np.mean((slopes * x[:, None, None] + intercepts[:, None] - y[:, None, None]) ** 2, axis=0)
    ax.contour(slopes, intercepts, cost, levels=np.geomspace(0.06, 5.0, 9), cmap="viridis")
    ax.plot(model.coef_, model.intercept_, "*", color=INK, markersize=12)
    ax.set(xlabel="slope", ylabel="intercept", title="Mean squared error, lighter is more")
    cut = [np.mean((slope * x + model.intercept_ - y) ** 2) for slope in slopes]
    right.plot(slopes, cut, color=BLUE)
    right.plot(model.coef_, np.mean((model.predict(x[:, None]) - y) ** 2), "*", color=INK, markersize=12)
    right.set(xlabel="slope, at the intercept of the fit", ylabel="mean squared error")
    right.set_title("A cut through the bowl")
    return ax


def table(model: Any, X: Array, y: Array) -> Any:
    """Draw a table, the weights, what is fitted and what is true, as colours."""
    shown = {
        f"X: {len(X)} x {X.shape[1]}": X,
        f"w: {X.shape[1]}": model.coef_[:, None],
        "X w": model.predict(X)[:, None],
        "y": y[:, None],
    }
    axes = panels(4, width_ratios=[5, 1, 1, 1])
    for ax, (title, values) in zip(axes, shown.items(), strict=True):
        image = ax.imshow(values, aspect="auto", cmap="RdBu_r", vmin=-2.5, vmax=2.5, interpolation="nearest")
        _frameless(ax).set_title(title)
    ax.figure.colorbar(image, ax=axes, label="standard deviations", fraction=0.05)
    return ax


def outliers(X: Array, y: Array, far: Array, models: dict[str, Any]) -> Any:
    """Draw the borders of some classifiers without and with far rows of class 1."""
    both = (X, y), (np.vstack([X, far]), np.append(y, np.ones(len(far), dtype=int)))
    looks = ((PINK, "--"), (INK, "-"))
    for ax, (rows, labels) in zip(panels(2, sharex=True, sharey=True), both, strict=True):
        scatter(ax, rows, labels)
        for (name, model), (colour, dash) in zip(models.items(), looks, strict=True):
            border(ax, clone(model).fit(rows, labels), color=colour, linestyle=dash, label=name)
        ax.set(xlim=(-3.0, 14.0), ylim=(-3.0, 6.5), title=f"{len(rows)} rows", xlabel="x0", ylabel="x1")
        ax.label_outer()
    ax.legend(frameon=False, loc="upper right")
    return ax


# -- empirical risk ------------------------------------------------------------------------------------------


def hypotheses(model: Any, distance: float = 2.5) -> Any:
    """Draw lines, darker with less risk, and the risk of fits over few and over many rows."""
    ax, right = panels(2)
    X, y = clouds(distance)
    scatter(ax, X, y)
    for w in np.random.default_rng(0).normal((1.0, 1.0, -2.5), (0.8, 0.8, 1.5), size=(40, 3)):
        risk = _hinge(X @ w[:2] + w[2], y)
        shade = 0.9 * np.exp(-1.5 * risk)
        ax.axline((0.0, -w[2] / w[1]), slope=-w[0] / w[1], color=INK, alpha=shade, linewidth=0.8)
    border(ax, clone(model).fit(X, y), color=ORANGE, linewidth=2.5)
    ax.set(xlim=(-3.0, 6.0), ylim=(-3.0, 6.0), xlabel="x0", ylabel="x1", title="The least risk of all lines")
    sizes, (fresh, truth) = [5, 8, 12, 20, 40, 80, 160], clouds(distance, rows=5000, seed=99)
    average = []
    for size in sizes:
        drawn = [clouds(distance, size, seed) for seed in range(20)]
        fits = [clone(model).fit(*rows) for rows in drawn]
        own = [_hinge(fit.decision_function(Q), t) for fit, (Q, t) in zip(fits, drawn, strict=True)]
        average.append((np.mean(own), np.mean([_hinge(fit.decision_function(fresh), truth) for fit in fits])))
    for values, (colour, marker), name in zip(
        np.transpose(average), MARKS, ("training", "fresh"), strict=False
    ):
        right.semilogx(2 * np.array(sizes), values, color=colour, marker=marker, label=f"{name} rows")
    right.set(xlabel="training rows", ylabel="average hinge loss", title="Empirical and expected risk")
    right.legend(frameon=False)
    return ax


def _hinge(score: Array, y: Array) -> float:
    return float(LOSSES["hinge"].value(score, 2.0 * y - 1.0).mean())


# -- logistic regression -------------------------------------------------------------------------------------


def logistic_function(logistic: Any, straight: Any, x: Array, y: Array) -> Any:
    """Draw a fitted probability beside a straight line, and the logistic function at several scales."""
    ax, right = panels(2)
    grid = np.linspace(0.8, 2.7, 200)[:, None]
    ax.scatter(x, y, s=16, color=BLUE, label="irises (1: virginica)")
    ax.plot(grid, logistic.predict_proba(grid)[:, 1], color=ORANGE, label="logistic")
    ax.plot(grid, straight.predict(grid), "--", color=GREY, label="least squares")
    ax.set(xlabel="petal width (cm)", ylabel="probability of virginica", title="A fitted probability")
    ax.legend(frameon=False, loc="upper left")
    z = np.linspace(-6.0, 6.0, 200)
    for scale, dash, colour in ((0.5, ":", GREEN), (1.0, "-", ORANGE), (3.0, "--", BLUE), (-1.0, "-.", GREY)):
        sign = "-" if scale > 0 else ""
        factor = "" if abs(scale) == 1.0 else f"{abs(scale):g} "
        name = f"1 / (1 + exp({sign}{factor}z))"
        right.plot(z, 1.0 / (1.0 + np.exp(-scale * z)), linestyle=dash, color=colour, label=name)
    right.set(xlabel="z = w·x + b", ylabel="probability", title="A longer w, and the mirror image")
    right.legend(frameon=False, loc="upper left", fontsize=8, bbox_to_anchor=(0.6, 0.62))
    return ax


def descent(model: Any, X: Array, y: Array) -> Any:
    """Draw steps against the gradient of a logistic risk with penalty, and the risk with several rates."""
    ax, right = panels(2)
    loss, sign, alpha = LOSSES["logistic"], 2.0 * y - 1.0, model.alpha

    def risk(w: Array) -> float:
        return float(loss.value(X @ w, sign).mean() + alpha * w @ w / 2.0)

    def steps(rate: float, count: int) -> Array:
        way = [np.array([-2.0, 2.5])]
        for _ in range(count):
            slope = X.T @ loss.gradient(X @ way[-1], sign) / len(X) + alpha * way[-1]
            way.append(way[-1] - rate * slope)
        return np.array(way)

    axis, way = np.linspace(-3.0, 3.5, 60), steps(1.0, 14)
    height = [[risk(np.array([a, b])) for a in axis] for b in axis]
    ax.contour(
        axis,
        axis,
        height,
        levels=risk(model.coef_[0]) + np.geomspace(0.005, 4.0, 14),
        cmap="viridis",
        linewidths=0.8,
    )
    arrows = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.008, "color": ORANGE}
    ax.quiver(*way[:-1].T, *np.diff(way, axis=0).T, zorder=3, **arrows)
    ax.plot(*model.coef_[0], "*", color=INK, markersize=12, zorder=4)
    ax.set(xlabel="first weight", ylabel="second weight", title="Steps of gradient descent")
    for rate, dash, colour in ((0.1, ":", GREEN), (1.0, "-", ORANGE), (4.0, "--", BLUE), (40.0, "-.", GREY)):
        right.plot([risk(w) for w in steps(rate, 40)], linestyle=dash, color=colour, label=f"rate {rate:g}")
    right.set(xlabel="step", ylabel="risk", title="Learning rates", ylim=(0.0, None))
    right.legend(frameon=False)
    return ax


def separable(fits: Sequence[Any], x: Array, y: Array) -> Any:
    """Draw logistic fits with ever less penalty on classes that a threshold separates."""
    ax, right = panels(2)
    grid = np.linspace(-3.0, 3.0, 300)[:, None]
    for model, shade in zip(fits, np.linspace(0.75, 0.0, len(fits)), strict=True):
        ax.plot(grid, model.predict_proba(grid)[:, 1], color=str(shade), linewidth=1.2)
    scatter(ax, np.column_stack([x, y]), y)
    strengths = [model.C for model in fits]
    title = f"C from {strengths[0]:g} (pale) to {strengths[-1]:,.0f} (black)"
    ax.set(xlabel="x", ylabel="probability", title=title)
    right.loglog(strengths, [abs(model.coef_[0, 0]) for model in fits], marker="o", color=BLUE)
    right.set(xlabel="C, the inverse of the penalty", ylabel="|w|", title="The weight grows for ever")
    return ax


# -- trees ---------------------------------------------------------------------------------------------------


def trees(models: dict[str, Any], height: float, widths: Sequence[float]) -> Any:
    """Draw trees beside each other, under these titles."""
    axes = panels(len(models), height, width_ratios=widths)
    for ax, (title, model) in zip(axes, models.items(), strict=True):
        plot.tree(model, ax).set_title(title)
    return ax


def entropy_curve(nodes: Sequence[tuple[int, int]]) -> Any:
    """Draw the entropy of two classes over the share of one, and some nodes on it."""
    ax, share = panels(), np.linspace(0.0, 1.0, 201)
    ax.plot(share, impurity(np.column_stack([share, 1.0 - share]), "entropy"), color=BLUE)
    for yes, no in nodes:
        bits = impurity(np.array([[yes, no]]), "entropy")[0]
        place = yes / (yes + no)
        ax.plot(place, bits, "o", color=ORANGE)
        shift, side = ((0, -18), "center") if yes == no else ((-10, 6 if no == 0 else -14), "right")
        words = f"{yes} and {no}: {bits:.2f} bits"
        ax.annotate(words, (place, bits), shift, textcoords="offset points", ha=side)
    ax.set(xlabel="share of the first class, P / (P + N)", ylabel="entropy (bits)")
    return ax


def first_questions(stumps: dict[str, list[Any]], columns: Sequence[str]) -> Any:
    """Draw what the first split by each column gains, by each criterion."""
    words = {"homogeneous": "strangers in groups that agree", "entropy": "information gain (bits)"}
    for ax, (criterion, models) in zip(panels(2, 2.8, sharey=True), stumps.items(), strict=True):
        gains = []
        for tree in (model.tree_ for model in models):
            split = tree.node_count > 1
            left = np.average(tree.impurity[1:], weights=tree.rows[1:]) if split else tree.impurity[0]
            gains.append(tree.impurity[0] - left)
        rows = models[0].tree_.rows[0] if criterion == "homogeneous" else 1
        bars = ax.barh(columns, np.array(gains) * rows, color=BLUE)
        ax.bar_label(bars, fmt="{:.3g}", padding=3)
        ax.set_xlabel(words[criterion])
        ax.margins(x=0.15)
    ax.invert_yaxis()
    return ax


# -- margins -------------------------------------------------------------------------------------------------


def many_lines(X: Array, y: Array, models: dict[str, Any]) -> Any:
    """Draw the borders of some linear classifiers, the last one thick."""
    ax = panels(height=3.8)
    scatter(ax, X, y)
    for (name, model), dash in zip(models.items(), (":", "--", "-.", "-"), strict=True):
        last = dash == "-"
        border(
            ax, model, color=INK if last else GREY, linestyle=dash, linewidth=2.2 if last else 1.5, label=name
        )
    ax.set(xlim=(-3.0, 9.0), ylim=(-3.0, 7.5), xlabel="x0", ylabel="x1")
    ax.legend(frameon=False, loc="lower right")
    return ax


def regions(models: Sequence[Any], data: Sequence[tuple[Array, Array]], titles: Sequence[str]) -> Any:
    """Draw the regions of classifiers beside each other."""
    axes = panels(len(models), 3.4 if len(models) > 2 else 3.8)
    for ax, model, (X, y), title in zip(axes, models, data, titles, strict=True):
        plot.decision_boundary(model, X, y, ax, legend=False, resolution=160).set_title(title)
    return ax


def kernel_space(model: Any, X: Array, y: Array) -> Any:
    """Draw rows in the plane, and in the space of the quadratic kernel with the plane of the fit."""
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    left = figure.add_subplot(1, 2, 1)
    ax = figure.add_subplot(1, 2, 2, projection="3d", azim=-60, elev=10)
    scatter(left, X, y)
    left.set(xlabel="q", ylabel="p", aspect="equal", title="As given: no line separates")
    image = kernels.quadratic.feature_map(X)
    w, b = (model.dual_coef_ @ kernels.quadratic.feature_map(model.support_vectors_))[0], model.intercept_[0]
    for label, (colour, marker) in enumerate(MARKS[:2]):
        ax.scatter(*image[y == label].T, color=colour, marker=marker, s=14, depthshade=False)
    across, deep = np.meshgrid(np.linspace(0.0, 3.0, 2), np.linspace(-3.0, 3.0, 2))
    ax.plot_surface(across, deep, -(w[0] * across + w[1] * deep + b) / w[2], alpha=0.3, color=GREY)
    ax.set(
        xlabel="q²",
        ylabel="√2 q p",
        yticks=[-2, 0, 2],
        zlim=(-1.0, 6.0),
        title="In the kernel's space: a plane does",
    )
    ax.set_zlabel("p²")
    ax.set_box_aspect((1.2, 0.8, 1.0), zoom=1.0)
    return ax


def three_losses(names: Sequence[str]) -> Any:
    """Draw losses beside each other, each with the zero-one loss."""
    for ax, name in zip(panels(len(names), sharey=True), names, strict=True):
        plot.losses(ax, ["zero_one", name]).set(title=name, xlabel="margin m", ylim=(-0.1, 3.6))
        ax.label_outer()
    return ax


def subgradient(name: str) -> Any:
    """Draw a loss with lines that touch it at its kink, and its slope."""
    ax, right = panels(2)
    m, loss = np.linspace(-2.0, 2.0, 400), LOSSES[name]
    ones = np.ones_like(m)
    ax.plot(m, loss.value(m, ones), color=ORANGE, linewidth=2.5, label="max(0, -m)")
    for slope in (-0.25, -0.5, -0.75):
        said = "touch it at 0" if slope == -0.5 else None
        ax.plot(m, slope * m, color=GREY, linewidth=1.0, linestyle="--", label=said)
    ax.set(xlabel="margin m", ylabel="loss", ylim=(-1.0, 2.0), title="Lines from below")
    ax.legend(frameon=False)
    slopes = loss.gradient(m, ones)
    for side in (m < 0, m > 0):
        right.plot(m[side], slopes[side], color=ORANGE, linewidth=2.5)
    right.plot(0.0, loss.gradient(np.zeros(1), np.ones(1)), "o", color=ORANGE)
    right.plot(0.0, -1.0, "o", color=ORANGE, markerfacecolor="white")
    right.set(xlabel="margin m", ylabel="slope", title="The slope, and the choice at 0")
    return ax


def penalties(paths: dict[str, Array], X: Array, y: Array, names: Sequence[str]) -> Any:
    """Draw the data loss of two weights with the ball of a penalty and the path of its fits."""
    axis = np.linspace(-0.3, 0.75, 120)
    a, b = np.meshgrid(axis, axis)
    cost = np.mean((np.stack([a, b], axis=-1) @ X.T - y) ** 2, axis=-1)
    for ax, (penalty, way) in zip(panels(2, 4.0), paths.items(), strict=True):
        chosen = way[np.abs(way[:, 1] - 0.22).argmin() if penalty == "l2" else _at_corner(way)]
        size = np.hypot(a, b) if penalty == "l2" else np.abs(a) + np.abs(b)
        reach = np.hypot(*chosen) if penalty == "l2" else np.abs(chosen).sum()
        ax.contour(axis, axis, cost, levels=14, cmap="viridis", linewidths=0.8)
        ax.contourf(axis, axis, size, levels=[0.0, reach], colors=[SKY], alpha=0.4)
        ax.plot(*way.T, color=INK, linewidth=1.6)
        ax.plot(*chosen, "o", color=ORANGE, markersize=8)
        title = f"{penalty.upper()}: weights {chosen[0]:.2f} and {chosen[1]:.2f}"
        ax.set(xlabel=f"weight of {names[0]}", ylabel=f"weight of {names[1]}", aspect="equal", title=title)
        ax.axhline(0.0, color=GREY, linewidth=0.6)
        ax.axvline(0.0, color=GREY, linewidth=0.6)
    return ax


def _at_corner(way: Array) -> int:
    """Return the number of the longest weights of which one is zero."""
    return int(np.where((way == 0.0).any(axis=1), np.abs(way).sum(axis=1), -1.0).argmax())


# -- neighbours ----------------------------------------------------------------------------------------------


def image_distance(model: Any, rows: Array, query: Array) -> Any:
    """Draw an image, the nearest one to it, and their differences."""
    distance, row = (part[0, 0] for part in model.kneighbors(query[None]))
    shown = {
        "asked for": query,
        "nearest training image": rows[row],
        f"differences: {distance:g} together": abs(query - rows[row]),
    }
    for ax, (title, image) in zip(panels(3), shown.items(), strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0.0, vmax=16.0)
        for place, value in enumerate(image):
            ink = "white" if value > 9 else INK
            ax.text(place % 8, place // 8, f"{value:g}", ha="center", va="center", fontsize=8, color=ink)
        _frameless(ax).set_title(title)
    return ax


def more_neighbours(models: Sequence[Any], X: Array, y: Array) -> Any:
    """Draw regions of several k, and where the vote is tied."""
    for ax, model in zip(panels(len(models), sharey=True), models, strict=True):
        plot.decision_boundary(model, X, y, ax, legend=False, resolution=160).set_title(
            f"k = {model.n_neighbors}"
        )
        ax.label_outer()
        a, b = np.meshgrid(np.linspace(*ax.get_xlim(), 200), np.linspace(*ax.get_ylim(), 200))
        share = model.predict_proba(np.column_stack([a.ravel(), b.ravel()]))[:, 1].reshape(a.shape)
        if (share == 0.5).any():
            ax.contourf(a, b, share == 0.5, levels=[0.5, 1.5], colors=[GREY], alpha=0.7)
    return ax


def distances(models: dict[str, Any], X: Array, y: Array) -> Any:
    """Draw what is at distance 1, and the regions of one neighbour, for two distances."""
    first, *others = panels(3)
    axis = np.linspace(-1.3, 1.3, 201)
    a, b = np.meshgrid(axis, axis)
    for ax, (name, model), colour in zip(others, models.items(), (ORANGE, BLUE), strict=True):
        origin = type(model)(1, metric=name).fit([[0.0, 0.0]], [0])
        reach = origin.kneighbors(np.column_stack([a.ravel(), b.ravel()]))[0].reshape(a.shape)
        first.contour(axis, axis, reach, levels=[1.0], colors=colour)
        first.plot([], color=colour, label=name)
        plot.decision_boundary(model, X, y, ax, legend=False, resolution=160).set_title(name)
    first.set(aspect="equal", title="At distance 1", xlabel="x0", ylabel="x1", ylim=(-1.2, 1.8))
    first.legend(frameon=False, loc="upper center", ncols=2, fontsize=8)
    return first


def same_distance(photo: Array, distance: Callable[[Array, Array], float]) -> Any:
    """Draw an image and three changes of it that are equally far away."""
    shifted, boxed = np.roll(photo, 2, axis=1), photo.copy()
    for top, left in ((20, 30), (20, 75), (60, 52)):
        boxed[top : top + 18, left : left + 18] = 0.0
    length = np.linalg.norm(shifted - photo)
    boxed = photo + (boxed - photo) * length / np.linalg.norm(boxed - photo)
    tint = np.array([-1.0, 0.2, 1.0])
    tinted = photo + tint * length / np.sqrt(photo[..., 0].size * tint @ tint)
    changed = {"original": photo, "boxed": boxed, "shifted": shifted, "tinted": tinted}
    for ax, (title, image) in zip(panels(4, 2.2), changed.items(), strict=True):
        ax.imshow(image.clip(0.0, 1.0))
        _frameless(ax).set(title=title, xlabel=f"distance {distance(photo, image):.2f}")
    return ax


def neighbours_in(searches: dict[str, tuple[Any, Array]], images: Array, labels: Array) -> Any:
    """Draw the first image, and those found among the others in several spaces; red: of another class."""
    axes = panels(7, 3.4, rows=len(searches))
    for line, (name, (model, asked)) in zip(axes, searches.items(), strict=True):
        near = 1 + model.kneighbors(asked[None], return_distance=False)[0]
        for ax, image in zip(line, [0, *near], strict=True):
            same = labels[image] == labels[0]
            ax.imshow(images[image], cmap="gray_r" if same else "Reds")
            style = {"color": INK} if same else {"color": "#b00020", "weight": "bold"}
            _frameless(ax).set_title(f"{'' if image else 'asked: '}{labels[image]}", **style)
        line[0].set_ylabel(name)
    return ax


def completed(model: Any, data: Array, rows: Sequence[int]) -> Any:
    """Draw upper halves of images, what a model makes of them, and the truth."""
    half = data.shape[1] // 2
    axes = panels(len(rows), 3.4, rows=3)
    for column, row in zip(axes.T, rows, strict=True):
        parts = np.zeros(half), model.predict(data[[row], :half])[0], data[row, half:]
        for ax, lower in zip(column, parts, strict=True):
            image = np.append(data[row, :half], lower).reshape(8, 8)
            ax.imshow(image, cmap="gray_r", vmin=0.0, vmax=16.0)
            _frameless(ax)
    for ax, name in zip(axes[:, 0], ("asked", "completed", "truth"), strict=True):
        ax.set_ylabel(name)
    return ax


# -- choosing ------------------------------------------------------------------------------------------------


def splits(folds: Sequence[tuple[Array, Array]], test: int = 5) -> Any:
    """Draw which rows are for training, validation and test."""
    count = sum(len(judged) for _, judged in folds)
    roles = [
        np.zeros(count + test),
        np.repeat([0, 2], [count, test]),
        np.repeat([0, 1, 2], [count - test, test, test]),
    ]
    roles += [np.append(np.isin(np.arange(count), judged), [2] * test) for _, judged in folds]
    names = ["all for training", "training, test", "training, validation, test"]
    names += [f"fold {number} of {len(folds)}" for number in range(1, len(folds) + 1)]
    ax, colours = panels(height=3.2), {"training": SKY, "validation": GOLD, "test": GREY}
    ax.pcolormesh(
        np.array(roles), cmap=ListedColormap(list(colours.values())), edgecolor="white", linewidth=1.5
    )
    ax.set(yticks=np.arange(len(roles)) + 0.5, yticklabels=names, ylim=(len(roles), 0), xlabel="row")
    ax.set(xticks=np.arange(count + test) + 0.5, xticklabels=range(1, count + test + 1))
    for name, colour in colours.items():
        ax.scatter([], [], marker="s", s=60, color=colour, label=name)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    return ax


def softmax(model: Any, x: Array, truth: Any) -> Any:
    """Draw scores, the probabilities they become, and the truth."""
    p, true = model.predict_proba(x[None])[0], model.classes_ == truth
    cost = -np.log(p[true][0])
    shown = {
        "scores w·x + b": model.decision_function(x[None])[0],
        "softmax of the scores": p,
        f"truth: cross-entropy {cost:.2f}": true.astype(float),
    }
    for ax, (title, values) in zip(panels(3), shown.items(), strict=True):
        bars = ax.bar([str(name) for name in model.classes_], values, color=[BLUE, GOLD, GREEN])
        ax.bar_label(bars, fmt="{:.2f}", padding=2)
        ax.axhline(0.0, color=INK, linewidth=0.8)
        ax.set_title(title)
        ax.margins(y=0.15)
    return ax
