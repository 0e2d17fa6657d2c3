"""Rows that are no numbers: texts, graphs, whatever objects a function of two lists can compare.

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


def are_objects(kernel: Any, X: Any) -> bool:
    """Return whether X is a list of what only this function can compare.

    >>> are_objects(max, ["a text", "another"]), are_objects(max, [[1.0]]), are_objects("rbf", ["a text"])
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
    """Return what the function makes of two lists of objects, checked for its shape and for numbers."""
    called = Called(kernel)
    return called.require_values(called.values(as_objects(X), as_objects(Z)))


def one_object(x: Any) -> Any:
    """Return an object, given as itself or in a list of its own, as a list of one; refuse several.

    >>> one_object("a text"), one_object(["a text"])
    (['a text'], ['a text'])
    """
    if not isinstance(x, list | tuple | np.ndarray):
        return [x]
    objects = as_objects(np.atleast_1d(x) if isinstance(x, np.ndarray) else x)
    if objects.size != 1:
        raise InputError(f"explain takes one row, and x has {objects.size}. Pass them one by one.")
    return objects.tolist()


def as_objects(X: Any) -> Array:
    """Return objects as an array of one axis, whatever they are."""
    objects = np.empty(len(X), dtype=object)
    objects[:] = list(X)
    return objects
