"""What the columns, categories and classes of a tree are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TreeNames:
    """The names behind the numbers of a tree.

    Attributes
    ----------
    columns : tuple of str
        The name of each column.
    categories : tuple of (tuple or None)
        For each column its categories, that of code 0 first; None for a column of numbers.
    classes : tuple
        The label of each class.
    """

    columns: tuple[str, ...]
    categories: tuple[tuple[Any, ...] | None, ...]
    classes: tuple[Any, ...]
