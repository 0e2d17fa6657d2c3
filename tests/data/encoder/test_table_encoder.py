"""TableEncoder against plain NumPy and pandas: numbers, gaps, categories, dates, names, what it refuses."""

from __future__ import annotations

import datetime
import pickle
import tracemalloc
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix, csr_array, csr_matrix, issparse
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import estimator_checks_generator

from sixfold import DecisionTreeClassifier, KNeighborsClassifier, TableEncoder
from sixfold.errors import InputError

CHECKED = [
    TableEncoder(),
    TableEncoder(categories="keep"),
    TableEncoder(scale=False, missing_indicator=False),
]
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


def encoded(table, **parameters):
    """Return the output by its names."""
    encoder = TableEncoder(**parameters)
    values = encoder.fit_transform(table)
    return dict(zip(encoder.get_feature_names_out().tolist(), values.T, strict=True))


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        (one, check)
        for estimator in CHECKED
        for one, check in estimator_checks_generator(estimator)
        if check.func.__name__ != "check_array_api_input"  # which skips itself unless SciPy is told
    ],
    ids=lambda value: getattr(getattr(value, "func", None), "__name__", None),
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


# -- numbers ---------------------------------------------------------------------------------------------


def test_numbers_have_mean_0_and_variance_1():
    rng = np.random.default_rng(0)
    X = rng.normal(7.0, 3.0, size=(100, 4))
    encoder = TableEncoder().fit(X[:80])
    expected = (X - X[:80].mean(axis=0)) / X[:80].std(axis=0)
    np.testing.assert_allclose(encoder.transform(X), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(encoder.sources_, range(4))
    np.testing.assert_array_equal(TableEncoder(scale=False).fit_transform(X), X)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_gaps_get_the_median_and_a_column_that_says_so(frame):
    found = encoded(frame({"age": [1.0, None, 10.0, 3.0], "size": [1, 2, 3, 4]}))
    filled = np.array([1.0, 3.0, 10.0, 3.0])
    assert list(found) == ["age", "age is missing", "size"]
    np.testing.assert_allclose(found["age"], (filled - filled.mean()) / filled.std())
    np.testing.assert_array_equal(found["age is missing"], [0, 1, 0, 0])
    assert list(encoded(frame({"age": [1.0, None]}), missing_indicator=False)) == ["age"]


def test_a_gap_where_there_was_none_is_the_median():
    encoder = TableEncoder().fit([[1.0], [2.0], [6.0]])
    np.testing.assert_array_equal(encoder.transform([[np.nan]]), encoder.transform([[2.0]]))
    assert encoder.get_feature_names_out().tolist() == ["x0"]


def test_constant_columns_are_0_also_for_other_values():
    X = np.array([[0.1, np.nan, 5.0]] * 10)
    X[3, 2] = np.nan
    encoder = TableEncoder().fit(X)
    np.testing.assert_array_equal(encoder.transform(X)[:, [0, 1, 3]], 0.0)
    assert encoder.get_feature_names_out().tolist() == ["x0", "x1", "x1 is missing", "x2", "x2 is missing"]
    np.testing.assert_array_equal(encoder.transform([[1e9, 7.0, 1.0]]), 0.0)


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1.0, 1e200, 1.7e308])
def test_numbers_of_any_size(size):
    X = size * np.array([[-1.0], [1.0], [1.0], [1.0], [1.0], [np.nan]])
    found = TableEncoder().fit_transform(X)[:, 0]
    expected = np.array([-1.0, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(found, (expected - expected.mean()) / expected.std(), rtol=1e-3)


def test_float32_stays_float32_where_all_numbers_are():
    X = np.float32([[1e8 + 8, 2], [1e8, 4], [1e8 + 16, 6]])
    found = TableEncoder().fit_transform(X)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, (X - X.mean(0, np.float64)) / X.std(0, np.float64), rtol=1e-6)
    mixed = pl.DataFrame({"a": X[:, 0], "c": ["u", "v", "u"]})
    assert TableEncoder().fit_transform(mixed).dtype == np.float32
    assert TableEncoder().fit_transform(mixed.with_columns(b=pl.lit(1))).dtype == np.float64
    assert TableEncoder().fit(X).transform(X.astype(np.float64)).dtype == np.float32


def test_booleans_are_0_and_1():
    for column in ([True, False, None], pd.array([True, False, None], dtype="boolean")):
        found = encoded(pd.DataFrame({"b": column, "c": [True, True, False]}))
        assert list(found) == ["b", "b is missing", "c"]
        np.testing.assert_array_equal(found["b"], [1, 0, 0])
        np.testing.assert_array_equal(found["b is missing"], [0, 0, 1])
        np.testing.assert_array_equal(found["c"], [1, 1, 0])


def test_masked_values_are_missing():
    masked = np.ma.array([[1, 9], [2, 9], [6, 9]], mask=[[0, 1], [1, 0], [0, 0]])
    assert list(encoded(masked)) == ["x0", "x0 is missing", "x1", "x1 is missing"]


def test_objects_are_read_by_their_values():
    table = np.array(
        [
            [1, "a", True, Decimal("1.5"), datetime.date(2020, 1, 1), datetime.timedelta(1), None],
            [2.5, "b", None, None, datetime.datetime(2020, 1, 3, 12), datetime.timedelta(3), None],
            [None, "a", False, 3, None, None, np.nan],
        ],
        dtype=object,
    )
    encoder = TableEncoder(scale=False, min_frequency=1).fit(table)
    kinds = [one.kind for one in encoder.columns_]
    assert kinds == ["number", "category", "boolean", "number", "date", "duration", "number"]
    found = encoded(table, scale=False, missing_indicator=False)
    np.testing.assert_array_equal(found["x4: days"], [18262.0, 18264.5, 18263.25])
    np.testing.assert_array_equal(found["x5: days"], [1.0, 3.0, 2.0])


# -- categories ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_rare_unseen_and_missing_categories(frame):
    city = ["Rome"] * 3 + ["Oslo"] * 2 + ["Nice", "Bonn", None]
    encoder = TableEncoder().fit(frame({"city": city}))
    assert encoder.get_feature_names_out().tolist() == [
        "city=Oslo",
        "city=Rome",
        "city is other",
        "city is missing",
    ]
    found = encoder.transform(frame({"city": ["Oslo", "Bonn", "Lima", None, ""]}))
    np.testing.assert_array_equal(
        found, [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    )
    never_missing = TableEncoder().fit(frame({"city": ["a", "a", "b", "b", "c"]}))
    np.testing.assert_array_equal(never_missing.transform(frame({"city": ["c", None]})), [[0, 0, 1]] * 2)
    plain = TableEncoder().fit(frame({"city": ["a", "b", "c"] * 2}))
    np.testing.assert_array_equal(plain.transform(frame({"city": ["d", None]})), np.zeros((2, 3)))


def test_two_categories_make_one_column():
    assert list(encoded(pd.DataFrame({"sex": ["male", "female"] * 2}))) == ["sex=male"]
    assert list(encoded(pd.DataFrame({"sex": ["male", "female", None] * 2}))) == [
        "sex=female",
        "sex=male",
        "sex is missing",
    ]
    assert list(encoded(pd.DataFrame({"sex": ["male", "male", "female"]}))) == ["sex=male"]
    assert list(encoded(pd.DataFrame({"sex": ["male", "male"]}))) == ["sex=male"]
    assert list(encoded(pl.DataFrame({"sex": [None, None]}, schema={"sex": pl.String}))) == ["sex is missing"]


def test_most_categories():
    values = [f"c{k:02}" for k in range(60) for _ in range(60 - k)]
    names = list(encoded(pd.DataFrame({"c": values})))
    assert names == [f"c=c{k:02}" for k in range(49)] + ["c is other"]
    tied = ["d", "c", "b", "a"] * 2
    assert list(encoded(pd.DataFrame({"c": tied}), max_categories=3)) == ["c=a", "c=b", "c is other"]
    assert list(encoded(pd.DataFrame({"c": [*tied, "d"]}), max_categories=2)) == ["c=d"]


def test_categories_are_told_by_their_text():
    mixed = np.array([[1], ["1"], [1.0], ["a"], ["b"], ["a"], ["b"]], dtype=object)
    found = encoded(mixed)
    np.testing.assert_array_equal(found["x0=1"], [1, 1, 1, 0, 0, 0, 0])
    assert list(encoded(np.array([["a"], ["b"], ["c"]] * 2, dtype="S1"))) == ["x0=a", "x0=b", "x0=c"]
    codes = pd.DataFrame({"zip": pd.Categorical([1, 2, 3] * 2)})
    assert list(encoded(codes)) == ["zip=1", "zip=2", "zip=3"]
    encoder = TableEncoder().fit(codes)
    np.testing.assert_array_equal(
        encoder.transform(pd.DataFrame({"zip": [2.0, np.nan]})), [[0, 1, 0], [0, 0, 0]]
    )


def test_the_order_of_a_type_is_kept():
    size = pd.Categorical(["S", "L", "M"] * 2, categories=["S", "M", "L", "XL"], ordered=True)
    assert list(encoded(pd.DataFrame({"size": size}))) == ["size=S", "size=M", "size=L"]
    polars = pl.DataFrame({"size": ["S", "L", "M"] * 2}, schema={"size": pl.Enum(["S", "M", "L", "XL"])})
    assert list(encoded(polars)) == ["size=S", "size=M", "size=L"]


# -- dates -----------------------------------------------------------------------------------------------


def test_dates_are_days_and_cycles():
    when = pd.date_range("2019-03-01", periods=400, freq="31h").to_series().reset_index(drop=True)
    when[7] = pd.NaT
    found = encoded(pd.DataFrame({"when": when}))
    days = (when - pd.Timestamp(0)) / pd.Timedelta(days=1)
    filled = days.fillna(days.median())
    np.testing.assert_allclose(found["when: days"], (filled - filled.mean()) / filled.std(ddof=0), atol=1e-9)
    shares = {
        "time of day": (when.dt.hour + when.dt.minute / 60) / 24,
        "weekday": when.dt.day_of_week / 7,
        "day of year": (when.dt.day_of_year - 1) / np.where(when.dt.is_leap_year, 366, 365),
    }
    assert list(found) == [
        "when: days",
        *(f"when: {part} ({wave})" for part in shares for wave in ("sin", "cos")),
        "when is missing",
    ]
    for part, share in shares.items():
        for wave in ("sin", "cos"):
            expected = getattr(np, wave)(2 * np.pi * share).fillna(0.0)
            np.testing.assert_allclose(found[f"when: {part} ({wave})"], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("dates", "parts"),
    [
        (pd.date_range("2020-01-01", periods=5, freq="h"), []),
        (pd.date_range("2020-01-01", periods=50, freq="h"), ["time of day"]),
        (pd.date_range("2020-01-01 13:00", periods=50, freq="D"), ["weekday"]),
        (pd.date_range("2001-01-01 05:00", periods=900, freq="7D"), ["day of year"]),
        (pd.date_range("2020-01-01", periods=90, freq="7D"), ["day of year"]),
        (pd.DatetimeIndex(["2020-01-01"] * 3), []),
        (pd.DatetimeIndex([None] * 3, dtype="datetime64[ns]"), []),
    ],
)
def test_parts_that_say_nothing_new_are_not_written(dates, parts):
    names = list(encoded(pd.DataFrame({"d": dates})))
    assert [name for name in names if name.endswith("(sin)")] == [f"d: {part} (sin)" for part in parts]


def test_times_with_a_zone_are_those_of_the_clocks_there():
    utc = pd.date_range("2020-06-01", periods=100, freq="5h", tz="UTC")
    oslo = encoded(pd.DataFrame({"d": utc.tz_convert("Europe/Oslo")}))
    wall = encoded(pd.DataFrame({"d": utc.tz_convert("Europe/Oslo").tz_localize(None)}))
    for name, values in wall.items():
        np.testing.assert_array_equal(values, oslo[name])
    encoder = TableEncoder().fit(pd.DataFrame({"d": utc.tz_convert("Europe/Oslo")}))
    np.testing.assert_array_equal(
        encoder.transform(pd.DataFrame({"d": utc}))[:, 1], oslo["d: time of day (sin)"]
    )
    polars = pl.DataFrame({"d": pl.Series(utc.tz_localize(None)).dt.replace_time_zone("UTC")})
    polars = polars.with_columns(pl.col("d").dt.convert_time_zone("Europe/Oslo"))
    np.testing.assert_allclose(encoder.transform(polars), np.column_stack(list(oslo.values())), atol=1e-12)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_durations_are_days(frame):
    table = frame({"wait": np.array([1, 2, "NaT", 6], dtype="m8[h]").astype("m8[ms]")})
    found = encoded(table, scale=False)
    np.testing.assert_allclose(found["wait: days"], [1 / 24, 2 / 24, 2 / 24, 6 / 24])
    np.testing.assert_array_equal(found["wait is missing"], [0, 0, 1, 0])


# -- tables ----------------------------------------------------------------------------------------------

VALUES = {
    "number": st.floats(-1e6, 1e6, width=32) | st.none(),
    "whole": st.integers(-1000, 1000) | st.none(),
    "text": st.text("abc=: é", max_size=2) | st.none(),
    "boolean": st.booleans() | st.none(),
    "date": st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)) | st.none(),
}
POLARS = {
    "number": pl.Float64,
    "whole": pl.Int64,
    "text": pl.String,
    "boolean": pl.Boolean,
    "date": pl.Datetime,
}


