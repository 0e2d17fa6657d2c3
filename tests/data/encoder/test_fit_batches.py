"""TableEncoder fitted in batches against the same fitted on the whole table, number by number."""

from __future__ import annotations

import datetime
import tracemalloc
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold import TableEncoder
from sixfold.data.encoder import median, spread
from sixfold.errors import InputError

VALUES = {
    "number": st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0]) | st.none(),
    "float32": st.floats(-1e6, 1e6, width=32) | st.none(),
    "whole": st.integers(-1000, 1000) | st.none(),
    "text": st.text("abc=: é", max_size=2) | st.none(),
    "size": st.sampled_from(["small", "medium", "large"]) | st.none(),
    "boolean": st.booleans() | st.none(),
    "date": st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)) | st.none(),
    "wait": st.timedeltas(datetime.timedelta(-9), datetime.timedelta(9)) | st.none(),
}
POLARS = {
    "number": pl.Float64,
    "float32": pl.Float32,
    "whole": pl.Int64,
    "text": pl.String,
    "size": pl.Enum(["small", "medium", "large", "huge"]),
    "boolean": pl.Boolean,
    "date": pl.Datetime,
    "wait": pl.Duration,
}


@pytest.fixture
def small(monkeypatch):
    """Make everything small, so that a few rows go every way that many would."""
    monkeypatch.setattr(spread, "CHUNK", 4)
    monkeypatch.setattr(median, "WIDTH", 2)
    monkeypatch.setattr(median, "WAITING", 8)
    monkeypatch.setattr(median, "AT_ONCE", 4)


@st.composite
def tables(draw):
    rows = draw(st.integers(1, 30))
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    columns = []
    for j, kind in enumerate(kinds):
        values = draw(st.lists(VALUES[kind], min_size=rows, max_size=rows))
        # Batches in which a column is all missing.
        first, last = sorted((draw(st.integers(0, rows)), draw(st.integers(0, rows))))
        values[first:last] = [None] * (last - first if draw(st.booleans()) else 0) or values[first:last]
        columns.append(pl.Series(f"c{j} {kind}", values, POLARS[kind]))
    cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=6)))
    return pl.DataFrame(columns), list(pairwise([0, *cuts, rows]))


def in_polars(table, parts):
    """Cut a table; what is all missing in a batch has no type there."""
    batches = [table[start:stop] for start, stop in parts]
    return table, [
        batch.with_columns(
            pl.lit(None, pl.Null).alias(one.name)
            for one in batch
            if one.null_count() == len(one) > 0 and table[one.name].null_count() < len(table)
        )
        for batch in batches
    ]


def in_arrow(table, parts):
    """Cut a table, with a dictionary for each batch of texts of few values, and columns of no type."""
    batches = []
    for start, stop in parts:
        batch = table[start:stop].with_columns(pl.col(pl.Enum([*POLARS["size"].categories])).cast(pl.String))
        columns = {
            name: pa.nulls(len(one))
            if one.null_count == len(one) and table[name].null_count() < len(table)
            else one
            for name, one in zip(batch.columns, batch.to_arrow().columns, strict=True)
        }
        for name, one in columns.items():
            if name.endswith("size") and one.type != pa.null():
                columns[name] = one.cast(pa.string()).dictionary_encode()
        batch = pa.table(columns)
        batches += batch.to_batches() or [batch]
    whole = table.with_columns(pl.col(pl.Enum([*POLARS["size"].categories])).cast(pl.String)).to_arrow()
    return whole, batches


def in_pandas(table, parts):
    whole = table.to_arrow().to_pandas()
    for name in table.columns:
        if name.endswith("text"):
            whole[name] = whole[name].astype(object)
    return whole, [whole.iloc[start:stop] for start, stop in parts]


def in_objects(table, parts):
    """Return arrays of objects, whose types only values tell."""
    whole = np.array(table.rows(), dtype=object).reshape(table.shape)
    return whole, [whole[start:stop] for start, stop in parts]


def check(whole, batches, **parameters):
    one = TableEncoder(**parameters).fit(whole)
    many = TableEncoder(**parameters).fit_batches(iter(batches))
    assert many.columns_ == one.columns_
    assert (many.dtype_, many.named_, many.n_features_in_) == (one.dtype_, one.named_, one.n_features_in_)
    assert list(getattr(many, "feature_names_in_", [])) == list(getattr(one, "feature_names_in_", []))
    np.testing.assert_array_equal(many.sources_, one.sources_)
    first_row, parts = 0, []
    for batch in batches:
        parts.append(many.transform_batch(batch, first_row=first_row))
        first_row += len(batch)
    if parameters.get("categories") != "keep":
        np.testing.assert_array_equal(np.vstack(parts), one.transform(whole))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("cut", [in_polars, in_arrow, in_pandas, in_objects])
