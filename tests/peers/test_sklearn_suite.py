"""scikit-learn's own tests pass with our classes in place of theirs, but for the differences listed here."""

import pytest
from sklearn.utils import all_estimators

from peers.sklearn_suite import Suite, require_listed, run
from sixfold.learners.registry import LEARNERS, TRANSFORMERS

# scikit-learn's tests of LogisticRegression that do not pass, by the reason.
LOGISTIC_DIFFERENCES = {
    "classes that can be separated have no maximum of the likelihood, and that is said": (
        "test_c_inf_no_warning",
    ),
    "max_iter counts evaluations, of which the first is at the start; and iris is separable": (
        "test_warm_start_newton_solver",
    ),
    "the warning of a limit has words of its own, and the certificate": ("test_max_iter",),
    "max_iter is at least 1": ("test_zero_max_iter", "test_logistic_regression_callback_support[0]"),
    "names of solvers that are not here mean 'auto', which does what they refuse": (
        "test_check_solver_option",
        "test_liblinear_multiclass_raises",
        "test_liblinear_dual_random_state",
        "test_large_sparse_matrix",
        "test_liblinear_with_large_values",
        "test_logistic_regression_callback_support_warning",
    ),
    "float32 stays float32 for every solver, also for 'liblinear'": ("test_dtype_match",),
    "parameters that are deprecated there are not here": (
        "test_penalty_deprecated",
        "test_l1_ratio_None_deprecated",
        "test_logisticregression_warns_with_n_jobs",
    ),
    "a penalty that is named counts, without a warning about l1_ratio or C": (
        "test_l1_ratio_non_elasticnet",
        "test_lr_penalty_l1ratio_incompatible",
        "test_penalty_none",
    ),
    "a class without weight is refused: its intercept would have no minimum": (
        "test_multinomial_logistic_regression_string_inputs",
    ),
    "tol is a certified gap of the objective, not a slope: 1e-8 there is about 1e-12 here": (
        "test_logistic_glmnet",
        "test_logistic_regression_solvers_multiclass",
    ),
    "it asks for a method that is private there": ("test_logreg_predict_proba_multinomial",),
    "callbacks hear of each iteration, without a model of each": (
        "test_logistic_regression_callback_support",
        "test_logistic_regression_callback_fitted_estimator",
    ),
    "the iterations that L-BFGS takes are its own": ("test_newton_cholesky_fallback_to_lbfgs",),
}

NEIGHBOURS_DIFFERENCES = {
    "rows are learnt from, not the trees and models of scikit-learn": ("test_unsupervised_inputs",),
    "the search is exact for 0 < p < 1 too, so there is nothing to warn about": (
        "test_neighbors_minkowski_semimetric_algo_warn",
        "test_neighbors_minkowski_semimetric_algo_error",
    ),
    "sparse rows are answered whatever the algorithm": ("test_predict_sparse_ball_kd_tree",),
}
CLASSIFIER_DIFFERENCES = NEIGHBOURS_DIFFERENCES | {
    "p in metric_params counts, without a warning": ("test_metric_params_interface",),
    "the sentence about weights that are all 0 is another: it names the row": (
        "test_KNeighborsClassifier_raise_on_all_zero_weights",
    ),
}
REGRESSOR_DIFFERENCES = NEIGHBOURS_DIFFERENCES | {
    "sparse formats that lose zeros are refused by an InputError, which is no TypeError": (
        "test_kneighbors_regressor_sparse",
    ),
}


RADIUS_DIFFERENCES = {
    "the search is exact for 0 < p < 1 too, so there is nothing to warn about": (
        "test_neighbors_minkowski_semimetric_algo_warn",
        "test_neighbors_minkowski_semimetric_algo_error",
    ),
    "kneighbors is there as well, of 5 neighbours where it is not told, which these 4 rows do not have": (
        "test_nan_euclidean_support",
    ),
}
RADIUS_CLASSIFIER_DIFFERENCES = RADIUS_DIFFERENCES | {
    "a label of another type is an InputError, which is no TypeError; predict is silent about shares": (
        "test_radius_neighbors_classifier_outlier_labeling",
    ),
    "weights that are infinite are refused": ("test_radius_neighbors_classifier_zero_distance",),
}
SEARCH_DIFFERENCES = {
    "rows are learnt from, not the trees and models of scikit-learn": ("test_unsupervised_inputs",),
    "a row needs no distance from itself": ("test_precomputed_sparse_invalid",),
    "rows are sorted also where their distances are not returned": ("test_radius_neighbors_sort_results",),
    "the sentence about the mode is another": ("test_nearest_neighbors_validate_params",),
    "every distance is answered whatever the algorithm": ("test_neighbors_metrics",),
    "equal distances are ordered by row number, also of copies of a row": (
        "test_k_and_radius_neighbors_duplicates",
    ),
    "a radius is one number": ("test_radius_neighbors_parallel_array_radius",),
    "functions of two rows are given dense ones": ("test_sparse_metric_callable",),
    "it asks for what is private there": ("test_auto_algorithm",),
}


