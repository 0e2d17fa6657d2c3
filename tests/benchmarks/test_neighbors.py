"""The judge of neighbours on answers that are known to be right or wrong, and the peers on tiny data."""

import gzip
import math

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import datasets
from benchmarks.neighbors import tasks
from benchmarks.neighbors.cases import (
    Product,
    build_and_query,
    fastest_tree,
    nearest,
    prebuilt,
    query,
    tree_settings,
)
from benchmarks.neighbors.tasks import (
    SearchTask,
    fashion,
    fashion_many_queries,
    points,
    share_wrong,
    text,
    uniform,
)
from benchmarks.runner import MissingDataError

LINE = np.array([[0.0], [1.0], [3.0], [3.0], [7.0]])


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    monkeypatch.setattr(tasks, "_SMALLEST", {})


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[1, 0], [2, 3]], 0.0),
        ([[0, 1], [3, 2]], 0.0),  # in any order
        ([[1, 0], [2, 4]], 0.5),
        ([[1, 2], [2, 1]], 1.0),
        ([[1, 1], [2, 2]], 1.0),  # the same row twice
    ],
)
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_the_share_of_queries_with_a_neighbour_too_far(metric, rows, expected):
    task = SearchTask("line", LINE, np.array([[0.9], [3.5]]), k=2, metric=metric)
    assert share_wrong(task, np.array(rows)) == expected


def test_a_row_at_the_same_distance_is_as_good():
    task = SearchTask("line", LINE, np.array([[2.0]]), k=1)
    assert [share_wrong(task, np.array([[row]])) for row in range(5)] == [1.0, 0.0, 0.0, 0.0, 1.0]


def test_cosine_is_judged_by_direction():
    X = sp.csr_array(np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]))
    task = SearchTask("directions", X, sp.csr_array(np.array([[3.0, 3.9]])), k=1, metric="cosine")
    assert [share_wrong(task, np.array([[row]])) for row in range(3)] == [1.0, 0.0, 1.0]


def test_whole_numbers_near_each_other_are_told_apart():
    # Squares of 1e8 and 1e8 + 1: their products lose the difference in single precision.
    task = SearchTask("far", np.array([[1e8 + 1.0], [1e8]]), np.array([[0.0]]), k=1)
    assert share_wrong(task, np.array([[1]])) == 0.0
    assert share_wrong(task, np.array([[0]])) == 1.0


def test_who_finds_no_neighbours_is_not_accurate():
    task = uniform(quick=True)
    assert Product().fit(task.X, task.y).kneighbors(task.Q) == (None, None)
    assert math.isnan(share_wrong(task, None))


@pytest.mark.parametrize(
    ("make", "prepare"),
    [
        (uniform, lambda task: nearest("sklearn", "brute", task)),
        (points, lambda task: nearest("sklearn", "kd_tree", task)),
        (points, fastest_tree),
        (text, lambda task: nearest("sklearn", "brute", task)),
    ],
)
def test_peers_find_the_neighbours(make, prepare):
    task = make(quick=True)
    assert share_wrong(task, build_and_query(prepare(task), task).values) == 0.0
    assert share_wrong(task, query(prebuilt(prepare, task), task).values) == 0.0


def test_settings_of_the_best_tree_are_said():
    task = points(quick=True)
    assert "balanced_tree=" in tree_settings(build_and_query(fastest_tree(task), task))


def test_images_are_read_from_their_files(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "FASHION", tmp_path)
    pixels = np.random.default_rng(0).integers(0, 256, (300, 784), dtype=np.uint8)
    for name in ("train", "t10k"):
        with gzip.open(tmp_path / f"{name}-images-idx3-ubyte.gz", "wb") as file:
            file.write(bytes(16) + pixels.tobytes())
    task = fashion(np.uint8, 10_000, "manhattan", quick=True)
    np.testing.assert_array_equal(task.X, pixels)
    np.testing.assert_array_equal(task.Q, pixels[:20])
    assert nearest("sklearn", "brute", task).task.X.dtype == np.float32
    assert fashion_many_queries(quick=True).Q.shape == (100, 784)


def test_without_images_the_case_has_no_data(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "FASHION", tmp_path)
    with pytest.raises(MissingDataError, match="dataset-fashion-mnist"):
        fashion(np.float32, 10, "euclidean", quick=True)
