"""Small fits by one native call are those of Newton's method in Python, and obey the same limits."""

import numpy as np
import pytest
from sklearn.base import clone

from sixfold import LinearSVC, LogisticRegression
from sixfold.errors import PerfectSeparation, RankWarning, SeparationWarning, StoppedEarly
from sixfold.solvers.smooth import newton, small_fit
from sixfold.solvers.smooth.newton import Newton
from solvers.problems import blocks, problem, solve

MODELS = [
    pytest.param(LogisticRegression, 2, id="logistic"),
    pytest.param(LogisticRegression, 4, id="softmax"),
    pytest.param(LinearSVC, 4, id="squared hinge"),
]
each_model = pytest.mark.parametrize(("make", "classes"), MODELS)


def table(classes, rows=150, columns=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return X + 5.0, (X @ rng.normal(size=(columns, classes)) + 2.0 * rng.gumbel(size=(rows, classes))).argmax(
        axis=1
    )


@pytest.fixture
def calls(monkeypatch):
    """Count the fits that end in the native call."""
    found = []

    def counted(*args):
        found.append(small_fit.small_fit(*args))
        return found[-1]

    monkeypatch.setattr(newton, "small_fit", counted)
    return found


@each_model
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_model_as_from_python(make, classes, dtype, weighted, calls, monkeypatch):
    X, y = table(classes)
    X = X.astype(dtype)
    weight = np.arange(len(y)) % 3 if weighted else None
    found = make().fit(X, y, weight)
    assert calls[-1] is not None
    assert found.certificate_.converged
    found.certificate_.verify(X, y, weight)
    monkeypatch.setattr(newton, "suits_small_fit", lambda *args: False)
    known = make().fit(X, y, weight)
    digits = 1e-9 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(found.coef_, known.coef_, rtol=digits, atol=digits)
    np.testing.assert_allclose(found.feature_means_, known.feature_means_, rtol=1e-6)
    one, other = found.certificate_, known.certificate_
    assert one.lower_bound <= other.objective
    assert other.lower_bound <= one.objective
    assert one.scale == pytest.approx(other.scale, rel=1e-14)


@each_model
def test_callbacks_hear_of_every_step_and_change_no_bit(make, classes, calls):
    X, y = table(classes)
    heard = []
    found = make(callbacks=[heard.append]).fit(X, y)
    assert calls[-1] is not None
    assert heard == found.history_
    plain = make().fit(X, y)
    np.testing.assert_array_equal(found.coef_, plain.coef_)
    assert [(r.iteration, r.objective, r.gap) for r in plain.history_] == [
        (r.iteration, r.objective, r.gap) for r in heard
    ]
    assert plain.history_[-1].seconds >= plain.history_[0].seconds > 0.0


@each_model
def test_a_callback_ends_the_fit_where_it_is(make, classes, calls):
    X, y = table(classes)
    with pytest.warns(StoppedEarly, match="a callback"):
        found = make(callbacks=[lambda record: record.iteration == 2], tol=1e-9).fit(X, y)
    assert calls[-1] is not None
    assert len(found.history_) == 2
    assert not found.certificate_.converged
    found.certificate_.verify(X, y)


def test_columns_far_from_zero_and_constant_ones(calls):
    X, y = table(3)
    X[:, 1], X[:, 2] = 7.0, X[:, 2] + 1e9
    found = LogisticRegression().fit(X, y)
    assert calls[-1] is not None
    assert not found.coef_[:, 1].any()
    found.certificate_.verify(X, y)


def test_what_is_stuck_is_left_to_python(calls):
    X, y = table(2)
    X[:, 1] = X[:, 0] * (1.0 + 1e-16)
    found = LogisticRegression(C=1e14).fit(X, y)
    assert calls == [None]
    assert found.certificate_.converged


# -- no penalty ----------------------------------------------------------------------------------------------


def overlapping(case):
    """Return a table of two classes that overlap, its labels and weights."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] + 0.5 * X[:, 1] + rng.logistic(size=200) > 0).astype(int)
    weight = None
    if case == "units":
        X = X * 10.0 ** np.array([-9, -3, 0, 9])
    elif case == "far from zero":
        X = X + np.array([0.0, 2020.0, 1e5, -3e3])
    elif case == "weights":
        weight = (np.arange(200) % 4).astype(float)
    elif case == "float32":
        X = X.astype(np.float32)
    elif case == "duplicates":
        X, y = np.repeat(X[:60], 3, axis=0), y[:180]
    elif case == "rare":
        y = ((np.arange(200) % 40 == 0) & (np.arange(200) > 10)).astype(int)
    return X, y, weight


CASES = ["plain", "units", "far from zero", "weights", "float32", "duplicates", "rare"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("intercept", [True, False])
def test_without_penalty_model_bound_and_summary_are_those_from_python(case, intercept, calls, monkeypatch):
    X, y, weight = overlapping(case)
    make = LogisticRegression(C=np.inf, fit_intercept=intercept)
    found = clone(make).fit(X, y, weight)
    assert calls[-1] is not None
    assert found.certificate_.converged
    found.certificate_.verify(X, y, weight)
    monkeypatch.setattr(newton, "suits_small_fit", lambda *args: False)
    known = clone(make).fit(X, y, weight)
    digits = 1e-7 if case != "float32" else 1e-4
    np.testing.assert_allclose(
        found.decision_function(X), known.decision_function(X), rtol=digits, atol=digits
    )
    one, other = found.certificate_, known.certificate_
    assert one.lower_bound <= other.objective
    assert other.lower_bound <= one.objective
    assert one.scale == pytest.approx(other.scale, rel=1e-14)
    mine, theirs = found.summary(), known.summary()
    np.testing.assert_allclose(mine.standard_error, theirs.standard_error, rtol=1e-5)
    assert mine.rows == theirs.rows
    assert mine.log_likelihood == pytest.approx(theirs.log_likelihood, rel=1e-6)
    assert mine.constant_log_likelihood == pytest.approx(theirs.constant_log_likelihood, rel=1e-12)


def test_columns_in_double_precision_need_nothing_else(calls):
    X, y, _ = overlapping("plain")
    LogisticRegression(C=np.inf).fit(X, y)
    assert calls[-1].likelihood is not None
    assert calls[-1].last_move < 1e-3


@pytest.mark.parametrize("on_separation", ["warn", "raise"])
@pytest.mark.parametrize("boundary", [0, 3])
def test_separated_classes_are_found_as_before(on_separation, boundary):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.where(y, 0.1, -0.1)
    X = np.vstack([X, np.tile([[0.0, 1.0, 2.0]], (2 * boundary, 1))])  # the same rows with either label
    y = np.append(y, np.arange(2 * boundary) % 2)
    model = LogisticRegression(C=np.inf, on_separation=on_separation)
    if on_separation == "raise":
        with pytest.raises(PerfectSeparation) as caught:
            model.fit(X, y)
        assert caught.value.kind == ("quasi-complete" if boundary else "complete")
        return
    with pytest.warns(SeparationWarning):
        model.fit(X, y)
    model.certificate_.verify(X, y)


def test_dependent_columns_are_warned_of_as_before():
    X, y, _ = overlapping("plain")
    X = np.column_stack([X, X[:, 0] - 2.0 * X[:, 1]])
    with pytest.warns(RankWarning):
        found = LogisticRegression(C=np.inf).fit(X, y)
    found.certificate_.verify(X, y)
    assert np.isfinite(found.summary().standard_error).all()


def test_larger_fits_without_a_penalty_are_bounded_by_the_curvature_too():
    """Newton's passes from a start end where the small fit does, with the same bound and likelihood."""
    X = np.random.default_rng(3).normal(size=(400, 6)) + 2.0
    y = np.where(X[:, 0] - 2.0 + np.random.default_rng(4).logistic(size=400) > 0.0, 1.0, -1.0)
    stated, data = problem("logistic"), blocks(X, y)
    small = solve(Newton(), stated, data, tol=1e-8)[0]
    large = solve(Newton((np.zeros((6, 1)), np.zeros(1))), stated, data, tol=1e-8)[0]
    np.testing.assert_allclose(large.w, small.w, rtol=1e-8)
    assert 0.0 < large.certificate.gap <= 1e-12
    assert large.certificate.objective - small.certificate.objective <= 1e-13
    np.testing.assert_allclose(large.likelihood.information, small.likelihood.information, rtol=1e-8)
