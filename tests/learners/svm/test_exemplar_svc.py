"""Exemplar machines: each is the best one, what is retrieved and handed on, and what is refused."""

import itertools
import os
import re
import signal
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris

from oracles import exemplars as oracle
from sixfold import SVC, ExemplarSVC, LinearSVC, kernels
from sixfold.errors import CertificateError, InputError, StoppedEarly
from sixfold.learners.svm.exemplar_svc import ExemplarSolution, copies


def table(rows=60, columns=5, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * np.linspace(0.5, 2.0, columns) + 1.0
    scores = (X - 1.0) @ rng.normal(size=(columns, classes)) + rng.gumbel(size=(rows, classes))
    return X, np.array(["ash", "birch", "oak"])[scores.argmax(axis=1)]


X, Y = table()


def refuses(sentence):
    return pytest.raises(InputError, match=re.escape(sentence))


# -- each machine is the best ----------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-6, 1e-3, 0.1, 10.0, 1e4, 1e6])
@pytest.mark.parametrize("positive_weight", [0.5, 50.0])
def test_machines_are_those_of_the_oracle(C, positive_weight):
    model = ExemplarSVC(C=C, positive_weight=positive_weight, tol=1e-9).fit(X, Y)
    rows, w, b = oracle.fit_machines(X, Y, ["birch"], C, positive_weight)
    np.testing.assert_array_equal(model.exemplars_, rows)
    np.testing.assert_allclose(model.coef_, w, atol=1e-6 * np.abs(w).max())
    np.testing.assert_allclose(model.intercept_, b, atol=1e-5 * max(np.abs(b).max(), 1.0))
    assert model.certificate_.converged
    model.certificate_.verify(X, Y)


def test_a_machine_is_a_linear_svm_with_weights():
    model = ExemplarSVC(C=0.05, positive_weight=20.0, tol=1e-12).fit(X, Y)
    negatives = np.flatnonzero(Y == "ash")
    for place in (0, 5):
        rows = np.append(negatives, model.exemplars_[place])
        weight = np.append(np.full(negatives.size, 0.05), 1.0)
        other = LinearSVC(tol=1e-13).fit(X[rows], np.arange(rows.size) == rows.size - 1, weight)
        np.testing.assert_allclose(model.coef_[place], other.coef_[0], atol=1e-6)
        np.testing.assert_allclose(model.intercept_[place], other.intercept_[0], atol=1e-6)


def kernel_objective(model, place, kernel, C, positive_weight):
    """Return P of a machine with a kernel, from the coefficients of its support vectors."""
    beta, vectors = model.dual_coef_[place], model.support_vectors_
    f = kernel(X, vectors) @ beta + model.intercept_[place]
    loss = C * (np.maximum(1.0 + f[Y == "ash"], 0.0) ** 2).sum()
    own = C * positive_weight * max(1.0 - f[model.exemplars_[place]], 0.0) ** 2
    return 0.5 * beta @ kernel(vectors, vectors) @ beta + loss + own


@pytest.mark.parametrize(
    "kernel", [kernels.RBF(gamma=0.3), kernels.Polynomial(2, 0.2, 1.0)], ids=["rbf", "polynomial"]
)
def test_machines_with_a_kernel_are_those_in_its_coordinates(kernel):
    model = ExemplarSVC(C=0.2, positive_weight=5.0, kernel=kernel, tol=1e-8).fit(X, Y)
    values, vectors = np.linalg.eigh(kernel(X, X))
    points = vectors * np.sqrt(np.maximum(values, 0.0))
    cost = np.full(np.count_nonzero(Y == "ash"), 0.2)
    for place in (0, 3):
        x = points[model.exemplars_[place]]
        w, b = oracle.fit_machine(x, 1.0, points[Y == "ash"], cost)
        best = oracle.objective(w, b, x, 1.0, points[Y == "ash"], cost)
        assert kernel_objective(model, place, kernel, 0.2, 5.0) == pytest.approx(best, rel=1e-7)
        f = kernel(X, model.support_vectors_) @ model.dual_coef_[place] + model.intercept_[place]
        np.testing.assert_allclose(f, points @ w + b, atol=1e-4)
    assert model.certificate_.converged
    model.certificate_.verify(X, Y)


def test_the_linear_kernel_as_a_function_is_the_linear_machine():
    plain = ExemplarSVC(C=0.1, tol=1e-9).fit(X, Y)
    curved = ExemplarSVC(C=0.1, tol=1e-9, kernel=lambda A, B: A @ B.T).fit(X, Y)
    np.testing.assert_allclose(curved.exemplar_scores(X), plain.exemplar_scores(X), atol=1e-4)


def test_the_hinge_of_svc_has_another_optimum_but_nearly_the_same_order():
    # The loss of SVC is not squared; where the machine separates, both scores order the rows alike.
    model = ExemplarSVC(C=1.0, kernel=kernels.RBF(gamma=0.1), calibration=None).fit(X, Y)
    row = model.exemplars_[0]
    rows = np.append(np.flatnonzero(Y == "ash"), row)
    other = SVC(kernel=kernels.RBF(gamma=0.1), C=1.0).fit(
        X[rows], rows == row, np.where(rows == row, 50.0, 1.0)
    )
    scores = model.exemplar_scores(X)[:, 0]
    assert np.corrcoef(scores, other.decision_function(X))[0, 1] > 0.9


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 30),
    st.integers(1, 6),
    st.floats(-6, 6),
    st.floats(-2, 3),
    st.integers(0, 1000),
    st.sampled_from(["plain", "copies", "constant", "zeros", "far", "units"]),
)
def test_every_fit_is_certified_and_confirmed(rows, columns, log_C, log_weight, seed, kind):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(rows, columns))
    if kind == "copies":
        Z[rows // 2 :] = Z[0]
    elif kind == "constant":
        Z[:, 0] = 3.0
    elif kind == "zeros":
        Z[:] = 0.0
    elif kind == "far":
        Z += 1e3
    elif kind == "units":
        Z *= 10.0 ** rng.integers(-4, 4, size=columns)
    labels = np.arange(rows) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedEarly)
        model = ExemplarSVC(C=10.0**log_C, positive_weight=10.0**log_weight).fit(Z, labels)
    assert np.isfinite(model.coef_).all()
    model.certificate_.verify(Z, labels)
    assert model.certificate_.converged or kind in ("far", "units")
    exemplars, w, b = oracle.fit_machines(Z, labels, [1], 10.0**log_C, 10.0**log_weight)
    cost = np.full(np.count_nonzero(labels == 0), 10.0**log_C)
    best = sum(
        oracle.objective(w[k], b[k], Z[row], 10.0 ** (log_C + log_weight), Z[labels == 0], cost)
        for k, row in enumerate(exemplars)
    )
    assert model.certificate_.lower_bound <= best * (1.0 + 1e-9)


