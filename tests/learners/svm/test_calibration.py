"""Probabilities of SVMs grow with decisions, agree with predictions, and fit rows that were held out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from sixfold import SVC
from sixfold.learners.svm.calibration import Calibration, couple, fit_slopes, stratified_folds

RNG = np.random.default_rng(0)


def cross_entropy(slope, f, target, weight):
    return float(weight @ (np.logaddexp(0.0, slope * f) - target * slope * f))


def platt_targets(positive, weight):
    yes, no = (weight[side].sum() ** 2 / (weight[side] ** 2).sum() for side in (positive, ~positive))
    return np.where(positive, (yes + 1) / (yes + 2), 1 / (no + 2))


@pytest.mark.parametrize("size", [1.0, 1e-8, 1e8])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_slope_minimises_the_cross_entropy_of_its_side(size, weighted):
    f = RNG.normal(size=200)
    positive = RNG.random(200) < expit(np.where(f > 0, 3.0, 0.7) * f)
    weight = RNG.integers(0, 4, size=200).astype(float) if weighted else np.ones(200)
    slopes = fit_slopes(size * f, positive, weight if weighted else None)
    target = platt_targets(positive, weight)
    for side, slope in zip((f < 0, f > 0), slopes, strict=True):
        best = minimize_scalar(
            cross_entropy,
            bounds=(0.0, 100.0),
            args=(f[side], target[side], weight[side]),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert size * slope == pytest.approx(best.x, rel=1e-5)


def test_equal_weights_are_none_in_whatever_unit():
    f = RNG.normal(size=50)
    positive = RNG.random(50) < expit(2 * f)
    plain = fit_slopes(f, positive)
    for unit in (1e-200, 1e-6, 1.0, 1e6, 1e200):
        assert fit_slopes(f, positive, np.full(50, unit)) == pytest.approx(plain, rel=1e-9)
        # A row of weight 0 is not there.
        more = np.append(np.full(50, unit), 0.0)
        assert fit_slopes(np.append(f, -9.0), np.append(positive, True), more) == pytest.approx(
            plain, rel=1e-9
        )


def test_one_heavy_row_says_as_much_as_one_row():
    # Of 50 rows on either side all the weight is in one: nothing is surer than 2/3, the target of one row.
    f, positive = np.repeat([-1.0, 1.0], 50), np.repeat([False, True], 50)
    weight = np.full(100, 1e-12)
    weight[[0, 99]] = 1.0
    assert fit_slopes(f, positive, weight) == pytest.approx((np.log(2.0), np.log(2.0)), rel=1e-6)


def test_decisions_that_tell_nothing_have_slope_0_and_still_agree_with_their_sign():
    below, above = fit_slopes(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([True, True, False, False]))
    assert (below, above) == (0.0, 0.0)
    p = Calibration(np.array([below]), np.array([above])).probabilities(np.array([[-1.0], [0.0], [1.0]]))
    assert p[:, 0].tolist() == [0.5, 0.5, np.nextafter(0.5, 1.0)]


@pytest.mark.parametrize(
    ("decisions", "expected"), [([1.0, 2.0], "the other side"), ([0.0, 0.0], "one")], ids=str
)
def test_a_side_without_rows_takes_what_is_known(decisions, expected):
    below, above = fit_slopes(np.array(decisions), np.array([True, True]))
    assert below == above
    assert (above == 1.0) == (expected == "one")


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(0, 1e9), st.floats(0, 1e9))
def test_the_more_probable_class_is_the_one_the_decision_stands_for(decisions, below, above):
    f = np.array(decisions)[:, None]
    p = Calibration(np.array([below]), np.array([above])).probabilities(f)[:, 0]
    np.testing.assert_array_equal(p > 0.5, f[:, 0] > 0)
    assert np.all((p >= 0) & (p <= 1))
    assert np.all(np.diff(p[np.argsort(f[:, 0], kind="stable")]) >= 0)
    np.testing.assert_array_equal(np.column_stack([1 - p, p]).argmax(axis=1), f[:, 0] > 0)


def test_coupling_minimises_what_it_says():
    for n_classes in (3, 4, 6):
        first, second = np.triu_indices(n_classes, 1)
        pairs = RNG.uniform(0.05, 0.95, size=(5, first.size))
        found = couple(pairs, n_classes)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
        for row, p in zip(pairs, found, strict=True):

            def objective(q, row=row, first=first, second=second):
                return np.sum(((1 - row) * q[first] - row * q[second]) ** 2)

            best = minimize(
                objective,
                np.full(n_classes, 1 / n_classes),
                bounds=[(0, 1)] * n_classes,
                constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
                tol=1e-14,
            )
            np.testing.assert_allclose(p, best.x, atol=1e-6)


def test_coupling_of_pairs_that_are_certain_is_no_division_by_0():
    sure = couple(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]), 3)
    np.testing.assert_allclose(sure[:2], [[1, 0, 0], [0, 0, 1]], atol=1e-6)
    np.testing.assert_allclose(sure[2], 1 / 3, atol=1e-6)  # 0 beats 1 beats 2 beats 0


def test_coupling_in_blocks_is_the_same(monkeypatch):
    pairs = RNG.uniform(size=(50, 6))
    whole = couple(pairs, 4)
    monkeypatch.setattr("sixfold.learners.svm.calibration.COUPLED", 100)
    np.testing.assert_array_equal(couple(pairs, 4), whole)


def test_folds_have_all_classes_and_one_size():
    index = np.repeat([0, 1, 2], [50, 13, 7])
    folds = stratified_folds(index, 3, np.random.RandomState(0))
    assert np.ptp(np.bincount(folds)) <= 1
    for label in range(3):
        assert np.ptp(np.bincount(folds[index == label], minlength=5)) <= 1
    again = stratified_folds(index, 3, np.random.RandomState(0))
    np.testing.assert_array_equal(folds, again)
    assert not np.array_equal(folds, stratified_folds(index, 3, np.random.RandomState(1)))


@pytest.mark.parametrize(("rarest", "n_folds"), [(9, 5), (4, 4), (2, 2), (1, 2)])
def test_a_rare_class_makes_for_fewer_folds(rarest, n_folds):
    folds = stratified_folds(np.repeat([0, 1], [20, rarest]), 2, np.random.RandomState(0))
    assert np.unique(folds).tolist() == list(range(n_folds))


# -- of a model -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("class_weight", [None, {1: 20.0}])
@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
def test_the_more_probable_of_two_classes_is_the_predicted_one(C, class_weight):
    X, y = make_classification(n_samples=200, weights=[0.8], flip_y=0.2, random_state=0)
    model = SVC(C=C, class_weight=class_weight, probability=True).fit(X, y)
    Z = np.vstack([X, 3 * RNG.normal(size=(1000, X.shape[1]))])
    p = model.predict_proba(Z)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(Z))
    np.testing.assert_array_equal(p[:, 1] > 0.5, model.decision_function(Z) > 0)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(Z)), p, rtol=1e-13)


def test_probabilities_are_calibrated_on_new_rows():
    X = RNG.normal(size=(3000, 2))
    truth = expit(3.0 * X[:, 0])
    y = RNG.random(3000) < truth
    p = SVC(C=0.1, probability=True).fit(X[:1000], y[:1000]).predict_proba(X[1000:])[:, 1]
    assert np.mean(np.abs(p - truth[1000:])) < 0.08


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_several_classes_have_probabilities_that_tell(multi_class):
    X, y = load_iris(return_X_y=True)
    train, test, known, unknown = train_test_split(X, y, random_state=0, stratify=y)
    model = SVC(probability=True, multi_class=multi_class).fit(train, known)
    p = model.predict_proba(test)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-13)
    assert log_loss(unknown, p) < 0.25
    assert np.mean(p.argmax(axis=1) == model.predict(test)) > 0.9


def test_the_seed_is_fixed_unless_it_is_given():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:150, :5]
    y = y[:150]
    first, again, other = (
        SVC(probability=True, random_state=seed).fit(X, y).predict_proba(X) for seed in (None, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    state = SVC(probability=True, random_state=np.random.RandomState(1)).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(state, other)


def test_weights_of_rows_count_and_those_of_weight_0_do_not():
    X, y = make_classification(n_samples=120, flip_y=0.2, random_state=0)
    weight = np.ones(120)
    weight[::4] = 0.0
    kept = weight > 0
    some = SVC(gamma=0.05, probability=True).fit(X, y, weight).predict_proba(X)
    left = SVC(gamma=0.05, probability=True).fit(X[kept], y[kept]).predict_proba(X)
    np.testing.assert_allclose(some, left, atol=1e-3)


def test_the_unit_of_weights_does_not_change_probabilities():
    X, y = make_classification(n_samples=120, flip_y=0.2, random_state=0)
    plain = SVC(C=1.0, probability=True).fit(X, y).predict_proba(X)
    unit = 2.0**-20
    other = SVC(C=1.0 / unit, probability=True).fit(X, y, np.full(120, unit)).predict_proba(X)
    np.testing.assert_allclose(other, plain, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_a_class_with_one_row_is_no_hindrance(kernel):
    X = np.vstack([RNG.normal(size=(9, 2)), [[5.0, 5.0]]])
    y = np.array(["common"] * 9 + ["rare"])
    model = SVC(C=10.0, kernel=kernel, probability=True).fit(X if kernel == "rbf" else X @ X.T, y)
    p = model.predict_proba(X if kernel == "rbf" else X @ X.T)
    assert np.isfinite(p).all()
    np.testing.assert_array_equal(
        model.classes_[p.argmax(axis=1)], model.predict(X if kernel == "rbf" else X @ X.T)
    )
