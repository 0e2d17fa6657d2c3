"""All smaller trees of one growth answer as trees that were fitted for themselves."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier as PeerTree

from sixfold import DecisionTreeClassifier
from sixfold.data.examples import load_example
from sixfold.errors import InputError
from sixfold.learners.trees import decision_tree

X, Y = make_classification(300, 6, n_informative=4, n_classes=3, flip_y=0.3, random_state=0)
OTHERS = np.random.default_rng(1).normal(size=(200, 6))
WEIGHT = np.random.default_rng(2).uniform(0.5, 2.0, 300)


def categories():
    example = load_example("strangers")
    return pd.DataFrame(example.X, columns=example.columns), example.y


def models():
    return [
        {},
        {"criterion": "gini"},
        {"criterion": "gain_ratio", "base": "e"},
        {"base": "e", "min_samples_leaf": 3},
        {"max_features": 2, "random_state": 0},
        {"class_weight": "balanced"},
    ]


def is_fitted_alone(parameters, name, values, staged, shares):
    for value, labels, proba in zip(values, staged, shares, strict=True):
        alone = DecisionTreeClassifier(**parameters, **{name: value}).fit(X, Y, WEIGHT)
        np.testing.assert_array_equal(labels, alone.predict(OTHERS))
        np.testing.assert_array_equal(proba, alone.predict_proba(OTHERS))
        yield alone


@pytest.mark.parametrize("parameters", models(), ids=str)
def test_all_depths_from_one_growth(parameters):
    model = DecisionTreeClassifier(**parameters).fit(X, Y, WEIGHT)
    path = model.depth_path_
    assert path.max_depths.tolist() == list(range(model.get_depth() + 1))
    staged, shares = model.staged_predict(OTHERS), model.staged_predict_proba(OTHERS)
    each = list(is_fitted_alone(parameters, "max_depth", path.max_depths.tolist(), staged, shares))
    assert path.leaves.tolist() == [alone.get_n_leaves() for alone in each]
    np.testing.assert_allclose(path.objectives, [-alone.log_likelihood_ for alone in each], atol=1e-12)


@pytest.mark.parametrize("parameters", models(), ids=str)
def test_all_alphas_from_one_growth(parameters):
    model = DecisionTreeClassifier(**parameters).fit(X, Y, WEIGHT)
    path = model.ccp_path_
    assert path.ccp_alphas[0] == 0.0
    assert (np.diff(path.ccp_alphas) > 0).all()
    assert path.leaves[-1] == 1
    staged = model.staged_predict(OTHERS, by="ccp_alpha")
    shares = model.staged_predict_proba(OTHERS, by="ccp_alpha")
    each = list(is_fitted_alone(parameters, "ccp_alpha", path.ccp_alphas, staged, shares))
    assert path.leaves.tolist() == [alone.get_n_leaves() for alone in each]
    risks = [
        (alone.tree_.impurity * alone.tree_.weight)[alone.tree_.is_leaf].sum() / alone.tree_.weight[0]
        for alone in each
    ]
    np.testing.assert_allclose(path.impurities, risks, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "values"), [("max_depth", [0, 2, 2, 50]), ("ccp_alpha", [0.0, 1e-4, 0.01, 0.02, 9.0])]
)
def test_chosen_sizes_from_one_growth(name, values):
    model = DecisionTreeClassifier().fit(X, Y, WEIGHT)
    staged = model.staged_predict(OTHERS, by=name, values=values)
    shares = model.staged_predict_proba(OTHERS, by=name, values=np.array(values))
    assert len(list(is_fitted_alone({}, name, values, staged, shares))) == len(values)


def test_also_where_a_way_ends_at_what_a_node_has_not_met():
    table, labels = categories()
    stranger = table.assign(shadow="faint")
    for depth, staged in enumerate(DecisionTreeClassifier().fit(table, labels).staged_predict(stranger)):
        alone = DecisionTreeClassifier(max_depth=depth).fit(table, labels)
        np.testing.assert_array_equal(staged, alone.predict(stranger))


def test_a_pruned_tree_starts_where_it_was_pruned():
    model = DecisionTreeClassifier(ccp_alpha=0.01).fit(X, Y)
    whole = DecisionTreeClassifier().fit(X, Y).ccp_path_
    path = model.ccp_path_
    assert path.ccp_alphas[0] == 0.01
    assert path.leaves[0] == model.get_n_leaves()
    np.testing.assert_allclose(path.ccp_alphas[1:], whole.ccp_alphas[whole.ccp_alphas > 0.01], rtol=1e-9)
    for alpha, staged in zip(path.ccp_alphas, model.staged_predict(X, by="ccp_alpha"), strict=True):
        np.testing.assert_array_equal(staged, DecisionTreeClassifier(ccp_alpha=alpha).fit(X, Y).predict(X))


@pytest.mark.parametrize(
    ("parameters", "given", "sentence"),
    [
        ({}, {"by": "depth"}, "by='depth' is not an option"),
        ({}, {"values": [1.5]}, "max_depth=1.5 is of type float"),
        ({}, {"by": "ccp_alpha", "values": [-1]}, "ccp_alpha=-1 is out of range"),
        ({}, {"values": [3, 1]}, r"The values of max_depth are not in ascending order\. Sort them\."),
        ({"max_depth": 2}, {"values": [3]}, "A larger tree needs a new fit"),
        ({"ccp_alpha": 0.1}, {"by": "ccp_alpha", "values": [0.0]}, "A larger tree needs a new fit"),
    ],
)
def test_sizes_that_make_no_sense_are_refused_at_once(parameters, given, sentence):
    model = DecisionTreeClassifier(**parameters).fit(X, Y)
    with pytest.raises(InputError, match=sentence):
        model.staged_predict(X, **given)


def test_one_growth_is_enough(monkeypatch):
    model = DecisionTreeClassifier().fit(X, Y)
    monkeypatch.setattr(decision_tree, "grow_and_prune", None)
    assert len(list(model.staged_predict(OTHERS, by="ccp_alpha"))) == model.ccp_path_.leaves.size


def test_scikit_learns_path_repeats_an_alpha_for_each_node_that_it_makes_a_leaf():
    table, labels = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), [0, 1, 2, 3]
    theirs = PeerTree(criterion="entropy").cost_complexity_pruning_path(table, labels)
    model = DecisionTreeClassifier()
    every, once = model.cost_complexity_pruning_path(table, labels), model.fit(table, labels).ccp_path_
    np.testing.assert_allclose(theirs.ccp_alphas, [0.0, 0.5, 0.5, 1.0])
    np.testing.assert_allclose(every.ccp_alphas, theirs.ccp_alphas)
    np.testing.assert_allclose(every.impurities, theirs.impurities)
    assert once.ccp_alphas.tolist() == sorted(set(every.ccp_alphas.tolist()))
    assert len(once.ccp_alphas) < len(every.ccp_alphas)
    last = np.append(np.diff(every.ccp_alphas) > 0, True)
    np.testing.assert_array_equal(once.impurities, every.impurities[last])


def test_scikit_learns_path_is_not_traced_timed_or_heard_of():
    heard = []
    model = DecisionTreeClassifier(trace=True, time_limit=1e-9, callbacks=[heard.append], base="e")
    path = model.cost_complexity_pruning_path(X, Y)
    assert not heard
    fitted = DecisionTreeClassifier(base="e").fit(X, Y)
    np.testing.assert_array_equal(np.unique(path.ccp_alphas), fitted.ccp_path_.ccp_alphas)


def test_the_certificate_of_a_pruned_tree_has_its_parameters():
    model = DecisionTreeClassifier().fit(X, Y)
    smaller = model.pruned(max_depth=np.int64(2), ccp_alpha=0.01)
    found = smaller.certificate_.subject
    assert (found.parameters["max_depth"], found.parameters["ccp_alpha"]) == (2, 0.01)
    assert found.fingerprint == model.certificate_.subject.fingerprint
    assert model.certificate_.subject.parameters["max_depth"] is None
    smaller.certificate_.verify(X, Y)