# -- kinds of tables ---------------------------------------------------------------------------------------


def test_a_weight_of_two_is_a_row_twice_and_of_zero_none():
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 3, size=len(X))
    weighted = ExemplarSVC(C=0.1).fit(X, Y, weight)
    repeated = ExemplarSVC(C=0.1).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    np.testing.assert_array_equal(weighted.exemplars_, np.flatnonzero((Y == "birch") & (weight > 0)))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
    weighted.certificate_.verify(X, Y, weight)
    with pytest.raises(CertificateError):
        weighted.certificate_.verify(X, Y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_sparse_table_has_the_machines_of_the_dense_one(kernel, monkeypatch):
    Z = np.where(np.random.default_rng(0).random(X.shape) < 0.4, X, 0.0)
    dense = ExemplarSVC(C=0.1, kernel=kernel, tol=1e-10).fit(Z, Y)
    monkeypatch.setattr("sixfold.learners.svm.exemplar_svc.densify_if_small", lambda table: table)
    sparse = ExemplarSVC(C=0.1, kernel=kernel, tol=1e-10).fit(sp.csr_array(Z), Y)
    np.testing.assert_allclose(sparse.exemplar_scores(Z), dense.exemplar_scores(Z), atol=1e-5)
    np.testing.assert_allclose(sparse.exemplar_scores(sp.csr_array(Z)), sparse.exemplar_scores(Z), atol=1e-12)
    sparse.certificate_.verify(sp.csr_array(Z), Y)
    assert sparse.transfer(sp.csr_array(Z[:3]), list(Y)) == dense.transfer(Z[:3], list(Y))


def test_single_precision_is_enough_for_the_same_answers():
    double, single = ExemplarSVC(C=0.1).fit(X, Y), ExemplarSVC(C=0.1).fit(X.astype(np.float32), Y)
    np.testing.assert_allclose(single.exemplar_scores(X), double.exemplar_scores(X), atol=1e-4)
    single.certificate_.verify(X.astype(np.float32), Y)


def test_a_frame_is_known_by_its_names():
    frame = pd.DataFrame(X, columns=list("abcde"), index=[f"tree {k}" for k in range(len(X))])
    model = ExemplarSVC(C=0.1).fit(frame, Y)
    assert list(model.feature_names_in_) == list("abcde")
    found = model.explain(frame.iloc[0])
    assert found.index[0] == f"tree {found.rows[0]}"
    assert set(found.columns) == set("abcde")


def test_unscaled_columns_make_the_same_machines_in_other_units():
    far = ExemplarSVC(C=0.1, tol=1e-9).fit(X + 1e4, Y)
    near = ExemplarSVC(C=0.1, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-5)
    far.certificate_.verify(X + 1e4, Y)


def test_threads_do_not_change_the_result():
    Z, labels = table(3000, 30, seed=3)
    one, two = (ExemplarSVC(n_jobs=jobs).fit(Z, labels) for jobs in (1, 2))
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-12)


