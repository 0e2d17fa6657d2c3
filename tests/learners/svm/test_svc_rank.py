"""SVC(rank=...): the exact SVC where every row is a landmark, and what it answers, says and refuses."""

import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold import SVC, GridSearchCV, kernels
from sixfold.errors import InputError, StoppedEarly
from sixfold.learners.svm import landmark_svc
from sixfold.solvers.kernel import landmark_svms, landmarks
from sixfold.solvers.kernel.landmark_svms import percent
from tests.oracles.landmarks import rbf

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(200, 3))
THREE = (X @ RANDOM.normal(size=(3, 3)) + 0.3 * RANDOM.normal(size=(200, 3))).argmax(axis=1)
TWO = np.where(THREE == 1, "yes", "no")
NEW = RANDOM.normal(size=(50, 3))


@pytest.mark.parametrize("labels", [TWO, THREE])
@pytest.mark.parametrize(
    "parameters", [{}, {"multi_class": "ovr"}, {"kernel": "poly", "coef0": 1.0, "degree": 5}]
)
def test_with_every_row_as_a_landmark_it_is_the_exact_one(labels, parameters):
    exact = SVC(gamma=0.5, C=2.0, tol=1e-6, **parameters).fit(X, labels)
    model = SVC(gamma=0.5, C=2.0, tol=1e-6, rank=200, **parameters).fit(X, labels)
    np.testing.assert_allclose(model.decision_function(NEW), exact.decision_function(NEW), atol=2e-3)
    assert np.array_equal(model.predict(NEW), exact.predict(NEW))
    scale = exact.certificate_.scale
    assert model.certificate_.objective == pytest.approx(exact.certificate_.objective, abs=2e-6 * scale)
    np.testing.assert_allclose(model.margin_, exact.margin_, rtol=1e-3)


def test_by_rounds_it_is_the_exact_one_as_well(monkeypatch):
    monkeypatch.setattr(landmark_svms, "FEW_ROWS", 0)
    exact = SVC(gamma=0.5, C=2.0, tol=1e-5).fit(X, THREE)
    model = SVC(gamma=0.5, C=2.0, tol=1e-5, rank=200).fit(X, THREE)
    assert model.certificate_.converged
    np.testing.assert_allclose(model.decision_function(NEW), exact.decision_function(NEW), atol=0.05)


def test_answers_are_kernel_values_with_the_landmarks_times_coefficients():
    model = SVC(gamma=0.5, rank=15, decision_function_shape="ovo").fit(X, THREE)
    assert model.support_vectors_.shape == (15, 3)
    assert model.dual_coef_.shape == (3, 15)
    assert np.array_equal(THREE[model.support_], np.repeat(model.classes_, model.n_support_))
    expected = rbf(NEW, X[model.support_], 0.5) @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(NEW), expected, atol=1e-9)
    wins = np.column_stack([expected[:, 0] > 0, expected[:, 1] > 0, expected[:, 2] > 0])
    votes = np.column_stack(
        [wins[:, 0] + wins[:, 1], ~wins[:, 0] + 0 + wins[:, 2], ~wins[:, 1] + 0 + ~wins[:, 2]]
    )
    assert np.array_equal(model.predict(NEW), votes.argmax(axis=1))


def test_it_says_what_it_is_optimal_in():
    model = SVC(gamma=0.5, rank=15).fit(X, THREE)
    text = str(model.certificate_)
    assert text.startswith("duality gap: ")
    assert f"in the space of 15 landmarks, which holds {percent(model.trace_held_)} of" in text
    assert model.solver_ == "landmarks"
    assert model.certificate_.converged
    model.certificate_.verify(X, THREE)


def test_a_larger_rank_has_a_smaller_objective_and_holds_more():
    models = [SVC(gamma=0.5, rank=rank, tol=1e-5).fit(X, THREE) for rank in (5, 20, 80, 200)]
    held, objectives = (
        [m.trace_held_ for m in models],
        [m.certificate_.objective for m in models],
    )
    assert held == sorted(held)
    assert objectives == sorted(objectives, reverse=True)


def test_explanations_and_probabilities_are_those_of_the_landmarks():
    model = SVC(gamma=0.5, rank=20, probability=True).fit(X, TWO)
    decisions = model.decision_function(NEW)
    probabilities = model.predict_proba(NEW)
    assert np.array_equal(probabilities[:, 1] > 0.5, decisions > 0)
    told = model.explain(NEW[0])
    assert told.answer == model.predict(NEW[:1])[0]
    assert abs(decisions[0]) == pytest.approx(abs(float(told.to_dict()["decision"])), rel=1e-6)


