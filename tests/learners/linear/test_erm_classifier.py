"""ERMClassifier: each loss and penalty against another way to the minimum; every parameter matters."""

import numpy as np
import pytest
from scipy.optimize import minimize

from sixfold import ERMClassifier, LogisticRegression
from sixfold.errors import IncompatibleError, StoppedEarly
from sixfold.learners.linear.erm import CLASS_LOSSES
from sixfold.solvers.base import Solution

SMOOTH = ("logistic", "squared", "squared_hinge", "softmax")


def after_one(record):
    """Stop a fit after its first iteration."""
    return record.iteration == 1


def table(classes=3, rows=60, seed=2):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 2)) * [1.0, 3.0] + [0.5, -2.0]
    slopes = np.array([[1.2, -0.7, 0.1], [-0.2, 0.4, -0.3]])[:, :classes]
    y = (X @ slopes - (X @ slopes).mean(axis=0) + random.gumbel(size=(rows, classes))).argmax(axis=1)
    return X, y, random.uniform(0.1, 2.0, size=rows)


def loss_of(name, s, y, classes):
    """Return the loss of each row as the texts define it, summed over classes against the rest."""
    if name == "softmax":
        return np.logaddexp.reduce(s, axis=1) - s[np.arange(y.size), y]
    sign = np.where(y[:, None] == (np.arange(classes) if classes > 2 else [1]), 1.0, -1.0)
    m = sign * s
    by_name = {
        "logistic": np.logaddexp(0.0, -m),
        "squared": (s - sign) ** 2 / 2,
        "perceptron": np.maximum(0.0, -m),
        "hinge": np.maximum(0.0, 1.0 - m),
        "squared_hinge": np.maximum(0.0, 1.0 - m) ** 2 / 2,
    }
    return by_name[name].sum(axis=1)


def penalty_of(name, w):
    half = np.square(w).sum() / 2
    return {None: 0.0, "l2": half, "l1": np.abs(w).sum(), "elasticnet": (np.abs(w).sum() + half) / 2}[name]


def objective(theta, loss, penalty, alpha, X, y, weight, classes):
    w, b = theta[:-1], theta[-1]
    return alpha * penalty_of(penalty, w) + weight @ loss_of(loss, X @ w + b, y, classes) / weight.sum()


def best(loss, penalty, alpha, X, y, weight, classes):
    """Return the least objective that scipy finds; a kink is smoothed less and less on the way."""
    scores = classes if classes > 2 or loss == "softmax" else 1
    shape = (X.shape[1] + 1, scores)
    value = lambda theta: objective(theta.reshape(shape), loss, penalty, alpha, X, y, weight, classes)  # noqa: E731
    if loss in SMOOTH and penalty in (None, "l2"):
        start = np.zeros(shape[0] * shape[1])
        return minimize(value, start, method="BFGS", options={"gtol": 1e-8}).fun
    # Classes against the rest are problems of their own, small enough for the simplex of Nelder and Mead.
    total = 0.0
    for k in range(scores):
        own = (y == (k if classes > 2 else 1)).astype(int)
        part = lambda theta: objective(theta[:, None], loss, penalty, alpha, X, own, weight, 2)  # noqa: B023, E731
        theta = np.zeros(shape[0])
        for _ in range(6):
            options = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 5000}
            found = minimize(part, theta, method="Nelder-Mead", options=options)
            theta = found.x
        total += found.fun
    return total


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("loss", "penalty"),
    [
        *((loss, penalty) for loss in SMOOTH for penalty in (None, "l2")),
        ("hinge", "l2"),
        *((loss, "l1") for loss in ("logistic", "squared", "squared_hinge")),
        ("logistic", "elasticnet"),
    ],
)
def test_each_loss_reaches_the_minimum_that_scipy_finds(loss, penalty, classes):
    X, y, weight = table(classes)
    options = {"penalty": penalty, "alpha": 0.02}
    model = ERMClassifier(loss, **options, tol=1e-7, max_iter=2000).fit(X, y, weight)
    assert model.certificate_.converged
    theta = np.vstack([model.coef_.T, model.intercept_])
    found = objective(theta, loss, penalty, 0.02, X, y, weight, classes)
    assert found == pytest.approx(model.certificate_.objective, rel=1e-10)
    expected = best(loss, penalty, 0.02, X, y, weight, classes)
    scale = model.certificate_.scale
    assert found <= expected + 1e-6 * scale
    assert expected >= model.certificate_.lower_bound - 1e-9 * scale  # the bound is one


@pytest.mark.parametrize("penalty", [None, "l1"])
@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
def test_kinks_in_loss_and_penalty_are_approached(penalty):
    X, y, weight = table(2)
    model = ERMClassifier("hinge", penalty=penalty, alpha=0.02).fit(X, y, weight)
    assert model.certificate_.objective <= best("hinge", penalty, 0.02, X, y, weight, 2) + 1e-3


def test_the_perceptron_loss_is_least_for_the_zero_model():
    X, y, weight = table()
    model = ERMClassifier("perceptron").fit(X, y, weight)
    assert model.certificate_.objective == 0.0
    assert not model.coef_.any()


def test_softmax_and_logistic_are_logistic_regression():
    for classes, loss in ((2, "logistic"), (3, "softmax")):
        X, y, weight = table(classes)
        C = 2.0
        recipe = ERMClassifier(loss, alpha=1.0 / (C * weight.sum()), tol=1e-12).fit(X, y, weight)
        named = LogisticRegression(C=C, tol=1e-12).fit(X, y, weight)
        np.testing.assert_allclose(recipe.coef_, named.coef_, rtol=1e-6)
        np.testing.assert_allclose(recipe.predict_proba(X), named.predict_proba(X), atol=1e-7)
        np.testing.assert_array_equal(recipe.predict(X), named.predict(X))


