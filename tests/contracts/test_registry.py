"""Every public learner is in the registry, can be shown, and names its solvers rightly; imports are lazy."""

import inspect
import re
import subprocess
import sys

import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split

import sixfold
from sixfold.data.examples import load_example
from sixfold.learners.linear.logistic_regression import SKLEARN_SOFTMAX_SOLVERS, SKLEARN_SOLVERS
from sixfold.learners.linear.ridge import SKLEARN_RIDGE_SOLVERS
from sixfold.learners.registry import LEARNERS, TRANSFORMERS
from sixfold.risk.losses import LOSSES
from sixfold.risk.penalties import PENALTIES, make_penalty
from sixfold.risk.problem import Problem
from sixfold.solvers.base import missing_methods
from sixfold.solvers.registry import all_solvers

ESTIMATOR_TYPES = {
    "regression": "regressor",
    "classification": "classifier",
    "search": None,
    "transformation": None,  # scikit-learn has no type for what only transforms
}
REGISTERED = LEARNERS + TRANSFORMERS
# They turn rows into other rows without learning how.
NOTHING_LEARNT = {"KNeighborsTransformer", "RadiusNeighborsTransformer", "TableEncoder"}
DEMONSTRATIONS = [(learner, shown) for learner in LEARNERS for shown in learner.demonstrations]


def test_the_public_estimators_are_those_of_the_registry():
    public = {name: getattr(sixfold, name) for name in sixfold.__all__}
    estimators = {
        name: value
        for name, value in public.items()
        if isinstance(value, type)
        and issubclass(value, BaseEstimator)
        and not value.__module__.startswith("sixfold.selection.")  # searches are made of learners
        and name not in NOTHING_LEARNT
    }
    assert estimators == {learner.name: type(learner.make()) for learner in REGISTERED}
    assert len(REGISTERED) == len(estimators)
    assert {learner.name for learner in TRANSFORMERS} == {
        name for name, value in estimators.items() if hasattr(value, "transform")
    }


@pytest.mark.parametrize("learner", REGISTERED, ids=lambda learner: learner.name)
def test_a_learner_is_at_home_where_the_registry_says_and_knows_its_task(learner):
    model = learner.make()
    assert type(model).__module__ == learner.module
    assert model.__sklearn_tags__().estimator_type == ESTIMATOR_TYPES[learner.task]
    assert learner.demonstrations


def test_all_is_complete():  # and in the order that ruff asks for
    assert dir(sixfold) == sorted(set(sixfold.__all__))
    assert len(dir(sixfold)) == len(sixfold.__all__)
    assert set(sixfold._HOME) == set(sixfold.__all__) - {"__version__"}
    for name, home in sixfold._HOME.items():
        value = getattr(sixfold, name)
        assert (value.__name__ if inspect.ismodule(value) else value.__module__) == home


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'sixfold' has no attribute 'LinearRegresion'"):
        sixfold.LinearRegresion  # noqa: B018


def modules_after(statement):
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_else():
    loaded = modules_after("import sixfold")
    assert {name for name in loaded if name.partition(".")[0] == "sixfold"} == {"sixfold"}
    assert not loaded & {"numpy", "scipy", "sklearn", "narwhals", "safetensors"}


@pytest.mark.parametrize("learner", REGISTERED, ids=lambda learner: learner.name)
def test_a_learner_imports_neither_the_other_learners_nor_the_tools(learner):
    loaded = modules_after(f"from sixfold import {learner.name}")
    assert learner.module in loaded
    assert not loaded & {other.module for other in REGISTERED if other.module != learner.module}
    tools = {"sixfold.app", "sixfold.data.examples", "sklearn.linear_model", "sklearn.model_selection"}
    assert not loaded & tools


@pytest.mark.parametrize(("learner", "shown"), DEMONSTRATIONS, ids=lambda part: getattr(part, "title", None))
def test_a_demonstration_learns_something_and_proves_it(learner, shown):
    example = load_example(shown.example)
    X, X_test, y, y_test = train_test_split(example.X, example.y, random_state=0)
    model = learner.make(**shown.parameters).fit(X, y)
    # Stochastic steps end by a rule of their own, and the certificate says how far they got.
    assert model.certificate_.converged or learner.name in ("SGDClassifier", "SGDRegressor")
    if learner.task == "search":
        nearest = model.kneighbors(X_test, 1, return_distance=False)[:, 0]
        assert (y[nearest] == y_test).mean() > 0.9
        return
    assert model.score(X_test, y_test) > 0.2  # R-squared of the mean is 0
    assert example.task == learner.task


def options(text, parameter):
    """Return the values that a docstring has for a parameter; none where it does not have the parameter."""
    found = re.search(rf"^{parameter} : (\{{.*?\}})", text, re.MULTILINE)
    return set() if found is None else eval(found.group(1))


# Learners whose loss is not a parameter.
FIXED_LOSS = {
    "LinearRegression": {"squared"},
    "LogisticRegression": {"logistic", "softmax"},
    "Ridge": {"squared"},
    "RidgeClassifier": {"squared"},
}
FIXED_PENALTY = {"Ridge": {"l2"}, "RidgeClassifier": {"l2"}}
THEIR_SOLVERS = SKLEARN_SOLVERS.keys() | SKLEARN_RIDGE_SOLVERS.keys()


def solvers_that_fit(losses, penalties):
    """Return the names of the solvers that minimise one of these losses with one of these penalties."""
    problems = [Problem(LOSSES[loss], make_penalty(name), 1.0) for loss in losses for name in penalties]
    return {
        solver.name
        for solver in all_solvers()
        if any(missing_methods(solver, p) is None and solver.objection(p) is None for p in problems)
    }


@pytest.mark.parametrize(
    "learner",
    [learner for learner in LEARNERS if "solver" in learner.make().get_params()],
    ids=lambda learner: learner.name,
)
def test_the_docstring_names_the_solvers_there_are(learner):
    text = inspect.getdoc(type(learner.make()))
    paragraph = re.search(r"^solver : .*\n(?: {4}.*\n)+", text, re.MULTILINE).group()
    named = set(re.findall(r'"([\w-]+)"', paragraph))
    losses = FIXED_LOSS.get(learner.name) or options(text, "loss")
    penalties = FIXED_PENALTY.get(learner.name) or options(text, "penalty") & set(PENALTIES)
    fitting = solvers_that_fit(losses, penalties)
    assert named - (THEIR_SOLVERS - fitting) == fitting | {"auto"}


def test_solvers_of_scikit_learn_mean_one_that_there_is():
    here = {"auto", *(solver.name for solver in all_solvers())}
    for names in (SKLEARN_SOLVERS, SKLEARN_SOFTMAX_SOLVERS, SKLEARN_RIDGE_SOLVERS):
        assert set(names.values()) <= here


@pytest.mark.parametrize("learner", REGISTERED, ids=lambda learner: learner.name)
def test_the_docstring_has_every_parameter_with_its_default(learner):
    model = learner.make()
    described = dict(
        re.findall(
            r"^(\w+) : .*, default=(.*)$", inspect.getdoc(type(model)).partition("Attributes\n")[0], re.M
        )
    )
    assert {name: eval(text) for name, text in described.items()} == model.get_params()
