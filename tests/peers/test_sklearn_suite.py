"""scikit-learn's own tests pass with our classes in place of theirs, but for the differences listed here."""

import pytest
from sklearn.utils import all_estimators

from peers.sklearn_suite import Suite, run
from sixfold.learners.registry import LEARNERS

SUITES = {
    "LinearRegression": Suite(
        ours="sixfold.LinearRegression",
        theirs="sklearn.linear_model.LinearRegression",
        modules=(
            "linear_model/tests/test_base.py",
            "compose/tests/test_target.py",
            "ensemble/tests/test_stacking.py",
            "ensemble/tests/test_voting.py",
        ),
        differences={
            "test_base.py::test_raises_value_error_if_positive_and_sparse": "sparse tables are accepted",
            "test_base.py::test_inplace_data_preprocessing[42-True-None]": "X is never written to",
            "test_base.py::test_inplace_data_preprocessing[42-False-None]": "X is never written to",
        },
    ),
}


def test_every_learner_that_scikit_learn_has_too_is_run_through_its_tests():
    theirs = {name for name, _ in all_estimators()}
    assert SUITES.keys() == {learner.name for learner in LEARNERS} & theirs


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_what_does_not_pass_is_what_is_listed(suite):
    outcome = run(suite)
    ran = {*outcome.passed, *outcome.failed}
    assert len(outcome.passed) > 40  # the class was replaced, and its tests were found
    unexpected = {name: why for name, why in outcome.failed.items() if name not in suite.differences}
    assert not unexpected, "\n\n".join(f"{name}\n{why}" for name, why in unexpected.items())
    assert set(suite.differences) & ran <= outcome.failed.keys(), "a listed difference is none any more"


def test_a_class_that_answers_otherwise_does_not_pass():
    suite = Suite(
        ours="sklearn.linear_model.Lasso",
        theirs="sklearn.linear_model.LinearRegression",
        modules=("linear_model/tests/test_base.py",),
    )
    assert "test_base.py::test_linear_regression" in run(suite).failed
