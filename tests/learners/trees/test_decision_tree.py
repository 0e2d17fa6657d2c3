"""Decision trees: the worked example, scikit-learn's trees where they agree, and what only ours have."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import tree as sklearn_tree
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_sample_weight

from learners.trees.compared_trees import WEIGHT, X, Y, same
from sixfold import DecisionTreeClassifier
from sixfold.data.examples import load_example
from sixfold.errors import InputError


def strangers():
    example = load_example("strangers")
    return pd.DataFrame(example.X, columns=example.columns), example.y


# -- the worked example ----------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["entropy", "homogeneous"])
def test_the_tree_of_the_worked_example(criterion):
    table, labels = strangers()
    model = DecisionTreeClassifier(criterion=criterion).fit(table, labels)
    tree = model.tree_
    assert tree.column.tolist() == [0, -1, -1, 1, -1, -1]  # the shadow, then garlic where it is unknown
    assert tree.unknown[0] == 3
    assert tree.rows.tolist() == [8, 1, 3, 4, 2, 2]
    assert model.predict(table).tolist() == labels.tolist()
    assert model.log_likelihood_ == 0.0
    assert tree.impurity.round(4).tolist() == [0.9544 if criterion == "entropy" else 1.0, 0, 0, 1, 0, 0]


def test_relative_to_how_finely_it_divides_garlic_tells_more_than_the_shadow():
    model = DecisionTreeClassifier(criterion="gain_ratio").fit(*strangers())  # 0.364 and 0.323 bits a bit
    assert model.tree_.column[0] == 1


def test_the_trace_of_the_worked_example():
    table, labels = strangers()
    trace = DecisionTreeClassifier(trace=True).fit(table, labels).trace_
    root, *_, dark = (node for node in trace if node.splits)
    assert round(root.impurity, 4) == 0.9544
    assert [(one.column, round(one.average, 4), round(one.gain, 4)) for one in root.splits] == [
        ("shadow", 0.5, 0.4544),
        ("garlic", 0.6068, 0.3476),
        ("complexion", 0.6887, 0.2657),
        ("accent", 0.9387, 0.0157),
    ]
    assert [one.column for one in root.splits if one.chosen] == ["shadow"]
    assert root.splits[0].split == "no | yes | unknown"
    assert dark.where == "shadow unknown"
    assert {one.column: one.gain for one in dark.splits} == {"garlic": 1.0, "complexion": 0.5, "accent": 0.0}
    assert "garlic      no | yes                0.0000   1.0000  <- chosen" in str(trace)
    assert "3 rows (3 no), entropy in bits 0.0000\n  leaf: all rows are of one class" in str(trace)
    assert len(trace) == 6
    assert trace.to_dict()["nodes"][3]["rows"] == trace[3].rows == 4


def test_entropies_in_nats():
    table, labels = strangers()
    bits, nats = (DecisionTreeClassifier(base=base, trace=True).fit(table, labels) for base in (2, "e"))
    np.testing.assert_allclose(nats.tree_.impurity, bits.tree_.impurity * math.log(2))
    assert nats.trace_[0].splits[0].gain == pytest.approx(bits.trace_[0].splits[0].gain * math.log(2))
    limit = 0.4544 * math.log(2)
    assert DecisionTreeClassifier(base="e", min_impurity_decrease=limit).fit(table, labels).get_depth() > 0
    assert DecisionTreeClassifier(base=2, min_impurity_decrease=0.4545).fit(table, labels).get_depth() == 0
    assert (
        DecisionTreeClassifier(base="e", min_impurity_decrease=limit + 1e-4).fit(table, labels).get_depth()
        == 0
    )


def test_the_cost_of_a_leaf_in_nats():
    bits = DecisionTreeClassifier(ccp_alpha=0.05).fit(X, Y)
    nats = DecisionTreeClassifier(ccp_alpha=0.05 * math.log(2), base="e").fit(X, Y)
    assert 1 < nats.get_n_leaves() < DecisionTreeClassifier().fit(X, Y).get_n_leaves()
    same(nats, bits)
    same(DecisionTreeClassifier(base="e").fit(X, Y).pruned(ccp_alpha=0.05 * math.log(2)), bits)
    paths = [DecisionTreeClassifier(base=base).cost_complexity_pruning_path(X, Y) for base in (2, "e")]
    np.testing.assert_allclose(paths[1].ccp_alphas, paths[0].ccp_alphas * math.log(2))
    np.testing.assert_allclose(paths[1].impurities, paths[0].impurities * math.log(2))


# -- as scikit-learn's, where nothing is tied ------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"min_samples_split": 60},
        {"min_samples_split": 0.2},
        {"min_samples_leaf": 15},
        {"min_samples_leaf": 0.04},
        {"min_weight_fraction_leaf": 0.04},
        {"min_impurity_decrease": 0.02},
        {"class_weight": "balanced"},
        {"class_weight": {0: 2.0, 2: 0.5}},
        {"ccp_alpha": 0.02},
        {"max_leaf_nodes": 5},
    ],
    ids=str,
)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize("criterion", ["entropy", "gini", "log_loss"])
def test_the_tree_is_that_of_scikit_learn(criterion, weight, parameters):
    parameters = {"max_depth": 3} | parameters  # in small nodes splits by different columns are equal
    if "balanced" in parameters.values():
        weight = None  # here classes are balanced by weight, there by rows
    ours = DecisionTreeClassifier(criterion=criterion, **parameters).fit(X, Y, weight)
    theirs = sklearn_tree.DecisionTreeClassifier(criterion=criterion, random_state=0, **parameters)
    theirs.fit(X, Y, weight)
    here, there = ours.tree_, theirs.tree_
    if "max_leaf_nodes" not in parameters:  # which numbers nodes in another order there
        for name in ("feature", "children_left", "children_right", "n_node_samples"):
            np.testing.assert_array_equal(getattr(here, name), getattr(there, name))
        for name in ("threshold", "impurity", "weighted_n_node_samples", "value"):
            # Values are float32 there.
            np.testing.assert_allclose(getattr(here, name), getattr(there, name), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(ours.apply(X), theirs.apply(X))
        path = theirs.decision_path(X)
        np.testing.assert_array_equal(ours.decision_path(X).toarray(), path.toarray())
    assert ours.get_depth() == theirs.get_depth()
    assert ours.get_n_leaves() == theirs.get_n_leaves()
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
def test_the_pruning_path_is_that_of_scikit_learn(weight):
    ours = DecisionTreeClassifier(max_depth=3).cost_complexity_pruning_path(X, Y, weight)
    theirs = sklearn_tree.DecisionTreeClassifier(criterion="entropy", max_depth=3, random_state=0)
    theirs = theirs.cost_complexity_pruning_path(X, Y, weight)
    np.testing.assert_allclose(ours.ccp_alphas, theirs.ccp_alphas, atol=1e-12)
    np.testing.assert_allclose(ours.impurities, theirs.impurities, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "looked_at"), [(None, 8), (3, 3), (0.5, 4), (0.01, 1), ("sqrt", 2), ("log2", 3), (20, 20)]
)
def test_max_features_is_counted_as_scikit_learn_does(given, looked_at):
    model = DecisionTreeClassifier(max_features=given, random_state=0).fit(X, Y)
    theirs = sklearn_tree.DecisionTreeClassifier(max_features=min(looked_at, 8)).fit(X, Y)
    assert model.max_features_ == looked_at
    assert theirs.max_features_ == min(looked_at, 8)


def test_columns_are_drawn_by_the_seed():
    def columns(seed):
        return DecisionTreeClassifier(max_features=1, random_state=seed).fit(X, Y).tree_.column.tolist()

    assert columns(0) == columns(0)
    assert columns(0) != columns(1)


def test_scikit_learns_ensembles_and_searches_take_the_tree():
    data = load_breast_cancer(return_X_y=True)
    stump = DecisionTreeClassifier(max_depth=1)
    assert AdaBoostClassifier(stump, n_estimators=20, random_state=0).fit(*data).score(*data) > 0.95
    assert BaggingClassifier(DecisionTreeClassifier(), 5, random_state=0).fit(*data).score(*data) > 0.97
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 3]}, cv=3).fit(*data)
    assert search.best_params_ == {"max_depth": 3}


# -- columns as they come --------------------------------------------------------------------------------


def test_numbers_that_are_categories_are_the_same_as_text():
    random = np.random.default_rng(0)
    codes, size = random.integers(0, 5, 60), random.normal(size=60)
    labels = (codes % 2 == 0) ^ (size > 1)
    named = DecisionTreeClassifier(categorical_features=["kind"])
    named.fit(pd.DataFrame({"kind": codes, "size": size}), labels)
    text = DecisionTreeClassifier(categorical_features=["kind"])
    text.fit(pd.DataFrame({"kind": codes.astype(str), "size": size}), labels)
    typed = DecisionTreeClassifier()
    typed.fit(pd.DataFrame({"kind": pd.Categorical(codes), "size": size}), labels)
    same(named, text)
    same(named, typed)
    assert named.tree_.column[0] == 0
    assert len(named.tree_.children(0)) == 5


def test_categories_without_rows_have_no_branch():
    kind = pd.Categorical(list("cacb"), categories=list("zcyab"), ordered=True)
    model = DecisionTreeClassifier().fit(pd.DataFrame({"kind": kind}), [0, 1, 0, 2])
    assert model.tree_.branches(0) == {0: 1, 1: 2, 2: 3}
    assert model.tree_.totals[1:].tolist() == [[2, 0, 0], [0, 1, 0], [0, 0, 1]]  # c, a, b: as the type has it


def test_binary_groups_split_categories_in_two():
    table = pd.DataFrame({"town": list("abcdabcd")})
    labels = [0, 1, 0, 1, 0, 1, 0, 1]
    model = DecisionTreeClassifier(categories="binary").fit(table, labels)
    assert model.tree_.branches(0) == {0: 1, 2: 1, 1: 2, 3: 2}
    assert model.predict(table).tolist() == labels


def test_unknown_values_have_a_branch_or_go_where_it_is_best():
    table, labels = np.array([[1.0], [2.0], [np.nan], [8.0], [9.0], [np.nan]]), [0, 0, 1, 1, 1, 1]
    branch = DecisionTreeClassifier().fit(table, labels)
    assert branch.tree_.children(0) == [1, 2, 3]
    assert branch.tree_.unknown[0] == 3
    best = DecisionTreeClassifier(unknown="best").fit(table, labels)
    assert best.tree_.children(0) == [1, 2]
    assert best.tree_.unknown[0] == best.tree_.children_right[0] == 2
    assert best.tree_.missing_go_to_left.tolist() == [0, 0, 0]
    assert branch.predict([[np.nan]]) == best.predict([[np.nan]]) == [1]


def test_what_a_node_has_not_met_ends_the_way_there():
    table = pd.DataFrame({"town": ["Bonn", "Bonn", "Ulm", "Ulm", "Ulm"], "age": [1.0, 2.0, 3.0, 4.0, 5.0]})
    model = DecisionTreeClassifier().fit(table, ["a", "a", "b", "b", "c"])
    stranger = pd.DataFrame({"town": ["Köln", None, "Ulm"], "age": [1.0, 1.0, None]})
    np.testing.assert_allclose(model.predict_proba(stranger), [[0.4, 0.4, 0.2]] * 2 + [[0, 2 / 3, 1 / 3]])
    assert model.predict(stranger).tolist() == ["a", "a", "b"]
    assert model.apply(stranger).tolist() == [0, 0, 2]
    assert model.decision_path(stranger).toarray().tolist() == [[1, 0, 0, 0, 0]] * 2 + [[1, 0, 1, 0, 0]]


def test_a_class_without_weight_has_no_share():
    weight = (Y != 1).astype(float)
    model = DecisionTreeClassifier().fit(X, Y, weight)
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.predict_proba(X)[:, 1] == 0).all()
    without = DecisionTreeClassifier().fit(X[Y != 1], Y[Y != 1])
    np.testing.assert_array_equal(model.predict(X), without.predict(X))


def test_weights_count_as_rows_do():
    weight = np.random.default_rng(1).integers(0, 4, 400)
    weighted = DecisionTreeClassifier().fit(X, Y, weight)
    repeated = DecisionTreeClassifier().fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    for name in ("column", "threshold", "totals"):
        np.testing.assert_array_equal(getattr(weighted.tree_, name), getattr(repeated.tree_, name))
    balanced = DecisionTreeClassifier(class_weight="balanced").fit(X, Y)
    np.testing.assert_allclose(
        balanced.tree_.totals,
        DecisionTreeClassifier().fit(X, Y, compute_sample_weight("balanced", Y)).tree_.totals,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_single_precision_and_bytes_give_the_tree_of_the_same_values(dtype):
    values = np.random.default_rng(0).integers(0, 50, (300, 4)).astype(dtype)
    labels = (values[:, 0] > values[:, 1]).astype(int)
    same(
        DecisionTreeClassifier().fit(values, labels),
        DecisionTreeClassifier().fit(values.astype(float), labels),
    )


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
@pytest.mark.parametrize("prune", ["none", "reduced_error", "cost_complexity"])
def test_a_sparse_table_gives_the_tree_of_the_same_values(kind, prune):
    random = np.random.default_rng(0)
    values = random.integers(-2, 5, (200, 6)) * (random.random((200, 6)) < 0.3)
    labels = random.integers(0, 3, 200)
    sparse = DecisionTreeClassifier(prune=prune, random_state=0).fit(kind(values.astype(float)), labels)
    same(sparse, DecisionTreeClassifier(prune=prune, random_state=0).fit(values, labels))
    np.testing.assert_array_equal(sparse.apply(kind(values)), sparse.apply(values))
    sparse.certificate_.verify(kind(values), labels)


# -- the rest --------------------------------------------------------------------------------------------


def test_threads_change_nothing():
    same(DecisionTreeClassifier(n_jobs=1).fit(X, Y), DecisionTreeClassifier(n_jobs=2).fit(X, Y))


def test_a_pickled_tree_answers_as_before():
    model = DecisionTreeClassifier().fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    same(model, again)
    np.testing.assert_array_equal(model.predict_log_proba(X), again.predict_log_proba(X))


def test_logarithms_are_taken_of_the_answers_alone(monkeypatch):
    model = DecisionTreeClassifier().fit(X, Y)
    expected = np.log(np.maximum(model.predict_proba(X[:2]), 1e-300))
    taken, log = [], np.log
    monkeypatch.setattr(np, "log", lambda values: taken.append(values.shape) or log(values))
    found = model.predict_log_proba(X[:2])
    assert taken == [(2, 3)]
    np.testing.assert_array_equal(np.maximum(found, expected.min()), expected)


def test_what_is_known_of_a_fit():
    model = DecisionTreeClassifier().fit(*load_iris(return_X_y=True))
    assert (model.n_classes_, model.n_outputs_, model.n_features_in_, model.max_features_) == (3, 1, 4, 4)
    assert model.solver_ == "ID3"
    assert (model.tree_.n_leaves, model.tree_.max_depth) == (model.get_n_leaves(), model.get_depth())
    assert (model.tree_.n_features, model.tree_.n_outputs, model.tree_.max_n_classes) == (4, 1, 3)


def test_a_tree_with_other_branches_says_so():
    model = DecisionTreeClassifier().fit(*strangers())
    with pytest.raises(InputError, match="Some nodes of this tree have other branches than left"):
        model.tree_.children_left  # noqa: B018


def test_without_a_trace_there_is_none():
    model = DecisionTreeClassifier().fit(X, Y)
    with pytest.raises(AttributeError, match=r"There is no trace_\. Fit with trace=True\."):
        model.trace_  # noqa: B018