def test_a_negative_that_equals_the_exemplar_leaves_it_undecided():
    Z, labels = X.copy(), Y.copy()
    row = np.flatnonzero(labels == "birch")[0]
    Z[np.flatnonzero(labels == "ash")[:30]] = Z[row]
    model = ExemplarSVC(C=1.0, positive_weight=1.0, calibration=None).fit(Z, labels)
    assert model.exemplar_scores(Z[[row]])[0, 0] < -0.8
    model.certificate_.verify(Z, labels)


# -- many active negatives, few columns --------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-5, 0.1, 100.0])
def test_machines_with_thousands_of_active_negatives_are_certified(C):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(3000, 4))
    labels = np.arange(3000) < 6
    model = ExemplarSVC(C=C).fit(Z, labels)
    assert model.certificate_.converged
    model.certificate_.verify(Z, labels)
    _, w, _ = oracle.fit_machines(Z, labels, [True], C, 50.0)
    np.testing.assert_allclose(model.coef_, w, atol=2e-3 * np.abs(w).max())


# -- what is retrieved and handed on ------------------------------------------------------------------------


def test_an_exemplar_retrieves_itself_and_its_like():
    images, digits = load_digits(return_X_y=True)
    images = images / 16.0
    model = ExemplarSVC(positive=3, C=0.05).fit(images[:600], digits[:600])
    assert set(digits[model.exemplars_]) == {3}
    _, rows = model.retrieve(images[model.exemplars_], k=1)
    assert np.mean(rows.ravel() == model.exemplars_) > 0.6
    strangers = model.retrieve(images[600:900][digits[600:900] != 3], k=1)[0]
    likes = model.retrieve(images[600:900][digits[600:900] == 3], k=1)[0]
    assert np.median(likes) > 4 * np.median(strangers)


def test_the_best_exemplars_come_first_and_equal_ones_by_row():
    Z = np.vstack([X, X[Y == "birch"][:3]])
    labels = np.append(Y, ["birch"] * 3)
    model = ExemplarSVC(C=0.1).fit(Z, labels)
    scores, rows = model.retrieve(Z, k=model.exemplars_.size)
    assert (np.diff(scores, axis=1) <= 0).all()
    tied = np.diff(scores, axis=1) == 0
    assert (np.diff(rows, axis=1)[tied] > 0).all()
    np.testing.assert_allclose(scores, -np.sort(-model.exemplar_scores(Z), axis=1), rtol=1e-12)
    np.testing.assert_array_equal(model.retrieve(Z, 2, return_scores=False), rows[:, :2])