def test_several_classes_have_probabilities():
    model = SVC(gamma=0.5, rank=30, probability=True).fit(X, THREE)
    probabilities = model.predict_proba(NEW)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.mean(probabilities.argmax(axis=1) == model.predict(NEW)) > 0.9


def test_weights_are_repeated_rows():
    weight = RANDOM.integers(0, 3, size=200)
    weight[:3] = 1
    repeated = np.repeat(np.arange(200), weight)
    parameters = {"gamma": 0.5, "rank": 200, "tol": 1e-6}
    weighted = SVC(**parameters).fit(X, THREE, weight)
    plain = SVC(**parameters).fit(X[repeated], THREE[repeated])
    assert not np.isin(weighted.support_, np.flatnonzero(weight == 0)).any()
    np.testing.assert_allclose(weighted.decision_function(NEW), plain.decision_function(NEW), atol=5e-3)
    balanced = SVC(gamma=0.5, rank=20, class_weight="balanced").fit(X, THREE)
    balanced.certificate_.verify(X, THREE)


@pytest.mark.parametrize("kernel", ["linear", "poly", kernels.RBF(sigma=1.0) + kernels.linear, "precomputed"])
def test_kernels_of_every_kind(kernel):
    given = kernel == "precomputed"
    rows, new = (rbf(X, X, 0.5), rbf(NEW, X, 0.5)) if given else (X, NEW)
    model = SVC(kernel=kernel, rank=20).fit(rows, THREE)
    assert model.score(rows, THREE) > 0.7
    assert model.predict(new).shape == (50,)
    model.certificate_.verify(rows, THREE)
    if kernel == "linear":
        assert model.support_.size == 3
        np.testing.assert_allclose(model.coef_, model.dual_coef_ @ X[model.support_])


def test_objects_that_only_a_function_can_compare():
    words = ["a" * (1 + k % 7) + "b" * (k % 5) for k in range(60)]
    labels = [len(word) > 5 for word in words]

    def kernel(some, others):
        counts = [
            np.array([[w.count("a"), w.count("b")] for w in part], dtype=float) for part in (some, others)
        ]
        return rbf(*counts, 0.3)

    model = SVC(kernel=kernel, rank=10, C=10.0).fit(words, labels)
    assert model.score(words, labels) > 0.9


def test_sparse_rows_and_single_precision():
    rows = np.where(np.abs(X) > 0.5, X, 0.0)
    dense, sparse = (SVC(gamma=0.5, rank=20).fit(table, THREE) for table in (rows, sp.csr_array(rows)))
    np.testing.assert_allclose(sparse.decision_function(rows), dense.decision_function(rows), atol=1e-2)
    assert sp.issparse(sparse.dual_coef_)
    single = SVC(gamma=0.5, rank=20).fit(rows.astype(np.float32), THREE)
    assert single.support_vectors_.dtype == np.float32
    single.certificate_.verify(rows.astype(np.float32), THREE)


def test_features_in_single_precision_are_certified(monkeypatch):
    monkeypatch.setattr(landmark_svc, "SMALL", 0)
    monkeypatch.setattr(landmark_svms, "FEW_ROWS", 0)
    model = SVC(gamma=0.5, rank=60).fit(X, THREE)
    assert model.certificate_.converged
    assert 0.0 < model.certificate_.rounding < 1e-2
    model.certificate_.verify(X, THREE)


def test_fits_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(landmark_svms, "FEW_ROWS", 0)
    made = [SVC(gamma=0.5, rank=40, n_jobs=jobs).fit(X, THREE).dual_coef_.tobytes() for jobs in (1, 2)]
    assert made[0] == made[1]


def test_duplicates_and_far_away_rows():
    model = SVC(gamma=0.5, rank=50).fit(np.repeat(X[:20], 5, axis=0), np.repeat(THREE[:20], 5))
    assert model.support_.size == 20
    far = SVC(kernel="linear", rank=3).fit(X + 1e6, THREE)
    assert np.isfinite(far.decision_function(X + 1e6)).all()


