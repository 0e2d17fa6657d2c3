"""A column's kind as plain data, and rules that several kinds share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

KINDS = ("number", "category", "boolean", "date", "text", "identifier", "constant", "empty")
ROLES = ("feature", "target", "weight", "group", "set aside")
USABLE = ("number", "category", "boolean", "date")
ID_NAME = r"(?:^|[_\s\-.])(?:id|ids|uuid|guid|key|index|rowid|row|serial)$"
ID_CAMEL = r"[a-z](?:Id|ID|Uuid|UUID|Key)$"
ROWS_TO_COUNT = 10  # that fewer values are all different may be a coincidence


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


def looks_like_id(name: str) -> bool:
    """Return whether a column's name says that it identifies rows.

    >>> [looks_like_id(name) for name in ("id", "Customer ID", "orderId", "paid", "humid")]
    [True, True, True, False, False]
    """
    return bool(re.search(ID_NAME, name, re.IGNORECASE) or re.search(ID_CAMEL, name))


def without_variation(found: Kind) -> Kind:
    """Return the kind, or that the column has one value only."""
    if found.distinct != 1:
        return found
    if found.missing:
        return replace(found, reason=found.reason or f"{found.examples[0]} or missing")
    return replace(found, kind="constant", used=False, reason=f"is {found.examples[0]} in every row")
