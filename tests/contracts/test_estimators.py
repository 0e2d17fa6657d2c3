"""Every learner, as it comes and as it is demonstrated, passes all checks scikit-learn has for estimators."""

import re

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from sixfold import DecisionTreeClassifier, KNeighborsTransformer, RadiusNeighborsTransformer
from sixfold.learners.registry import LEARNERS, TRANSFORMERS

ESTIMATORS = [
    KNeighborsTransformer(),
    RadiusNeighborsTransformer(),
    DecisionTreeClassifier(search="optimal", max_depth=2),
    DecisionTreeClassifier(search="optimal", max_depth=2, objective="error"),
    DecisionTreeClassifier(search="lookahead"),
] + [
    learner.make(**parameters)
    for learner in LEARNERS + TRANSFORMERS
    for parameters in [{}, *(shown.parameters for shown in learner.demonstrations if shown.parameters)]
]


# What a learner does not promise, each with its reason.
UNBOUNDED = "columns around 100 make steps of 0.01 grow without bound, which is refused"
EPOCHS = "1,000 epochs are too few for weights of 1,000 and 0.0001, of which scikit-learn warns, too"
TWICE = "an update that is twice as long is not two updates"
ONE_ROW = "k counts rows: one of weight 2 is one neighbour, not two"
SPREAD = "gamma='scale' is the spread of the rows as they are given, whatever they weigh, as in scikit-learn"
ALONE = (
    "with radius=1 rows far from all others have no answer; test_radius_neighbors.py asks it of a larger one"
)
SMALL_LEAVES = "the check sets min_weight_fraction_leaf, which a search for whole trees refuses"
COLUMNS = "a column of the answer is a row of the fit, as in scikit-learn, which leaves this check out too"
DENSE = "distances are learnt of dense rows, which scikit-learn 1.6 does not look up before this check"
DRAWN = "which rows become landmarks is drawn, and repeated rows are other rows to draw from"
EXCUSED = {
    ("Nystroem", "check_sample_weight_equivalence_on_dense_data"): DRAWN,
    ("Nystroem", "check_sample_weight_equivalence_on_sparse_data"): DRAWN,
    ("SVC", "check_sample_weight_equivalence_on_dense_data"): SPREAD,
    ("SVC", "check_sample_weight_equivalence_on_sparse_data"): SPREAD,
    ("ExemplarSVC, rbf", "check_sample_weight_equivalence_on_dense_data"): SPREAD,
    ("ExemplarSVC, rbf", "check_sample_weight_equivalence_on_sparse_data"): SPREAD,
    ("Perceptron", "check_sample_weight_equivalence_on_dense_data"): TWICE,
    ("Perceptron", "check_sample_weight_equivalence_on_sparse_data"): TWICE,
    ("SGDClassifier", "check_sample_weight_equivalence_on_dense_data"): TWICE,
    ("SGDClassifier", "check_sample_weight_equivalence_on_sparse_data"): TWICE,
    ("SGDRegressor", "check_sample_weight_equivalence_on_dense_data"): TWICE,
    ("SGDRegressor", "check_sample_weight_equivalence_on_sparse_data"): TWICE,
    ("SGDClassifier", "check_class_weight_classifiers"): EPOCHS,
    ("SGDRegressor", "check_fit_check_is_fitted"): UNBOUNDED,
    ("SGDRegressor", "check_fit_idempotent"): UNBOUNDED,
    ("SGDRegressor", "check_n_features_in"): UNBOUNDED,
    ("KNeighborsClassifier", "check_sample_weight_equivalence_on_dense_data"): ONE_ROW,
    ("KNeighborsClassifier", "check_sample_weight_equivalence_on_sparse_data"): ONE_ROW,
    ("KNeighborsRegressor", "check_sample_weight_equivalence_on_dense_data"): ONE_ROW,
    ("KNeighborsRegressor", "check_sample_weight_equivalence_on_sparse_data"): ONE_ROW,
    ("LargeMarginNearestNeighbor", "check_sample_weight_equivalence_on_dense_data"): ONE_ROW,
    ("LargeMarginNearestNeighbor", "check_sample_weight_equivalence_on_sparse_data"): DENSE,
    ("NeighborhoodComponentsAnalysis", "check_sample_weight_equivalence_on_sparse_data"): DENSE,
    ("RadiusNeighborsClassifier", "check_sample_weight_equivalence_on_dense_data"): ALONE,
    ("RadiusNeighborsClassifier", "check_sample_weight_equivalence_on_sparse_data"): ALONE,
    ("RadiusNeighborsClassifier", "check_class_weight_classifiers"): ALONE,
    ("RadiusNeighborsRegressor", "check_sample_weight_equivalence_on_dense_data"): ALONE,
    ("RadiusNeighborsRegressor", "check_sample_weight_equivalence_on_sparse_data"): ALONE,
    ("DecisionTreeClassifier, searched", "check_class_weight_classifiers"): SMALL_LEAVES,
    ("KNeighborsTransformer", "check_methods_sample_order_invariance"): COLUMNS,
    ("RadiusNeighborsTransformer", "check_methods_sample_order_invariance"): COLUMNS,
}


def name(value):
    """Return the check's name with its options, or the estimator with its parameters on one line."""
    if not hasattr(value, "func"):
        return re.sub(r"\s+", " ", repr(value))
    options = ",".join(f"{option}={given}" for option, given in value.keywords.items())
    return f"{value.func.__name__}({options})"


def excused_name(estimator):
    searched = getattr(estimator, "search", "greedy") != "greedy"
    curved = type(estimator).__name__ == "ExemplarSVC" and estimator.kernel != "linear"
    return type(estimator).__name__ + ", searched" * searched + ", rbf" * curved


# As parametrize_with_checks does it; that one is refused by pytest 9 up to scikit-learn 1.7.
# The checks pass tables with constant or repeated columns on purpose.
@pytest.mark.filterwarnings("ignore::sixfold.errors.RankWarning")
@pytest.mark.filterwarnings("ignore:n_components > n_samples")
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        (one, check)
        for estimator in ESTIMATORS
        for one, check in estimator_checks_generator(estimator)
        if (excused_name(one), check.func.__name__) not in EXCUSED
    ],
    ids=name,
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
def test_positive_is_an_attribute_only_where_it_is_a_parameter(learner):
    model = learner.make()
    assert hasattr(model, "positive") == ("positive" in model.get_params())
