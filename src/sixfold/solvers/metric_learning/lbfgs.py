"""Minimise a smooth function of a vector by limited-memory BFGS, with a line search of Moré and Thuente.

    direction = -H slope,       H: the identity times s.y / y.y, updated by the last changes s of x and y of
                                the slope (Nocedal 1980)
    step a:   f(a) <= f(0) + 1e-3 a f'(0)  and  |f'(a)| <= 0.9 |f'(0)|       (the strong Wolfe conditions)

The function may have several minima, and which of them is found depends on the first step and on the search.
Both are those of L-BFGS-B (Byrd, Lu, Nocedal and Zhu 1995) without bounds, so that from one start both come
to the same minimum but for rounding.

Sources: Nocedal (1980), "Updating quasi-Newton matrices with limited storage"; Moré and Thuente (1994), "Line
search algorithms with guaranteed sufficient decrease".
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Function = Callable[[Array], tuple[float, Array]]

MEMORY = 10  # changes that are remembered
DECREASE, FLATTER = 1e-3, 0.9  # of the strong Wolfe conditions
NARROW = 0.1  # of an interval, relative to its end: not worth another point
MOST_TRIALS = 20  # of one line search


@dataclass(frozen=True)
class Point:
    """A vector with the function's value and slope."""

    x: Array
    value: float
    slope: Array


def descend(function: Function, start: Array, first_length: float) -> Iterator[Point]:
    """Yield the start and then each better point, until no step leads further down.

    ``first_length`` is how far to go at first, where nothing is known of the curvature.
    """
    point = Point(start, *function(start))
    yield point
    changes: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)
    while True:
        direction = two_loops(point.slope, changes)
        down = float(point.slope @ direction)
        if not down < 0:
            if not changes:
                return
            changes.clear()
            continue
        step = 1.0 if changes else first_length / math.sqrt(float(direction @ direction))
        found = line_search(function, point, direction, down, step)
        if found is None:
            if not changes:
                return
            changes.clear()  # what is remembered is misleading: once more along the slope
            continue
        moved, bent = found.x - point.x, found.slope - point.slope
        product = float(moved @ bent)
        if product > np.finfo(float).eps * float(bent @ bent):
            changes.append((moved, bent, product))
        point = found
        yield point


def two_loops(slope: Array, changes: deque[tuple[Array, Array, float]]) -> Array:
    """Return -H slope by the two loops of Nocedal; a change is s, y and s.y."""
    result, coefficients = -slope, []
    for moved, bent, product in reversed(changes):
        coefficient = float(moved @ result) / product
        coefficients.append(coefficient)
        result -= coefficient * bent
    if changes:
        _, bent, product = changes[-1]
        result *= product / float(bent @ bent)
    for (moved, bent, product), coefficient in zip(changes, reversed(coefficients), strict=True):
        result += (coefficient - float(bent @ result) / product) * moved
    return result


# -- the line search -----------------------------------------------------------------------------------------


@dataclass
class _End:
    """One end of the interval: a step with the value and the slope there."""

    step: float
    value: float
    slope: float


def line_search(function: Function, start: Point, direction: Array, down: float, step: float) -> Point | None:
    """Return a point that meets the strong Wolfe conditions, or the best of the trials.

    None if none is better than the start. ``down`` is the slope along the direction, below 0, and ``step``
    the first one to try.
    """
    best, other = _End(0.0, start.value, down), _End(0.0, start.value, down)
    bracketed, first_stage = False, True
    width, width_before = math.inf, math.inf
    least, most = 0.0, 5.0 * step
    found = start
    for _ in range(MOST_TRIALS):
        x = start.x + step * direction
        point = Point(x, *function(x))
        here = _End(step, point.value, float(point.slope @ direction))
        if not (math.isfinite(here.value) and math.isfinite(here.slope)):
            step = best.step + 0.1 * (step - best.step)
            continue
        if here.value < found.value:
            found = point
        enough = start.value + step * DECREASE * down
        if here.value <= enough and abs(here.slope) <= -FLATTER * down:
            return point
        if first_stage and here.value <= enough and here.slope >= 0:
            first_stage = False
        # Until a step is low enough, the function less the line of sufficient decrease is minimised.
        tilt = DECREASE * down if first_stage and enough < here.value <= best.value else 0.0
        best, other, step, bracketed = _next_trial(best, other, here, bracketed, least, most, tilt)
        if bracketed:
            if abs(other.step - best.step) >= 0.66 * width_before:
                step = best.step + 0.5 * (other.step - best.step)
            width_before, width = width, abs(other.step - best.step)
            least, most = min(best.step, other.step), max(best.step, other.step)
            if not least < step < most or most - least <= NARROW * most:
                break
        else:
            least, most = step + 1.1 * (step - best.step), step + 4.0 * (step - best.step)
    return found if found.value < start.value else None


