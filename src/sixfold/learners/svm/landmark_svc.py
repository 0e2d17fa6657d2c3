"""SVC(rank=...): the same SVMs in the space of a few landmark rows, for tables too long for the exact ones.

    choose landmarks C -> features phi of all rows -> the binary SVMs on these -> f(x) = K(x, C) beta + b

The model has landmarks where the exact one has support vectors, each with a coefficient in every binary SVM;
the multipliers of the training rows, which prove how good the fit is, are kept for the checker alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.utils import check_random_state

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.labels import LabelledData
from sixfold.errors import CertificateError, InputError
from sixfold.learners.svm.calibration import Calibration, calibrate
from sixfold.solvers.kernel.kernel_rows import KernelRows, densify_if_small
from sixfold.solvers.kernel.landmark_svms import (
    LandmarkSVM,
    certify_landmark_svms,
    fit_landmark_svms,
    measure_score_errors,
)
from sixfold.solvers.kernel.landmarks import Landmarks, find_landmarks, sample_size
from sixfold.solvers.kernel.one_vs_one import SupportLayout, class_sides
from sixfold.solvers.kernel.svm_landmarks import choose_svm_landmarks
from sixfold.verify.landmarks import SVMClaims, TraceClaims, recompute_landmark_svms
from sixfold.verify.recomputed import REASONS, Recomputed

if TYPE_CHECKING:
    from sixfold.learners.svm.svc import SVC

Array = NDArray[Any]

SMALL = 1 << 22  # features: up to so many are in float64 whatever the rows are
MOST_FEATURES = 6 << 30  # bytes
SELECTION = "pivoted_cholesky"


@dataclass(frozen=True)
class LandmarkSolution:
    """What was fitted, as the public attributes have it.

    Attributes
    ----------
    svms : list of LandmarkSVM
    rows : KernelRows
    layout : SupportLayout
        Landmarks by class, then by row, each with a coefficient in every SVM.
    multipliers : CSR array of shape (SVMs, rows)
        a y.
    certificate : Certificate
    calibration : Calibration or None
    calibrated : bool
        Whether there was time for all of the calibration.
    """

    svms: list[LandmarkSVM]
    rows: KernelRows
    layout: SupportLayout
    multipliers: Any
    certificate: Certificate
    calibration: Calibration | None
    calibrated: bool


def solve_in_landmarks(
    model: SVC, rows: KernelRows, upper: Array, data: LabelledData, budget: Budget, probabilities: bool
) -> LandmarkSolution:
    """Fit the binary SVMs of a model in the space of ``model.rank`` landmarks."""
    rank = min(int(model.rank or 1), data.index.size)
    dtype = _feature_type(rows, rank)
    random = check_random_state(0 if model.random_state is None else model.random_state)
    choice = Budget(0.0, None, budget.time_limit and max(budget.seconds_left, 1e-3))
    choice.flag = budget.flag
    counts = upper > 0.0
    weight = None if counts.all() else counts.astype(np.float64)
    n_classes, pairwise = data.classes.size, model.multi_class == "ovo"
    size, first = sample_size(rank), None
    if np.count_nonzero(counts) > size:  # of fewer rows, to choose would be to solve the exact SVMs
        memory = float(model.cache_size)
        first = choose_svm_landmarks(
            rows, data.index, n_classes, upper, pairwise, rank, size, dtype, memory, random, choice
        )
    landmarks = find_landmarks(rows, rank, SELECTION, random, dtype, choice, weight, first=first)
    if landmarks.features is None:
        raise KeyboardInterrupt  # before there was a model to keep
    if not landmarks.chosen.size:
        raise InputError(
            f"kernel={rows.kernel!r} is 0 between all rows: there is no direction in which they differ. Use "
            "another kernel, or other parameters of this one."
        )
    features: Array = np.ascontiguousarray(landmarks.features)

    def fit(upper: Array, within: Budget) -> list[LandmarkSVM]:
        return fit_landmark_svms(
            features,
            data.index,
            n_classes,
            upper,
            pairwise,
            float(model.tol),
            float(model.cache_size),
            within,
            None if model.max_iter == -1 else model.max_iter,
        )

    svms = fit(upper, budget)
    layout = _lay_out(svms, landmarks, data.index, n_classes, pairwise and n_classes > 2)
    errors = measure_score_errors(svms, features, rows, landmarks)
    certificate = certify_landmark_svms(svms, landmarks, errors, float(model.tol))
    calibration, calibrated = None, True
    if probabilities:
        calibration, calibrated = _calibrate(fit, features, upper, data, pairwise, model.random_state, budget)
    return LandmarkSolution(
        svms, rows, layout, _multipliers(svms, data.index.size), certificate, calibration, calibrated
    )


def _feature_type(rows: KernelRows, rank: int) -> np.dtype[Any]:
    """Return the precision of features: float32, whose rounding is measured, unless there are few."""
    single = np.isfinite(rows.entry_error(np.float32))
    dtype = np.dtype(np.float32 if single and rows.n_rows * rank > SMALL else np.float64)
    size = rows.n_rows * rank * dtype.itemsize
    if size > MOST_FEATURES:
        raise InputError(
            f"rank={rank} makes features of {size / 2**30:.3g} GB of {rows.n_rows} rows, and "
            f"{MOST_FEATURES >> 30} are the most. Use a rank of at most "
            f"{MOST_FEATURES // (rows.n_rows * dtype.itemsize)}, or fewer rows."
        )
    return dtype


def _lay_out(
    svms: list[LandmarkSVM], landmarks: Landmarks, labels: Array, n_classes: int, pairwise: bool
) -> SupportLayout:
    """Return landmarks and coefficients as the public attributes have them."""
    w = np.column_stack([svm.normal for svm in svms])
    beta = solve_triangular(landmarks.triangle, w, lower=True, trans=1)
    order = np.lexsort((landmarks.chosen, labels[landmarks.chosen]))
    support = landmarks.chosen[order]
    return SupportLayout(
        support=support.astype(np.int32),
        n_support=np.bincount(labels[support], minlength=n_classes).astype(np.int32),
        dual_coef=np.ascontiguousarray(beta[order].T),
        intercept=np.array([svm.intercept for svm in svms]),
        pairwise=pairwise,
    )


def _multipliers(svms: list[LandmarkSVM], count: int) -> Any:
    """Return a y of every row in every SVM."""
    lines, columns, values = [], [], []
    for number, svm in enumerate(svms):
        there = np.flatnonzero(svm.alpha)
        lines.append(np.full(there.size, number))
        columns.append(svm.index[there])
        values.append((svm.y * svm.alpha)[there])
    places = np.concatenate(lines), np.concatenate(columns)
    made = sp.csr_matrix((np.concatenate(values), places), shape=(len(svms), count))
    made.sort_indices()
    return made


def _calibrate(
    fit: Callable[[Array, Budget], list[LandmarkSVM]],
    features: Array,
    upper: Array,
    data: LabelledData,
    pairwise: bool,
    seed: Any,
    budget: Budget,
) -> tuple[Calibration, bool]:
    """Return the slopes of every SVM, by cross-validation on the same features."""

    def decide(without: Array, held: Array) -> Array:
        left = None if budget.time_limit is None else max(budget.seconds_left, 0.0)
        quiet = Budget(budget.tol, None, left)
        quiet.flag = budget.flag
        svms = fit(without, quiet)
        normals = np.column_stack([svm.normal for svm in svms])
        return np.asarray(features[held] @ normals) + np.array([svm.intercept for svm in svms])

    return calibrate(decide, data, upper, pairwise and data.classes.size > 2, seed, budget)


def recompute_in_landmarks(model: SVC, claimed: Certificate, data: LabelledData, upper: Array) -> Recomputed:
    """Hand the public attributes and the data to the checker."""
    count = data.index.size
    multipliers = model.multipliers_
    if multipliers.shape[1] != count:
        raise CertificateError(
            f"The model was fitted on {multipliers.shape[1]} rows, not on {count}: the data are not those of "
            "the fit."
        )
    known = np.repeat(np.arange(model.n_support_.size), model.n_support_)
    if not np.array_equal(data.index[model.support_], known):
        raise CertificateError(f"The landmarks have other labels. {REASONS}")
    coefficients = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_
    y = np.zeros(multipliers.shape)
    for number, (positive, negative) in enumerate(
        class_sides(model.n_support_.size, model.multi_class == "ovo")
    ):
        there = upper > 0.0
        there &= (data.index == positive) | (negative is None) | (data.index == negative)
        y[number, there] = np.where(data.index[there] == positive, 1.0, -1.0)
    vectors, rows = model.support_vectors_, data.X
    if model.kernel_.form is not None:  # dense rows are moved to their mean, where rounding is least
        vectors, rows = densify_if_small(vectors), densify_if_small(rows)
    claims = TraceClaims(vectors, model.support_, model.kernel_, rows, (upper > 0.0).astype(np.float64))
    svms = SVMClaims(coefficients, model.intercept_, multipliers.toarray(), y, upper)
    return recompute_landmark_svms(claims, svms, float(model.trace_held_), claimed)
