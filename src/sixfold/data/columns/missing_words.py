"""Words that stand for "no value": which count, and where.

    everywhere          "", "NA", "N/A", "null", "nan", "?", "-", ".", "#DIV/0!" ...
    numbers, dates      these, and "none", "unknown", "missing", "inf", "0000-00-00" ...

In a column of text "None" and "Unknown" are categories like others: no garage, an unknown cause. "NA" is one
where the others are two capitals (Namibia among countries), "-" is one beside "+".
"""

from __future__ import annotations

from typing import Any

WORDS = """
na n/a #n/a #na n.a. n.a <na> nan -nan nat null (null) <null> \\n ? ?? - -- --- \u2013 \u2014 . .. ...
#null! #div/0! #value! #ref! #num! #name? #n/v
"""
WORDS_AMONG_VALUES = """
none nil unknown missing nodata void empty undefined blank tbd error * ** x xx k.a. s.o.
inf +inf -inf infinity +infinity -infinity 1.#inf -1.#inf 1.#qnan -1.#ind
0000-00-00 00.00.0000 00/00/0000
"""
PHRASES = ("not available", "not applicable", "no data", "k. a.", "keine angabe", "0000-00-00 00:00:00")
EVERYWHERE = frozenset(["", *WORDS.split()])
AMONG_VALUES = EVERYWHERE.union(WORDS_AMONG_VALUES.split(), PHRASES)
CODES = r"^[A-Z]{2}$"


def without_missing(text: Any, words: frozenset[str]) -> Any:
    """Return stripped text (a Polars expression or series) with None for the words, whatever their case."""
    import polars as pl

    given = text if isinstance(text, pl.Expr) else pl.lit(text)
    stripped = given.str.strip_chars()
    # No word is longer than 19 letters: longer text is not looked up.
    result = pl.when(stripped.str.to_lowercase().is_in(sorted(words))).then(None).otherwise(stripped)
    return result if isinstance(text, pl.Expr) else pl.select(result.alias(text.name)).to_series()


def kept_words(values: Any) -> list[str]:
    """Return those of the words that are categories in a column with these distinct values.

    >>> import polars as pl
    >>> kept_words(pl.Series(["DE", "NA", "ZA", "", "FR"]))
    ['NA']
    >>> kept_words(pl.Series(["+", "-", "?"]))
    ['-']
    """
    found = set(values.to_list()) if values.len() <= 10_000 else set()
    kept = ["-"] if {"+", "-"} <= found else []
    if "NA" in found:
        others = values.filter(~values.str.to_lowercase().is_in(sorted(EVERYWHERE)))
        if others.len() >= 2 and others.str.contains(CODES).mean() > 0.8:
            kept.append("NA")
    return kept
