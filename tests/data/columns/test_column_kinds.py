from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest

from sixfold.data.columns.column_kinds import column_kind
from sixfold.data.columns.kind import Customs

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "b", "a", "b"], "category"),
        (["yes", "No", "YES", "no"], "boolean"),
        ([True, False, None], "boolean"),
        (["1", "0", "1", "0"], "number"),
        ([0, 1, 1, 0], "number"),
        ([None, None], "empty"),
        (["", "N/A", "?"], "empty"),
        ([float("nan")] * 3, "empty"),
        (["x"] * 4, "constant"),
        ([3, 3, 3], "constant"),
        (["x", None, "x"], "category"),
        ([5.0, None, 5.0], "number"),
        (["02139", "10001", "02139"] * 4, "category"),
        ([2019, 2020, 2019, 2021], "number"),
        ([20240131, 20240201, 20240201], "date"),
        (["2:30 PM", "11:05 AM", "2:30 PM"], "number"),
        ([Decimal("1.5"), Decimal("2.5")], "number"),
        ([datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)], "date"),
        ([datetime.time(1), datetime.time(2)], "number"),
        ([datetime.timedelta(1), datetime.timedelta(2)], "number"),
        ([[1], [2]], "text"),
        ([{"a": 1}, {"a": 2}], "text"),
        ([b"1", b"2"], "text"),
        (["5 kg", "6 kg", "5 kg", "6 kg"], "category"),
        (["+", "-", "+", "-"], "category"),
        (["None", "Basic", "None", "Basic"], "category"),
    ],
)
def test_kinds(values: list[Any], kind: str) -> None:
    assert column_kind(pl.Series("x", values)).kind == kind


@pytest.mark.parametrize("kind", [pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.Decimal(10, 2)])
def test_every_type_of_number(kind: Any) -> None:
    found = column_kind(pl.Series("x", [1, 2, None, 2]).cast(kind))
    assert (found.kind, found.missing, found.distinct, found.examples) == ("number", 1, 2, ("1", "2"))


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["b", "a"])])
def test_types_of_categories(kind: Any) -> None:
    assert column_kind(pl.Series("x", ["a", "b", "a", "b"]).cast(kind)).kind == "category"


def test_row_numbers_are_identifiers_even_as_text() -> None:
    assert column_kind(pl.Series("x", range(1, 31))).kind == "identifier"
    assert column_kind(pl.Series("x", [str(k) for k in range(30)])).kind == "identifier"
    assert column_kind(pl.Series("x", [float(k) for k in range(30)])).kind == "number"
    assert column_kind(pl.Series("x", range(1, 6))).kind == "number"
    assert column_kind(pl.Series("x", range(2, 62, 2))).kind == "number"


