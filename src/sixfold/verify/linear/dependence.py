"""Which columns depend on others.

Without penalty a column counts as a combination of others where the best one leaves no more of it than the
rounding of its entries, and of the coefficients of a model that would use it,

    eps (DEPENDENT (|x_j| + sum_k |C_k| |x_k|) + USABLE (|z_j| + sum_k |C_k| |z_k|)),    z = x - mean.

Where it leaves more than nothing, the gap speaks of models that do not tell these columns apart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.verify.doubled import products, total
from sixfold.verify.linear.claim import LinearClaim

Array = NDArray[Any]

DEPENDENT = 4.0  # roundings of its entries that a column may differ by from a combination of others
USABLE = 256.0  # times the rounding of a coefficient that what is left of a column has to be
NOTHING = 1e-18  # of a column: no two columns of doubles agree so far by chance
CLEAR = 1e-9  # of a column, left by QR: more than rounding leaves


class Kept(NamedTuple):
    """Columns that do not depend on each other, and those that follow from them."""

    columns: Array
    combination: Array  # of the kept columns, for each dependent one
    dependent: Array  # exactly
    doubtful: Array  # but for their last bits
    positive: bool  # whether no combination has a negative coefficient
    left: dict[int, Array]  # of kept columns that others nearly explain: what these leave of them


def independent_of(claim: LinearClaim, q: Array, rows: Array, columns: Array) -> Kept:
    """Return which of these columns do not depend on earlier ones of them, in some of the rows."""
    X = claim.X[rows][:, columns]
    kept = independent(X, q[rows] / q[rows].sum(), claim.fit_intercept, claim.eps)
    left = {int(columns[j]): np.zeros(q.size) for j in kept.left}
    for j, values in kept.left.items():
        left[int(columns[j])][rows] = values
    return kept._replace(
        columns=columns[kept.columns],
        dependent=columns[kept.dependent],
        doubtful=columns[kept.doubtful],
        left=left,
    )


def independent(X: Any, q: Array, fit_intercept: bool, eps: float) -> Kept:
    """Return the columns by the rule above; q are the weights, of sum 1."""
    X = X.toarray() if sp.issparse(X) else X
    n, d = X.shape
    mean = X[0] + q @ (X - X[0]) if fit_intercept else np.zeros(d)
    Z = X - mean
    # A row that hardly counts may still tell two columns apart: the rule has to hold for equal weights too.
    shares = [q, np.full(n, 1.0 / n)]
    sizes = [np.sqrt(share @ X**2) for share in shares]
    lengths = [np.sqrt(share @ Z**2) for share in shares]
    rounded = DEPENDENT * eps
    constant = np.all([length <= rounded * size for length, size in zip(lengths, sizes, strict=True)], axis=0)
    moving = np.array([bool(Z[:, j].any()) for j in range(d)], dtype=bool)
    doubtful, positive = [int(j) for j in np.flatnonzero(constant & moving)], True
    exact = {int(j): np.zeros(0) for j in np.flatnonzero(constant & ~moving)}
    columns = np.flatnonzero(~constant)
    scaled = np.sqrt(q)[:, None] * Z[:, columns]
    scaled /= np.linalg.norm(scaled, axis=0) * (1.0 + 1e-9 * np.arange(columns.size))
    R, order = la.qr(scaled, mode="r", pivoting=True) if columns.size else (np.zeros((0, 0)), columns)
    most = n - int(fit_intercept)
    # Columns far from 0 may owe more than that to the rounding of their entries.
    apart = (lengths[0][columns] > 0).all()
    far = np.max(sizes[0][columns] / lengths[0][columns], initial=1.0) if apart else np.inf
    clear = max(CLEAR, 1e3 * eps) + 16.0 * (1.0 + columns.size) * rounded * far
    clear = min(int(np.count_nonzero(np.abs(np.diag(R)) > clear)), most)
    kept = [int(j) for j in columns[order[:clear]]]
    nearly: dict[int, Array] = {}
    rest = [int(j) for j in columns[order[clear:]]]
    while rest and len(kept) < most:
        column = rest.pop(0)
        C, left = _combination(X, q, mean, np.array(kept, dtype=int), column, fit_intercept)
        bounds = [size[column] + np.abs(C) @ size[kept] for size in sizes]
        spread = [length[column] + np.abs(C) @ length[kept] for length in lengths]
        lefts = [np.sqrt(share @ left**2) for share in shares]
        least = [rounded * size + USABLE * eps * z for size, z in zip(bounds, spread, strict=True)]
        if any(one > bound for one, bound in zip(lefts, least, strict=True)):
            kept.append(column)
            nearly[column] = left
            continue
        positive &= bool((C >= -1e-9).all())
        if all(one <= NOTHING * size for one, size in zip(lefts, spread, strict=True)):
            exact[column] = C
        else:
            doubtful.append(column)
    if rest:  # As many columns as rows have directions: the others follow from them, whatever they are.
        follow = _combinations(np.sqrt(q)[:, None] * Z[:, kept], np.sqrt(q)[:, None] * Z[:, rest])
        positive &= bool((follow >= -1e-9).all())
        exact.update(zip(rest, follow.T, strict=True))
    combination = np.zeros((len(kept), len(exact)))
    for place, C in enumerate(exact.values()):
        combination[: C.size, place] = C
    at = np.argsort(kept)
    return Kept(
        np.array(kept, dtype=int)[at],
        combination[at],
        np.array(list(exact), dtype=int),
        np.array(doubtful, dtype=int),
        positive,
        nearly,
    )


def _combinations(kept: Array, rest: Array) -> Array:
    """Return C with rest = kept C, where that exists."""
    scale = np.linalg.norm(kept, axis=0)
    Q, R = np.linalg.qr(kept / scale)
    C = la.solve_triangular(R, Q.T @ rest)
    C += la.solve_triangular(R, Q.T @ (rest - kept / scale @ C))
    return np.asarray(C / scale[:, None])


def _combination(
    X: Array, q: Array, mean: Array, kept: Array, column: int, centred: bool
) -> tuple[Array, Array]:
    """Return the best combination of the kept columns (and a constant), and what it leaves of the column."""
    ones = np.ones((X.shape[0], int(centred)))
    basis = np.hstack([X[:, kept], ones])
    weighted = np.sqrt(q)[:, None] * np.hstack([X[:, kept] - mean[kept], ones])
    scale = np.linalg.norm(weighted, axis=0)
    scale[scale == 0] = 1.0
    Q, R = np.linalg.qr(weighted / scale)
    C, low = np.zeros(basis.shape[1]), np.zeros(basis.shape[1])
    left = X[:, column].copy()
    for _ in range(6):
        step = la.solve_triangular(R, Q.T @ (np.sqrt(q) * left)) / scale
        if centred:  # coefficients of x - m become those of x
            step[-1] -= mean[kept] @ step[:-1]
        # C + low has the digits of both.
        total_low = low + step
        C, low = C + total_low, total_low - ((C + total_low) - C)
        p, e = products(basis, -C)
        p2, e2 = products(basis, -low)
        left = total(np.hstack([X[:, [column]], p, p2]), np.hstack([0.0 * X[:, [column]], e, e2]))
    return C[: kept.size], left