def test_softmax_with_two_classes_has_two_scores_that_add_up_to_nothing():
    X, y, weight = table(2)
    model = ERMClassifier("softmax", alpha=0.01, tol=1e-12).fit(X, y, weight)
    assert model.coef_.shape == (2, 2)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-6)
    # Two scores of half the size share the penalty: |w|^2 / 2 becomes |w|^2 / 4.
    one = ERMClassifier("logistic", alpha=0.005, tol=1e-12).fit(X, y, weight)
    np.testing.assert_allclose(model.coef_[1] - model.coef_[0], one.coef_[0], rtol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), one.predict_proba(X), atol=1e-6)
    assert model.decision_function(X).shape == (60,)
    np.testing.assert_array_equal(model.predict(X), one.predict(X))


def test_the_straw_man_is_least_squares_on_signs():
    X, y, _ = table(2)
    design = np.column_stack([X, np.ones(60)])
    expected = np.linalg.lstsq(design, np.where(y == 1, 1.0, -1.0), rcond=None)[0]
    model = ERMClassifier("squared", penalty=None).fit(X, y)
    np.testing.assert_allclose(np.append(model.coef_[0], model.intercept_), expected, rtol=1e-9)


def test_probabilities_of_classes_against_the_rest_add_up_to_one():
    X, y, _ = table()
    model = ERMClassifier("logistic").fit(X, y)
    each = 1.0 / (1.0 + np.exp(-(X @ model.coef_.T + model.intercept_)))
    np.testing.assert_allclose(model.predict_proba(X), each / each.sum(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("loss", CLASS_LOSSES)
def test_probabilities_are_there_where_scores_mean_them(loss):
    model = ERMClassifier(loss)
    assert hasattr(model, "predict_proba") == (loss in ("logistic", "softmax"))
    assert hasattr(model, "predict_log_proba") == (loss in ("logistic", "softmax"))
    if loss not in ("logistic", "softmax"):
        with pytest.raises(AttributeError) as caught:
            model.predict_proba  # noqa: B018
        assert "predict_proba needs loss='logistic' or 'softmax'" in str(caught.value.__cause__)


def test_scores_of_no_size_do_not_make_probabilities_of_nothing():
    X, y, _ = table()
    model = ERMClassifier("logistic").fit(X, y)
    model.coef_ = np.full((3, 2), -1e4)
    model.intercept_ = np.log([1.0, 2.0, 1.0])  # the second class is twice as likely as the others
    np.testing.assert_allclose(model.predict_proba([[1.0, 1.0]]), [[0.25, 0.5, 0.25]])
    np.testing.assert_allclose(model.predict_log_proba([[1.0, 1.0]]), np.log([[0.25, 0.5, 0.25]]))


@pytest.mark.parametrize(
    ("base", "change"),
    [
        ({}, {"loss": "hinge"}),
        ({}, {"penalty": None}),
        ({}, {"alpha": 1.0}),
        ({"penalty": "elasticnet", "alpha": 0.1}, {"l1_ratio": 0.9}),
        ({}, {"fit_intercept": False}),
        ({}, {"class_weight": "balanced"}),
        ({}, {"solver": "sgd"}),
        ({"solver": "gd", "max_iter": 50}, {"tol": 0.5}),
        ({"solver": "gd"}, {"max_iter": 4}),
        ({"solver": "gd"}, {"time_limit": 1e-9}),
        ({"solver": "gd"}, {"callbacks": [after_one]}),
        ({"solver": "sgd"}, {"learning_rate": "constant"}),
        ({"solver": "sgd"}, {"eta0": 1e-4}),
        ({"solver": "sgd", "learning_rate": "decay"}, {"decay": 5.0}),
        ({"solver": "sgd", "learning_rate": "invscaling"}, {"power_t": 0.1}),
        ({"solver": "sgd"}, {"average": True}),
        ({"solver": "sgd"}, {"shuffle": False}),
        ({"solver": "sgd"}, {"random_state": 7}),
        ({"solver": "minibatch"}, {"batch_size": 3}),
    ],
    ids=",".join,
)
@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
def test_every_parameter_changes_something(base, change):
    X, y, _ = table(2)
    before, after = (
        ERMClassifier(**{"max_iter": 3, "tol": 0.0, **options}).fit(X, y) for options in (base, base | change)
    )
    assert not np.array_equal(before.coef_, after.coef_)


def test_a_loss_for_numbers_is_refused():
    X, y, _ = table()
    with pytest.raises(ValueError, match=r"loss='absolute' is not an option.*'logistic', 'squared'"):
        ERMClassifier("absolute").fit(X, y)


def test_a_solver_that_does_not_fit_the_loss_is_refused_with_what_would():
    X, y, _ = table(2)
    with pytest.raises(IncompatibleError, match=r"loss has kinks.*What works: .*'gd'.*or 'auto'"):
        ERMClassifier("hinge", solver="newton").fit(X, y)


def test_a_fit_that_ends_short_of_its_tolerance_says_so(monkeypatch):
    X, y, _ = table(2)
    monkeypatch.setattr("sixfold.solvers.smooth.newton.Newton.solve", half_way)
    with pytest.warns(StoppedEarly, match="Stopped by lack of progress") as caught:
        ERMClassifier("logistic", solver="newton").fit(X, y)
    assert caught[0].filename == __file__


def half_way(solver, problem, blocks, budget):
    """Return the zero model, with its certificate."""
    w, b = np.zeros((blocks.n_columns, 1)), np.zeros(1)
    return Solution(w, b, problem.certify("duality gap", w, b, blocks, budget.tol), "nothing")
