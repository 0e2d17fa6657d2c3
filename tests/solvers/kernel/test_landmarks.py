"""Landmarks: features and trace error as NumPy has them, the choice, and what is left to chance."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.errors import InputError
from sixfold.geometry.kernels import RBF, Called, Linear, Polynomial, Precomputed, Sigmoid
from sixfold.solvers.kernel import landmarks
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.kernel.landmarks import (
    SELECTIONS,
    all_pivots,
    certify_trace,
    choose_pivots,
    features_in_place,
    find_landmarks,
)
from tests.oracles.landmarks import pivoted_cholesky, trace_error

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 4))
KERNEL = RBF(gamma=0.3)
ROUNDING = {np.dtype(np.float32): 3e-5, np.dtype(np.float64): 1e-11}


def found(X=X, rank=30, selection="pivoted_cholesky", kernel=KERNEL, seed=0, tol=0.0, **options):
    options = {"dtype": X.dtype} | options
    dtype = options.pop("dtype")
    rows = KernelRows(X, kernel)
    return find_landmarks(rows, rank, selection, np.random.RandomState(seed), dtype, Budget(tol), **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("sampled", [False, True])
def test_features_are_those_of_cholesky_with_these_pivots(selection, dtype, sampled, monkeypatch):
    if sampled:
        monkeypatch.setattr(landmarks, "LEAST_SAMPLE", 100)
        monkeypatch.setattr(landmarks, "SAMPLE", 1)
    rows = X.astype(dtype)
    one = found(rows, selection=selection)
    K = KERNEL(rows)
    F, left = pivoted_cholesky(K, one.chosen)
    allowed = ROUNDING[np.dtype(dtype)]
    assert one.chosen.size == np.unique(one.chosen).size == 30
    np.testing.assert_allclose(one.features, F, atol=30 * allowed)
    np.testing.assert_allclose(one.left, left, atol=30 * allowed)
    np.testing.assert_allclose(one.triangle, F[one.chosen], atol=1e-10)
    assert one.error == pytest.approx(trace_error(K, one.chosen), abs=10 * allowed)
    assert abs(one.error - trace_error(K, one.chosen)) <= one.error_rounding
    assert one.features.dtype == dtype


@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_same_seed_makes_the_same_choice_on_any_number_of_threads(selection):
    made = []
    for threads in (1, 2, 3):
        before = core.limit_threads(threads)
        one = found(np.tile(X, (4, 1)) + 0.1, 60, selection)
        core.limit_threads(before)
        made.append((one.chosen.tobytes(), one.features.tobytes(), one.error))
    assert len(set(made)) == 1
    other = found(np.tile(X, (4, 1)) + 0.1, 60, selection, seed=1)
    assert other.chosen.tobytes() != made[0][0]


def test_uniform_landmarks_are_the_rows_that_scikit_learn_draws():
    wanted = np.random.RandomState(3).permutation(300)[:30]
    assert np.array_equal(found(selection="uniform", seed=3).chosen, wanted)


def test_chosen_landmarks_hold_more_than_random_ones():
    errors = {
        selection: np.mean([found(selection=selection, seed=seed).error for seed in range(8)])
        for selection in SELECTIONS
    }
    assert errors["pivoted_cholesky"] < 0.95 * errors["uniform"]
    assert errors["kmeans++"] < errors["uniform"]


def test_no_space_of_as_many_dimensions_holds_more_than_the_largest_eigenvalues():
    values = np.linalg.eigvalsh(KERNEL(X))
    assert values[:-30].sum() / values.sum() < found().error < 3.0 * values[:-30].sum() / values.sum()


@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_tolerance_takes_no_more_landmarks_than_it_needs(selection):
    one = found(rank=300, selection=selection, tol=0.05)
    K = KERNEL(X)
    assert trace_error(K, one.chosen) <= 0.05 < trace_error(K, one.chosen[:-1])
    np.testing.assert_allclose(one.left, pivoted_cholesky(K, one.chosen)[1], atol=1e-10)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_duplicates_are_no_landmarks(selection):
    rows = np.repeat(X[:20], 5, axis=0)
    one = found(rows, 60, selection)
    assert one.exhausted
    assert sorted(one.chosen // 5) == list(range(20))
    assert one.error < 1e-9
    assert np.isfinite(one.inverse).all()


def test_a_linear_kernel_has_as_many_landmarks_as_columns():
    one = found(rank=50, kernel=Linear())
    assert one.chosen.size == 4
    assert one.exhausted
    assert one.error < 1e-10


@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_row_of_weight_0_is_left_out_and_weights_count_in_the_trace(selection):
    weight = np.ones(300)
    weight[:250] = 0.0
    weight[250] = 20.0
    one = found(selection=selection, weight=weight)
    assert one.chosen.min() >= 250
    assert one.error == pytest.approx(trace_error(KERNEL(X), one.chosen, weight), abs=1e-10)


def test_every_row_is_a_landmark_where_as_many_are_wanted():
    one = found(X[:50], 80)
    assert sorted(one.chosen) == list(range(50))
    np.testing.assert_allclose(one.features @ one.features.T, KERNEL(X[:50]), atol=1e-10)


@pytest.mark.parametrize(
    ("rows", "kernel"),
    [
        (sp.csr_array(np.where(X > 1.0, X, 0.0)), KERNEL),
        (X, Polynomial(2, 0.5, 1.0)),
        (X, Called(lambda A, B: 1.0 / (1.0 + np.square(A[:, None] - B[None]).sum(axis=2)))),
        (X, 2.0 * KERNEL + Linear()),
        (KERNEL(X), Precomputed()),
    ],
)
def test_any_kernel_and_sparse_rows(rows, kernel):
    one = found(rows, 10, kernel=kernel, dtype=np.float64)
    K = rows if isinstance(kernel, Precomputed) else kernel(rows)
    F, _ = pivoted_cholesky(K, one.chosen)
    np.testing.assert_allclose(one.features, F, atol=1e-8 * np.abs(F).max())
    assert one.error == pytest.approx(trace_error(K, one.chosen), abs=1e-9)


def test_a_kernel_that_is_no_dot_product_is_told_apart():
    with pytest.raises(InputError, match=r"is not positive semi-definite: row .* Use another kernel"):
        found(kernel=Sigmoid(gamma=1.0, coef0=-1.0))
    with pytest.raises(InputError, match="is not positive semi-definite"):
        found(3.0 * X, 50, kernel=Sigmoid(gamma=0.1, coef0=0.5))


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e100])
def test_scales_do_not_matter(scale):
    one = found(scale * X, kernel=RBF(gamma=0.3 / scale / scale))
    np.testing.assert_array_equal(one.chosen, found().chosen)
    linear = found(scale * X, 3, kernel=Linear())
    assert linear.error == pytest.approx(found(X, 3, kernel=Linear()).error)


def test_rows_that_are_all_zero_have_no_landmark():
    one = found(np.zeros((5, 2)), 3, kernel=Linear())
    assert one.chosen.size == 0
    assert one.error == 0.0


def test_one_row_and_constant_rows():
    assert found(X[:1], 1).chosen.tolist() == [0]
    assert found(np.ones((9, 3)), 4).chosen.size == 1


def test_time_keeps_the_first_landmarks_and_a_callback_ends_the_choice():
    budget = Budget(0.0, None, 1e-9)
    one = find_landmarks(
        KernelRows(X, KERNEL), 100, "pivoted_cholesky", np.random.RandomState(0), np.float64, budget
    )
    assert 0 < one.chosen.size < 100
    assert budget.stopped_by == "time_limit=1e-09 s"
    budget = Budget(0.0, None, None, [lambda record: record.iteration == 2])
    two = find_landmarks(KernelRows(X, KERNEL), 100, "uniform", np.random.RandomState(0), np.float64, budget)
    assert two.chosen.size == 20
    np.testing.assert_allclose(budget.history[-1].objective, two.error)


def test_features_of_all_rows_are_left_out_where_nobody_asks(monkeypatch):
    monkeypatch.setattr(landmarks, "LEAST_SAMPLE", 50)
    monkeypatch.setattr(landmarks, "SAMPLE", 1)
    monkeypatch.setattr(landmarks, "STREAMED", 1000)
    with_features, without = found(), found(features=False)
    assert without.features is None
    assert without.error == pytest.approx(with_features.error, rel=1e-12)
    assert np.array_equal(without.left, with_features.left)


def test_features_of_new_rows_are_kernel_values_times_the_inverse():
    one = found()
    K = np.ascontiguousarray(KERNEL(X, X[one.chosen]))
    wanted = np.linalg.solve(one.triangle, K.T).T
    lengths = features_in_place(K, one.inverse, Budget())
    np.testing.assert_allclose(K, wanted, atol=1e-9)
    np.testing.assert_allclose(lengths, np.square(wanted).sum(axis=1))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 1000))
def test_pivots_of_any_matrix_are_factored(count, rank, seed):
    A = np.random.default_rng(seed).normal(size=(count, rank))
    H = A @ A.T
    for most in (1, 3, count):
        taken, B = all_pivots(H, 1e-9, most)
        assert taken.size <= min(most, count, rank)
        np.testing.assert_allclose(B @ B.T, H[np.ix_(taken, taken)], atol=1e-9)
        assert np.all(np.diagonal(B) > 0)


def test_the_pivot_that_takes_most_is_the_one_that_the_whole_matrix_names():
    # Every row is drawn once: the estimate is the sum itself.
    K = KERNEL(X[:40])
    left = np.ones(40)
    taken = choose_pivots(K, 1e-9, 5, float(left.sum()))
    R, greedy = K.copy(), []
    for _ in range(5):
        gain = np.square(R).sum(axis=0) / np.maximum(R.diagonal(), 1e-12)
        gain[greedy] = -1.0
        greedy.append(int(gain.argmax()))
        R -= np.outer(R[:, greedy[-1]], R[greedy[-1]]) / R[greedy[-1], greedy[-1]]
    assert taken[0] == greedy[0]
    assert trace_error(K, taken) < 1.1 * trace_error(K, np.array(greedy))


def test_the_certificate_says_what_is_held():
    one = found()
    certificate = certify_trace(one, None)
    assert certificate.kind == "trace error"
    assert certificate.objective == pytest.approx(one.error, abs=1e-9)
    assert certificate.lower_bound == 0.0
    assert certificate.converged
    assert "the space of 30 landmarks leaves out" in str(certificate)
    assert not certify_trace(one, 1e-3).converged
