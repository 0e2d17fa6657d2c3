"""Counts the bytes of a table that are handed to native loops: what the passes of a fit touch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class Count:
    """How many bytes of tables with so many columns went to native loops."""

    def __init__(self, columns: int) -> None:
        self.columns, self.bytes = columns, 0

    def watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, wrapped: it counts its tables."""

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            for one in (*arguments, *named.values()):
                if isinstance(one, np.ndarray) and one.ndim == 2 and one.shape[1] == self.columns:
                    self.bytes += one.nbytes if one.shape[0] > self.columns + 1 else 0
            return function(*arguments, **named)

        return call


@contextmanager
def native_loops(columns: int) -> Iterator[Count]:
    """Count inside; every native loop is wrapped, which costs time."""
    from sixfold._native import core

    count = Count(columns)
    before = {
        name: value for name, value in vars(core).items() if callable(value) and not isinstance(value, type)
    }
    for name, value in before.items():
        setattr(core, name, count.watched(value))
    try:
        yield count
    finally:
        for name, value in before.items():
            setattr(core, name, value)
