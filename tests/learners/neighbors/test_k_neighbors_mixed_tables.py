"""Neighbours in tables with text, categories and missing values, by Gower's distance worked out here."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold import KNeighborsClassifier, KNeighborsRegressor
from sixfold.errors import InputError

SIZES = [1.0, 2.0, None, 5.0, 3.0, 9.0]
COLOURS = ["red", "blue", "red", None, "green", "blue"]
ROUND = [True, False, True, True, False, False]
LABELS = list("ababab")


def rows_of(*columns):
    return [list(row) for row in zip(*columns, strict=True)]


def gower(q, x, table):
    """Return the mean over the columns that both have, of numbers by their range in the table."""
    parts = []
    for j, (a, b) in enumerate(zip(q, x, strict=True)):
        if a is None or b is None:
            continue
        column = [row[j] for row in table if row[j] is not None]
        text = any(isinstance(value, str) for value in column)
        span = 0.0 if text else max(column) - min(column)
        parts.append(abs(a - b) / span if span else float(a != b))
    return math.fsum(parts) / len(parts) if parts else math.inf


def nearest(queries, table, k):
    D = np.array([[gower(q, x, table) for x in table] for q in queries])
    rows = np.array([sorted(range(len(table)), key=lambda j: (d[j], j))[:k] for d in D])
    return np.take_along_axis(D, rows, axis=1), rows


def as_objects(columns):
    return np.array(rows_of(*columns.values()), dtype=object)


TABLES = {
    "pandas": pd.DataFrame,
    "pandas text": lambda columns: pd.DataFrame(columns).astype({"colour": "string"}),
    "pandas categories": lambda columns: pd.DataFrame(columns).astype({"colour": "category"}),
    "polars": pl.DataFrame,
    "polars categories": lambda columns: pl.DataFrame(columns).cast({"colour": pl.Categorical}),
    "objects": as_objects,
    "lists": lambda columns: rows_of(*columns.values()),
}
every_table = pytest.mark.parametrize("kind", TABLES)
QUERIES = {"size": [4.0, None, 20.0], "colour": ["green", "purple", None], "round": [True, False, False]}


@every_table
def test_neighbours_of_mixed_rows_are_those_of_gower(kind):
    table = TABLES[kind]({"size": SIZES, "colour": COLOURS, "round": ROUND})
    model = KNeighborsClassifier(4, metric="gower").fit(table, LABELS)
    expected = nearest(rows_of(*QUERIES.values()), rows_of(SIZES, COLOURS, ROUND), 4)
    distances, rows = model.kneighbors(TABLES[kind](QUERIES))
    np.testing.assert_array_equal(rows, expected[1])
    np.testing.assert_allclose(distances, expected[0], rtol=1e-15)
    model.certificate_.verify(table, LABELS)


cells = st.tuples(
    st.sampled_from([0.0, 1.0, 4.0, None]), st.sampled_from(["a", "b", "c", None]), st.integers(0, 2)
)


@settings(max_examples=60, deadline=None)
@given(table=st.lists(cells, min_size=1, max_size=8), queries=st.lists(cells, min_size=1, max_size=3))
def test_any_mixed_table_has_the_neighbours_of_gower(table, queries):
    X, Q = (np.array([list(row) for row in part], dtype=object) for part in (table, queries))
    if all(row[1] is None for row in table):
        return  # no text, no category
    model = KNeighborsClassifier(len(table), metric="gower").fit(X, np.arange(len(table)))
    expected = nearest(queries, table, len(table))
    distances, rows = model.kneighbors(Q)
    np.testing.assert_allclose(distances, expected[0], rtol=1e-14)
    np.testing.assert_array_equal(rows, expected[1])


def test_numbers_can_be_named_as_categories():
    X = np.array([[1.0, 10.0], [2.0, 20.0], [9.0, 30.0]])
    plain = KNeighborsClassifier(3, metric="gower").fit(X, list("abc"))
    np.testing.assert_allclose(
        plain.kneighbors([[1.5, 10.0]])[0], [[0.5 / 16, (0.5 / 8 + 0.5) / 2, (7.5 / 8 + 1) / 2]]
    )
    for table, named in ((X, [0]), (X, [-2]), (pd.DataFrame(X, columns=["code", "size"]), ["code"])):
        model = KNeighborsClassifier(3, metric="gower", metric_params={"categorical": named}).fit(
            table, list("abc")
        )
        query = table[:1].copy()
        assert model.kneighbors(query)[0].tolist() == [[0.0, 0.75, 1.0]]
    for bad in (["colour"], [2], [-3]):
        with pytest.raises(
            InputError, match=r"names the column .*, which the table does not have. Pass names"
        ):
            KNeighborsClassifier(1, metric="gower", metric_params={"categorical": bad}).fit(X, list("abc"))


def test_a_categorical_type_of_numbers_is_of_categories():
    table = pd.DataFrame({"code": pd.Categorical([1, 2, 9]), "size": [10.0, 20.0, 30.0]})
    model = KNeighborsClassifier(3, metric="gower").fit(table, list("abc"))
    assert model.kneighbors(table[:1])[0].tolist() == [[0.0, 0.75, 1.0]]
    with pytest.raises(InputError, match=r"held numbers in the training table, such as 1, but row 0 is '1'"):
        model.predict(pd.DataFrame({"code": ["1"], "size": [10.0]}))


def test_categories_that_were_never_seen_differ_from_all_others():
    model = KNeighborsClassifier(2, metric="gower").fit([["red"], ["blue"]], ["a", "b"])
    np.testing.assert_array_equal(model.kneighbors([["pink"]]), ([[1.0, 1.0]], [[0, 1]]))


def test_categories_that_come_with_later_rows_differ_from_each_other():
    table = rows_of(SIZES, COLOURS, ["x", "y", "x", "z", "w", "v"])
    whole = KNeighborsClassifier(3, metric="gower").fit(np.array(table, dtype=object), LABELS)
    model = KNeighborsClassifier(3, metric="gower")
    for row, label in zip(table, LABELS, strict=True):
        model.partial_fit(np.array([row], dtype=object), [label])
    asked = np.array([[2.0, "green", "w"], [None, "blue", "v"]], dtype=object)
    np.testing.assert_array_equal(model.kneighbors(asked), whole.kneighbors(asked))
    np.testing.assert_array_equal(model.kneighbors(), whole.kneighbors())
    model.certificate_.verify(np.array(table, dtype=object), LABELS)


def test_a_number_column_stays_one():
    model = KNeighborsClassifier(1, metric="gower").fit(
        pd.DataFrame({"size": [1.0, 2.0], "kind": ["a", "b"]}), [0, 1]
    )
    with pytest.raises(
        InputError, match=r"Column 'size' .* held numbers in the training table, but row 0 is 'big'"
    ):
        model.predict(pd.DataFrame({"size": ["big"], "kind": ["a"]}))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame({"size": [1.0]}))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame({"kind": ["a"], "size": [1.0]}))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1.0, "a"], [2.0]], "inhomogeneous|same length"),
        ([1.0, 2.0], "Expected 2D array"),
        (np.ones((2, 2)) * 1j, "Complex data not supported"),
        (pl.DataFrame({"d": [[1], [2]]}), "which are neither numbers nor categories"),
        (np.empty((0, 2)), "at least one row"),
        (np.empty((2, 0)), "pass at least one"),
    ],
)
def test_what_is_no_table_is_refused(table, message):
    with pytest.raises(InputError, match=message):
        KNeighborsClassifier(1, metric="gower").fit(table, [0, 1])


@pytest.mark.parametrize("metric", ["gower", "nan_euclidean"])
def test_missing_values_in_tables_of_numbers(metric):
    random = np.random.default_rng(0)
    X = np.where(random.uniform(size=(80, 4)) < 0.3, np.nan, random.normal(size=(80, 4)))
    y = random.normal(size=80)
    expected = KNeighborsRegressor(5, metric=metric).fit(X, y).kneighbors(X)
    names = list("abcd")
    for table in (
        pd.DataFrame(X, columns=names),
        pl.DataFrame(X, schema=names),
        pl.DataFrame(X, schema=names).fill_nan(None),
    ):
        model = KNeighborsRegressor(5, metric=metric).fit(table, y)
        np.testing.assert_array_equal(model.kneighbors(table), expected)
    filled = pd.DataFrame(X, columns=names).convert_dtypes()  # nullable columns
    np.testing.assert_array_equal(
        KNeighborsRegressor(5, metric=metric).fit(filled, y).kneighbors(filled), expected
    )


def test_rows_with_nothing_in_common_are_the_last():
    X = np.array([[np.nan, np.nan], [1.0, np.nan], [np.nan, 1.0]])
    model = KNeighborsClassifier(3, metric="nan_euclidean").fit(X, list("abc"))
    np.testing.assert_array_equal(
        model.kneighbors([[3.0, np.nan]]), ([[np.sqrt(8), np.inf, np.inf]], [[1, 0, 2]])
    )
    assert model.set_params(weights="distance").predict([[3.0, np.nan]]) == ["b"]


@pytest.mark.parametrize("number", [np.int64, np.float32, np.float64, int])
def test_numbers_of_any_type_are_numbers(number):
    table = pd.DataFrame(
        {"size": np.array([number(k) for k in (1, 2, 3, 5)], dtype=object), "kind": list("aabb")}
    )
    model = KNeighborsClassifier(1, metric="gower").fit(table, list("wxyz"))
    assert model.kneighbors(table[1:2], 4)[0].tolist() == [[0.0, 0.125, 0.625, 0.875]]
    assert model.explain(table.iloc[2]).answer == "y"


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_dates_are_refused(kind):
    table = kind({"day": pd.date_range("2024", periods=3).to_pydatetime(), "size": [1.0, 2.0, 3.0]})
    with pytest.raises(InputError, match="holds dates or times"):
        KNeighborsClassifier(1, metric="gower").fit(table, list("abc"))


def test_categories_may_be_told_by_true_and_false():
    X = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 40.0]])
    masked = KNeighborsRegressor(1, metric="gower", metric_params={"categorical": [False, True]})
    named = KNeighborsRegressor(1, metric="gower", metric_params={"categorical": [1]})
    found = [model.fit(X, [1, 2, 3]).kneighbors(X, 3)[0].tolist() for model in (masked, named)]
    assert found[0] == found[1] == [[0.0, 0.75, 1.0], [0.0, 0.75, 0.75], [0.0, 0.75, 1.0]]
