"""A table with more columns than rows, in coordinates of its rows: no more columns than rows are left.

With a penalty on |w|^2, or none, only the part of w that lies in the space of the centred rows counts, so

    w = B' a,     B = X - mean,     B B' = L L'  (Cholesky, L of full column rank),     v = L' a

has scores B w = L v and length |w| = |v|: the same problem with the rows of L in place of those of X. A row
of X that others add up to brings no column. Where columns must not be moved, the mean is 0. One product of
X with itself and one factorisation replace a matrix of second derivatives of d x d in every step: 300 x
2,000 takes 30 times less.

The model that comes back is certified on X itself, with the dual point that was found, which has one entry
a row here as there. With a smooth loss and a penalty its gap goes with the square of what is wrong with it,
so that products in single precision, at half the time, will do for usual tolerances; where they do not, they
are formed again in double precision, and the solver goes on from its model.

*Rows that no others add up to* can have any scores at all. Without a penalty one linear system then gives
them those of the least loss, y itself or so far on the right side that a row is certain in float64: classes
are separated, and nothing has to be searched for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs, lapack

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks, MemoryBlocks
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.linalg import EPS
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]

MAX_ROWS = 3000  # whose products are factored
CERTAIN_SCORE = 40.0  # of which the logistic loss is 4e-18
CLEAR = 10.0  # times what rounding leaves: a pivot that is not rounding in any order of the rows
SHORT = 1e-7  # of the longest column: the square of what rounding leaves of the products of rows
SINGLE_TOL = 1e-7  # from which products in single precision have all digits that count
WORTH_SINGLE = 1 << 24  # multiplications, about 1 ms: below, the digits are worth more
SINGLE_RANGE = 1e-20, 1e30  # of squared lengths
SINGLE_EPS = float(np.finfo(np.float32).eps)
REACHED = 1e-6  # of the scores that were asked for: what may be missing


class SquareSolver(Protocol):
    """A solver that can begin somewhere."""

    def solve(
        self, problem: Problem, blocks: Blocks, budget: Budget, start: Solution | None = None
    ) -> Solution:
        """Minimise the problem."""


@runtime_checkable
class CertifiedOutside(SquareSolver, Protocol):
    """A solver that may leave it to others to certify a model, and may do so from sums alone."""

    def certificate_by_sums(
        self, problem: Problem, w: Array, b: Array, blocks: Blocks, centre: Array, tol: float
    ) -> Certificate | None:
        """Return the certificate of a model; None where sums over the rows do not show convergence."""

    def certified_by(self, outside: Callable[[Array, Array], Certificate]) -> SquareSolver:
        """Return the solver that asks ``outside`` for a certificate, and works it out where that fails."""


@dataclass(frozen=True)
class RowCoordinates:
    """The same problem with fewer columns.

    Attributes
    ----------
    blocks : Blocks
        Rows of L, with the targets and weights of the table.
    basis : ndarray of int
        Rows of X whose span is that of all.
    triangle : ndarray
        The rows of L of the basis, lower triangular.
    single : bool
        Whether the products are in single precision.
    counted : ndarray of bool
        Which rows of the table have a weight: others have no say in what a model gives them.
    """

    problem: Problem
    wide: Blocks
    budget: Budget
    single: bool
    mean: Array
    blocks: MemoryBlocks
    basis: Array
    triangle: Array
    counted: Array

    @classmethod
    def of(
        cls,
        problem: Problem,
        blocks: Blocks,
        budget: Budget,
        factored: bool = True,
        single: bool = False,
    ) -> RowCoordinates | None:
        """Return the problem in coordinates of its rows, or None where that does not make it smaller.

        For a solver that only multiplies with the rows, rather than factor their products (``factored``),
        few entries are small enough. ``single`` is for solvers that need no more digits of the products at
        usual tolerances.
        """
        n = blocks.n_rows
        if n > MAX_ROWS or n >= blocks.n_columns or not problem.penalty.quadratic:
            return None
        block = blocks.whole()
        weight = np.ones(n) if block.weight is None else block.weight
        counted = weight > 0
        if not counted.all():
            blocks = MemoryBlocks(block.X[np.flatnonzero(counted)], block.y[counted], weight[counted])
            block, n = blocks.whole(), blocks.n_rows
        X = block.X
        if blocks.sparse and not factored and X.nnz < n * n:
            return None
        centred = problem.fit_intercept and not blocks.sparse
        mean = np.asarray(X.mean(axis=0), dtype=np.float64) if centred else np.zeros(blocks.n_columns)
        factor = _single_factor(problem, X, mean, n - centred, budget) if single else None
        L, basis = factor or _factor(row_products(X, mean, budget), n - centred)
        if L.shape[1] < n - centred and _graded(X, mean):
            return None
        reduced = MemoryBlocks(L, np.asarray(block.y, dtype=np.float64), block.weight)
        triangle = L[basis]
        return cls(problem, blocks, budget, factor is not None, mean, reduced, basis, triangle, counted)

    def solve(self, solver: SquareSolver, start: Solution | None) -> Solution:
        """Return the solution of the wide problem that a solver finds in these coordinates."""
        perfect = self.perfect_scores() if self.problem.l2 == 0 else None
        if perfect is not None:
            return perfect
        found = self._solve(solver, start)
        if self.single and not found.certificate.converged and not self.budget.exhausted():
            exact = RowCoordinates.of(self.problem, self.wide, self.budget)
            found = found if exact is None else exact._solve(solver, found)
        return replace(found, dual=self._of_all(found.dual))

    def _solve(self, solver: SquareSolver, start: Solution | None) -> Solution:
        inside = None if start is None else self.reduced(start)
        known: list[tuple[Array, Array, Certificate]] = []

        def outside(v: Array, c: Array) -> Certificate:
            """Return the certificate on X, where that in these coordinates would only come before it."""
            w, b = self.model(v, c)
            tol = self.budget.tol
            certificate = able.certificate_by_sums(self.problem, w, b, self.wide, self.mean, tol)
            if certificate is None:
                certificate, _ = self.problem.certify_with_dual(
                    "duality gap", w, b, self.wide, tol, closer=False
                )
            known[:] = [(w, b, certificate)]
            return certificate

        some = solver
        if isinstance(solver, CertifiedOutside):
            able, some = solver, solver.certified_by(outside)
        found = some.solve(self.problem, self.blocks, self.budget, inside)
        if known and known[0][2] is found.certificate:
            w, b, certificate = known[0]
        else:
            w, b = self.model(found.w, found.b)
            certificate = self.problem.certify("duality gap", w, b, self.wide, self.budget.tol, found.dual)
        title = f"{found.solver} in the row space"
        return replace(found, w=w, b=b, certificate=certificate, solver=title, means=None, wrong=None)

    def _of_all(self, dual: Array | None) -> Array | None:
        """Return the dual point for the rows of weight 0 too."""
        if dual is None or len(dual) == self.counted.size:
            return dual
        whole = np.zeros((self.counted.size, dual.shape[1]))
        whole[self.counted] = dual
        return whole

    def perfect_scores(self) -> Solution | None:
        """Return the model that gives every row the score of its least loss; None where there is none."""
        problem, y = self.problem, np.asarray(self.blocks.y, dtype=np.float64)
        wanted = y * CERTAIN_SCORE if problem.loss.labels == "sign" else y
        if problem.loss.labels == "class":
            one_hot = y == np.arange(problem.n_scores(self.wide))
            wanted = CERTAIN_SCORE * (one_hot - one_hot.mean(axis=1, keepdims=True))
        c = wanted.mean(axis=0) if problem.fit_intercept else np.zeros(wanted.shape[1])
        if problem.fit_intercept and self.wide.sparse:  # about 0: the intercept of the least |w|
            ones = self._divided(np.ones((self.basis.size, 1)))[:, 0]
            c = ones @ self._divided(wanted[self.basis]) / (ones @ ones)
        v = self._divided((wanted - c)[self.basis])
        w, b = self.model(v, c)
        score = np.asarray(self.wide.whole().X @ w, dtype=np.float64) + b
        if not np.abs(score - wanted).max() <= REACHED * max(np.abs(wanted).max(), 1e-300):
            return None
        scale = problem.constant_objective(self.wide)
        certificate = problem.certify_zero(w, b, self.wide, scale, self.budget.tol)
        self.budget.record(certificate.objective, certificate.gap, scale)
        return Solution(w, b, certificate, "linear system in the row space", len(self.budget.history))

    def model(self, v: Array, c: Array) -> tuple[Array, Array]:
        """Return w and b of a model in these coordinates, as the type of the data holds them."""
        a = np.zeros((self.wide.n_rows, v.shape[1]))
        a[self.basis] = self._divided(v, transposed=True)
        X = self.wide.whole().X
        w = self.wide.rounded(np.asarray(X.T @ a, dtype=np.float64) - np.outer(self.mean, a.sum(axis=0)))
        return w, self.wide.rounded(c - self.mean @ w) if self.problem.fit_intercept else np.zeros(c.size)

    def reduced(self, found: Solution) -> Solution:
        """Return a model in these coordinates: v = L^-1 B w, of the rows of the basis."""
        rows = self.wide.whole().X[self.basis]
        score = np.asarray(rows @ found.w, dtype=np.float64) - self.mean @ found.w
        return replace(found, w=self._divided(score), b=found.b + self.mean @ found.w)

    def _divided(self, right: Array, transposed: bool = False) -> Array:
        """Return L^-1 right, or L'^-1 right, L the triangle."""
        # What is lower in C's order is upper in Fortran's.
        if not self.triangle.size:  # all rows are alike
            return right
        return np.asarray(lapack.dtrtrs(self.triangle.T, right, lower=0, trans=int(not transposed))[0])


