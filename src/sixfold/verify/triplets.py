"""The duality gap of large margin nearest neighbours, recomputed from the public attributes and the data.

    F(M) = <B, M> + sum_t u_t [1 + <A_t, M>]_+  >=  <B, M> + sum_t a_t (1 + <A_t, M>)  >=  sum_t a_t

for all positive semi-definite M, if 0 <= a_t <= u_t and S = B + sum_t a_t A_t is positive semi-definite, with

    A_t = C_ij - C_il,    C_ij = (x_i - x_j)(x_i - x_j)',
    B = pull sum_ij q_i C_ij + trace I,    u_t = (1 - pull) q_i

over all targets j of row i and all rows l of other classes, in columns of mean 0 and variance 1. Where the
least eigenvalue of S is -e, that of B being b > 0, S + (e / b) B has none below 0, so that
sum_t a_t / (1 + e / b) is a bound. Targets are looked at by their distances from all rows of their class,
hinges of all triplets are added up, and no triplet may have two multipliers.

Rounding, with u = 2^-53: a sum of m products is off by m u times the sum of their sizes, so S by at most
(m + 16) u sum_t a_t (|x_i - x_j|^2 + |x_i - x_l|^2) in its eigenvalues; a square distance
|z|^2 - 2 z.w + |w|^2 of r columns by (r + 4) u (|z| + |w|)^2.

Sources: Weinberger and Saul (2009); Boyd and Vandenberghe (2004), Convex optimization, section 5.9; Higham
(2002), Accuracy and stability of numerical algorithms, section 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.certificate import Certificate
from sixfold.errors import CertificateError
from sixfold.verify.recomputed import REASONS, Recomputed

Array = NDArray[Any]

ENTRIES = 1 << 22  # square distances that are held at a time
BLOCK = 256  # products that are added up before their sum is added to others, two and two
U = 2.0**-53


@dataclass(frozen=True)
class TripletClaim:
    """The public attributes of a model, its parameters, and the data it is said to be fitted on.

    ``index`` is the class of each row, ``weight`` how much it counts; triplets are numbers of rows.
    """

    X: Array
    index: Array
    weight: Array
    components: Array
    targets: Array
    triplets: Array
    dual: Array
    k: int
    pull: float
    trace_penalty: float


@dataclass(frozen=True)
class _Rows:
    """The rows that count, in columns of variance 1, with what is claimed of them.

    ``targets`` and ``triplets`` are numbers of these rows; q adds up to 1 over all pairs (row, target).
    """

    X: Array
    index: Array
    q: Array
    L: Array
    targets: Array
    triplets: Array
    dual: Array
    pull: float
    trace: float
    square: Array  # P


def recompute(claim: TripletClaim, claimed: Certificate) -> Recomputed:
    """Return objective and bound; raise a :class:`CertificateError` that names the first mistake."""
    _require_shapes(claim)
    numbers = np.flatnonzero(claim.weight > 0)
    _require_targets(claim, numbers)
    rows = _in_units(claim, numbers)
    _require_multipliers(rows, claim.triplets[:, 0])
    objective, off = _objective(rows)
    bound, lost = _bound(rows)
    found = replace(
        claimed,
        objective=objective,
        gap=max(objective - bound, 0.0),
        scale=objective,
        rounding=off,
        model=None,
    )
    return Recomputed(
        found,
        off,
        claimed.gap + 2.0 * off + lost,
        ("duality gap",),
        scale_allowance=objective + 2.0 * off,
        overstated=2.0 * off,
    )


# -- what has to hold of the attributes --------------------------------------------------------------------


def _require_shapes(claim: TripletClaim) -> None:
    n = claim.X.shape[0]
    if claim.targets.ndim != 2 or claim.targets.shape[0] != n:
        raise CertificateError(
            f"The model was fitted on {claim.targets.shape[0]} rows, but X has {n}. {REASONS}"
        )
    if claim.triplets.shape != (claim.dual.size, 3):
        raise CertificateError(
            f"triplets_ has shape {claim.triplets.shape}, but there are {claim.dual.size} multipliers."
        )
    if claim.components.ndim != 2 or claim.components.shape[1] != claim.X.shape[1]:
        raise CertificateError(f"components_ has shape {claim.components.shape}. {REASONS}")
    for name, values in (("targets_", claim.targets), ("triplets_", claim.triplets)):
        if values.dtype.kind != "i":
            raise CertificateError(f"{name} holds {values.dtype}, and no whole numbers.")
        if values.size and not (values.min() >= -1 and values.max() < n):
            raise CertificateError(f"{name} names rows that are not there. {REASONS}")
    if not (np.isfinite(claim.components).all() and np.isfinite(claim.dual).all()):
        raise CertificateError("components_ or dual_ holds NaN or infinity.")


def _require_targets(claim: TripletClaim, numbers: Array) -> None:
    """Raise where the targets of a row are not the nearest rows of its class."""
    counts = claim.weight > 0
    if (claim.targets[~counts] >= 0).any():
        raise CertificateError(f"targets_ has targets of rows of weight 0. {REASONS}")
    _, exponent = np.frexp(np.abs(claim.X).max(initial=0.0))
    X = np.ldexp(claim.X.astype(np.float64), -exponent)
    for label in np.unique(claim.index[numbers]):
        own = numbers[claim.index[numbers] == label]
        k = min(claim.k, own.size - 1)
        targets = claim.targets[own]
        if targets.shape[1] < k or (targets[:, k:] >= 0).any() or (targets[:, :k] < 0).any():
            raise CertificateError(
                f"targets_ has not {k} targets of each row of class number {label}. {REASONS}"
            )
        place = np.full(claim.X.shape[0], -1)
        place[own] = np.arange(own.size)
        places = place[targets[:, :k]]
        ordered = np.sort(places, axis=1)
        if (places < 0).any() or (places == np.arange(own.size)[:, None]).any():
            raise CertificateError(
                f"targets_ has targets that are of another class, or the row itself. {REASONS}"
            )
        if (ordered[:, 1:] == ordered[:, :-1]).any():
            raise CertificateError(f"targets_ has a target twice. {REASONS}")
        _require_nearest(X[own], places, own)


def _require_nearest(X: Array, places: Array, numbers: Array) -> None:
    X = X - X.mean(axis=0)
    for some, squares, off in _square_distances(X, X):
        rows = np.arange(some.start, some.stop)
        own = X[rows, None] - X[places[rows]]
        farthest = np.square(own).sum(axis=2).max(axis=1)
        squares[np.arange(rows.size), rows] = np.inf
        np.put_along_axis(squares, places[rows], np.inf, axis=1)
        wrong = np.flatnonzero(squares.min(axis=1) + 2.0 * off < farthest)
        if wrong.size:
            row, nearer = numbers[rows[wrong[0]]], numbers[squares[wrong[0]].argmin()]
            raise CertificateError(
                f"Row {nearer} is nearer to row {row} than one of its targets, counted from 0. {REASONS}"
            )


def _require_multipliers(rows: _Rows, numbers: Array) -> None:
    """Raise where a multiplier is no dual variable of the problem, or two are of the same triplet."""
    i, j, far = rows.triplets.T
    if not rows.dual.size:
        return
    if (rows.triplets < 0).any():
        raise CertificateError(f"triplets_ has rows of weight 0. {REASONS}")
    if not (rows.targets[i] == j[:, None]).any(axis=1).all():
        raise CertificateError(f"triplets_ has rows in the second column that are no targets. {REASONS}")
    if (rows.index[i] == rows.index[far]).any():
        raise CertificateError(
            f"triplets_ has rows in the third column that are of the same class. {REASONS}"
        )
    order = np.lexsort((far, j, i))
    ordered = rows.triplets[order]
    if (ordered[1:] == ordered[:-1]).all(axis=1).any():
        raise CertificateError(f"triplets_ has a triplet twice. {REASONS}")
    most = (1.0 - rows.pull) * rows.q[i] * (1.0 + 64.0 * U)
    wrong = np.flatnonzero(~((rows.dual >= 0) & (rows.dual <= most)))
    if wrong.size:
        raise CertificateError(
            f"Multiplier {wrong[0]}, of row {numbers[wrong[0]]}, is {rows.dual[wrong[0]]!r}, not "
            f"from 0 to {most[wrong[0]]!r}. {REASONS}"
        )


# -- the data in the units of the problem ------------------------------------------------------------------


def _in_units(claim: TripletClaim, numbers: Array) -> _Rows:
    """Return the rows that count, in columns of mean 0 and variance 1 (0 where all numbers are the same)."""
    X, weight = claim.X[numbers].astype(np.float64), claim.weight[numbers]
    weight = weight / weight.max()
    low, high = X.min(axis=0), X.max(axis=0)
    size = np.where(high > low, np.maximum(np.abs(low), np.abs(high)), 1.0)
    centre = np.where(high > low, weight @ (X / size) / weight.sum() * size, low)
    reach = np.where(high > low, np.maximum(high - centre, centre - low), 1.0)
    unit = np.where(high > low, reach * np.sqrt(weight @ np.square((X - centre) / reach) / weight.sum()), 1.0)
    unit[unit == 0] = 1.0
    place = np.full(claim.X.shape[0] + 1, -1)  # the last is that of row -1, which is none
    place[numbers] = np.arange(numbers.size)
    targets, Z = place[claim.targets[numbers]], (X - centre) / unit
    q = weight / (weight @ (targets >= 0).sum(axis=1))
    i, slot = np.nonzero(targets >= 0)
    square = _sum_of_squares(Z, i, targets[i, slot], q[i])
    mean = float(np.trace(square)) / X.shape[1]
    return _Rows(
        Z,
        claim.index[numbers],
        q,
        claim.components.astype(np.float64) * unit,
        targets,
        place[claim.triplets],
        claim.dual,
        claim.pull,
        claim.trace_penalty * (mean if mean > 0 else 1.0),
        square,
    )


def _sum_of_squares(X: Array, a: Array, b: Array, c: Array) -> Array:
    """Return sum_p c_p (x_a - x_b)(x_a - x_b)', sums of few products added up two and two."""
    width = X.shape[1]
    sums: list[tuple[int, Array]] = [(0, np.zeros((width, width)))]
    for start in range(0, a.size, BLOCK):
        some = slice(start, start + BLOCK)
        difference = X[a[some]] - X[b[some]]
        level, total = 0, (difference * c[some, None]).T @ difference
        while sums[-1][0] == level and len(sums) > 1:
            total = total + sums.pop()[1]
            level += 1
        sums.append((level, total))
    while len(sums) > 1:
        total = sums.pop()[1]
        sums[-1] = (sums[-1][0], sums[-1][1] + total)
    return sums[0][1]


