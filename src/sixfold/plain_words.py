"""Numbers of things in words, and the room that text takes in a terminal."""

from __future__ import annotations

import re
import unicodedata


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "row"), counted(1204, "row"), counted(2, "category"), counted(3, "class")
    ('1 row', '1,204 rows', '2 categories', '3 classes')
    """
    if count != 1:
        if re.search("[^aeiou]y$", noun):
            noun = f"{noun[:-1]}ies"
        else:
            noun += "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{count:,} {noun}"


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes: wide characters of East Asian scripts take two.

    >>> width_of("naïve"), width_of("価格")
    (5, 4)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 1 + (unicodedata.east_asian_width(one) in "WF") for one in text
    )


__all__ = ["counted", "width_of"]
