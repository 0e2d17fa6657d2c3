"""Which learner is taken: the best, or the simplest near it; and the sentence that says why."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from sixfold.errors import InputError
from sixfold.selection.choice import SIMPLEST_FIRST, choose
from sixfold.selection.contenders import CLASSIFIERS, REGRESSORS
from sixfold.selection.leaderboard import Comparison, Entry

FIVE = np.array([-0.02, -0.01, 0.0, 0.01, 0.02])  # standard error 0.00707 around any mean


def entry(name, mean, scores=FIVE, converged=True):
    model = SimpleNamespace(certificate_=SimpleNamespace(converged=converged))
    search = SimpleNamespace(best_estimator_=model)
    return Entry(name, mean, float(scores.std()), mean + scores, search=search)


def comparison(*entries, folds=5):
    return Comparison(list(entries), "classification", "accuracy", 100, 25, folds)


def test_the_simplest_within_one_standard_error():
    found = comparison(
        entry("SVM (rbf)", 0.979),
        entry("logistic regression", 0.974),
        entry("tree", 0.973),
        entry("logistic regression (l1)", 0.971),  # 0.008 below: too far
        entry("baseline", 0.6),
    )
    choice = choose(found, "1se")
    assert choice.entry.name == "logistic regression"
    assert choice.reason == (
        "logistic regression scores 0.974, within one standard error (0.007) of the best, SVM (rbf) at "
        "0.979, and is the simplest of the 3 that are"
    )
    assert choose(found, "best").entry.name == "SVM (rbf)"
    assert choose(found, "best").reason == (
        "SVM (rbf) has the best mean score, 0.979 (accuracy on 5 folds); the next is logistic regression at "
        "0.974"
    )


def test_of_equals_the_simplest_is_the_best():
    sure = np.zeros(5)
    choice = choose(comparison(entry("tree", 1.0, sure), entry("logistic regression", 1.0, sure)), "1se")
    assert choice.reason == (
        "logistic regression has the best mean score, 1.000 (accuracy on 5 folds), and is the simplest of "
        "the 2 within one standard error (0) of it"
    )


def test_two_of_which_one_is_simpler():
    choice = choose(comparison(entry("SVM (rbf)", 0.979), entry("tree", 0.975)), "1se")
    assert choice.reason.endswith("and is the simpler of the two")


def test_the_best_may_be_the_simplest():
    choice = choose(comparison(entry("lasso", 0.9), entry("nearest neighbours", 0.899)), "1se")
    assert choice.reason == (
        "lasso has the best mean score, 0.900 (accuracy on 5 folds), and is the simplest of the 2 within one "
        "standard error (0.007) of it"
    )
    alone = choose(comparison(entry("lasso", 0.9), entry("nearest neighbours", 0.5)), "1se")
    assert "and no other is within one standard error (0.007) of it" in alone.reason


@pytest.mark.parametrize("rule", ["best", "1se"])
def test_the_baseline_is_taken_only_where_nothing_is_clearly_better(rule):
    equal = comparison(entry("baseline", 0.7), entry("tree", 0.69))
    choice = choose(equal, rule)
    assert choice.entry.name == "baseline"
    assert "the columns do not help to predict the target" in choice.reason
    near = choose(comparison(entry("tree", 0.7), entry("baseline", 0.695)), "1se")
    assert near.entry.name == "baseline"
    assert "tree at 0.700" in near.reason
    assert choose(comparison(entry("tree", 0.72), entry("baseline", 0.7)), rule).entry.name == "tree"


def test_fits_that_did_not_converge_are_not_preferred():
    found = comparison(
        entry("nearest neighbours", 0.9), entry("perceptron", 0.899, converged=False), entry("baseline", 0.5)
    )
    choice = choose(found, "1se")
    assert choice.entry.name == "nearest neighbours"
    assert choice.reason.endswith("; perceptron did not reach the optimum of the fit")
    only = comparison(entry("perceptron", 0.9, converged=False), entry("tree", 0.5), entry("baseline", 0.4))
    assert choose(only, "1se").entry.name == "perceptron"


def test_learners_with_all_folds_come_first():
    found = comparison(entry("tree", 0.8), entry("lasso", 0.95, FIVE[:2]), entry("baseline", 0.5))
    assert choose(found, "1se").entry.name == "tree"
    partial = comparison(entry("baseline", 0.5), entry("tree", 0.8, FIVE[:3]), entry("lasso", 0.9, FIVE[:2]))
    choice = choose(partial, "1se")
    assert choice.entry.name == "tree"
    assert choice.reason.startswith("no learner finished all 5 folds; of those with the most, 3, tree is")


def test_one_fold():
    found = comparison(entry("baseline", 0.5), entry("tree", 0.8, FIVE[2:3]))
    assert choose(found, "1se").reason.endswith("0.800 (accuracy on 1 fold)")


def test_one_learner():
    assert choose(comparison(entry("tree", 0.8), entry("baseline", 0.5)), "1se").reason == (
        "tree is the only learner that was finished, 0.800 (accuracy on 5 folds)"
    )


def test_nothing_to_choose():
    out = comparison(entry("baseline", 0.5), Entry("tree", left_out="interrupted"))
    with pytest.raises(InputError, match=r"none but the baseline.* was finished\. tree: interrupted\."):
        choose(out, "1se")
    with pytest.raises(InputError, match="accuracy is not a number on some folds, which hold out about 20"):
        choose(comparison(entry("tree", np.nan)), "1se")
    with pytest.raises(InputError, match="rule='2se' is not an option"):
        choose(out, "2se")


def test_perfect_scores_have_no_spread():
    choice = choose(comparison(entry("SVM (rbf)", 1.0, 0 * FIVE), entry("tree", 1.0, 0 * FIVE)), "1se")
    assert choice.entry.name == "tree"
    assert "(0)" in choice.reason


def test_every_learner_has_its_place():
    assert {*CLASSIFIERS, *REGRESSORS, "baseline"} <= set(SIMPLEST_FIRST)
