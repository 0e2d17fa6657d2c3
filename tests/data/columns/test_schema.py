from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest

from sixfold.data.columns.schema import ColumnSchema, TableSchema, infer_schema, infer_task, nearest
from sixfold.errors import InputError

ROWS = 60
RNG = np.random.default_rng(0)
FRAME = pl.DataFrame(
    {
        "price": [f"${k * 37:,}.50" for k in range(ROWS)],
        "colour": ["red", "blue", "green"] * (ROWS // 3),
        "member": ["yes", "no"] * (ROWS // 2),
        "since": [f"{1 + k % 28:02d}.{1 + k % 12:02d}.2024" for k in range(ROWS)],
        "code": [f"k-{k}" for k in range(ROWS)],
        "weight": [1.0, 2.0] * (ROWS // 2),
        "household": [k // 4 for k in range(ROWS)],
        "label": ["a", "b"] * (ROWS // 2),
        "amount": RNG.random(ROWS),
        "grade": [1, 2, 3] * (ROWS // 3),
    }
)


def schema_of(**columns: Any) -> tuple[pl.DataFrame, TableSchema]:
    frame = pl.DataFrame(
        {**columns, "y": ([0.5, 1.5] * 500)[: len(next(iter(columns.values())))]}, strict=False
    )
    return frame, infer_schema(frame, "y")


def test_roles_kinds_and_tasks() -> None:
    schema = infer_schema(FRAME, "label", weights="weight", groups="household", ids=["grade"])
    assert {one.name: (one.kind, one.role) for one in schema.columns} == {
        "price": ("number", "feature"),
        "colour": ("category", "feature"),
        "member": ("boolean", "feature"),
        "since": ("date", "feature"),
        "code": ("identifier", "set aside"),
        "weight": ("number", "weight"),
        "household": ("category", "group"),
        "label": ("category", "target"),
        "amount": ("number", "feature"),
        "grade": ("identifier", "set aside"),
    }
    assert [one.name for one in schema.features] == ["price", "colour", "member", "since", "amount"]
    assert [one.reason for one in schema.set_aside] == ["every value is different", "named as an identifier"]
    assert infer_task(schema) == "classification"
    assert infer_task(infer_schema(FRAME, "amount")) == "regression"
    assert infer_task(infer_schema(FRAME, "price")) == "regression"
    assert infer_task(infer_schema(FRAME, "grade")) == "classification"
    assert infer_task(infer_schema(FRAME, "grade", task="regression")) == "regression"
    assert infer_task(infer_schema(FRAME, "member")) == "classification"


def test_values_of_each_role() -> None:
    schema = infer_schema(FRAME, "label", weights="weight", groups="household")
    typed = schema.typed(FRAME)
    assert dict(typed.schema) == {
        "price": pl.Float64,
        "colour": pl.String,
        "member": pl.String,
        "since": pl.Datetime("ms"),
        "amount": pl.Float64,
        "grade": pl.Float64,
    }
    assert typed.row(1)[:4] == (37.5, "blue", "no", datetime.datetime(2024, 2, 2))
    assert schema.target_values(FRAME).tolist() == ["a", "b"] * (ROWS // 2)
    weights = schema.column_values(FRAME, "weight")
    assert weights is not None
    assert weights.dtype == np.float64
    groups = schema.column_values(FRAME, "group")
    assert groups is not None
    assert groups[:5].tolist() == ["0", "0", "0", "0", "1"]
    assert infer_schema(FRAME, "label").column_values(FRAME, "weight") is None
    np.testing.assert_array_equal(
        infer_schema(FRAME, "amount").target_values(FRAME), FRAME["amount"].to_numpy()
    )


def test_labels_that_are_numbers_are_the_same_from_text_and_numbers() -> None:
    schema = infer_schema(FRAME, "grade")
    expected = ["1", "2", "3"] * (ROWS // 3)
    assert schema.target_values(FRAME).tolist() == expected
    for kind in (pl.Float64, pl.String, pl.Int8):
        assert schema.target_values(FRAME.with_columns(pl.col("grade").cast(kind))).tolist() == expected
    text = FRAME.with_columns(pl.col("grade").cast(pl.Float64).cast(pl.String))
    assert text["grade"][0] == "1.0"
    assert schema.target_values(text).tolist() == expected


def test_long_whole_numbers_stay_different_as_labels() -> None:
    keys = [2**53, 2**53 + 1] * 20
    frame = pl.DataFrame({"x": [1.5, 2.5] * 20, "y": keys, "z": ["a", "b"] * 20})
    labels = [str(key) for key in keys]
    for one in (frame, frame.with_columns(pl.col("y").cast(pl.String))):
        schema = infer_schema(one, "y")
        assert schema.target_values(one).tolist() == labels
        groups = infer_schema(one, "x", groups="y").column_values(one, "group")
        assert groups is not None
        assert groups.tolist() == labels


def test_fractions_may_be_classes_where_that_is_asked_for() -> None:
    frame = pl.DataFrame({"x": ["a", "b"] * 4, "y": [0.5, 1.0, None, 1.0] * 2})
    schema = infer_schema(frame, "y", task="classification")
    assert schema.target_values(frame).tolist()[:4] == ["0.5", "1", None, "1"]


def test_missing_targets_are_none_or_nan() -> None:
    frame = pl.DataFrame({"x": [1.5, 2.5, 3.5, 3.0] * 2, "y": ["a", "n/a", "", "b"] * 2})
    schema = infer_schema(frame, "y")
    assert schema.target_values(frame).tolist()[:4] == ["a", None, None, "b"]
    assert schema.target is not None
    assert schema.target.missing == 4
    numbers = pl.DataFrame({"x": ["a", "b", "a", "b"], "y": [1.5, None, float("nan"), 2.5]})
    found = infer_schema(numbers, "y").target_values(numbers)
    np.testing.assert_array_equal(found, [1.5, np.nan, np.nan, 2.5])


def test_a_class_of_one_row_is_said() -> None:
    frame = pl.DataFrame({"x": range(2, 22, 2), "y": ["a"] * 5 + ["b"] * 4 + ["c"]})
    target = infer_schema(frame, "y").target
    assert target is not None
    assert target.reason == "1 class of one row only: c"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"target": "lable"},
            r"no column 'lable' for the target\. Did you mean 'label'\? The columns are 'price'",
        ),
        ({"target": "xyzxyz"}, r"no column 'xyzxyz' for the target\. The columns are"),
        ({"target": "Label "}, r"Did you mean 'label'\?"),
        ({"target": "label", "weights": "wieght"}, r"for the weight\. Did you mean 'weight'\?"),
        ({"target": "label", "groups": "houshold"}, r"for the group\. Did you mean 'household'\?"),
        ({"target": "label", "ids": ["kode"]}, r"for the identifier\. Did you mean 'code'\?"),
        ({"target": "label", "weights": "label"}, "cannot be the target and the weight"),
        ({"target": "label", "weights": "colour"}, r"'colour', row 1: 'red' is not a number"),
        ({"target": "colour", "task": "regression"}, r"'colour', row 1: 'red' is not a number"),
        ({"target": "code"}, "different in every row"),
        ({"target": "since"}, "holds dates"),
        ({"target": "since", "task": "regression"}, r"'since', row 1: '01.01.2024' is not a number"),
        ({"target": "label", "task": "clustering"}, "task='clustering' is not an option"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        infer_schema(FRAME, **arguments)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a"] * 4, "'y' is a in every row"),
        ([1, 1, 1, 1], "'y' is 1 in every row"),
        (["a", None, "a", "n/a"], "'y' is a in every row that has a value"),
        ([None] * 4, "'y' has no values"),
        (["", "N/A", "?", "-"], "'y' has no values"),
        ([[1], [2], [3], [4]], "'y' holds lists"),
    ],
)
def test_targets_that_cannot_be_learned(values: list[Any], message: str) -> None:
    frame = pl.DataFrame({"x": [1.5, 2.5, 3.5, 4.5], "y": values})
    with pytest.raises(InputError, match=message):
        infer_schema(frame, "y")


def test_weights_must_be_numbers_from_zero_on() -> None:
    for wrong, what in ((-1.0, "is -1"), (None, "is missing")):
        frame = FRAME.with_columns(weight=pl.Series([1.0] * 7 + [wrong] + [2.0] * (ROWS - 8)))
        with pytest.raises(InputError, match=f"'weight', row 8: the weight {what}"):
            infer_schema(frame, "label", weights="weight")
    with pytest.raises(InputError, match="only weights of 0"):
        infer_schema(FRAME.with_columns(weight=pl.lit(0.0)), "label", weights="weight")


def test_rows_without_a_group_are_one_group() -> None:
    frame = FRAME.with_columns(household=pl.Series([None, "a", "n/a"] + ["b"] * (ROWS - 3)))
    groups = infer_schema(frame, "label", groups="household").column_values(frame, "group")
    assert groups is not None
    assert groups[:4].tolist() == ["(missing)", "a", "(missing)", "b"]


def test_nothing_to_predict_from() -> None:
    frame = pl.DataFrame({"x": ["k"] * 4, "y": ["a", "b"] * 2})
    with pytest.raises(InputError, match=r"No column is left to predict from\. Set aside were 'x': is k in"):
        infer_schema(frame, "y")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.5, None, 1e20, -0.25], ["1.5", "", "1e20", " -0.25 "]),
        ([1, 2, None, 12345], ["1", "2", "NA", "12,345"]),
        ([Decimal("1.50"), Decimal(2), None, Decimal(7)], ["1.50", "2.00", None, "7"]),
        (["a", None, "b", "a"], ["a ", "?", " b", "a"]),
        (
            [
                datetime.datetime(2024, 1, 31, 12),
                None,
                datetime.datetime(2024, 2, 1),
                datetime.datetime(2024, 2, 1),
            ],
            ["2024-01-31 12:00:00", "", "2024-02-01 00:00:00", "2024-02-01 00:00:00"],
        ),
        (
            [datetime.date(2024, 1, 31), None, datetime.date(2024, 2, 1), datetime.date(2024, 2, 1)],
            ["2024-01-31", None, "2024-02-01", "2024-02-01"],
        ),
        (
            [datetime.time(14, 30), None, datetime.time(1), datetime.time(2)],
            ["14:30:00", "", "01:00:00", "02:00:00"],
        ),
        ([True, None, False, True, False], ["true", "", "false", "true ", "false"]),
    ],
)
def test_text_and_types_give_the_same_values(values: list[Any], text: list[Any]) -> None:
    frame, schema = schema_of(x=values)
    texts, text_schema = schema_of(x=text)
    expected = schema.typed(frame)
    assert expected["x"].null_count() == 1
    assert schema.typed(texts).equals(expected)
    assert text_schema.typed(texts).equals(expected)
    assert text_schema.typed(frame).equals(expected)


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["a", "b"]), pl.String])
def test_types_of_text(kind: Any) -> None:
    frame, schema = schema_of(x=pl.Series(["a", "b", None, "a"]).cast(kind))
    assert schema.typed(frame)["x"].to_list() == ["a", "b", None, "a"]


