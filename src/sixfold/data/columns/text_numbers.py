"""Numbers as people write them: 1,234.50  1.234,50  1 234,50  1'234.50  $5  5 €  12 %  (7)  7-.

    number    = [sign] [currency] digits [decimal mark digits] [exponent] [currency | %]
    negative  = -number | (number) | number-

The marks are those of the whole column: the first pair (decimal, thousands) that fits every value. "1,234"
alone could be either; then thousands are meant, unless other columns of the table have decimal commas. A
percentage is the number before its sign.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sixfold.data.columns.missing_words import AMONG_VALUES, without_missing

SPACES = "[ \u00a0\u2009\u202f]"
GROUPS = {",": ",", ".": r"\.", " ": SPACES, "'": "['\u2019]"}
# In the order in which they are tried; the second table is for files with decimal commas.
MARKS = ((".", ""), (".", ","), (",", "."), (",", ""), (".", " "), (",", " "), (".", "'"), (",", "'"))
COMMA_MARKS = ((",", "."), (",", ""), (",", " "), (",", "'"), (".", ""), (".", ","), (".", " "), (".", "'"))

SAME = {"$": "USD", "US$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "Fr.": "CHF", "SFr.": "CHF"}
SIGNS = "US$ R$ A$ C$ NZ$ HK$ S$ $ € £ ¥ ₹ ₽ ₩ ₺ ₪ ฿ ₫ ₴"
CODES = (
    "USD EUR GBP CHF JPY CNY RMB INR AUD CAD NZD SEK NOK DKK PLN CZK HUF RON BRL MXN ZAR RUB TRY KRW SGD HKD"
)
WORDS = "SFr. Fr. kr. kr zł Kč Ft лв Rs. Rs"
CURRENCY = (
    "(?:"
    + "|".join(one.replace("$", r"\$").replace(".", r"\.") for one in f"{SIGNS} {CODES} {WORDS}".split())
    + ")"
)
BEFORE, BEHIND = rf"^[-+(]*\s*({CURRENCY})", rf"[0-9]\s*({CURRENCY})[-)]*$"
LEADING_ZEROS = r"^[-+]?0[0-9]"
PLAIN = r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"


def number_pattern(decimal: str, thousands: str) -> str:
    """Return the pattern of a number without currency and percent signs.

    >>> import re
    >>> [bool(re.match(number_pattern(",", "."), one)) for one in ("1.234,5", "1234", "1.5", "0.123")]
    [True, True, False, False]
    """
    whole = "[0-9]+"
    if thousands:
        mark = GROUPS[thousands]
        # Groups of three, or of two and three as in India; 0.123 has no thousands.
        whole = f"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{2,3}})*{mark}[0-9]{{3}})"
    point = GROUPS[decimal]
    return f"^[-+]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][-+]?[0-9]+)?$"


def bare(text: Any) -> Any:
    """Return the numbers in text (an expression) without currency and percent signs, the sign in front."""
    inner = text.str.replace_all("\u2212", "-", literal=True).str.replace(r"^\(\s*(.*?)\s*\)$", "-$1")
    inner = inner.str.replace(rf"^([-+]?)\s*{CURRENCY}\s*", "$1")
    inner = inner.str.replace(rf"\s*(?:{CURRENCY}|%)\s*(-?)$", "$1")
    inner = inner.str.replace(r"^\(\s*(.*?)\s*\)$", "-$1")
    return inner.str.replace(r"^([^-].*?)\s*-$", "-$1").str.replace(r"^([-+])\s+", "$1")


def parse_numbers(text: Any, reading: Mapping[str, Any]) -> Any:
    """Return a series of text as Float64, None where it is no number.

    >>> import polars as pl
    >>> parse_numbers(pl.Series(["$1,234.50", "(7)", "12 %", "two"]), {"thousands": ","}).to_list()
    [1234.5, -7.0, 12.0, None]
    """
    import polars as pl

    decimal, thousands = reading.get("decimal", "."), reading.get("thousands", "")
    signs = "% \u00a0" + reading["currency"] if "currency" in reading else "% " * bool(reading.get("percent"))
    plain = text.str.strip_chars(signs) if signs else text
    if decimal == "." and not thousands:
        numbers = plain.cast(pl.Float64, strict=False)
    else:
        numbers = _parse_marked(plain, decimal, thousands)
    left = numbers.is_null() & text.is_not_null()
    if not left.any():
        return numbers
    # A column whose numbers were all below 1,000 may have larger ones in another file.
    rest = _parse_dressed(text.filter(left), decimal, thousands or ("," if decimal == "." else "."), reading)
    return numbers if rest.null_count() == rest.len() else numbers.scatter(left.arg_true(), rest)


def _parse_marked(text: Any, decimal: str, thousands: str) -> Any:
    """Return numbers without signs of currency and percent."""
    import polars as pl

    value = pl.lit(text)
    fits = value.str.contains(number_pattern(decimal, thousands))
    plain = value.str.replace_all(GROUPS[thousands], "", literal=thousands == ",") if thousands else value
    plain = plain.str.replace(",", ".", literal=True) if decimal == "," else plain
    number = plain.cast(pl.Float64, strict=False)
    return pl.select(pl.when(fits).then(number).otherwise(None).alias(text.name)).to_series()


def _parse_dressed(text: Any, decimal: str, thousands: str, reading: Mapping[str, Any]) -> Any:
    """Return numbers with signs of currency (only of the one read before), of percent and of negatives."""
    import polars as pl

    numbers = _parse_marked(pl.select(bare(pl.lit(text))).to_series(), decimal, thousands)
    if "currency" not in reading:
        return numbers
    code = SAME.get(reading["currency"], reading["currency"])
    same = [reading["currency"], code, *(sign for sign, one in SAME.items() if one == code)]
    for found in (text.str.extract(BEFORE, 1), text.str.extract(BEHIND, 1)):
        numbers = numbers.set(~found.is_in(same).fill_null(True), None)
    return numbers


def read_numbers(text: Any, reading: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return a series of text as finite numbers, and the rows that hold neither numbers nor missing words.

    >>> import polars as pl
    >>> numbers, wrong = read_numbers(pl.Series(["5", " 6 ", "N/A", "two", None]), {})
    >>> numbers.to_list(), wrong.to_list()
    ([5.0, 6.0, None, None, None], [3])
    """
    numbers = parse_numbers(text, reading)
    left = (numbers.is_null() & text.is_not_null()).arg_true()
    if left.len():
        rest = without_missing(text.gather(left), missing_words(reading))
        numbers = numbers.scatter(left, parse_numbers(rest, reading))
        left = left.filter(numbers.gather(left).is_null() & rest.is_not_null())
    return (numbers if numbers.is_finite().all() else numbers.set(~numbers.is_finite(), None)), left


