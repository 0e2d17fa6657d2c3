"""Faults put into growth and into its own bound are found by the checker, which shares no code with them."""

import dataclasses

import numpy as np
import pytest

from sixfold import DecisionTreeClassifier
from sixfold.errors import CertificateError
from sixfold.solvers.trees import fitted_tree, pruned_growth
from sixfold.solvers.trees.fitted_tree import Reason

RNG = np.random.default_rng(0)
X = RNG.integers(0, 6, size=(200, 4)).astype(float)
X[RNG.random(X.shape) < 0.1] = np.nan
y = ((np.nan_to_num(X[:, 0]) > 2) ^ (np.nan_to_num(X[:, 1]) > 3)).astype(int) + (RNG.random(200) < 0.2)
WEIGHT = RNG.choice([0.5, 1.0, 2.0], 200)
grow = pruned_growth.grow


def engine(change_rows=lambda rows: rows, change_rules=lambda rules: rules, change_tree=lambda tree: tree):
    """Return growth that sees other rows or rules than it should, or returns another tree."""

    def faulty(rows, rules, budget):
        return change_tree(grow(change_rows(rows), change_rules(rules), budget))

    return lambda monkeypatch: monkeypatch.setattr(pruned_growth, "grow", faulty)


def array(name, change):
    def changed(tree):
        values = getattr(tree, name).copy()
        change(values, tree)
        return dataclasses.replace(tree, **{name: values})

    return engine(change_tree=changed)


def first_inner(values, tree, change):
    values[np.flatnonzero(~tree.is_leaf)[-1]] += change


def without_first_column(rows):
    hidden = rows.X.copy()
    hidden[:, 0] = 0.0
    return dataclasses.replace(rows, X=hidden)


def smaller_bound(monkeypatch):
    whole = fitted_tree.lost_nats
    monkeypatch.setattr(fitted_tree, "lost_nats", lambda totals: 0.99 * whole(totals))


def swap_first_two(child, tree):
    child[:2] = child[1::-1]


def claim_final(reason, tree):
    reason[reason == Reason.LIMIT] = Reason.EXHAUSTED


FAULTS = {
    "the bound is too small": smaller_bound,
    "leaves that could be split are said to be final": array("reason", claim_final),
    "another criterion chooses": engine(
        change_rules=lambda rules: dataclasses.replace(rules, criterion="homogeneous")
    ),
    "a limit of leaves is ignored": engine(
        change_rules=lambda rules: dataclasses.replace(rules, min_samples_leaf=1)
    ),
    "a column is overlooked": engine(change_rows=without_first_column),
    "weights are overlooked": engine(change_rows=lambda rows: dataclasses.replace(rows, weight=None)),
    "labels are shifted by a row": engine(
        change_rows=lambda rows: dataclasses.replace(rows, labels=np.roll(rows.labels, 1))
    ),
    "a threshold is moved": array("threshold", lambda values, tree: first_inner(values, tree, 1.0)),
    "two branches are exchanged": array("child", swap_first_two),
    "unknown values go nowhere": array("unknown", lambda values, tree: values.fill(-1)),
    "a row is counted twice": array("rows", lambda values, tree: first_inner(values, tree, 1)),
    "totals are off by a ten-thousandth": array(
        "totals", lambda values, tree: first_inner(values, tree, 1e-4)
    ),
}


def fitted():
    return DecisionTreeClassifier(max_depth=3, min_samples_leaf=20).fit(X, y, WEIGHT)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault, monkeypatch):
    FAULTS[fault](monkeypatch)
    model = fitted()
    with pytest.raises(CertificateError):
        model.certificate_.verify(X, y, WEIGHT)


def test_without_a_fault_nothing_is_found():
    model = fitted()
    assert model.certificate_.verify(X, y, WEIGHT).gap == pytest.approx(model.certificate_.gap, abs=1e-12)


WORDS = {
    "the best of all": lambda words: "the best of all models",
    "no columns drawn": lambda words: words.replace("the columns drawn and ", ""),
    "all groupings": lambda words: words.replace(" and the groupings tried", ""),
    "no gap": lambda words: words.partition(";")[0] + "; no tree fits these rows better",
    "more words": lambda words: words + ", and of all forests",
}


@pytest.mark.parametrize("name", WORDS)
def test_words_that_claim_more_than_is_known_are_found(name):
    codes = np.column_stack([np.arange(400) % 9, np.arange(400) % 5])
    labels = np.random.default_rng(0).integers(0, 3, 400)
    parameters = {"categories": "binary", "categorical_features": [0, 1], "max_features": 1}
    model = DecisionTreeClassifier(**parameters, max_depth=2, random_state=0).fit(codes, labels)
    claimed = model.certificate_
    assert "among the columns drawn and the groupings tried; 2.8% of" in claimed.claim
    assert claimed.verify(codes, labels).claim == claimed.claim
    changed = WORDS[name](claimed.claim)
    assert changed != claimed.claim
    with pytest.raises(CertificateError, match="of this tree no more is known than 'every split is the best"):
        dataclasses.replace(claimed, claim=changed).verify(codes, labels)


def test_a_larger_scale_is_found():
    model = fitted()
    with pytest.raises(CertificateError, match="judges its gap by a scale of"):
        dataclasses.replace(model.certificate_, scale=1.001 * model.certificate_.scale).verify(X, y, WEIGHT)


def test_categories_of_rows_without_weight_may_have_made_the_claim_weaker():
    codes, labels = np.arange(400)[:, None] % 9, np.random.default_rng(0).integers(0, 3, 400)
    weight = 1.0 * (codes[:, 0] < 8)
    model = DecisionTreeClassifier(categories="binary", categorical_features=[0]).fit(codes, labels, weight)
    assert "among the groupings tried" in model.certificate_.claim
    assert model.certificate_.verify(codes, labels, weight).claim == model.certificate_.claim
