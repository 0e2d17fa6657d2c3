"""Landmarks for SVMs: those of a plain loop, of use to the SVM, and filled up where SVMs need few."""

import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold import SVC
from sixfold.budget import Budget
from sixfold.errors import StoppedEarly
from sixfold.geometry.kernels import RBF
from sixfold.learners.svm import landmark_svc
from sixfold.solvers.kernel import landmarks, svm_landmarks
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.kernel.landmarks import find_landmarks
from sixfold.solvers.kernel.svm_landmarks import choose_nearest, choose_svm_landmarks, draw_sample
from tests.oracles.landmarks import rbf

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(900, 4))
LABELS = (X @ RANDOM.normal(size=(4, 3)) + 0.3 * np.sin(4.0 * X[:, :3])).argmax(axis=1)


@pytest.fixture
def short(monkeypatch):
    """Let a few hundred rows be too many for the exact SVM."""
    monkeypatch.setattr(landmarks, "LEAST_SAMPLE", 200)


def choose(
    labels=LABELS, rank=30, size=300, dtype=np.float64, upper=None, rows=X, pairwise=True, budget=None
):
    upper = np.ones(rows.shape[0]) if upper is None else upper
    return choose_svm_landmarks(
        KernelRows(rows, RBF(gamma=0.5)),
        labels,
        int(labels.max()) + 1,
        upper,
        pairwise,
        rank,
        size,
        dtype,
        100.0,
        np.random.RandomState(0),
        Budget(0.0) if budget is None else budget,
    )


def nearest_by_projection(K, F, count):
    """Take in turn the row after which the functions are nearest to the space, by least squares."""
    taken = []
    for _ in range(count):
        held = np.full(K.shape[0], -np.inf)
        for i in range(K.shape[0]):
            if i not in taken:
                some = [*taken, i]
                held[i] = np.sum(F[some] * np.linalg.solve(K[np.ix_(some, some)], F[some]))
        taken.append(int(held.argmax()))
    return taken


def test_the_nearest_are_those_of_a_plain_loop():
    K = rbf(X[:40], X[:40], 0.5)
    F = K @ RANDOM.normal(size=(40, 3))
    assert choose_nearest(K, F, 1e-9, 12).tolist() == nearest_by_projection(K, F, 12)


def test_blocks_go_on_from_the_space_so_far(monkeypatch):
    """With one landmark a block and all rows to choose from, all of it is the plain loop."""
    monkeypatch.setattr(landmarks, "SMALLEST_BLOCK", 1)
    monkeypatch.setattr(svm_landmarks, "CHOICE", 1000)
    upper = np.zeros(900)
    upper[:60] = 1.0
    labels = (LABELS == 1).astype(int)
    chosen = choose(labels, 9, 60, upper=upper)
    exact = SVC(gamma=0.5, tol=1e-2).fit(X[:60], labels[:60])
    K = rbf(exact.support_vectors_, exact.support_vectors_, 0.5)
    order = nearest_by_projection(K, K @ exact.dual_coef_.T, 9)
    assert chosen.tolist() == exact.support_[order].tolist()


def test_a_row_of_which_nothing_is_left_is_not_taken():
    rows = np.repeat(X[:30], 20, axis=0)
    chosen = choose(np.repeat(LABELS[:30], 20), 50, 300, rows=rows)
    assert chosen.size <= 30
    assert np.unique(rows[chosen], axis=0).shape[0] == chosen.size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("pairwise", [True, False])
def test_svms_in_their_space_are_better_than_in_one_for_the_trace(short, monkeypatch, dtype, pairwise):
    rows = X.astype(dtype)
    parameters = {"gamma": 0.5, "rank": 25, "multi_class": "ovo" if pairwise else "ovr", "tol": 1e-4}
    model = SVC(**parameters).fit(rows, LABELS)
    model.certificate_.verify(rows, LABELS)
    monkeypatch.setattr(landmark_svc, "choose_svm_landmarks", lambda *arguments: None)
    traced = SVC(**parameters).fit(rows, LABELS)
    assert model.certificate_.converged
    assert model.certificate_.objective < 0.97 * traced.certificate_.objective
    assert model.trace_held_ < traced.trace_held_


def test_where_svms_need_few_the_trace_decides_on_the_rest(short):
    far = X + 20.0 * (LABELS[:, None] == 1)
    model = SVC(gamma=0.05, rank=40).fit(far, LABELS == 1)
    assert model.support_.size == 40
    model.certificate_.verify(far, LABELS == 1)


