"""The judge of trees on splits that are known to be best or not, and the peers on tiny data."""

import numpy as np
import pytest

from benchmarks.runner import MissingDataError
from benchmarks.trees.cases import CASES, already_grown, grow, lightgbm_splits, predict, sklearn, splits_of
from benchmarks.trees.tasks import (
    Splits,
    TreeTask,
    fashion,
    informative,
    iris,
    parents,
    rows_reaching,
    rows_to_predict,
    share_misrouted,
    share_worse,
    weighted,
)

# Column 0 is noise, column 1 tells the classes apart above 2, column 2 nearly.
X = np.array([[0, 1, 1], [1, 2, 4], [0, 3, 3], [1, 4, 4], [0, 5, 5]], dtype=float)
TASK = TreeTask(X, np.array([0, 0, 1, 1, 1]))


def split_once(column, threshold):
    return Splits(
        np.array([column, -1, -1]),
        np.array([threshold, np.nan, np.nan]),
        np.array([1, -1, -1]),
        np.array([2, -1, -1]),
    )


@pytest.mark.parametrize(
    ("column", "threshold", "expected"),
    [(1, 2.5, 0.0), (1, 2.0, 0.0), (1, 3.0, 1.0), (0, 0.5, 1.0), (2, 2.0, 1.0), (1, 9.0, 1.0)],
)
def test_a_split_is_worse_where_another_column_or_threshold_is_better(column, threshold, expected):
    assert share_worse(TASK, split_once(column, threshold)) == expected


def test_weights_decide_which_split_is_best():
    labels = np.array([0, 1, 0])
    task = TreeTask(np.array([[1.0], [2.0], [3.0]]), labels)
    low, high = split_once(0, 1.5), split_once(0, 2.5)
    for weight, worse in (([9.0, 1.0, 1.0], (0, 1)), ([1.0, 1.0, 9.0], (1, 0))):
        given = task._replace(weight=np.array(weight))
        # By hand: alone, the heavy row leaves 2/11 of 1 bit; with another one, 10/11 of 0.469 bits.
        assert (share_worse(given, low), share_worse(given, high)) == worse


def test_a_tree_without_splits_is_not_wrong():
    leaf = Splits(np.array([-1]), np.array([np.nan]), np.array([-1]), np.array([-1]))
    assert share_worse(TASK, leaf) == 0.0


def test_rows_are_found_by_the_path_to_their_node():
    #      x1 <= 3
    #     /       \
    #   leaf     x0 <= 0
    #           /       \
    #         leaf      leaf
    splits = Splits(
        np.array([1, -1, 0, -1, -1]),
        np.array([3.0, np.nan, 0.0, np.nan, np.nan]),
        np.array([1, -1, 3, -1, -1]),
        np.array([2, -1, 4, -1, -1]),
    )
    above = parents(splits)
    assert above.tolist() == [-1, 0, 0, 2, 2]
    found = [rows_reaching(splits, above, node, X).tolist() for node in range(5)]
    assert found == [[0, 1, 2, 3, 4], [0, 1, 2], [3, 4], [4], [3]]
    assert share_misrouted(TASK, splits, np.array([1, 1, 1, 4, 3])) == 0.0
    assert share_misrouted(TASK, splits, np.array([1, 1, 1, 3, 3])) == 0.2


def test_the_tree_of_scikit_learn_is_found_to_be_exhaustive():
    task = informative(0, 0, 0, 3, 4, quick=True)
    assert share_worse(task, splits_of(grow(sklearn(task), task))) == 0.0


def test_the_tree_of_lightgbm_is_read_as_it_is():
    lightgbm = pytest.importorskip("lightgbm")
    task = TreeTask(np.repeat(X, 40, axis=0), np.repeat(TASK.y, 40), 1)
    model = lightgbm.LGBMClassifier(n_estimators=1, max_depth=1, min_child_samples=1, verbose=-1, n_jobs=1)
    splits = lightgbm_splits(model.fit(task.X, task.y))
    assert splits.column.tolist() == [1, -1, -1]
    assert 2.0 <= splits.threshold[0] < 3.0
    assert (splits.left[0], splits.right[0]) == (1, 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: informative(0, 0, 0, 2, None, quick=True),
        lambda: weighted(0, 0, 0, 3, quick=True),
        lambda: iris(quick=True),
        lambda: rows_to_predict(quick=True),
    ],
)
def test_quick_tasks_are_small(make):
    task = make()
    assert len(task.X) == len(task.y) <= 600
    assert task.weight is None or len(task.weight) == len(task.X)


def test_images_are_bytes_with_labels_where_they_are_there():
    try:
        task = fashion(3, quick=True)
    except MissingDataError:
        pytest.skip("Fashion-MNIST is not on this machine")
    assert task.X.dtype == np.uint8
    assert sorted(set(task.y.tolist())) == list(range(10))


def test_predictions_come_from_a_tree_grown_on_a_part():
    task = rows_to_predict(quick=True)
    model = already_grown(sklearn, task)
    found = predict(model, task)
    assert model.tree_.n_node_samples[0] == 100
    assert found.values.shape == task.y.shape


def test_every_case_is_named_after_trees():
    assert all(case.name.startswith("tree_") for case in CASES)