def row_products(X: Any, mean: Array, budget: Budget) -> Array:
    """Return the products of all pairs of centred rows."""
    if not isinstance(X, np.ndarray):
        return np.asarray((X @ X.T).toarray(), dtype=np.float64)
    n, d = X.shape
    gram = np.empty((n + 1, n + 1))
    nothing = np.empty((d, 0), X.dtype)
    budget.check(core.moments(X.T, nothing, None, np.zeros(n), mean, gram, budget.seconds_left, budget.flag))
    if not np.isfinite(np.diagonal(gram)).all():  # no other product is larger
        raise FloatingPointError("the products of the rows are not finite")
    return gram[:n, :n]


def _single_factor(
    problem: Problem, X: Any, mean: Array, rank: int, budget: Budget
) -> tuple[Array, Array] | None:
    """Return the factor of products in single precision; None where that does not serve.

    It does not where tables are small, where the products leave its range, or where rows seem to depend on
    others.
    """
    smooth = problem.loss.smooth and problem.l2 > 0 and budget.tol >= SINGLE_TOL
    if not smooth or not isinstance(X, np.ndarray) or not X.flags.c_contiguous:
        return None
    n, d = X.shape
    if n * n * d < WORTH_SINGLE:
        return None
    products = np.empty((n, n), dtype=np.float32)
    plain = ("linear", 1.0, 0.0, 1)
    budget.check(
        core.kernel_block(
            *plain, X, None, X, None, mean, True, products, None, budget.seconds_left, budget.flag
        )
    )
    low, high = SINGLE_RANGE
    if not low < np.diagonal(products).max() < high:
        return None
    found = _factor(products, rank, SINGLE_EPS)
    return found if found[1].size == rank else None


