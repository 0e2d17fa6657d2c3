"""scikit-learn's own tests of LassoCV, ElasticNetCV and LogisticRegressionCV, with ours in their place."""

import pytest

from peers.sklearn_suite import Suite, require_listed

SENTENCE = "the sentence is another, and an InputError is a ValueError"
COORDINATE_MODULES = (
    "linear_model/tests/test_coordinate_descent.py",
    "linear_model/tests/test_sparse_coordinate_descent.py",
)
TWO_POINTS = "two fits may end at different points within tol of the optimum"


def listed(module, differences):
    return {f"{module}::{name}": reason for reason, names in differences.items() for name in names}


LASSO = listed(
    "test_coordinate_descent.py",
    {
        SENTENCE: ("test_lassocv_alphas_validation",),
        "the model of all rows is no Lasso of scikit-learn": ("test_lassoCV_does_not_set_precompute",),
        TWO_POINTS: ("test_1d_multioutput_lasso_and_multitask_lasso_cv",),
    },
)
ELASTIC_NET = listed(
    "test_coordinate_descent.py",
    {
        TWO_POINTS: ("test_1d_multioutput_enet_and_multitask_enet_cv",),
    },
)
LOGISTIC = listed(
    "test_logistic.py",
    {
        "names of solvers that are not here mean 'auto', which does what they refuse": (
            "test_check_solver_option",
            "test_liblinear_multiclass_raises",
        ),
        "parameters that are deprecated there are not here": (
            "test_penalty_deprecated",
            "test_logisticregressioncv_warns_with_use_legacy_attributes",
            "test_l1_ratio_None_deprecated",
            "test_lr_scoring_warns",
        ),
        "tol is a certified gap of the objective, not a slope: 1e-8 there is about 1e-12 here": (
            "test_logistic_cv",
            "test_logistic_regressioncv_class_weights",
            "test_scores_attribute_layout_elasticnet",
        ),
        TWO_POINTS: ("test_logistic_cv_sparse",),
    },
)
SUITES = {
    "LassoCV": Suite(
        ours="sixfold.selection.lasso_cv.LassoCV",
        theirs="sklearn.linear_model.LassoCV",
        modules=COORDINATE_MODULES,
        fewest=10,
        differences=LASSO,
    ),
    "ElasticNetCV": Suite(
        ours="sixfold.selection.lasso_cv.ElasticNetCV",
        theirs="sklearn.linear_model.ElasticNetCV",
        modules=COORDINATE_MODULES,
        fewest=10,
        differences=ELASTIC_NET,
    ),
    "LogisticRegressionCV": Suite(
        ours="sixfold.selection.logistic_cv.LogisticRegressionCV",
        theirs="sklearn.linear_model.LogisticRegressionCV",
        modules=("linear_model/tests/test_logistic.py",),
        fewest=20,
        differences=LOGISTIC,
    ),
}


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_what_does_not_pass_is_what_is_listed(suite):
    require_listed(suite)
