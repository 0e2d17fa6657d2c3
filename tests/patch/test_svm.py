"""LinearSVC and SVC under scikit-learn's names: its problem, its attributes, its answers, fitted by ours."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.svm as sk
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import estimator_checks_generator

import sixfold
from sixfold.patch import svm as drop_ins  # a name of its own for a class would be put back at the end
from sixfold.patch.liblinear import with_column

RANDOM = np.random.default_rng(0)
TABLES = {
    "two classes": (scale(load_breast_cancer().data), load_breast_cancer().target),
    "three classes": (scale(load_wine().data), load_wine().target),
    "ten classes": (scale(load_digits().data)[:300], load_digits().target[:300]),
    "noise": (RANDOM.normal(size=(80, 5)), RANDOM.integers(0, 3, 80)),
}
X, Y = TABLES["two classes"]
X3, Y3 = TABLES["three classes"]
FORMS = {"dense": np.asarray, "sparse": sp.csr_matrix, "float32": lambda X: X.astype(np.float32)}


def exact(**parameters):
    """Return scikit-learn's LinearSVC close to the optimum."""
    return sk.LinearSVC(**parameters, tol=1e-8, max_iter=1_000_000)


def dense(values):
    """Return an array, of sparse numbers too."""
    return values.toarray() if sp.issparse(values) else values


# -- LinearSVC ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("table", ["two classes", "three classes", "noise"])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"C": 0.01, "intercept_scaling": 7.0},
        {"loss": "hinge", "C": 0.1, "intercept_scaling": 0.2},
        {"penalty": "l1", "dual": False, "C": 0.1},
        {"fit_intercept": False, "dual": True},
    ],
    ids=str,
)
def test_linear_svc_has_the_optimum_of_liblinear(table, form, parameters):
    rows, labels = TABLES[table]
    rows = FORMS[form](rows)
    ours, theirs = drop_ins.LinearSVC(**parameters).fit(rows, labels), exact(**parameters).fit(rows, labels)
    assert ours._ours is not None
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3 * np.abs(theirs.coef_).max())
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=5e-3)
    for name in ("coef_", "intercept_", "n_iter_", "classes_", "n_features_in_"):
        assert type(getattr(ours, name)) is type(getattr(theirs, name))
        assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name))
    assert ours.coef_.dtype == np.float64
    assert ours.certificate_.verify(rows, labels).converged
    np.testing.assert_allclose(
        ours.decision_function(rows), sk.LinearSVC.decision_function(ours, rows), atol=1e-5
    )


def test_the_penalty_is_on_the_intercept_under_the_patch_and_not_in_the_direct_class():
    moved = X + 3.0
    free = sixfold.LinearSVC(C=0.01).fit(moved, Y)
    with sixfold.patch_sklearn():
        patched = sk.LinearSVC(C=0.01).fit(moved, Y)
    theirs = exact(C=0.01).fit(moved, Y)
    np.testing.assert_allclose(patched.intercept_, theirs.intercept_, rtol=1e-2)
    assert abs(free.intercept_[0] - theirs.intercept_[0]) > 0.05


@pytest.mark.parametrize("weights", [None, RANDOM.uniform(0.0, 3.0, 569)], ids=["equal", "weighted"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 5.0}])
def test_weights_of_rows_and_of_two_classes_count_as_in_liblinear(weights, class_weight):
    given = {"class_weight": class_weight, "C": 0.01}
    ours = drop_ins.LinearSVC(**given).fit(X, Y, sample_weight=weights)
    theirs = exact(**given).fit(X, Y, sample_weight=weights)
    assert ours._ours is not None
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3 * np.abs(theirs.coef_).max())
    assert ours.certificate_.verify(X, Y, sample_weight=weights).converged


@pytest.mark.parametrize(
    ("parameters", "labels"),
    [
        ({"multi_class": "crammer_singer"}, Y),
        ({"class_weight": "balanced"}, np.where(X[:, 0] > 1.0, 2, Y)),  # LIBLINEAR counts the rest with 1
        ({"max_iter": 1}, Y),
    ],
    ids=["crammer and singer", "weights of three classes", "one iteration"],
)
def test_what_ours_does_not_have_is_liblinears(parameters, labels):
    given = {**parameters, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours, theirs = drop_ins.LinearSVC(**given).fit(X, labels), sk.LinearSVC(**given).fit(X, labels)
    assert ours._ours is None
    assert not hasattr(ours, "certificate_")
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)


