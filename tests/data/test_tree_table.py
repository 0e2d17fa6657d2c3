"""Tables as trees read them: what is kept, what becomes codes, what is unknown."""

import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

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
    values = X.astype(dtype, order=order)
    table, kinds = read(values)
    assert table is values
    assert kinds is None


def test_bytes_are_not_copied():
    values = np.arange(6, dtype=np.uint8).reshape(3, 2)
    assert read(values)[0] is values


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float16])
def test_other_numbers_become_float64(dtype):
    values = np.array([[0, 1], [1, 1]], dtype=dtype)
    table, kinds = read(values)
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


NOTHING = [None, float("nan"), np.nan, pd.NA, pd.NaT, decimal.Decimal("nan"), "?", " ?", "?\t"]


@pytest.mark.parametrize("make", [lambda column: column, lambda column: pd.DataFrame(column, columns=["a"])])
def test_every_way_to_write_nothing_is_unknown(make):
    table, kinds = read(make(np.array([[value] for value in [*NOTHING, "a"]], dtype=object)))
    np.testing.assert_array_equal(table[:, 0], [np.nan] * 9 + [0.0])
    assert kinds.categories == (("a",),)


def test_a_question_mark_among_numbers_is_unknown_too():
    table, kinds = read([[1.0, "a"], ["?", "b"], [3, "a"]])
    np.testing.assert_array_equal(table, [[1.0, 0.0], [np.nan, 1.0], [3.0, 0.0]])
    assert kinds.categories == (None, ("a", "b"))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_decimals_are_numbers(make):
    table, kinds = read(make({"a": [decimal.Decimal("1.5"), decimal.Decimal("2.25")]}))
    np.testing.assert_array_equal(table, [[1.5], [2.25]])
    assert kinds is None


def dictionary(values, order, ordered=False):
    codes = pa.array([None if value is None else order.index(value) for value in values], pa.int8())
    return pa.table({"a": pa.DictionaryArray.from_arrays(codes, order, ordered=ordered)})


NUMBERED = [30, 10, None, 10]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": pd.Categorical(NUMBERED)}),
        pd.DataFrame({"a": pd.Categorical(NUMBERED, categories=[40, 30, 20, 10])}),
        dictionary(NUMBERED, [40, 30, 20, 10]),
    ],
    ids=["pandas", "with others", "arrow"],
)
def test_a_categorical_type_of_numbers_is_of_categories(table):
    coded, kinds = read(table)
    np.testing.assert_array_equal(coded[:, 0], [1, 0, np.nan, 0])
    assert kinds.categories == ((10, 30),)


LETTERS, ORDER = ["y", "a", None, "x", "a"], list("zyxa")


@pytest.mark.parametrize(
    ("table", "ordered"),
    [
        (pd.DataFrame({"a": pd.Categorical(LETTERS, categories=ORDER)}), False),
        (pd.DataFrame({"a": pd.Categorical(LETTERS, categories=ORDER, ordered=True)}), True),
        (pl.DataFrame({"a": pl.Series(LETTERS, dtype=pl.Categorical)}), False),
        (pl.DataFrame({"a": pl.Series(LETTERS, dtype=pl.Enum(ORDER))}), True),
        (dictionary(LETTERS, ORDER), False),
        (dictionary(LETTERS, ORDER, ordered=True), True),
    ],
    ids=["pandas", "ordered", "polars", "enum", "arrow", "arrow ordered"],
)
def test_categories_are_in_the_order_of_their_type_if_it_has_one(table, ordered):
    coded, kinds = read(table)
    assert kinds.categories == (("y", "x", "a") if ordered else ("a", "x", "y"),)
    np.testing.assert_array_equal(coded[:, 0], [0, 2, np.nan, 1, 2] if ordered else [2, 0, np.nan, 1, 0])


def test_the_codes_of_a_type_do_not_matter_later():
    learner = Learner()
    _, kinds = check_tree_table(learner, pl.DataFrame({"a": ["b", "a"]}), True)
    for later in (
        pl.DataFrame({"a": pl.Series(["c", "b", None], dtype=pl.Categorical)}),
        pl.DataFrame({"a": pl.Series(["c", "b", None], dtype=pl.Enum(["c", "b"]))}),
        pd.DataFrame({"a": pd.Categorical(["c", "b", None])}),
        dictionary(["c", "b", None], ["c", "b"]),
        pa.table({"a": pa.chunked_array([["c"], ["b", None]])}),
    ):
        np.testing.assert_array_equal(
            check_tree_table(learner, later, False, kinds)[0], [[-1], [1], [np.nan]]
        )