@settings(max_examples=120, deadline=None)
@given(tables(), st.sampled_from([{}, {"categories": "keep"}, {"scale": False, "max_categories": 3}]))
def test_batches_teach_what_the_whole_table_does(cut, drawn, parameters):
    table, parts = drawn
    if cut is in_objects and any(name.endswith("float32") for name in table.columns):
        table = table.with_columns(pl.col(pl.Float32).cast(pl.Float64))
    check(*cut(table, parts), **parameters)


def test_arrays_and_many_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(5.0, 2.0, size=(50_000, 3))
    X[::7, 1] = np.nan
    for values in (X, X.astype(np.float32), np.sort(X, axis=0)):
        check(values, np.array_split(values, [0, 1, 1, 20_000, 40_001]))


def test_categories_that_only_later_batches_have():
    whole = pl.DataFrame({"city": ["Rome"] * 5 + ["Oslo"] * 3 + ["Bonn", None] + ["Nice"] * 2})
    for frequency in (1, 2, 3, 4):
        check(whole, [whole[k : k + 1] for k in range(12)], min_frequency=frequency)
        check(whole, [whole[:5], whole[5:]], min_frequency=frequency, max_categories=3)


def test_the_order_of_types_is_kept():
    sizes = pd.CategoricalDtype(["S", "M", "L", "XL"], ordered=True)
    pandas = pd.DataFrame({"size": pd.Series(list("LLSSMM"), dtype=sizes)})
    check(pandas, [pandas[:2], pandas[2:]])
    enum = pl.DataFrame({"size": list("LLSSMM")}, schema={"size": pl.Enum(list("SML"))})
    check(enum, [enum[:2], enum[2:]])
    parts = [
        pa.table({"size": pa.DictionaryArray.from_arrays([0, 0, 1], pa.array(values), ordered=True)})
        for values in (["S", "L"], ["S", "M"], ["M", "L"])
    ]
    check(pa.concat_tables(parts), parts, min_frequency=1)
    plain = pd.DataFrame({"size": list("LLSSMM")})
    found = TableEncoder().fit_batches([pandas[:2], plain[2:]])  # of text nobody knows the order
    assert found.columns_ == TableEncoder().fit(plain).columns_


def test_dates_with_a_zone_are_those_of_the_first_batch():
    utc = pd.date_range("2020-06-01", periods=100, freq="5h", tz="UTC")
    oslo = pd.DataFrame({"d": utc.tz_convert("Europe/Oslo")})
    check(oslo, [oslo[:30], oslo[30:]])
    mixed = [oslo[:30], pd.DataFrame({"d": utc[30:]})]
    assert TableEncoder().fit_batches(mixed).columns_ == TableEncoder().fit(oslo).columns_


def test_columns_may_come_in_any_order_and_be_left_out():
    table = pl.DataFrame({"id": list("abcd"), "x": [1.0, 2, 3, 4], "c": list("uuvv")})
    check(table, [table[:1], table[1:3], table[3:]], leave_out=["id"])
    turned = [table[:2], table[2:].select("c", "x", "id")]
    assert TableEncoder().fit_batches(turned).columns_ == TableEncoder().fit(table).columns_


def test_a_column_without_values_is_what_its_type_says():
    types = {"a": pl.String, "b": pl.Float32, "c": pl.Datetime, "d": pl.Boolean, "e": pl.Null}
    table = pl.DataFrame({name: [None, None] for name in types}, schema=types)
    check(table, [table[:1], table[1:]])
    untyped = table.select(pl.lit(None, pl.Null).alias(name) for name in types)
    found = TableEncoder().fit_batches([untyped, table, untyped[:0]])
    assert [one.kind for one in found.columns_] == ["category", "number", "date", "boolean", "number"]
    assert all(one.outputs[-1] == " is missing" for one in found.columns_)


def test_decimals_and_missing_words_of_pandas():
    table = pd.DataFrame({"a": [Decimal("1.5"), None, Decimal("2.5")], "b": [True, pd.NA, False]})
    check(table, [table[:1], table[1:2], table[2:]])


def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(median, "IN_MEMORY", 1 << 20)

    def batches(count):
        rng = np.random.default_rng(0)
        for k in range(count):
            x = np.sort(rng.normal(k, 1.0, 20_000))  # in an order that lets the middle escape
            city = rng.choice(["Oslo", "Rome"], 20_000)
            yield pa.record_batch({"x": x, "y": rng.normal(size=20_000), "c": city})

    def peak(count):
        tracemalloc.start()
        try:
            TableEncoder().fit_batches(batches(count), folder=tmp_path)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, many = peak(20), peak(100)
    assert many < few + 3e6
    assert not list(tmp_path.iterdir())


# -- what is written -------------------------------------------------------------------------------------


