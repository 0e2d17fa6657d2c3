"""LinearRegression against statsmodels, scikit-learn and itself."""

import os
import pickle
import signal
import threading

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, Lasso, Ridge

from sixfold import LinearRegression
from sixfold.errors import InputError, RankWarning, StoppedEarly


@pytest.fixture
def table():
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 6)) * [1.0, 10.0, 0.1, 1.0, 5.0, 1.0] + 2.0
    return X, X @ [1.0, 0.1, -3.0, 0.0, 0.5, 2.0] + random.normal(size=120), random.integers(1, 4, 120)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_summary_says_what_statsmodels_says(table, fit_intercept, weighted):
    api = pytest.importorskip("statsmodels.api")
    X, y, weight = table
    weight = weight.astype(float) if weighted else None
    design = api.add_constant(X) if fit_intercept else X
    peer = api.WLS(y, design, weights=1.0 if weight is None else weight).fit()
    summary = LinearRegression(fit_intercept=fit_intercept).fit(X, y, weight).summary(confidence=0.9)
    np.testing.assert_allclose(summary.coefficient, peer.params, rtol=1e-9)
    np.testing.assert_allclose(summary.standard_error, peer.bse, rtol=1e-9)
    np.testing.assert_allclose(summary.t, peer.tvalues, rtol=1e-9)
    np.testing.assert_allclose(summary.p, peer.pvalues, rtol=1e-7, atol=1e-300)
    np.testing.assert_allclose(np.column_stack([summary.low, summary.high]), peer.conf_int(0.1), rtol=1e-9)
    assert summary.r_squared == pytest.approx(peer.rsquared, rel=1e-10)
    assert summary.adjusted_r_squared == pytest.approx(peer.rsquared_adj, rel=1e-10)
    assert summary.residual_deviation == pytest.approx(np.sqrt(peer.scale), rel=1e-10)
    assert summary.freedom == peer.df_resid


def test_summary_of_several_targets_and_of_dependent_columns(table):
    X, y, _ = table
    both = LinearRegression().fit(X, np.column_stack([y, -2.0 * y])).summary()
    np.testing.assert_allclose(both[1].standard_error, 2.0 * both[0].standard_error, rtol=1e-9)
    with pytest.warns(RankWarning, match="'x6' = 2 'x0'"):
        model = LinearRegression().fit(np.column_stack([X, 2.0 * X[:, 0]]), y)
    summary = model.summary()
    assert np.isnan(summary.standard_error[[1, 7]]).all()  # x0 and its double share one effect
    alone = LinearRegression().fit(X, y).summary()
    np.testing.assert_allclose(summary.standard_error[2:7], alone.standard_error[2:], rtol=1e-9)
    assert "--" in str(summary)


def test_summary_needs_an_unpenalised_direct_fit(table):
    X, y, _ = table
    with pytest.raises(InputError, match="Standard errors exist for unpenalised least squares"):
        LinearRegression(penalty="l2").fit(X, y).summary()
    with pytest.raises(InputError, match="confidence=95"):
        LinearRegression().fit(X, y).summary(confidence=95)


@pytest.mark.parametrize(
    ("parameters", "peer"),
    [
        ({"penalty": "l2", "alpha": 0.3}, lambda n: Ridge(alpha=0.3 * n)),
        ({"penalty": "l1", "alpha": 0.3}, lambda n: Lasso(alpha=0.3, tol=1e-12, max_iter=10**6)),
        (
            {"penalty": "elasticnet", "alpha": 0.3, "l1_ratio": 0.4},
            lambda n: ElasticNet(alpha=0.3, l1_ratio=0.4, tol=1e-12, max_iter=10**6),
        ),
    ],
)
def test_penalties_mean_what_they_mean_in_scikit_learn(table, parameters, peer):
    X, y, _ = table
    model = LinearRegression(tol=1e-12, **parameters).fit(X, y)
    expected = peer(len(y)).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6, atol=1e-8)
    assert model.intercept_ == pytest.approx(expected.intercept_, rel=1e-6)