def test_limits_keep_a_usable_model(monkeypatch):
    monkeypatch.setattr(landmark_svms, "FEW_ROWS", 0)
    with pytest.warns(StoppedEarly, match="Stopped by max_iter=1"):
        model = SVC(gamma=0.5, C=100.0, rank=40, tol=1e-9, max_iter=1).fit(X, THREE)
    assert model.predict(X).shape == (200,)
    model.certificate_.verify(X, THREE)
    with pytest.warns(StoppedEarly, match="Stopped by time_limit"):
        model = SVC(gamma=0.5, rank=40, time_limit=1e-9).fit(X, THREE)
    assert model.predict(X).shape == (200,)


def test_what_landmarks_cannot_do_is_refused_in_a_sentence():
    with pytest.raises(InputError, match=r"rank=5 and C=inf.*rank=None"):
        SVC(rank=5, C=np.inf).fit(X, TWO)
    with pytest.raises(InputError, match="rank=0"):
        SVC(rank=0).fit(X, TWO)
    with pytest.raises(InputError, match="is not positive semi-definite"):
        SVC(rank=50, kernel="sigmoid", coef0=-1.0, gamma=1.0).fit(X, TWO)
    with pytest.raises(InputError, match="there is no direction in which they differ"):
        SVC(rank=5, kernel="linear").fit(np.zeros((10, 2)), [0, 1] * 5)


def test_memory_beyond_what_is_allowed_is_refused_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(landmark_svc, "MOST_FEATURES", 1000)
    with pytest.raises(InputError, match=r"rank=50 makes features of .* Use a rank of at most"):
        SVC(rank=50).fit(X, TWO)


def test_a_fit_without_rank_forgets_the_landmarks():
    model = SVC(gamma=0.5, rank=20).fit(X, THREE)
    model.set_params(rank=None).fit(X, THREE)
    assert not hasattr(model, "multipliers_")
    assert "landmarks" not in str(model.certificate_)
    model.certificate_.verify(X, THREE)


def test_a_search_over_ranks_is_what_single_fits_are():
    search = GridSearchCV(SVC(gamma=0.5), {"rank": [2, 50, None]}, cv=3).fit(X, THREE)
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] < scores[1]
    assert abs(scores[1] - scores[2]) < 0.05


def test_ctrl_c_leaves_it_fitted_and_is_raised(monkeypatch):
    monkeypatch.setattr(landmark_svms, "FEW_ROWS", 0)
    model = SVC(
        gamma=0.5, C=100.0, rank=40, tol=1e-9, callbacks=[lambda record: signal.raise_signal(signal.SIGINT)]
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, THREE)
    assert model.predict(X).shape == (200,)
    model.certificate_.verify(X, THREE)


def test_ctrl_c_before_there_is_a_model_leaves_none(monkeypatch):
    monkeypatch.setattr(landmarks, "LEAST_SAMPLE", 16)
    monkeypatch.setattr(landmarks, "STREAMED", 200)
    one_block = landmarks.Factor.extend

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return one_block(*arguments)

    monkeypatch.setattr(landmarks.Factor, "extend", interrupted)
    model = SVC(gamma=0.5, rank=20)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, THREE)
    assert not hasattr(model, "classes_")


def test_an_explanation_speaks_of_landmarks():
    told = SVC(gamma=0.5, rank=20).fit(X, THREE).explain(X[0])
    assert told.of == "landmarks"
    assert "10 more landmarks add" in str(told)
    assert "more support vectors add" in str(SVC(gamma=0.5).fit(X, THREE).explain(X[0]))


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
def test_rounding_of_kernel_values_is_part_of_the_claim(size):
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(200, 6)), rng.integers(0, 2, 200)
    rows[:, 0] *= size
    rows[100:] = rows[:100]
    rows[100:, 1] += 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedEarly)
        model = SVC(rank=30, gamma=0.2).fit(rows, labels)
    model.certificate_.verify(rows, labels)
    # Kernel values by differences, where nothing is lost.
    apart = (rows[:, None] - model.support_vectors_[None]) ** 2
    scores = np.exp(-0.2 * apart.sum(axis=2)) @ model.dual_coef_[0] + model.intercept_[0]
    loss = np.maximum(1.0 - np.where(labels == 1, 1.0, -1.0) * scores, 0.0).sum()
    between = np.exp(
        -0.2 * ((model.support_vectors_[:, None] - model.support_vectors_[None]) ** 2).sum(axis=2)
    )
    exact = 0.5 * model.dual_coef_[0] @ between @ model.dual_coef_[0] + loss
    certificate = model.certificate_
    assert abs(exact - certificate.objective) <= certificate.rounding