TREE_DIFFERENCES = {
    "rows have one label": (
        "test_multioutput",
        "test_classes_shape",
        "test_class_weights",
        "test_class_weight_errors",
        "test_prune_tree_classifier_are_subtrees[DecisionTreeClassifier-multilabel]",
    ),
    "every split is the best of its node, so there is no splitter='random'": (
        "test_apply_path_readonly_all_trees[None-random-DecisionTreeClassifier]",
        "test_apply_path_readonly_all_trees[csc_matrix-random-DecisionTreeClassifier]",
        "test_apply_path_readonly_all_trees[csc_array-random-DecisionTreeClassifier]",
        "test_apply_path_readonly_all_trees[csr_matrix-random-DecisionTreeClassifier]",
        "test_apply_path_readonly_all_trees[csr_array-random-DecisionTreeClassifier]",
    ),
    "values that differ by less than 1e-7 differ": ("test_almost_constant_feature",),
    "columns stay float64, so 1e50 is a number like others": ("test_big_input",),
    "unknown values have a branch of their own": (
        "test_missing_values_best_splitter_missing_both_classes_has_nan",
        "test_classification_tree_missing_values_toy",
    ),
    "equal splits go to the lowest column, not to one at random": (
        "test_importances_gini_equal_squared_error",
    ),
    "the sentence about the parameter or y is another": (
        "test_min_sample_split_1_error",
        "test_no_sparse_y_support",
    ),
    "one number is the weight of every row": ("test_sample_weight_invalid",),
    "it asks for what is private there, or for the memory of its tree": (
        "test_build_pruned_tree_py",
        "test_build_pruned_tree_infinite_loop",
        "test_huge_allocations",
    ),
}


COMPONENTS_DIFFERENCES = {
    "it asks for what is private there": (
        "test_toy_example_collapse_points",
        "test_finite_differences",
    ),
    "what is printed is the line of all learners": ("test_verbose",),
    "the warning of a limit has words of its own, and the certificate": ("test_convergence_warning",),
}

MACHINE_DIFFERENCES = {
    "weights below 0 are refused, and the sentences about weights are others": (
        "test_negative_sample_weights_mask_all_samples",
        "test_negative_weights_svc_leave_just_one_label",
        "test_negative_weights_svc_leave_two_labels[partial-mask-label-1-SVC]",
        "test_negative_weight_equal_coeffs[partial-mask-label-1-SVC]",
    ),
    "sparse rows are answered whatever the fit was on": ("test_bad_input",),
    "values that overflow are refused before the fit, with what to do": ("test_svc_nonfinite_params",),
    "sparse kernel values are refused by an InputError, which is no TypeError": ("test_sparse_precomputed",),
    "the warning of a limit has words of its own, and the certificate": ("test_libsvm_convergence_warnings",),
    "decision_function votes as predict does, also where a decision is exactly 0": (
        "test_svc_ovr_tie_breaking",
    ),
    "it asks for what is private there": (
        "test_tweak_params",
        "test_gamma_scale",
        "test_svc_raises_error_internal_representation",
    ),
    "probability=True is here to stay, and its slopes are not those of probA_ and probB_": (
        "test_probability_raises_futurewarning",
        "test_svc_nusvc_probA_probB_deprecated",
    ),
}
SPARSE_MACHINE_DIFFERENCES = {
    "the warning of a limit has words of its own, and the certificate": ("test_timeout",),
}