@pytest.mark.parametrize("kind", [pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.Decimal(20, 2)])
def test_types_of_numbers(kind: Any) -> None:
    frame, schema = schema_of(x=pl.Series([1, 5, None, 3]).cast(kind))
    assert schema.typed(frame)["x"].to_list() == [1.0, 5.0, None, 3.0]


def test_zones_become_utc() -> None:
    zoned = pl.Series([datetime.datetime(2024, 1, 1, 12), datetime.datetime(2024, 1, 2, 12)])
    frame, schema = schema_of(x=zoned.dt.replace_time_zone("Europe/Berlin"))
    assert schema.typed(frame)["x"][0] == datetime.datetime(2024, 1, 1, 11)
    texts, schema = schema_of(x=["2024-01-01T12:00:00+01:00", "2024-01-01T12:00:00Z"])
    assert schema.typed(texts)["x"].to_list() == [datetime.datetime(2024, 1, 1, hour) for hour in (11, 12)]


def test_what_does_not_fit_is_named_with_its_row() -> None:
    schema = infer_schema(FRAME, "label")
    wrong = FRAME.with_columns(amount=pl.Series(["1.5"] * 30 + ["lots"] + ["2"] * (ROWS - 31)))
    with pytest.raises(InputError, match=r"Column 'amount', row 31: 'lots' is not a number\. Correct it"):
        schema.typed(wrong)
    with pytest.raises(InputError, match="row 1,031"):
        schema.typed(wrong, first_row=1000)
    late = FRAME.with_columns(since=pl.lit("2024-01-31"))
    with pytest.raises(
        InputError, match=r"Column 'since', row 1: '2024-01-31' is not a date like 31\.12\.2024"
    ):
        schema.typed(late)
    with pytest.raises(InputError, match="'since', row 1: '5' is not a date"):
        schema.typed(FRAME.with_columns(since=pl.lit(5)))
    with pytest.raises(InputError, match="'amount', row 1: '2024-01-31' is not a number"):
        schema.typed(FRAME.with_columns(amount=pl.lit(datetime.date(2024, 1, 31))))
    with pytest.raises(InputError, match="single values are needed"):
        schema.typed(FRAME.with_columns(colour=pl.Series([[1]] * ROWS)))


