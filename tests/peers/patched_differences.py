"""scikit-learn's tests that do not pass with the patch on, each with the reason in one line."""

from __future__ import annotations

# By file and reason: the tests, with their parameters or for all of them.
DIFFERENCES: dict[str, dict[str, tuple[str, ...]]] = {
    "test_base.py": {
        "X is never written to, with copy_X=False neither": (
            "test_inplace_data_preprocessing[42-False-None]",
            "test_inplace_data_preprocessing[42-True-None]",
        ),
        "positive=True takes sparse tables": ("test_raises_value_error_if_positive_and_sparse",),
    },
    "test_logistic.py": {
        "sparse tables with 64-bit indices are fitted, where sag and saga refuse them": (
            "test_large_sparse_matrix",
        ),
        "it compares the iterates of scikit-learn's solvers with a fit that ours has finished": (
            "test_logistic_regression_callback_fitted_estimator",
        ),
        "without a penalty all classes may share a shift, which is 0 to 5e-4 only": (
            "test_logistic_regression_solvers_multiclass_unpenalized[42-True]",
        ),
        "it converges, so there is no other solver to fall back to and nothing to warn of": (
            "test_newton_cholesky_fallback_to_lbfgs",
        ),
        "of a default that will change a FutureWarning tells in other words": (
            "test_l1_ratio_None_deprecated",
            "test_logisticregressioncv_warns_with_use_legacy_attributes",
            "test_lr_scoring_warns",
        ),
        "ours is at the optimum, scikit-learn's path that it is compared with stops at a slope of 1e-4": (
            "test_logistic_cv_multinomial_score[neg_log_loss-multiclass_agg_list3]",
        ),
    },
    "test_ridge.py": {
        "sag needs no many iterations, of which scikit-learn warns": ("test_ridge_fit_intercept_sparse_sag",),
    },
    "test_coordinate_descent.py": {
        "ours is at the optimum, and what it is compared with is as far off as tol allows": (
            "test_1d_multioutput_enet_and_multitask_enet_cv",
            "test_1d_multioutput_lasso_and_multitask_lasso_cv",
            "test_elasticnet_precompute_gram_weighted_samples",
            "test_enet_float_precision",
        ),
        "it looks for scikit-learn's own Lasso inside": ("test_lassoCV_does_not_set_precompute",),
        "the gap includes rounding, a 3,500th of its 4e-11": ("test_lasso_dual_gap",),
        "it converges in an iteration or two from any start": (
            "test_warm_start_convergence",
            "test_warm_start_convergence_with_regularizer_decrement",
        ),
    },
    "test_sparse_coordinate_descent.py": {
        "dense and sparse fits agree to 1e-6, not to 1e-7": ("test_sparse_dense_equality",),
    },
    "test_svm.py": {
        "it compares a kernel that is a function, which LIBSVM fits, with one that ours fits, beyond tol": (
            "test_svc_clone_with_callable_kernel",
        ),
    },
    "test_tree.py": {
        "equally good splits go to the lowest column, whatever random_state is": (
            "test_class_weights[DecisionTreeClassifier]",
            "test_importances_gini_equal_squared_error",
        ),
        "no memory is reserved for leaves that never come": ("test_huge_allocations",),
    },
    "test_export.py": {
        "equally good splits go to the lowest column, whatever random_state is": (
            "test_export_text",
            "test_export_text_feature_class_names_array_support",
        ),
    },
    "test_neighbors.py": {
        "equal distances go by row number; of too many copies scikit-learn leaves out the first": (
            "test_k_and_radius_neighbors_duplicates",
        ),
    },
}


def reason_of(name: str) -> str | None:
    """Return the reason under which a test ("file.py::test[parameters]") is listed, or None."""
    module, _, test = name.partition("::")
    for reason, tests in DIFFERENCES.get(module, {}).items():
        if test in tests or test.partition("[")[0] in tests:
            return reason
    return None
