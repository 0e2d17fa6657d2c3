"""From JSON and arrays to values, as :mod:`sixfold.app.model_file.values` says; everything is checked."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.model_file.container import DTYPES, are_sizes
from sixfold.app.model_file.values import (
    DEEPEST,
    DTYPE_NAMES,
    LAST_CHARACTER,
    NON_FINITE,
    PLAIN,
    SCALARS,
    SPARSE,
    SURROGATES,
    TIMES,
    TYPES,
    refuse,
)

Array = NDArray[Any]

LISTED = ("object", "int64", "float64")  # what long lists are stored as


class Decoder:
    """Makes values of JSON and arrays, after checking both.

    Parameters
    ----------
    arrays : dict of str to ndarray
        Those of the file.
    build : dict of str to callable
        Makes a part of a model, or a model, of what is under that key.
    """

    def __init__(
        self, arrays: dict[str, Array], build: dict[str, Callable[[Any, str, Decoder], Any]]
    ) -> None:
        self.arrays, self.build = arrays, build
        self.used: set[str] = set()
        self._depth = 0

    def value(self, node: Any, where: str) -> Any:
        """Return the value that JSON describes."""
        if type(node) in PLAIN or (type(node) is float and math.isfinite(node)):
            return node
        self._depth += 1
        if self._depth > DEEPEST:
            refuse(where, "is nested too deeply")
        try:
            if type(node) is list:
                return [self.value(one, f"{where}[{k}]") for k, one in enumerate(node)]
            if type(node) is dict and len(node) == 1:
                ((kind, given),) = node.items()
                if kind in self.build:
                    return self.build[kind](given, where, self)
                if kind in _READERS:
                    return _READERS[kind](self, given, where)
            refuse(where, "is of no kind that a model file knows")
        finally:
            self._depth -= 1

    def list_of(self, given: Any, where: str, count: int | None = None) -> list[Any]:
        """Return the values of a list, of that length."""
        if type(given) is not list or (count is not None and len(given) != count):
            refuse(where, f"is no list of {'values' if count is None else count}")
        return [self.value(one, f"{where}[{k}]") for k, one in enumerate(given)]

    def _long(self, given: Any, where: str) -> list[Any]:
        found = self.value(given, where)
        good = isinstance(found, np.ndarray) and found.ndim == 1 and found.dtype.name in LISTED
        if not good:
            refuse(where, "is no list")
        listed: list[Any] = found.tolist()
        return listed

    def _float(self, given: Any, where: str) -> float:
        if type(given) is not str or given not in NON_FINITE:
            refuse(where, "is no number")
        return NON_FINITE[given]

    def _dict(self, given: Any, where: str) -> dict[Any, Any]:
        if type(given) is not list or not all(type(pair) is list and len(pair) == 2 for pair in given):
            refuse(where, "is no list of keys and values")
        found = {}
        for k, (key, value) in enumerate(given):
            found[_hashable(self.value(key, f"key {k} of {where}"), where)] = self.value(
                value, f"{where}[{key!r:.80}]"
            )
        if len(found) < len(given):
            refuse(where, "has a key twice")
        return found

    def _set(self, given: Any, where: str) -> set[Any]:
        return {_hashable(one, where) for one in self.list_of(given, where)}

    def _range(self, given: Any, where: str) -> range:
        parts = self.list_of(given, where, 3)
        if not all(type(part) is int for part in parts) or parts[2] == 0:
            refuse(where, "is no range of whole numbers")
        return range(*parts)

    def _scalar(self, given: Any, where: str) -> Any:
        if type(given) is not list or len(given) != 2 or type(given[0]) is not str:
            refuse(where, "is no number with its type")
        name: str = given[0]
        value: Any = self.value(given[1], where)
        if name in TIMES and type(value) is int and -(1 << 63) <= value < 1 << 63:
            return np.int64(value).view(name)
        wanted = {"b": bool, "i": int, "u": int, "f": float, "U": str}
        kind = SCALARS.get(name)
        if kind is None:
            refuse(where, "is of no type that a model file knows")
        dtype: Any = np.dtype(kind)
        good = type(value) is wanted[dtype.kind]
        if not good or (dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max):
            refuse(where, f"is no {name}")
        with np.errstate(over="ignore"):
            return kind(value)

    def _named(self, table: dict[str, Any], given: Any, where: str) -> Any:
        if type(given) is not str or given not in table:
            refuse(where, "is of no type that a model file knows")
        return table[given]

    def _dtype(self, given: Any, where: str) -> Any:
        if type(given) is not str or given not in DTYPE_NAMES:
            refuse(where, "is of no type that a model file knows")
        return np.dtype(given)

    # -- arrays ----------------------------------------------------------------------------------------------

    def array(self, given: Any, where: str) -> Array:
        """Return the array of that name, with memory of its own."""
        if type(given) is not list or len(given) != 3 or not all(type(one) is str for one in given):
            refuse(where, "is no array with its layout and type")
        name, order, holds = given
        if order not in ("C", "F"):
            refuse(where, "has a layout that is neither by rows nor by columns")
        value = _from_stored(self._stored(name, where), holds, where)
        return value.T if order == "F" else value

    def _stored(self, name: Any, where: str) -> Array:
        """Return the array of that name as it lies in the file, once."""
        if type(name) is not str or name not in self.arrays:
            refuse(where, f"is the array {name!r:.80}, which the file does not have")
        if name in self.used:
            refuse(where, f"is the array {name[:80]!r}, which belongs to another value")
        self.used.add(name)
        return self.arrays[name]

    def _objects(self, given: Any, where: str) -> Array:
        if type(given) is not list or len(given) != 2 or not are_sizes(given[0]):
            refuse(where, "is no array of objects")
        shape, entries = given
        if type(entries) is not list or len(entries) != math.prod(shape):
            refuse(where, "has another number of entries than its shape")
        result = np.empty(len(entries), dtype=object)
        for k, one in enumerate(entries):
            result[k] = self.value(one, f"{where}[{k}]")
        return result.reshape(shape)

    def _words(self, given: Any, where: str) -> Array:
        if type(given) is not list or len(given) != 3 or not are_sizes(given[0]):
            refuse(where, "is no array of text")
        letters, ends = (self._stored(name, where) for name in given[1:])
        if letters.dtype.name != "uint8" or ends.dtype.name != "int64" or letters.ndim != 1:
            refuse(where, "is no array of text")
        if ends.shape != (math.prod(given[0]),):
            refuse(where, "has another number of words than its shape")
        rising = ends.size == 0 or (ends[0] >= 0 and (ends[1:] >= ends[:-1]).all())
        if not rising or (int(ends[-1]) if ends.size else 0) != letters.size:
            refuse(where, "has words that do not follow each other")
        result, start, data = np.empty(ends.size, dtype=object), 0, letters.data
        try:
            for k, end in enumerate(map(int, ends)):
                result[k], start = str(data[start:end], "utf-8", SURROGATES), end
        except UnicodeDecodeError:
            refuse(where, "has letters that are not UTF-8")
        return result.reshape(given[0])

    def _masked(self, given: Any, where: str) -> Any:
        data, mask, fill = self.list_of(given, where, 3)
        if not (isinstance(data, np.ndarray) and isinstance(mask, np.ndarray)):
            refuse(where, "is no masked array")
        if mask.dtype != np.bool_ or mask.shape != data.shape:
            refuse(where, "is no masked array")
        try:
            return np.ma.MaskedArray(data, mask, fill_value=fill)
        except (TypeError, ValueError):
            refuse(where, "is no masked array")

    def _sparse(self, given: Any, where: str) -> Any:
        if type(given) is not list or len(given) != 5 or not are_sizes(given[1]) or len(given[1]) != 2:
            refuse(where, "is no sparse matrix")
        kind = self._named(SPARSE, given[0], where)
        shape, parts = tuple(given[1]), self.list_of(given[2:], where, 3)
        require_sparse(parts, shape if kind.__name__.startswith("csr") else shape[::-1], where)
        return kind(tuple(parts), shape=shape, copy=False)

    def _random_state(self, given: Any, where: str) -> Any:
        keys, place, has_gauss, gauss = self.list_of(given, where, 4)
        good = isinstance(keys, np.ndarray) and keys.dtype == np.uint32 and keys.shape == (624,)
        good = good and type(place) is int and 0 <= place <= 624 and has_gauss in (0, 1)
        if not good or type(has_gauss) is not int or type(gauss) is not float:
            refuse(where, "is no generator of random numbers")
        made = np.random.RandomState(0)
        made.set_state(("MT19937", keys, place, has_gauss, gauss))
        return made

    def _generator(self, given: Any, where: str) -> Any:
        state, inc, has_uint32, uinteger = self.list_of(given, where, 4)
        good = all(type(one) is int and one >= 0 for one in (state, inc, has_uint32, uinteger))
        if not good or max(state, inc) >= 1 << 128 or has_uint32 > 1 or uinteger >= 1 << 32:
            refuse(where, "is no generator of random numbers")
        made = np.random.PCG64(0)
        made.state = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": inc},
            "has_uint32": has_uint32,
            "uinteger": uinteger,
        }
        return np.random.Generator(made)


_READERS: dict[str, Callable[[Decoder, Any, str], Any]] = {
    "float": Decoder._float,
    "list": Decoder._long,
    "tuple": lambda self, given, where: tuple(
        self.list_of(given, where) if type(given) is list else self._long(given, where)
    ),
    "dict": Decoder._dict,
    "set": Decoder._set,
    "range": Decoder._range,
    "slice": lambda self, given, where: slice(*self.list_of(given, where, 3)),
    "scalar": Decoder._scalar,
    "type": lambda self, given, where: self._named(TYPES, given, where),
    "dtype": Decoder._dtype,
    "array": Decoder.array,
    "objects": Decoder._objects,
    "words": Decoder._words,
    "masked": Decoder._masked,
    "sparse": Decoder._sparse,
    "random_state": Decoder._random_state,
    "generator": Decoder._generator,
}


def _hashable(value: Any, where: str) -> Any:
    if isinstance(value, list | dict | set | np.ndarray | slice):
        refuse(where, "has a list, dictionary or array as a key")
    try:
        hash(value)
    except TypeError:
        refuse(where, "has a key that cannot be one")
    return value


def _from_stored(stored: Array, holds: str, where: str) -> Array:
    """Return a copy of an array of the file as what it holds."""
    if holds == "text":
        if stored.dtype.name != "uint32" or stored.ndim == 0 or not stored.shape[-1]:
            refuse(where, "is no array of text")
        if stored.size and int(stored.max()) > LAST_CHARACTER:
            refuse(where, "has characters that there are not")
        text = np.empty(stored.shape[:-1], f"<U{stored.shape[-1]}")
        np.copyto(text[..., None].view(np.uint32) if text.size else stored, stored)
        return text
    if holds in TIMES:
        if stored.dtype.name != "int64":
            refuse(where, f"is no array of {holds}")
        return stored.copy().view(holds)
    if holds not in DTYPES.values() or stored.dtype.name != holds:
        refuse(where, f"is stored as {stored.dtype.name} and said to be {holds[:40]}")
    if holds == "bool" and stored.size and int(stored.view(np.uint8).max()) > 1:
        refuse(where, "has truth values that are neither 0 nor 1")
    return stored.astype(np.dtype(holds), copy=True)


def require_sparse(parts: list[Any], shape: tuple[int, int], where: str) -> None:
    """Raise a :class:`ModelFileError` unless these are values, indices and starts of such a CSR matrix."""
    if not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts):
        refuse(where, "is no sparse matrix")
    data, indices, starts = parts
    if data.dtype.kind not in "biuf" or indices.dtype != starts.dtype or indices.dtype.kind != "i":
        refuse(where, "is no sparse matrix of numbers")
    if indices.dtype.itemsize < 4 or shape[0] + 1 != starts.size or data.size != indices.size:
        refuse(where, "is a sparse matrix whose parts have lengths that do not fit")
    if max(shape) > np.iinfo(np.int32).max:
        refuse(where, "is a sparse matrix with more than 2,147,483,647 rows or columns")
    if starts[0] != 0 or starts[-1] != data.size or (np.diff(starts) < 0).any():
        refuse(where, "is a sparse matrix whose rows do not follow each other")
    if indices.size and (indices.min() < 0 or indices.max() >= shape[1]):
        refuse(where, "is a sparse matrix with entries outside of its columns")
