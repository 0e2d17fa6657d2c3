"""What a support vector machine's certificate says, recomputed from its public attributes and the data.

For every machine, with a_i = y_i dual_coef_i >= 0, s_i = sum_j a_j y_j K_ij, f_i = s_i + b and U_i = C
weight_i,

    P = 1/2 sum_i a_i y_i s_i + sum_i U_i max(0, 1 - y_i f_i)
    D = sum_i a_i - 1/2 sum_i a_i y_i s_i                       0 <= a_i <= U_i,   sum_i a_i y_i = 0

and no machine has an objective below D, where the kernel is positive semi-definite: if b'K b >= 0 for all b
with sum b = 0, of which b_i = a_i y_i is one. A kernel that is not so by construction is looked at on the
rows of every machine: the least eigenvalue of K, centred. The hard margin (U
infinite) has P = |w|^2 / (2 t^2), t = min y_i f_i, and the largest D along the ray of a, (sum a)^2 / (2
|w|^2), with |w|^2 = sum_i a_i y_i s_i. Objectives, bounds and scales of all machines are added up.

Plain NumPy in float64, some rows at a time; nothing here is shared with the solver.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.certificate import Certificate
from sixfold.errors import CertificateError
from sixfold.geometry.kernels import Kernel, Precomputed
from sixfold.learners.svm.support_layout import SupportLayout
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]

ENTRIES = 1 << 22  # kernel values that are held at a time
CHECKED = 3000  # rows of a machine whose eigenvalues are computed: some seconds
EPS = float(np.finfo(np.float64).eps)
OTHER_DATA = (
    "Either the data are not those of the fit, or the model was changed. If there were weights, pass the "
    "sample_weight of the fit."
)


@dataclass(frozen=True)
class Claims:
    """The public attributes of a model, and the data it is said to be fitted on.

    Attributes
    ----------
    layout : SupportLayout
        ``support_``, ``n_support_``, ``dual_coef_`` and ``intercept_``.
    kernel : Kernel
    vectors : ndarray or CSR array
        ``support_vectors_``; not looked at where the kernel is precomputed.
    X : ndarray or CSR array
    labels : ndarray of int of shape (rows,)
        The class of each row.
    upper : ndarray of shape (rows,)
        C times the weight of each row; 0 for a row that does not count.
    """

    layout: SupportLayout
    kernel: Kernel
    vectors: Any
    X: Any
    labels: Array
    upper: Array


@dataclass(frozen=True)
class Figures:
    """What is known of one machine, or of all of them together."""

    primal: float = 0.0
    dual: float = 0.0
    scale: float = 0.0
    violation: float = 0.0
    rounding: float = 0.0
    score_rounding: float = 0.0

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.primal + other.primal,
            self.dual + other.dual,
            self.scale + other.scale,
            max(self.violation, other.violation),
            self.rounding + other.rounding,
            max(self.score_rounding, other.score_rounding),
        )


def recompute(claims: Claims, claimed: Certificate) -> Recomputed:
    """Return the certificate of the public attributes.

    Raises
    ------
    CertificateError
        If the coefficients are none of a dual point of these rows, or violate its conditions by more than
        was claimed, or if the kernel is not such that there is a bound.
    """
    _require_support(claims)
    kind = _confirmed_kind(claims, claimed)
    decisions, sizes = _decisions(claims)
    total = Figures()
    for machine, (positive, negative) in enumerate(claims.layout.machines):
        there = _members(claims, positive, negative)
        y = np.where(claims.labels[there] == positive, 1.0, -1.0)
        alpha = np.zeros(claims.labels.size)
        alpha[claims.layout.support] = claims.layout.coefficients(machine)
        alpha = alpha[there] * y
        upper = claims.upper[there]
        _require_feasible(y, alpha, upper)
        f, size, b = decisions[there, machine], sizes[there, machine], float(claims.layout.intercept[machine])
        figures = _hard if np.isinf(upper).any() else _soft
        total += figures(y, alpha, upper, f, b, _entry_rounding(claims) * size)
    if math.isinf(total.primal) and math.isfinite(claimed.objective):
        raise CertificateError(f"Rows are on the wrong side of the hard margin. {OTHER_DATA}")
    _require_violation(total, claimed)
    gap = max(total.primal - total.dual, 0.0)
    details: dict[str, Any] = {
        "violation": total.violation,
        "dual_objective": total.dual,
    }
    claim = ""
    if kind == "kkt":
        relative = gap / total.scale if total.scale > 0 else gap
        claim = f"stationary within {relative:.1g}; no bound, for the kernel may be no dot product"
    found = Certificate(kind, total.primal, gap, total.scale, claimed.tolerance, details, claim)
    # The solver's own figures are rounded as it says.
    allowance = total.rounding + claimed.rounding
    return Recomputed(found, allowance, claimed.gap + 2.0 * allowance)


def _members(claims: Claims, positive: int, negative: int | None) -> Array:
    """Return whether each row is one of a machine's."""
    there: Array = claims.upper > 0
    if negative is not None:
        there &= (claims.labels == positive) | (claims.labels == negative)
    return there


