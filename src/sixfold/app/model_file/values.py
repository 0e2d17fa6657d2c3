"""Values as JSON and arrays, bit by bit.

    None, True, 7, 0.5, "text", [...]     as JSON has them
    nan, inf, -inf                        {"float": "nan"}
    long lists of one kind                {"list": an array}
    tuples, sets, dictionaries            {"tuple": [...]}, {"set": [...]}, {"dict": [[key, value], ...]}
    range, slice                          {"range": [start, stop, step]}, {"slice": [start, stop, step]}
    NumPy's numbers                       {"scalar": ["float32", 0.5]}
    types of numbers                      {"type": "float64"}, {"dtype": "float64"}
    arrays                                {"array": [name, "C" or "F", what it holds]}
    arrays of objects that are text       {"words": [shape, name of the letters, name of where each ends]}
    arrays of other objects               {"objects": [shape, [...]]}
    masked arrays                         {"masked": [data, mask, fill value]}
    sparse matrices                       {"sparse": ["csr_array", shape, data, indices, starts]}
    generators of random numbers          {"random_state": [...]}, {"generator": [...]}
    parts of models, and models           {"part": [name, [...]]}, {"model": [name, {...}, {...}]}

What an array holds is its type, or "text": then the last axis of the stored array runs over the characters
(UTF-32), as in NumPy's memory. Letters of objects are UTF-8. The layout of an array is kept, since products
of matrices round by it. Every array of the file belongs to one value: one that a thousand values share could
ask for a thousand times its size. Nothing is looked up by a name from the file but in the tables below.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from sixfold.app.model_file.container import DTYPES
from sixfold.errors import ModelFileError

DEEPEST = 60  # nesting of values
LAST_CHARACTER = 0x10FFFF
SURROGATES = "surrogatepass"  # halves of characters, which Python's text may hold
TIMES = {
    f"{kind}[{unit}]"
    for kind in ("datetime64", "timedelta64")
    for unit in ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"]
}
SCALARS: dict[str, Any] = {name: np.dtype(name).type for name in DTYPES.values()} | {"str": np.str_}
TYPES: dict[str, Any] = {name: np.dtype(name).type for name in DTYPES.values()} | {
    "float": float,
    "int": int,
    "object": object,
    "str": str,
    "python bool": bool,
}
DTYPE_NAMES = {*DTYPES.values(), "object"}
SPARSE: dict[str, Any] = {
    kind.__name__: kind for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix)
}
NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
PLAIN = (type(None), bool, int, str)
LONG = 16  # entries of a list from which on an array is smaller


class Refusal(ModelFileError):  # noqa: N818 - it says what happened
    """A value that is not what it has to be: where it is, and what is wrong with it."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"The model file is damaged: {where[:200]} {reason}. Save the model again.")
        self.where, self.reason = where, reason

    def __reduce__(self) -> Any:
        return type(self), (self.where, self.reason)


def refuse(where: str, reason: str) -> NoReturn:
    """Raise the :class:`ModelFileError` of a value in a file that is not what it has to be."""
    raise Refusal(where, reason)