def test_rows_are_written_where_the_user_says():
    table = pl.DataFrame({"x": [1.0, None, 3.0], "c": ["a", "b", "a"]})
    encoder = TableEncoder(min_frequency=1).fit(table)
    room = np.full((5, 3), 7.0)
    assert encoder.transform_batch(table, out=room[1:4]).base is room
    np.testing.assert_array_equal(room[1:4], encoder.transform(table))
    np.testing.assert_array_equal(room[[0, 4]], 7.0)
    single = TableEncoder().fit(np.float32([[0.1], [0.2], [0.7]]))
    thirds = np.float32([[1 / 3], [2 / 3]])
    found = single.transform_batch(thirds, out=np.empty((2, 1)))
    np.testing.assert_array_equal(found, single.transform(thirds))
    assert encoder.transform_batch(table[:0]).shape == (0, 3)
    assert TableEncoder(categories="keep").fit(table).transform_batch(table[:0]).shape == (0, 2)
    for out in (np.empty((2, 3)), np.empty((3, 3), dtype=int), [[0.0] * 3] * 3):
        with pytest.raises(InputError, match=r"out is no array of floats of shape \(3, 3\)"):
            encoder.transform_batch(table, out=out)
    with pytest.raises(InputError, match="out is for numbers"):
        TableEncoder(categories="keep").fit(table).transform_batch(table, out=room[1:4])
    with pytest.raises(InputError, match="sparse"):
        encoder.transform_batch(sp.csr_array(np.ones((2, 2))))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"x": ["1", "2"]}, "'x' .* held numbers in the training table, but row 1000 is '1'"),
        ({"x": [1.0, np.inf]}, "'x' .* inf in row 1001"),
        ({"x": [1.0, 1.7e308]}, "'x' .* row 1001 that is too far"),
        ({"d": [None, 2]}, "'d' .* held dates in the training table, but row 1001 is 2"),
    ],
)
def test_messages_count_rows_from_the_first(change, sentence):
    days = pd.date_range("2020-01-01", periods=2)
    encoder = TableEncoder().fit(pd.DataFrame({"x": [0.1, 0.2], "d": days}))
    table = pd.DataFrame({"x": [1.0, 2.0], "d": days} | change)
    with pytest.raises(InputError, match=sentence):
        encoder.transform_batch(table, first_row=1000)


# -- what is refused -------------------------------------------------------------------------------------

DAY = datetime.date(2020, 1, 1)


@pytest.mark.parametrize(
    ("batches", "sentence"),
    [
        (
            [{"a": [1, 2]}, {"a": ["b"]}],
            "'a' .* holds numbers before row 2, but row 2 is 'b'. Give .* one type",
        ),
        ([{"a": [1, 2]}, {"a": [3]}, {"a": [None, DAY]}], "numbers before row 3, but row 4 is"),
        ([{"a": ["x"]}, {"a": [None, 7]}], "holds categories before row 1, but row 2 is 7"),
        ([{"a": [DAY]}, {"a": ["x"]}], "holds dates before row 1, but row 1 is 'x'"),
        ([{"a": [True]}, {"a": [2]}], "holds True and False before row 1, but row 1 is 2"),
        ([{"a": [1]}, {"a": [True]}], "holds numbers before row 1, but row 1 is True"),
        ([{"a": [1.0]}, {"a": [1.0, np.inf]}], "'a' .* holds inf in row 2"),
        ([{"a": [1]}, {"b": [1]}], "batch that begins with row 1 has no column 'a'"),
        ([{"a": [1]}, {"a": [1], "b": [1]}], "begins with row 1 has a column 'b'"),
        ([{"a": []}, {"a": []}], "batches have no rows"),
        ([], "batches have no rows"),
    ],
)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_batches_that_do_not_fit_together(frame, batches, sentence):
    with pytest.raises(InputError, match=sentence):
        TableEncoder().fit_batches(map(frame, batches))


@pytest.mark.parametrize(
    ("batches", "sentence"),
    [
        (pd.DataFrame({"a": [1]}), "DataFrame: one table, or none.* call fit"),
        (np.ones((2, 2)), "ndarray: one table"),
        ("abc", "str: one table, or none"),
        (7, "int, which gives no batches"),
        ([np.ones(3)], "Expected 2D"),
        ([sp.csr_array(np.ones((2, 2)))], "sparse"),
        ([np.ones((1, 2)), np.ones((1, 3))], "row 1 has 3 columns, but those before it have 2"),
        (
            [np.ones((1, 1)), pd.DataFrame({"x0": [1]})],
            "names for its columns, but those before it have none",
        ),
        ([pd.DataFrame({"x0": [1]}), np.ones((1, 1))], "no names for its columns, .* have some"),
        ([np.array([[1j]])], "Complex"),
        ([pd.DataFrame({"a": [[1]]})], "'list's"),
    ],
)
def test_what_is_no_batch(batches, sentence):
    with pytest.raises(InputError, match=sentence):
        TableEncoder().fit_batches(batches)
