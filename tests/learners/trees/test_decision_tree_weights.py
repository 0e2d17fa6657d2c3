"""What rows count in a tree: the scale of weights is no matter, and those held out are no part."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from sixfold import DecisionTreeClassifier
from sixfold.errors import InputError
from sixfold.solvers.trees import pruned_growth
from sixfold.solvers.trees.growth import CRITERIA

X, y = load_iris(return_X_y=True)


@pytest.mark.parametrize("exponent", [-1060, -500, 500, 1000])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_scale_of_weights_does_not_matter(criterion, exponent):
    weight = np.random.default_rng(0).integers(0, 5, y.size).astype(float)
    scaled = np.ldexp(weight, exponent)
    limits = {"criterion": criterion, "min_weight_fraction_leaf": 0.02, "min_impurity_decrease": 0.001}
    expected = DecisionTreeClassifier(**limits).fit(X, y, weight)
    model = DecisionTreeClassifier(**limits).fit(X, y, scaled)
    assert expected.tree_.node_count > 5
    for name in ("column", "first", "child", "reason", "rows"):
        assert np.array_equal(getattr(model.tree_, name), getattr(expected.tree_, name))
    assert np.array_equal(model.tree_.totals, np.ldexp(expected.tree_.totals, exponent))
    assert np.array_equal(model.predict_proba(X), expected.predict_proba(X))
    assert model.certificate_.objective == pytest.approx(expected.certificate_.objective, abs=1e-14)
    model.certificate_.verify(X, y, scaled)


def test_weights_that_add_up_to_infinity_are_refused():
    for sample_weight, class_weight in ((np.full(y.size, 1e308), None), (np.full(y.size, 1e200), {0: 1e200})):
        with pytest.raises(InputError, match="add up to infinity"):
            DecisionTreeClassifier(class_weight=class_weight).fit(X, y, sample_weight)


@pytest.mark.parametrize("prune", ["reduced_error", "cost_complexity"])
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_are_held_out_without_weights_for_all(monkeypatch, prune, sparse):
    seen = []
    whole = pruned_growth.grow

    def grow(rows, rules, budget):
        seen.append((rules, rows.weight, rows.rows))
        return whole(rows, rules, budget)

    monkeypatch.setattr(pruned_growth, "grow", grow)
    table = sp.csr_array(X) if sparse else X
    model = DecisionTreeClassifier(prune=prune, min_samples_leaf=0.1, min_samples_split=0.3, random_state=0)
    model.fit(table, y)
    rules, weight, rows = seen[0]
    assert weight is None
    assert rows.size == 150 - 36
    # ceil(0.1 * 114), ceil(0.3 * 114); of all rows 15 and 45
    assert (rules.min_samples_leaf, rules.min_samples_split) == (12, 35)
    if prune == "cost_complexity":
        rules, weight, rows = seen[1]
        assert (weight, rows) == (None, None)
        assert (rules.min_samples_leaf, rules.min_samples_split) == (15, 45)
    model.certificate_.verify(table, y)


def test_rows_without_weight_are_no_part_of_a_share():
    weight = (np.arange(y.size) % 3 > 0).astype(float)
    model = DecisionTreeClassifier(min_samples_leaf=0.1).fit(X, y, weight)
    expected = DecisionTreeClassifier(min_samples_leaf=0.1).fit(X[weight > 0], y[weight > 0])
    assert model.export_text() == expected.export_text()
