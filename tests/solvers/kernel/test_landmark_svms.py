"""SVMs in a space of features: gaps that hold, limits, and the same optimum by rounds and by pairs."""

import numpy as np
import pytest

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.geometry.kernels import RBF
from sixfold.solvers.kernel import landmark_svms
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.kernel.landmark_svms import (
    certify_landmark_svms,
    fit_landmark_svms,
    measure_score_errors,
    normals,
    percent,
)
from sixfold.solvers.kernel.landmarks import find_landmarks

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(900, 3))
LABELS = (X @ RANDOM.normal(size=(3, 3)) + 0.5 * RANDOM.normal(size=(900, 3))).argmax(axis=1)
ROWS = KernelRows(X, RBF(gamma=0.4))


@pytest.fixture(scope="module")
def landmarks():
    return find_landmarks(ROWS, 40, "pivoted_cholesky", np.random.RandomState(0), np.float64, Budget(0.0))


def fit(features, tol=1e-4, pairwise=True, upper=None, budget=None, most=None):
    upper = np.full(900, 2.0) if upper is None else upper
    budget = Budget(tol) if budget is None else budget
    return fit_landmark_svms(features, LABELS, 3, upper, pairwise, tol, 100, budget, most)


@pytest.fixture
def rounds(monkeypatch):
    monkeypatch.setattr(landmark_svms, "FEW_ROWS", 0)
    monkeypatch.setattr(landmark_svms, "FIRST_ROWS", 50)


def check_gaps(svms, features):
    for svm in svms:
        w = features[svm.index].astype(np.float64).T @ (svm.y * svm.alpha)
        assert np.all((svm.alpha >= 0.0) & (svm.alpha <= svm.upper))
        assert abs(svm.alpha @ svm.y) <= 1e-9 * svm.alpha.sum()
        slack = np.maximum(1.0 - svm.y * (features[svm.index] @ svm.normal + svm.intercept), 0.0)
        primal = 0.5 * svm.normal @ svm.normal + svm.upper @ slack
        dual = svm.alpha.sum() - 0.5 * w @ w
        assert svm.objective == pytest.approx(primal, rel=1e-5)
        assert svm.gap == pytest.approx(primal - dual, abs=1e-5 * primal)


@pytest.mark.parametrize("pairwise", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounds_reach_the_tolerance_and_the_objective_of_pairs(landmarks, pairwise, dtype, monkeypatch):
    features = landmarks.features.astype(dtype)
    by_pairs = fit_landmark_svms(features, LABELS, 3, np.full(900, 2.0), pairwise, 1e-6, 100, Budget(1e-6))
    monkeypatch.setattr(landmark_svms, "FEW_ROWS", 0)
    monkeypatch.setattr(landmark_svms, "FIRST_ROWS", 50)
    svms = fit(features, 1e-4, pairwise)
    check_gaps(svms, features)
    for one, other in zip(svms, by_pairs, strict=True):
        assert one.gap <= 1e-4 * one.scale
        assert one.objective - one.gap - 1e-5 <= other.objective <= one.objective + 1e-4 * one.scale


def test_rounds_do_not_depend_on_the_number_of_threads(landmarks, rounds):
    made = []
    for threads in (1, 2, 3):
        before = core.limit_threads(threads)
        svms = fit(landmarks.features)
        core.limit_threads(before)
        made.append([(svm.alpha.tobytes(), svm.intercept) for svm in svms])
    assert made[0] == made[1] == made[2]


def test_rows_of_weight_0_are_left_out(landmarks, rounds):
    upper = np.full(900, 2.0)
    upper[::3] = 0.0
    svms = fit(landmarks.features, upper=upper)
    assert not any(np.isin(svm.index, np.arange(0, 900, 3)).any() for svm in svms)


def test_a_limit_of_passes_ends_the_rounds(landmarks, rounds):
    budget = Budget(1e-9)
    svms = fit(landmarks.features, 1e-9, budget=budget, most=3)
    assert all(svm.passes <= 3 for svm in svms)
    assert budget.stopped_by == "max_iter=3"
    check_gaps(svms, landmarks.features)


def test_time_and_callbacks_keep_the_best_so_far(landmarks, rounds):
    budget = Budget(1e-4, None, 1e-9)
    check_gaps(fit(landmarks.features, budget=budget), landmarks.features)
    assert budget.stopped_by == "time_limit=1e-09 s"
    budget = Budget(1e-6, None, None, [lambda record: True])
    check_gaps(fit(landmarks.features, 1e-6, budget=budget), landmarks.features)
    assert len(budget.history) == 1


def test_what_rounds_do_not_reach_pairs_do(landmarks, rounds, monkeypatch):
    monkeypatch.setattr(landmark_svms, "MOST_ROUNDS", 1)
    svms = fit(landmarks.features, 1e-6)
    assert all(svm.gap <= 1e-6 * svm.scale for svm in svms)


def test_normals_are_the_sums():
    features, signed = RANDOM.normal(size=(50, 6)).astype(np.float32), RANDOM.normal(size=(50, 2))
    signed[10:40] = 0.0
    np.testing.assert_allclose(normals(features, signed), features.astype(np.float64).T @ signed)


def test_the_certificate_adds_up_and_says_what_is_held(landmarks, rounds):
    svms = fit(landmarks.features)
    errors = measure_score_errors(svms, landmarks.features, ROWS, landmarks)
    certificate = certify_landmark_svms(svms, landmarks, errors, 1e-4)
    assert certificate.kind == "duality gap"
    assert certificate.converged
    assert certificate.gap >= sum(svm.gap for svm in svms)
    assert certificate.rounding < 1e-6
    assert f"40 landmarks, which holds {percent(1 - landmarks.error)} of" in str(certificate)


def test_scores_in_single_precision_are_known_to_be_off(rounds):
    single = find_landmarks(ROWS, 40, "uniform", np.random.RandomState(0), np.float32, Budget(0.0))
    svms = fit(single.features)
    errors = measure_score_errors(svms, single.features, ROWS, single)
    beta = np.linalg.solve(single.triangle.T, np.column_stack([svm.normal for svm in svms]))
    exact = ROWS.block(None, single.chosen, np.float64, Budget()) @ beta
    for k, svm in enumerate(svms):
        assert np.abs(exact[svm.index, k] - svm.scores).max() <= errors[k] < 1e-3


def test_what_is_short_for_rounding_goes_on_by_rounds(landmarks, rounds, monkeypatch):
    """It once sent all SVMs to pairs of rows, which took six times as long as all of the rounds."""
    exact, calls = landmark_svms.finish, []

    def short_at_first(features, svms):
        normals = exact(features, svms)
        calls.append(len(svms))
        if len(calls) == 1:
            svms[1].gap = 1e3
        return normals

    monkeypatch.setattr(landmark_svms, "finish", short_at_first)
    monkeypatch.setattr(landmark_svms._ByPairs, "fit", lambda *arguments: pytest.fail("by pairs"))
    svms = fit(landmarks.features)
    assert len(calls) == 2
    check_gaps(svms, landmarks.features)
    assert all(svm.gap <= 1e-4 * svm.scale for svm in svms)