@st.composite
def mixed_columns(draw):
    rows = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    names = st.text("ab=:é ' is missing", min_size=1, max_size=8)
    names = draw(st.lists(names, min_size=len(kinds), max_size=len(kinds), unique=True))
    values = [draw(st.lists(VALUES[kind], min_size=rows, max_size=rows)) for kind in kinds]
    return dict(zip(names, zip(kinds, values, strict=True), strict=True))


def in_polars(columns):
    return pl.DataFrame([pl.Series(name, list(one), POLARS[kind]) for name, (kind, one) in columns.items()])


def in_pandas(columns):
    return pd.DataFrame({name: pd.Series(list(one), dtype=object) for name, (_, one) in columns.items()})


def oracle(kind, values):
    """Return the columns for one, as plain Python works them out."""
    gaps = np.array([value is None for value in values], dtype=float)
    if kind == "text":
        seen = sorted({value for value in values if value is not None})
        own = [one for one in seen if values.count(one) >= 2]
        columns = [np.array([float(value == one) for value in values]) for one in own]
        other = np.array([float(value is not None and value not in own) for value in values])
        if not gaps.any() and len(own) + (len(own) < len(seen)) == 2:
            return columns[-1:]
        return columns + [other] * (len(own) < len(seen)) + [gaps] * bool(gaps.any())
    numbers = np.array([np.nan if value is None else float(value) for value in values])
    if kind == "boolean":
        return [np.nan_to_num(numbers)] + [gaps] * bool(gaps.any())
    numbers[np.isnan(numbers)] = np.median(numbers[gaps == 0]) if (gaps == 0).any() else 0.0
    spread = numbers.std() if np.ptp(numbers) > 0 else np.inf
    return [(numbers - numbers.mean()) / spread] + [gaps] * bool(gaps.any())


