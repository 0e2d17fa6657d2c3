"""Parameters out of range, solvers that do not fit and calls out of order are refused with a sentence."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from contracts.certified import answers
from contracts.refusals import (
    X,
    Y,
    every_learner,
    refuses,
    target,
)
from sixfold import ERMRegressor, LinearRegression
from sixfold.errors import IncompatibleError
from sixfold.learners.registry import LEARNERS

# -- parameters --------------------------------------------------------------------------------------------


OUT_OF_RANGE = [
    (
        {"penalty": "ll2"},
        "penalty='ll2' is not an option; did you mean 'l2'? The options are ",
    ),
    (
        {"solver": "direkt"},
        "solver='direkt' is not an option; did you mean 'direct'? The options are 'auto',",
    ),
    ({"C": 0}, "C=0 is out of range: a number above 0 is needed."),
    ({"C": np.nan}, "C=nan is out of range: a number above 0 is needed."),
    ({"C": "1"}, "C='1' is of type str: a number above 0 is needed."),
    ({"on_separation": "ignore"}, "on_separation='ignore' is not an option"),
    ({"multi_class": "crammer_singer"}, "multi_class='crammer_singer' is not an option"),
    ({"alpha": -1}, "alpha=-1 is out of range: a finite number that is at least 0 is needed."),
    ({"alpha": np.inf}, "alpha=inf is out of range: a finite number that is at least 0 is needed."),
    ({"alpha": "1"}, "alpha='1' is of type str: a finite number that is at least 0 is needed."),
    ({"tol": -1e-3}, "tol=-0.001 is out of range: a number that is at least 0 is needed."),
    ({"tol": None}, "tol=None is of type NoneType: a number that is at least 0 is needed."),
    ({"max_iter": 0}, "max_iter=0 is out of range: a whole number that is at least 1 or None is needed."),
    (
        {"max_iter": 2.5},
        "max_iter=2.5 is of type float: a whole number that is at least 1 or None is needed.",
    ),
    ({"time_limit": 0}, "time_limit=0 is out of range: a number above 0 or None is needed."),
    (
        {"penalty": "elasticnet", "l1_ratio": 2},
        "l1_ratio=2 is outside 0 to 1. 0 is the l2 penalty, 1 the l1",
    ),
    ({"penalty": "elasticnet", "l1_ratio": "a"}, "l1_ratio='a' is outside 0 to 1."),
    ({"n_neighbors": 0}, "n_neighbors=0 is out of range: a whole number that is at least 1 is needed."),
    ({"n_neighbors": 2.5}, "n_neighbors=2.5 is of type float: a whole number that is at least 1 is needed."),
    ({"radius": -1}, "radius=-1 is out of range: a number that is at least 0 is needed."),
    ({"radius": "far"}, "radius='far' is of type str: a number that is at least 0 is needed."),
    ({"leaf_size": 0}, "leaf_size=0 is out of range: a whole number that is at least 1 is needed."),
    ({"weights": "distnce"}, "weights='distnce' is not an option; did you mean 'distance'? The options are"),
    ({"algorithm": "kdtree"}, "algorithm='kdtree' is not an option; did you mean 'kd_tree'? The options"),
    ({"metric": "cosin"}, "metric='cosin' is not an option; did you mean 'cosine'? The options are"),
    ({"metric_params": 2}, "metric_params=2 is no dictionary of parameters."),
    ({"metric": "minkowski", "p": 0}, "p=0 is out of range: a number above 0 is needed."),
    ({"n_jobs": 0}, "n_jobs=0 is no number of threads. Use None or -1 for all of them."),
    ({"fit_intercept": "no"}, "fit_intercept='no' is of type str: True or False is needed."),
    ({"callbacks": print}, "is no sequence of callables. Pass a list, for instance [print]."),
    ({"callbacks": ["print"]}, "callbacks=['print'] is no sequence of callables."),
]


@pytest.mark.parametrize(
    ("learner", "parameters", "sentence"),
    [
        pytest.param(learner, parameters, sentence, id=f"{learner.name}-{parameters}")
        for learner in LEARNERS
        for parameters, sentence in OUT_OF_RANGE
        if parameters.keys() <= learner.make().get_params().keys()
    ],
)
def test_a_parameter_out_of_range_is_named(learner, parameters, sentence):
    if learner.name == "Perceptron" and "tol" in parameters:
        return  # may be None there; see its own tests
    with refuses(sentence):
        learner.make(**parameters).fit(X, target(learner))


def test_positive_is_true_or_false():
    with refuses("positive='yes' is of type str: True or False is needed."):
        LinearRegression(positive="yes").fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"loss": "abs"}, "loss='abs' is not an option; did you mean 'absolute'? The options are 'squared',"),
        ({"learning_rate": "constnt"}, "learning_rate='constnt' is not an option; did you mean 'constant'?"),
        ({"eta0": -1}, "eta0=-1 is out of range: a number above 0 or None is needed."),
        ({"power_t": -1}, "power_t=-1 is out of range: a number that is at least 0 is needed."),
        ({"average": -3}, "average=-3 is out of range: a whole number that is at least 0 is needed."),
        ({"batch_size": 0}, "batch_size=0 is out of range: a whole number that is at least 1 is needed."),
        ({"shuffle": "yes"}, "shuffle='yes' is of type str: True or False is needed."),
    ],
    ids=lambda part: ",".join(f"{k}={v}" for k, v in part.items()) if isinstance(part, dict) else None,
)
def test_an_option_of_the_recipe_is_checked_whatever_the_solver(parameters, sentence):
    for solver in ("auto", "sgd"):
        with refuses(sentence):
            ERMRegressor(**parameters, solver=solver).fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "sentence", "works"),
    [
        (
            {"loss": "absolute", "solver": "newton"},
            "solver='newton' does not fit loss='absolute' with penalty=None: the loss has kinks",
            "interior_point",
        ),
        (
            {"loss": "absolute", "solver": "direct"},
            "the direct solution exists for the squared loss only",
            "interior_point",
        ),
        (
            {"loss": "cubed", "solver": "interior_point"},
            "solver='interior_point' does not fit loss='cubed' with penalty=None: it is made for",
            "newton",
        ),
        (
            {"penalty": "l1", "solver": "direct"},
            "penalty='l1': a penalty with absolute values has no direct solution",
            "gd",
        ),
        ({"penalty": "elasticnet", "solver": "cg"}, "the penalty is not a square", "gd"),
        ({"penalty": "l1", "solver": "newton"}, "the penalty has kinks, where it has no curvature", "gd"),
    ],
)
def test_a_solver_that_does_not_fit_says_why_and_what_does(parameters, sentence, works):
    with refuses(sentence, IncompatibleError) as caught:
        ERMRegressor(**parameters).fit(X, Y)
    listed = str(caught.value).partition("What works: ")[2]
    assert repr(works) in listed
    assert repr(parameters["solver"]) not in listed
    # Every one that is offered does work.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for solver in re.findall(r"'(\w+)'", listed):
            ERMRegressor(**(parameters | {"solver": solver, "max_iter": 2})).fit(X, Y)


def test_coefficients_that_must_be_positive_are_named():
    with refuses("with penalty=None and positive=True: it cannot keep the coefficients", IncompatibleError):
        LinearRegression(solver="direct", positive=True).fit(X, Y)


# -- order of calls ------------------------------------------------------------------------------------------


@every_learner
def test_a_learner_that_is_not_fitted_says_so(learner):
    model = learner.make()
    with refuses(f"This {learner.name} instance is not fitted yet.", NotFittedError):
        answers(model, X)
    with refuses(f"{learner.name} has no certificate_ before it is fitted.", AttributeError):
        model.certificate_  # noqa: B018


def test_batches_must_be_alike():
    model = LinearRegression().partial_fit(X, Y)
    with refuses("X has 2 features"):
        model.partial_fit(X[:, :2], Y)
    with refuses("y has 2 targets, but earlier batches had 1. Pass the same targets in every batch."):
        model.partial_fit(X, np.column_stack([Y, Y]))


@pytest.mark.parametrize("parameters", [{"penalty": "l1"}, {"positive": True}])
def test_batches_are_offered_only_where_they_add_up(parameters):
    assert hasattr(LinearRegression(penalty="l2"), "partial_fit")
    with pytest.raises(AttributeError) as caught:
        LinearRegression(**parameters).partial_fit  # noqa: B018
    assert "partial_fit works with penalty=None or 'l2' and positive=False" in str(caught.value.__cause__)
