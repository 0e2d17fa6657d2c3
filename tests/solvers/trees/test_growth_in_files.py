"""A tree that grows from rows in a file, with all that it keeps of them in files, is the tree of the rows."""

import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold import DecisionTreeClassifier
from sixfold.solvers import memory
from sixfold.solvers.memory import bounded_memory
from sixfold.solvers.trees import growth
from sixfold.solvers.trees.growth import column_by_column

ARRAYS = ("column", "threshold", "first", "code", "child", "unknown", "reason", "rows", "totals")


def mapped(X):
    """Return the same rows, mapped from a file."""
    with tempfile.NamedTemporaryFile() as file:
        rows = np.memmap(file.name, dtype=X.dtype, mode="w+", shape=X.shape)
    rows[:] = X
    return rows.view(np.ndarray)


def same_trees(model, other):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(model.tree_, name), getattr(other.tree_, name), err_msg=name)


def grown_in_files(X, y, weight, least, **parameters):
    rows = mapped(X)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(memory, "LARGE", least)
        patch.setattr(growth, "TURNED_ROWS", 37)
        with bounded_memory(1e6, folder, rows):  # less than Python holds: pages are let go of all the time
            assert column_by_column(rows).flags.f_contiguous
            return DecisionTreeClassifier(**parameters).fit(rows, y, weight)


@settings(max_examples=40)
@given(data=st.data(), dtype=st.sampled_from([np.float64, np.float32]))
def test_trees_of_files_are_those_of_arrays(data, dtype):
    n, columns = data.draw(st.integers(40, 3000)), data.draw(st.integers(1, 6))
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X = generator.standard_normal((n, columns)).astype(dtype)
    if data.draw(st.booleans()):
        X = np.round(X)
    if data.draw(st.booleans()):
        X[generator.random(X.shape) < 0.1] = np.nan
    X[n // 2 :] = X[: n - n // 2]  # duplicates
    y = generator.integers(0, data.draw(st.integers(1, 4)), n)
    weight = generator.integers(0, 4, n).astype(float) if data.draw(st.booleans()) else None
    if weight is not None:
        weight[0] = 1.0
    parameters = {
        "max_depth": data.draw(st.sampled_from([3, 8, None])),
        "criterion": data.draw(st.sampled_from(["entropy", "gini", "gain_ratio"])),
    }
    other = grown_in_files(X, y, weight, 1 << 7, **parameters)
    same_trees(DecisionTreeClassifier(**parameters).fit(X, y, weight), other)


def test_a_large_tree_of_a_file_is_that_of_the_array():
    generator = np.random.default_rng(0)
    X = generator.standard_normal((70_000, 12))
    y = (X[:, 0] * X[:, 1] + 0.5 * generator.standard_normal(70_000) > 0).astype(int)
    for weight in (None, generator.random(70_000) + 0.1):
        other = grown_in_files(X, y, weight, 1 << 14, max_depth=8)
        same_trees(DecisionTreeClassifier(max_depth=8).fit(X, y, weight), other)


def test_rows_in_memory_stay_as_they_are():
    X = np.arange(12.0).reshape(4, 3)
    assert column_by_column(X) is X
    rows = mapped(X)  # where nothing goes to files, a copy would be in memory
    assert column_by_column(rows) is rows
