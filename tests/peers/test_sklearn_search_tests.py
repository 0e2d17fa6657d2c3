"""scikit-learn's tests of its searches pass with ours, but for the differences listed here.

They are run twice: with scikit-learn's learners, which are handed over to it, and with ours, which have
plans.
"""

from importlib.util import find_spec

import pytest

from peers.sklearn_suite import Suite, require_listed

TESTS = "model_selection/tests/test_search.py"
ROUTING = ("tests/test_metaestimators.py", "tests/test_metaestimators_metadata_routing.py")
SEARCHES = {
    "sklearn.model_selection.GridSearchCV": "sixfold.GridSearchCV",
    "sklearn.model_selection.RandomizedSearchCV": "sixfold.RandomizedSearchCV",
}
LEARNERS = {
    "sklearn.linear_model.LinearRegression": "sixfold.LinearRegression",
    "sklearn.linear_model.LogisticRegression": "sixfold.LogisticRegression",
    "sklearn.neighbors.KNeighborsClassifier": "sixfold.KNeighborsClassifier",
    "sklearn.svm.LinearSVC": "sixfold.LinearSVC",
    "sklearn.svm.SVC": "sixfold.SVC",
    "sklearn.tree.DecisionTreeClassifier": "sixfold.DecisionTreeClassifier",
}

DIFFERENCES = {
    "the sentence about an empty list of values is another: it says what to do": (
        "test_grid_search_bad_param_grid",
    ),
}
WITH_THEIR_LEARNERS = DIFFERENCES | {
    "a search has a certificate_, which a class that is derived from scikit-learn's has not": (
        "test_custom_run_search",
    ),
}
WITH_OUR_LEARNERS = DIFFERENCES | {
    "verbose shows a bar with the best score so far, not a line for each fit": ("test_search_cv_verbose_3",),
    "our trees give each row one label": ("test_grid_search_with_multioutput_data",),
}


def suite(replaced, about, differences, fewest, more=()):
    """Return scikit-learn's tests that speak of some classes, with others replaced."""
    theirs, ours = next(iter(replaced.items()))
    listed = {f"test_search.py::{name}": reason for reason, names in differences.items() for name in names}
    names = tuple(name.rpartition(".")[2] for name in about)
    return Suite(ours, theirs, (TESTS, *more), fewest, listed, also=replaced, about=names)


SUITES = {
    "their learners": suite(SEARCHES, SEARCHES, WITH_THEIR_LEARNERS, 100, ROUTING),
    "our learners": suite(SEARCHES | LEARNERS, LEARNERS, WITH_OUR_LEARNERS, 40),
}


@pytest.mark.skipif(
    find_spec("sklearn.model_selection.tests") is None, reason="scikit-learn has no tests here"
)
@pytest.mark.parametrize("name", SUITES)
def test_what_does_not_pass_is_what_is_listed(name):
    require_listed(SUITES[name])
