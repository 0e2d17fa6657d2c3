"""DecisionTreeClassifier under scikit-learn's name: its trees, its attributes, its semantics."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.tree
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier as Theirs
from sklearn.tree._tree import Tree
from sklearn.utils.estimator_checks import estimator_checks_generator

import sixfold
from sixfold.patch.trees import DecisionTreeClassifier as Ours

LIMITS = [
    {},
    {"criterion": "entropy"},
    {"criterion": "log_loss", "max_depth": 4},
    {"max_features": 1.0},
    {"min_samples_leaf": 20, "min_samples_split": 100},
    {"min_samples_leaf": 0.03, "min_samples_split": 0.2},
    {"min_weight_fraction_leaf": 0.04},
    {"min_impurity_decrease": 0.004},
    {"ccp_alpha": 0.006},
    {"ccp_alpha": 0.01, "criterion": "entropy", "max_depth": 6},
    {"class_weight": "balanced"},
    {"class_weight": {0: 3.0, 1: 0.5}},
    {"class_weight": {1: 0.0}},
    {"max_leaf_nodes": 9},
    {"max_leaf_nodes": 12, "max_depth": 4, "ccp_alpha": 0.003},
]


def table(seed=0, classes=3, rows=600):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 5))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.7 * random.normal(size=rows)
    weight = random.uniform(0.2, 3.0, rows)
    return X, np.clip(score.round(), 0, classes - 1).astype(int), weight


def risk(tree, node):
    return tree.impurity[node] * tree.weighted_n_node_samples[node]


def require_same_tree(ours, theirs):
    """Walk through both: where two splits differ they are equally good. Return how many nodes are equal."""
    same, waiting = 0, [(0, 0)]
    while waiting:
        i, j = waiting.pop()
        assert ours.n_node_samples[i] == theirs.n_node_samples[j]
        assert ours.weighted_n_node_samples[i] == pytest.approx(theirs.weighted_n_node_samples[j], rel=1e-12)
        assert ours.impurity[i] == pytest.approx(theirs.impurity[j], abs=1e-12)
        np.testing.assert_allclose(ours.value[i], theirs.value[j], atol=1e-12)
        same += 1
        mine = ours.children_left[i], ours.children_right[i]
        known = theirs.children_left[j], theirs.children_right[j]
        if (mine[0] < 0) != (known[0] < 0):  # scikit-learn's rounding may split what is of one class
            assert mine[0] < 0
            assert ours.impurity[i] == 0.0
        elif mine[0] < 0:
            assert (ours.feature[i], ours.threshold[i]) == (-2, -2.0)
        elif (ours.feature[i], ours.threshold[i]) == (theirs.feature[j], theirs.threshold[j]):
            assert ours.missing_go_to_left[i] == theirs.missing_go_to_left[j]
            waiting += list(zip(mine, known, strict=True))
        else:
            left = [sum(risk(tree, node) for node in pair) for tree, pair in ((ours, mine), (theirs, known))]
            assert left[0] == pytest.approx(left[1], rel=1e-9)
    return same


# -- the same trees ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["none", "some", "with zeros"])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_trees_are_those_of_scikit_learn(limits, weights):
    X, y, weight = table()
    weight = {"none": None, "some": weight, "with zeros": weight * (weight > 1.0)}[weights]
    ours, theirs = (model(random_state=0, **limits).fit(X, y, weight) for model in (Ours, Theirs))
    assert ours._ours is not None
    assert require_same_tree(ours.tree_, theirs.tree_) >= 9


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_our_answers_are_exactly_those_of_tree_(limits):
    X, y, weight = table(1)
    queries = np.random.default_rng(5).normal(size=(300, 5))
    model = Ours(**limits).fit(X, y, weight)
    shares, labels, nodes = model.predict_proba(queries), model.predict(queries), model.apply(queries)
    assert "tree_" not in vars(model)  # until now ours has answered
    tree, as_read = model.tree_, queries.astype(np.float32)
    assert isinstance(tree, Tree)
    for mine, known in (
        (shares, tree.predict(as_read)),
        (nodes, tree.apply(as_read)),
        (labels, model.classes_[tree.predict(as_read).argmax(axis=1)]),
    ):
        assert np.array_equal(mine, known)
        assert mine.dtype == known.dtype
    assert np.array_equal(model.predict_proba(queries), shares)  # now tree_ answers


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_digits])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_trees_of_real_tables(load, criterion):
    X, y = load(return_X_y=True)
    ours, theirs = (model(criterion=criterion, random_state=0).fit(X, y) for model in (Ours, Theirs))
    assert ours._ours is not None
    assert ours.score(X, y) == 1.0
    require_same_tree(ours.tree_, theirs.tree_)


@pytest.mark.parametrize(
    "form", ["float32", "fortran", "csr", "csc", "list", "pandas", "integers", "strided"]
)
def test_tables_of_every_form(form):
    pandas = pytest.importorskip("pandas")
    X, y, _ = table(2)
    X = np.where(np.abs(X) > 1.0, X, 0.0)
    made = {
        "float32": lambda: X.astype(np.float32),
        "fortran": lambda: np.array(X, order="F"),
        "csr": lambda: sp.csr_matrix(X),
        "csc": lambda: sp.csc_array(X),
        "list": X.tolist,
        "pandas": lambda: pandas.DataFrame(X, columns=list("abcde")),
        "integers": lambda: (100 * X).astype(int),
        "strided": lambda: np.repeat(X, 2, axis=1)[:, ::2],
    }[form]()
    ours, theirs = (model(max_depth=4, random_state=0).fit(made, y) for model in (Ours, Theirs))
    assert ours._ours is not None
    as_read = theirs._validate_X_predict(made, True)
    assert np.array_equal(ours.predict_proba(made), ours.tree_.predict(as_read))
    require_same_tree(ours.tree_, theirs.tree_)
    assert getattr(ours, "feature_names_in_", None) is None or ours.feature_names_in_.tolist() == list(
        "abcde"
    )


@pytest.mark.parametrize(
    "labels",
    [
        lambda y: np.array(["no", "yes", "perhaps"])[y],
        lambda y: np.array(["no", "yes", "perhaps"], dtype=object)[y],
        lambda y: y == 1,
        lambda y: y.astype(np.int8),
        lambda y: y.astype(np.float64),
        lambda y: y[:, None],
        lambda y: y.tolist(),
        np.zeros_like,
    ],
)
def test_attributes_are_those_of_scikit_learn(labels):
    X, y, _ = table()
    ours, theirs = (model(max_depth=2, random_state=0).fit(X, labels(y)) for model in (Ours, Theirs))
    assert ours._ours is not None
    assert ours.classes_.dtype == theirs.classes_.dtype
    assert np.array_equal(ours.classes_, theirs.classes_)
    for name in ("n_classes_", "n_outputs_", "n_features_in_", "max_features_"):
        assert getattr(ours, name) == getattr(theirs, name)
        assert type(getattr(ours, name)) is type(getattr(theirs, name))
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-12)
    assert (ours.get_depth(), ours.get_n_leaves()) == (theirs.get_depth(), theirs.get_n_leaves())
    assert (ours.decision_path(X) != theirs.decision_path(X)).nnz == 0
    assert type(ours.decision_path(X)) is type(theirs.decision_path(X))
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert set(vars(ours)) - {"_ours"} == set(vars(theirs))


def test_the_alphas_of_the_path_cut_the_trees_of_the_path():
    X, y, _ = table(3, rows=300)
    path = Ours(random_state=0).cost_complexity_pruning_path(X, y)
    sizes = []
    for alpha in path.ccp_alphas:
        model = Ours(ccp_alpha=alpha).fit(X, y)
        assert model._ours.tree_.leaf_count == model.get_n_leaves()
        sizes.append(model.get_n_leaves())
        leaves = model.tree_.children_left < 0
        share = model.tree_.weighted_n_node_samples[leaves] / 300
        at = np.flatnonzero(path.ccp_alphas == alpha)[-1]
        assert share @ model.tree_.impurity[leaves] == pytest.approx(path.impurities[at], abs=1e-9)
    assert sizes[-1] == 1
    assert sorted(sizes, reverse=True) == sizes


# -- scikit-learn's semantics, and ours ----------------------------------------------------------------------


def test_values_within_1e_7_are_equal_under_the_patch_and_differ_in_ours():
    near, y = np.array([[0.0], [1e-8], [0.0], [1e-8]]), [0, 1, 0, 1]
    model = Ours().fit(near, y)
    assert model._ours is None  # handed back
    assert model.get_n_leaves() == 1
    assert sixfold.DecisionTreeClassifier().fit(near, y).get_n_leaves() == 2
    assert Ours().fit(1e5 * near, y)._ours is not None


@pytest.mark.parametrize("low", [1.0, 0.5, 0.3, -0.7, -2.0, 2.0, 1e-3])
def test_neighbouring_numbers_as_float32_are_split_as_scikit_learn_does(low):
    lower = np.float32(low)
    for steps in (1, 2, 4, 8):
        upper = lower
        for _ in range(steps):
            upper = np.nextafter(upper, np.float32(np.inf))
        X = np.array([[lower], [lower], [upper], [upper]], dtype=np.float32)
        ours, theirs = (model().fit(X, [0, 0, 1, 1]) for model in (Ours, Theirs))
        assert ours.tree_.threshold.tolist() == theirs.tree_.threshold.tolist()


def test_a_near_pair_that_no_split_parts_does_not_matter():
    X = np.array([[0.0], [1e-8], [1.0], [1.0 + 1e-3]])
    assert Ours().fit(X, [0, 0, 1, 1])._ours is not None


def test_numbers_are_float32_under_the_patch_and_float64_in_ours():
    X = np.array([[1000.0], [1000.00001]])
    assert Ours().fit(X, [0, 1]).get_n_leaves() == 1
    assert sixfold.DecisionTreeClassifier().fit(X, [0, 1]).get_n_leaves() == 2
    with pytest.raises(ValueError, match="too large for dtype\\('float32'\\)"), np.errstate(over="ignore"):
        Ours().fit([[1e300], [0.0]], [0, 1])


def test_balanced_counts_rows_under_the_patch_and_weights_in_ours():
    X, y, weight = table()
    weight = np.where(y == 0, 5.0 * weight, weight)
    ours, theirs = (model(class_weight="balanced", max_depth=3, random_state=0) for model in (Ours, Theirs))
    require_same_tree(ours.fit(X, y, weight).tree_, theirs.fit(X, y, weight).tree_)
    root = sixfold.DecisionTreeClassifier(class_weight="balanced").fit(X, y, weight).tree_.value[0]
    np.testing.assert_allclose(root, 1 / 3)
    assert ours.tree_.value[0, 0, 0] > 0.6


def test_shares_of_the_rows_count_those_without_weight_under_the_patch():
    X, y, _ = table()
    weight = (np.arange(y.size) % 4 == 0).astype(float)
    ours, theirs = (model(min_samples_leaf=0.05, random_state=0) for model in (Ours, Theirs))
    require_same_tree(ours.fit(X, y, weight).tree_, theirs.fit(X, y, weight).tree_)
    own = sixfold.DecisionTreeClassifier(criterion="gini", min_samples_leaf=0.05).fit(X, y, weight)
    assert own.get_n_leaves() > ours.get_n_leaves()


def test_equal_splits_go_to_the_lowest_column_in_both():
    X = np.repeat(np.arange(8.0)[:, None], 4, axis=1)
    for seed in range(5):
        assert Ours(random_state=seed).fit(X, [0] * 4 + [1] * 4).tree_.feature[0] == 0


def test_unknown_values_go_the_way_of_the_larger_child():
    X, y, _ = table()
    model, theirs = (one(max_depth=3, random_state=0).fit(X, y) for one in (Ours, Theirs))
    gaps = X.copy()
    gaps[::3, 2] = np.nan
    assert np.array_equal(model.predict_proba(gaps), theirs.predict_proba(gaps))


@pytest.mark.parametrize("state", [0, None, np.random.RandomState(3)])
def test_a_fit_draws_as_many_numbers_as_that_of_scikit_learn(state):
    X, y, _ = table()
    drawn = []
    for model in (Ours, Theirs):
        np.random.seed(0)  # noqa: NPY002 - what random_state=None draws from
        given = copy.deepcopy(state)
        model(random_state=given, max_depth=2).fit(X, y)
        drawn.append((np.random.random(), None if not hasattr(given, "random") else given.random()))  # noqa: NPY002
    assert drawn[0] == drawn[1]


# -- what is left to scikit-learn ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"splitter": "random"},
        {"max_features": 2},
        {"max_features": "sqrt"},
        {"monotonic_cst": [0, 1, 0, 0, 0]},
    ],
    ids=str,
)
def test_what_we_do_not_offer_is_fitted_by_scikit_learn(parameters):
    X, y, _ = table(classes=2)
    ours, theirs = (model(random_state=0, **parameters).fit(X, y) for model in (Ours, Theirs))
    assert ours._ours is None
    assert np.array_equal(ours.tree_.threshold, theirs.tree_.threshold)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert not hasattr(ours, "certificate_")


def test_unknown_values_several_labels_and_weights_below_zero_are_fitted_by_scikit_learn():
    X, y, weight = table()
    gaps = np.where(X > 1.0, np.nan, X)
    weight[0] = -0.5
    for args in ((gaps, y), (X, np.column_stack([y, y])), (X, y, weight)):
        ours, theirs = (model(random_state=0).fit(*args) for model in (Ours, Theirs))
        assert ours._ours is None
        assert np.array_equal(ours.tree_.threshold, theirs.tree_.threshold)


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_depth": 0},
        {"criterion": "gain_ratio"},
        {"criterion": "homogeneous"},
        {"min_samples_leaf": 1.0},
        {"min_samples_split": 1},
        {"min_samples_split": "2"},
        {"max_leaf_nodes": 1},
        {"random_state": -1},
        {"random_state": "x"},
        {"class_weight": "even"},
        {"class_weight": {0: 1.0, 7: 2.0}},
        {"ccp_alpha": -1.0},
        {"min_weight_fraction_leaf": 0.6},
        {"max_features": 0},
    ],
    ids=str,
)
def test_what_scikit_learn_refuses_is_refused_in_its_words(parameters):
    X, y, _ = table()
    with pytest.raises(ValueError) as known:  # noqa: PT011 - the words are compared
        Theirs(**parameters).fit(X, y)
    with pytest.raises(type(known.value)) as found:
        Ours(**parameters).fit(X, y)
    assert str(found.value) == str(known.value)


def test_text_is_refused_and_rows_of_other_columns_too():
    with pytest.raises(ValueError, match="could not convert string to float: 'a'"):
        Ours().fit([["a"], ["b"]], [0, 1])
    model = Ours().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="X has 2 features, but DecisionTreeClassifier is expecting 1"):
        model.predict([[0.0, 1.0]])
    with pytest.raises(ValueError, match="X has 2 features, but DecisionTreeClassifier is expecting 1"):
        model.predict(np.zeros((1, 2)))
    with pytest.raises(NotFittedError):
        Ours().predict([[0.0]])
    with pytest.raises(NotFittedError):
        _ = Ours().feature_importances_
    with pytest.raises(AttributeError, match="'DecisionTreeClassifier' object has no attribute 'tree_'"):
        _ = Ours().tree_


def test_estimator_checks_end_as_they_do_for_scikit_learn():
    def outcomes(model):
        ended = {}
        for estimator, check in estimator_checks_generator(model):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    check(estimator)
                except Exception as error:
                    ended[str(check)] = type(error)
        return ended

    assert outcomes(Ours()).keys() == outcomes(Theirs()).keys()


# -- a model's life ------------------------------------------------------------------------------------------


def test_check_input_false():
    X, y, _ = table()
    as_read = X.astype(np.float32)
    model = Ours(max_depth=4).fit(as_read, y, check_input=False)
    assert model._ours is not None
    for method in ("predict", "predict_proba", "apply"):
        assert np.array_equal(getattr(model, method)(as_read, check_input=False), getattr(model, method)(X))


def test_identical_fits_have_identical_pickles():
    X, y, _ = table()
    one, other = (Ours(random_state=0).fit(X, y) for _ in range(2))
    assert pickle.dumps(one) == pickle.dumps(other)
    assert one.tree_.node_count == other.tree_.node_count
    assert pickle.dumps(one) == pickle.dumps(other)
    assert pickle.dumps(one.tree_) == pickle.dumps(other.tree_)
    again = pickle.loads(pickle.dumps(one))
    assert np.array_equal(again.predict_proba(X), one.predict_proba(X))


def test_who_changes_tree_changes_the_model():
    X, y, _ = table()
    model = Ours(max_depth=3).fit(X, y)
    assert np.unique(model.apply(X)).size > 1
    model.tree_.children_left[0] = model.tree_.children_right[0] = -1  # a known way to prune by hand
    assert np.unique(model.apply(X)).tolist() == [0]
    assert np.unique(pickle.loads(pickle.dumps(model)).predict(X)).size == 1
    assert np.unique(model.fit(X, y).apply(X)).size > 1


def test_refits_by_either_leave_nothing_of_the_other():
    X, y, _ = table()
    model = Ours(random_state=0).fit(X, y)
    assert model.tree_.node_count > 1
    model.set_params(splitter="random", max_depth=2).fit(X, y)
    assert model._ours is None
    assert model.get_depth() == 2
    model.set_params(splitter="best", max_depth=3).fit(X, y)
    assert model._ours is not None
    assert model.get_depth() == 3
    assert model._ours.get_depth() == 3
    assert clone(model).get_params() == model.get_params()
    assert np.array_equal(copy.deepcopy(model).predict(X), model.predict(X))


def test_a_subclass_of_a_user_and_a_search():
    X, y, _ = table()

    class Stump(Ours):
        def fit(self, X, y):
            self.max_depth = 1
            return super().fit(X, y)

    assert Stump().fit(X, y).get_n_leaves() == 2
    found = GridSearchCV(Ours(random_state=0), {"max_depth": [1, 5]}, cv=3).fit(X, y)
    assert found.best_params_ == {"max_depth": 5}


def test_the_certificate_speaks_of_the_rows_as_they_were_given():
    X, y, weight = table()
    model = Ours(min_samples_leaf=0.02, ccp_alpha=0.002).fit(X, y, weight)
    checked = model.certificate_.verify(X, y, weight)
    assert checked.objective == pytest.approx(model.certificate_.objective)
    assert model.explain(X[0]).answer == model.predict(X[:1])[0]


def test_weights_are_routed():
    X, y, weight = table()
    with sklearn.config_context(enable_metadata_routing=True):
        model = Ours().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        found = GridSearchCV(model, {"max_depth": [2]}, cv=3).fit(X, y, sample_weight=weight)
    assert found.best_estimator_.tree_.weighted_n_node_samples[0] == pytest.approx(weight.sum())


def test_the_patch_puts_it_in_place():
    X, y, _ = table()
    with sixfold.patch_sklearn("DecisionTreeClassifier"):
        model = sklearn.tree.DecisionTreeClassifier().fit(X, y)
    assert sklearn.tree.DecisionTreeClassifier is not type(model)
    assert isinstance(model, sklearn.tree.DecisionTreeClassifier)
    assert model.certificate_.converged
    assert sklearn.tree.export_text(model, max_depth=100).count("class") == model.get_n_leaves()
    assert Ours is type(model)
    assert Theirs is sklearn.tree.DecisionTreeClassifier
