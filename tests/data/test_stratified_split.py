"""Held-out rows: the same share of every class, by the seed, and never all of a class."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixfold.data.stratified_split import held_out


def class_by_class(labels, counts, fraction, seed):
    order = np.random.default_rng(seed).permutation(np.flatnonzero(counts))
    chosen = np.zeros(labels.size, dtype=bool)
    for label in np.unique(labels[order]):
        rows = order[labels[order] == label]
        chosen[rows[: min(round(fraction * rows.size), rows.size - 1)]] = True
    return chosen


@given(
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=60),
    fraction=st.floats(0.01, 0.99),
    seed=st.integers(0, 99),
)
def test_the_share_of_each_class(labels, fraction, seed):
    labels = np.array(labels)
    counts = np.random.default_rng(seed + 1).random(labels.size) < 0.8
    chosen = held_out(labels, counts, fraction, seed)
    np.testing.assert_array_equal(chosen, class_by_class(labels, counts, fraction, seed))
    assert not (chosen & ~counts).any()


@pytest.mark.parametrize("fraction", [0.1, 0.5])
def test_many_classes_are_one_sort(monkeypatch, fraction):
    labels = np.arange(9000) % 3000
    sorts = []
    argsort = np.argsort
    monkeypatch.setattr(np, "argsort", lambda *given, **named: sorts.append(1) or argsort(*given, **named))
    chosen = held_out(labels, np.ones(9000, dtype=bool), fraction, 0)
    assert len(sorts) == 1
    assert chosen.sum() == 3000 * round(fraction * 3)