def _confirmed_kind(claims: Claims, claimed: Certificate) -> str:
    """Return the kind that was claimed; "kkt" for a bound on rows too many to look at."""
    if claimed.kind != "duality gap" or claims.kernel.definite:
        return claimed.kind
    sides = claims.layout.machines
    # Machines of one class against the rest have the same rows.
    groups = [_members(claims, *side) for side in (sides if claims.layout.pairwise else sides[:1])]
    if max(np.count_nonzero(there) for there in groups) > CHECKED:
        return "kkt"
    for there in groups:
        _require_definite(claims, there)
    return claimed.kind


def _require_definite(claims: Claims, there: Array) -> None:
    """Raise a CertificateError if a b with sum b = 0 has b'K b < 0 on these rows, beyond rounding."""
    X = claims.X[there].astype(np.float64)
    gram = X[:, there] if isinstance(claims.kernel, Precomputed) else claims.kernel(X)
    gram = 0.5 * (gram + gram.T)
    rounding = _entry_rounding(claims) * float(np.abs(np.diagonal(gram)).sum())
    rounding += 64.0 * EPS * gram.shape[0] * float(np.abs(gram).max())
    means = gram.mean(axis=0)
    centred = gram - means - (means - means.mean())[:, None]
    least = float(np.linalg.eigvalsh(centred)[0])
    if least < -rounding:
        raise CertificateError(
            "The certificate claims a duality gap, but on these rows the kernel is not positive "
            f"semi-definite (an eigenvalue of its centred matrix is {least:.3g}): there is no such bound. "
            f"{OTHER_DATA}"
        )


def _soft(y: Array, alpha: Array, upper: Array, f: Array, b: float, error: Array) -> Figures:
    """Return primal and dual objective, the constant model's, and how far off rounding may be."""
    s = f - b
    inside = np.maximum(1.0 - y * f, 0.0)
    half = 0.5 * float(alpha @ (y * s))
    primal = half + float(upper @ inside)
    scale = 2.0 * min(float(upper[y > 0].sum()), float(upper[y < 0].sum()))
    # A row that is outside the margin by no more than rounding may be inside.
    touched = np.where(1.0 - y * f > -error, upper, 0.0) + alpha
    rounding = float(touched @ error) + 1e-13 * (abs(primal) + float(alpha.sum()))
    violation, most = _violation(y, alpha, upper, s), float(error.max())
    return Figures(primal, float(alpha.sum()) - half, scale, violation, rounding, most)


def _hard(y: Array, alpha: Array, upper: Array, f: Array, b: float, error: Array) -> Figures:
    s, total = f - b, float(alpha.sum())
    square, least = float(alpha @ (y * s)), float((y * f).min())
    violation, most = _violation(y, alpha, upper, s), float(error.max())
    if not (least > 0 and square > 0):
        return Figures(math.inf, 0.0, 1.0, violation, 0.0, most)
    primal = 0.5 * square / least**2
    relative = float(alpha @ error) / square + 2.0 * most / least
    rounding = (relative + 1e-13) * primal
    return Figures(primal, 0.5 * total**2 / square, primal, violation, rounding, most)


def _violation(y: Array, alpha: Array, upper: Array, s: Array) -> float:
    """Return max of y - s over rows whose a y may grow minus its min over those whose may shrink."""
    v = y - s
    grows = np.where(y > 0, alpha < upper, alpha > 0)
    shrinks = np.where(y > 0, alpha > 0, alpha < upper)
    most = float(np.max(v, where=grows, initial=-math.inf))
    least = float(np.min(v, where=shrinks, initial=math.inf))
    return max(most - least, 0.0)


