"""Versions of the format, and how a file of an older one becomes one of the next.

1    arrays of text are lists in the description, {"text": [shape, [...]]}, and values may share an array
2    arrays of text are arrays of the file, so that the header stays short: with the names of 100,000 rows it
     is parsed in 0.3 ms instead of 70. Every array belongs to one value
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.model_file.container import Container, are_sizes
from sixfold.app.model_file.values import DEEPEST, refuse
from sixfold.errors import ModelFileError

Array = NDArray[Any]

FORMAT = 2
MOST_PADDING = 8  # times the letters of a list of text that it may take as an array
MOST_SHARED = 2  # times the bytes of all arrays that those may have which values share, and some more
SHARED_ANYWAY = 1 << 16


def upgraded(container: Container, source: str) -> Container:
    """Return a container in the format of this version."""
    require_known(container.version, source)
    while container.version < FORMAT:
        container = replace(UPGRADES[container.version](container), version=container.version + 1)
    return container


def require_known(version: int, source: str) -> None:
    """Raise a :class:`ModelFileError` where a file is of a newer format than this version reads."""
    if version > FORMAT:
        raise ModelFileError(
            f"{source} was written in format {version}, and this sixfold reads up to {FORMAT}: upgrade it, "
            "for instance by pip install --upgrade sixfold."
        )


def _first_to_second(container: Container) -> Container:
    """Turn version 1 into version 2."""
    arrays = _Arrays(dict(container.arrays))
    tree = {**container.tree, "model": arrays.walk(container.tree.get("model"), 0)}
    return Container(container.version, tree, arrays.known)


@dataclass
class _Arrays:
    """The arrays of a file of version 1, to which those are added that version 2 needs."""

    known: dict[str, Array]
    used: set[str] = field(default_factory=set)
    shared: int = 0  # bytes of arrays that are there again

    def __post_init__(self) -> None:
        self.most = MOST_SHARED * sum(array.nbytes for array in self.known.values()) + SHARED_ANYWAY

    def walk(self, node: Any, depth: int) -> Any:
        """Return JSON of version 2 for that of version 1."""
        if depth > DEEPEST * 3:  # each value is a list in an object, or an entry of one
            refuse("the model", "is nested too deeply")
        if type(node) is list:
            return [self.walk(one, depth + 1) for one in node]
        if type(node) is not dict:
            return node
        if set(node) == {"text"}:
            return {"array": [self._add("text", _letters(node["text"])), "C", "text"]}
        if set(node) == {"array"}:
            return {"array": self._alone(node["array"])}
        return {key: self.walk(one, depth + 1) for key, one in node.items()}

    def _alone(self, given: Any) -> Any:
        """Return an array under a name of its own, where another value has it already."""
        if type(given) is not list or not given or type(given[0]) is not str or given[0] not in self.known:
            return given  # which is refused later
        name = given[0]
        if name in self.used:
            self.shared += self.known[name].nbytes
            if self.shared > self.most:
                refuse(f"the array {name[:80]!r}", "is shared by too many values")
            name = self._add(name, self.known[name])
        self.used.add(name)
        return [name, *given[1:]]

    def _add(self, wanted: str, array: Array) -> str:
        name = f"{wanted} ({len(self.known)})"
        while name in self.known:
            name += " again"
        self.known[name] = array
        return name


def _letters(given: Any) -> Array:
    """Return a list of text as an array of characters."""
    good = type(given) is list and len(given) == 2 and are_sizes(given[0]) and type(given[1]) is list
    if not good or not all(type(one) is str for one in given[1]):
        refuse("an array of text", "is none")
    shape, words = given
    width = max(map(len, words), default=1) or 1
    most = MOST_PADDING * sum(len(one) + 4 for one in words)
    if len(words) != math.prod(shape) or len(words) * width > most:
        refuse("an array of text", "has words of too different lengths, or not as many as its shape")
    text = np.array(words, dtype=f"<U{width}")
    return np.frombuffer(text.tobytes(), "<u4").reshape(*shape, width)


UPGRADES: dict[int, Callable[[Container], Container]] = {1: _first_to_second}