def _factor(products: Array, rank: int, eps: float = EPS) -> tuple[Array, Array]:
    """Return L with L L' = the products, and rows that no others add up to, of which L is lower triangular.

    Where the first ``rank`` rows, which is as many as there can be, are of that kind, no pivots have to be
    looked for, and L need not be put in order: 0.5 ms instead of 2 for 300 rows.
    """
    n = products.shape[0]
    if rank == 0:
        return np.zeros((n, 0)), np.arange(0)
    # What rounding leaves of a row that others add up to.
    noise = 4.0 * n * eps * float(np.diagonal(products).max(initial=0.0))
    with single_threaded_blas(n):
        potrf, trtrs = get_lapack_funcs(("potrf", "trtrs"), (products,))
        upper, failed = potrf(products[:rank, :rank].T, lower=0, clean=1)
        if not failed and np.square(np.diagonal(upper)).min(initial=np.inf) > CLEAR * noise:
            L = np.empty((n, rank))
            L[:rank] = upper.T
            L[rank:] = trtrs(upper, products[:rank, rank:], lower=0, trans=1)[0].T
            return L, np.arange(rank)
        upper, order, rank, _ = lapack.dpstrf(products.T, lower=0, tol=noise)
    order = order[:n] - 1
    L = np.empty((n, rank))
    L[order] = np.triu(upper)[:rank].T
    return L, order[:rank]


def _graded(X: Any, mean: Array) -> bool:
    """Return whether columns are so much shorter than others that products of rows have lost them."""
    if not isinstance(X, np.ndarray):
        return False
    largest = np.abs(X - mean).max(axis=0)
    return bool(np.any((largest > 0) & (largest < SHORT * largest.max(initial=0.0))))
