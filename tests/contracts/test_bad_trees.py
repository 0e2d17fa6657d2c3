"""What no tree can be grown from is refused with a sentence; what only looks odd gives a tree."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import DataConversionWarning

from contracts.refusals import LABELS, NAMES, X, changed, refuses
from sixfold import DecisionTreeClassifier, LinearRegression
from sixfold.errors import MemorisedColumn
from sixfold.solvers.trees.fitted_tree import Reason

# -- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"criterion": "entrop"}, "criterion='entrop' is not an option; did you mean 'entropy'?"),
        ({"splitter": "random"}, "splitter='random' is not an option: every split is the best of its node."),
        ({"max_depth": -1}, "max_depth=-1 is out of range: a whole number that is at least 0 or None"),
        ({"max_depth": 1.5}, "max_depth=1.5 is of type float: a whole number that is at least 0 or None"),
        ({"min_samples_split": 1}, "min_samples_split=1 is out of range: a whole number that is at least 2"),
        ({"min_samples_split": 1.5}, "at least 2, or a share above 0 and at most 1.0, is needed."),
        ({"min_samples_leaf": 0}, "at least 1, or a share above 0 and at most 1.0, is needed."),
        (
            {"min_samples_leaf": -0.5},
            "min_samples_leaf=-0.5 is out of range: a whole number that is at least",
        ),
        ({"min_samples_leaf": np.nan}, "min_samples_leaf=nan is out of range: a whole number that is at"),
        (
            {"min_samples_leaf": True},
            "min_samples_leaf=True is of type bool: a whole number that is at least",
        ),
        ({"min_samples_leaf": "few"}, "min_samples_leaf='few' is of type str: a whole number that is at"),
        ({"min_weight_fraction_leaf": 0.7}, "no split leaves more than half of the weight on both sides."),
        ({"min_weight_fraction_leaf": -1}, "min_weight_fraction_leaf=-1 is out of range"),
        (
            {"max_features": "auto"},
            "'sqrt', 'log2', None, a whole number that is at least 1, or a share above",
        ),
        ({"max_features": 0}, "max_features=0 is out of range: a whole number that is at least 1"),
        ({"max_features": 1.5}, "max_features=1.5 is out of range"),
        ({"max_features": [1]}, "max_features=[1] is of type list"),
        ({"random_state": "seed"}, "random_state='seed' cannot be used to seed"),
        ({"random_state": -1}, "random_state=-1 is out of range: a seed is a whole number from 0 to"),
        ({"random_state": 2**32}, "random_state=4294967296 is out of range"),
        (
            {"max_leaf_nodes": 1},
            "max_leaf_nodes=1 is out of range: a whole number that is at least 2 or None",
        ),
        ({"min_impurity_decrease": -1}, "min_impurity_decrease=-1 is out of range"),
        ({"class_weight": "even"}, "class_weight='even' is neither None, 'balanced' nor a dictionary"),
        ({"class_weight": {"tall": 0, "short": 0}}, "class_weight leaves every row without weight."),
        ({"ccp_alpha": -0.1}, "ccp_alpha=-0.1 is out of range: a number that is at least 0 is needed."),
        ({"base": np.array([2, 3])}, "base=array([2, 3]) is not an option"),
        ({"base": 10}, "base=10 is not an option: entropies are in bits (2) or nats ('e')."),
        ({"categories": "two"}, "categories='two' is not an option"),
        ({"unknown": "mean"}, "unknown='mean' is not an option. The options are 'branch', 'best'."),
        ({"categorical_features": ["town"]}, "categorical_features names the column 'town', which the table"),
        ({"categorical_features": 3}, "categorical_features is 3, which is no list of columns. Pass a list"),
        ({"categorical_features": np.array(0)}, "categorical_features is array(0), which is no list"),
        ({"categorical_features": [3]}, "categorical_features names the column 3, which the table"),
        ({"categorical_features": [True]}, "names the column True, which the table does not have."),
        ({"prune": "error"}, "prune='error' is not an option; did you mean 'reduced_error'?"),
        ({"validation_fraction": 1.0}, "rows to grow from have to be left. Use a share below 1."),
        ({"validation_fraction": 0}, "validation_fraction=0 is out of range"),
        ({"trace": "yes"}, "trace='yes' is of type str: True or False is needed."),
        ({"time_limit": 0}, "time_limit=0 is out of range: a number above 0 or None is needed."),
        ({"callbacks": print}, "is no sequence of callables. Pass a list, for instance [print]."),
        ({"n_jobs": 0}, "n_jobs=0 is no number of threads."),
    ],
    ids=str,
)
def test_parameters_that_make_no_sense_are_refused(parameters, sentence):
    with refuses(sentence):
        DecisionTreeClassifier(**parameters).fit(X, LABELS)


@pytest.mark.parametrize("limit", [11, 10**30, 10**400], ids=["11", "10**30", "10**400"])
@pytest.mark.parametrize("parameter", ["min_samples_leaf", "min_samples_split"])
def test_limits_that_no_node_meets_give_the_constant_model(parameter, limit):
    model = DecisionTreeClassifier(**{parameter: limit}).fit(X, LABELS)
    assert len(LABELS) == 10
    assert model.tree_.node_count == 1
    assert model.tree_.reason.tolist() == [Reason.LIMIT]


@pytest.mark.parametrize("parameter", ["max_depth", "max_leaf_nodes", "max_features"])
def test_limits_that_no_tree_reaches_are_none(parameter):
    model = DecisionTreeClassifier(**{parameter: 10**400}, random_state=2**32 - 1).fit(X, LABELS)
    assert model.export_text() == DecisionTreeClassifier().fit(X, LABELS).export_text()


@pytest.mark.parametrize("limit", [{"ccp_alpha": -1}, {"max_depth": -1}, {"max_leaf_nodes": 1}], ids=str)
def test_a_tree_is_not_cut_by_what_makes_no_sense(limit):
    [(name, value)] = limit.items()
    with refuses(f"{name}={value} is out of range"):
        DecisionTreeClassifier().fit(X, LABELS).pruned(**limit)


def test_several_columns_of_labels_are_refused():
    with refuses("DecisionTreeClassifier gives each row one label. Fit one model for each column."):
        DecisionTreeClassifier().fit(X, np.column_stack([LABELS, LABELS]))


@pytest.mark.parametrize(
    "kind", [np.asarray, np.float32, lambda X: pd.DataFrame(X, columns=["x0", "x1", "x2"])]
)
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused_with_its_place(kind, value):
    sentence = "2 such values, the first in row 4 of column 'x1' (number 1), counted from 0. Put NaN where"
    table = kind(changed(changed(X, (7, 2), value), (4, 1), value))
    with refuses(sentence):
        DecisionTreeClassifier().fit(table, LABELS)
    with refuses(sentence):
        DecisionTreeClassifier().fit(kind(X), LABELS).predict(table)


def test_text_where_numbers_were_is_refused():
    model = DecisionTreeClassifier().fit(X, LABELS)
    with refuses("Column 'x1' (number 1, counted from 0) held numbers in the training table, but row 0 is"):
        model.predict([[1.0, "a", 2.0]])


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, lambda table: list(zip(table["zip"]))])
def test_numbers_where_text_was_are_refused(kind):
    model = DecisionTreeClassifier(categorical_features=[0]).fit(
        kind({"zip": ["10115", "?", "20095"]}), [0, 1, 1]
    )
    with refuses("held text in the training table, such as '10115', but row 1 is 20095"):
        model.predict(kind({"zip": [None, 20095, 10115]}))
    with refuses("but row 0 is 10115.0. Turn the column into text first, as it was there."):
        model.predict(kind({"zip": [10115.0]}))
    assert model.predict(kind({"zip": ["20095", "new"]})).tolist() == [1, 1]
    nothing = {"zip": np.array([np.nan, np.nan])}
    assert model.predict(kind(nothing)).tolist() == [1, 1]


def test_text_where_categories_were_numbers_is_refused():
    model = DecisionTreeClassifier(categorical_features=["zip"]).fit(
        pd.DataFrame({"zip": [10115, 20095]}), [0, 1]
    )
    with refuses(
        "held numbers in the training table, such as 10115, but row 0 is '20095'. Turn the column into"
    ):
        model.predict(pd.DataFrame({"zip": ["20095"]}))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_text_where_yes_and_no_were_is_refused(kind):
    model = DecisionTreeClassifier().fit(kind({"paid": [True, False]}), [0, 1])
    with refuses(
        "held True and False in the training table, such as False, but row 0 is 'yes'. Turn the column "
        "into True and False first, as it was there."
    ):
        model.predict(kind({"paid": ["yes"]}))
    assert model.predict(kind({"paid": [1, 0]})).tolist() == [0, 1]


def test_names_of_columns_that_cannot_be_used_are_refused():
    for row in ([1.0, 2.0], ["a", 2.0]):
        table = pd.DataFrame([row] * 10)
        with refuses("- 'age' 2 times\nGive every column a name of its own."):
            DecisionTreeClassifier().fit(table.set_axis(["age", "age"], axis=1), LABELS)
        with refuses(
            "The names of the columns are of several types: int, str. Make text of all, for instance"
        ):
            DecisionTreeClassifier().fit(table.set_axis(["age", 1], axis=1), LABELS)


@pytest.mark.parametrize("value", [10**400, -(10**400)])
@pytest.mark.parametrize("other", [1, "a"])
def test_whole_numbers_too_large_for_any_float_are_refused_with_their_place(value, other):
    with refuses(
        "a value too large for float64: in row 1 of column 'x0' (number 0), counted from 0. Put NaN"
    ):
        DecisionTreeClassifier().fit([[1, other], [value, other]], [0, 1])


def test_they_are_refused_by_others_too():
    with refuses("X holds a whole number that is too large for float64. Divide its column."):
        LinearRegression().fit([[1], [10**400]], [0, 1])


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_other_columns_are_refused(kind):
    table = {"town": list("abcde") * 2, "age": X[:, 0]}
    model = DecisionTreeClassifier().fit(kind(table), LABELS)
    with refuses("unseen at fit time:\n- place\nFeature names seen at fit time, yet now missing:\n- town"):
        model.predict(kind({"place": ["a"], "age": [1.0]}))
    with refuses("Feature names must be in the same order as they were in fit."):
        model.predict(kind({"age": [1.0], "town": ["a"]}))
    nameless = DecisionTreeClassifier().fit([["a", 1.0], ["b", 2.0]], [0, 1])
    with refuses("X has 1 features, but DecisionTreeClassifier is expecting 2 features as input."):
        nameless.predict([["a"]])


# -- what is warned of -----------------------------------------------------------------------------------


def test_a_column_that_names_every_row_is_warned_of():
    rows = 100_000
    names = [f"customer {k}" for k in range(rows)]
    table = pd.DataFrame({"age": np.arange(rows) % 90, "name": names})
    labels = np.arange(rows) % 3 == 0
    with pytest.warns(
        MemorisedColumn, match=r"Column 'name' \(number 1, .*\) has 100000 categories"
    ) as caught:
        model = DecisionTreeClassifier(max_depth=1).fit(table, labels)
    assert caught[0].filename == __file__
    assert "memorises these rows and knows nothing about others. Drop the column" in str(caught[0].message)
    assert model.tree_.column[0] == 1
    assert model.score(table, labels) == 1.0


def customers(categories, rows):
    return pd.DataFrame({"name": [f"customer {k % categories}" for k in range(rows)]}), np.arange(rows) % 2


@pytest.mark.parametrize(("categories", "rows"), [(21, 104), (900, 900), (600, 2999)])
def test_few_rows_for_each_of_many_categories_are_warned_of(categories, rows):
    with pytest.warns(MemorisedColumn, match=f"has {categories} categories in {rows} rows") as caught:
        DecisionTreeClassifier(max_depth=1).fit(*customers(categories, rows))
    advice = "Drop the column, group its values, .*; categories='binary' helps only in part"
    assert re.search(advice, str(caught[0].message))


@pytest.mark.parametrize(("categories", "rows"), [(20, 20), (21, 105), (600, 3000)])
def test_fewer_categories_are_not_warned_of(categories, rows):
    DecisionTreeClassifier(max_depth=1).fit(*customers(categories, rows))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_numbers_written_as_text_are_warned_of(kind):
    columns = {"age": X[:, 0], "zip": ["10115", "20095"] * 5, "share": [" 0.5", "1e-3"] * 5}
    with pytest.warns(DataConversionWarning, match="numbers written as text") as caught:
        DecisionTreeClassifier().fit(kind(columns), LABELS)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "Column 'zip' (number 1, counted from 0), like 1 more, holds" in str(caught[0].message)
    assert "such as '10115', and is taken as categories." in str(caught[0].message)
    DecisionTreeClassifier(categorical_features=["zip", "share"]).fit(kind(columns), LABELS)
    DecisionTreeClassifier().fit(kind({**columns, "zip": ["10115", "none"] * 5, "share": X[:, 1]}), LABELS)


@pytest.mark.parametrize(
    ("kind", "advice", "numbers"),
    [
        (
            pd.DataFrame,
            "pandas.to_numeric(column, errors='coerce')",
            lambda x: pd.to_numeric(x, errors="coerce"),
        ),
        (
            pl.DataFrame,
            "column.cast(polars.Float64, strict=False)",
            lambda x: x.cast(pl.Float64, strict=False),
        ),
    ],
)
def test_the_advice_about_numbers_written_as_text_works_beside_unknown_values(kind, advice, numbers):
    table = kind({"a": ["1", "2", "?", "4"]})
    with pytest.warns(DataConversionWarning, match=re.escape(advice)):
        DecisionTreeClassifier().fit(table, [0, 0, 1, 1])
    model = DecisionTreeClassifier().fit(kind({"a": numbers(table["a"])}), [0, 0, 1, 1])
    assert model.predict(kind({"a": [1.5, 9.0, None]})).tolist() == [0, 1, 1]


def test_numbers_of_a_categorical_type_are_not_warned_of():
    table = pd.DataFrame({"zip": ["10115", "20095"] * 5}).astype("category")
    DecisionTreeClassifier().fit(table, LABELS)


@pytest.mark.parametrize(
    "kind",
    [
        np.array,
        np.ndarray.tolist,
        lambda X: X.astype(object),
        lambda X: pd.DataFrame(X, columns=["x0", "x1"]),
        lambda X: pl.DataFrame(X, schema=["x0", "x1"]),
        lambda X: pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "x2": ["a", "b"] * 5}),
    ],
    ids=["array", "lists", "objects", "pandas", "polars", "mixed"],
)
def test_whole_numbers_that_become_one_are_warned_of(kind):
    apart = np.column_stack([np.arange(10), 10**18 + 1000 * np.arange(10)])  # rounded, but different
    DecisionTreeClassifier().fit(kind(apart), LABELS)
    merged = np.column_stack([np.arange(10), -(2**53) - np.arange(10)])
    sentence = r"Column 'x1' \(number 1, counted from 0\) .* -9007199254741001 and -9007199254741000, for one"
    with pytest.warns(DataConversionWarning, match=sentence) as caught:
        DecisionTreeClassifier().fit(kind(merged), LABELS)
    assert [one.filename for one in caught] == [__file__]
    model = DecisionTreeClassifier(categorical_features=[1]).fit(kind(merged), LABELS)
    assert model.score(kind(merged), LABELS) == 1.0


# -- what gives a tree -----------------------------------------------------------------------------------


def test_one_class_is_a_leaf():
    model = DecisionTreeClassifier().fit(X, ["tall"] * 10)
    assert model.tree_.reason.tolist() == [Reason.PURE]
    assert model.predict(X).tolist() == ["tall"] * 10
    assert model.predict_proba(X).tolist() == [[1.0]] * 10
    assert model.log_likelihood_ == model.certificate_.gap == 0.0
    assert model.feature_importances_.tolist() == [0.0, 0.0, 0.0]
    model.certificate_.verify(X, ["tall"] * 10)


def test_no_depth_is_the_constant_model():
    model = DecisionTreeClassifier(max_depth=0).fit(X, LABELS)
    assert model.tree_.reason.tolist() == [Reason.LIMIT]
    assert model.predict_proba(X).tolist() == [[np.mean(name == LABELS) for name in ("short", "tall")]] * 10
    assert (model.get_depth(), model.get_n_leaves()) == (0, 1)


@pytest.mark.parametrize("nothing", [np.nan, None, "?"])
@pytest.mark.parametrize("unknown", ["branch", "best"])
def test_a_table_of_unknowns_is_a_leaf(nothing, unknown):
    table = np.full((10, 2), nothing)
    model = DecisionTreeClassifier(unknown=unknown).fit(table, LABELS)
    assert model.tree_.reason.tolist() == [Reason.EXHAUSTED]
    assert model.certificate_.gap == 0.0
    assert set(model.predict(table)) <= {"short", "tall"}


def test_a_column_of_unknowns_beside_others_splits_nothing():
    table = pd.DataFrame({"empty": [None] * 10, "age": X[:, 0]})
    model = DecisionTreeClassifier().fit(table, LABELS)
    assert 0 not in model.tree_.column
    assert model.score(table, LABELS) == 1.0


def test_whether_a_value_is_known_may_be_all_that_tells():
    table = np.array([[1.0], [1.0], [np.nan], [np.nan]])
    for unknown in ("branch", "best"):
        model = DecisionTreeClassifier(unknown=unknown).fit(table, [0, 0, 1, 1])
        assert model.predict(table).tolist() == [0, 0, 1, 1]
        assert model.tree_.threshold[0] == np.inf


def test_one_row_is_a_leaf():
    model = DecisionTreeClassifier(prune="reduced_error").fit(X[:1], LABELS[:1])
    assert model.tree_.node_count == 1
    assert model.predict(X).tolist() == [LABELS[0]] * 10


def test_names_are_kept():
    assert (
        DecisionTreeClassifier().fit(pd.DataFrame(X, columns=NAMES), LABELS).feature_names_in_.tolist()
        == NAMES
    )
