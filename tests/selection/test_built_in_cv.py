"""Folds on threads, who gets which parameter, and taking over a model."""

import pytest
import sklearn
from sklearn.model_selection import GroupKFold

from sixfold.learners.linear.linear_regression import LinearRegression
from sixfold.selection.built_in_cv import adopt, on_threads, route
from sixfold.selection.lasso_cv import LassoCV


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
