"""All solvers, in the order in which ``solver="auto"`` would rather use them."""

from __future__ import annotations

from typing import Any

from sixfold.solvers.base import Solver
from sixfold.solvers.conjugate_gradient import ConjugateGradient
from sixfold.solvers.coordinate import CoordinateDescent
from sixfold.solvers.descent import FirstOrderOptions
from sixfold.solvers.dual_coordinate import DualCoordinate
from sixfold.solvers.first_order import GradientDescent, MiniBatch, StochasticGradient
from sixfold.solvers.interior_point import InteriorPoint
from sixfold.solvers.lbfgs import LBFGS
from sixfold.solvers.least_squares import LeastSquares
from sixfold.solvers.newton import Model, Newton
from sixfold.solvers.newton_cg import NewtonCG


def all_solvers(start: Model | None = None, **options: Any) -> list[Solver]:
    """Return one of each solver.

    ``start`` is a model (w, b) near the minimum, for those that begin somewhere; the options go to the
    first-order ones.
    """
    first_order = FirstOrderOptions(**options)
    return [
        LeastSquares(),
        CoordinateDescent(),
        ConjugateGradient(),
        Newton(start),
        LBFGS(start),
        NewtonCG(start),
        InteriorPoint(),
        DualCoordinate(),
        GradientDescent(first_order),
        StochasticGradient(first_order),
        MiniBatch(first_order),
    ]
