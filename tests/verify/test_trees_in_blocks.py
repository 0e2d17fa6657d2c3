"""The check of a tree goes through the rows some at a time, and says how many splits it has searched for."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold import DecisionTreeClassifier
from sixfold.errors import CertificateError
from sixfold.verify import tree_arrays, trees
from sixfold.verify.tree_arrays import GivenTree, Reached, route


def grown(seed, n, **parameters):
    generator = np.random.default_rng(seed)
    X = np.round(generator.standard_normal((n, 4)), 1)
    X[generator.random(X.shape) < 0.05] = np.nan
    y = generator.integers(0, 3, n)
    return X, y, DecisionTreeClassifier(**parameters).fit(X, y)


@settings(max_examples=50)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 60), step=st.integers(1, 70))
def test_rows_reach_the_nodes_that_they_reach_all_at_once(seed, n, step):
    X, y, model = grown(seed, n)
    claim = GivenTree(model.tree_, X, np.zeros(4, dtype=np.uint8), y, np.ones(n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_arrays, "ROW_NUMBERS", 4 * step)
        reached = Reached(claim)
    expected = list(route(claim))
    assert len(reached) == len(expected)
    for node, rows in enumerate(expected):
        np.testing.assert_array_equal(reached[node], rows)


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_a_tree_is_confirmed_by_blocks_of_rows(monkeypatch, step):
    X, y, model = grown(0, 500, max_depth=5)
    weight = np.random.default_rng(1).integers(0, 3, 500).astype(float)
    weighted = DecisionTreeClassifier(max_depth=5).fit(X, y, weight)
    monkeypatch.setattr(tree_arrays, "ROW_NUMBERS", 4 * step)
    monkeypatch.setattr(trees, "GATHERED_NUMBERS", 100)  # of large nodes columns are read one by one
    assert not model.certificate_.verify(X, y).notes
    weighted.certificate_.verify(X, y, weight)
    other = y.copy()
    other[3] = (y[3] + 1) % 3
    with pytest.raises(CertificateError):
        model.certificate_.verify(X, other)


def test_of_a_large_table_some_splits_are_searched_for_again(monkeypatch):
    X, y, model = grown(0, 500, max_depth=5)
    monkeypatch.setattr(trees, "CHECKED_NUMBERS", 3000)
    (note,) = model.certificate_.verify(X, y).notes
    few, of = (int(word) for word in note.split() if word.isdigit())
    assert 0 < few < of == int((model.tree_.column >= 0).sum())


def test_a_worse_split_is_found_among_those_that_are_searched_for(monkeypatch):
    X, y, model = grown(0, 500, max_depth=1)
    generator = np.random.default_rng(0)
    column = next(j for j in generator.permutation(4).tolist() if j != model.tree_.column[0])
    worse = DecisionTreeClassifier(max_depth=1).fit(X[:, [column]], y)
    tree = replace(worse.tree_, column=np.where(worse.tree_.column == 0, column, -1).astype(np.int32))
    model.tree_ = replace(tree, kinds=model.tree_.kinds)
    monkeypatch.setattr(trees, "CHECKED_NUMBERS", 0)  # one is looked at in any case
    with pytest.raises(CertificateError, match="split of node 0"):
        model.certificate_.verify(X, y)


def test_a_tree_of_a_file_is_confirmed(monkeypatch, tmp_path):
    X, y, model = grown(0, 500, max_depth=5)
    rows = np.memmap(tmp_path / "rows", dtype=X.dtype, mode="w+", shape=X.shape)
    rows[:] = X
    monkeypatch.setattr(tree_arrays, "ROW_NUMBERS", 4 * 7)
    for most in (100, 1 << 24):
        monkeypatch.setattr(trees, "GATHERED_NUMBERS", most)
        assert not model.certificate_.verify(rows.view(np.ndarray), y).notes
