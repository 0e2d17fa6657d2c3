"""Decision trees: the worked example, scikit-learn's trees where they agree, and what only ours have."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import tree as sklearn_tree
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_sample_weight

from sixfold import DecisionTreeClassifier
from sixfold.budget import Budget
from sixfold.data.examples import load_example
from sixfold.errors import InputError, StoppedEarly
from sixfold.learners import tree_model
from sixfold.solvers.tree import Reason

X, Y = make_classification(400, 8, n_informative=5, n_classes=3, random_state=0)  # no two values are equal
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, 400)


def strangers():
    example = load_example("strangers")
    return pd.DataFrame(example.X, columns=example.columns), example.y


def same(model, other):
    """Compare two trees array by array."""
    for name in ("column", "threshold", "first", "code", "child", "unknown", "rows", "totals"):
        np.testing.assert_array_equal(getattr(model.tree_, name), getattr(other.tree_, name), name)


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


# -- smaller trees ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limit", [{"max_depth": 0}, {"max_depth": 3}, {"max_leaf_nodes": 6}, {"ccp_alpha": 0.03}], ids=str
)
def test_a_tree_is_cut_from_a_larger_one_as_it_would_grow(limit):
    cut = DecisionTreeClassifier().fit(X, Y).pruned(**limit)
    same(cut, DecisionTreeClassifier(**limit).fit(X, Y))
    assert cut.get_params() == DecisionTreeClassifier(**limit).get_params()
    cut.certificate_.verify(X, Y)


@pytest.mark.parametrize(
    "limit",
    [{"max_depth": np.int64(3)}, {"max_leaf_nodes": np.int32(6)}, {"ccp_alpha": np.float64(0.03)}],
    ids=str,
)
def test_limits_of_a_cut_are_plain_numbers(limit):
    [(name, value)] = limit.items()
    cut = DecisionTreeClassifier().fit(X, Y).pruned(**limit)
    assert type(cut.get_params()[name]) is type(value.item())
    assert f"{name}={value.item()!r}" in repr(cut)


def test_cutting_leaves_the_tree_itself_alone():
    model = DecisionTreeClassifier().fit(X, Y)
    before = model.get_n_leaves()
    assert model.pruned(max_depth=1).get_n_leaves() == 2
    assert model.get_n_leaves() == before


@pytest.mark.parametrize(
    ("grown", "asked"),
    [
        ({"ccp_alpha": 0.05}, {"ccp_alpha": 0.01}),
        ({"max_depth": 3}, {"max_depth": 4}),
        ({"max_leaf_nodes": 6}, {"max_leaf_nodes": 7}),
        ({"prune": "cost_complexity", "random_state": 0}, {"ccp_alpha": 0.0}),
    ],
    ids=str,
)
def test_a_larger_tree_is_not_inside_a_smaller_one(grown, asked):
    model = DecisionTreeClassifier(**grown).fit(X, Y)
    model.set_params(max_depth=None, ccp_alpha=0.0, max_leaf_nodes=None)  # changes no tree
    with pytest.raises(InputError, match=r"which was grown with .*\. A larger tree needs a new fit"):
        model.pruned(**asked)
    [name] = asked
    smaller = DecisionTreeClassifier().fit(X, Y).pruned(**{name: 0.06 if name == "ccp_alpha" else 3})
    with pytest.raises(InputError, match="A larger tree needs a new fit"):
        smaller.pruned(**asked)
    assert smaller.pruned(**{name: 0.06 if name == "ccp_alpha" else 3}).get_n_leaves() > 1


@pytest.mark.parametrize("prune", ["reduced_error", "cost_complexity"])
def test_pruning_helps_where_labels_are_noisy(prune):
    random = np.random.default_rng(0)
    table = random.normal(size=(1200, 6))
    labels = (table[:, 0] > 0) ^ (random.random(1200) < 0.25)
    train, test = slice(0, 600), slice(600, None)
    full = DecisionTreeClassifier().fit(table[train], labels[train])
    cut = DecisionTreeClassifier(prune=prune, random_state=0).fit(table[train], labels[train])
    assert cut.get_n_leaves() < full.get_n_leaves() / 4
    assert cut.score(table[test], labels[test]) > full.score(table[test], labels[test]) + 0.05
    assert Reason.PRUNED in cut.tree_.reason
    cut.certificate_.verify(table[train], labels[train])


def test_reduced_error_holds_rows_of_every_class_out():
    model = DecisionTreeClassifier(prune="reduced_error", validation_fraction=0.4, random_state=0).fit(X, Y)
    counts = np.bincount(Y)
    np.testing.assert_array_equal(model.tree_.totals[0], counts - np.round(0.4 * counts))
    again = DecisionTreeClassifier(prune="reduced_error", validation_fraction=0.4, random_state=0).fit(X, Y)
    same(model, again)
    other = DecisionTreeClassifier(prune="reduced_error", validation_fraction=0.4, random_state=1).fit(X, Y)
    assert other.tree_.node_count != model.tree_.node_count


def test_the_alpha_that_was_chosen_makes_the_tree():
    model = DecisionTreeClassifier(prune="cost_complexity", random_state=0).fit(X, Y)
    assert model.ccp_alpha_ > 0
    same(model, DecisionTreeClassifier(ccp_alpha=model.ccp_alpha_).fit(X, Y))
    given = DecisionTreeClassifier(prune="cost_complexity", ccp_alpha=0.05).fit(X, Y)
    assert given.ccp_alpha_ == 0.05
    same(given, DecisionTreeClassifier(ccp_alpha=0.05).fit(X, Y))


# -- history, limits -------------------------------------------------------------------------------------


def test_the_history_is_that_of_the_trees_cut_at_each_level():
    model = DecisionTreeClassifier().fit(X, Y)
    assert [record.iteration for record in model.history_] == list(range(model.get_depth() + 1))
    for record in model.history_:
        shallow = DecisionTreeClassifier(max_depth=record.iteration).fit(X, Y)
        assert record.objective == pytest.approx(-shallow.log_likelihood_, abs=1e-12)


def test_callbacks_hear_of_every_level_and_may_stop_there():
    heard = []
    model = DecisionTreeClassifier(callbacks=[heard.append]).fit(X, Y)
    assert heard == model.history_
    with pytest.warns(StoppedEarly, match="Stopped by a callback"):
        stopped = DecisionTreeClassifier(callbacks=[lambda record: record.iteration == 3]).fit(X, Y)
    np.testing.assert_array_equal(
        stopped.predict(X), DecisionTreeClassifier(max_depth=3).fit(X, Y).predict(X)
    )
    assert Reason.STOPPED in stopped.tree_.reason


class Late(Budget):
    """A budget whose time is over."""

    seconds_left = -1.0


class Interrupted(Budget):
    """A budget in which Ctrl-C is pressed at once."""

    def __enter__(self):
        super().__enter__()
        self.flag[0] = 1
        return self


def test_time_that_is_over_leaves_the_tree_grown_so_far(monkeypatch):
    monkeypatch.setattr(tree_model, "Budget", Late)
    with pytest.warns(
        StoppedEarly, match=r"Stopped by time_limit=1 s after 1 node; .* Let it grow on"
    ) as one:
        model = DecisionTreeClassifier(time_limit=1.0).fit(X, Y)
    assert one[0].filename == __file__
    assert model.tree_.reason.tolist() == [Reason.STOPPED]
    assert model.predict(X).shape == (400,)
    assert not model.certificate_.converged


def test_ctrl_c_leaves_a_model_that_answers(monkeypatch):
    monkeypatch.setattr(tree_model, "Budget", Interrupted)
    model = DecisionTreeClassifier()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.predict_proba(X).shape == (400, 3)
    model.certificate_.verify(X, Y)


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


# -- fits that fail --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "table", "labels", "weight"),
    [
        ({}, pd.DataFrame({"a": list("wxyx")}), [0, 1, None, 1], None),
        ({}, pd.DataFrame({"b": [1.0, 2.0], "c": [1.0, 2.0]}), [0, 1], [-1.0, 1.0]),
        ({}, np.array([[np.inf], [1.0]]), [0, 1], None),
        ({"callbacks": [lambda record: 1 / 0]}, pd.DataFrame({"b": list("vw")}), list("no"), None),
    ],
    ids=["labels", "weights", "infinity", "callback"],
)
def test_a_fit_that_fails_leaves_the_model_as_it_was(parameters, table, labels, weight):
    before, answers = pd.DataFrame({"a": list("xyxy")}), [0, 1, 0, 1]
    model = DecisionTreeClassifier(max_features=1.0).fit(before, answers).set_params(**parameters)
    state = dict(vars(model))
    with pytest.raises((InputError, ZeroDivisionError)):
        model.fit(table, labels, weight)
    assert vars(model) == state
    assert model.predict(before).tolist() == answers
    model.certificate_.verify(before, answers)


def test_a_model_whose_first_fit_fails_is_not_fitted():
    model = DecisionTreeClassifier()
    with pytest.raises(InputError):
        model.fit(pd.DataFrame({"a": list("xy")}), None)
    assert not any(name.endswith("_") for name in vars(model))


def test_a_tree_that_was_stopped_is_kept_although_its_warning_is_an_error():
    model = DecisionTreeClassifier(callbacks=[lambda record: record.iteration == 1])
    with pytest.raises(StoppedEarly):
        model.fit(X, Y)
    assert model.get_depth() == 1
