"""All solvers, in the order in which ``solver="auto"`` would rather use them."""

from __future__ import annotations

from typing import Any

from sixfold.solvers.base import Solver
from sixfold.solvers.first_order.gradient_descent import GradientDescent
from sixfold.solvers.first_order.options import FirstOrderOptions
from sixfold.solvers.first_order.stochastic import MiniBatch, StochasticGradient
from sixfold.solvers.l1.coordinate import CoordinateDescent
from sixfold.solvers.l1.proximal_newton import PathMemory
from sixfold.solvers.least_squares.conjugate_gradient import ConjugateGradient
from sixfold.solvers.least_squares.direct import LeastSquares
from sixfold.solvers.least_squares.moment_fit import fit_with_kinks
from sixfold.solvers.margin.dual_coordinate import DualCoordinate
from sixfold.solvers.margin.interior_point import InteriorPoint
from sixfold.solvers.smooth.descent import Model
from sixfold.solvers.smooth.lbfgs import LBFGS
from sixfold.solvers.smooth.newton import Newton
from sixfold.solvers.smooth.newton_cg import NewtonCG
from sixfold.solvers.smooth.refined_newton import RefinedNewton
from sixfold.solvers.smooth.rounded_newton import RoundedNewton


def all_solvers(start: Model | None = None, memory: PathMemory | None = None, **options: Any) -> list[Solver]:
    """Return one of each solver.

    ``start`` is a model (w, b) near the minimum, for those that begin somewhere; ``memory`` is what
    coordinate descent left of the same rows under another penalty; the options go to the first-order ones.
    """
    first_order = FirstOrderOptions(**options)
    return [
        ConjugateGradient(),
        LeastSquares(),
        CoordinateDescent(memory, start, fit_with_kinks),
        DualCoordinate(),
        NewtonCG(start),
        Newton(start),
        LBFGS(start),
        RefinedNewton(),
        RoundedNewton(),
        InteriorPoint(),
        GradientDescent(first_order),
        StochasticGradient(first_order),
        MiniBatch(first_order),
    ]