def _square_distances(A: Array, B: Array) -> Iterator[tuple[slice, Array, Array]]:
    """Give the square distances of some rows of A from all rows of B, and by how much each may be off."""
    lengths, long = np.square(A).sum(axis=1), np.square(B).sum(axis=1)
    most = math.sqrt(float(long.max(initial=0.0)))
    step = max(ENTRIES // max(B.shape[0], 1), 1)
    for start in range(0, A.shape[0], step):
        some = slice(start, min(start + step, A.shape[0]))
        squares = lengths[some, None] + long - 2.0 * (A[some] @ B.T)
        yield some, squares, (A.shape[1] + 4) * 2.0 * U * np.square(np.sqrt(lengths[some]) + most)


# -- objective and bound -----------------------------------------------------------------------------------


def _objective(rows: _Rows) -> tuple[float, float]:
    """Return F of all triplets, and by how much rounding may have changed it, here and in a solver."""
    Z = rows.X @ rows.L.T
    there = rows.targets >= 0
    near = np.stack([np.square(Z - Z[np.maximum(j, 0)]).sum(axis=1) for j in rows.targets.T], axis=1)
    near[~there] = 0.0
    pulled, off = float(rows.q @ near.sum(axis=1)), 0.0
    # Each row of Z is off by so much in itself, and its square distances by twice that times their roots.
    moved = (rows.X.shape[1] + 4) * 2.0 * U * np.linalg.norm(rows.L) * np.linalg.norm(rows.X, axis=1)
    each = 4.0 * np.sqrt(1.0 + near.max(axis=1)) * (moved + moved.max()) + 16.0 * U * (1.0 + near.max(axis=1))
    pushes = []
    for some, squares, wrong in _square_distances(Z, Z):
        squares[rows.index[some, None] == rows.index] = np.inf
        error = each[some] + wrong
        total, count = np.zeros(squares.shape[0]), np.zeros(squares.shape[0])
        for j in range(near.shape[1]):
            margins = (1.0 + near[some, j])[:, None] - squares
            margins[~there[some, j]] = -np.inf
            count += (margins > -error[:, None]).sum(axis=1)
            total += np.maximum(margins, 0.0).sum(axis=1)
        pushes.append(float(rows.q[some] @ total))
        off += float(rows.q[some] @ (count * error))
    pull, push = rows.pull * pulled, (1.0 - rows.pull) * math.fsum(pushes)
    trace = rows.trace * float(np.square(rows.L).sum())
    objective = pull + push + trace
    n = rows.X.shape[0] + rows.X.shape[1] ** 2
    return objective, 2.0 * (off + float(rows.q @ (each * there.sum(axis=1)))) + 4.0 * (
        n + 64.0
    ) * U * objective


def _bound(rows: _Rows) -> tuple[float, float]:
    """Return the lower bound, and how much of it rounding may be the reason of."""
    width = rows.X.shape[1]
    B = rows.pull * rows.square + rows.trace * np.eye(width)
    i, j, far = rows.triplets.T
    pairs = np.concatenate([np.column_stack([i, j]), np.column_stack([i, far])])
    weights = np.concatenate([rows.dual, -rows.dual])
    codes, where = np.unique(pairs[:, 0] * np.int64(rows.X.shape[0]) + pairs[:, 1], return_inverse=True)
    a, b = codes // rows.X.shape[0], codes % rows.X.shape[0]
    c = np.bincount(where, weights, codes.size)
    S = B + _sum_of_squares(rows.X, a, b, c)
    values, least_of_B = np.linalg.eigvalsh(S), float(np.linalg.eigvalsh(B)[0])
    size = float(np.abs(c) @ np.square(rows.X[a] - rows.X[b]).sum(axis=1)) + float(np.trace(B))
    depth = math.log2(max(codes.size / BLOCK, 1.0)) + math.log2(max(rows.dual.size, 1.0))
    margin = (BLOCK + 16.0 + depth) * U * size + 8.0 * width * U * float(np.abs(values).max())
    floor = max(rows.trace, least_of_B - margin)
    total = math.fsum(rows.dual)
    share = 1.0 / (1.0 + max(-float(values[0]), 0.0) / floor)
    return total * share, total * (margin / floor + 8.0 * U)