def missing_words(reading: Mapping[str, Any]) -> frozenset[str]:
    """Return the words that are missing among the values of a column, in small letters."""
    return AMONG_VALUES.union(word.lower() for word in reading.get("missing", ()))


def number_reading(values: Any, commas: bool = False) -> dict[str, Any] | None:
    """Return how these distinct texts are to be read as numbers; None where some of them are none.

    Parameters
    ----------
    values : polars.Series
        Text without blanks around it and without missing words.
    commas : bool
        Whether other columns of the table have decimal commas.

    >>> import polars as pl
    >>> number_reading(pl.Series(["1.234,50 €", "12,00 €"]))
    {'decimal': ',', 'thousands': '.', 'currency': '€'}
    >>> number_reading(pl.Series(["1.5", "7"])), number_reading(pl.Series(["02139"]))
    ({}, None)
    """
    import polars as pl

    if values.str.contains(LEADING_ZEROS).any() or not values.str.contains("[0-9]").all():
        return None
    sample = values.gather_every(max(1, values.len() // 500))
    stripped = pl.select(bare(pl.lit(sample))).to_series()
    for decimal, thousands in COMMA_MARKS if commas else MARKS:
        if stripped.str.contains(number_pattern(decimal, thousands)).all():
            full = pl.select(bare(pl.lit(values))).to_series()
            if full.str.contains(number_pattern(decimal, thousands)).all():
                return _found_marks(values, full, decimal, thousands)
    return None


def _found_marks(values: Any, full: Any, decimal: str, thousands: str) -> dict[str, Any] | None:
    """Return the reading with the marks that occur; None for several currencies or some percentages."""
    if full.str.contains(LEADING_ZEROS).any() or values.str.contains(r"^\+[0-9]{7}").any():
        return None
    reading: dict[str, Any] = {}
    if decimal == ",":
        reading["decimal"] = ","
    if thousands and full.str.contains(GROUPS[thousands]).any():
        reading["thousands"] = thousands
    signs = currencies(values)
    if len({SAME.get(one, one) for one in signs}) > 1:
        return None
    if signs:
        reading["currency"] = signs[0]
    percent = values.str.contains("%", literal=True)
    if percent.any():
        if not percent.all():
            return None
        reading["percent"] = True
    return reading


def currencies(values: Any) -> list[str]:
    """Return the currency signs in these texts, sorted.

    >>> import polars as pl
    >>> currencies(pl.Series(["$5", "5 EUR", "7"]))
    ['$', 'EUR']
    """
    found = values.str.extract(BEFORE, 1).drop_nulls().unique().to_list()
    found += values.str.extract(BEHIND, 1).drop_nulls().unique().to_list()
    return sorted(set(found))


def has_decimal_commas(values: Any) -> bool:
    """Return whether these texts are numbers whose comma cannot be one of thousands.

    >>> import polars as pl
    >>> has_decimal_commas(pl.Series(["1,5", "2,25"])), has_decimal_commas(pl.Series(["1,234"]))
    (True, False)
    """
    full = _only_numbers(values, r"^[-+]?[0-9. ]*(?:,[0-9]+)?$")
    if full is None:
        return False
    return bool(full.str.contains(r",(?:[0-9]{1,2}|[0-9]{4,})$|^[-+]?0,[0-9]|\..*,").any())


def has_decimal_points(values: Any) -> bool:
    """Return whether these texts are numbers whose point cannot be one of thousands.

    >>> import polars as pl
    >>> has_decimal_points(pl.Series(["1.5", "2.25"])), has_decimal_points(pl.Series(["1.234"]))
    (True, False)
    """
    full = _only_numbers(values, r"^[-+]?[0-9, ']*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$")
    if full is None:
        return False
    return bool(full.str.contains(r"\.(?:[0-9]{1,2}|[0-9]{4,})$|^[-+]?0?\.[0-9]|,.*\.").any())


def _only_numbers(values: Any, pattern: str) -> Any:
    """Return the texts without signs if all of them fit the pattern, else None."""
    import polars as pl

    full = pl.select(bare(pl.lit(values))).to_series()
    return full if full.len() and full.str.contains(pattern).all() else None


def number_text(value: Any) -> str:
    """Return a number as text, whole ones without a point.

    >>> number_text(3.0), number_text(0.1), number_text(-0.0)
    ('3', '0.1', '0')
    """
    if isinstance(value, int):
        return str(value)
    whole = float(value).is_integer() and abs(value) < 2**63
    return str(int(value)) if whole else repr(float(value))