@pytest.mark.parametrize("solver", ["direct", "cg", "coordinate", "gd"])
@pytest.mark.parametrize("penalty", [None, "l2"])
def test_solvers_agree(table, solver, penalty):
    X, y, weight = table
    parameters = {"penalty": penalty, "alpha": 0.1, "tol": 1e-10, "max_iter": 100000}
    reference = LinearRegression(**parameters).fit(X, y, weight)
    model = LinearRegression(solver=solver, **parameters).fit(X, y, weight)
    np.testing.assert_allclose(model.predict(X), reference.predict(X), atol=1e-3)
    assert model.certificate_.relative_gap <= 1e-10


@pytest.mark.parametrize("penalty", [None, "l2"])
def test_batches_in_any_order_are_one_fit(table, penalty):
    X, y, weight = table
    whole = LinearRegression(penalty=penalty, alpha=0.1).fit(X, y, weight)
    for order in (range(5), reversed(range(5))):
        model = LinearRegression(penalty=penalty, alpha=0.1)
        for part in order:
            rows = slice(24 * part, 24 * part + 24)
            model.partial_fit(X[rows], y[rows], weight[rows])
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-10)
        model.certificate_.verify(X, y, weight)
    model.fit(X[:50], y[:50])
    np.testing.assert_allclose(
        model.coef_, LinearRegression(penalty=penalty, alpha=0.1).fit(X[:50], y[:50]).coef_
    )


def test_batches_of_float32_have_float64_coefficients(table):
    X, y, _ = table
    model = LinearRegression().partial_fit(X.astype(np.float32), y.astype(np.float32))
    assert model.coef_.dtype == np.float64
    assert LinearRegression().fit(X.astype(np.float32), y).coef_.dtype == np.float32


def test_a_fit_that_fails_forgets_no_batches(table):
    X, y, _ = table
    model = LinearRegression().partial_fit(X[:60], y[:60])
    with pytest.raises(InputError, match="NaN"):
        model.fit(X, np.full_like(y, np.nan))
    model.partial_fit(X[60:], y[60:])
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-10)


def test_several_targets_are_fitted_as_each_alone(table):
    X, y, _ = table
    Y = np.column_stack([y, y**2])
    for penalty in (None, "l1"):
        model = LinearRegression(penalty=penalty, alpha=0.1, tol=1e-12).fit(X, Y)
        assert model.coef_.shape == (2, 6)
        for k in range(2):
            alone = LinearRegression(penalty=penalty, alpha=0.1, tol=1e-12).fit(X, Y[:, k])
            np.testing.assert_allclose(model.coef_[k], alone.coef_, rtol=1e-7, atol=1e-9)


def test_threads_do_not_change_a_bit_and_a_copy_predicts_the_same(table):
    X, y, _ = table
    X = np.repeat(X, 200, axis=0) + np.arange(24000)[:, None] * 1e-6
    y = np.repeat(y, 200)
    one, two = (LinearRegression(n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).predict(X), one.predict(X))


LONG_FITS = {
    "gd": {"solver": "gd", "tol": 0.0},
    "sgd": {"solver": "sgd", "tol": 0.0},
    "lasso": {"penalty": "l1", "alpha": 1e-5, "tol": 0.0},
}


@pytest.fixture(scope="module")
def long_table():
    random = np.random.default_rng(1)
    X = random.normal(size=(3000, 1200)) @ random.normal(size=(1200, 1200))
    return X, random.normal(size=3000)


@pytest.mark.parametrize("name", LONG_FITS)
def test_a_time_limit_leaves_a_usable_model_with_an_honest_certificate(long_table, name):
    X, y = long_table
    model = LinearRegression(max_iter=10**9, time_limit=0.3, **LONG_FITS[name])
    with pytest.warns(StoppedEarly, match=r"time_limit=0\.3 s") as caught:
        model.fit(X, y)
    assert caught[0].message.certificate.gap >= 0
    assert not model.certificate_.converged
    assert np.isfinite(model.predict(X[:5])).all()
    model.certificate_.verify(X, y)


@pytest.mark.parametrize("name", LONG_FITS)
def test_ctrl_c_leaves_a_usable_model_and_then_raises(long_table, name):
    X, y = long_table
    model = LinearRegression(max_iter=10**9, time_limit=60, **LONG_FITS[name])
    press = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    press.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    press.join()
    assert np.isfinite(model.predict(X[:5])).all()
    model.certificate_.verify(X, y)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
