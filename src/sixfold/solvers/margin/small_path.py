"""The steps of an interior point on small tables in one native call, instead of several calls a step.

:mod:`sixfold.solvers.margin.central_path` states the method. On 100 x 4 rows a step takes 55 microseconds
of calls and arrays around 2 of arithmetic; native/linear/margin/small_path.cpp makes them until the gap, or
all products, are as good as zero. The last steps, and all that is done about rounding, are left to the path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.solvers.margin.progress import MarginProgress

if TYPE_CHECKING:
    from sixfold.solvers.margin.central_path import _Path

Array = NDArray[Any]

# Rows times columns squared: beyond, a step is arithmetic, which BLAS does faster than simple loops (1,000 x
# 100 rows: 8.1 milliseconds a fit instead of 6.1).
MOST_PRODUCTS = 1 << 20
MOST_STEPS = 30


def hasten(path: _Path, progress: MarginProgress, enough: float) -> None:
    """Take steps until the gap, or the sum of the products, is at most ``enough``; none if it is no use."""
    terms, budget = path.terms, progress.budget
    most = int(min(MOST_STEPS, budget.iterations_left))
    if (
        path.exact
        or terms.penalties
        or not terms.problem.l2 > 0.0
        or terms.blocks.sparse
        or budget.callbacks
        or terms.n * (terms.d + 1) ** 2 > MOST_PRODUCTS
        or (terms.factor is not None and terms.factor.vectors is not None)
    ):
        return
    theta, slope, records = path.theta.copy(), path.slope.copy(), np.empty((most, 2))
    made, *state = core.follow_small_path(
        terms.all_rows,
        terms.targets(),
        terms.problem.l2,
        terms.vectors,
        enough,
        records,
        theta,
        slope,
        terms.unit,
        float(path.ends),
        path.length,
        path.objective,
        path.gap,
        path.products,
        budget.seconds_left,
        budget.flag,
    )
    path.resume(theta, slope, *state)
    for objective, gap in records[:made].tolist():
        progress.record(terms.target, objective, gap)