@settings(max_examples=150, deadline=None)
@given(mixed_columns())
def test_mixed_tables(columns):
    table = in_polars(columns)
    encoder = TableEncoder().fit(table)
    found, names = encoder.transform(table), encoder.get_feature_names_out().tolist()
    assert len(set(names)) == found.shape[1]
    assert found.shape[0] == len(table)
    assert np.isfinite(found).all()
    for j, (name, (kind, values)) in enumerate(columns.items()):
        own = np.flatnonzero(encoder.sources_ == j)
        assert all(encoder.source_of(names[k])[0] == name for k in own)
        if kind != "date":
            np.testing.assert_allclose(found[:, own].T, oracle(kind, values), rtol=1e-9, atol=1e-9)
    empty = {name for name, (_, values) in columns.items() if not any(v is not None for v in values)}
    other = TableEncoder().fit(in_pandas(columns))
    if not empty:  # of objects that are all missing nobody knows what they would be
        np.testing.assert_allclose(other.transform(in_pandas(columns)), found, atol=1e-9)
        assert other.get_feature_names_out().tolist() == names
        np.testing.assert_allclose(encoder.transform(in_pandas(columns)), found, atol=1e-9)
    turned = table.select(reversed(table.columns)).with_columns(more=pl.lit(1))
    np.testing.assert_array_equal(encoder.transform(turned), found)


