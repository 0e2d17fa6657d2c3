"""What the fitted attributes of each learner have to be: their types, shapes and ranges.

``d`` columns, ``k`` classes; a classifier has one score for two classes and one a class for more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sixfold.app.model_file.attributes import Attributes

ITERATIONS = (int, np.int32, np.int64, np.ndarray)


def require_learner(a: Attributes, model: Any, fitted_by: Any = None) -> None:
    """Check what every learner has: the parameters of its fit, and what was fitted to what.

    ``fitted_by`` is the class that has made the fit, where it is another.
    """
    from sixfold.certificate import Certificate, Subject

    parameters = a.take("_fit_parameters", dict, optional=True)
    known = set((fitted_by or model)._get_param_names())
    a.require(set(parameters or ()) <= known, "_fit_parameters", "has names that are no parameters")
    a.take("_fitted_to", Subject, optional=True)
    a.take("_certificate", Certificate, optional=True)
    history = a.array("history_", "f", (None, 3), finite=False, optional=True)
    if history is not None:
        counts = history[:, 0]
        whole = np.isfinite(counts).all() and (counts == np.rint(counts)).all()
        a.require(whole, "history_", "has iterations that are no whole numbers")
    a.text("solver_", optional=True)
    model._check_parameters()


def _iterations(a: Attributes) -> None:
    if type(a.values.get("n_iter_")) is list:  # one count a target
        counts = a.take("n_iter_", list)
        a.require(all(type(one) is int for one in counts), "n_iter_", "are no counts")
    elif a.has("n_iter_"):
        value = a.take("n_iter_", *ITERATIONS)
        a.require(not isinstance(value, np.ndarray) or value.dtype.kind == "i", "n_iter_", "is no count")


def _linear(a: Attributes, model: Any, fitted_by: Any = None) -> None:
    require_learner(a, model, fitted_by)
    _iterations(a)
    a.array("dual_", "f", finite=False, optional=True)
    _kinks(a)
    _means(a)


def _means(a: Attributes) -> None:
    """Check the means of the columns, which explanations compare with."""
    a.array("feature_means_", "f", (a.columns(),), optional=True)
    a.whole("mean_rows_", optional=True)
    a.number("_mean_weight", optional=True)


def _kinks(a: Attributes) -> None:
    """Check the rows at a kink of the loss and their slopes, one pair a score, of a fit on a cluster."""
    for pair in a.take("_kinks", tuple, optional=True) or ():
        good = type(pair) is tuple and len(pair) == 2 and all(type(part) is np.ndarray for part in pair)
        a.require(good, "_kinks", "are no rows with slopes")
        rows, slopes = pair
        good = rows.ndim == 1 and rows.shape == slopes.shape and rows.dtype.kind == "i"
        good = good and slopes.dtype.kind == "f" and bool(np.isfinite(slopes).all())
        a.require(good and (not rows.size or rows.min() >= 0), "_kinks", "are no rows with slopes")


def check_regressor(a: Attributes, model: Any, fitted_by: Any = None) -> None:
    """Check a linear model of numbers."""
    _linear(a, model, fitted_by)
    _coefficients_of_numbers(a)
    _least_squares(a)


def _coefficients_of_numbers(a: Attributes) -> tuple[int, int]:
    """Return the number of columns and of targets."""
    d = a.columns(least=1)
    coef = a.array("coef_", "f")
    a.require(coef.ndim in (1, 2) and coef.shape[-1] == d, "coef_", f"has shape {coef.shape}, not (..., {d})")
    if coef.ndim == 1:
        if isinstance(a.values.get("intercept_"), np.ndarray):  # of RidgeCV for one column of targets
            a.array("intercept_", "f", (1,))
        else:
            a.number("intercept_")
        return d, 1
    if isinstance(a.values.get("intercept_"), np.ndarray):
        a.array("intercept_", "f", (coef.shape[0],))
    else:
        a.number("intercept_")
    return d, coef.shape[0]


def _least_squares(a: Attributes) -> None:
    """Check what standard errors and further batches are computed from."""
    from sixfold.solvers.least_squares.direct import DirectSolution
    from sixfold.solvers.least_squares.moments import Moments

    a.whole("_rank", optional=True)
    d, coef = a.values["n_features_in_"], a.values["coef_"]
    targets = 1 if coef.ndim == 1 else coef.shape[0]
    direct = a.take("_direct", DirectSolution, optional=True)
    if direct is not None:
        a.require(direct.w.shape == (d, targets), "_direct", "is of another number of columns or targets")
    moments = a.take("_moments", Moments, optional=True)
    if moments is not None:
        good = moments.n_columns == d and moments.mean.size == d + targets
        a.require(good, "_moments", "are of another number of columns or targets")


def check_classifier(a: Attributes, model: Any) -> None:
    """Check a linear model of classes."""
    _linear(a, model)
    _coefficients_of_classes(a)


def check_logistic(a: Attributes, model: Any, fitted_by: Any = None, finite: bool = True) -> None:
    """Check a logistic regression, with what its summary is computed from."""
    from sixfold.explain.logit_summary import Likelihood

    _linear(a, model, fitted_by)
    d, k, _ = _coefficients_of_classes(a, finite)
    likelihood = a.take("_likelihood", Likelihood, optional=True)
    if likelihood is not None:
        width, kept = likelihood.shortest.shape
        free = (k - 1) * kept
        good = width in (d, d + 1) and likelihood.information.shape == (free, free)
        a.require(good, "_likelihood", "is of another number of columns or classes")
    a.text("_no_summary", optional=True)


def _coefficients_of_classes(a: Attributes, finite: bool = True) -> tuple[int, int, int]:
    """Return the number of columns, classes and scores."""
    d, k = a.columns(least=1), a.classes(least=2).size
    coef = a.matrix("coef_", (None, d))
    scores = coef.shape[0]
    a.require(scores == k or (scores == 1 and k == 2), "coef_", f"has {scores} scores for {k} classes")
    a.array("intercept_", "f", (scores,), finite)
    return d, k, scores


def check_perceptron(a: Attributes, model: Any) -> None:
    """Check a perceptron, with its proofs."""
    from sixfold.solvers.separation.separation import Proof

    check_classifier(a, model)
    a.whole("mistakes_")
    proofs = a.take("proof_", list, Proof, nullable=True)
    for proof in proofs if isinstance(proofs, list) else []:
        a.require(proof is None or type(proof) is Proof, "proof_", "is no proof")
    _updates(a)


def check_erm_classifier(a: Attributes, model: Any) -> None:
    """Check a classifier of any loss, with what batches go on from."""
    from sixfold.solvers.first_order.sgd_updates import StepRule

    check_classifier(a, model)
    a.require(a.has("_state") == a.has("_rule"), "_rule", "is there without the other")
    a.take("_rule", StepRule, optional=True)
    _updates(a)


def check_sgd_classifier(a: Attributes, model: Any) -> None:
    """Check a classifier that learns by stochastic steps, with what batches go on from."""
    check_classifier(a, model)
    _updates(a, optional=False)


def check_sgd_regressor(a: Attributes, model: Any) -> None:
    """Check a model of numbers that learns by stochastic steps, with what batches go on from."""
    _linear(a, model)
    d = a.columns(least=1)
    a.array("coef_", "f", (d,))
    a.array("intercept_", "f", (1,))
    _updates(a, optional=False)


def _updates(a: Attributes, optional: bool = True) -> None:
    """Check the state that stochastic updates go on from, which native loops read and write."""
    from sixfold.solvers.first_order.sgd_updates import SGDState

    state = a.take("_state", SGDState, optional=optional)
    if state is not None:
        coef = a.values["coef_"]
        shape = coef.shape[::-1] if coef.ndim == 2 else (coef.size, 1)
        a.require(state.w.shape == shape, "_state", "is of another number of columns or scores")


def check_linear_svc(a: Attributes, model: Any) -> None:
    """Check a linear support vector machine."""
    check_classifier(a, model)
    if isinstance(a.values.get("margin_"), np.ndarray):
        a.array("margin_", "f", (a.values["coef_"].shape[0],), finite=False)
    else:
        a.number("margin_", finite=False)
    rows = a.take("support_", list, np.ndarray, optional=True)  # none of a fit on a cluster
    for some in [] if rows is None else rows if isinstance(rows, list) else [rows]:
        good = isinstance(some, np.ndarray) and some.ndim == 1 and some.dtype.kind == "i"
        a.require(good and (not some.size or some.min() >= 0), "support_", "are no row numbers")


def check_lasso(a: Attributes, model: Any) -> None:
    """Check a lasso or elastic net, with the gap of every target."""
    _linear(a, model)
    _, targets = _coefficients_of_numbers(a)
    if targets == 1:
        a.number("dual_gap_", finite=False)
    else:
        a.array("dual_gap_", "f", (targets,), finite=False)


def check_lasso_cv(a: Attributes, model: Any) -> None:
    """Check a lasso or elastic net with the path it was chosen from."""
    from sixfold.learners.linear.lasso import ElasticNet

    a.array("alphas_", "f")
    a.array("mse_path_", "f", finite=False)
    for name in ("alpha_", "dual_gap_"):
        a.number(name, finite=False)
    a.number("l1_ratio_", optional=True)
    check_regressor(a, model, ElasticNet)


def check_logistic_cv(a: Attributes, model: Any) -> None:
    """Check a logistic regression with the path it was chosen from."""
    from sixfold.learners.linear.logistic_regression import LogisticRegression

    check_logistic(a, model, LogisticRegression, finite=False)
    for name in ("C_", "l1_ratio_", "Cs_", "l1_ratios_", "scores_", "coefs_paths_", "_best"):
        value = a.take(name, np.ndarray, dict, tuple, float)
        parts = value.values() if isinstance(value, dict) else [value]
        good = all(isinstance(one, np.ndarray | tuple | float) for one in parts)
        a.require(good, name, "is no array")
    best = a.values["_best"]
    good = type(best) is tuple and len(best) == 2 and all(type(one) is float for one in best)
    a.require(good, "_best", "is no pair of numbers")


def check_ridge_cv(a: Attributes, model: Any) -> None:
    """Check a ridge regression with the model of its penalty."""
    from sixfold.learners.linear.ridge import Ridge

    d, targets = _coefficients_of_numbers(a)
    _means(a)
    for name in ("alpha_", "best_score_"):
        if isinstance(a.values.get(name), np.ndarray):
            a.array(name, "f", (targets,), finite=False)
        else:
            a.number(name, finite=False)
    for name in ("gcv_values_", "cv_results_", "_scores"):
        a.array(name, "f", finite=False, optional=True)
    ridge = a.take("_model", Ridge)
    a.require(ridge.__dict__.get("n_features_in_") == d, "_model", "is no fit of these columns")


def check_decision_tree(a: Attributes, model: Any) -> None:
    """Check that a tree speaks of the columns, categories and classes of its model."""
    from sixfold.data.mixed_table import ColumnKinds
    from sixfold.explain.trees.trace import Trace
    from sixfold.solvers.trees.fitted_tree import FittedTree
    from sixfold.solvers.trees.growth import FitRecord

    require_learner(a, model)
    d, k, tree = a.columns(), a.classes().size, a.take("tree_", FittedTree)
    a.require(tree.kinds.size == d, "tree_", f"has {tree.kinds.size} columns, not {d}")
    a.require(tree.totals.shape[1] == k, "tree_", f"has {tree.totals.shape[1]} classes, not {k}")
    kinds = a.take("_kinds", ColumnKinds, nullable=True)
    columns = (None,) * d if kinds is None else kinds.categories
    a.require(len(columns) == d, "_kinds", "are of another number of columns")
    of_categories = np.array([one is not None for one in columns], dtype=np.uint8)
    a.require(np.array_equal(tree.kinds, of_categories), "_kinds", "are not those of the tree")
    inner = np.flatnonzero(tree.column >= 0)
    most = np.array([2 if one is None else len(one) for one in columns], dtype=np.int64)
    owner = np.repeat(np.arange(tree.column.size), np.diff(tree.first))
    inside = not inner.size or (tree.code < most[tree.column[owner]]).all()
    a.require(inside, "tree_", "has branches for categories that there are not")
    a.take("_grown", FitRecord)
    trace = a.take("_trace", Trace, nullable=True)
    good = trace is None or all(one.node < tree.column.size for one in trace.nodes)
    a.require(good, "_trace", "speaks of nodes that there are not")
    a.flag("_rounded")
    size = a.take("_size", dict)
    a.require(set(size) == {"max_depth", "max_leaf_nodes", "ccp_alpha"}, "_size", "is no size of a tree")
    a.require(all(type(one) in (int, float, type(None)) for one in size.values()), "_size", "is no number")
    a.number("ccp_alpha_", finite=False)
    a.whole("max_features_", 1, max(d, 1))
    a.whole("n_classes_", k, k)
    a.whole("n_outputs_", 1, 1)


def check_learned_map(a: Attributes, model: Any) -> None:
    """Check a linear map of rows that was learnt from their labels."""
    require_learner(a, model)
    _iterations(a)
    d = a.columns(least=1)
    components = a.array("components_", "f", (None, d))
    a.require(1 <= components.shape[0] <= d, "components_", f"are {components.shape[0]} of {d} columns")
    a.classes()


def check_large_margin(a: Attributes, model: Any) -> None:
    """Check a map with its targets, and the multipliers of its triplets."""
    check_learned_map(a, model)
    targets = a.array("targets_", "i", (None, None))
    a.require_indices(targets, targets.shape[0], "targets_", -1)
    dual = a.array("dual_", "f", (None,))
    a.indices("triplets_", targets.shape[0], (dual.size, 3))


def check_neighbors(a: Attributes, model: Any) -> int:
    """Check the rows that a model of neighbours has kept; return how many they are."""
    from sixfold.geometry.distances import Learned
    from sixfold.learners.neighbors.stored_rows import StoredRows

    require_learner(a, model)
    d, store = a.columns(), a.take("_store", StoredRows)
    a.require(store.rows.shape[1] == d, "_store", f"has {store.rows.shape[1]} columns, not {d}")
    square = not store.precomputed or store.rows.shape[0] == d
    a.require(square, "_store", "has no distance of every row from every other")
    count = store.count
    a.whole("n_samples_fit_", count, count)
    weight = a.array("_given_weight", "f", (count,), nullable=True)
    a.require(weight is None or (weight >= 0).all(), "_given_weight", "has numbers below 0")
    a.array("_row_index", "O", (count,), nullable=True)
    if isinstance(store.metric, Learned):
        a.require(a.take("effective_metric_", Learned).fitted, "effective_metric_", "is not learnt yet")
        a.require(store.metric.components.shape[1] == d, "_store", "has a distance of other columns")
    else:
        a.text("effective_metric_")
    a.take("effective_metric_params_", dict)
    return int(count)


def check_neighbors_classifier(a: Attributes, model: Any) -> None:
    """Check the labels of the rows."""
    from sixfold.data.labels import LabelColumns

    count, labels = check_neighbors(a, model), a.take("_labels", LabelColumns)
    a.require(labels.index.shape[0] == count, "_labels", f"are {labels.index.shape[0]}, not {count}")
    several = a.flag("outputs_2d_")
    a.require(several != labels.single, "outputs_2d_", "contradicts the labels")
    classes = a.take("classes_", list, np.ndarray)
    listed = [classes] if isinstance(classes, np.ndarray) else classes
    same = isinstance(classes, list) == several and len(listed) == len(labels.classes)
    pairs = zip(listed, labels.classes, strict=True) if same else []
    a.require(
        same and all(np.array_equal(*pair) for pair in pairs), "classes_", "are not those of the labels"
    )


def check_radius_classifier(a: Attributes, model: Any) -> None:
    """Check the labels of the rows, and of those that have no neighbours."""
    from sixfold.learners.neighbors.radius_neighbors import require_alike

    check_neighbors_classifier(a, model)
    outliers, classes = a.take("outlier_label_", list, nullable=True), a.values["_labels"].classes
    if outliers is not None:
        a.require(len(outliers) == len(classes), "outlier_label_", "are not one for each column of labels")
        for label, known in zip(outliers, classes, strict=True):
            plain = isinstance(label, str | int | float | np.generic)
            a.require(plain, "outlier_label_", "are no labels")
            require_alike(label, known)


def check_neighbors_regressor(a: Attributes, model: Any) -> None:
    """Check the targets of the rows."""
    targets = a.array("_targets", "f", (check_neighbors(a, model), None))
    single = a.flag("_single")
    good = targets.dtype == np.float64 and targets.shape[1] >= 1 and (targets.shape[1] == 1 or not single)
    a.require(good, "_targets", "are no columns of numbers")


def check_svc(a: Attributes, model: Any) -> None:
    """Check the support vectors of all binary SVMs: native loops read them by these shapes."""
    from sixfold.geometry.kernels import Kernel, Precomputed
    from sixfold.learners.svm.calibration import Calibration

    require_learner(a, model)
    _iterations(a)
    d, k = a.columns(least=1), a.classes(least=2).size
    kernel = a.take("kernel_")
    a.require(isinstance(kernel, Kernel), "kernel_", "is no kernel")
    pairwise = a.flag("_pairwise")
    a.require(not pairwise or k > 2, "_pairwise", "speaks of pairs where there are two classes")
    svms = k * (k - 1) // 2 if pairwise else (1 if k == 2 else k)
    n_support = a.indices("n_support_", 1 << 31, (k,))
    count = int(n_support.sum())
    shape = a.take("shape_fit_", tuple)
    good = len(shape) == 2 and all(type(one) is int and one >= 0 for one in shape)
    given = isinstance(kernel, Precomputed)
    a.require(good and shape[1] == (shape[0] if given else d) == d, "shape_fit_", "is no shape of the table")
    support = a.indices("support_", shape[0], (count,))
    a.require(np.unique(support).size == count, "support_", "has a row twice")
    pairs = pairwise and not a.has("multipliers_")  # landmarks have a coefficient in every SVM
    coefficients = a.matrix("dual_coef_", (k - 1 if pairs else svms, count))
    a.array("intercept_", "f", (svms,))
    vectors = a.matrix("support_vectors_", (0, 0) if given else (count, d))
    a.require(not sp.issparse(coefficients) or coefficients.format == "csr", "dual_coef_", "is not CSR")
    a.require(not sp.issparse(vectors) or vectors.format == "csr", "support_vectors_", "is not CSR")
    known = coefficients.dtype == np.float64 and vectors.dtype in (np.float64, np.float32)
    a.require(known, "dual_coef_", "is of another type")
    a.array("class_weight_", "f", (k,))
    if isinstance(a.values.get("margin_"), np.ndarray):
        a.array("margin_", "f", (svms,), finite=False)
    else:
        a.number("margin_", finite=False)
    calibration = a.take("_calibration", Calibration, nullable=True)
    slopes = svms if calibration is None else calibration.below.size
    a.require(slopes == svms, "_calibration", f"has {slopes} slopes for {svms} SVMs")
    a.take("_objects", type(None))
    a.array("_row_index", "O", (shape[0],), nullable=True)
    a.text("_step")
    for name in ("_violation", "_score_rounding"):
        a.number(name, finite=False)
    a.whole("fit_status_", 0, 1)


def check_exemplar_svc(a: Attributes, model: Any) -> None:
    """Check the machines of all exemplars."""
    from sixfold.geometry.kernels import Kernel, Linear

    require_learner(a, model)
    d, k = a.columns(least=1), a.classes(least=2).size
    kernel = a.take("kernel_")
    a.require(isinstance(kernel, Kernel), "kernel_", "is no kernel")
    rows = a.whole("_n_rows", 1)
    exemplars = a.indices("exemplars_", rows)
    count = exemplars.size
    a.require(count and (np.diff(exemplars) > 0).all(), "exemplars_", "are no rows in their order")
    a.indices("_exemplar_index", k, (count,))
    a.array("intercept_", "f", (count,))
    calibration = a.array("calibration_", "f", (count, 2), nullable=True)
    a.require((calibration is None) == (model.calibration is None), "calibration_", "is not as asked for")
    if isinstance(kernel, Linear):
        a.array("coef_", "f", (count, d))
    else:
        support = a.indices("support_", rows)
        a.array("dual_coef_", "f", (count, support.size))
        vectors = a.matrix("support_vectors_", (support.size, d))
        a.require(not sp.issparse(vectors) or vectors.format == "csr", "support_vectors_", "is not CSR")
    a.array("_class_sigmoids", "f", (k, 2))
    rest = a.array("_rest", "f", (k,))
    a.require((rest >= 0).all(), "_rest", "has shares below 0")
    a.array("gaps_", "f", (count,), finite=False)
    a.array("n_iter_", "i", (count,))
    a.array("_row_index", "O", (rows,), nullable=True)
