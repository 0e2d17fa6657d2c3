"""L-BFGS finds minima, step by step as SciPy's does, and its line search keeps the Wolfe conditions."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, rosen, rosen_der

from sixfold.solvers.metric_learning.lbfgs import DECREASE, FLATTER, Point, descend, line_search


def rosenbrock(x):
    return float(rosen(x)), rosen_der(x)


def quartic(x):
    scale = np.arange(1.0, x.size + 1)
    return float((scale * x**4).sum() - x.sum()), 4 * scale * x**3 - 1.0


@pytest.mark.parametrize("function", [rosenbrock, quartic])
@pytest.mark.parametrize("size", [2, 7, 30])
def test_steps_are_those_of_scipy(function, size):
    start = np.random.default_rng(size).normal(size=size)
    theirs = []
    minimize(function, start, jac=True, method="L-BFGS-B", callback=lambda x: theirs.append(x.copy()),
             options={"maxiter": 12, "ftol": 0.0, "gtol": 0.0})  # fmt: skip
    ours = [point.x for point, _ in zip(descend(function, start, 1.0), range(13), strict=False)][1:]
    assert len(theirs) >= 8
    for mine, other in zip(ours, theirs, strict=False):
        assert np.allclose(mine, other, rtol=1e-6, atol=1e-8)


def test_it_ends_at_the_minimum():
    *_, last = descend(rosenbrock, np.full(5, -1.0), 1.0)
    assert np.allclose(last.x, 1.0, atol=1e-6)


def test_values_fall_with_every_point():
    values = [point.value for point in descend(rosenbrock, np.full(8, 2.0), 1.0)]
    assert all(after < before for before, after in itertools.pairwise(values))


def test_a_flat_start_is_the_only_point():
    assert len(list(descend(lambda x: (1.0, np.zeros_like(x)), np.ones(3), 1.0))) == 1


@given(
    slope=st.floats(1e-3, 1e3),
    where=st.floats(1e-6, 1e6),
    first=st.floats(1e-3, 1e3),
    curved=st.sampled_from([2.0, 1.5, 4.0]),
)
def test_steps_keep_the_wolfe_conditions(slope, where, first, curved):
    """Of |x - where|^curved, scaled so that the slope at 0 is -slope."""
    unit = slope / (curved * where ** (curved - 1))

    def function(x):
        apart = float(x[0]) - where
        size = abs(apart)
        gradient = unit * curved * math.copysign(size ** (curved - 1), apart)
        return unit * size**curved, np.array([gradient])

    start = Point(np.zeros(1), *function(np.zeros(1)))
    direction = -start.slope
    found = line_search(function, start, direction, float(start.slope @ direction), first * where / slope)
    assert found is not None
    moved = float(found.x @ start.slope)
    assert found.value <= start.value + DECREASE * moved * (1 - 1e-9)
    assert abs(float(found.slope @ direction)) <= FLATTER * slope * slope * (1 + 1e-9)


def test_where_the_function_is_not_finite_the_step_is_shortened():
    def function(x):
        if x[0] > 2.0:
            return math.inf, np.zeros(1)
        return float((x[0] - 1.0) ** 2), 2.0 * (x - 1.0)

    start = Point(np.zeros(1), *function(np.zeros(1)))
    found = line_search(function, start, np.array([2.0]), -4.0, 100.0)
    assert found is not None
    assert found.value < start.value
