"""One row, given in any way in which one writes a row down, as a table with one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.errors import InputError

Array = NDArray[Any]


def one_row(x: Any, names: Sequence[str] = ()) -> Any:
    """Return one row as a table with one row; refuse several.

    ``names`` are those of the columns, by which the values of a dictionary are put in order.
    """
    if hasattr(x, "to_frame") and hasattr(x, "index"):  # a row of a pandas table, with the names it has
        x = x.to_frame().T
    if isinstance(x, dict):
        x = _in_order(x, names)
    if not hasattr(x, "columns") and not sp.issparse(x):
        x = np.asarray(x, dtype=None if not isinstance(x, list | tuple) else object)
        if x.ndim == 0:
            raise InputError(f"x is {x[()]!r:.50}, but explain takes a row: one value for each column.")
        x = x[None, :] if x.ndim == 1 else x
        x = np.array(x.tolist()) if x.dtype == object and _all_numbers(x) else x
    if x.shape[0] != 1:
        raise InputError(f"explain takes one row, and x has {x.shape[0]}. Pass them one by one.")
    return x


def _in_order(x: dict[str, Any], names: Sequence[str]) -> list[Any]:
    if set(x) != set(names):
        wrong = sorted(map(str, set(x) ^ set(names)))
        raise InputError(
            f"x names the columns {', '.join(map(str, x))}, but the model was fitted on {', '.join(names)}: "
            f"{', '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} in only one of them."
        )
    return [x[name] for name in names]


def _all_numbers(x: Array) -> bool:
    return all(isinstance(value, int | float) for value in x.ravel().tolist())
