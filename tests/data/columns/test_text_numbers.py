from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold.data.columns.text_numbers import number_reading, parse_numbers


def read(texts: list[str], commas: bool = False) -> list[float | None] | None:
    reading = number_reading(pl.Series(texts).unique(maintain_order=True), commas)
    return None if reading is None else parse_numbers(pl.Series(texts), reading).to_list()


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1,234.50", "7"], [1234.5, 7.0]),
        (["1.234,50", "7"], [1234.5, 7.0]),
        (["1.234.567", "7"], [1234567.0, 7.0]),
        (["1 234,50", "1\u00a0234,5", "1\u202f000"], [1234.5, 1234.5, 1000.0]),
        (["1'234.50", "1\u2019000"], [1234.5, 1000.0]),
        (["12,34,567.5", "1,000"], [1234567.5, 1000.0]),
        (["0,125", "1,5"], [0.125, 1.5]),
        (["1,234", "987"], [1234.0, 987.0]),
        (["$5", "-$5", "$-5", "($5.50)", "$(5)"], [5.0, -5.0, -5.0, -5.5, -5.0]),
        (["5 €", "5,5€", "-1.000,00 €", "(3 €)"], [5.0, 5.5, -1000.0, -3.0]),
        (["CHF 1'000.00", "CHF 5"], [1000.0, 5.0]),
        (["USD 5", "$6", "7"], [5.0, 6.0, 7.0]),
        (["1,234-", "5"], [-1234.0, 5.0]),
        (["(1,234)", "5"], [-1234.0, 5.0]),
        (["12%", "-3.5 %"], [12.0, -3.5]),
        (["\u22125", "+5"], [-5.0, 5.0]),
        (["1e5", "1.5E-3", ".5", "5."], [1e5, 1.5e-3, 0.5, 5.0]),
    ],
)
def test_numbers_as_people_write_them(texts: list[str], values: list[float]) -> None:
    assert read(texts) == values


@pytest.mark.parametrize(
    "texts",
    [
        ["5 kg", "6 kg"],
        ["007", "123"],
        ["$5", "€5"],
        ["5%", "5"],
        ["1.2.3", "4.5.6"],
        ["10-20", "20-30"],
        ["1,2,3"],
        ["+491701234567", "+491701234568"],
        ["12:30", "13:45"],
        ["-", "--"],
        ["1,5", "1.5"],
        ["$", "5"],
        ["0x1F", "0x20"],
        ["1_000", "2"],
    ],
)
def test_what_is_no_number_stays_text(texts: list[str]) -> None:
    assert read(texts) is None


def test_other_columns_decide_what_a_single_comma_is() -> None:
    assert read(["1,234"]) == [1234.0]
    assert read(["1,234"], commas=True) == [1.234]
    assert read(["1.234"]) == [1.234]
    assert read(["1.234"], commas=True) == [1234.0]


def test_one_value_decides_for_a_column() -> None:
    assert read(["1,234", "0,5"]) == [1.234, 0.5]
    assert read(["1,234", "5,6789"]) == [1.234, 5.6789]


def group(digits: str, mark: str) -> str:
    head = len(digits) % 3 or 3
    return mark.join([digits[:head], *(digits[k : k + 3] for k in range(head, len(digits), 3))])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(-1e12, 1e12).map(lambda value: round(value, 2)), min_size=1, max_size=8),
    st.sampled_from([(".", ","), (",", "."), (",", " "), (".", "'"), (".", "")]),
    st.sampled_from(["{}", "${}", "{} €", "{}%", "CHF {}", "({})"]),
)
def test_what_is_written_is_read(values: list[float], marks: tuple[str, str], dress: str) -> None:
    decimal, thousands = marks
    texts = []
    for value in values:
        whole, fraction = f"{abs(value):.2f}".split(".")
        text = group(whole, thousands) + decimal + fraction
        negative = math.copysign(1.0, value) < 0
        texts.append(dress.format(text) if dress == "({})" else "-" * negative + dress.format(text))
    found = read(texts)
    expected = [-abs(value) for value in values] if dress == "({})" else values
    assert found == expected


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=12), min_size=1, max_size=5))
def test_any_text_is_read_or_left(texts: list[str]) -> None:
    found = read([text.strip() for text in texts])
    assert found is None or all(value is not None for value in found)