def test_new_categories_and_missing_words_pass() -> None:
    schema = infer_schema(FRAME, "label")
    new = FRAME.head(3).with_columns(
        colour=pl.Series(["violet", "N/A", "red "]),
        member=pl.Series(["YES", "maybe", "n/a"]),
        price=pl.lit("unknown"),
    )
    typed = schema.typed(new)
    assert typed["colour"].to_list() == ["violet", None, "red"]
    assert typed["member"].to_list() == ["yes", "maybe", None]
    assert typed["price"].to_list() == [None] * 3


def test_columns_may_be_in_any_order_and_more() -> None:
    schema = infer_schema(FRAME, "label")
    turned = FRAME.select(reversed(FRAME.columns)).with_columns(more=pl.lit(1)).drop("label", "code")
    assert schema.typed(turned).equals(schema.typed(FRAME))
    assert schema.extra_columns(turned) == ["more"]


def test_columns_that_are_not_there_are_named() -> None:
    schema = infer_schema(FRAME, "label")
    with pytest.raises(
        InputError, match=r"Column 'colour' \(there is 'color'\) is not in the table, but needed"
    ):
        schema.typed(FRAME.rename({"colour": "color"}))
    with pytest.raises(
        InputError, match="Columns 'price', 'colour', 'member', 'since', 'weight' and 3 more are"
    ):
        schema.check_columns(pl.DataFrame({"z": [1]}))
    with pytest.raises(InputError, match="'label' is not in the table"):
        schema.target_values(FRAME.drop("label"))


