"""Values as JSON and arrays, and back, bit by bit.

    None, True, 7, 0.5, "text", [...]     as JSON has them
    nan, inf, -inf                        {"float": "nan"}
    tuples, sets, dictionaries            {"tuple": [...]}, {"set": [...]}, {"dict": [[key, value], ...]}
    range, slice                          {"range": [start, stop, step]}, {"slice": [start, stop, step]}
    NumPy's numbers                       {"scalar": ["float32", 0.5]}
    types of numbers                      {"type": "float64"}, {"dtype": "float64"}
    arrays                                {"array": [name, "C" or "F", what it holds]}
    arrays of text                        {"text": [shape, [...]]}
    arrays of objects                     {"objects": [shape, [...]]}
    masked arrays                         {"masked": [data, mask, fill value]}
    sparse matrices                       {"sparse": ["csr_array", shape, data, indices, starts]}
    generators of random numbers          {"random_state": [...]}
    parts of models, and models           {"part": [name, [...]]}, {"model": [name, {...}, {...}]}

The layout of an array is kept, since products of matrices round by it. An array that is there twice is stored
once. Nothing is looked up by a name from the file but in the tables below.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.app.model_file.container import DTYPES, are_sizes, canonical
from sixfold.errors import ModelFileError

Array = NDArray[Any]

DEEPEST = 60  # nesting of values
MOST_TEXT_TIMES = 1000
SCALARS: dict[str, Any] = {
    name: np.dtype(name).type for name in (*DTYPES.values(), "datetime64", "timedelta64")
} | {"str": np.str_}
TIMES = {
    f"{kind}[{unit}]"
    for kind in ("datetime64", "timedelta64")
    for unit in ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"]
}
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


class Encoder:
    """Makes JSON of values and collects the arrays in them.

    Parameters
    ----------
    describe : callable
        Returns the JSON of a part of a model, or of a model; None for what is neither.
    """

    def __init__(self, describe: Callable[[Any, str, Encoder], Any]) -> None:
        self.describe = describe
        self.arrays: dict[str, Array] = {}
        self._stored: dict[tuple[int, str], tuple[Any, Any]] = {}  # with the array, so that it stays

    def node(self, value: Any, where: str) -> Any:
        """Return JSON for a value; ``where`` names it in errors, and its arrays in the file."""
        kind = type(value)
        if kind in PLAIN:
            return self._plain(value, where)
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        made = _CONTAINERS.get(kind)
        if made is not None:
            return made(self, value, where)
        if isinstance(value, np.ndarray):
            return (
                self._masked(value, where)
                if isinstance(value, np.ma.MaskedArray)
                else self.array(value, where)
            )
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if kind.__name__ in SPARSE and kind is SPARSE[kind.__name__]:
            parts = {"data": value.data, "indices": value.indices, "indptr": value.indptr}
            nodes = [self.array(part, f"{where}.{name}") for name, part in parts.items()]
            return {"sparse": [kind.__name__, list(value.shape), *nodes]}
        if isinstance(value, np.dtype) and value.name in DTYPE_NAMES:
            return {"dtype": value.name}
        if isinstance(value, type) and value in TYPES.values():
            return {"type": next(name for name, known in TYPES.items() if known is value)}
        described = self.describe(value, where, self)
        return described if described is not None else _cannot_save(value, where)

    def _plain(self, value: Any, where: str) -> Any:
        if type(value) is int and abs(value) >= 10**4000:
            raise ModelFileError(f"{where} is a whole number of more than 4000 digits. Use a smaller one.")
        return value

    def _list(self, value: Any, where: str) -> list[Any]:
        return [self.node(one, f"{where}[{k}]") for k, one in enumerate(value)]

    def _dict(self, value: dict[Any, Any], where: str) -> Any:
        return {
            "dict": [
                [self.node(key, f"a key of {where}"), self.node(one, f"{where}[{key!r:.80}]")]
                for key, one in value.items()
            ]
        }

    def _set(self, value: Any, where: str) -> Any:
        return {"set": sorted(self._list(value, where), key=canonical)}

    def _scalar(self, value: Any, where: str) -> Any:
        name = "str" if isinstance(value, np.str_) else value.dtype.name
        if name in TIMES:
            return {"scalar": [name, int(value.astype(np.int64))]}
        if name not in SCALARS:
            _cannot_save(value, where)
        return {"scalar": [name, self.node(value.item(), where)]}

    def _masked(self, value: Any, where: str) -> Any:
        mask = np.ma.getmaskarray(value)
        fill = self.node(value.fill_value, f"{where}.fill_value")
        return {"masked": [self.array(value.data, where), self.array(mask, f"{where}.mask"), fill]}

    def _random_state(self, value: Any, where: str) -> Any:
        name, keys, *rest = value.get_state(legacy=True)
        if name != "MT19937":
            _cannot_save(value, where)
        return {"random_state": [self.array(keys, where), *(self.node(one, where) for one in rest)]}

    def array(self, value: Array, where: str) -> Any:
        """Return JSON for an array, which is collected."""
        value = np.asarray(value)
        if value.dtype.kind == "O":
            return self._objects(value, where)
        if value.dtype.kind == "U":
            return {"text": [list(value.shape), value.ravel().tolist()]}
        holds = value.dtype.name
        if holds not in TIMES and holds not in DTYPES.values():
            _cannot_save(value, where)
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        known = self._stored.get((id(value), holds))
        if known is None:
            name = self._name(where)
            self.arrays[name] = _as_stored(value.T if order == "F" else value, holds)
            known = self._stored[id(value), holds] = value, [name, order, holds]
        return {"array": known[1]}

    def _objects(self, value: Array, where: str) -> Any:
        return {"objects": [list(value.shape), self._list(value.ravel().tolist(), where)]}

    def _name(self, where: str) -> str:
        """Return a name in the file that no other array has."""
        name, count = where, 2
        while name in self.arrays or name == "__metadata__":
            name, count = f"{where} ({count})", count + 1
        return name


_CONTAINERS: dict[type, Callable[[Encoder, Any, str], Any]] = {
    list: Encoder._list,
    tuple: lambda self, value, where: {"tuple": self._list(value, where)},
    dict: Encoder._dict,
    set: Encoder._set,
    range: lambda self, value, where: {"range": [value.start, value.stop, value.step]},
    slice: lambda self, value, where: {"slice": self._list([value.start, value.stop, value.step], where)},
    np.random.RandomState: Encoder._random_state,
}


def _as_stored(value: Array, holds: str) -> Array:
    """Return an array as it lies in the file."""
    if holds in TIMES:
        value = value.view(np.int64)
    shape = value.shape  # which contiguous arrays of one number lose
    return np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).reshape(shape)


def _cannot_save(value: Any, where: str) -> NoReturn:
    kind = type(value)
    advice = "Use one of Python's or NumPy's numbers, text, lists, tuples or dictionaries in its place"
    if callable(value) and not isinstance(value, type):
        advice = "Functions are code, which no model file holds: pass it by name where it has one"
    raise ModelFileError(
        f"{where} is {value!r:.60}, of type {kind.__module__}.{kind.__qualname__}, which a model file cannot "
        f"hold. {advice}, or use pickle, which whoever loads it has to trust."
    )


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
        self._made: dict[tuple[str, ...], Array] = {}
        self._depth = 0

    def value(self, node: Any, where: str) -> Any:
        """Return the value that JSON describes."""
        if type(node) in PLAIN or (type(node) is float and math.isfinite(node)):
            return node
        self._depth += 1
        if self._depth > DEEPEST:
            raise ModelFileError(f"{where[:200]} is nested too deeply for a model. Save the model again.")
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
        name, value = given[0], self.value(given[1], where)
        if name in TIMES and type(value) is int and -(1 << 63) <= value < 1 << 63:
            return np.int64(value).view(name)
        wanted = {"b": bool, "i": int, "u": int, "f": float, "U": str}
        kind = SCALARS.get(name)
        if kind is None or name.startswith(("datetime", "timedelta")):
            refuse(where, "is of no type that a model file knows")
        dtype = np.dtype(kind)
        if type(value) is not wanted[dtype.kind]:
            refuse(where, f"is no {name}")
        if dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            refuse(where, f"is out of the range of {name}")
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
        if tuple(given) in self._made:
            return self._made[tuple(given)]
        if name not in self.arrays or order not in ("C", "F"):
            refuse(where, f"is the array {name[:80]!r}, which the file does not have")
        if name in self.used:
            refuse(where, f"is the array {name[:80]!r}, which was another one before")
        self.used.add(name)
        value = _from_stored(self.arrays[name], holds, where)
        value = self._made[tuple(given)] = value.T if order == "F" else value
        return value

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

    def _text(self, given: Any, where: str) -> Array:
        found = self._objects(given, where)
        if not all(type(one) is str for one in found.flat):
            refuse(where, "is no array of text")
        width = max(map(len, found.flat), default=1)
        if found.size * width * 4 > MOST_TEXT_TIMES * sum(len(one) + 4 for one in found.flat):
            refuse(where, "is an array of text with entries of too different lengths")
        return found.astype(np.str_)

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
        found = kind(tuple(parts), shape=shape, copy=False)
        return found

    def _random_state(self, given: Any, where: str) -> Any:
        keys, place, has_gauss, gauss = self.list_of(given, where, 4)
        good = isinstance(keys, np.ndarray) and keys.dtype == np.uint32 and keys.shape == (624,)
        good = good and type(place) is int and 0 <= place <= 624 and has_gauss in (0, 1)
        if not good or type(has_gauss) is not int or type(gauss) is not float:
            refuse(where, "is no generator of random numbers")
        made = np.random.RandomState(0)
        made.set_state(("MT19937", keys, place, has_gauss, gauss))
        return made


_READERS: dict[str, Callable[[Decoder, Any, str], Any]] = {
    "float": Decoder._float,
    "tuple": lambda self, given, where: tuple(self.list_of(given, where)),
    "dict": Decoder._dict,
    "set": Decoder._set,
    "range": Decoder._range,
    "slice": lambda self, given, where: slice(*self.list_of(given, where, 3)),
    "scalar": Decoder._scalar,
    "type": lambda self, given, where: self._named(TYPES, given, where),
    "dtype": Decoder._dtype,
    "array": Decoder.array,
    "objects": Decoder._objects,
    "text": Decoder._text,
    "masked": Decoder._masked,
    "sparse": Decoder._sparse,
    "random_state": Decoder._random_state,
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
    if holds in TIMES:
        if stored.dtype != np.int64:
            refuse(where, f"is no array of {holds}")
        return stored.copy().view(holds)
    if holds not in DTYPES.values() or stored.dtype != np.dtype(holds):
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


class Refusal(ModelFileError):
    """A value that is not what it has to be: where it is, and what is wrong with it."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"The model file is damaged: {where[:200]} {reason}. Save the model again.")
        self.where, self.reason = where, reason

    def __reduce__(self) -> Any:
        return type(self), (self.where, self.reason)


def refuse(where: str, reason: str) -> NoReturn:
    """Raise the :class:`ModelFileError` of a value in a file that is not what it has to be."""
    raise Refusal(where, reason)
