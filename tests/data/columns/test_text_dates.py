from __future__ import annotations

import datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold.data.columns.text_dates import (
    date_formats,
    date_reading,
    date_series,
    fitting_formats,
    time_format,
)


def read(texts: list[str], day_first: bool | None = None, commas: bool = False) -> list[object] | None:
    found = date_reading(pl.Series(texts), day_first, commas)
    return None if found is None else date_series(pl.Series(texts), found[0]["format"]).to_list()


DAY = datetime.datetime(2024, 1, 31)


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-31",
        "31.01.2024",
        "31.1.2024",
        "1/31/2024",
        "31/01/24",
        "31 Jan 2024",
        "31. January 2024",
        "January 31, 2024",
        "31-Jan-24",
        "2024/01/31",
        "20240131",
        "2024-01-31 00:00",
        "2024-01-31T00:00:00Z",
        "2024-01-31 00:00:00.000",
        "1/31/2024 12:00 AM",
        "31.01.2024, 00:00:00",
        "2024-01-31T01:00:00+01:00",
        "2024-01-31 05:30:00 +0530",
        "1/31/24 12:00:00 am",
        "2024.01.31",
        "20240131T000000Z",
    ],
)
def test_one_day_written_in_many_ways(text: str) -> None:
    assert read([text]) == [DAY]
    (form,) = fitting_formats(pl.Series([text]))
    assert form in date_formats()


@pytest.mark.parametrize(
    "texts",
    [
        ["1.5", "2.25"],
        ["1.2.3", "4.5.6"],
        ["2024", "2025"],
        ["12345678"],
        ["3/4", "1/2"],
        ["31.02.2024"],
        ["10-20", "20-30"],
        ["2024-01-31", "soon"],
        ["192.168.1.1"],
        ["1-2-3-4"],
        ["A 1", "B 2"],
        [""],
    ],
)
def test_what_is_no_date(texts: list[str]) -> None:
    assert read(texts) is None


def test_a_thirteenth_shows_where_the_day_is() -> None:
    assert read(["1/2/2024", "13/2/2024"]) == [datetime.datetime(2024, 2, 1), datetime.datetime(2024, 2, 13)]
    assert read(["1/2/2024", "2/13/2024"]) == [datetime.datetime(2024, 1, 2), datetime.datetime(2024, 2, 13)]


def test_other_columns_and_then_custom_decide_where_none_does() -> None:
    first, second = [datetime.datetime(2024, 2, 1)], [datetime.datetime(2024, 1, 2)]
    assert read(["1/2/2024"]) == second
    assert read(["1/2/2024"], commas=True) == first
    assert read(["1/2/2024"], day_first=True) == first
    assert read(["1.2.2024"]) == first
    assert read(["1.2.2024"], day_first=False) == second
    found = date_reading(pl.Series(["1/2/2024"]), None, False)
    assert found is not None
    assert "month first" in found[1]


def test_times_of_day() -> None:
    assert time_format(pl.Series(["14:30", "2:05"])) == "%H:%M"
    assert time_format(pl.Series(["2:30 PM"])) == "%I:%M %p"
    assert time_format(pl.Series(["25:00"])) is None
    assert time_format(pl.Series(["14:30", "noon"])) is None


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.datetimes(datetime.datetime(1000, 1, 1), datetime.datetime(2900, 1, 1)), min_size=1, max_size=5
    ),
    st.sampled_from(
        ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d %B %Y", "%Y-%m-%d %H:%M:%S", "%m/%d/%Y %I:%M %p"]
    ),
)
def test_what_is_written_is_read(days: list[datetime.datetime], form: str) -> None:
    texts = [day.strftime(form) for day in days]
    found = read(texts, day_first=form.startswith("%d"))
    assert found is not None
    assert found == [datetime.datetime.strptime(text, form) for text in texts]
