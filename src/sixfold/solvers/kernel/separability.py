"""Whether two classes can be told apart in the space of a kernel at all, which the hard margin asks for.

No plane does where a point of one hull is a point of the other: for some weights a_i >= 0 with sum 1,

    sum_i a_i y_i = 0   and   |sum_i a_i y_i phi(x_i)|^2 = sum_ij a_i a_j y_i y_j K_ij = 0

and if there are none, some plane does (Gordan). Such weights are the proof that is returned; they are checked
against kernel values, in which a sum of squares counts as 0 below what rounding can make of it:

    |sum_ij a_i a_j y_i y_j K_ij|  <=  64 e (sum_i a_i |phi(x_i)|)^2,     e the rounding of a kernel value

The shortest point of the hull of all p_i = y_i (phi(x_i), c) is 0 if there are weights, and a plane if there
are none. It needs the points written down, in one of two ways:

*Explicitly.* Linear and polynomial kernels have spaces of few coordinates: the columns, or their products.
Whether a plane separates does not depend on the units of these, nor, where coef0 > 0, on the zero of the
columns, so they are scaled and centred, and columns of very different sizes cost no digits.

*From the Gram matrix.* Otherwise the rows of its Cholesky factor are coordinates, pivoted and cut off where
rounding begins. That is done for the rows with the largest dual variables first; while a plane separates
them, the rows it has furthest on the wrong side join in.

Rows that all differ are never on top of each other in the space of the RBF kernel, so a proof there, unless
it is two equal rows, says that the margin is below 1e-7 of the size of the points: float64 cannot see it.

Sources: Gordan (1873); Higham (2002), Accuracy and stability of numerical algorithms, section 10.3.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.blocks import MemoryBlocks
from sixfold.geometry.kernels import Precomputed
from sixfold.risk.losses import LOSSES
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem
from sixfold.solvers.separation.hull_search import MOST_NUMBERS, ProjectedPoints, find_direction
from sixfold.solvers.separation.min_norm_point import Corral, shorten
from sixfold.solvers.separation.separation import Proof
from sixfold.solvers.separation.signed_points import SignedPoints

if TYPE_CHECKING:  # the solver that asks imports this file
    from sixfold.solvers.kernel.dual import DualProblem

Array = NDArray[Any]
EPS = float(np.finfo(np.float64).eps)

ZERO = 64.0  # roundings of the size of its terms: what a sum of squares that is 0 may come to
CUT_OFF = 32.0  # roundings: a pivot of the Gram matrix below is none
MOST_MONOMIALS = 1000  # coordinates of a polynomial kernel that are written out
FIRST_ROWS = 1000  # with the largest dual variables, whose Gram matrix is looked at first
MOST_ROWS = 6000  # a Gram matrix of 288 MB; beyond, the answer stays open
MOST_DIMENSIONS = 500  # of dependent points, for which the shortest takes 10 s; beyond, the answer stays open
HALF_WAY = 0.5  # of the margin of the shortest point so far: rows nearer than that join in


def overlap(problem: DualProblem, alpha: Array, budget: Budget) -> Proof | None:
    """Return the proof that no plane separates the classes in the kernel's space.

    Parameters
    ----------
    problem : DualProblem
    alpha : ndarray of shape (rows of the problem,)
        Dual variables so far, of which the largest say where to look first; zeros will do.
    budget : Budget

    Returns
    -------
    Proof or None
        Its rows are numbers in the table, ``problem.index`` included. None where a plane separates, and where
        size or time leave it open.
    """
    if np.unique(problem.y).size < 2:
        return None
    try:
        points = _written_out(problem, budget)
        if points is not None:
            direction, support = find_direction(ProjectedPoints.of(points, points.lengths()))
            if support is not None:
                return _checked(problem, *support, budget)
            if direction is not None:
                return None
        return _among_rows(problem, alpha, budget)
    except BudgetExhausted:
        return None


def _checked(problem: DualProblem, places: Array, weights: Array, budget: Budget) -> Proof | None:
    """Return the weights as a proof, if kernel values agree that they are one.

    In a positive semi-definite kernel, |phi(x).g| <= |phi(x)| |g| for the difference g of the hull points, so
    no row of the problem has a score either. Where the kernel is not, that is asked for all the same: no
    combination of kernel values tells one mixture from the other.
    """
    places, weights = places[weights > 0.0], weights[weights > 0.0]
    side = problem.y[places]
    if np.unique(side).size < 2:
        return None
    for sign in (-1.0, 1.0):
        weights = np.where(side == sign, 0.5 * weights / weights[side == sign].sum(), weights)
    signed, rows = weights * side, problem.index[places]
    scores = problem.rows.scores(problem.index, rows, signed[:, None], np.float64, budget)[:, 0]
    sizes = np.sqrt(np.maximum(problem.rows.diagonal()[problem.index], 0.0))
    size = float(weights @ sizes[places])
    allowed = ZERO * _rounding(problem) * size**2
    square = float(signed @ scores[places])
    if abs(square) > allowed or (np.abs(scores) > 2.0 * np.sqrt(allowed) * sizes + allowed).any():
        return None
    order = np.argsort(rows, kind="stable")
    return Proof(rows[order], None, weights[order], float(np.sqrt(max(square, 0.0))) / (size or 1.0))


def _rounding(problem: DualProblem) -> float:
    """Return how far a kernel value is off, relative to the size of the points."""
    kernel, form = problem.rows.kernel, problem.rows.kernel.form
    if isinstance(kernel, Precomputed):
        return float(np.finfo(problem.rows.dtype).eps)
    if form is None:
        return EPS
    # Distances lose digits that dot products have; their exponentials are at most 1.
    return max(EPS, problem.rows.entry_error(np.float64)) if form.kind == "rbf" else form.degree * EPS


# -- the space written out ---------------------------------------------------------------------------------


def _written_out(problem: DualProblem, budget: Budget) -> SignedPoints | None:
    """Return the points of a linear or polynomial kernel; None where there are too many coordinates."""
    kernel, X = problem.rows.kernel, problem.rows.table
    form = kernel.form
    if form is None or form.kind not in ("linear", "polynomial") or not kernel.definite or form.degree == 0:
        return None
    rows = X if np.array_equal(problem.index, np.arange(X.shape[0])) else X[problem.index]
    if form.kind == "polynomial" and form.degree > 1:
        count = _count(rows.shape[1], form.degree, form.coef0)
        if count > min(MOST_MONOMIALS, MOST_NUMBERS // rows.shape[0]):
            return None
        dense = rows.toarray() if sp.issparse(rows) else rows
        rows = monomials(dense, form.degree, form.coef0 > 0.0)
    blocks = MemoryBlocks(rows, problem.y[:, None])
    return SignedPoints(Problem(LOSSES["hinge"], make_penalty(None)), blocks, budget)


def _count(columns: int, degree: int, coef0: float) -> int:
    return comb(columns + degree, degree) if coef0 > 0.0 else comb(columns + degree - 1, degree)


def monomials(X: Array, degree: int, lower: bool) -> Array:
    """Return all products of ``degree`` columns, and of fewer if ``lower``, in units of the columns.

    With the lower ones, (x - m) / s spans what x does, so columns are centred.

    >>> monomials(np.array([[1.0, 2.0], [-1.0, 4.0]]), 2, lower=False)
    array([[ 1.  ,  0.5 ,  0.25],
           [ 1.  , -1.  ,  1.  ]])
    """
    X = np.asarray(X, dtype=np.float64)
    if lower:
        X = X - X.mean(axis=0)
    unit = np.abs(X).max(axis=0, initial=0.0)
    X = X / np.where(unit > 0.0, unit, 1.0)
    degrees = range(1, degree + 1) if lower else [degree]
    chosen = [list(c) for k in degrees for c in combinations_with_replacement(range(X.shape[1]), k)]
    return np.column_stack([X[:, columns].prod(axis=1) for columns in chosen])


# -- the space of a Gram matrix ----------------------------------------------------------------------------


def _among_rows(problem: DualProblem, alpha: Array, budget: Budget) -> Proof | None:
    """Return a proof among some rows, which grow until there is one, or a plane separates all."""
    diagonal = problem.rows.diagonal()[problem.index]
    constant = _constant(diagonal)
    if (diagonal + constant <= 0.0).any():  # not positive semi-definite: there is no such space
        return None
    lengths, rounding = np.sqrt(diagonal + constant), _rounding(problem)
    rows = _first_rows(problem.y, alpha)
    while rows.size <= MOST_ROWS:
        gram = problem.rows.gram(problem.index[rows], np.float64, budget)
        proof = _equal_pair(problem, rows, gram, budget)
        if proof is not None:
            return proof
        cosines = (gram + constant) / lengths[rows, None] / lengths[rows]
        shortest = _shortest(cosines, problem.y[rows], CUT_OFF * rounding, budget)
        if shortest is None:
            return None
        weights, direction = shortest
        if weights is not None:
            proof = _checked(problem, rows, weights / lengths[rows], budget)
        if proof is not None or rows.size == problem.y.size:
            return proof
        margins = _margins(problem, rows, direction / lengths[rows], constant, budget) / lengths
        near = np.flatnonzero(margins <= HALF_WAY * max(margins[rows].min(), 0.0))
        fresh = np.setdiff1d(near, rows)
        if fresh.size == 0:
            return None
        worst = fresh[np.argsort(margins[fresh], kind="stable")[: rows.size]]
        rows = np.sort(np.concatenate([rows, worst]))
    return None


def _constant(diagonal: Array) -> float:
    """Return c^2, about as large as |phi|^2 for most rows, so that either half of a point counts."""
    return float(np.median(np.abs(diagonal))) or float(np.abs(diagonal).max()) or 1.0


def _first_rows(y: Array, alpha: Array) -> Array:
    """Return the rows with the largest dual variables, of either class."""
    order = np.argsort(-alpha, kind="stable")
    half = FIRST_ROWS // 2
    return np.sort(np.concatenate([order[y[order] == sign][:half] for sign in (-1.0, 1.0)]))


def _equal_pair(problem: DualProblem, rows: Array, gram: Array, budget: Budget) -> Proof | None:
    """Return the proof by two rows of different classes that are the same point, if there are such."""
    plus, minus = (np.flatnonzero(problem.y[rows] == sign) for sign in (1.0, -1.0))
    diagonal = np.diagonal(gram)
    size = diagonal[plus, None] + diagonal[minus]
    apart = size - 2.0 * gram[np.ix_(plus, minus)]
    i, j = divmod(
        int(np.argmin(np.where(size > 0.0, apart / np.where(size > 0.0, size, 1.0), apart))), minus.size
    )
    return _checked(problem, rows[[plus[i], minus[j]]], np.ones(2), budget)


def _shortest(cosines: Array, y: Array, cut_off: float, budget: Budget) -> tuple[Array | None, Array] | None:
    """Return the shortest point of the hull of p_i = y_i (phi(x_i), c), each of length 1; None if left open.

    Returns
    -------
    weights : ndarray or None
        Of the p_i, which sum to 1; None where points are independent, so that no combination of them is 0.
    direction : ndarray
        Also weights of the p_i, for a direction that has all of them on one side if there is one.
    """
    factor, order, rank, _ = dpstrf(cosines, tol=cut_off, lower=1)
    order = order - 1
    if rank == y.size:
        half = solve_triangular(factor, y[order], lower=True, check_finite=False)
        solved = np.empty(y.size)
        solved[order] = solve_triangular(factor, half, lower=True, trans=1, check_finite=False)
        return None, y * solved
    if rank > MOST_DIMENSIONS:
        return None
    points = y[order, None] * np.tril(factor)[:, :rank]

    def price(r: Array) -> tuple[int, Array, float]:
        gains = points @ r[:-1]
        best = int(np.argmax(gains))
        return best, points[best], float(gains[best] + r[-1])

    def out_of_time() -> bool:
        return budget.interrupted or budget.seconds_left <= 0

    corral = Corral(rank)
    shorten(corral, price, HALF_WAY, out_of_time)
    if out_of_time():
        raise BudgetExhausted
    weights = np.zeros(y.size)
    weights[order[corral.labels]] = corral.combination()
    return weights, weights


def _margins(problem: DualProblem, rows: Array, weights: Array, constant: float, budget: Budget) -> Array:
    """Return sum_j weight_j y_j (K_ij + c^2), times y_i, for every row of the problem."""
    used = np.flatnonzero(weights)
    signed = (weights * problem.y[rows])[used]
    scores = problem.rows.scores(
        problem.index, problem.index[rows[used]], signed[:, None], np.float64, budget
    )
    return problem.y * (scores[:, 0] + constant * signed.sum())
