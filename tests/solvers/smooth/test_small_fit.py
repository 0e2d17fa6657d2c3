"""Small fits by one native call are those of Newton's method in Python, and obey the same limits."""

import numpy as np
import pytest

from sixfold import LinearSVC, LogisticRegression
from sixfold.errors import StoppedEarly
from sixfold.solvers.smooth import newton, small_fit

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
