"""SGDClassifier and SGDRegressor: scikit-learn's weights step by step, and what is certified of them."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import linear_model as theirs
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV as TheirSearch
from sklearn.preprocessing import StandardScaler

from sixfold import ERMClassifier, GridSearchCV, SGDClassifier, SGDRegressor
from sixfold.errors import InputError, StoppedEarly

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 5))
THREE = np.argmax(X[:, :3] + RNG.normal(size=(150, 3)), axis=1)
TWO = THREE > 0
NUMBERS = X @ RNG.normal(size=5) + 1.0 + 0.3 * RNG.normal(size=150)
WEIGHT = RNG.uniform(0.2, 3.0, size=150)
WEIGHT[::11] = 0.0

CLASS_LOSSES = ("hinge", "log_loss", "squared_hinge", "perceptron", "squared_error", "epsilon_insensitive")
REAL_LOSSES = ("squared_error", "epsilon_insensitive")
SCHEDULES = ("constant", "optimal", "invscaling")
# In the order of the rows, and a number of epochs that no rule of stopping changes.
STEPS = {"shuffle": False, "max_iter": 4, "tol": None, "epsilon": 0.0}


def assert_same_model(ours, other, rtol=1e-11):
    scale = np.abs(other.coef_).max()
    np.testing.assert_allclose(ours.coef_, other.coef_, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(ours.intercept_, other.intercept_, rtol=rtol, atol=rtol * scale)
    assert ours.coef_.shape == other.coef_.shape
    assert ours.intercept_.shape == other.intercept_.shape
    assert ours.n_iter_ == other.n_iter_
    assert ours.t_ == other.t_


def alpha_for(loss, learning_rate):
    """Return an alpha whose first step, alpha**-0.25, is not too long for a loss with a square."""
    return 1000.0 if loss.startswith("squared") and learning_rate == "optimal" else 0.01


# -- the steps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weights"])
@pytest.mark.parametrize("average", [False, True, 200])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("loss", CLASS_LOSSES)
def test_classes_are_learnt_by_the_steps_of_scikit_learn(loss, schedule, average, weight):
    parameters = {"loss": loss, "learning_rate": schedule, "average": average, **STEPS}
    parameters["alpha"] = alpha_for(loss, schedule)
    for y in (TWO, THREE):
        ours, other = (
            kind(**parameters).fit(X, y, sample_weight=weight)
            for kind in (SGDClassifier, theirs.SGDClassifier)
        )
        assert_same_model(ours, other)
        np.testing.assert_allclose(
            ours.decision_function(X), other.decision_function(X), rtol=1e-8, atol=1e-8
        )
        ours.certificate_.verify(X, y, weight)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weights"])
@pytest.mark.parametrize("average", [False, True, 200])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("loss", REAL_LOSSES)
def test_numbers_are_learnt_by_the_steps_of_scikit_learn(loss, schedule, average, weight):
    parameters = {"loss": loss, "learning_rate": schedule, "average": average, **STEPS}
    parameters["alpha"] = alpha_for(loss, schedule)
    ours, other = (
        kind(**parameters).fit(X, NUMBERS, sample_weight=weight)
        for kind in (SGDRegressor, theirs.SGDRegressor)
    )
    assert_same_model(ours, other)
    ours.certificate_.verify(X, NUMBERS, weight)


@settings(max_examples=30, deadline=None)
@given(
    rows=st.integers(2, 40),
    columns=st.integers(1, 8),
    intercept=st.booleans(),
    penalty=st.sampled_from(["l2", None]),
    seed=st.integers(0, 1000),
)
def test_the_steps_are_the_same_whatever_the_shape(rows, columns, intercept, penalty, seed):
    rng = np.random.default_rng(seed)
    table, y = rng.normal(size=(rows, columns)), np.arange(rows) % 2
    table[:, -1] = 1.5  # a constant column
    parameters = {**STEPS, "fit_intercept": intercept, "penalty": penalty, "loss": "log_loss", "alpha": 0.02}
    assert_same_model(
        SGDClassifier(**parameters).fit(table, y), theirs.SGDClassifier(**parameters).fit(table, y)
    )


def test_class_weights_of_two_classes_are_those_of_scikit_learn():
    # With weights of rows, "balanced" balances what counts here, and rows there.
    for class_weight, weight in (("balanced", None), ({False: 3.0, True: 0.5}, WEIGHT)):
        parameters = {**STEPS, "class_weight": class_weight}
        assert_same_model(
            SGDClassifier(**parameters).fit(X, TWO, sample_weight=weight),
            theirs.SGDClassifier(**parameters).fit(X, TWO, sample_weight=weight),
        )


def test_sparse_rows_take_the_steps_of_dense_ones():
    table = np.where(np.abs(X) > 1.0, X, 0.0)
    for average in (False, True):
        model = SGDClassifier("log_loss", alpha=0.1, average=average, **STEPS)
        dense = model.fit(table, THREE).coef_, model.intercept_
        model.fit(sp.csr_array(table), THREE)
        np.testing.assert_allclose(model.coef_, dense[0], rtol=1e-10)
        np.testing.assert_allclose(model.intercept_, dense[1], rtol=1e-10)
    parameters = {**STEPS, "fit_intercept": False}  # whose steps scikit-learn shortens for sparse rows
    assert_same_model(
        SGDClassifier(**parameters).fit(sp.csr_array(table), THREE),
        theirs.SGDClassifier(**parameters).fit(sp.csr_matrix(table), THREE),
    )


def test_absolute_values_in_the_penalty_are_those_of_scikit_learn_while_no_weight_is_zero():
    table = np.abs(X) + 0.5
    parameters = {**STEPS, "max_iter": 1, "penalty": "elasticnet", "l1_ratio": 0.5, "alpha": 1e-3}
    parameters["eta0"] = 1e-4
    start = {"coef_init": np.full(5, 2.0)}
    assert_same_model(
        SGDRegressor(**parameters).fit(table, NUMBERS, **start),
        theirs.SGDRegressor(**parameters).fit(table, NUMBERS, **start),
    )


def test_float32_is_learnt_in_double_precision_and_kept_in_single():
    single = SGDClassifier(**STEPS).fit(X.astype(np.float32), TWO)
    double = SGDClassifier(**STEPS).fit(X.astype(np.float32).astype(np.float64), TWO)
    assert single.coef_.dtype == np.float32
    np.testing.assert_array_equal(single.coef_, double.coef_.astype(np.float32))
    single.certificate_.verify(X.astype(np.float32), TWO)


# -- starts and batches --------------------------------------------------------------------------------------


def test_a_start_is_given_or_that_of_the_last_fit():
    once = SGDClassifier(**STEPS).fit(X, THREE)
    given_start = SGDClassifier(**STEPS).fit(X, THREE, coef_init=once.coef_, intercept_init=once.intercept_)
    warm = SGDClassifier(warm_start=True, **STEPS).fit(X, THREE).fit(X, THREE)
    other = theirs.SGDClassifier(warm_start=True, **STEPS).fit(X, THREE).fit(X, THREE)
    np.testing.assert_array_equal(given_start.coef_, warm.coef_)
    assert_same_model(warm, other)
    with pytest.raises(InputError, match=r"coef_init has shape \(5, 3\), but \(3, 5\) is needed"):
        SGDClassifier().fit(X, THREE, coef_init=once.coef_.T)


@pytest.mark.parametrize("average", [False, 60])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weights"])
def test_batches_go_on_where_the_last_call_ended(average, weight):
    def learn(kind, y, first=None, **parameters):
        model = kind(average=average, **STEPS, **parameters)
        for rows in (slice(0, 50), slice(50, 120), slice(120, 150)):
            part = None if weight is None else weight[rows]
            model.partial_fit(X[rows], y[rows], sample_weight=part, **first or {})
            first = None
        return model

    # Beside an average, scikit-learn's classifier goes on from another intercept than it has reached.
    parameters = {"first": {"classes": [0, 1, 2]}, "fit_intercept": not average}
    ours, other = (learn(kind, THREE, **parameters) for kind in (SGDClassifier, theirs.SGDClassifier))
    assert_same_model(ours, other)
    assert_same_model(learn(SGDRegressor, NUMBERS), learn(theirs.SGDRegressor, NUMBERS))


def test_batches_go_on_from_a_fit_dense_or_sparse():
    parameters = {"average": True, "fit_intercept": False, **STEPS}
    ours, other = SGDClassifier(**parameters), theirs.SGDClassifier(**parameters)
    for model in (ours, other):
        model.fit(X, THREE).partial_fit(X[:40], THREE[:40])
    assert_same_model(ours, other)
    before = ours.t_
    ours.partial_fit(sp.csr_array(X[:40]), THREE[:40])
    assert ours.t_ == before + 40
    assert ours.certificate_.notes == ("of the last batch alone, with zero as its lower bound",)
    ours.certificate_.verify(X[:40], THREE[:40])


def test_a_batch_that_cannot_be_learnt_is_refused_and_changes_nothing():
    with pytest.raises(InputError, match="early_stopping=True is for fit"):
        SGDRegressor(early_stopping=True).partial_fit(X, NUMBERS)
    with pytest.raises(InputError, match="class_weight='balanced' cannot be used by partial_fit"):
        SGDClassifier(class_weight="balanced").partial_fit(X, TWO, classes=[False, True])
    model = SGDRegressor().partial_fit(X, NUMBERS)
    before = model.coef_.copy(), model.t_
    with pytest.raises(InputError, match="grew without bound"):
        model.partial_fit(1e60 * X, NUMBERS)
    np.testing.assert_array_equal(model.coef_, before[0])
    assert model.t_ == before[1]


# -- when it ends --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learning_rate", ["constant", "adaptive"])
def test_it_ends_when_epochs_no_longer_improve_it(learning_rate):
    patient = SGDClassifier("log_loss", learning_rate=learning_rate, n_iter_no_change=8).fit(X, TWO)
    hasty = SGDClassifier("log_loss", learning_rate=learning_rate, n_iter_no_change=2).fit(X, TWO)
    careful = SGDClassifier("log_loss", learning_rate=learning_rate, tol=1e-6).fit(X, TWO)
    plain = SGDClassifier("log_loss", learning_rate=learning_rate).fit(X, TWO)
    assert hasty.n_iter_ < plain.n_iter_ < patient.n_iter_
    assert plain.n_iter_ < careful.n_iter_ < 1000
    objective = [record.objective for record in plain.history_]
    if learning_rate == "constant":  # five epochs without a gain of tol, and none before
        best = np.minimum.accumulate(objective)
        idle = objective[1:] > best[:-1] - 1e-3
        assert idle[-5:].all()
        assert not any(idle[k : k + 5].all() for k in range(idle.size - 5))


def test_held_out_rows_are_those_of_scikit_learn_and_so_is_the_end():
    for kind, y, extra in ((SGDClassifier, TWO, {}), (SGDClassifier, THREE, {}), (SGDRegressor, NUMBERS, {})):
        # Without a penalty: scikit-learn scores weights that lack the shrinkage of l2.
        parameters = {"early_stopping": True, "penalty": None, "shuffle": False, "random_state": 3, **extra}
        ours = kind(**parameters).fit(X, y)
        other = getattr(theirs, kind.__name__)(**parameters).fit(X, y)
        assert ours.n_iter_ == other.n_iter_ < 1000
        np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-9)


def test_more_rows_may_be_held_out_but_not_none():
    few, many = (SGDClassifier(early_stopping=True, validation_fraction=share) for share in (0.1, 0.5))
    assert not np.array_equal(few.fit(X, TWO).coef_, many.fit(X, TWO).coef_)
    with pytest.raises(InputError, match=r"cannot hold out validation_fraction=0\.1 of the rows: "):
        SGDClassifier(early_stopping=True).fit(X[:3], [0, 0, 1])
    weight = np.zeros(150)
    weight[:2] = 1.0
    with pytest.raises(InputError, match="all have the weight 0"):
        SGDRegressor(early_stopping=True).fit(X, NUMBERS, sample_weight=weight)


def test_only_epochs_that_were_not_enough_are_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ended = SGDClassifier().fit(X, TWO)
        SGDClassifier(max_iter=3, tol=None).fit(X, TWO)  # as many as were asked for
    assert not ended.certificate_.converged
    with pytest.warns(StoppedEarly, match="Stopped by max_iter=3 after 3 iterations"):
        SGDClassifier(max_iter=3).fit(X, TWO)
    with pytest.warns(StoppedEarly, match="Stopped by a callback after 2 iterations"):
        model = SGDClassifier(callbacks=[lambda record: record.iteration == 2]).fit(X, THREE)
    assert model.n_iter_ == 2
    assert model.coef_.all()


# -- what is certified ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "name"), [("log_loss", "logistic"), ("squared_hinge", "squared_hinge")])
def test_the_certificate_is_of_the_problem_that_the_steps_approach(loss, name):
    model = SGDClassifier(loss, alpha=0.1, learning_rate="adaptive", tol=1e-8).fit(X, THREE)
    half = 0.5 if loss == "squared_hinge" else 1.0  # of which twice is scikit-learn's
    exact = ERMClassifier(name, alpha=0.1 * half, tol=1e-12).fit(X, THREE)
    gap = model.certificate_.objective - exact.certificate_.objective
    assert 0.0 <= gap <= model.certificate_.gap <= 1e-3 * model.certificate_.scale
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=0.02)


def test_weights_scale_the_loss_against_the_penalty_as_in_scikit_learn():
    # alpha |w|^2 / 2 + (1 / n) sum weight loss: the loss is divided by n, and not by the sum of the weights.
    model = SGDRegressor(alpha=0.2, learning_rate="adaptive", tol=1e-10).fit(X, NUMBERS, sample_weight=WEIGHT)
    A = np.column_stack([X, np.ones(150)])
    ridge = np.diag([0.2 * 150] * 5 + [0.0])
    exact = np.linalg.solve(A.T @ (WEIGHT[:, None] * A) + ridge, A.T @ (WEIGHT * NUMBERS))
    np.testing.assert_allclose([*model.coef_, *model.intercept_], exact, atol=0.01)
    assert model.certificate_.relative_gap < 1e-4


def test_steps_that_are_too_large_are_refused_with_what_to_do():
    with pytest.raises(InputError, match="first step of learning_rate='optimal', 10, is too large") as caught:
        SGDClassifier("squared_hinge").fit(10.0 * X, TWO)
    assert "use learning_rate='adaptive'" in str(caught.value)
    with pytest.raises(InputError, match="or use a smaller eta0"):
        SGDRegressor().fit(100.0 + X, NUMBERS)


# -- parameters and answers ----------------------------------------------------------------------------------


def test_probabilities_are_there_for_log_loss_alone():
    parameters = {"loss": "log_loss", "alpha": 0.1, **STEPS}
    ours, other = (kind(**parameters).fit(X, THREE) for kind in (SGDClassifier, theirs.SGDClassifier))
    np.testing.assert_allclose(ours.predict_proba(X), other.predict_proba(X), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(np.exp(ours.predict_log_proba(X)), ours.predict_proba(X), rtol=1e-10)
    hinge = SGDClassifier().fit(X, TWO)
    assert not hasattr(hinge, "predict_log_proba")
    with pytest.raises(AttributeError) as caught:
        hinge.predict_proba(X)
    assert "predict_proba needs loss='log_loss'" in str(caught.value.__cause__)


@pytest.mark.parametrize("kind", [SGDClassifier, SGDRegressor])
@pytest.mark.parametrize(
    "changes",
    [
        {"loss": "epsilon_insensitive", "epsilon": 0.0},
        {"penalty": None},
        {"penalty": "l1"},
        {"penalty": "elasticnet"},
        {"penalty": "elasticnet", "l1_ratio": 0.7},
        {"alpha": 0.05},
        {"fit_intercept": False},
        {"max_iter": 6},
        {"tol": 0.5, "n_iter_no_change": 1},
        {"shuffle": False},
        {"random_state": 5},
        {"learning_rate": "optimal", "loss": "epsilon_insensitive", "epsilon": 0.0},
        {"learning_rate": "invscaling"},
        {"learning_rate": "invscaling", "power_t": 0.1},
        {"learning_rate": "adaptive", "tol": 0.5, "n_iter_no_change": 1},
        {"eta0": 0.02},
        {"early_stopping": True},
        {"average": True},
        {"average": 100},
    ],
    ids=str,
)
def test_every_parameter_changes_something(kind, changes):
    y = TWO if kind is SGDClassifier else NUMBERS
    base = {"learning_rate": "constant", "max_iter": 3, "tol": None, "alpha": 0.01}
    plain = kind(**base).fit(X, y)
    assert not np.array_equal(kind(**(base | changes)).fit(X, y).coef_, plain.coef_)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"loss": "huber"}, "loss='huber' is not an option"),
        ({"loss": "epsilon_insensitive"}, "pass epsilon=0.0, which is the absolute error"),
        ({"learning_rate": "pa1"}, "learning_rate='pa1' is not an option"),
        ({"learning_rate": "optimal", "alpha": 0.0}, "takes its steps from alpha, which is 0"),
        ({"eta0": 0.0}, "eta0=0.0 is out of range"),
        ({"power_t": -0.5}, "power_t=-0.5 is out of range"),
        ({"tol": -1e-3}, "tol=-0.001 is out of range: a number that is at least 0 or None is needed"),
        ({"n_iter_no_change": 0}, "n_iter_no_change=0 is out of range"),
        ({"average": 0}, "average=0 is out of range"),
        ({"shuffle": "yes"}, "shuffle='yes' is of type str"),
        ({"validation_fraction": 1.0}, "validation_fraction=1.0 is out of range"),
    ],
    ids=str,
)
def test_what_is_not_there_is_refused_by_a_sentence(changes, sentence):
    for kind, y in ((SGDClassifier, TWO), (SGDRegressor, NUMBERS)):
        with pytest.raises(InputError, match=sentence):
            kind(**changes).fit(X, y)


def test_a_search_finds_what_that_of_scikit_learn_finds():
    table, labels = StandardScaler().fit_transform(load_iris().data), load_iris().target
    grid = {"alpha": [1e-3, 1e-2, 0.1], "loss": ["hinge", "log_loss"]}
    searches = (kind(SGDClassifier(), grid, cv=4) for kind in (GridSearchCV, TheirSearch))
    ours, other = (search.fit(table, labels) for search in searches)
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])
    assert ours.best_params_ == other.best_params_
