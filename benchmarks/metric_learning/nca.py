"""Neighbourhood components analysis against scikit-learn's, from the same start, `tol` and `max_iter`.

Both learn to the end of their own rule: `init="auto"`, at most 50 iterations of L-BFGS, `tol=1e-5`;
scikit-learn's has all threads. The objective is computed anew for both, in plain NumPy: the error is 1 less
the mean probability with which a row picks one of its class, counted from the smallest of the run. It is not
convex, so both may end at different optima; a bar is met where ours is not above theirs by more than 1e-6.
"""

from __future__ import annotations

import warnings
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import fit
from benchmarks.runner import Case, Contender

Array = NDArray[Any]

SLACK = 1e-6  # of the mean probability: less than what decides between two optima
BLOCK = 512  # rows whose distances from all others are held at a time


class ComponentsTask(NamedTuple):
    """Rows, labels, and how many components to learn (None for all columns)."""

    X: Array
    y: Array
    components: int | None = None


def digits(components: int | None, quick: bool) -> ComponentsTask:
    """Return the 1,797 images of 8 x 8 pixels, as they come."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return ComponentsTask(X[:200], y[:200], components) if quick else ComponentsTask(X, y, components)


def five_classes(rows: int, columns: int, quick: bool) -> ComponentsTask:
    """Return rows of five classes, each two clusters on a cube in 20 columns; 10 are mixtures, 20 noise."""
    from sklearn.datasets import make_classification

    X, y = make_classification(
        150 if quick else rows,
        columns,
        n_informative=20,
        n_redundant=10,
        n_classes=5,
        n_clusters_per_class=2,
        random_state=0,
    )
    return ComponentsTask(X, y)


def iris(quick: bool) -> ComponentsTask:
    from sklearn.datasets import load_iris

    return ComponentsTask(*load_iris(return_X_y=True))


def wide(quick: bool) -> ComponentsTask:
    """Return 300 rows of 2,000 columns, 20 of which tell three classes apart."""
    rng = np.random.default_rng(0)
    rows, columns = (40, 60) if quick else (300, 2000)
    X, y = rng.standard_normal((rows, columns)), np.arange(rows) % 3
    X[:, :20] += 1.5 * rng.standard_normal((3, 20))[y]
    return ComponentsTask(X / np.sqrt(columns / 4), y, 10)


def learner(library: str, task: ComponentsTask) -> Any:
    return import_module(library).NeighborhoodComponentsAnalysis(task.components)


def learnt(model: Any, task: ComponentsTask) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the limit of 50 iterations
        return fit(model, task)


def components(model: Any) -> Array:
    found: Array = model.components_
    return found


def wrong_picks(task: ComponentsTask, L: Array) -> float:
    """Return 1 less the mean probability with which a row picks one of its class."""
    Z = (task.X - task.X.mean(axis=0)) @ L.T
    lengths, right = np.square(Z).sum(axis=1), 0.0
    for first in range(0, len(Z), BLOCK):
        here = np.arange(first, min(first + BLOCK, len(Z)))
        scores = -np.maximum(lengths[here, None] + lengths - 2.0 * (Z[here] @ Z.T), 0.0)
        scores[np.arange(here.size), here] = -np.inf
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        right += float(((p * (task.y[here, None] == task.y)).sum(axis=1) / p.sum(axis=1)).sum())
    return 1.0 - right / len(Z)


def iterations(model: Any) -> str:
    return f"{model.n_iter_} iterations"


SIXFOLD = Contender("sixfold", partial(learner, "sixfold"), learnt, components, iterations)
SKLEARN = Contender("scikit-learn", partial(learner, "sklearn.neighbors"), learnt, components, iterations)

case = partial(
    Case, contenders=(SIXFOLD, SKLEARN), error=wrong_picks, accuracy=1.0, slack=SLACK, with_memory=False
)

CASES = (
    case("nca_digits", "NCA, digits 1,797 x 64", partial(digits, None), bars={"scikit-learn": 5}),
    case(
        "nca_digits_two",
        "NCA, digits 1,797 x 64, two components",
        partial(digits, 2),
        bars={"scikit-learn": 5},
        long=True,
    ),
    case(
        "nca_five_classes",
        "NCA, 5,000 x 50, five classes",
        partial(five_classes, 5000, 50),
        bars={"scikit-learn": 10},
        long=True,
    ),
    case("nca_iris", "NCA, iris 150 x 4", iris, bars={"scikit-learn": 1}),
    case("nca_wide", "NCA, 300 x 2,000, ten components", wide, bars={"scikit-learn": 1}),
)
