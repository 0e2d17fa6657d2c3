"""Folds on threads, who gets which parameter, and taking over a model."""

from types import SimpleNamespace

import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.model_selection import GroupKFold

from sixfold.learners.linear.linear_regression import LinearRegression
from sixfold.selection.built_in_cv import adopt, on_threads, route, with_progress
from sixfold.selection.lasso_cv import ElasticNetCV, LassoCV
from sixfold.selection.logistic_cv import LogisticRegressionCV


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
def test_results_come_in_order(n_jobs):
    assert on_threads(lambda k: k * k, range(7), n_jobs) == [0, 1, 4, 9, 16, 25, 36]


def test_what_fails_on_a_thread_is_raised():
    with pytest.raises(ZeroDivisionError):
        on_threads(lambda k: 1 // k, range(3), 2)
    with pytest.raises(ValueError, match="n_jobs"):
        on_threads(lambda k: k, range(3), 1.5)


def test_parameters_are_routed_where_that_is_enabled():
    assert route(LassoCV(), "fit", None, {}) == ({}, {})
    assert route(LassoCV(), "fit", [1.0], {}) == ({}, {"sample_weight": [1.0]})
    with pytest.raises(ValueError, match="enable_metadata_routing=True"):
        route(LassoCV(), "fit", None, {"groups": [1]})
    with sklearn.config_context(enable_metadata_routing=True):
        splitting, _ = route(LassoCV(cv=GroupKFold(2)), "fit", None, {"groups": [1, 2]})
    assert splitting == {"groups": [1, 2]}


def test_what_a_fit_has_left_is_taken_over_and_parameters_are_not():
    model = LassoCV(tol=0.5)
    model.feature_names_in_ = ["of an earlier fit"]
    fitted = LinearRegression(penalty="l1", tol=1e-3).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    adopt(model, fitted)
    assert model.coef_ is fitted.coef_
    assert model.tol == 0.5
    assert not hasattr(model, "l1_ratio")
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("learner", [LassoCV, ElasticNetCV, LogisticRegressionCV])
def test_verbose_prints_the_first_and_the_last_fold(learner, capsys):
    X, y = load_iris(return_X_y=True)
    learner(cv=4).fit(X, y)
    assert capsys.readouterr().out == ""
    learner(cv=4, verbose=1).fit(X, y)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith(f"{learner.__name__}: fold 1 of 4, ")
    assert printed[-1].startswith(f"{learner.__name__}: fold 4 of 4, ")


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.5, [1, 2, 3, 4, 5, 6]), (0.2, [1, 4, 6]), (0.0, [1, 6])]
)
def test_folds_are_printed_every_half_second(seconds, expected, capsys, monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(
        "sixfold.selection.built_in_cv.time", SimpleNamespace(perf_counter=lambda: clock.now * seconds)
    )

    def work(fold):
        clock.now = fold
        return fold

    assert on_threads(with_progress(LassoCV(verbose=1), work, 6), range(1, 7), 1) == [1, 2, 3, 4, 5, 6]
    assert capsys.readouterr().out.splitlines() == [
        f"LassoCV: fold {fold} of 6, {fold * seconds:.2f} s" for fold in expected
    ]
