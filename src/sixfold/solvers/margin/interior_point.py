"""The interior-point method for piecewise linear losses: least absolute deviations and the hinge.

It follows the central path of all rows (:mod:`sixfold.solvers.margin.central_path`) or, of tall tables and
the hinge, of the rows near their kink (:mod:`sixfold.solvers.margin.margin_band`).
Wide tables are solved in coordinates of their rows (:mod:`sixfold.solvers.wide_tables`), or, with absolute
values in the penalty, with systems of the rows (:mod:`sixfold.solvers.few_rows`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.margin.central_path import minimise_target
from sixfold.solvers.margin.margin_band import BandRounds, has_narrow_band
from sixfold.solvers.margin.progress import MarginProgress
from sixfold.solvers.margin.small_path import SmallHinges
from sixfold.solvers.margin.terms import Terms
from sixfold.solvers.threads import single_threaded_blas
from sixfold.solvers.wide_tables import MAX_ROWS, RowCoordinates

Array = NDArray[Any]
MAX_SYSTEM_COLUMNS = 4000  # beyond, a d x d system per iteration is no longer cheap
FEW_COLUMNS = 1000  # a system of which takes less than 50 ms, whatever the rows are like
PIECEWISE_LINEAR = ("absolute", "hinge")


class InteriorPoint:
    """Primal-dual interior point for piecewise linear losses; several targets one after the other."""

    name: ClassVar[str] = "interior_point"
    needs: ClassVar[tuple[str, ...]] = ("gradient", "conjugate", "domain")
    notices_nonfinite: ClassVar[bool] = False

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        if problem.loss.name not in PIECEWISE_LINEAR:
            return "it is made for the absolute loss and the hinge"
        return "it cannot keep the coefficients positive" if problem.penalty.positive else None

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether a system per iteration is affordable, and rows are dear enough to save."""
        if problem.loss.name == "hinge" and blocks.sparse and problem.penalty.quadratic:
            return blocks.n_columns <= FEW_COLUMNS
        return self.rescues(problem, blocks)

    def rescues(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether a system per iteration is affordable."""
        wide = blocks.n_rows <= MAX_ROWS
        return blocks.n_columns <= MAX_SYSTEM_COLUMNS or wide

    def solve(
        self, problem: Problem, blocks: Blocks, budget: Budget, start: Solution | None = None
    ) -> Solution:
        """Minimise the problem; a path begins in the middle, wherever another solver ended."""
        wide = RowCoordinates.of(problem, blocks, budget)
        if wide is None:
            return self._solve_targets(problem, blocks, budget)
        found = wide.solve(self, None)
        if found.certificate.converged or budget.exhausted() or blocks.n_columns > MAX_SYSTEM_COLUMNS:
            return found
        # Products of rows have the square of their condition number, which the rows themselves do not.
        other = self._solve_targets(problem, blocks, budget)
        return other if other.certificate.gap < found.certificate.gap else found

    def _solve_targets(self, problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
        w, b = np.zeros((blocks.n_columns, blocks.n_targets)), np.zeros(blocks.n_targets)
        dual = np.zeros((blocks.n_rows, blocks.n_targets))
        progress, tall = MarginProgress(problem, blocks, budget), has_narrow_band(problem, blocks)
        proofs: list[tuple[float, float, float]] = []
        lengths: Array | None = None
        small = SmallHinges.of(problem, blocks, budget)
        with single_threaded_blas(min(blocks.n_columns, blocks.n_rows)):
            for k in range(blocks.n_targets):
                budget.new_part()
                if budget.exhausted():
                    break
                direct = None if small is None else small.minimise(k, dual[:, k], progress)
                if direct is not None:
                    w[:, k], b[k] = direct
                    continue
                if tall:
                    band = BandRounds(problem, blocks, k, progress)
                    if band.minimise(dual[:, k]):
                        w[:, k], b[k] = band.w, band.b
                        if band.bounded:
                            lengths = band.lengths() if lengths is None else lengths
                            proofs.append(band.certain(lengths))
                        continue
                    del band
                terms = Terms(problem, blocks, k, budget)
                theta, dual[:, k], _ = minimise_target(terms, progress)
                w[:, k], b[k] = terms.parameters(theta)
                del terms
        certificate = None
        if small is not None and not budget.exhausted():
            certificate = small.certify(w, b, dual, progress.scale)
        if len(proofs) == blocks.n_targets:
            value, gap, rounding = np.sum(proofs, axis=0).tolist()
            certificate = Certificate(
                "duality gap", value, gap, progress.scale, budget.tol, rounding=rounding
            )
        if certificate is None or not certificate.converged:
            certificate = problem.certify("duality gap", w, b, blocks, budget.tol, dual, progress.scale)
        return Solution(w, b, certificate, "interior point", len(budget.history), dual)