@settings(max_examples=60, deadline=None)
@given(mixed_columns())
def test_kept_tables(columns):
    table = in_polars(columns)
    encoder = TableEncoder(categories="keep").fit(table)
    found = encoder.transform(table)
    assert isinstance(found, pl.DataFrame)
    assert found.columns == encoder.get_feature_names_out().tolist()
    for place, source in enumerate(encoder.sources_):
        name = table.columns[source]
        part = encoder.source_of(found.columns[place])[1]
        if part == "":
            assert found[:, place].to_list() == table[name].to_list()
        elif part == ": hour":
            expected = [None if v is None else v.hour + v.minute / 60 + v.second / 3600 for v in table[name]]
            np.testing.assert_allclose(found[:, place], np.array(expected, dtype=float), atol=1e-3)
    pandas = TableEncoder(categories="keep").fit_transform(in_pandas(columns))
    empty = [name for name in table.columns if table[name].null_count() == len(table)]
    assert list(pandas.columns) == found.columns or empty


def test_nothing_is_learnt_from_held_out_rows():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=60), "c": rng.choice(list("abc"), 60)})
    table.loc[::7, "x"] = np.nan
    for train, test in KFold(3).split(table):
        kept, held = table.iloc[train], table.iloc[test]
        filled = kept["x"].fillna(kept["x"].median())
        x = (held["x"].fillna(kept["x"].median()) - filled.mean()) / filled.std(ddof=0)
        expected = np.column_stack(
            [x, held["x"].isna(), *(held["c"] == one for one in sorted(kept["c"].unique()))]
        )
        encoder = TableEncoder().fit(kept)
        np.testing.assert_allclose(encoder.transform(held), expected.astype(float), atol=1e-12)
        state = pickle.dumps(encoder)
        encoder.transform(held)
        assert pickle.dumps(encoder) == state


