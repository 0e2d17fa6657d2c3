"""What a pass brings back: tuples of numbers and arrays, added entry by entry."""

from __future__ import annotations

from typing import Any


def add_each(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the sums of two tuples' entries.

    >>> add_each((1, 2.0), (3, 4.0))
    (4, 6.0)
    """
    return tuple(a + b for a, b in zip(one, other, strict=True))