texts = st.lists(
    st.none() | st.sampled_from(["b", "a", "", " ?", "Z", "ä", "nan", "None"]), min_size=1, max_size=9
)


@settings(max_examples=60, deadline=None)
@given(column=texts, chunk=st.integers(0, 9))
def test_any_column_of_text_has_the_same_codes_in_every_kind_of_table(column, chunk):
    present = sorted({value for value in column if value not in (None, " ?")})
    expected = [np.nan if value in (None, " ?") else present.index(value) for value in column]
    typed = pa.chunked_array([column[:chunk], column[chunk:]], pa.string())
    for make in (
        lambda: pd.DataFrame({"a": pd.Series(column, dtype=object)}),
        lambda: pd.DataFrame({"a": pd.Series(column, dtype="string")}),
        lambda: pd.DataFrame({"a": pd.Series(column, dtype="string[pyarrow]")}),
        lambda: pd.DataFrame({"a": pd.Series(column, dtype=object)}).astype("category"),
        lambda: pl.DataFrame({"a": pl.Series(column, dtype=pl.String)}),
        lambda: pl.DataFrame({"a": pl.Series(column, dtype=pl.Categorical)}),
        lambda: pa.table({"a": typed}),
        lambda: pa.table({"a": typed.dictionary_encode()}),
        lambda: np.array([[value] for value in column], dtype=object),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataConversionWarning)  # "nan" reads as a number
            table, kinds = read(make())
        np.testing.assert_array_equal(table[:, 0], expected)
        assert kinds.categories == (tuple(present),)


@pytest.mark.parametrize("named", [["b"], [1], [-1], [False, True], np.array([False, True]), np.array([1])])
def test_numbers_are_categories_where_the_user_says_so(named):
    values = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [30.0, 10.0, np.nan]})
    table, kinds = read(values, categorical=named)
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
    values = np.array([[np.nan, 1.0], [2.0, -np.inf]])
    with pytest.raises(InputError, match=r"infinity .* in row 1 of column '(x1|1)' .*Put NaN where"):
        read(kind(values))
    read(kind(values[:1]))


def test_sparse_tables_have_no_categories():
    with pytest.raises(InputError, match="X is sparse, but categories are not"):
        read(sp.csr_array(np.eye(3)), categorical=[0])


@pytest.mark.parametrize("value", [["a"], {"a": 1}])
def test_a_cell_that_is_a_container_is_refused_with_its_column(value):
    column = np.empty(2, dtype=object)
    column[:] = [value, value]
    with pytest.raises(InputError, match=r"Column 'b' \(number 1, counted from 0\) holds '?(list|dict)"):
        read(pd.DataFrame({"a": ["x", "y"], "b": column}))


@pytest.mark.parametrize(
    ("table", "called"),
    [
        (pl.DataFrame({"a": [{"x": 1, "y": 2}] * 2}), "struct"),
        (pl.DataFrame({"a": [[1, 2]] * 2}), "list"),
        (pl.DataFrame({"a": pl.Series([[1, 2]] * 2, dtype=pl.Array(pl.Int64, 2))}), "array"),
        (pa.table({"a": [{"x": 1, "y": 2}] * 2}), "struct"),
    ],
    ids=["struct", "list", "array", "arrow"],
)
def test_a_type_that_is_a_container_is_refused_with_its_column(table, called):
    with pytest.raises(
        InputError, match=rf"Column 'a' \(number 0, counted from 0\) holds '{called}'s, which are"
    ):
        read(table)


def test_values_without_an_order_are_refused():
    with pytest.raises(InputError, match=r"Column 'x0' .* holds values such as 1j, which have no order"):
        read(np.array([[1j], [2j]], dtype=object))


@pytest.mark.parametrize(
    "days",
    [
        pd.date_range("2024", periods=2, unit="ns"),
        pd.date_range("2024", periods=2, unit="ns").astype("category"),
        pd.DatetimeIndex([None, None]),
        pd.period_range("2024", periods=2, freq="M"),
        np.array(pd.period_range("2024", periods=2, freq="M"), dtype=object),
    ],
    ids=["dates", "categories", "unknown", "periods", "objects"],
)
def test_dates_are_refused_with_their_column(days):
    with pytest.raises(InputError, match=r"Column 'day' .* holds dates or times"):
        read(pd.DataFrame({"a": ["x", "y"], "day": days}))