RIDGE_DIFFERENCES = {
    "solver_ says what was used by its name here": ("test_ridge_regression",),
    "without a penalty many coefficients fit a wide table, and conjugate gradients find others": (
        *(
            f"test_ridge_regression_unpenalized{kind}[wide-42-False-{solver}]"
            for kind in ("", "_hstacked_X", "_vstacked_X")
            for solver in ("sparse_cg", "lsqr")
        ),
        *(
            f"test_regularization_limits_ridge[{kind}-wide-{fit_intercept}-{solver}-zero_alpha]"
            for kind in ("asarray", "csr_matrix", "csr_array")
            for fit_intercept in (True, False)
            for solver in ("sparse_cg", "lsqr")
        ),
    ),
    "n_iter_ is one number, also for direct solvers": ("test_n_iter",),
    "names of solvers that are not here mean others, which do what they refuse": (
        "test_ridge_fit_intercept_sparse_error",
        "test_ridge_fit_intercept_sparse_sag",
        "test_ridge_positive_error_test",
    ),
    "it converges in one iteration": ("test_lbfgs_solver_error",),
}
LASSO_DIFFERENCES = {
    "it ends at the last digits, and the gap includes what rounding does to these": ("test_lasso_dual_gap",),
    "alpha=0 is least squares, which converges": ("test_lasso_alpha_warning",),
    "it converges in one iteration": (
        "test_enet_coordinate_descent_raises_convergence[Lasso-kwargs0]",
        "test_enet_coordinate_descent_raises_convergence[Lasso-kwargs1]",
    ),
}
ELASTIC_NET_DIFFERENCES = {
    "values that overflow are refused before the fit, with what to do": ("test_enet_nonfinite_params",),
    "a Gram matrix that is passed is not looked at": (
        "test_elasticnet_precompute_incorrect_gram",
        "test_overridden_gram_matrix",
    ),
    "it converges in an iteration or two from any start": (
        "test_warm_start_convergence",
        "test_warm_start_convergence_with_regularizer_decrement",
    ),
    "fit has no check_input: tables are always checked": (
        "test_check_input_false",
        "test_enet_copy_X_True",
        "test_enet_copy_X_False_check_input_False",
        "test_enet_sample_weight_does_not_overwrite_sample_weight",
    ),
}
SGD_DIFFERENCES = {
    "it asks for what is private there": ("test_plain_has_no_average_attr",),
    "its sentence is another": (
        "test_sgd_failing_penalty_validation",
        "test_sgd_early_stopping_with_partial_fit",
    ),
    "a negative power_t, which is deprecated there, is refused": ("test_power_t_limits",),
}
SGD_CLASSIFIER_DIFFERENCES = {
    "it asks for what is private there": (
        "test_sgd_predict_proba_method_access",
        "test_validation_mask_correctly_subsets",
    ),
    "its sentence is another": (
        "test_provide_coef",
        "test_set_intercept_offset",
        "test_partial_fit_weight_class_balanced",
        "test_underflow_or_overflow",
        "test_sgd_error_on_zero_validation_weight",
    ),
    "the loss 'modified_huber' is not there": ("test_sgd_clf", "test_sgd_proba"),
    "of 'epsilon_insensitive' only epsilon=0 is there": ("test_regression_losses",),
    "intercepts of sparse rows have the steps of dense ones, not a hundredth": (
        "test_late_onset_averaging_reached[SparseSGDClassifier]",
        "test_average_binary_computed_correctly[SparseSGDClassifier]",
        "test_sgd_multiclass_average[SparseSGDClassifier]",
    ),
    "every step shrinks by its own l1 term, without a debt to steps before": ("test_sgd_l1",),
    "rows come in another random order, and the test is close to its bound": (
        "test_class_weights",
        "test_sample_weights",
        "test_balanced_weight",
        "test_multi_thread_multi_class_and_early_stopping",
    ),
    "weights that grow without bound are refused": ("test_numerical_stability_large_gradient",),
    "the objective after each epoch is judged, not the mean of the losses on the way": (
        "test_tol_parameter",
    ),
}
SGD_REGRESSOR_DIFFERENCES = {
    "it asks for what is private there": ("test_loss_function_epsilon",),
    "the loss 'huber' is not there": ("test_sgd_huber_fit",),
    "of 'epsilon_insensitive' only epsilon=0 is there": ("test_sgd_epsilon_insensitive",),
    "intercepts of sparse rows have the steps of dense ones, not a hundredth": (
        "test_late_onset_averaging_reached[SparseSGDRegressor]",
        "test_sgd_averaged_computed_correctly[SparseSGDRegressor]",
        "test_sgd_averaged_partial_fit[SparseSGDRegressor]",
        "test_average_sparse[SparseSGDRegressor]",
    ),
}