def test_a_model_is_copied_and_pickled():
    table = pd.DataFrame({"x": [1.0, None, 3.0], "c": ["a", "b", "a"]})
    encoder = TableEncoder(min_frequency=1, leave_out=("x",))
    assert clone(encoder).get_params() == encoder.get_params()
    again = pickle.loads(pickle.dumps(encoder.fit(table)))
    np.testing.assert_array_equal(again.transform(table), encoder.transform(table))
    assert again.columns_ == encoder.columns_


def test_columns_that_are_left_out():
    table = pd.DataFrame({"id": list("abc"), "x": [1.0, 2.0, 3.0]})
    encoder = TableEncoder(leave_out=["id"]).fit(table)
    assert encoder.get_feature_names_out().tolist() == ["x"]
    assert encoder.transform(table[["x"]]).shape == (3, 1)  # which need not be there
    np.testing.assert_array_equal(encoder.sources_, [1])
    np.testing.assert_array_equal(
        TableEncoder(leave_out=(0,)).fit_transform(table.to_numpy()), encoder.transform(table)
    )
    assert list(TableEncoder(categories="keep", leave_out=("id",)).fit_transform(table).columns) == ["x"]
    with pytest.raises(InputError, match="leaves no column"):
        TableEncoder(leave_out=("id", "x")).fit(table)
    with pytest.raises(InputError, match="leave_out names the column 'idd'"):
        TableEncoder(leave_out=("idd",)).fit(table)


def test_names_that_would_be_equal_have_quotes():
    table = pd.DataFrame({"a": ["b=c", "d", "e"] * 2, "a=b": ["c", "d", "e"] * 2, "x": [1, None, 2] * 2})
    table["x is missing"] = [1.0, 2.0, 3.0] * 2
    encoder = TableEncoder().fit(table)
    names = encoder.get_feature_names_out().tolist()
    assert {"'a'=b=c", "'a=b'=c", "a=d", "a=b=d", "x", "'x' is missing", "'x is missing'"} <= set(names)
    assert len(set(names)) == len(names)
    assert encoder.source_of("'a=b'=c") == ("a=b", "=c")
    assert encoder.source_of("a=b=d") == ("a=b", "=d")
    assert encoder.source_of("'x' is missing") == ("x", " is missing")
    with pytest.raises(InputError, match=r"'a=dd' is none of .* Did you mean 'a=d'"):
        encoder.source_of("a=dd")


@pytest.mark.parametrize("library", ["default", "pandas", "polars"])
def test_set_output(library):
    table = pd.DataFrame({"x": [1.0, None, 3.0], "c": ["a", "b", "a"]}, index=[7, 8, 9])
    for way in ("one-hot", "keep"):
        found = TableEncoder(categories=way).set_output(transform=library).fit_transform(table)
        if library != "default":
            assert type(found).__module__.startswith(library)
            assert len(found.columns) == {"one-hot": 3, "keep": 2}[way]


