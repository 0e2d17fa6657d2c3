"""A small validation curve as SVG, by hand: the mean as a line, its spread as a band, the choice as a ring.

There may be eight of them on a page, and matplotlib takes a tenth of a second for each.
"""

from __future__ import annotations

import math
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from sixfold.app.report.svg import printable
from sixfold.explain.plots.search_results import SearchResults, ValueAxis, parameter_label, value_text

Array = NDArray[Any]

WIDTH, HEIGHT = 300.0, 186.0
LEFT, RIGHT, TOP, BOTTOM = 42.0, 8.0, 10.0, 40.0
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0, 20.0)
MOST_TICKS = 5


def small_curve(results: SearchResults, title: str) -> str:
    """Return the best mean over the main parameter of a search, as an SVG element."""
    parameter = results.main_parameter()
    there = _best_for_each(results, parameter)
    axis = ValueAxis.of([value for value, _ in there])
    at = np.array([axis.place(value) for value, _ in there])
    mean = np.array([results.mean[k] for _, k in there])
    std = np.nan_to_num(np.array([results.std[k] for _, k in there]))
    marked = None
    if results.chosen is not None and parameter in results.settings[results.chosen]:
        marked = axis.place(results.settings[results.chosen][parameter]), float(results.mean[results.chosen])
    wide = np.array([-0.6, at.max() + 0.6]) if axis.scale == "categories" else at
    x = _Scale(wide, axis.scale == "log", LEFT + 8.0, WIDTH - RIGHT - 8.0)
    ends = np.concatenate([mean - std, mean + std, [] if marked is None else [marked[1]]])
    y = _Scale(ends, False, HEIGHT - BOTTOM - 4.0, TOP + 4.0)
    parts = _grid(y, ticks(y.low, y.high)) + _labels(x, _tick_places(axis, there, x))
    px, py = x(at), y(mean)
    low, high = y(mean - std), y(mean + std)
    if axis.ordered:
        band = [*zip(px, high, strict=True), *zip(px[::-1], low[::-1], strict=True)]
        parts.append(f'<polygon class="band" points="{_points(band)}"/>')
        parts.append(f'<polyline class="curve" points="{_points(zip(px, py, strict=True))}"/>')
    else:
        parts += [
            f'<line class="curve" x1="{a:.1f}" x2="{a:.1f}" y1="{b:.1f}" y2="{c:.1f}"/>'
            for a, b, c in zip(px, low, high, strict=True)
        ]
    parts += [f'<circle class="dot" cx="{a:.1f}" cy="{b:.1f}" r="2.2"/>' for a, b in zip(px, py, strict=True)]
    if marked is not None:
        place, score = (float(one[0]) for one in (x(np.array([marked[0]])), y(np.array([marked[1]]))))
        parts.append(f'<circle class="ring" cx="{place:.1f}" cy="{score:.1f}" r="6"/>')
    label = escape(printable(parameter_label(parameter)))
    parts.append(f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 6:.0f}" class="middle">{label}</text>')
    words = escape(printable(title), {'"': "&quot;"})
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="small" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" '
        f'role="img" aria-label="{words}"><title>{words}</title>{"".join(parts)}</svg>'
    )


def _best_for_each(results: SearchResults, parameter: str) -> list[tuple[Any, int]]:
    """Return each value of a parameter with the best candidate that has it."""
    found = []
    for value in results.values(parameter):
        same = [
            k for k, one in enumerate(results.settings) if parameter in one and _same(one[parameter], value)
        ]
        best = results.better(same)
        if best is not None:
            found.append((value, best))
    return found


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


class _Scale:
    """From values to places on the page, along a line or its logarithm."""

    def __init__(self, values: Array, logarithmic: bool, start: float, end: float) -> None:
        self.logarithmic, self.start, self.end = logarithmic, start, end
        self.low, self.high = float(np.min(values)), float(np.max(values))
        if self.high == self.low:
            room = abs(self.high) * 0.05 or 0.5
            self.low, self.high = (
                (self.low / 2, self.high * 2) if logarithmic else (self.low - room, self.high + room)
            )

    def __call__(self, values: Array) -> Array:
        low, high = self.low, self.high
        if self.logarithmic:
            values, low, high = np.log(values), math.log(low), math.log(high)
        return self.start + (self.end - self.start) * (values - low) / (high - low)


def ticks(low: float, high: float, most: int = MOST_TICKS) -> list[float]:
    """Return round numbers from low to high, at most so many.

    >>> ticks(0.31, 0.98)
    [0.4, 0.6, 0.8]
    """
    size = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(size * one for one in STEPS if (high - low) / (size * one) <= most - 1)
    first = math.ceil(low / step - 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _tick_places(axis: ValueAxis, there: list[tuple[Any, int]], x: _Scale) -> list[tuple[float, str]]:
    """Return where labels stand along the parameter, and what they are."""
    if axis.scale == "log":
        first, last = math.ceil(math.log10(x.low) - 1e-9), math.floor(math.log10(x.high) + 1e-9)
        every = max(1, math.ceil((last - first + 1) / MOST_TICKS))
        powers = [10.0**k for k in range(first, last + 1, every)]
        if len(powers) >= 2:
            return [(power, f"{power:g}") for power in powers]
        return [(float(value), value_text(value)) for value, _ in (there[0], there[-1])]
    if axis.scale == "linear":
        whole = all(float(value).is_integer() for value, _ in there)
        return [(at, f"{at:g}") for at in ticks(x.low, x.high) if at.is_integer() or not whole]
    every = math.ceil(len(there) / (MOST_TICKS + 1))
    return [(axis.place(value), value_text(value)) for value, _ in there[::every]]


def _grid(y: _Scale, places: list[float]) -> list[str]:
    parts = []
    digits = max((len(f"{place:g}".partition(".")[2]) for place in places if abs(place) < 1e5), default=0)
    for place, height in zip(places, y(np.array(places)).tolist(), strict=True):
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>'
        )
        parts.append(f'<text x="{LEFT - 6}" y="{height + 3.5:.1f}" class="end">{_tick(place, digits)}</text>')
    return parts


def _tick(place: float, digits: int) -> str:
    text = f"{place:.{digits}f}" if abs(place) < 1e5 and digits < 6 else f"{place:g}"
    return text.replace("-", "\N{MINUS SIGN}", 1) if text.startswith("-") else text


def _labels(x: _Scale, places: list[tuple[float, str]]) -> list[str]:
    across = x(np.array([place for place, _ in places], dtype=float))
    base = HEIGHT - BOTTOM
    parts = [f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{base}" y2="{base}"/>']
    for at, (_, text) in zip(across.tolist(), places, strict=True):
        parts.append(f'<line class="axis" x1="{at:.1f}" x2="{at:.1f}" y1="{base}" y2="{base + 4}"/>')
        parts.append(f'<text x="{at:.1f}" y="{base + 15}" class="middle">{escape(printable(text))}</text>')
    return parts


def _points(pairs: Any) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in pairs)
