"""What a column of text holds: numbers, dates, words for true and false, categories, sentences.

A sample says what to try; then the whole column is read so. Where some value does not fit, all distinct
values decide, with their counts.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from sixfold.data.columns.kind import ROWS_TO_COUNT, Customs, Kind, looks_like_id, without_variation
from sixfold.data.columns.missing_words import AMONG_VALUES, EVERYWHERE, kept_words
from sixfold.data.columns.text_dates import (
    date_reading,
    fitting_formats,
    order_is_open,
    read_dates,
    time_format,
)
from sixfold.data.columns.text_numbers import (
    GROUPS,
    LEADING_ZEROS,
    PLAIN,
    currencies,
    has_decimal_commas,
    has_decimal_points,
    number_reading,
    parse_numbers,
    read_numbers,
)
from sixfold.plain_words import counted

SAMPLE = 1000
MANY_ROWS = 100_000
PAIRS = (
    ("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("on", "off"), ("ja", "nein"), ("j", "n"),
    ("oui", "non"), ("vrai", "faux"), ("si", "no"), ("sí", "no"), ("sim", "não"), ("wahr", "falsch"),
)  # fmt: skip
SENTENCE = 3.0  # words, on average


def table_customs(frame: Any) -> Customs:
    """Return what the columns show about decimal commas and the order of day and month."""
    import polars as pl

    commas, points, day_first = False, False, None
    for column in frame.iter_columns():
        if column.dtype != pl.String:
            # What was read as a fraction has a decimal point.
            points = points or (column.dtype.is_float() and bool((column.head(100) % 1 > 0).any()))
            continue
        some = sample_of(column)
        if not some.len() or not some.head(20).str.contains("[0-9]").all():
            continue
        commas, points = commas or has_decimal_commas(some), points or has_decimal_points(some)
        formats = [] if some.head(20).str.contains(PLAIN).all() else fitting_formats(some)
        shown = formats and not order_is_open(formats) and re.match("%[dm].%[dm]", formats[0])
        if day_first is None and shown:
            day_first = formats[0].startswith("%d")
    return Customs(commas and not points, day_first)


def sample_of(column: Any) -> Any:
    """Return some distinct values of a column of text, without blanks around them and missing words."""
    some = column.gather_every(max(1, column.len() // SAMPLE)).drop_nulls()
    if not some.len():
        some = column.drop_nulls().head(SAMPLE)
    some = some.str.strip_chars().unique(maintain_order=True)
    return some.filter(~some.str.to_lowercase().is_in(sorted(AMONG_VALUES)))


def text_kind(column: Any, customs: Customs) -> Kind | tuple[Any, Any, Kind]:
    """Return what a column of text holds; plain numbers with the column and the numbers."""
    some = sample_of(column)
    found = _values_kind(some, customs) if some.len() else None
    if found is not None and found.kind == "number" and "time" not in found.reading:
        numbers, wrong = read_numbers(column, found.reading)
        if not wrong.len() and _all_alike(column, found.reading, numbers):
            return _confirmed(column, numbers, found)
    if found is not None and found.kind == "date" and not found.reason:
        dates, wrong = read_dates(column, found.reading["format"], AMONG_VALUES)
        if not wrong.len():
            return _confirmed(column, dates, found)
    if found is None and column.len() >= MANY_ROWS:
        found = _hardly_repeated(column, some)
        if found is not None:
            return found
    return _kind_of_distinct(column, customs)


def _hardly_repeated(column: Any, some: Any) -> Kind | None:
    """Return the kind of text that hardly ever repeats, without a table of its values; None if it repeats."""
    import polars as pl

    if some.len() < 0.9 * SAMPLE or parse_numbers(some, {"thousands": ","}).is_not_null().mean() > 0.5:
        return None
    short = column.filter(column.str.len_bytes() <= 24).str.strip_chars()
    missing = short.filter(short.str.to_lowercase().is_in(sorted(EVERYWHERE)))
    lost = column.null_count() + missing.len()
    distinct = column.n_unique() - (column.null_count() > 0) - missing.n_unique()
    if 2 * distinct <= column.len() - lost:
        return None
    words = sorted(filter(None, missing.unique().to_list()))
    reading = {"missing": words} if words else {}
    examples = tuple(one[:60] for one in some.head(3))
    found = Kind("category", "", True, lost, distinct, examples, reading)
    return _set_aside(
        column.name, found, pl.DataFrame({"value": some, "len": [1] * some.len()}), column.len()
    )


def _all_alike(column: Any, reading: dict[str, Any], numbers: Any) -> bool:
    """Return whether no value of a column is a code, and all or none are percentages."""
    if column.str.contains(LEADING_ZEROS).any() or column.str.contains(r"^\s*\+[0-9]{7}").any():
        return False
    percent = int(column.str.contains("%", literal=True).sum())
    expected = numbers.len() - numbers.null_count() if "percent" in reading else 0
    if percent != expected:
        return False
    return "currency" in reading or not currencies(column)


def _confirmed(column: Any, values: Any, found: Kind) -> Kind | tuple[Any, Any, Kind]:
    """Return the kind with what the whole column shows."""
    odd = column.filter(values.is_null() & column.is_not_null()).str.strip_chars().unique().to_list()
    words = sorted(word for word in odd if word)
    reading = found.reading | ({"missing": words} if words else {})
    if found.kind == "number" and reading.keys() <= {"missing"}:
        return column, values, replace(found, reading=reading)
    if found.kind == "number" and "thousands" not in reading:
        mark = "." if reading.get("decimal") == "," else ","
        if column.str.contains(rf"[0-9]{GROUPS[mark]}[0-9]").any():
            reading["thousands"] = mark
            found = replace(found, reason=_number_remark(reading))
    missing = values.null_count()
    distinct = values.n_unique() - (missing > 0)
    present = column.gather(values.is_not_null().arg_true().head(1000))
    examples = tuple(present.str.strip_chars().unique(maintain_order=True).head(3).to_list())
    kind = replace(found, missing=missing, distinct=distinct, examples=examples, reading=reading)
    return without_variation(kind)


def _kind_of_distinct(column: Any, customs: Customs) -> Kind | tuple[Any, Any, Kind]:
    """Return the kind of a column of text, from its distinct values and their counts."""
    import polars as pl

    table = pl.DataFrame({"value": column.str.strip_chars()}).drop_nulls().group_by("value").len()
    table = table.sort(["len", "value"], descending=[True, False]) if table.height <= 100_000 else table
    kept = kept_words(table["value"])
    # No missing word is longer; millions of long texts are not written in small letters to find out.
    short = table["value"].filter(table["value"].str.len_bytes() <= 24)
    words = short.filter(short.str.to_lowercase().is_in(sorted(AMONG_VALUES))).to_list()
    everywhere = [word for word in words if word.lower() in EVERYWHERE and word not in kept]
    table = table.with_columns(
        everywhere=pl.col("value").is_in(everywhere), among=pl.col("value").is_in(words)
    )
    values = table.filter(~pl.col("among"))
    found = _values_kind(values["value"], customs) if values.height else None
    if found is None and values.height > 1:
        found = _with_odd_words(values, customs)
    if found is not None:
        return _with_words(column, table, found)
    values = table.filter(~pl.col("everywhere"))
    if not values.height:
        return Kind("empty", "has no values", False, column.len())
    reading: dict[str, Any] = {"missing": sorted(filter(None, everywhere))} if any(everywhere) else {}
    reading |= {"kept": kept} if kept else {}
    return _category_kind(column.name, values, column.len(), reading)


def _with_words(column: Any, table: Any, found: Kind) -> Kind | tuple[Any, Any, Kind]:
    """Return numbers or dates with the words among them that count as missing."""
    import polars as pl

    words = [*table.filter(pl.col("among"))["value"].to_list(), *found.reading.get("missing", [])]
    values = table.filter(~pl.col("value").is_in(words))
    words = sorted(word for word in words if word)
    reading = {key: value for key, value in found.reading.items() if key != "missing"}
    reading |= {"missing": words} if words else {}
    if reading.keys() <= {"missing"} and found.kind == "number":
        return column, read_numbers(column, reading)[0], replace(found, reading=reading)
    return without_variation(replace(_counted(found, values, column.len()), reading=reading))


def _counted(found: Kind, values: Any, rows: int) -> Kind:
    """Return the kind with its number of distinct and missing values, and the most frequent ones."""
    present = int(values["len"].sum())
    examples = tuple(one[:60] for one in values["value"].head(3))
    return replace(found, missing=rows - present, distinct=values.height, examples=examples)


def _values_kind(text: Any, customs: Customs) -> Kind | None:
    """Return how distinct texts are read as numbers or dates; None where they are neither."""
    reading = number_reading(text, customs.commas)
    if reading is not None and not (text.str.len_chars() == 8).all():
        return Kind("number", _number_remark(reading), reading=reading)
    dated = date_reading(text, customs.day_first, customs.commas)
    if dated is not None:
        return Kind("date", dated[1], reading=dated[0])
    if reading is not None:
        return Kind("number", _number_remark(reading), reading=reading)
    form = time_format(text)
    return Kind("number", "a time of day, in hours", reading={"time": form}) if form else None


def _number_remark(reading: dict[str, Any]) -> str:
    parts = [f"amounts in {reading['currency']}"] if "currency" in reading else []
    parts += ["percentages"] if "percent" in reading else []
    parts += ["decimal commas"] if reading.get("decimal") == "," else []
    names = {" ": "blanks", ",": "commas", ".": "points", "'": "apostrophes"}
    parts += [f"{names[reading['thousands']]} between thousands"] if "thousands" in reading else []
    return ", ".join(parts)


def _with_odd_words(values: Any, customs: Customs) -> Kind | None:
    """Return the kind where a few words stand among numbers or dates; they count as missing."""
    import polars as pl

    odd = values.filter(~pl.col("value").str.contains("[0-9]"))
    rest = values.filter(pl.col("value").str.contains("[0-9]"))
    few = odd["len"].sum() * 20 <= values["len"].sum()  # 5 % of the rows
    if not 0 < odd.height <= 5 or not few or rest["len"].sum() < 20:
        return None
    found = _values_kind(rest["value"], customs)
    if found is None:
        return None
    words = odd["value"].to_list()
    listed = ", ".join(repr(word) for word in words)
    remark = f"{listed} counted as missing ({counted(int(odd['len'].sum()), 'row')})"
    reason = f"{found.reason}; {remark}" if found.reason else remark
    return replace(found, reason=reason, reading={**found.reading, "missing": words})


def _category_kind(name: str, values: Any, rows: int, reading: dict[str, Any]) -> Kind:
    """Return whether text is a category, an identifier or free text."""
    found = _counted(Kind("category", reading=reading), values, rows)
    words = boolean_words(values)
    if words is not None:
        return without_variation(
            replace(found, kind="boolean", distinct=len(words), reading={**reading, **words})
        )
    if found.distinct == 1:
        return without_variation(found)
    return _set_aside(name, found, values, rows)


def _set_aside(name: str, found: Kind, values: Any, rows: int) -> Kind:
    """Return why text is set aside, or that it is a category."""
    present = rows - found.missing
    average = float((values["value"].head(10_000).str.count_matches(r"\s+") + 1).mean())
    why = _why_text(values)
    if average > SENTENCE and 2 * found.distinct > present:
        return replace(found, kind="text", used=False, reason=f"free text, {average:.0f} words on average")
    if found.distinct == present >= ROWS_TO_COUNT:
        return replace(found, kind="identifier", used=False, reason=f"every value is different{why}")
    if 2 * found.distinct > present and found.distinct >= ROWS_TO_COUNT:
        kind = "identifier" if looks_like_id(name) else "text"
        counts = f"{found.distinct:,} different values in {present:,} rows"
        reason = f"{counts}, {present / found.distinct:.1f} rows for each{why}"
        return replace(found, kind=kind, used=False, reason=reason)
    return replace(found, reason=why.removeprefix("; "))


def _why_text(values: Any) -> str:
    """Return why text that looks like numbers is none, as the end of a sentence, or ""."""
    text = values["value"]
    signs = currencies(text)
    if len(signs) > 1:
        return f"; amounts in several currencies ({', '.join(signs)})"
    if text.str.contains("^0[0-9]+$").any() and text.str.contains("^[0-9]+$").all():
        return "; codes, since some begin with 0"
    numbers = parse_numbers(text.head(1000), {"thousands": ","}).is_not_null()
    other = text.head(1000).filter(~numbers)
    if other.len() and float(numbers.mean()) >= 0.5:
        return f"; most are numbers, but not {other[0][:30]!r}"
    return ""


def boolean_words(values: Any) -> dict[str, Any] | None:
    """Return the words for true and false, as written most often; None if there are other words.

    >>> import polars as pl
    >>> boolean_words(pl.DataFrame({"value": ["Yes", "no", "yes"], "len": [2, 3, 1]}))
    {'true': 'Yes', 'false': 'no'}
    """
    if values.height > 8:
        return None
    spelled: dict[str, str] = {}
    for word in values.sort("len", descending=True, maintain_order=True)["value"].to_list():
        spelled.setdefault(word.casefold(), word)
    for true, false in PAIRS:
        if set(spelled) == {true, false}:
            return {"true": spelled[true], "false": spelled[false]}
    return None
