"""The same minimum where quadratic models are poor: Newton steps on rounded absolute values.

Where rows can nearly be separated, or the penalty hardly counts, second derivatives change by orders of
magnitude along a step, and so does the set of weights that are zero. An interior point is led to the minimum
from where none is: |w_j| <= u_j with a logarithmic barrier (Koh, Kim and Boyd 2007), whose best u_j is known,
so that

    min_u  l1 u - log(u^2 - w^2) / t  =:  h(w),      s = sqrt(1 + (t l1 w)^2),      u = (1 + s) / (t l1)
    h'(w) = l1 w / u,     h''(w) = t l1^2 / (s (1 + s))

takes the place of l1 |w|. It is within 2 / t of it, and self-concordant: Newton's method with a line search
minimises risk + l2 |w|^2 / 2 + sum h for any t, and t grows as the gap falls. Some tens of systems with
one unknown a coordinate are enough, whatever the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sixfold.solvers.linalg import EPS, scaled_cholesky

if TYPE_CHECKING:
    from sixfold.solvers.l1.subproblem import WorkingMinimum

Array = NDArray[Any]

MOST_STEPS = 150
GROWTH = 10.0
SLOPE_LEFT = 0.1  # of that at the start, at the end of a step
BISECTIONS = 40


class _Rounded:
    """h, for one t."""

    def __init__(self, l1: float, t: float) -> None:
        self.l1, self.t = l1, t

    def derivatives(self, w: Array) -> tuple[Array, Array]:
        """Return h' and h''."""
        s = np.hypot(1.0, self.t * self.l1 * w)
        return self.t * self.l1**2 * w / (1.0 + s), self.t * self.l1**2 / (s * (1.0 + s))


def approach(minimum: WorkingMinimum, goal: float) -> bool:
    """Move all working coordinates until their gap is at most the goal; false if it was not reached."""
    risk, model, rule = minimum.risk, minimum.model, minimum.rule
    free, size, t = model.free, len(minimum.w), 0.0
    for _ in range(MOST_STEPS):
        minimum.budget.check()
        u, slope = minimum.slopes()
        left = risk.bound(minimum.score, u, minimum.w, slope)
        if left <= goal:
            return True
        # On its path an interior point leaves a gap of 2 / t a coordinate.
        t = max(t, (GROWTH if t else 1.0) * min(2.0 * size / left, t or np.inf))
        rounded = _Rounded(rule.l1, t)
        model.renew(risk.curvature(minimum.score, EPS))
        whole = model.whole(minimum.budget)
        slope_b = -risk.q @ u if free else np.zeros(0)
        first, second = rounded.derivatives(minimum.w)
        system = whole.copy()
        system.flat[free * (free + size + 1) :: free + size + 1] += rule.l2 + second
        down = np.concatenate([slope_b, slope - rule.l2 * minimum.w - first])
        step = scaled_cholesky(system)(down)
        step_c = step[:free] if free else np.zeros(risk.n_scores)
        if not _search(minimum, rounded, step[free:], step_c, float(down @ step)):
            return False
    return False


def _search(minimum: WorkingMinimum, rounded: _Rounded, step: Array, step_c: Array, promised: float) -> bool:
    """Move along a step to where the slope of the rounded objective is nearly 0; false if that is nowhere."""
    risk, l2 = minimum.risk, minimum.rule.l2
    along = minimum.scores(step) + step_c

    def slope(length: float) -> float:
        w = minimum.w + length * step
        u = risk.slopes(minimum.score + length * along)
        return risk.along(u, along) + float(step @ (l2 * w + rounded.derivatives(w)[0]))

    low, high, length = 0.0, 1.0, 1.0
    for _ in range(BISECTIONS):
        now = slope(length)
        if not now <= SLOPE_LEFT * promised:
            high = length
        elif now < -SLOPE_LEFT * promised and length < 1.0:
            low = length
        else:
            minimum.place(
                minimum.w + length * step, minimum.c + length * step_c, minimum.score + length * along
            )
            return True
        length = 0.5 * (low + high)
    return False
