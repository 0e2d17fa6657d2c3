"""Kernels for many rows: Nystroem's features and SVMs in their space.

scikit-learn's Nystroem takes random rows as landmarks. What is compared is the share of the kernel's trace on
the training rows that the features leave out, computed in float64 from the features that were returned, and
the time of ``fit_transform``; both get the rows in single precision and all threads.

An SVM in the space of landmarks stands beside the exact one of sixfold: how many times longer that one takes,
and the share of test labels that is wrong. A million rows are fitted within 8 GB; there the peak of memory is
what counts.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.kernel.tasks import SVMTask, fashion
from benchmarks.peers import Job
from benchmarks.runner import Case, Contender

Array = NDArray[Any]

RANK = 1000
SVM_RANK = 2000
MEMORY = 8 << 30  # bytes, with a million rows of 50 columns
MILLION = 1_000_000


class Rows(NamedTuple):
    """The rows of a case, their labels, and the width of the kernel."""

    X: Array
    y: Array
    gamma: float


def fashion_rows(quick: bool) -> Rows:
    """Return 60,000 images in single precision."""
    task = fashion(60_000, 10, quick)
    return Rows(task.X, task.y, task.gamma)


def million_rows(quick: bool) -> Rows:
    """Return a million rows of 50 columns in single precision; a curved surface divides two classes."""
    random = np.random.default_rng(0)
    X = random.normal(size=(2_000 if quick else MILLION, 50)).astype(np.float32)
    score = np.tanh(X[:, :10]).sum(axis=1) + X[:, 10] * X[:, 11]
    y = (score + random.normal(size=score.size) > 0.0).astype(int)
    return Rows(X, y, 1.0 / 100.0)


def rank_for(rows: int, rank: int) -> int:
    """Return the rank, fewer where there are few rows."""
    return min(rank, rows // 2)


def nystroem(module: str, options: dict[str, Any], data: Rows) -> Job:
    """Return a Nystroem of this module for these rows."""
    rank = rank_for(data.X.shape[0], RANK)
    model = import_module(module).Nystroem(gamma=data.gamma, n_components=rank, random_state=0, **options)
    return Job(model, data)


def fit_transform(job: Job, data: Rows) -> Array:
    return job.estimator.fit_transform(job.task.X)


def fit(job: Job, data: Any) -> Any:
    return job.estimator.fit(job.task.X, job.task.y)


def share_left(data: Rows, features: Array) -> float:
    """Return the share of the trace of an RBF kernel that the features leave out."""
    held = sum(
        float(np.square(features[start : start + 4096].astype(np.float64)).sum())
        for start in range(0, features.shape[0], 4096)
    )
    return 1.0 - held / features.shape[0]


def svc(options: dict[str, Any], task: SVMTask) -> Job:
    """Return sixfold's SVC."""
    rank = options.get("rank")
    options = options if rank is None else options | {"rank": rank_for(task.X.shape[0], rank)}
    return Job(import_module("sixfold").SVC(C=task.C, gamma=task.gamma, cache_size=1000, **options), task)


def share_wrong(task: SVMTask, model: Any) -> float:
    return float(np.mean(model.predict(task.Q) != task.truth))


def whole(result: Any) -> Any:
    return result


def held(model: Any) -> str:
    """Say how much of the kernel the space holds."""
    known = getattr(model, "trace_held_", None)
    return "" if known is None else f"{model.support_.size} landmarks, {100 * known:.3g}% of the trace"


def left_out(data: Rows, model: Any) -> float:
    """Return the certified share of the trace that is left out, or the gap of an SVM."""
    certificate = model.certificate_
    return float(certificate.objective if certificate.kind == "trace error" else certificate.relative_gap)


def certified(model: Any) -> str:
    return str(model.certificate_)


def million_svc(data: Rows) -> Job:
    rank = rank_for(data.X.shape[0], RANK)
    return Job(import_module("sixfold").SVC(gamma=data.gamma, rank=rank), data)


memory_case = partial(
    Case,
    data=million_rows,
    error=left_out,
    accuracy=1.0,
    memory_bar=(MEMORY - MILLION * 50 * 4) / (MILLION * 50 * 4),
    long=True,
)

CASES = (
    Case(
        name="nystroem_images",
        title=f"Nystroem, {RANK:,} landmarks, 60,000 images (accuracy: share of the trace left out)",
        data=fashion_rows,
        contenders=[
            Contender("sixfold", partial(nystroem, "sixfold", {}), fit_transform, whole),
            Contender(
                "scikit-learn", partial(nystroem, "sklearn.kernel_approximation", {}), fit_transform, whole
            ),
        ],
        error=share_left,
        accuracy=1.0,
        bars={"scikit-learn": 1},
        with_memory=False,
        slack=0.0,
    ),
    Case(
        name="landmark_svm_images",
        title=f"SVM, {SVM_RANK:,} landmarks, 60,000 images (accuracy: share of wrong labels)",
        data=partial(fashion, 60_000, 10_000),
        contenders=[
            Contender("sixfold", partial(svc, {"rank": SVM_RANK}), fit, whole, held),
            Contender("the exact SVC", partial(svc, {}), fit, whole),
        ],
        error=share_wrong,
        accuracy=1.0,
        bars={"the exact SVC": 5},
        with_memory=False,
        slack=0.01,
        long=True,
    ),
    memory_case(
        name="nystroem_million",
        title=f"Nystroem, {RANK:,} landmarks, 1,000,000 x 50 (fit)",
        contenders=[Contender("sixfold", partial(nystroem, "sixfold", {}), fit, whole, certified)],
    ),
    memory_case(
        name="landmark_svm_million",
        title=f"SVM, {RANK:,} landmarks, 1,000,000 x 50",
        contenders=[Contender("sixfold", million_svc, fit, whole, certified)],
    ),
)