def _next_trial(
    best: _End, other: _End, here: _End, bracketed: bool, least: float, most: float, tilt: float
) -> tuple[_End, _End, float, bool]:
    """Return the new ends of the interval, the step to try next, and whether a minimum is between them."""

    def tilted(end: _End) -> _End:
        return _End(end.step, end.value - tilt * end.step, end.slope - tilt)

    a, b, t = tilted(best), tilted(other), tilted(here)
    opposite = t.slope * math.copysign(1.0, a.slope) < 0
    if t.value > a.value:  # higher: a minimum is between
        cubic, square = _cubic(a, t), _quadratic_by_values(a, t)
        step = cubic if abs(cubic - a.step) < abs(square - a.step) else cubic + 0.5 * (square - cubic)
        bracketed = True
    elif opposite:  # lower, and rising: a minimum is between
        cubic, secant = _cubic(a, t), _secant(a, t)
        step = cubic if abs(cubic - t.step) > abs(secant - t.step) else secant
        bracketed = True
    elif abs(t.slope) < abs(a.slope):  # lower and flatter: further on
        step = _beyond(a, b, t, bracketed, least, most)
    elif bracketed:
        step = _cubic(b, t)
    else:
        step = most if t.step > a.step else least
    if t.value > a.value:
        other = here
    else:
        if opposite:
            other = best
        best = here
    return best, other, step, bracketed


def _beyond(a: _End, b: _End, t: _End, bracketed: bool, least: float, most: float) -> float:
    """Return the step to try where the function falls ever more slowly."""
    cubic, secant = _cubic_beyond(a, t, least, most), _secant(a, t)
    if not bracketed:
        step = cubic if abs(cubic - t.step) > abs(secant - t.step) else secant
        return min(max(step, least), most)
    step = cubic if abs(cubic - t.step) < abs(secant - t.step) else secant
    limit = t.step + 0.66 * (b.step - t.step)
    return min(limit, step) if t.step > a.step else max(limit, step)


def _cubic_parts(a: _End, t: _End) -> tuple[float, float, float]:
    theta = 3.0 * (a.value - t.value) / (t.step - a.step) + a.slope + t.slope
    size = max(abs(theta), abs(a.slope), abs(t.slope)) or 1.0
    inner = (theta / size) ** 2 - (a.slope / size) * (t.slope / size)
    return theta, size, inner


def _cubic(a: _End, t: _End) -> float:
    """Return where the cubic through both values and slopes has its minimum."""
    theta, size, inner = _cubic_parts(a, t)
    gamma = math.copysign(size * math.sqrt(max(inner, 0.0)), t.step - a.step)
    below = ((gamma - a.slope) + gamma) + t.slope
    r = ((gamma - a.slope) + theta) / below if below != 0 else 0.5
    return a.step + r * (t.step - a.step)


def _cubic_beyond(a: _End, t: _End, least: float, most: float) -> float:
    """Return the minimum of the cubic beyond t, or the limit if it has none there."""
    theta, size, inner = _cubic_parts(a, t)
    gamma = math.copysign(size * math.sqrt(max(inner, 0.0)), a.step - t.step)
    below = (gamma + (a.slope - t.slope)) + gamma
    r = ((gamma - t.slope) + theta) / below if below != 0 else math.inf
    if r < 0 and gamma != 0:
        return t.step + r * (a.step - t.step)
    return most if t.step > a.step else least


def _quadratic_by_values(a: _End, t: _End) -> float:
    """Return the minimum of the parabola through both values and the slope at a."""
    return a.step + ((a.slope / ((a.value - t.value) / (t.step - a.step) + a.slope)) / 2.0) * (
        t.step - a.step
    )


def _secant(a: _End, t: _End) -> float:
    """Return where the line through both slopes is 0."""
    below = t.slope - a.slope
    return t.step + (t.slope / below) * (a.step - t.step) if below != 0 else math.inf
