"""All k from one search: every answer is that of a separate fit, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone

from sixfold import KNeighborsClassifier, KNeighborsRegressor
from sixfold.selection.plans.base import Answered, Fold, Table
from sixfold.selection.plans.neighbors import NeighborsPlan
from sixfold.solvers.neighbors.votes import RunningVotes, count_votes, winners

KINDS = ("uniform", "distance", None)
NO_TABLE = Table(None, None, None, ())


def settings(ks, kinds=KINDS):
    return [{"n_neighbors": k, "weights": kind} for k in ks for kind in kinds]


def fold_of(X, y, held, weight=None):
    """Return a fold that holds out the first rows."""
    rows = np.arange(X.shape[0])
    weight = None if weight is None else weight[held:]
    return Fold(0, rows[held:], rows[:held], X[held:], y[held:], X[:held], y[:held], weight)


def require_separate(model, chosen, fold, names=("predict",)):
    """Compare what the plan finds with separate fits; return how many it found."""
    found = list(NeighborsPlan(model, chosen, NO_TABLE).fit(fold))
    assert [one.solved for one in found] == [1] + [0] * (len(found) - 1)
    for one in found:
        own = clone(model).set_params(**chosen[one.setting])
        own.fit(fold.X_train, fold.y_train, fold.sample_weight)
        assert isinstance(one.model, Answered)
        assert one.model._model is None
        for name in names:
            np.testing.assert_array_equal(
                getattr(one.model, name)(fold.X_test), getattr(own, name)(fold.X_test)
            )
            np.testing.assert_array_equal(
                getattr(one.model, name)(fold.X_train), getattr(own, name)(fold.X_train)
            )
        assert one.model._model is None, "an answer that was known took a fit"
        elsewhere = fold.X_train[:1]
        np.testing.assert_array_equal(one.model.predict(elsewhere), own.predict(elsewhere))
    return len(found)


@given(
    rows=st.integers(3, 40),
    columns=st.integers(1, 3),
    classes=st.integers(1, 4),
    weighted=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_classes(rows, columns, classes, weighted, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (rows, columns)).astype(float)  # equal distances, and distances of 0
    y = np.array(["a", "b", "c", "d"])[rng.integers(0, classes, rows)]
    held = max(1, rows // 4)
    weight = rng.choice([0.5, 1.0, 3.0], rows) if weighted else None
    if weighted and y[-1] in y[held:-1]:
        weight[-1] = 0.0  # no neighbour, but its class has others
    usable = rows - held if weight is None else np.count_nonzero(weight[held:])
    chosen = settings([1, 2, 3, usable, usable + 1])
    count = require_separate(
        KNeighborsClassifier(), chosen, fold_of(X, y, held, weight), ("predict", "predict_proba")
    )
    assert count == len(KINDS) * sum(k <= usable for k in (1, 2, 3, usable, usable + 1))


@pytest.mark.parametrize("make", [np.asarray, csr_array, np.float32])
def test_numbers(make):
    rng = np.random.default_rng(0)
    X, y = make(rng.normal(size=(80, 4)).round(1)), rng.normal(size=(80, 2))
    require_separate(KNeighborsRegressor(), settings([7, 1, 30, 7]), fold_of(X, y[:, 0], 20))
    require_separate(KNeighborsRegressor(metric="manhattan"), settings([2, 5]), fold_of(X, y, 20))


def test_several_columns_of_labels_class_weights_and_functions():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, (60, 2))

    def fading(distances):
        return 1.0 / (1.0 + distances - distances[:, :1] + distances.shape[1])

    chosen = settings([1, 4, 9], [*KINDS, fading])
    require_separate(KNeighborsClassifier(), chosen, fold_of(X, y, 15))
    model = KNeighborsClassifier(class_weight="balanced")
    require_separate(model, chosen, fold_of(X, y[:, 0], 15), ("predict", "predict_proba"))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_huge_and_tiny_weights(scale):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    fold = fold_of(X, y, 15, rng.random(60) * scale)
    require_separate(KNeighborsClassifier(), settings([1, 4, 9]), fold, ("predict", "predict_proba"))
    wide = fold_of(X, y, 15, 10.0 ** rng.integers(-150, 150, 60))
    with pytest.raises(ArithmeticError):  # then a search fits them one by one
        list(NeighborsPlan(KNeighborsClassifier(), settings([1, 4]), NO_TABLE).fit(wide))


def test_nothing_but_numbers_of_neighbours_is_answered():
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    chosen = [{"n_neighbors": k} for k in (0, -1, 2.5, "3", True, 3, np.int64(4))]
    found = NeighborsPlan(KNeighborsClassifier(), chosen, NO_TABLE).fit(fold_of(X, y, 5))
    assert [one.setting for one in found] == [5, 6]


@given(
    labels=st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=1, max_size=8),
    endless=st.integers(0, 6),
)
def test_running_votes(labels, endless):
    labels = np.array(labels)
    distances = np.tile([0.5, 0.5, 1.0, 2.0, 2.0, 3.0], (len(labels), 1))
    distances[:, 6 - endless :] = np.inf
    weights = np.array([[1.0, 1.0, 0.5, 0.5, 0.25, 0.25]]).repeat(len(labels), axis=0)
    running = RunningVotes(labels, distances, 4)
    for k in (1, 2, 3, 6, 4):  # the last one counts anew
        votes = count_votes(labels[:, :k], weights[:, :k], 4)
        expected = winners(votes, labels[:, :k], distances[:, :k])
        np.testing.assert_array_equal(running.winners(weights, k), expected)