def test_few_iterations_warn_as_there():
    with pytest.warns(ConvergenceWarning, match="Liblinear failed to converge"):
        drop_ins.LinearSVC(max_iter=1).fit(X, Y)


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "hinge", "dual": False},
        {"penalty": "l1", "dual": True},
        {"penalty": "l1", "loss": "hinge"},
        {"dual": 1},
        {"C": np.inf},
        {"tol": 0.0},
        {"intercept_scaling": 0.0},
        {"fit_intercept": "yes"},
    ],
    ids=str,
)
def test_what_scikit_learn_refuses_is_refused_in_its_words(parameters):
    with pytest.raises(ValueError) as ours:  # noqa: PT011 - the words are compared
        drop_ins.LinearSVC(**parameters).fit(X, Y)
    with pytest.raises(ValueError) as theirs:  # noqa: PT011
        sk.LinearSVC(**parameters).fit(X, Y)
    assert str(ours.value) == str(theirs.value)


def test_explanations_speak_of_the_columns_of_the_user():
    frame = pd.DataFrame(X3, columns=load_wine().feature_names)
    model = drop_ins.LinearSVC().fit(frame, Y3)
    assert list(model.feature_names_in_) == list(frame)
    total = model.explain(frame.iloc[:1], of=0)
    assert len(total.to_dict()["contributions"]) == frame.shape[1]
    np.testing.assert_allclose(model._ours.margin_, 1.0 / np.linalg.norm(model.coef_, axis=1))
    assert "LinearSVC" in str(model.certificate_.subject)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_column_is_appended_in_the_order_of_the_table(order):
    table = with_column(np.asarray(X3, order=order), 2.0)
    assert table.flags[f"{order}_CONTIGUOUS"]
    np.testing.assert_array_equal(table, np.column_stack([X3, np.full(len(X3), 2.0)]))
    np.testing.assert_array_equal(with_column(sp.csr_array(X3), 2.0).toarray(), table)


# -- SVC ----------------------------------------------------------------------------------------------------

KERNELS = [
    {},
    {"kernel": "linear", "C": 0.1},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "sigmoid", "gamma": 0.01},
    {"gamma": "auto", "decision_function_shape": "ovo"},
    {"break_ties": True, "class_weight": "balanced"},
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("parameters", KERNELS, ids=str)
def test_svc_has_libsvms_model_and_attributes(table, form, parameters):
    rows, labels = TABLES[table]
    rows = FORMS[form](rows)
    ours, theirs = (kind(**parameters, tol=1e-5).fit(rows, labels) for kind in (drop_ins.SVC, sk.SVC))
    assert ours._ours is not None
    np.testing.assert_allclose(ours.decision_function(rows), theirs.decision_function(rows), atol=2e-3)
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))
    for name, value in vars(theirs).items():
        own = getattr(ours, name)
        assert type(own) is type(value), name
        assert np.shape(own) == np.shape(value), name
        assert getattr(own, "dtype", None) == getattr(value, "dtype", None), name
    for name in ("support_", "n_support_", "support_vectors_"):
        np.testing.assert_array_equal(dense(getattr(ours, name)), dense(getattr(theirs, name)))
    for name in ("dual_coef_", "_dual_coef_", "intercept_", "_intercept_", "class_weight_", "_gamma"):
        np.testing.assert_allclose(dense(getattr(ours, name)), dense(getattr(theirs, name)), atol=5e-2)
    if ours.kernel == "linear":
        assert type(ours.coef_) is type(theirs.coef_)
        difference = ours.coef_ - theirs.coef_
        np.testing.assert_allclose(
            difference.toarray() if sp.issparse(difference) else difference, 0, atol=1e-3
        )
    else:
        assert not hasattr(ours, "coef_")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("table", ["two classes", "three classes", "noise"])
@pytest.mark.parametrize("parameters", KERNELS, ids=str)
def test_scikit_learns_own_methods_answer_the_same_from_the_attributes(table, form, parameters):
    rows, labels = TABLES[table]
    rows = FORMS[form](rows)
    model = drop_ins.SVC(**parameters).fit(rows, labels)
    off = 1e-5 if form == "float32" else 1e-9
    np.testing.assert_allclose(model.decision_function(rows), sk.SVC.decision_function(model, rows), atol=off)
    np.testing.assert_array_equal(model.predict(rows), sk.SVC.predict(model, rows))
    assert model.certificate_.verify(rows, labels).converged


@pytest.mark.parametrize("table", TABLES)
def test_the_direct_class_orders_support_vectors_as_libsvm(table):
    rows, labels = TABLES[table]
    ours, theirs = (kind(tol=1e-5).fit(rows, labels) for kind in (sixfold.SVC, sk.SVC))
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-2)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-2)