def test_annotations_of_any_kind_are_handed_on():
    model = ExemplarSVC(C=0.1).fit(X, Y)
    rows = model.retrieve(X[:4], k=2, return_scores=False)
    masks = np.random.default_rng(0).integers(0, 2, size=(len(X), 8, 8))
    np.testing.assert_array_equal(model.transfer(X[:4], masks), masks[rows[:, 0]])
    np.testing.assert_array_equal(model.transfer(X[:4], masks, n_exemplars=2), masks[rows])
    words = [f"caption {k}" for k in range(len(X))]
    assert model.transfer(X[:4], words) == [words[row] for row in rows[:, 0]]
    frame = pd.DataFrame({"name": words})
    assert model.transfer(X[:4], frame)["name"].tolist() == [words[row] for row in rows[:, 0]]


def test_calibration_puts_an_exemplar_back_that_fires_for_everything():
    # Two exemplars: one among the negatives, whose machine has its highest scores for them, and one far off.
    rng = np.random.default_rng(0)
    negatives = rng.normal(size=(400, 2))
    others = rng.normal(size=(40, 2)) * 0.3 + [4.0, 0.0]
    Z = np.vstack([negatives, [[0.0, 2.5]], others])
    labels = np.append(np.zeros(400), np.ones(41)).astype(int)
    raw = ExemplarSVC(C=0.01, positive_weight=5000.0, calibration=None).fit(Z, labels)
    fair = ExemplarSVC(C=0.01, positive_weight=5000.0).fit(Z, labels)
    query = [[2.2, 2.0]]  # between the lonely exemplar and the others
    place = np.flatnonzero(fair.exemplars_ == 400)[0]
    order_raw = np.argsort(-raw.exemplar_scores(query)[0]).tolist()
    order_fair = np.argsort(-fair.exemplar_scores(query)[0]).tolist()
    assert order_fair.index(place) > order_raw.index(place)
    # Each sigmoid grows, so the order of rows for one machine stays.
    np.testing.assert_array_equal(
        np.argsort(raw.exemplar_scores(Z)[:, place], kind="stable"),
        np.argsort(fair.exemplar_scores(Z)[:, place], kind="stable"),
    )