def test_kept_tables_keep_their_index_and_arrays_are_not_copied():
    when = pd.date_range("2020-01-01", periods=3, freq="200D")
    table = pd.DataFrame({"when": when, "x": [1, 2, 3]}, index=[7, 8, 9])
    found = TableEncoder(categories="keep").fit_transform(table)
    assert found.index.tolist() == [7, 8, 9]
    assert list(found.columns) == ["when: days", "when: month", "when: weekday", "x"]
    assert found["when: month"].tolist() == [1.0, 7.0, 2.0]
    X = np.ones((3, 2), dtype=np.float32)
    assert TableEncoder(categories="keep").fit_transform(X) is X
    for plain in (pl.DataFrame({"a": ["u", None]}), pa.table({"a": ["u", None]}), pd.DataFrame({"a": [1]})):
        assert TableEncoder(categories="keep").fit_transform(plain) is plain
    more = pl.DataFrame({"b": [1], "a": ["u"], "c": [2]})
    kept = TableEncoder(categories="keep").fit(more.select("a", "b")).transform(more)
    assert kept.to_dicts() == [{"a": "u", "b": 1}]
    numbered = TableEncoder(categories="keep").fit_transform(table.set_axis([3, 4], axis=1))
    assert list(numbered.columns)[-1] == "4"
    nothing = pd.DataFrame(
        {"c": pd.array(["u", None], dtype="string"), "b": pd.array([True, None], "boolean")}
    )
    found = TableEncoder(categories="keep").fit_transform(nothing)
    assert found.to_numpy(dtype=object).tolist() == [["u", True], [None, None]]  # pandas' NA has no order
    array = TableEncoder(categories="keep").fit_transform(
        np.array([["2020-01-01"], ["2020-01-03"]], dtype="M8[D]")
    )
    assert array.tolist() == [[18262.0], [18264.0]]


# -- sparse ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [csr_array, csr_matrix, coo_matrix])
def test_sparse_columns_are_scaled_and_not_centred(kind):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 6)) < 0.3, rng.normal(3, 2, (50, 6)), 0.0)
    X[:, 2], X[:, 4] = 7.0, 0.0
    found = TableEncoder().fit_transform(kind(X))
    assert issparse(found)
    scale = np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), np.inf)
    np.testing.assert_allclose(found.toarray(), X / scale, rtol=1e-12)
    np.testing.assert_allclose(TableEncoder().fit(kind(X)).transform(X), X / scale, rtol=1e-12)
    dense = TableEncoder().fit(X)
    np.testing.assert_allclose(dense.transform(kind(X)), dense.transform(X))
    np.testing.assert_array_equal(TableEncoder(categories="keep").fit_transform(kind(X)).toarray(), X)
    assert TableEncoder(leave_out=(1,)).fit_transform(kind(X)).shape == (50, 5)
    X[3, 1] = 1e300
    with pytest.raises(InputError, match="overflow"):
        TableEncoder().fit(kind(X))
    X[3, 1] = np.nan
    with pytest.raises(InputError, match="NaN: in row 3 of column 'x1'"):
        TableEncoder().fit(kind(X))


# -- what is refused ---------------------------------------------------------------------------------------


@pytest.fixture
def fitted():
    days = pd.date_range("2020-01-01", periods=4)
    return TableEncoder().fit(
        pd.DataFrame({"age": [0.1, 0.2, 0.3, 0.4], "city": list("abab"), "day": days, "wait": days - days[0]})
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"age": ["1", "2", "x"]}, "Column 'age' .* held numbers in the training table, but row 0 is '1'"),
        ({"age": [None, 2, "x"]}, "Column 'age' .* row [12] is '[2x]'"),
        ({"age": [1.0, np.inf, 2]}, "Column 'age' .* inf in row 1"),
        ({"age": [1.0, 1.7e308, 2]}, "Column 'age' .* row 1 .* too far"),
        ({"day": [1, 2, 3]}, "Column 'day' .* held dates in the training table, but row 0 is 1"),
        ({"day": ["2020-01-01", "?", None]}, "Column 'day' .* row 0 is '2020-01-01'"),
        ({"wait": [1.0, 2, 3]}, "Column 'wait' .* held durations"),
    ],
)
def test_what_was_something_else_in_the_training_table(fitted, change, sentence):
    days = pd.date_range("2020-01-01", periods=3)
    table = {"age": [1.0, 2, 3], "city": list("abc"), "day": days, "wait": days - days[0]} | change
    with pytest.raises(InputError, match=sentence):
        fitted.transform(pd.DataFrame(table))
    with pytest.raises(InputError, match=sentence):
        fitted.transform(pl.DataFrame(pd.DataFrame(table).to_dict("list"), strict=False))


