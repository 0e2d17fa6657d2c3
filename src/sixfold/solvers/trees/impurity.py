"""How mixed the classes of a node are, from the weight w_c of each class, p_c = w_c / sum_c w_c.

    entropy, gain_ratio    - sum_c p_c log2 p_c     bits that a class drawn from the node tells
    gini                   1 - sum_c p_c^2          how often two draws differ
    homogeneous            0 if one p_c is 1, else 1

Each is 0 where all rows are of one class. Gain ratio chooses splits in another way than entropy, but measures
nodes by the same entropy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def impurity(totals: Array, criterion: str) -> NDArray[np.float64]:
    """Return the impurity of each node.

    Parameters
    ----------
    totals : ndarray of shape (..., classes)
        The weight of each class; some weight is above 0.
    criterion : {"entropy", "gini", "gain_ratio", "homogeneous"}

    Examples
    --------
    >>> import numpy as np
    >>> impurity(np.array([[2.0, 2.0], [3.0, 0.0]]), "entropy")
    array([1., 0.])
    """
    totals = np.asarray(totals, dtype=np.float64)
    return IMPURITIES[criterion](totals / totals.sum(axis=-1, keepdims=True))


def _entropy(share: Array) -> Array:
    return (share * -np.log2(share, out=np.zeros_like(share), where=share > 0.0)).sum(axis=-1)


def _gini(share: Array) -> Array:
    # As p (1 - p): nothing cancels, and a pure node has 0 exactly.
    return (share * (1.0 - share)).sum(axis=-1)


def _homogeneous(share: Array) -> Array:
    return ((share > 0.0).sum(axis=-1) > 1).astype(np.float64)


IMPURITIES: dict[str, Callable[[Array], Array]] = {
    "entropy": _entropy,
    "gini": _gini,
    "gain_ratio": _entropy,
    "homogeneous": _homogeneous,
}
