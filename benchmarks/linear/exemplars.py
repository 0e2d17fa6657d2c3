"""One machine a positive row against all negatives, C = 0.01 and 0.5 for the row itself, against LIBLINEAR.

LIBLINEAR is scikit-learn's LinearSVC in a loop over the exemplars, half of them in either of two processes,
with sample weights for the costs. It penalises the intercept: it gets an `intercept_scaling` that makes this
matter little. Scaling, tolerance and algorithm (primal or dual) are the fastest that bring one exemplar's
objective to within 1e-3 of the least. sixfold stops at its default tolerance; its certificate is part of the
fit.

Accuracy is the part by which the sum of all objectives, with the intercept free, is above what it has to be.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.linear.exemplar_tasks import (
    OWN,
    Array,
    C,
    ExemplarTask,
    excess,
    make_task,
    two_classes,
    unit_rows,
)
from benchmarks.peers import Job
from benchmarks.runner import Case, Contender

ACCURACY = 1e-3
PROCESSES = 2
SCALINGS = (1.0, 10.0, 100.0)
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4)


class Machines(NamedTuple):
    """w and b of each exemplar."""

    w: Array
    b: Array


def sixfold(task: ExemplarTask) -> Job:
    from sixfold import ExemplarSVC

    model = ExemplarSVC(positive=1, C=C, positive_weight=OWN / C, calibration=None)
    return Job(model, task)


def fit_sixfold(job: Job, task: ExemplarTask) -> Any:
    return job.estimator.fit(job.task.X, job.task.y)


def machines(model: Any) -> Machines:
    return Machines(model.coef_, model.intercept_)


class Settings(NamedTuple):
    """What LIBLINEAR is asked for."""

    dual: bool
    intercept_scaling: float
    tol: float


def fit_some(settings: Settings, rows: Array, exemplars: Array) -> list[tuple[Array, float]]:
    """Return w and b of some exemplars; the first row is where each of them is put."""
    from sklearn.svm import LinearSVC

    rows = rows.copy()
    labels = np.append(1, -np.ones(len(rows) - 1))
    weight = np.append(OWN, np.full(len(rows) - 1, C))
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in exemplars:
            rows[0] = x
            model = LinearSVC(C=1.0, max_iter=5000, random_state=0, **settings._asdict())
            model.fit(rows, labels, weight)
            found.append((model.coef_[0], float(model.intercept_[0])))
    return found


def liblinear(task: ExemplarTask) -> Job:
    """Return the fastest settings that are accurate for one exemplar."""
    import time

    import joblib

    rows, probe = np.vstack([task.exemplars[:1], task.negatives]), task.exemplars[:1]
    one = make_task(f"{task.name}, one", task.negatives, probe)
    best, shortest = None, np.inf
    for dual in (False, True):
        for scaling in SCALINGS:
            for tol in TOLERANCES:
                start = time.perf_counter()
                w, b = fit_some(Settings(dual, scaling, tol), rows, probe)[0]
                seconds = time.perf_counter() - start
                if excess(one, (w[None], np.array([b]))) <= ACCURACY:
                    if seconds < shortest:
                        best, shortest = Settings(dual, scaling, tol), seconds
                    break
                if seconds > 5.0:
                    break
    if best is None:
        raise RuntimeError("No setting of LIBLINEAR reaches the accuracy that the case demands.")
    joblib.Parallel(PROCESSES)(joblib.delayed(abs)(k) for k in range(PROCESSES))  # the processes are there
    return Job(best, rows)


def fit_liblinear(job: Job, task: ExemplarTask) -> Any:
    import joblib

    halves = np.array_split(task.exemplars, PROCESSES)
    parts = joblib.Parallel(PROCESSES)(
        joblib.delayed(fit_some)(job.estimator, job.task, half) for half in halves
    )
    found = [one for part in parts for one in part]
    return job.estimator, Machines(np.array([w for w, _ in found]), np.array([b for _, b in found]))


def settings_in_words(result: Any) -> str:
    settings, _ = result
    way = "dual" if settings.dual else "primal"
    return f"{way}, tol={settings.tol:g}, intercept_scaling={settings.intercept_scaling:g}"


SIXFOLD = Contender("sixfold", sixfold, fit_sixfold, machines)
LIBLINEAR = Contender("LIBLINEAR", liblinear, fit_liblinear, lambda result: result[1], settings_in_words)

case = partial(Case, contenders=(SIXFOLD, LIBLINEAR), error=excess, accuracy=ACCURACY, with_memory=False)

CASES = (
    case(
        "exemplars",
        "200 exemplar machines, 20,000 negatives x 500",
        two_classes,
        bars={"LIBLINEAR": 20},
        long=True,
    ),
    case(
        "exemplar",
        "one exemplar machine, 20,000 negatives x 500",
        partial(two_classes, exemplars=1),
        bars={"LIBLINEAR": 1},
    ),
    case(
        "exemplars_unit",
        "200 exemplar machines, the same rows of length 1",
        unit_rows,
        bars={"LIBLINEAR": 5},
        long=True,
    ),
)
