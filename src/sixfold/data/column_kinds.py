"""What one column of a raw table holds, from all of its values.

    empty        no value at all
    constant     one value in every row
    boolean      yes and no, true and false, in text or as such
    number       numbers, also as people write them; times of day (hours); durations (seconds)
    date         dates, with or without time
    identifier   a different text in each row, or whole numbers that count the rows
    text         sentences; texts that hardly ever repeat; lists and records
    category     any other text

The distinct texts of a column are looked at once, with their counts; a sample only decides what to try.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from sixfold.data.missing_words import AMONG_VALUES, EVERYWHERE, kept_words
from sixfold.data.text_dates import date_reading, fitting_formats, order_is_open, time_format
from sixfold.data.text_numbers import PLAIN, currencies, has_decimal_commas, number_reading, parse_numbers

PAIRS = (
    ("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("on", "off"), ("ja", "nein"), ("j", "n"),
    ("oui", "non"), ("vrai", "faux"), ("si", "no"), ("sí", "no"), ("sim", "não"), ("wahr", "falsch"),
)  # fmt: skip
ID_NAME = r"(?:^|[_\s\-.])(?:id|ids|uuid|guid|key|index|rowid|row|serial)$"
ID_CAMEL = r"[a-z](?:Id|ID|Uuid|UUID|Key)$"
ROWS_TO_COUNT = 10  # that fewer values are all different may be a coincidence
SENTENCE = 3.0  # words, on average
STANDS_FOR_MISSING = (-99.0, -999.0, -9999.0, -99999.0, 9999.0, 99999.0, 999999.0)


@dataclass(frozen=True)
class Kind:
    """What a column is.

    Attributes
    ----------
    kind : str
    reason : str
        Why it cannot be used, or why it is read as it is.
    used : bool
        Whether it can be used as a feature.
    missing, distinct : int
    examples : tuple of str
    reading : dict
    """

    kind: str
    reason: str = ""
    used: bool = True
    missing: int = 0
    distinct: int = 0
    examples: tuple[str, ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Customs:
    """What columns of a table show about the others.

    Attributes
    ----------
    commas : bool
        Whether numbers have decimal commas.
    day_first : bool or None
        Whether the day comes before the month, in dates like 1/2/2024; None if no column shows it.
    """

    commas: bool = False
    day_first: bool | None = None


def plural(number: int, word: str) -> str:
    """Return "1 row", "2 rows"."""
    return f"{number:,} {word}{'s' * (number != 1)}"


def table_customs(frame: Any) -> Customs:
    """Return what the text columns show about decimal commas and the order of day and month."""
    commas, day_first = False, None
    for column in frame.iter_columns():
        if str(column.dtype) != "String":
            continue
        some = column.head(20_000).drop_nulls().str.strip_chars().unique()
        some = some.filter(~some.str.to_lowercase().is_in(sorted(AMONG_VALUES)))
        if (
            not some.len()
            or not some.head(20).str.contains("[0-9]").all()
            or some.head(20).str.contains(PLAIN).all()
        ):
            continue
        commas = commas or has_decimal_commas(some)
        formats = fitting_formats(some)
        if (
            day_first is None
            and formats
            and not order_is_open(formats)
            and re.match("%[dm].%[dm]", formats[0])
        ):
            day_first = formats[0].startswith("%d")
    return Customs(commas, day_first)


def column_kind(column: Any, customs: Customs = Customs()) -> Kind:  # noqa: B008 - it is frozen
    """Return what a Polars series holds.

    >>> import polars as pl
    >>> column_kind(pl.Series("price", ["$1,200", "$75", "N/A"])).reading
    {'thousands': ',', 'currency': '$', 'missing': ['N/A']}
    """
    import polars as pl

    kind = column.dtype
    if kind.is_nested() or kind in (pl.Binary, pl.Object):
        what = {"List": "lists", "Array": "lists", "Struct": "records", "Binary": "bytes"}
        held = what.get(str(kind.base_type()), "objects")
        return Kind("text", f"holds {held}, not single values", False, column.null_count())
    if kind in (pl.Categorical, pl.Enum):
        column, kind = column.cast(pl.String), pl.String
    if column.null_count() == column.len():
        return Kind("empty", "has no values", False, column.len())
    if kind == pl.String:
        return _text_kind(column, customs)
    if kind == pl.Boolean:
        examples = tuple(
            "true" if one else "false" for one in column.drop_nulls().unique(maintain_order=True)
        )
        found = Kind("boolean", "", True, column.null_count(), len(examples), examples)
        return _without_variation(found, {"true": "true", "false": "false"})
    if kind.is_temporal():
        return _dated_kind(column)
    return _number_kind(column)


def _without_variation(found: Kind, reading: dict[str, Any] | None = None) -> Kind:
    """Return the kind with its reading, or that the column has one value only."""
    found = replace(found, reading=reading if reading is not None else found.reading)
    if found.distinct != 1:
        return found
    if found.missing:
        return replace(found, reason=found.reason or f"{found.examples[0]} or missing")
    return replace(found, kind="constant", used=False, reason=f"is {found.examples[0]} in every row")


def _dated_kind(column: Any) -> Kind:
    import polars as pl

    examples = tuple(str(one) for one in column.drop_nulls().head(3).to_list())
    found = Kind("date", "", True, column.null_count(), column.drop_nulls().n_unique(), examples)
    if column.dtype == pl.Time:
        found = replace(
            found, kind="number", reason="a time of day, in hours", reading={"time": "%H:%M:%S%.f"}
        )
    if column.dtype == pl.Duration:
        found = replace(found, kind="number", reason="a duration, in seconds")
    return _without_variation(found)


def _number_kind(column: Any) -> Kind:
    import polars as pl

    whole = column.dtype.is_integer()
    values = column if whole else column.cast(pl.Float64)
    if not whole:
        infinite = int(values.is_infinite().sum())
        values = values.set(~values.is_finite(), None)
        if values.null_count() == values.len():
            return Kind("empty", "has no values", False, column.len())
    missing = values.null_count()
    distinct = values.n_unique() - (missing > 0)
    examples = tuple(
        number_text(one) for one in values.head(1000).drop_nulls().unique(maintain_order=True).head(3)
    )
    examples = examples or (number_text(values.drop_nulls()[0]),)
    found = Kind("number", "", True, missing, distinct, examples)
    if whole and distinct == column.len():
        reason = _counts_rows(column)
        if reason:
            return replace(found, kind="identifier", reason=reason, used=False)
        if distinct > 1 and _eight_digit_dates(column):
            return replace(found, kind="date", reading={"format": "%Y%m%d"})
    elif whole and distinct > 1 and _eight_digit_dates(column):
        return replace(found, kind="date", reading={"format": "%Y%m%d"})
    if not whole and infinite:
        found = replace(found, reason=f"{plural(infinite, 'infinite value')} counted as missing")
    return _without_variation(found if found.reason else replace(found, reason=_stand_in(values)))


def _stand_in(values: Any) -> str:
    """Return a remark on a number far from all others that may stand for missing, or ""."""
    for extreme in (values.min(), values.max()):
        if float(extreme) in STANDS_FOR_MISSING:
            rest = values.filter(values != extreme)
            count = values.len() - values.null_count() - rest.drop_nulls().len()
            if (
                rest.drop_nulls().len()
                and count >= 2
                and 5 * max(abs(rest.max()), abs(rest.min())) < abs(extreme)
            ):
                where = f"{extreme:g} in {plural(count, 'row')}"
                return f"{where} is far from the others: if it means missing, leave it empty"
    return ""


def _counts_rows(column: Any) -> str:
    """Return why whole numbers, all different, are identifiers, or ""."""
    if column.len() < ROWS_TO_COUNT:
        return ""
    steps = column.diff().drop_nulls()
    if (steps == 1).all():
        return f"counts the rows: {column[0]}, {column[1]}, {column[2]}, ..."
    if looks_like_id(column.name):
        return "its name says identifier, and every value is different"
    return ""


def _eight_digit_dates(column: Any) -> bool:
    import polars as pl

    if not 19000101 <= column.min() <= column.max() <= 21001231:  # in particular a number, not a null
        return False
    return "%Y%m%d" in fitting_formats(column.drop_nulls().unique().cast(pl.String))


def looks_like_id(name: str) -> bool:
    """Return whether a column's name says that it identifies rows.

    >>> [looks_like_id(name) for name in ("id", "Customer ID", "orderId", "paid", "humid")]
    [True, True, True, False, False]
    """
    return bool(re.search(ID_NAME, name, re.IGNORECASE) or re.search(ID_CAMEL, name))


def number_text(value: Any) -> str:
    """Return a number as text, whole ones without a point.

    >>> number_text(3.0), number_text(0.1), number_text(-0.0)
    ('3', '0.1', '0')
    """
    number = float(value)
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return str(value) if isinstance(value, int) else repr(number)


def _text_kind(column: Any, customs: Customs) -> Kind:
    """Return the kind of a column of text, from its distinct values and their counts."""
    import polars as pl

    table = (
        pl.DataFrame({"value": column.str.strip_chars()})
        .drop_nulls()
        .group_by("value", maintain_order=True)
        .len()
    )
    kept = kept_words(table["value"])
    lower = pl.col("value").str.to_lowercase()
    table = table.with_columns(
        everywhere=lower.is_in(sorted(EVERYWHERE)) & ~pl.col("value").is_in(kept),
        among=lower.is_in(sorted(AMONG_VALUES)),
    )
    values = table.filter(~pl.col("among"))
    found = _values_kind(values, customs) if values.height else None
    if found is None and values.height > 1:
        found = _with_odd_words(values, customs)
    if found is not None:
        words = [*table.filter(pl.col("among"))["value"].to_list(), *found.reading.get("missing", [])]
        values = values.filter(~pl.col("value").is_in(words)) if found.reading.get("missing") else values
        words = sorted(word for word in words if word)
        reading = {key: value for key, value in found.reading.items() if key != "missing"}
        reading |= {"missing": words} if words else {}
        if reading.keys() <= {"missing"} and found.kind == "number":
            return _as_typed(column, found, reading)
        return _without_variation(_counted(found, values, column.len()), reading)
    values = table.filter(~pl.col("everywhere"))
    if not values.height:
        return Kind("empty", "has no values", False, column.len())
    words = sorted(word for word in table.filter(pl.col("everywhere"))["value"].to_list() if word)
    reading = {"missing": words} if words else {}
    reading |= {"kept": kept} if kept else {}
    return _category_kind(column.name, values, column.len(), reading)


def _as_typed(column: Any, found: Kind, reading: dict[str, Any]) -> Kind:
    """Return the kind of plain numbers in text: that of the numbers, as a file with types would have them."""
    import polars as pl

    text = column.str.strip_chars()
    numbers, whole = parse_numbers(text, {}), text.cast(pl.Int64, strict=False)
    number = _number_kind(whole if whole.null_count() == numbers.null_count() else numbers)
    return replace(number, reason=found.reason or number.reason, reading=number.reading | reading)


def _counted(found: Kind, values: Any, rows: int) -> Kind:
    """Return the kind with its number of distinct and missing values, and the most frequent ones."""
    present = int(values["len"].sum())
    examples = tuple(
        one[:60] for one in values.sort("len", descending=True, maintain_order=True)["value"].head(3)
    )
    return replace(found, missing=rows - present, distinct=values.height, examples=examples)


def _values_kind(values: Any, customs: Customs) -> Kind | None:
    """Return how text is read as numbers or dates; None where it is neither."""
    text = values["value"]
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
    found = _values_kind(rest, customs)
    if found is None:
        return None
    words = odd["value"].to_list()
    listed = ", ".join(repr(word) for word in words)
    remark = f"{listed} counted as missing ({plural(int(odd['len'].sum()), 'row')})"
    reason = f"{found.reason}; {remark}" if found.reason else remark
    return replace(found, reason=reason, reading={**found.reading, "missing": words})


def _category_kind(name: str, values: Any, rows: int, reading: dict[str, Any]) -> Kind:
    """Return whether text is a category, an identifier or free text."""
    found = _counted(Kind("category", reading=reading), values, rows)
    present = rows - found.missing
    words = boolean_words(values)
    if words is not None:
        return _without_variation(replace(found, kind="boolean", distinct=len(words)), {**reading, **words})
    if found.distinct == 1:
        return _without_variation(found)
    average = float((values["value"].str.count_matches(r"\s+") + 1).mean())
    if average > SENTENCE and 2 * found.distinct > present:
        return replace(found, kind="text", used=False, reason=f"free text, {average:.0f} words on average")
    if found.distinct == present >= ROWS_TO_COUNT:
        return replace(
            found, kind="identifier", used=False, reason=f"every value is different{_why_text(values)}"
        )
    if 2 * found.distinct > present and found.distinct >= ROWS_TO_COUNT:
        kind = "identifier" if looks_like_id(name) else "text"
        share = present / found.distinct
        counts = f"{found.distinct:,} different values in {present:,} rows"
        reason = f"{counts}, {share:.1f} rows for each{_why_text(values)}"
        return replace(found, kind=kind, used=False, reason=reason)
    return replace(found, reason=_why_text(values).removeprefix("; "))


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