def test_empty_and_one_row() -> None:
    schema = infer_schema(FRAME, "label")
    assert schema.typed(FRAME.head(0)).shape == (0, len(schema.features))
    assert schema.typed(FRAME.head(1)).height == 1
    assert schema.target_values(FRAME.head(0)).shape == (0,)


def test_nearest() -> None:
    assert nearest("TARGET", ["id", "target"]) == "target"
    assert nearest("", []) is None


PLAIN = infer_schema(FRAME, "label", weights="weight", groups="household").to_dict()


def test_round_trip_through_json() -> None:
    again = TableSchema.from_dict(json.loads(json.dumps(PLAIN)))
    assert again == infer_schema(FRAME, "label", weights="weight", groups="household")
    assert again.typed(FRAME).equals(
        infer_schema(FRAME, "label", weights="weight", groups="household").typed(FRAME)
    )


def changed(**changes: Any) -> dict[str, Any]:
    plain = json.loads(json.dumps(PLAIN))
    plain["columns"][0] |= changes
    return plain


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        (None, "a list of 'columns'"),
        ([], "a list of 'columns'"),
        ({}, "a list of 'columns'"),
        ({"columns": {}}, "a list of 'columns'"),
        ({"columns": [], "more": 1}, "a list of 'columns'"),
        ({"columns": [None]}, "Column 1 of the schema must have"),
        ({"columns": [{"name": "x"}]}, "Column 1 of the schema must have"),
        (changed(more=1), "and nothing else"),
        (changed(name=3), "'name' must be text"),
        (changed(name="colour"), "has the name 'colour' of another one"),
        (changed(kind="colour"), "is not a kind"),
        (changed(kind="text"), "of kind 'text' cannot be a feature"),
        (changed(role="boss"), "is not a role"),
        (changed(role="target"), "more than one target"),
        (changed(role="weight"), "more than one weight"),
        (changed(missing=-1), "'missing' must be a whole number"),
        (changed(missing=True), "'missing' must be a whole number"),
        (changed(distinct=1.5), "'distinct' must be a whole number"),
        (changed(examples="abc"), "'examples' must be a list"),
        (changed(examples=[1]), "'examples' must be a list"),
        (changed(reading=[]), "'reading' must be a mapping"),
        (changed(reading={"decimal": "x"}), "entry 'decimal'"),
        (changed(reading={"decimal": ["."]}), "entry 'decimal'"),
        (changed(reading={"thousands": "."}), "are the same"),
        (changed(reading={"format": "%n%n%n"}), "entry 'format'"),
        (changed(reading={"time": "%Y"}), "entry 'time'"),
        (changed(reading={"missing": "NA"}), "entry 'missing'"),
        (changed(reading={"percent": 1}), "entry 'percent'"),
        (changed(reading={"true": "yes"}), "both 'true' and 'false'"),
        (changed(reading={"currency": 5}), "entry 'currency'"),
        (changed(reading={"code": "x"}), "entry 'code'"),
    ],
)
def test_plain_data_is_not_trusted(plain: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TableSchema.from_dict(plain)


def test_many_whole_numbers_are_amounts_but_perhaps_classes() -> None:
    X = [0.5 * (k % 97) for k in range(1000)]
    codes = infer_schema(pl.DataFrame({"x": X, "y": [k % 26 for k in range(1000)]}), "y").target
    assert codes is not None
    assert codes.kind == "number"
    assert "--task classification" in codes.reason
    for values in ([k % 26 + 0.5 for k in range(1000)], [k % 200 for k in range(1000)]):
        amounts = infer_schema(pl.DataFrame({"x": X, "y": values}), "y").target
        assert amounts is not None
        assert amounts.reason == ""


def test_a_schema_without_target() -> None:
    schema = TableSchema((ColumnSchema("x", "number"),))
    assert schema.target is None
    with pytest.raises(InputError, match="no target"):
        schema.target_values(FRAME)
    with pytest.raises(InputError, match="no target"):
        infer_task(schema)
