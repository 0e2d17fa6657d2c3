"""Versions of the format, and how a file of an older one becomes one of the next.

1    arrays of text are lists in the description: {"text": [shape, [...]]}
2    they are arrays of the file, so that the header stays short: with the names of 100,000 rows it is read in
     0.3 ms instead of 70
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.model_file.container import Container, are_sizes
from sixfold.app.model_file.values import DEEPEST, refuse
from sixfold.errors import ModelFileError

Array = NDArray[Any]

FORMAT = 2
MOST_PADDING = 8  # times the letters of a list of text that it may take as an array


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


def _text_to_arrays(container: Container) -> Container:
    """Turn version 1 into version 2."""
    arrays = dict(container.arrays)

    def walk(node: Any, depth: int) -> Any:
        if depth > DEEPEST * 3:  # each value is a list in an object, or an entry of one
            refuse("the model", "is nested too deeply")
        if type(node) is list:
            return [walk(one, depth + 1) for one in node]
        if type(node) is dict and set(node) == {"text"}:
            name = f"text {len(arrays)}"
            while name in arrays:
                name += " more"
            arrays[name] = _letters(node["text"])
            return {"array": [name, "C", "text"]}
        return {key: walk(one, depth + 1) for key, one in node.items()} if type(node) is dict else node

    tree = {**container.tree, "model": walk(container.tree.get("model"), 0)}
    return Container(container.version, tree, arrays)


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


UPGRADES: dict[int, Callable[[Container], Container]] = {1: _text_to_arrays}
