"""Transfer: what belongs to the nearest training rows is handed on, whatever it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError


def picked(payload: Any, rows: NDArray[Any], count: int) -> Any:
    """Return the payload of the rows (queries x neighbours): arrays and tables as such, others as lists.

    >>> picked(["cat", "dog", "fish"], np.array([[2], [0]]), 3)
    ['fish', 'cat']
    >>> picked(np.eye(3), np.array([[2, 0]]), 3)
    array([[[0., 0., 1.],
            [1., 0., 0.]]])
    """
    try:
        length = len(payload)
    except TypeError as error:
        kind = type(payload).__name__
        raise InputError(f"payload is of type {kind}. Pass a sequence, one entry a training row.") from error
    if length != count:
        raise InputError(f"payload has {length} entries for {count} training rows. Pass one for each.")
    first = rows[:, 0] if rows.shape[1] == 1 else None
    if isinstance(payload, np.ndarray):
        return payload[rows if first is None else first]
    if hasattr(payload, "columns") or hasattr(payload, "to_numpy"):
        return _from_table(payload, rows if first is None else first)
    if first is not None:
        return [payload[row] for row in first.tolist()]
    return [[payload[row] for row in some] for some in rows.tolist()]


def _from_table(payload: Any, rows: NDArray[Any]) -> Any:
    """Return rows of a table or column; a list of them where there are several neighbours."""
    import narwhals.stable.v1 as nw

    table: Any = nw.from_native(payload, eager_only=True, allow_series=True)
    if rows.ndim == 1:
        return table[rows.tolist()].to_native()
    return [table[some].to_native() for some in rows.tolist()]