def test_columns_that_are_not_there(fitted):
    with pytest.raises(InputError, match=r"no column 'age', .* Is 'Age' meant to be 'age'\?"):
        fitted.transform(pd.DataFrame({"Age": [1], "city": ["a"], "day": [None], "wait": [None]}))
    with pytest.raises(InputError, match="no columns 'age', 'day', 'wait'"):
        fitted.transform(pl.DataFrame({"city": ["a"]}))
    with pytest.raises(InputError, match="0 rows"):
        fitted.transform(pd.DataFrame({"age": [], "city": [], "day": [], "wait": []}))
    for empty in (pd.DataFrame({"a": []}), pd.DataFrame(), pl.DataFrame(), pl.DataFrame({"a": []})):
        with pytest.raises(InputError, match=r"Found array with 0"):
            TableEncoder().fit(empty)


def test_the_row_is_named_in_a_large_table(monkeypatch):
    monkeypatch.setattr("sixfold.data.encoder.table_encoder.BLOCK", 1)
    table = pd.DataFrame({"x": np.arange(5000.0)})
    encoder = TableEncoder().fit(table)
    wrong = table.astype(object)
    wrong.loc[4321, "x"] = "much"
    with pytest.raises(InputError, match="row 4321 is 'much'"):
        encoder.transform(wrong)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ([[1.0, np.inf]], "Column 'x1' .* inf in row 0"),
        (pd.DataFrame({"a": [[1], [2]]}), "'list's"),
        (np.array([[datetime.time(1)], [None]], dtype=object), "type time"),
        (np.array([[datetime.date(2020, 1, 1)], ["a"]], dtype=object), "type date"),
        ([[1j]], "Complex"),
        (pd.DataFrame({"a": [1j, 2]}), "type complex"),
        ([1, 2], "2D"),
        ("abc", "Pass a table"),
    ],
)
def test_tables_that_cannot_be_read(table, sentence):
    with pytest.raises(InputError, match=sentence):
        TableEncoder().fit(table)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"categories": "onehot"}, "did you mean 'one-hot'"),
        ({"scale": 1}, "scale=1"),
        ({"missing_indicator": None}, "missing_indicator=None"),
        ({"max_categories": 1}, "max_categories=1"),
        ({"min_frequency": 0.5}, "min_frequency=0.5"),
    ],
)
def test_parameters_that_cannot_be_used(parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        TableEncoder(**parameters).fit([[1.0]])


# -- size ------------------------------------------------------------------------------------------------


def nulls(X):
    return pl.DataFrame(X).fill_nan(None)


@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame, pl.DataFrame, nulls])
def test_large_tables_are_written_once(frame):
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.normal(size=(60_000, 20)))
    X[::9, :10] = np.nan
    table, encoder = frame(X), TableEncoder()
    tracemalloc.start()
    try:
        encoder.fit(table)
        fit_peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        found = encoder.transform(table)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert fit_peak < 0.5 * X.nbytes
    assert peak < 1.2 * found.nbytes
    halves = np.vstack([encoder.transform(frame(X[:31_234])), encoder.transform(frame(X[31_234:]))])
    np.testing.assert_array_equal(halves, found)


@pytest.mark.parametrize("model", [KNeighborsClassifier(1, metric="gower"), DecisionTreeClassifier()])
def test_trees_and_gower_take_kept_tables_with_gaps(model):
    when = [datetime.datetime(2020, 1, 1), None, datetime.datetime(2021, 1, 1), datetime.datetime(2022, 1, 1)]
    table = pl.DataFrame({"x": [1.0, 2.0, None, 4.0] * 3, "c": ["a", "a", "b", None] * 3, "d": when * 3})
    for frame in (table, table.to_pandas(), table.to_arrow()):
        kept = TableEncoder(categories="keep").fit_transform(frame)
        assert model.fit(kept, [0, 1, 2, 3] * 3).predict(kept).tolist() == [0, 1, 2, 3] * 3
