"""Folds on threads, and who gets which parameter."""

import pytest
import sklearn
from sklearn.model_selection import GroupKFold

from sixfold.selection.lasso_cv import LassoCV
from sixfold.selection.splitting import on_threads, route


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
