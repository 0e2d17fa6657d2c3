"""Tables as trees read them: what is kept, what becomes codes, what is unknown."""

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from sixfold.data.tree_table import check_tree_table
from sixfold.errors import InputError


class Learner:
    """What remembers the columns."""


def read(X, **options):
    return check_tree_table(Learner(), X, True, **options)


X = np.array([[1.0, 2.0], [np.nan, 5.0], [3.0, 5.0]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_floats_are_not_copied_and_gaps_stay(dtype, order):
    given = X.astype(dtype, order=order)
    table, kinds = read(given)
    assert table is given
    assert kinds is None


def test_bytes_are_not_copied():
    given = np.arange(6, dtype=np.uint8).reshape(3, 2)
    assert read(given)[0] is given


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float16])
def test_other_numbers_become_float64(dtype):
    given = np.array([[0, 1], [1, 1]], dtype=dtype)
    table, kinds = read(given)
    assert table.dtype == np.float64
    assert kinds is None
    np.testing.assert_array_equal(table, [[0, 1], [1, 1]])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_frames_of_numbers_keep_their_type(make, dtype):
    table, kinds = read(make({"a": np.array([1, 2], dtype=dtype), "b": np.array([3, 4], dtype=dtype)}))
    assert table.dtype == dtype
    assert kinds is None


COLOURS = ["red", "blue", "?", None, "red"]
SIZES = [1.5, None, 2.0, 4.0, 1.0]
ROUND = [True, False, None, True, True]
CODES = [[1, 1.5, 1], [0, np.nan, 0], [np.nan, 2.0, np.nan], [np.nan, 4.0, 1], [1, 1.0, 1]]
COLUMNS = {"colour": COLOURS, "size": SIZES, "round": ROUND}


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        lambda columns: pd.DataFrame(columns).astype({"colour": "string", "round": "boolean"}),
        lambda columns: pd.DataFrame(columns).astype({"colour": "category"}),
        lambda columns: pd.DataFrame(columns).convert_dtypes(),
        pl.DataFrame,
        lambda columns: pl.DataFrame(columns).lazy(),
        lambda columns: pl.DataFrame(columns).cast({"colour": pl.Categorical}),
        lambda columns: pl.DataFrame(columns).cast({"colour": pl.Enum(["?", "blue", "red"])}),
        pa.table,
        lambda columns: [list(row) for row in zip(*columns.values(), strict=True)],
        lambda columns: np.array(list(zip(*columns.values(), strict=True)), dtype=object),
    ],
    ids=[
        "pandas",
        "strings",
        "category",
        "nullable",
        "polars",
        "lazy",
        "categorical",
        "enum",
        "arrow",
        "lists",
        "objects",
    ],
)
def test_text_booleans_and_categorical_types_become_codes(make):
    table, kinds = read(make(COLUMNS))
    np.testing.assert_array_equal(table, CODES)
    assert kinds.categories == (("blue", "red"), None, (False, True))


def test_every_way_to_write_nothing_is_unknown():
    column = [None, float("nan"), np.nan, pd.NA, pd.NaT, "?", "a"]
    table, kinds = read(np.array([[value] for value in column], dtype=object))
    np.testing.assert_array_equal(table[:, 0], [np.nan] * 6 + [0.0])
    assert kinds.categories == (("a",),)


def test_a_question_mark_among_numbers_is_unknown_too():
    table, kinds = read([[1.0, "a"], ["?", "b"], [3, "a"]])
    np.testing.assert_array_equal(table, [[1.0, 0.0], [np.nan, 1.0], [3.0, 0.0]])
    assert kinds.categories == (None, ("a", "b"))


def test_decimals_are_numbers():
    table, kinds = read(pl.DataFrame({"a": [decimal.Decimal("1.5"), decimal.Decimal("2.25")]}))
    np.testing.assert_array_equal(table, [[1.5], [2.25]])
    assert kinds is None


@pytest.mark.parametrize("named", [["b"], [1], [-1], [False, True], np.array([False, True]), np.array([1])])
def test_numbers_are_categories_where_the_user_says_so(named):
    given = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [30.0, 10.0, np.nan]})
    table, kinds = read(given, categorical=named)
    np.testing.assert_array_equal(table, [[1, 1], [2, 0], [3, np.nan]])
    assert kinds.categories == (None, (10.0, 30.0))


@pytest.mark.parametrize("named", [None, "from_dtype"])
def test_by_their_type_numbers_are_numbers(named):
    assert read(X, categorical=named)[1] is None


def test_later_tables_are_read_with_the_categories_of_the_first():
    learner = Learner()
    _, kinds = check_tree_table(learner, pd.DataFrame(COLUMNS), True)
    later = pd.DataFrame({"colour": ["green", "red"], "size": [None, 7], "round": [False, None]})
    table, _ = check_tree_table(learner, later, False, kinds)
    np.testing.assert_array_equal(table, [[-1, np.nan, 0], [1, 7, np.nan]])


def test_booleans_may_come_as_numbers_later():
    learner = Learner()
    _, kinds = check_tree_table(learner, pd.DataFrame({"a": [True, False], "b": ["x", "y"]}), True)
    table, _ = check_tree_table(learner, pd.DataFrame({"a": [1, 0, 2], "b": ["y"] * 3}), False, kinds)
    np.testing.assert_array_equal(table, [[1, 1], [0, 1], [-1, 1]])


@pytest.mark.parametrize("kind", [np.asarray, np.float32, sp.csr_array, pd.DataFrame])
def test_infinity_is_named_and_gaps_are_not(kind):
    given = np.array([[np.nan, 1.0], [2.0, -np.inf]])
    with pytest.raises(InputError, match=r"infinity .* in row 1 of column '(x1|1)' .*Put NaN where"):
        read(kind(given))
    read(kind(given[:1]))


def test_sparse_tables_have_no_categories():
    with pytest.raises(InputError, match="X is sparse, but categories are not"):
        read(sp.csr_array(np.eye(3)), categorical=[0])


@pytest.mark.parametrize("value", [["a"], {"a": 1}])
def test_a_cell_that_is_a_container_is_refused_with_its_column(value):
    column = np.empty(2, dtype=object)
    column[:] = [value, value]
    with pytest.raises(InputError, match=r"Column 'b' \(number 1, counted from 0\) holds '?(list|dict)"):
        read(pd.DataFrame({"a": ["x", "y"], "b": column}))


def test_dates_are_refused_with_their_column():
    with pytest.raises(InputError, match=r"Column 'day' .* holds dates or times"):
        read(pd.DataFrame({"a": ["x", "y"], "day": pd.date_range("2024", periods=2, unit="ns")}))
