"""Large margin nearest neighbours on data made by scikit-learn, against metric-learn.

metric-learn 0.7.0 fails on the scikit-learn of today, so it runs in a process of its own, with the Python
that `SIXFOLD_METRIC_LEARN` names, or in a virtual environment that is made in `build/` when it is first
needed. The rows go there and the map comes back through pipes, in some milliseconds. It follows the gradient
at a rate that it is given, so it is measured twice: as it comes (learn_rate=1e-7), and with the best for
these data of 1e-7, 1e-6, 1e-5 and 1e-4. Errors are differences of the logarithm of its own objective,
regularization * pull + (1 - regularization) * push over all triplets, from the best of the run; ours must not
be above that of metric-learn as it comes. Remarked is the gap that our certificate shows.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.runner import Case, Contender

Array = NDArray[Any]

BUILD = Path(__file__).parents[2] / "build"
WANTED = ("metric-learn==0.7.0", "scikit-learn==1.4.*", "numpy<2")
NEIGHBORS = 3
ACCURACY = 1e-3  # of the objective
PEER = """
import pickle, sys, warnings
warnings.simplefilter("ignore")
from metric_learn import LMNN
answers = sys.stdout.buffer
sys.stdout = sys.stderr
pickle.dump("ready", answers), answers.flush()
while True:
    try:
        X, y, options = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    pickle.dump(LMNN(**options).fit(X, y).components_, answers)
    answers.flush()
"""


class LearningTask(NamedTuple):
    """Rows with classes numbered from 0."""

    X: Array
    y: Array


def made(rows: int, columns: int, classes: int, quick: bool) -> LearningTask:
    from sklearn.datasets import make_classification

    rows = 120 if quick else rows
    X, y = make_classification(rows, columns, n_informative=10, n_classes=classes, random_state=0)
    return LearningTask(X, y)


# -- who does it ---------------------------------------------------------------------------------------------


def sixfold(task: LearningTask) -> Any:
    from sixfold import LargeMarginNearestNeighbor

    return LargeMarginNearestNeighbor(NEIGHBORS)


def fit(job: Any, task: LearningTask) -> Any:
    return job.fit(task.X, task.y)


def components(model: Any) -> Array:
    return model.components_


def gap(model: Any) -> str:
    return f"certified gap {model.certificate_.relative_gap:.0e}"


class MetricLearn:
    """metric-learn in a process of its own."""

    def __init__(self, python: str, options: dict[str, Any]) -> None:
        self.options = options
        self.process = subprocess.Popen(
            [python, "-c", PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            pickle.load(self.process.stdout)
        except EOFError:
            raise ImportError("metric-learn does not start") from None

    def fit(self, X: Array, y: Array) -> Array:
        """Return the map."""
        pickle.dump((X, y, self.options), self.process.stdin)
        self.process.stdin.flush()
        return pickle.load(self.process.stdout)

    def __del__(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


@cache
def python_of_metric_learn() -> str:
    """Return a Python that has metric-learn; make one where none is named."""
    named = os.environ.get("SIXFOLD_METRIC_LEARN")
    if named:
        return named
    home = BUILD / "venv-metric-learn"
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        steps = [sys.executable, "-m", "venv", "--clear", home], [python, "-m", "pip", "install", *WANTED]
        try:
            for step in steps:
                subprocess.run(step, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError) as error:
            raise ImportError("pip finds no metric-learn with an older scikit-learn") from error
        (home / "ready").touch()
    return str(python)


def metric_learn(task: LearningTask, **options: Any) -> MetricLearn:
    return MetricLearn(python_of_metric_learn(), {"n_neighbors": NEIGHBORS, **options})


def unchanged(answer: Array) -> Array:
    return answer


# -- the judge -----------------------------------------------------------------------------------------------


def log_objective(task: LearningTask, L: Array) -> float:
    """Return the logarithm of metric-learn's objective, of all triplets."""
    X, y = task
    square = np.square(X).sum(axis=1)
    apart = square[:, None] + square - 2.0 * X @ X.T
    apart[y[:, None] != y] = np.inf
    np.fill_diagonal(apart, np.inf)
    targets = np.argsort(apart, axis=1, kind="stable")[:, :NEIGHBORS]
    Z = (X - X.mean(axis=0)) @ L.T
    square = np.square(Z).sum(axis=1)
    far = square[:, None] + square - 2.0 * Z @ Z.T
    far[y[:, None] == y] = np.inf
    near = np.square(Z[:, None] - Z[targets]).sum(axis=2)
    push = sum(np.maximum(1.0 + near[:, [j]] - far, 0.0).sum() for j in range(NEIGHBORS))
    return float(np.log(0.5 * near.sum() + 0.5 * push))


SIXFOLD = Contender("sixfold", sixfold, fit, components, gap)
THEIRS = Contender("metric-learn", metric_learn, fit, unchanged)


def case(name: str, title: str, data: Any, rate: float, bars: dict[str, float]) -> Case:
    tuned = Contender(
        "metric-learn, best learn_rate",
        partial(metric_learn, learn_rate=rate),
        fit,
        unchanged,
        lambda answer: f"learn_rate={rate:g}",
    )
    return Case(
        name,
        title,
        data,
        (SIXFOLD, THEIRS, tuned),
        log_objective,
        ACCURACY,
        bars,
        with_memory=False,
        slack=0.0,
        long=True,
    )


CASES = (
    case(
        "lmnn",
        "LMNN, 2,000 x 30, 3 classes, 3 targets",
        partial(made, 2000, 30, 3),
        1e-5,
        {"metric-learn": 20},
    ),
)
