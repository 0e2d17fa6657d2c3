"""Exemplar machines in the space of a kernel, by the linear solver on coordinates of the training rows.

    K = L L',   phi(x_i) = row i of L:       w = sum_j beta_j phi(x_j),      f = K beta + b

K is computed and factored once for all exemplars; a multiple of the identity, 1e-12 of its largest entry,
makes up for rank that is missing. From the machines in these coordinates come the multipliers a_i = 2 c_i
max(0, 1 + f_i) of the negatives, and of these alone the model is made: beta_i = -t a_i, and t sum_i a_i for
the exemplar itself, whose machine it is. t is the multiple that is best in the dual, and b the best intercept
beside it: what is off in all a_i at once would cost most, the exemplar's being their sum. Objective and bound
are those of this beta and K itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from sixfold.errors import InputError

Array = NDArray[Any]

JITTERS = (1e-12, 1e-10, 1e-8)  # of the largest entry of the diagonal
MOST_INTERCEPTS = 40  # that are looked at: it takes 2 to 6
UNIT = 0.5 * float(np.finfo(np.float64).eps)


@dataclass
class KernelMachines:
    """The machines of some exemplars.

    Attributes
    ----------
    beta : ndarray of shape (machines, rows)
        The coefficient of every row.
    b, objective, gap, rounding : ndarray of shape (machines,)
        As in :class:`sixfold.solvers.margin.exemplars.machines.Machines`.
    """

    beta: Array
    b: Array
    objective: Array
    gap: Array
    rounding: Array


def coordinates(gram: Array) -> Array:
    """Return rows whose products with each other are those of the kernel.

    Raises
    ------
    InputError
        If the kernel is no dot product on these rows.

    Examples
    --------
    >>> coordinates(np.array([[4.0, 2.0], [2.0, 2.0]])).round(6)
    array([[2., 0.],
           [1., 1.]])
    """
    largest = float(gram.diagonal().max(initial=0.0))
    for jitter in JITTERS:
        matrix = np.array(gram, order="F")
        matrix.flat[:: gram.shape[0] + 1] += jitter * largest
        triangle, failed = lapack.dpotrf(matrix, lower=1, clean=1, overwrite_a=1)
        if not failed:
            return np.ascontiguousarray(triangle)
    raise InputError(
        "The kernel is not positive semi-definite on these rows: it is no dot product in any space, and the "
        "machines have no margin there. Use another kernel, for instance 'rbf' or 'poly' with coef0 >= 0."
    )


def expand(
    gram: Array,
    negatives: Array,
    cost: Array,
    exemplars: Array,
    exemplar_cost: Array,
    scores: Array,
    b: Array,
    entry_error: float,
) -> KernelMachines:
    """Return the machines that the scores of the negatives stand for.

    Parameters
    ----------
    gram : ndarray of shape (rows, rows)
    negatives, exemplars : ndarray of int
        Which rows these are.
    cost, exemplar_cost : ndarray
        c_i of each of the first, C_e of each of the second.
    scores : ndarray of shape (machines, negatives)
        Of the machines in the coordinates.
    b : ndarray of shape (machines,)
    entry_error : float
        How far an entry of the matrix may be off, relative to sqrt(K(x, x) K(z, z)).
    """
    a = 2.0 * cost * np.maximum(1.0 + scores, 0.0)
    total = a.sum(axis=1)
    beta = np.zeros((exemplars.size, gram.shape[0]))
    beta[:, negatives] = -a
    beta[np.arange(exemplars.size), exemplars] = total
    s = beta @ gram
    square = np.einsum("ij,ij->i", beta, s)
    dear = np.einsum("ij,ij->i", a, a / (4.0 * cost)) + total * (total / (4.0 * exemplar_cost))
    bracket = dear + 0.5 * square
    multiple = np.divide(total, bracket, where=bracket > 0, out=np.ones_like(total))
    multiple[~np.isfinite(multiple)] = 1.0
    beta *= multiple[:, None]
    s *= multiple[:, None]
    a *= multiple[:, None]
    total, square, dear = total * multiple, square * multiple**2, dear * multiple**2
    own_scores = s[np.arange(exemplars.size), exemplars]
    b = best_intercepts(s[:, negatives], own_scores, cost, exemplar_cost, b)
    f = s[:, negatives] + b[:, None]
    own = own_scores + b
    inside, inside_own = np.maximum(1.0 + f, 0.0), np.maximum(1.0 - own, 0.0)
    slopes = 2.0 * cost * inside
    loss = 0.5 * np.einsum("ij,ij->i", slopes, inside) + exemplar_cost * inside_own**2
    objective = 0.5 * square + loss
    bracket = dear + 0.5 * square
    lengths = np.sqrt(np.abs(gram.diagonal()))
    size = np.abs(beta) @ lengths
    relative = entry_error + (gram.shape[0] + 8) * UNIT
    score_error = relative * size[:, None] * lengths + 2.0 * UNIT * np.abs(b)[:, None]
    off, own_off = score_error[:, negatives], score_error[np.arange(exemplars.size), exemplars]
    moved = np.einsum("ij,ij->i", slopes, off) + (off**2) @ cost
    moved += 2.0 * exemplar_cost * inside_own * own_off + exemplar_cost * own_off**2
    square_off = relative * size**2
    few = (gram.shape[0] + 16) * UNIT
    up = moved + 0.5 * square_off + few * objective
    higher = bracket + 0.5 * square_off + few * bracket
    bound = (1.0 - 4.0 * few) * np.divide(total * total, higher, where=higher > 0, out=np.zeros_like(b))
    plain = np.divide(total * total, bracket, where=bracket > 0, out=np.zeros_like(b))
    made = KernelMachines(
        beta,
        b.copy(),
        objective + up,
        np.maximum(objective + up - bound, 0.0),
        up + np.maximum(plain - bound, 0.0),
    )
    _make_constant(made, float(cost.sum()), exemplar_cost, few)
    return made


def best_intercepts(scores: Array, own: Array, cost: Array, exemplar_cost: Array, b: Array) -> Array:
    """Return the b for which the losses of each machine add up to least; ``b`` is where they are looked for.

    Their slope rises with b and is made of lines, so that Newton's method ends on the right one; where it
    leaves what is known to hold the answer, that is halved.

    >>> one, two = np.ones(1), np.ones(2)
    >>> best_intercepts(np.array([[-1.0, -2.0]]), one, two, 2.0 * one, 5.0 * one)
    array([0.])
    """
    low, high = np.full(b.size, -np.inf), np.full(b.size, np.inf)
    for _ in range(MOST_INTERCEPTS):
        inside, inside_own = np.maximum(1.0 + scores + b[:, None], 0.0), np.maximum(1.0 - own - b, 0.0)
        slope = inside @ cost - exemplar_cost * inside_own
        curvature = (inside > 0) @ cost + exemplar_cost * (inside_own > 0)
        low, high = np.where(slope < 0, b, low), np.where(slope > 0, b, high)
        step = np.divide(slope, curvature, where=curvature > 0, out=np.zeros_like(b))
        after = b - step
        outside = (after <= low) | (after >= high)
        halved = outside & np.isfinite(low) & np.isfinite(high) & (step != 0)
        after[halved] = 0.5 * low[halved] + 0.5 * high[halved]
        if np.array_equal(after, b):
            break
        b = after
    return b


def _make_constant(made: KernelMachines, total: float, exemplar_cost: Array, few: float) -> None:
    """Replace machines of which rounding has left less than of the best constant by that one."""
    constant = 4.0 / (1.0 / exemplar_cost + 1.0 / total)
    lost = ~(made.gap <= constant)
    made.beta[lost] = 0.0
    made.b[lost] = ((exemplar_cost - total) / (exemplar_cost + total))[lost]
    made.rounding[lost] = few * constant[lost]
    made.objective[lost] = made.gap[lost] = (1.0 + few) * constant[lost]