def test_a_class_is_answered_where_an_exemplar_fires():
    images, digits = load_digits(return_X_y=True)
    images = images / 16.0
    model = ExemplarSVC(C=0.05).fit(images[:800], digits[:800])
    assert np.mean(model.predict(images[800:]) == digits[800:]) > 0.9
    probabilities = model.predict_proba(images[800:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(images[800:]))


def test_classes_without_exemplars_share_what_is_left():
    iris, kinds = load_iris(return_X_y=True)
    model = ExemplarSVC(positive=2, C=1.0).fit(iris, kinds)
    found = model.predict_proba(iris[:50])
    np.testing.assert_allclose(found[:, 0], found[:, 1])  # no machine tells them apart
    assert (model.predict(iris[:100]) != 2).mean() > 0.9
    both = ExemplarSVC(positive=[2, 0], C=1.0).fit(iris, kinds)
    assert set(kinds[both.exemplars_]) == {0, 2}


def test_an_explanation_adds_up():
    model = ExemplarSVC(C=0.1).fit(X, Y)
    found = model.explain(X[4])
    assert found.answer == model.predict(X[[4]])[0]
    assert found.rows == model.retrieve(X[[4]], k=model.exemplars_.size)[1][0].tolist()
    assert found.intercept + sum(found.contributions) == pytest.approx(found.decisions[0])
    assert found.probabilities == pytest.approx(model.retrieve(X[[4]], k=model.exemplars_.size)[0][0])
    assert found.to_dict()["labels"][0] == "birch"
    assert "why the score of exemplar" in str(found)
    assert "why the score of exemplar" not in str(ExemplarSVC(kernel="rbf").fit(X, Y).explain(X[4]))
    assert len(found.plot().patches) == 10


# -- limits and refusals ------------------------------------------------------------------------------------


def test_a_fit_that_is_stopped_leaves_a_model_whose_certificate_says_how_good_it_is():
    Z, labels = table(4000, 40, seed=5)
    with pytest.warns(StoppedEarly, match="time_limit"):
        model = ExemplarSVC(C=1.0, time_limit=1e-6).fit(Z, labels)
    assert not model.certificate_.converged
    model.certificate_.verify(Z, labels)
    model.predict(Z[:3])
    with pytest.warns(StoppedEarly, match="max_iter=1"):
        model = ExemplarSVC(C=1.0, max_iter=1).fit(Z, labels)
    model.certificate_.verify(Z, labels)


def test_a_callback_hears_of_each_round_and_may_stop_the_fit():
    heard = []
    model = ExemplarSVC(C=1.0, callbacks=[heard.append]).fit(X, Y)
    assert heard == model.history_
    objectives = [record.objective for record in heard]
    assert all(later <= earlier for earlier, later in itertools.pairwise(objectives))
    with pytest.warns(StoppedEarly, match="a callback"):
        ExemplarSVC(C=1.0, tol=1e-13, callbacks=[lambda record: True]).fit(X, Y)


def test_ctrl_c_leaves_the_model_fitted():
    Z, labels = table(4000, 40, seed=5)
    model = ExemplarSVC(C=1.0)

    def press(record):
        os.kill(os.getpid(), signal.SIGINT)

    model.callbacks = [press]
    with pytest.raises(KeyboardInterrupt):
        model.fit(Z, labels)
    model.certificate_.verify(Z, labels)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"positive": "elm"}, "positive='elm': 'elm' is not among the labels. The labels are 'ash', 'birch'"),
        ({"positive": []}, "positive=[]: no label is given."),
        ({"positive": ["ash", 3]}, "3 is not among the labels."),
        ({"positive_weight": 0}, "positive_weight=0 is out of range: a finite number above 0 is needed."),
        ({"calibration": "isotonic"}, "calibration='isotonic' is not an option"),
        ({"kernel": "precomputed"}, "kernel='precomputed' leaves no rows to retrieve."),
        ({"C": np.inf}, "is beyond float64 for rows whose weights add up to 60."),
        ({"kernel": "sigmoid", "gamma": 3.0}, "The kernel is not positive semi-definite on these rows"),
    ],
    ids=str,
)
def test_parameters_that_make_no_sense_are_refused(parameters, sentence):
    with refuses(sentence):
        ExemplarSVC(**parameters).fit(X, Y)


def test_a_label_called_all_is_that_label():
    labels = np.where(Y == "ash", "some", "all")
    assert (labels[ExemplarSVC(positive="all").fit(X, labels).exemplars_] == "all").all()
    assert ExemplarSVC(positive="all").fit(X, Y).exemplars_.size == len(X)


def test_questions_that_make_no_sense_are_refused():
    model = ExemplarSVC(C=0.1).fit(X, Y)
    with refuses("annotations has 3 entries for 60 training rows. Pass one for each."):
        model.transfer(X, [1, 2, 3])
    with refuses("annotations is of type int. Pass a sequence, one entry a training row."):
        model.transfer(X, 3)
    with refuses(f"k=1000 exemplars are asked for, but the model has {model.exemplars_.size}."):
        model.retrieve(X, k=1000)
    with refuses("k=0 is out of range"):
        model.retrieve(X, k=0)
    with pytest.raises(AttributeError, match="predict_proba"):
        _ = ExemplarSVC(calibration=None).fit(X, Y).predict_proba
    assert not hasattr(ExemplarSVC(kernel="rbf").fit(X, Y), "coef_")


def test_rows_of_other_data_do_not_confirm_the_certificate():
    model = ExemplarSVC(C=0.1).fit(X, Y)
    with pytest.raises(CertificateError):
        model.certificate_.verify(X + 0.01, Y)
    with pytest.raises(CertificateError, match="exemplars are other rows"):
        model.certificate_.verify(X, np.where(Y == "ash", "birch", "ash"))
    with pytest.raises(CertificateError, match="fitted on 60 rows"):
        model.certificate_.verify(X[:50], Y[:50])


