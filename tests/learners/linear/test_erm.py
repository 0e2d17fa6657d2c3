"""ERMRegressor: each loss against another way to its minimum, and every parameter changes something."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from sixfold import ERMClassifier, ERMRegressor, LogisticRegression
from sixfold.errors import IncompatibleError, RankWarning


@pytest.fixture
def table():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3)) * [1.0, 20.0, 0.3] + [0.0, 5.0, 1.0]
    return X, X @ [1.0, -0.2, 4.0] + random.standard_t(2, size=80), random.integers(0, 4, 80).astype(float)


def test_absolute_loss_is_the_linear_programme(table):
    X, y, weight = table
    q, n = weight / weight.sum(), len(y)
    design = np.column_stack([X, np.ones(n), np.eye(n), -np.eye(n)])
    cost = np.concatenate([np.zeros(4), q, q])
    bounds = [(None, None)] * 4 + [(0, None)] * (2 * n)
    best = linprog(cost, A_eq=design, b_eq=y, bounds=bounds)
    model = ERMRegressor("absolute", tol=1e-10).fit(X, y, weight)
    assert model.solver_ == "interior point"
    assert model.certificate_.objective == pytest.approx(best.fun, rel=1e-8)
    np.testing.assert_allclose(model.coef_, best.x[:3], rtol=1e-5)
    model.certificate_.verify(X, y, weight)
    assert model.dual_.shape == (n,)


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
@pytest.mark.parametrize("loss", ["absolute", "cubed"])
def test_penalised_losses_reach_the_minimum(table, loss, penalty):
    X, y, _ = table
    model = ERMRegressor(loss, penalty=penalty, alpha=0.05, tol=1e-8, max_iter=20000).fit(X, y)
    assert model.certificate_.converged
    problem, power = model._problem(1.0), {"absolute": 1, "cubed": 3}[loss]

    def objective(theta):
        residual = np.abs(X @ theta[:3] + theta[3] - y)
        return problem.alpha * problem.penalty.value(theta[:3]) + np.mean(residual**power) / power

    start = np.append(model.coef_, model.intercept_)
    found = minimize(objective, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14})
    assert objective(start) <= found.fun * (1 + 1e-8)


def test_squared_loss_is_linear_regression(table):
    X, y, weight = table
    design = np.sqrt(weight)[:, None] * np.column_stack([X, np.ones(80)])
    expected = np.linalg.lstsq(design, np.sqrt(weight) * y, rcond=None)[0]
    model = ERMRegressor().fit(X, y, weight)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("base", "change"),
    [
        ({"solver": "sgd"}, {"learning_rate": "constant"}),
        ({"solver": "sgd"}, {"eta0": 1e-4}),
        ({"solver": "sgd", "learning_rate": "decay"}, {"decay": 5.0}),
        ({"solver": "sgd", "learning_rate": "invscaling"}, {"power_t": 0.1}),
        ({"solver": "sgd"}, {"average": True}),
        ({"solver": "sgd"}, {"shuffle": False}),
        ({"solver": "sgd"}, {"random_state": 7}),
        ({"solver": "minibatch"}, {"batch_size": 3}),
        ({}, {"fit_intercept": False}),
        ({"penalty": "l2"}, {"alpha": 1.0}),
        ({"penalty": "elasticnet", "alpha": 0.3}, {"l1_ratio": 0.9}),
    ],
)
@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
def test_every_parameter_changes_something(table, base, change):
    X, y, _ = table
    before = ERMRegressor(max_iter=3, tol=0.0, **base).fit(X, y)
    after = ERMRegressor(max_iter=3, tol=0.0, **(base | change)).fit(X, y)
    assert not np.array_equal(before.coef_, after.coef_)


def test_a_solver_that_does_not_fit_the_loss_is_refused_with_what_would(table):
    X, y, _ = table
    with pytest.raises(IncompatibleError, match=r"loss has kinks.*What works: .*'interior_point'.*or 'auto'"):
        ERMRegressor("absolute", solver="newton").fit(X, y)


@pytest.mark.parametrize(
    ("learner", "loss"),
    [(ERMRegressor, loss) for loss in ("squared", "absolute", "cubed")]
    + [(ERMClassifier, loss) for loss in ("squared", "logistic", "softmax", "hinge", "squared_hinge")],
)
def test_columns_that_depend_are_named_and_share_their_coefficient(table, learner, loss):
    X, y, _ = table
    X, y = np.column_stack([X, X[:, 0]]), y if learner is ERMRegressor else y > np.median(y)
    with pytest.warns(RankWarning, match="1 of 4 columns adds nothing to the others: 'x3' = 'x0'"):
        model = learner(loss, penalty=None).fit(X, y)
    coef = np.atleast_2d(model.coef_)
    np.testing.assert_allclose(coef[:, 3], coef[:, 0], rtol=1e-9)
    assert model.certificate_.converged
    assert model.certificate_.verify(X, y).relative_gap < 1e-6


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (LogisticRegression(C=np.inf), "or use a finite C,"),
        (LogisticRegression(penalty=None), "or use penalty='l2',"),
        (LogisticRegression(penalty=None, C=np.inf), "or use penalty='l2' with a finite C,"),
        (ERMClassifier("logistic", penalty=None), "or use penalty='l2',"),
        (ERMClassifier("logistic", penalty="l2", alpha=0.0), "or use alpha > 0,"),
    ],
)
def test_the_advice_for_dependent_columns_adds_a_penalty(table, model, advice):
    X, y, _ = table
    with pytest.warns(RankWarning, match=advice):
        model.fit(np.column_stack([X, X[:, 0]]), y > np.median(y))