def listed(module, differences):
    """Return the reason for each test of a module, from the tests by reason."""
    return {f"{module}::{name}": reason for reason, names in differences.items() for name in names}


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
    "Ridge": Suite(
        ours="sixfold.Ridge",
        theirs="sklearn.linear_model.Ridge",
        modules=("linear_model/tests/test_ridge.py",),
        fewest=400,
        differences=listed("test_ridge.py", RIDGE_DIFFERENCES),
    ),
    "RidgeClassifier": Suite(
        ours="sixfold.RidgeClassifier",
        theirs="sklearn.linear_model.RidgeClassifier",
        modules=("linear_model/tests/test_ridge.py",),
        fewest=2,
        differences={"test_ridge.py::test_ridgeclassifier_multilabel": "rows have one label"},
    ),
    "Lasso": Suite(
        ours="sixfold.Lasso",
        theirs="sklearn.linear_model.Lasso",
        modules=("linear_model/tests/test_coordinate_descent.py",),
        fewest=10,
        differences=listed("test_coordinate_descent.py", LASSO_DIFFERENCES),
    ),
    "ElasticNet": Suite(
        ours="sixfold.ElasticNet",
        theirs="sklearn.linear_model.ElasticNet",
        modules=("linear_model/tests/test_coordinate_descent.py",),
        fewest=60,
        differences=listed("test_coordinate_descent.py", ELASTIC_NET_DIFFERENCES),
    ),
    "LogisticRegression": Suite(
        ours="sixfold.LogisticRegression",
        theirs="sklearn.linear_model.LogisticRegression",
        modules=("linear_model/tests/test_logistic.py",),
        elsewhere=(
            # LogisticRegressionCV and the functions behind it, which are scikit-learn's own
            "test_logistic_cv",
            "test_logistic_regression_cv_",
            "test_LogisticRegressionCV",
            "test_scores_attribute_layout_elasticnet",
            "test_consistency_path",
            "test_logistic_regressioncv_",
            "test_lrcv_",
        ),
        differences=listed("test_logistic.py", LOGISTIC_DIFFERENCES),
    ),
    "Perceptron": Suite(
        ours="sixfold.Perceptron",
        theirs="sklearn.linear_model.Perceptron",
        modules=("linear_model/tests/test_perceptron.py",),
        fewest=6,
    ),
    "SGDClassifier": Suite(
        ours="sixfold.SGDClassifier",
        theirs="sklearn.linear_model.SGDClassifier",
        modules=("linear_model/tests/test_sgd.py",),
        fewest=90,
        differences=listed("test_sgd.py", SGD_DIFFERENCES)
        | listed("test_sgd.py", SGD_CLASSIFIER_DIFFERENCES),
    ),
    "SGDRegressor": Suite(
        ours="sixfold.SGDRegressor",
        theirs="sklearn.linear_model.SGDRegressor",
        modules=("linear_model/tests/test_sgd.py",),
        fewest=55,
        differences=listed("test_sgd.py", SGD_DIFFERENCES) | listed("test_sgd.py", SGD_REGRESSOR_DIFFERENCES),
    ),
    "LinearSVC": Suite(
        ours="sixfold.LinearSVC",
        theirs="sklearn.svm.LinearSVC",
        modules=("svm/tests/test_svm.py",),
        fewest=18,
        differences={
            "test_svm.py::test_linearsvc_parameters": "dual is ignored, so it forbids no loss or penalty",
            "test_svm.py::test_linearsvc_crammer_singer": "the loss of Crammer and Singer is not there",
            "test_svm.py::test_crammer_singer_binary": "the loss of Crammer and Singer is not there",
            "test_svm.py::test_linear_svm_convergence_warnings": "it converges within two iterations",
        },
    ),
    "SVC": Suite(
        ours="sixfold.SVC",
        theirs="sklearn.svm.SVC",
        modules=("svm/tests/test_svm.py", "svm/tests/test_sparse.py"),
        fewest=120,
        differences=listed("test_svm.py", MACHINE_DIFFERENCES)
        | listed("test_sparse.py", SPARSE_MACHINE_DIFFERENCES),
    ),
    "Nystroem": Suite(
        ours="sixfold.Nystroem",
        theirs="sklearn.kernel_approximation.Nystroem",
        modules=("tests/test_kernel_approximation.py",),
        fewest=5,
        differences={
            "test_kernel_approximation.py::test_nystroem_approximation": (
                "additive_chi2 and sigmoid are no dot products of these rows, and are refused"
            ),
            "test_kernel_approximation.py::test_nystroem_callable": (
                "a function is also called to choose among rows, and for the trace"
            ),
            "test_kernel_approximation.py::test_nystroem_approximation_array_api": (
                "arrays are NumPy's; those of other libraries are not computed with"
            ),
        },
    ),
    "KNeighborsClassifier": Suite(
        ours="sixfold.KNeighborsClassifier",
        theirs="sklearn.neighbors.KNeighborsClassifier",
        modules=(
            "neighbors/tests/test_neighbors.py",
            "neighbors/tests/test_neighbors_pipeline.py",
            "ensemble/tests/test_voting.py",
            "feature_selection/tests/test_sequential.py",
            "semi_supervised/tests/test_self_training.py",
            "tests/test_multiclass.py",
        ),
        fewest=80,
        mixins=("sklearn.neighbors._base.KNeighborsMixin",),
        differences=listed("test_neighbors.py", CLASSIFIER_DIFFERENCES)
        | {"test_voting.py::test_sample_weight": "rows may have weights"},
    ),
    "KNeighborsRegressor": Suite(
        ours="sixfold.KNeighborsRegressor",
        theirs="sklearn.neighbors.KNeighborsRegressor",
        modules=(
            "neighbors/tests/test_neighbors.py",
            "neighbors/tests/test_neighbors_pipeline.py",
        ),
        fewest=50,
        mixins=("sklearn.neighbors._base.KNeighborsMixin",),
        differences=listed("test_neighbors.py", REGRESSOR_DIFFERENCES),
    ),
    "RadiusNeighborsClassifier": Suite(
        ours="sixfold.RadiusNeighborsClassifier",
        theirs="sklearn.neighbors.RadiusNeighborsClassifier",
        modules=("neighbors/tests/test_neighbors.py", "neighbors/tests/test_neighbors_pipeline.py"),
        fewest=90,
        mixins=("sklearn.neighbors._base.RadiusNeighborsMixin",),
        differences=listed("test_neighbors.py", RADIUS_CLASSIFIER_DIFFERENCES),
    ),
    "RadiusNeighborsRegressor": Suite(
        ours="sixfold.RadiusNeighborsRegressor",
        theirs="sklearn.neighbors.RadiusNeighborsRegressor",
        modules=("neighbors/tests/test_neighbors.py", "neighbors/tests/test_neighbors_pipeline.py"),
        fewest=45,
        mixins=("sklearn.neighbors._base.RadiusNeighborsMixin",),
        differences=listed("test_neighbors.py", RADIUS_DIFFERENCES),
    ),
    "NearestNeighbors": Suite(
        ours="sixfold.NearestNeighbors",
        theirs="sklearn.neighbors.NearestNeighbors",
        modules=(
            "neighbors/tests/test_neighbors.py",
            "neighbors/tests/test_neighbors_pipeline.py",
            "neighbors/tests/test_graph.py",
            "cluster/tests/test_dbscan.py",
        ),
        fewest=90,
        mixins=("sklearn.neighbors._base.KNeighborsMixin", "sklearn.neighbors._base.RadiusNeighborsMixin"),
        differences=listed("test_neighbors.py", SEARCH_DIFFERENCES),
    ),
    "KNeighborsTransformer": Suite(
        ours="sixfold.KNeighborsTransformer",
        theirs="sklearn.neighbors.KNeighborsTransformer",
        modules=(
            "neighbors/tests/test_graph.py",
            "neighbors/tests/test_neighbors_pipeline.py",
            "manifold/tests/test_isomap.py",
        ),
        fewest=8,
    ),
    "RadiusNeighborsTransformer": Suite(
        ours="sixfold.RadiusNeighborsTransformer",
        theirs="sklearn.neighbors.RadiusNeighborsTransformer",
        modules=("neighbors/tests/test_graph.py", "neighbors/tests/test_neighbors_pipeline.py"),
        fewest=3,
    ),
    "DecisionTreeClassifier": Suite(
        ours="sixfold.DecisionTreeClassifier",
        theirs="sklearn.tree.DecisionTreeClassifier",
        modules=("tree/tests/test_tree.py",),
        tables=("CLF_TREES", "ALL_TREES"),
        fewest=80,
        differences=listed("test_tree.py", TREE_DIFFERENCES),
    ),
    "NeighborhoodComponentsAnalysis": Suite(
        ours="sixfold.NeighborhoodComponentsAnalysis",
        theirs="sklearn.neighbors.NeighborhoodComponentsAnalysis",
        modules=("neighbors/tests/test_nca.py",),
        fewest=200,
        differences=listed("test_nca.py", COMPONENTS_DIFFERENCES),
    ),
}


def test_every_learner_that_scikit_learn_has_too_is_run_through_its_tests():
    theirs = {name for name, _ in all_estimators()}
    ours = {learner.name for learner in LEARNERS + TRANSFORMERS} | {
        "KNeighborsTransformer",
        "RadiusNeighborsTransformer",
    }
    assert SUITES.keys() == ours & theirs


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_what_does_not_pass_is_what_is_listed(suite):
    require_listed(suite)


def test_a_class_that_answers_otherwise_does_not_pass():
    suite = Suite(
        ours="sklearn.linear_model.Lasso",
        theirs="sklearn.linear_model.LinearRegression",
        modules=("linear_model/tests/test_base.py",),
    )
    assert "test_base.py::test_linear_regression" in run(suite).failed
