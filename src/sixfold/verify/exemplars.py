"""The duality gap of exemplar machines, recomputed from their public attributes and the data.

For each exemplar e, with c_i = C weight_i of the rows i of other classes and C_e of itself,

    P_e(w, b) = |w|^2 / 2 + C_e max(0, 1 - f_e)^2 + sum_i c_i max(0, 1 + f_i)^2,          f = w.x + b
    min P_e  >=  A^2 / (sum_i a_i^2 / 4 c_i + A^2 / 4 C_e + |sum_i a_i (x_i - x_e)|^2 / 2),   A = sum_i a_i

for any a_i >= 0: (a, A) is a point of the dual, whose signed sum is 0 whatever a is, and the bound is the
best one on its ray. Here a_i = 2 c_i max(0, 1 + f_i) for linear machines, and what the coefficients say for
those with a kernel, where |sum_i a_i (x_i - x_e)|^2 = sum_ij beta_i beta_j K_ij with beta_i = -a_i and beta_e
= A. Objectives, bounds and scales add up over the exemplars.

A score is off by (d + 8) u (|w| |x - m| + |w|.|m| + |b|) where rows are moved by their mean m, or by what an
entry of K is off times sum_j |beta_j| |phi_j| |phi_i|; a sum of n terms by n u times the sum of their sizes.

Source: Boyd and Vandenberghe (2004), Convex optimization, section 5.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sixfold.certificate import Certificate
from sixfold.errors import CertificateError
from sixfold.verify.kernel import entry_rounding
from sixfold.verify.recomputed import REASONS, Recomputed

Array = NDArray[Any]

ENTRIES = 1 << 22  # scores that are held at a time
U = 0.5 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Claims:
    """The public attributes of a model, and the data it is said to be fitted on.

    ``cost`` is C times the weight of each row, 0 for rows that do not count; ``positive`` are the classes
    whose rows are exemplars. Linear machines have ``coef``; others ``beta`` (machines x support vectors) of
    the rows ``support``, and ``kernel``, whose entries are off by ``entry_error`` relative to the lengths.
    """

    X: Any
    index: Array
    cost: Array
    positive: Array
    exemplars: Array
    exemplar_cost: float
    intercept: Array
    coef: Any
    kernel: Any = None
    support: Any = None
    vectors: Any = None
    beta: Any = None
    entry_error: float = 0.0


class Figures(NamedTuple):
    """Of some machines: P, the bound, what they are judged against, and how far the first two may be off."""

    objective: Array
    bound: Array
    scale: Array
    rounding: Array


def recompute(claims: Claims, claimed: Certificate) -> Recomputed:
    """Return the certificate of the public attributes.

    Raises
    ------
    CertificateError
        If the exemplars are other rows than the data say, or coefficients are none of a dual point.
    """
    there = np.isin(claims.index, claims.positive) & (claims.cost > 0)
    if not np.array_equal(np.flatnonzero(there), np.sort(claims.exemplars)):
        raise CertificateError(f"The exemplars are other rows than these labels and weights say. {REASONS}")
    _require_shapes(claims)
    parts = list(_groups(claims))
    objective, bound, scale, rounding = (
        float(sum(part[k].sum() for part in parts)) for k in range(len(Figures._fields))
    )
    gap = float(sum(np.maximum(part.objective - part.bound, 0.0).sum() for part in parts))
    found = Certificate("duality gap", objective, gap, scale, claimed.tolerance, {"dual_objective": bound})
    return Recomputed(
        found,
        rounding + claimed.rounding,
        claimed.gap + 2.0 * rounding,
        ("duality gap",),
        scale_allowance=scale * (1.0 + 1e-9),
    )


def _require_shapes(claims: Claims) -> None:
    """Raise a CertificateError unless there is a machine for each exemplar."""
    count, columns = claims.exemplars.size, claims.X.shape[1]
    good = claims.intercept.shape == (count,)
    if claims.coef is not None:
        good = good and claims.coef.shape == (count, columns)
    else:
        held = claims.support.size
        good = good and claims.beta.shape == (count, held) and claims.vectors.shape == (held, columns)
    if not good:
        raise CertificateError(f"The coefficients are not those of {count} machines. {REASONS}")


def _groups(claims: Claims) -> Iterator[Figures]:
    """Go through the machines, some of one class at a time."""
    for label in claims.positive:
        rows = np.flatnonzero((claims.index != label) & (claims.cost > 0))
        own = np.flatnonzero(claims.index[claims.exemplars] == label)
        cost = claims.cost[rows]
        scale = 4.0 / (1.0 / claims.exemplar_cost + 1.0 / cost.sum())
        step = max(ENTRIES // max(claims.X.shape[0], 1), 1)
        look = _Linear(claims, rows, cost) if claims.coef is not None else _Kernel(claims, rows, cost)
        for start in range(0, own.size, step):
            some = own[start : start + step]
            yield look.figures(some, scale)


class _Linear:
    """Machines with w, against the rows of other classes, moved by their mean."""

    def __init__(self, claims: Claims, rows: Array, cost: Array) -> None:
        self.claims, self.cost = claims, cost
        X = claims.X[rows].astype(np.float64)
        sparse = hasattr(X, "toarray")
        self.mean = np.zeros(X.shape[1]) if sparse else X.mean(axis=0)
        self.X = X if sparse else X - self.mean
        self.lengths = np.sqrt(np.asarray((self.X.multiply(X) if sparse else self.X**2).sum(axis=1)).ravel())

    def figures(self, some: Array, scale: float) -> Figures:
        claims, cost = self.claims, self.cost
        w, given = claims.coef[some].astype(np.float64), claims.intercept[some].astype(np.float64)
        x = claims.X[claims.exemplars[some]].astype(np.float64)
        x = (x.toarray() if hasattr(x, "toarray") else x) - self.mean
        b = given + w @ self.mean
        f = np.asarray(self.X @ w.T).T + b[:, None]
        own = (w * x).sum(axis=1) + b
        inside, inside_own = np.maximum(1.0 + f, 0.0), np.maximum(1.0 - own, 0.0)
        a = 2.0 * cost * inside
        pull = np.asarray(self.X.T @ a.T).T - a.sum(axis=1)[:, None] * x
        length, own_length = np.sqrt((w * w).sum(axis=1)), np.sqrt((x * x).sum(axis=1))
        d, n = w.shape[1], cost.size
        fixed = np.abs(w) @ np.abs(self.mean) + np.abs(given)
        error = (d + 8) * U * (length[:, None] * self.lengths + fixed[:, None])
        own_error = (d + 8) * U * (length * own_length + fixed)
        pull_error = (n + d + 8) * U * (a @ self.lengths + a.sum(axis=1) * own_length)
        # The claim was made of multipliers that scores before rounding stand for.
        a_error = 2.0 * cost * error
        pull_error += a_error @ self.lengths + a_error.sum(axis=1) * own_length
        size = np.sqrt((pull * pull).sum(axis=1))
        moved = size * pull_error + 0.5 * pull_error**2
        half = 0.5 * (w * w).sum(axis=1)
        own_terms = claims.exemplar_cost, inside_own, own_error
        return _figures(a, cost, inside, error, own_terms, half, 0.5 * size**2, moved, scale)


class _Kernel:
    """Machines with a coefficient for each support vector."""

    def __init__(self, claims: Claims, rows: Array, cost: Array) -> None:
        self.claims, self.rows, self.cost = claims, rows, cost
        self.lengths = np.sqrt(np.abs(claims.kernel.diagonal(claims.X)))
        self.entry_error = claims.entry_error
        if hasattr(claims.X, "toarray"):  # not about a mean here, as dense rows are for the solver
            self.entry_error += entry_rounding(claims.kernel, claims.X, claims.vectors)

    def figures(self, some: Array, scale: float) -> Figures:
        claims, cost, rows = self.claims, self.cost, self.rows
        count, n = some.size, claims.X.shape[0]
        beta = np.zeros((count, n))
        beta[:, claims.support] = claims.beta[some]
        a, line = -beta[:, rows], np.arange(count)
        own_rows = claims.exemplars[some]
        _require_dual(beta, a, own_rows)
        s = np.empty((count, n))
        step = max(ENTRIES // max(claims.support.size, 1), 1)
        for start in range(0, n, step):
            part = slice(start, start + step)
            s[:, part] = claims.beta[some] @ claims.kernel(claims.vectors, claims.X[part])
        f, b = s[:, rows] + claims.intercept[some, None], claims.intercept[some]
        inside, inside_own = np.maximum(1.0 + f, 0.0), np.maximum(1.0 - s[line, own_rows] - b, 0.0)
        square, size = (beta * s).sum(axis=1), np.abs(beta) @ self.lengths
        relative = self.entry_error + (n + 8) * U
        error = relative * size[:, None] * self.lengths[rows] + 4.0 * U * np.abs(b)[:, None]
        own_error = relative * size * self.lengths[own_rows] + 4.0 * U * np.abs(b)
        own_terms = claims.exemplar_cost, inside_own, own_error
        return _figures(
            a, cost, inside, error, own_terms, 0.5 * square, 0.5 * square, relative * size**2, scale
        )


def _require_dual(beta: Array, a: Array, own: Array) -> None:
    """Raise a CertificateError unless the coefficients are those of a point of the dual."""
    total, line = a.sum(axis=1), np.arange(own.size)
    others = np.abs(beta).sum(axis=1) - np.abs(a).sum(axis=1) - np.abs(beta[line, own])
    if (
        (a < 0).any()
        or (np.abs(beta[line, own] - total) > 1e-9 * total).any()
        or (others > 1e-9 * total).any()
    ):
        raise CertificateError(f"The coefficients are not those of exemplars and negatives. {REASONS}")


def _figures(
    a: Array,
    cost: Array,
    inside: Array,
    error: Array,
    own: tuple[float, Array, Array],
    half: Array,
    bound_half: Array,
    bound_moved: Array,
    scale: float,
) -> Figures:
    """Return the figures; ``half`` is |w|^2 / 2, ``bound_half`` the last term of the bound's bracket."""
    own_cost, inside_own, own_error = own
    total, few = a.sum(axis=1), (cost.size + 32) * U
    objective = half + own_cost * inside_own**2 + (cost * inside**2).sum(axis=1)
    bracket = (a * (a / (4.0 * cost))).sum(axis=1) + total * (total / (4.0 * own_cost)) + bound_half
    some = bracket > 0
    bound = np.where(some, total * (total / np.where(some, bracket, 1.0)), 0.0)
    rounding = (2.0 * cost * inside * error + cost * error**2).sum(axis=1)
    rounding += own_cost * (2.0 * inside_own * own_error + own_error**2) + 2.0 * few * objective
    rounding += bound * (4.0 * few + np.where(some, bound_moved / np.where(some, bracket, 1.0), 0.0))
    return Figures(objective, bound, np.full(half.size, scale), rounding)
