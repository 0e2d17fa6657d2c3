"""Whether a Gram matrix is one of dot products, as far as the dual of an SVM can tell.

    b'K b >= 0   for all b with sum b = 0

is what makes D of :mod:`sixfold.solvers.kernel.dual` concave where it is looked at, b_i = y_i a_i. It holds
if K centred, J K J with J = I - 11'/n, is positive semi-definite, so a constant added to K changes nothing.
Rounding moves eigenvalues by some n e max |K|: the answer is that of a Cholesky factorisation with so much
added to the diagonal (Higham, 2002, Accuracy and stability of numerical algorithms, section 10.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[Any]

ROUNDINGS = 32.0  # of the largest value, a row: what counts as 0


def definite_when_balanced(gram: Array) -> bool:
    """Return whether no b with sum b = 0 has b'K b < 0, but for rounding.

    Parameters
    ----------
    gram : ndarray of shape (n, n), float64
        Symmetric.

    Examples
    --------
    >>> definite_when_balanced(np.array([[0.0, -1.0], [-1.0, 0.0]]))  # b'K b = 2 for b = (1, -1)
    True
    >>> definite_when_balanced(np.array([[0.0, 1.0], [1.0, 0.0]]))
    False
    """
    n = gram.shape[0]
    with np.errstate(over="ignore", invalid="ignore"):  # values that overflow say nothing
        means = gram.mean(axis=0)
        centred = np.subtract(gram, means, order="F")
        centred -= (means - means.mean())[:, None]
        largest = max(float(gram.max(initial=0.0)), -float(gram.min(initial=0.0)))
    centred.flat[:: n + 1] += ROUNDINGS * n * float(np.finfo(np.float64).eps) * largest
    if largest == 0.0:
        return True
    if not np.isfinite(centred).all():
        return False
    _, failed = lapack.dpotrf(centred, lower=1, clean=0, overwrite_a=1)
    return not failed
