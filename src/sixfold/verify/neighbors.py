"""The check of an exact search: the distances of some training rows from all others, by definition, in NumPy.

    |d - d(x, x_r)| <= rounding              for each row r that the model reports at distance d from row x
    (d(x, x_r), r) < (d(x, x_s), s)          for each such r and every row s that it does not report
    d <= radius < d(x, x_s)                  where a radius is asked for, which is inclusive

Rows of weight 0 and the row itself are left out. A sum is rounded once, as distances are defined, so that
equal ones are equal here as well and go by row number. The last bits of powers and cosines are not defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.certificate import Certificate
from sixfold.data.blocks import let_go, mapping_of
from sixfold.errors import CertificateError
from sixfold.geometry.distances import make_distance
from sixfold.verify.recomputed import REASONS, Recomputed

Array = NDArray[Any]

PROBED_NUMBERS, MOST_PROBES = 2e8, 100  # differences that are computed, about a second, and rows they are of
BLOCK_NUMBERS, ANSWER_NUMBERS = 1 << 15, 1 << 22  # of rows and of distances that are held at a time
ROW_NUMBERS = 1 << 21  # of rows that are compared at a time
ROW_ROUNDING = 1e-12  # by which rows that were made anew may differ, relative to their entries
ROUNDING, COSINE_ROUNDING = 1e-11, 2e-15  # of a distance, relative to itself and to its root
EXPONENTS = {"euclidean": 2, "l2": 2, "manhattan": 1, "cityblock": 1, "l1": 1, "minkowski": 2, "p": 2}


def recompute(
    X: Any,
    stored: Any,
    weights: tuple[Array | None, Array | None],
    k: int,
    ask: Callable[[Array, int], Iterable[tuple[Array, Array]]],
    metric: Any,
    parameters: Mapping[str, Any],
    radius: float = np.inf,
) -> Recomputed:
    """Return how much farther the search finds neighbours than computing every distance does, on average.

    ``stored`` are the rows that the model keeps; ``weights`` those that are given and those that it keeps;
    ``ask(probes, k)`` gives what the model answers for each of the rows with these numbers: distances and
    numbers of the k nearest, or of all within the radius where there is one, the nearest first. A
    :class:`CertificateError` names the first mistake.
    """
    _require_same_rows(X, stored)
    numbers, kept = (np.flatnonzero(np.ones(X.shape[0]) if w is None else w) for w in weights)
    if not np.array_equal(numbers, kept):
        raise CertificateError("Other rows have weight 0 than those of the fit.")
    columns = 1 if metric == "precomputed" else X.shape[1]
    most = np.clip(PROBED_NUMBERS / (X.shape[0] * columns), 1, min(MOST_PROBES, numbers.size))
    probes = numbers[np.linspace(0, numbers.size - 1, int(most)).astype(np.int64)]
    k, sums, total = min(k, numbers.size - 1), np.zeros(2), 0
    answers = zip(probes, ask(probes, k), _distances(stored, probes, metric, parameters), strict=True)
    for probe, (far, rows), distances in answers:
        others = numbers[numbers != probe]
        defined = metric != "cosine" and parameters.get("p", 2) in (1, 2, np.inf)
        wrong = _mistake(far, rows, distances, others, metric == "cosine", defined)
        if radius < np.inf:
            off = 0.0 if defined else _rounding(distances, metric == "cosine")
            wrong = wrong or _radius_mistake(far, rows, distances + off, others, radius)
        elif rows.size != k:
            wrong = wrong or f"only {rows.size} were found"
        if wrong:
            which = f"the {k} neighbours" if radius == np.inf else f"the neighbours within {radius:g}"
            raise CertificateError(f"Of {which} of row {probe}, {wrong}. {REASONS}")
        least = np.sort(distances[others])[: rows.size]
        known = np.isfinite(least)  # rows may have nothing that can be compared
        sums += np.abs(far[known] - least[known]).sum(), least[known].sum()
        total += rows.size
    excess, scale = (sums / max(total, 1)).tolist()
    found = Certificate("exact search", excess, 0.0, scale, 0.0)
    unit = COSINE_ROUNDING * (metric == "cosine")
    return Recomputed(found, ROUNDING * scale + unit * (scale**0.5 + unit), 0.0, (found.kind,))


def _require_same_rows(X: Any, stored: Any) -> None:
    n = stored.shape[0]
    if X.shape[0] != n:
        raise CertificateError(f"The model keeps {n} rows, but X has {X.shape[0]}.")
    if sp.issparse(stored):
        off = abs(stored - X) > ROW_ROUNDING * abs(stored).max()
        changed = np.unique(off.nonzero()[0])
    else:
        parts = [
            ~np.isclose(X[some], stored[some], ROW_ROUNDING, 0.0, equal_nan=True).all(axis=1)
            for some in _blocks(stored)
        ]
        changed = np.flatnonzero(np.concatenate(parts))
    if changed.size:
        which = f"{changed.size} of {n} rows of X are not what the model keeps, the first of them row"
        raise CertificateError(f"{which} {changed[0]}, counted from 0.")


def _mistake(far: Array, rows: Array, distances: Array, others: Array, cosine: bool, defined: bool) -> str:
    """Return what is wrong with the rows that were found at these distances; nothing where all is right."""
    if not np.isin(rows, others).all() or np.unique(rows).size < rows.size:
        return f"{rows.tolist()}, not all are different rows that count"
    true, allowed = distances[rows], _rounding(distances, cosine)
    wrong = ~((far <= true + allowed[rows]) & (far >= true - allowed[rows]))
    if wrong.any():
        return f"row {rows[wrong][0]} is not at distance {far[wrong][0]!r}, but at {true[wrong][0]!r}"
    if not np.array_equal(np.lexsort((rows, far)), np.arange(rows.size)):
        return f"{rows.tolist()}, not all are in the order of their distances and numbers"
    left = others[np.isin(others, rows, invert=True)]
    if left.size and rows.size:
        first, last = left[distances[left].argmin()], rows[-1]
        tied = defined and distances[first] == distances[last] and first < last
        if tied or distances[first] + allowed[first] < far[-1]:
            return f"row {first} is missing, which comes before row {last}"
    return ""


def _radius_mistake(far: Array, rows: Array, distances: Array, others: Array, radius: float) -> str:
    """Return what is wrong with rows that are said to be all those within the radius."""
    if (far > radius).any():
        return f"row {rows[far > radius][0]} is farther"
    left = others[np.isin(others, rows, invert=True)]
    missing = left[distances[left] <= radius]
    return f"row {missing[0]} is missing, at distance {distances[missing[0]]!r}" if missing.size else ""


def _rounding(distances: Array, cosine: bool) -> Array:
    """Return by how much distances may be off."""
    known, unit = np.where(np.isfinite(distances), distances, 0.0), COSINE_ROUNDING * cosine
    return ROUNDING * known + unit * np.sqrt(known) + unit**2


def _distances(X: Any, probes: Array, metric: Any, parameters: Mapping[str, Any]) -> Iterator[Array]:
    """Give the distances of each probe from all rows, of the common ones as textbooks write them."""
    p = parameters.get("p", EXPONENTS.get(metric)) if isinstance(metric, str) else None
    common = metric == "cosine" or (p in (1, 2) and parameters.get("w") is None)
    distance = None if common else make_distance(metric, X, **parameters)
    for some in np.array_split(probes, -(-probes.size * X.shape[0] // ANSWER_NUMBERS)):
        if distance is None:
            yield from _by_formula(X, some, p)
        elif metric == "precomputed" or sp.issparse(X):
            yield from distance.between(X[some], X)
        else:
            queries = X[some]
            yield from np.concatenate([distance.between(queries, X[one]) for one in _blocks(X)], axis=1)


def _blocks(X: Any) -> Iterator[slice]:
    """Go through the rows of a table, some at a time; pages of those that were read go back to their file."""
    step, mapping = max(ROW_NUMBERS // max(X.shape[1], 1), 1), mapping_of(X)
    for start in range(0, X.shape[0], step):
        some = slice(start, min(start + step, X.shape[0]))
        yield some
        if mapping is not None:
            let_go(mapping, X, some)


def _by_formula(X: Any, probes: Array, p: float | None) -> Array:
    """Return the distances of probes from all rows: Manhattan, Euclidean, and where p is None cosine."""
    result, step = np.empty((probes.size, X.shape[0])), max(BLOCK_NUMBERS // X.shape[1], 1)
    queries = _columns(X[probes], p is None)
    for block in _blocks(X):
        for start in range(block.start, block.stop, step):
            some = slice(start, min(start + step, block.stop))
            rows = _columns(X[some], p is None)
            for i, q in enumerate(queries.T):
                difference = np.abs(rows - q[:, None])
                d = _sum(difference if p == 1 else difference * difference)
                if p is None:  # 1 - u.v = |u - v|^2 / 2 for rows of length 1; of a row of zeros 1
                    d = np.where(rows.any(axis=0) & q.any(), d / 2.0, 1.0)
                result[i, some] = np.sqrt(d) if p == 2 else d
    return result


def _columns(rows: Any, unit: bool) -> Array:
    """Return the columns of rows; where ``unit``, divided by their largest entry and then by their length."""
    columns = np.array(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64, order="F").T
    for norm in (np.inf, 2) if unit else ():
        columns = columns / np.where(columns.any(axis=0), np.linalg.norm(columns, norm, axis=0), 1.0)
    return columns


def _sum(terms: Array) -> Array:
    """Return the sum of the terms, rounded once: what additions round off is kept (Knuth's two-sum)."""
    lost = np.zeros(terms.shape[1])
    while len(terms) > 1:
        half = len(terms) // 2
        a, b, odd = terms[:half], terms[half : 2 * half], terms[2 * half :]
        total = a + b
        part = total - a
        lost += ((a - (total - part)) + (b - part)).sum(axis=0)
        terms = np.concatenate([total, odd])
    return terms[0] + lost