@pytest.mark.parametrize("name", ["id", "ID", "customer_id", "Customer Id", "orderId", "uuid", "key"])
def test_a_name_makes_different_whole_numbers_identifiers(name: str) -> None:
    values = RNG.permutation(1000)[:50]
    assert column_kind(pl.Series(name, values)).kind == "identifier"
    assert column_kind(pl.Series("paid", values)).kind == "number"
    assert column_kind(pl.Series(name, values // 100)).kind == "number"


def test_text_that_does_not_repeat_is_set_aside_with_a_reason() -> None:
    unique = column_kind(pl.Series("x", [f"k{k}" for k in range(30)]))
    assert (unique.kind, unique.used, unique.reason) == ("identifier", False, "every value is different")
    rare = column_kind(pl.Series("name", [f"k{k}" for k in range(20)] * 1 + ["k1"] * 10))
    assert (rare.kind, rare.reason) == ("text", "20 different values in 30 rows, 1.5 rows for each")
    words = column_kind(pl.Series("x", [f"the dog number {k} barks" for k in range(30)]))
    assert (words.kind, words.reason) == ("text", "free text, 5 words on average")
    sentences = column_kind(pl.Series("x", ["the dog barks at night", "the cat sleeps by day"] * 20))
    assert sentences.kind == "category"


def test_missing_words_among_numbers() -> None:
    found = column_kind(pl.Series("x", ["1,5", "n/a", " ", "unknown", "2,5", None]))
    assert (found.kind, found.missing, found.distinct) == ("number", 4, 2)
    assert found.reading == {"decimal": ",", "missing": ["n/a", "unknown"]}


def test_points_in_missing_words_are_no_thousands() -> None:
    found = column_kind(pl.Series("x", ["1,5", "k.A.", "2,5"]))
    assert (found.reading, found.reason) == ({"decimal": ",", "missing": ["k.A."]}, "decimal commas")


def test_unknown_is_a_category_among_categories_and_na_a_country() -> None:
    found = column_kind(pl.Series("x", ["a", "Unknown", "a", "None", "Unknown", "None", "n/a"]))
    assert (found.distinct, found.missing) == (3, 1)
    country = column_kind(pl.Series("x", ["DE", "NA", "ZA", "FR"] * 5))
    assert (country.distinct, country.missing, country.reading) == (4, 0, {"kept": ["NA"]})


def test_few_odd_words_among_numbers_are_missing_and_said() -> None:
    found = column_kind(pl.Series("x", [f"{k}.5" for k in range(60)] + ["offline", "offline"]))
    assert (found.kind, found.missing, found.reading["missing"]) == ("number", 2, ["offline"])
    assert found.reason == "'offline' counted as missing (2 rows)"
    many = column_kind(pl.Series("x", [f"{k}.5" for k in range(60)] + ["offline"] * 20))
    assert many.kind == "text"
    assert "most are numbers, but not 'offline'" in many.reason


def test_several_currencies_are_no_numbers() -> None:
    found = column_kind(pl.Series("x", [f"${k}" for k in range(20)] + [f"€{k}" for k in range(20)]))
    assert not found.used
    assert "several currencies ($, €)" in found.reason


def test_infinite_numbers_and_stand_ins_are_said() -> None:
    found = column_kind(pl.Series("x", [1.0, 2.0, float("inf"), float("nan"), None]))
    assert (found.missing, found.distinct, found.reason) == (3, 2, "1 infinite value counted as missing")
    stand_in = column_kind(pl.Series("x", [1.5, 2.5, -999.0, -999.0, 3.5]))
    assert "-999 in 2 rows is far from the others" in stand_in.reason
    assert column_kind(pl.Series("x", [-999.0, -998.5, -999.0, -1001.0])).reason == ""


def test_decimal_commas_elsewhere_make_points_thousands() -> None:
    found = column_kind(pl.Series("x", ["1.234", "2.500"]), Customs(commas=True))
    assert found.reading == {"decimal": ",", "thousands": "."}


def test_unicode_and_long_text() -> None:
    assert column_kind(pl.Series("größe", ["großer Hund 🐕", "kleine Katze"] * 3)).kind == "category"
    found = column_kind(pl.Series("x", ["a" * 100_000, "b"] * 3))
    assert max(len(one) for one in found.examples) == 60


def test_long_columns_are_as_short_ones() -> None:
    rows = 120_000
    whole = RNG.integers(0, 10**15, rows)
    columns = {
        "hex": [f"{k:x}q" for k in range(rows)],
        "text": [f"some words about thing {k}" for k in range(rows)],
        "gaps": ["n/a" if k % 7 == 0 else f"k{k}" for k in range(rows)],
        "half": [f"k{k % (rows // 3)}" for k in range(rows)],
        "twice": [f"k{k % (2 * rows // 3)}" for k in range(rows)],
        "number": [f"{value:,}" for value in whole],
        "late": [*(["1,5"] * (rows - 1)), "late"],
        "code": [*(str(100 + k % 800) for k in range(rows - 1)), "007"],
        "late date": [*(["1/2/2024"] * (rows - 1)), "1/13/2024"],
    }
    kinds = {name: column_kind(pl.Series(name, values)) for name, values in columns.items()}
    assert {name: one.kind for name, one in kinds.items()} == {
        "hex": "identifier",
        "text": "text",
        "gaps": "identifier",
        "half": "category",
        "twice": "text",
        "number": "number",
        "late": "number",
        "code": "category",
        "late date": "date",
    }
    assert kinds["gaps"].missing == -(-rows // 7)
    assert kinds["gaps"].distinct == rows - kinds["gaps"].missing
    assert kinds["late"].reading == {"decimal": ",", "missing": ["late"]}
    assert kinds["late date"].reading == {"format": "%m/%d/%Y"}
    assert kinds["late date"].reason == ""
    assert kinds["number"].reading == {"thousands": ","}