def _require_violation(found: Figures, claimed: Certificate) -> None:
    """Raise a CertificateError if the conditions of optimality are violated by more than was claimed."""
    limit = claimed.details["violation"]
    # A violation is a difference of two scores, and either side has rounded both.
    limit += 2.0 * (claimed.details.get("rounding", 0.0) + found.score_rounding)
    if not found.violation <= limit:
        raise CertificateError(
            f"The certificate says that no two rows violate optimality by more than "
            f"{claimed.details['violation']:.3g}, but on these data some do by {found.violation:.3g}. "
            f"{OTHER_DATA}"
        )


def _require_support(claims: Claims) -> None:
    layout = claims.layout
    known = np.repeat(np.arange(layout.n_support.size), layout.n_support)
    if known.size != layout.support.size or not np.array_equal(claims.labels[layout.support], known):
        raise CertificateError(f"The support vectors have other labels. {OTHER_DATA}")
    if np.any(claims.upper[layout.support] == 0):
        raise CertificateError(f"A support vector has weight 0. {OTHER_DATA}")


def _require_feasible(y: Array, alpha: Array, upper: Array) -> None:
    excess = np.maximum(alpha - upper * (1.0 + 1e-10), -alpha)
    if np.any(excess > 0):
        raise CertificateError(
            f"A dual coefficient is beyond its bounds by {float(excess.max()):.3g}. {OTHER_DATA}"
        )
    left = abs(float(alpha @ y))
    if not left <= 1e-9 * float(alpha.sum()):
        raise CertificateError(f"The dual coefficients add up to {left:.3g} instead of 0. {OTHER_DATA}")


def _entry_rounding(claims: Claims) -> float:
    """Return how far a kernel value may be off, relative to sqrt(K(x, x) K(z, z))."""
    if isinstance(claims.kernel, Precomputed):
        return 16.0 * EPS
    form = claims.kernel.form
    # An error of the exponent is one of the value, relatively: gamma |x - z|^2 e^-(gamma |x - z|^2) < 1, but
    # |x - z|^2 comes from lengths.
    stretch = 1.0 if form is None or form.kind != "rbf" else 1.0 + form.gamma * _largest_length(claims)
    degree = 1 if form is None else max(form.degree, 1)
    return EPS * (claims.X.shape[1] + 16) * stretch * degree


def _largest_length(claims: Claims) -> float:
    """Return the largest squared length of a row, as the kernel takes it: of dense rows, about a mean."""
    X, centre, factor = claims.X, 0.0, 1.0
    if not hasattr(X, "toarray") and len(claims.vectors):
        # About the mean of the vectors it is given, a class at a time; any two means are within the diameter.
        centre, factor = claims.vectors.mean(axis=0, dtype=np.float64), 4.0
    longest = 0.0
    for _, part in _row_blocks(X, X.shape[1], True):
        about = part - centre
        longest = max(longest, float(np.einsum("ij,ij->i", about, about).max()))
    return factor * longest


def _row_blocks(X: Any, width: int, dense: bool = False) -> Iterator[tuple[slice, Any]]:
    step = max(ENTRIES // max(width, 1), 1)
    for start in range(0, X.shape[0], step):
        part = X[start : start + step].astype(np.float64)
        part = part.toarray() if dense and hasattr(part, "toarray") else part
        yield slice(start, start + step), part


def _decisions(claims: Claims) -> tuple[Array, Array]:
    """Return f of every row and machine, and the size of what was added up: sum |c| sqrt(K_ii K_jj)."""
    layout, kernel, count = claims.layout, claims.kernel, claims.X.shape[0]
    f = np.tile(np.asarray(layout.intercept, dtype=np.float64), (count, 1))
    given = isinstance(kernel, Precomputed)
    vectors: Any = None if given else claims.vectors.astype(np.float64)
    lengths = np.sqrt(np.abs(kernel.diagonal(claims.X)))
    sums = np.zeros(f.shape[1])
    for part, rows in _row_blocks(claims.X, max(layout.support.size, claims.X.shape[1])):
        for some, machines in layout.blocks():
            values = rows[:, layout.support[some]] if given else kernel(rows, vectors[some])
            f[part, machines] += values @ layout.dual_coef[:, some].T
    for some, machines in layout.blocks():
        sums[machines] += np.abs(layout.dual_coef[:, some]) @ lengths[layout.support[some]]
    return f, lengths[:, None] * sums + np.abs(layout.intercept) + 1.0