def test_precomputed_kernels():
    values = X3 @ X3.T
    ours, theirs = (kind(kernel="precomputed", tol=1e-5).fit(values, Y3) for kind in (drop_ins.SVC, sk.SVC))
    assert ours._ours is not None
    assert ours.support_vectors_.shape == theirs.support_vectors_.shape == (0, 0)
    assert ours._gamma == theirs._gamma == 0.0
    np.testing.assert_allclose(ours.decision_function(values), sk.SVC.decision_function(ours, values))
    np.testing.assert_allclose(ours.decision_function(values), theirs.decision_function(values), atol=1e-3)
    with pytest.raises(TypeError, match="Sparse precomputed kernels are not supported"):
        drop_ins.SVC(kernel="precomputed").fit(sp.csr_matrix(values), Y3)


def test_balanced_classes_are_counted_by_rows_under_the_patch_and_by_weights_in_the_direct_class():
    weights = np.where(Y == 0, 10.0, 1.0)
    ours, theirs, direct = (
        kind(class_weight="balanced").fit(X, Y, sample_weight=weights)
        for kind in (drop_ins.SVC, sk.SVC, sixfold.SVC)
    )
    np.testing.assert_allclose(ours.class_weight_, theirs.class_weight_)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-2)
    assert np.abs(direct.class_weight_ - theirs.class_weight_).max() > 0.5


def test_rows_of_weight_zero_are_left_out():
    weights = (np.arange(len(Y3)) % 3).astype(float)
    ours, theirs = (kind(tol=1e-5).fit(X3, Y3, sample_weight=weights) for kind in (drop_ins.SVC, sk.SVC))
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    np.testing.assert_array_equal(ours.support_vectors_, X3[ours.support_])
    np.testing.assert_allclose(ours.decision_function(X3), theirs.decision_function(X3), atol=1e-3)


def test_a_decision_of_zero_counts_for_the_first_class_under_the_patch_and_as_the_vote_in_the_direct_class():
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 5.0]])
    given = {"kernel": "linear", "C": 10.0}
    ours, theirs, direct = (
        kind(**given).fit(rows, [0, 1, 2]) for kind in (drop_ins.SVC, sk.SVC, sixfold.SVC)
    )
    middle = np.array([[0.0, -3.0]])  # between the first two, and far from the third
    pairs = clone(ours).set_params(decision_function_shape="ovo").fit(rows, [0, 1, 2])
    assert pairs.decision_function(middle)[0, 0] == 0.0
    np.testing.assert_allclose(ours.decision_function(middle), theirs.decision_function(middle), atol=1e-3)
    assert ours.decision_function(middle).argmax() == 0
    assert direct.decision_function(middle).argmax() == 1
    for model in (ours, theirs, direct):
        assert model.predict(middle) == [1]


def test_sparse_rows_are_refused_after_a_dense_fit_under_the_patch_and_answered_by_the_direct_class():
    rows = sp.csr_matrix(X3)
    direct = sixfold.SVC().fit(X3, Y3)
    np.testing.assert_array_equal(direct.predict(rows), direct.predict(X3))
    with pytest.raises(ValueError, match="cannot use sparse input in 'SVC' trained on dense data"):
        drop_ins.SVC().fit(X3, Y3).predict(rows)
    sparse = drop_ins.SVC().fit(rows, Y3)
    np.testing.assert_allclose(sparse.decision_function(X3), sparse.decision_function(rows))


@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
@pytest.mark.filterwarnings("ignore:Solver terminated early:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "parameters",
    [
        {"probability": True},
        {"max_iter": 3},
        {"kernel": lambda A, B: A @ B.T},
        {"gamma": 0.0},
        {"C": np.inf, "kernel": "poly"},
    ],
    ids=["probabilities", "max_iter", "function", "gamma", "hard margin"],
)
def test_what_ours_does_not_have_is_libsvms(parameters):
    ours, theirs = (kind(**parameters, random_state=0).fit(X3, Y3) for kind in (drop_ins.SVC, sk.SVC))
    assert ours._ours is None
    np.testing.assert_array_equal(ours.decision_function(X3), theirs.decision_function(X3))
    if "probability" in parameters:
        np.testing.assert_array_equal(ours.predict_proba(X3), theirs.predict_proba(X3))


def test_negative_weights_are_left_to_libsvm():
    weights = np.where(np.arange(len(Y3)) % 5, 1.0, -1.0)
    ours, theirs = (kind().fit(X3, Y3, sample_weight=weights) for kind in (drop_ins.SVC, sk.SVC))
    assert ours._ours is None
    np.testing.assert_array_equal(ours.support_, theirs.support_)


@pytest.mark.skipif(
    sk.SVC().probability != "deprecated", reason="probability is deprecated from scikit-learn 1.9 on"
)
def test_the_deprecated_parameter_warns_once_as_there():
    for kind in (drop_ins.SVC, sk.SVC):
        with pytest.warns(FutureWarning, match="`probability` parameter was deprecated in 1.9") as caught:
            model = kind(probability=False).fit(X3, Y3)
        assert len(caught) == 1
        assert not hasattr(model, "predict_proba")
    assert not hasattr(drop_ins.SVC().fit(X3, Y3), "predict_proba")


