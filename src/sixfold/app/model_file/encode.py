"""From values to JSON and arrays, as :mod:`sixfold.app.model_file.values` says."""

from __future__ import annotations

import math
from collections import UserList
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sixfold.app.model_file.container import DTYPES, canonical
from sixfold.app.model_file.values import (
    DTYPE_NAMES,
    LONG,
    PLAIN,
    SCALARS,
    SPARSE,
    SURROGATES,
    TIMES,
    TYPES,
)
from sixfold.errors import ModelFileError

Array = NDArray[Any]


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

    def node(self, value: Any, where: str) -> Any:
        """Return JSON for a value; ``where`` names it in errors, and its arrays in the file."""
        kind = type(value)
        if kind in PLAIN:
            return self._plain(value, where)
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind in _CONTAINERS:
            return _CONTAINERS[kind](self, value, where)
        found = self._number_like(value, where)
        found = self.describe(value, where, self) if found is None else found
        return cannot_save(value, where) if found is None else found

    def _number_like(self, value: Any, where: str) -> Any:
        """Return JSON for what NumPy and SciPy have; None for what they do not."""
        kind = type(value)
        found = None
        if isinstance(value, np.ma.MaskedArray):
            found = self._masked(value, where)
        elif isinstance(value, np.ndarray):
            found = self.array(value, where)
        elif kind.__module__.split(".")[0] == "pandas" and kind.__name__.endswith("Index"):
            found = self.array(value.to_numpy(), where)  # names of columns, which are a list as well
        elif isinstance(value, UserList):  # columns that scikit-learn 1.6 leaves over, which warns of itself
            found = self._plain_list(value.data, where)
        elif isinstance(value, np.generic):
            found = self._scalar(value, where)
        elif SPARSE.get(kind.__name__) is kind:
            parts = {"data": value.data, "indices": value.indices, "indptr": value.indptr}
            nodes = [self.array(part, f"{where}.{name}") for name, part in parts.items()]
            found = {"sparse": [kind.__name__, list(value.shape), *nodes]}
        elif isinstance(value, np.dtype) and value.name in DTYPE_NAMES:
            found = {"dtype": value.name}
        elif isinstance(value, type) and value in TYPES.values():
            found = {"type": next(name for name, known in TYPES.items() if known is value)}
        return found

    def _plain(self, value: Any, where: str) -> Any:
        if type(value) is int and abs(value) >= 10**4000:
            raise ModelFileError(f"{where} is a whole number of more than 4000 digits. Use a smaller one.")
        return value

    def _list(self, value: Any, where: str) -> list[Any]:
        return [self.node(one, f"{where}[{k}]") for k, one in enumerate(value)]

    def _long(self, value: Any, where: str) -> Any:
        """Return JSON for a list or tuple: an array if it is long and all of one kind."""
        kinds = set(map(type, value)) if len(value) >= LONG else set()
        if kinds == {str}:
            return self.array(np.array(value, dtype=object), where)
        if kinds == {float} or (kinds == {int} and -(1 << 63) <= min(value) <= max(value) < 1 << 63):
            return self.array(np.array(value), where)
        return self._list(value, where)

    def _plain_list(self, value: Any, where: str) -> Any:
        found = self._long(value, where)
        return found if type(found) is list else {"list": found}

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
            cannot_save(value, where)
        return {"scalar": [name, self.node(value.item(), where)]}

    def _masked(self, value: Any, where: str) -> Any:
        mask = np.ma.getmaskarray(value)
        fill = self.node(value.fill_value, f"{where}.fill_value")
        return {"masked": [self.array(value.data, where), self.array(mask, f"{where}.mask"), fill]}

    def _random_state(self, value: Any, where: str) -> Any:
        name, keys, *rest = value.get_state(legacy=True)
        if name != "MT19937":
            cannot_save(value, where)
        return {"random_state": [self.array(keys, where), *(self.node(one, where) for one in rest)]}

    def _generator(self, value: Any, where: str) -> Any:
        state = value.bit_generator.state
        if state["bit_generator"] != "PCG64":
            cannot_save(value, where)
        inner = state["state"]
        return {"generator": [inner["state"], inner["inc"], state["has_uint32"], state["uinteger"]]}

    def array(self, value: Array, where: str) -> Any:
        """Return JSON for an array, which is collected."""
        value = np.asarray(value)
        if value.dtype.kind == "O":
            return self._objects(value, where)
        holds = "text" if value.dtype.kind == "U" else value.dtype.name
        if holds not in TIMES and holds != "text" and holds not in DTYPES.values():
            cannot_save(value, where)
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        name = self._name(where)
        self.arrays[name] = _as_stored(value.T if order == "F" else value, holds)
        return {"array": [name, order, holds]}

    def _objects(self, value: Array, where: str) -> Any:
        flat = value.ravel().tolist()
        if not flat or not all(type(one) is str for one in flat):
            return {"objects": [list(value.shape), self._list(flat, where)]}
        words = [one.encode("utf-8", SURROGATES) for one in flat]
        letters, ends = self._name(f"{where}.letters"), self._name(f"{where}.ends")
        self.arrays[letters] = np.frombuffer(b"".join(words), np.uint8)
        self.arrays[ends] = np.cumsum([len(one) for one in words], dtype=np.int64)
        return {"words": [list(value.shape), letters, ends]}

    def _name(self, where: str) -> str:
        """Return a name in the file that no other array has."""
        name, count = where, 2
        while name in self.arrays or name == "__metadata__":
            name, count = f"{where} ({count})", count + 1
        return name


_CONTAINERS: dict[type, Callable[[Encoder, Any, str], Any]] = {
    list: Encoder._plain_list,
    tuple: lambda self, value, where: {"tuple": self._long(value, where)},
    dict: Encoder._dict,
    set: Encoder._set,
    range: lambda self, value, where: {"range": [value.start, value.stop, value.step]},
    slice: lambda self, value, where: {"slice": self._list([value.start, value.stop, value.step], where)},
    np.random.RandomState: Encoder._random_state,
    np.random.Generator: Encoder._generator,
}


def _as_stored(value: Array, holds: str) -> Array:
    """Return an array as it lies in the file."""
    if holds == "text":
        value = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("<"), copy=False))
        return np.frombuffer(value.tobytes(), "<u4").reshape(*value.shape, value.dtype.itemsize // 4)
    if holds in TIMES:
        value = value.view(np.int64)
    shape = value.shape  # which contiguous arrays of one number lose
    return np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).reshape(shape)


def cannot_save(value: Any, where: str) -> NoReturn:
    """Raise the :class:`ModelFileError` of a value that a model file cannot hold."""
    kind = type(value)
    advice = "Use one of Python's or NumPy's numbers, text, lists, tuples or dictionaries in its place"
    if callable(value) and not isinstance(value, type):
        advice = "Functions are code, which no model file holds: pass it by name where it has one"
    raise ModelFileError(
        f"{where} is {value!r:.60}, of type {kind.__module__}.{kind.__qualname__}, which a model file cannot "
        f"hold. {advice}, or use pickle, which whoever loads it has to trust."
    )