def test_more_svms_than_functions(short):
    labels = RANDOM.integers(0, 13, size=900)
    labels[:3] = 13  # a rare class
    model = SVC(gamma=0.5, rank=30).fit(X, labels)
    assert model.dual_coef_.shape == (91, 30)
    model.certificate_.verify(X, labels)


def test_rows_without_weight_are_no_landmarks(short):
    weight = np.where(np.arange(900) % 3 == 0, 0.0, 1.0 + RANDOM.uniform(size=900))
    model = SVC(gamma=0.5, rank=40).fit(X, LABELS, weight)
    assert np.all(weight[model.support_] > 0)
    model.certificate_.verify(X, LABELS, weight)


@pytest.mark.parametrize("labels", [[0] * 95 + [1] * 5, [0] * 99 + [1]])
def test_a_sample_has_some_rows_of_every_class(labels):
    labels = np.array(labels)
    sample = draw_sample(labels, np.ones(100), 2, 20, np.random.RandomState(0))
    assert sample.size == 20
    assert np.unique(sample).size == 20
    assert (labels[sample] == 1).sum() == (labels == 1).sum()


def test_a_sample_of_few_rows_and_many_classes():
    labels = np.repeat(np.arange(50), 4)
    upper = np.where(np.arange(200) % 4 == 0, 0.0, 1.0)
    sample = draw_sample(labels, upper, 50, 60, np.random.RandomState(0))
    assert sample.size == 60
    assert np.array_equal(np.unique(labels[sample]), np.arange(50))
    assert np.all(upper[sample] > 0)


@pytest.mark.parametrize("kernel", ["linear", "poly", "precomputed"])
def test_kernels_of_every_kind(short, kernel):
    rows = rbf(X, X, 0.5) if kernel == "precomputed" else X
    model = SVC(kernel=kernel, rank=20).fit(rows, LABELS)
    assert model.score(rows, LABELS) > 0.7
    model.certificate_.verify(rows, LABELS)
    if kernel == "linear":
        assert model.support_.size == 4


def test_sparse_rows_are_dense_ones(short):
    dense, sparse = (SVC(gamma=0.5, rank=20).fit(rows, LABELS) for rows in (X, sp.csr_array(X)))
    assert np.array_equal(dense.support_, sparse.support_)


def test_choices_do_not_depend_on_the_number_of_threads(short):
    made = [SVC(gamma=0.5, rank=40, n_jobs=jobs).fit(X, LABELS).dual_coef_.tobytes() for jobs in (1, 2)]
    assert made[0] == made[1]


@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_extreme_penalties(short, C):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedEarly)
        model = SVC(gamma=0.5, rank=20, C=C, max_iter=2000).fit(X, LABELS)
    assert model.support_.size == 20
    model.certificate_.verify(X, LABELS)


def test_without_time_there_is_a_model_all_the_same(short):
    with pytest.warns(StoppedEarly, match="Stopped by time_limit"):
        model = SVC(gamma=0.5, rank=40, time_limit=1e-9).fit(X, LABELS)
    assert model.predict(X).shape == (900,)
    model.certificate_.verify(X, LABELS)


def test_ctrl_c_in_the_choice_leaves_a_usable_model(short, monkeypatch):
    one_block = svm_landmarks._Needed.block

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return one_block(*arguments)

    monkeypatch.setattr(svm_landmarks._Needed, "block", interrupted)
    model = SVC(gamma=0.5, rank=40)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, LABELS)
    assert model.predict(X).shape == (900,)


def test_those_that_come_first_stay_first():
    first = np.array([5, 700, 31])
    found = find_landmarks(
        KernelRows(X, RBF(gamma=0.5)),
        20,
        "pivoted_cholesky",
        np.random.RandomState(0),
        np.float64,
        Budget(0.0),
        first=first,
    )
    assert found.chosen[:3].tolist() == first.tolist()
    assert np.unique(found.chosen).size == 20
    alone = find_landmarks(
        KernelRows(X, RBF(gamma=0.5)),
        3,
        "pivoted_cholesky",
        np.random.RandomState(0),
        np.float64,
        Budget(0.0),
        first=first,
    )
    assert alone.chosen.tolist() == first.tolist()
    K = rbf(X, X[first], 0.5)
    held = np.einsum("ij,ij->", K, np.linalg.solve(rbf(X[first], X[first], 0.5), K.T).T)
    assert alone.trace_left == pytest.approx(900.0 - held)