def test_who_changes_what_a_model_is_made_of_has_scikit_learn_answer():
    model = drop_ins.SVC(kernel="linear").fit(X, Y)
    before = model.decision_function(X)
    model._dual_coef_ = 2.0 * model._dual_coef_
    changed = model.decision_function(X)
    np.testing.assert_allclose(changed - model.intercept_, 2.0 * (before - model.intercept_))
    several = drop_ins.SVC().fit(X3, Y3)
    assert several.decision_function(X3).shape == (len(X3), 3)
    several.set_params(decision_function_shape="ovo", break_ties=True)
    with pytest.raises(ValueError, match="break_ties must be False when decision_function_shape is 'ovo'"):
        several.predict(X3)


def test_an_altered_model_is_refused():
    model = drop_ins.SVC().fit(X3, Y3)
    model._n_support[0] = 1_000_000
    with pytest.raises(ValueError, match="The internal representation of SVC was altered"):
        model.predict(X3)


# -- both ---------------------------------------------------------------------------------------------------

BOTH = [drop_ins.LinearSVC, drop_ins.SVC]


@pytest.mark.parametrize("kind", BOTH)
def test_copies_pickles_and_clones(kind):
    model = kind(C=0.5).fit(X3, Y3)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other._is_ours()
        np.testing.assert_array_equal(other.decision_function(X3), model.decision_function(X3))
        assert other.certificate_.verify(X3, Y3).converged
    blank = clone(model)
    assert blank.C == 0.5
    assert not hasattr(blank, "classes_")


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_of_either_follow_each_other(kind):
    model = kind().fit(X3, Y3)
    expected = model.decision_function(X3)
    model.set_params(max_iter=1).fit(pd.DataFrame(X, columns=load_breast_cancer().feature_names), Y)
    assert model._ours is None
    assert model.n_features_in_ == X.shape[1]
    model.set_params(max_iter=kind().max_iter).fit(X3, Y3)
    np.testing.assert_array_equal(model.decision_function(X3), expected)
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    "labels",
    [np.array(["a", "b", "c"])[Y3], np.array(["a", "b", "c"], dtype=object)[Y3], Y3.astype(float), Y3 > 0],
    ids=["text", "objects", "floats", "booleans"],
)
def test_labels_are_scikit_learns(kind, labels):
    ours, theirs = kind().fit(X3, labels), kind.__bases__[-1]().fit(X3, labels)
    assert ours.classes_.dtype == theirs.classes_.dtype
    assert ours.predict(X3).dtype == theirs.predict(X3).dtype
    np.testing.assert_array_equal(ours.predict(X3), theirs.predict(X3))


@pytest.mark.parametrize("kind", BOTH)
def test_subclasses_and_models_around_them(kind):
    class Mine(kind):
        def fit(self, X, y):
            return super().fit(X, y, sample_weight=np.ones(len(y)))

    mine = Mine().fit(X3, Y3)
    assert mine._ours is not None
    np.testing.assert_array_equal(mine.predict(X3), kind().fit(X3, Y3).predict(X3))
    around = OneVsRestClassifier(kind()).fit(X3, Y3)
    assert all(one._ours is not None for one in around.estimators_)
    with sklearn.config_context(enable_metadata_routing=True):
        assert kind().set_fit_request(sample_weight=True).get_metadata_routing().fit.requests == {
            "sample_weight": True
        }


@pytest.mark.parametrize("kind", BOTH)
def test_the_patch_puts_them_in_place_and_takes_them_back(kind):
    theirs = getattr(sk, kind.__name__)
    with sixfold.patch_sklearn():
        assert getattr(sk, kind.__name__) is kind
        assert isinstance(getattr(sk, kind.__name__)(), theirs)
    assert getattr(sk, kind.__name__) is theirs


def outcomes(model):
    """Return what comes of each of scikit-learn's checks: None, or the kind of error."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator, check in estimator_checks_generator(model):
            name = f"{check.func.__name__} {check.keywords}"
            try:
                check(estimator)
                found[name] = None
            except Exception as error:  # those that are skipped too
                found[name] = type(error)
    return found


# Weighted and repeated rows have the same optimum, which ours comes closer to.
BETTER = ("check_sample_weight_equivalence",)


@pytest.mark.parametrize("kind", BOTH)
def test_scikit_learns_checks_have_the_same_outcome(kind):
    ours, theirs = outcomes(kind()), outcomes(kind.__bases__[-1]())
    assert len(ours) > 50
    for name, outcome in theirs.items():
        assert ours[name] == outcome or (ours[name] is None and name.startswith(BETTER)), name