@pytest.mark.parametrize("C", [1.0, 1e5])
@pytest.mark.parametrize("scale", [1e4, 1e6])
@pytest.mark.parametrize("seed", range(3))
def test_rounding_of_scores_is_allowed_for_by_the_checker(C, scale, seed):
    rng = np.random.default_rng(seed)
    rows, labels, weight = (
        scale * rng.normal(size=(60, 1)),
        rng.integers(0, 2, 60),
        10.0 ** rng.uniform(-6, 6, 60),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedEarly)
        model = ExemplarSVC(C=C, positive_weight=0.05).fit(rows, labels, sample_weight=weight)
    model.certificate_.verify(rows, labels, sample_weight=weight)


def test_machines_that_rounding_has_lost_are_the_best_constants():
    rows = np.array([[1e-5], [1.01e-5]]) + 1e-3
    with pytest.warns(StoppedEarly):
        model = ExemplarSVC(kernel="poly", C=5.6e-5, positive_weight=690.0).fit(rows, [0, 1])
    assert model.gaps_.max() < 1.0 + 1e-9
    model.certificate_.verify(rows, [0, 1])


@pytest.mark.parametrize("column", [pd.Series(["oak"]), np.array([["oak"]])])
def test_positive_classes_may_be_a_column(column):
    rows, labels = table(classes=3)
    exemplars = ExemplarSVC(positive=column).fit(rows, labels).exemplar_labels_
    assert set(exemplars) == {"oak"}


def test_zeros_that_are_stored_do_not_hide_copies():
    rows = sp.csr_array((np.array([1.0, 0.0, 1.0]), np.array([0, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    assert [found.tolist() for found in copies(rows)] == [[0, 1], [0, 1]]


def raw_table(seed, rows=300, columns=12):
    """Amounts as tables have them: skewed columns of very different sizes, two nearly the same."""
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(size=(rows, columns)) * 1.5) * 10.0 ** np.linspace(0, 6, columns)
    X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=rows)
    scores = np.log(X[:, :4] + 10.0) @ rng.normal(size=4) + 0.1 * rng.normal(size=rows)
    return np.round(X, 3), (scores > np.median(scores)).astype(int)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_columns_of_raw_tables_are_certified(C, seed):
    rows, labels = raw_table(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ExemplarSVC(C=C).fit(rows, labels)
    assert model.gaps_.max() <= 1e-6
    model.certificate_.verify(rows, labels)


@pytest.mark.parametrize("size", [0.3, 3.0, 30.0])
def test_a_kernel_that_sees_most_rows_as_unlike_is_certified(size):
    rng = np.random.default_rng(0)
    rows, labels = np.round(size * rng.normal(size=(300, 8)), 1), rng.integers(0, 3, 300)
    rows[200:220] = rows[100:120]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ExemplarSVC(C=10.0, kernel="rbf", gamma="auto").fit(rows, labels)
    assert model.gaps_.max() <= 1e-6
    model.certificate_.verify(rows, labels)


@pytest.mark.parametrize("size", [1e-60, 1e-30])
def test_small_numbers_do_not_overflow_in_single_precision(size):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ExemplarSVC().fit(size * X, Y).certificate_.converged


@pytest.mark.parametrize("positive_weight", [1e-300, 1e100])
def test_linear_machines_that_rounding_has_lost_are_the_best_constants(positive_weight):
    with pytest.warns(StoppedEarly):
        model = ExemplarSVC(positive_weight=positive_weight).fit(X, Y)
    assert model.gaps_.max() < 1.0 + 1e-9
    model.certificate_.verify(X, Y)


def test_machines_short_of_the_tolerance_are_named_though_their_sum_is_not():
    model = ExemplarSVC().fit(X, Y)
    gap = model.gaps_ * 0.0
    gap[3] = 1e-5
    model.gaps_ = gap
    few = np.zeros(gap.size)
    solution = ExemplarSolution(model.exemplars_, few, few, few, few, gap, few, few, few)
    with pytest.warns(
        StoppedEarly, match=f"1 of {gap.size} alone is not: that of row {model.exemplars_[3]} "
    ):
        model._warn_of_single_machines(solution)


def test_classes_that_take_all_iterations_leave_the_others_theirs():
    rows, labels = table(classes=3)
    with pytest.warns(StoppedEarly, match="max_iter=1"):
        model = ExemplarSVC(max_iter=1).fit(rows, labels)
    assert (model.n_iter_ == 1).all()
