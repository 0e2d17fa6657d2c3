"""Rows that are no numbers: texts, graphs, whatever a function of two lists can compare.

There is nothing to compute with but what the function returns, so such rows are learnt from as kernel values.
"""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.errors import InputError
from sixfold.geometry.kernels import Called, Kernel

Array = NDArray[Any]


def are_things(kernel: Any, X: Any) -> bool:
    """Return whether X is a list of what only this function can compare.

    >>> are_things(max, ["a text", "another"]), are_things(max, [[1.0, 2.0]]), are_things("rbf", ["a text"])
    (True, False, False)
    """
    if not callable(kernel) or isinstance(kernel, Kernel) or sp.issparse(X):
        return False
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype.kind in "OUS" and X.size > 0
    if not isinstance(X, list | tuple) or len(X) == 0:
        return False
    return not isinstance(X[0], list | tuple | np.ndarray | Number)


def kernel_values(kernel: Any, X: Any, Z: Any) -> Array:
    """Return what the function makes of two lists of things, checked for its shape and for numbers."""
    called = Called(kernel)
    return called.require_values(called.values(as_things(X), as_things(Z)))


def one_thing(x: Any) -> Any:
    """Return a thing, given as itself or in a list of its own, as a list of one; refuse several.

    >>> one_thing("a text"), one_thing(["a text"])
    (['a text'], ['a text'])
    """
    if not isinstance(x, list | tuple | np.ndarray):
        return [x]
    things = as_things(np.atleast_1d(x) if isinstance(x, np.ndarray) else x)
    if things.size != 1:
        raise InputError(f"explain takes one row, and x has {things.size}. Pass them one by one.")
    return things.tolist()


def as_things(X: Any) -> Array:
    """Return things as an array of one axis, whatever they are."""
    things = np.empty(len(X), dtype=object)
    things[:] = list(X)
    return things
