"""The duality gap of kernel SVMs, recomputed from the public attributes and the data.

For every binary SVM, with a_i = y_i dual_coef_i, s_i = sum_j a_j y_j K_ij, f_i = s_i + b, U_i = C weight_i,

    P = 1/2 sum_i a_i y_i s_i + sum_i U_i max(0, 1 - y_i f_i)
    D = sum_i a_i - 1/2 sum_i a_i y_i s_i                       0 <= a_i <= U_i,   sum_i a_i y_i = 0

    P - min P  <=  P - D  <=  gap

where the kernel is positive semi-definite: c'K c >= 0 for all c with sum c = 0, of which c_i = a_i y_i is
one. A kernel that is not so by construction is looked at on the rows of every SVM: the least eigenvalue of K,
centred. The hard margin (U infinite) has P = |w|^2 / (2 t^2), t = min y_i f_i, and the largest D along the
ray of a, (sum a)^2 / (2 |w|^2), with |w|^2 = sum_i a_i y_i s_i. Objectives, bounds and scales add up.

P may be flat in b, so b is also checked by what it is: the mean of v_i = y_i - s_i over rows with 0 < a_i <
U_i (without any, the middle of what the conditions of optimality leave), or, where a fit was ended, the b of
least loss.

Plain NumPy in float64, some rows at a time; only the kernel function, which is the definition, is shared.

Sources: Boyd and Vandenberghe (2004), Convex optimization, section 5.5; Chang and Lin (2011), LIBSVM, section
4.1.5, for b.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sixfold.certificate import Certificate
from sixfold.errors import CertificateError
from sixfold.geometry.kernels import Kernel, Precomputed
from sixfold.verify.recomputed import REASONS, Recomputed

Array = NDArray[Any]

ENTRIES = 1 << 22  # kernel values that are held at a time
CHECKED_ROWS = 3000  # of an SVM whose eigenvalues are computed: some seconds
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Claims:
    """The public attributes of a model, what is claimed of it, and the data it is said to be fitted on.

    ``pairwise`` is whether there is an SVM for each of several pairs of classes; ``vectors`` are not looked
    at where the kernel is precomputed. ``violation`` is the largest max v - min v that is claimed,
    ``score_rounding`` how far the solver says its scores are off, ``upper`` C times the weight of each row.
    """

    support: Array
    n_support: Array
    dual_coef: Array
    intercept: Array
    pairwise: bool
    kernel: Kernel
    vectors: Any
    violation: float
    score_rounding: float
    X: Any
    labels: Array
    upper: Array

    def sides(self) -> list[tuple[int, int | None]]:
        """Return the positive and the negative class of each SVM; None is the rest."""
        classes = range(self.n_support.size)
        if len(classes) == 2:
            return [(1, 0)]
        return list(combinations(classes, 2)) if self.pairwise else [(label, None) for label in classes]

    def rows_of(self, positive: int, negative: int | None) -> Array:
        """Return whether each row is one of an SVM's."""
        there = (self.labels == positive) | (self.labels == negative) if negative is not None else True
        counts: Array = (self.upper > 0) & there
        return counts

    def coefficients(self) -> Array:
        """Return a y of each support vector in each SVM, of shape (support vectors, SVMs)."""
        if not self.pairwise:
            return np.asarray(self.dual_coef.T)
        own = self.labels[self.support]
        result = np.zeros((own.size, self.intercept.size))
        for svm, (first, second) in enumerate(combinations(range(self.n_support.size), 2)):
            # Rows of dual_coef speak of the other classes in order, which leaves out a vector's own.
            result[own == first, svm] = self.dual_coef[second - 1, own == first]
            result[own == second, svm] = self.dual_coef[first, own == second]
        return result


@dataclass(frozen=True)
class Dual:
    """The point of one SVM: y, a, U and s of its rows, b, and how far rounding may have moved each f."""

    y: Array
    alpha: Array
    upper: Array
    s: Array
    b: float
    error: Array

    def loss(self, b: float) -> float:
        """Return sum U max(0, 1 - y (s + b))."""
        return float(self.upper @ np.maximum(1.0 - self.y * (self.s + b), 0.0))

    def bounds(self) -> tuple[float, float]:
        """Return the largest v of rows whose a y may grow, and the least of those whose a y may shrink."""
        up, above, below = self.y > 0, self.alpha > 0, self.alpha < self.upper
        v = self.y - self.s
        highest = v.max(where=np.where(up, below, above), initial=-math.inf)
        return float(highest), float(v.min(where=np.where(up, above, below), initial=math.inf))

    def figures(self) -> Figures:
        """Return P, D, what they are judged against, how steep P is, and how far they may be off."""
        square, total = float(self.alpha @ (self.y * self.s)), float(self.alpha.sum())
        highest, lowest = self.bounds()
        last = max(highest - lowest, 0.0), float(self.error.max())
        margins = self.y * (self.s + self.b)
        if np.isinf(self.upper).any():
            least = float(margins.min())
            if not (least > 0 and square > 0):
                return Figures(math.inf, 0.0, 1.0, 0.0, 0.0, *last)
            primal = 0.5 * square / least**2  # against which a hard margin is judged
            rounding = (float(self.alpha @ self.error) / square + 2.0 * last[1] / least + 1e-13) * primal
            slope = (total / square + 2.0 / least) * primal
            return Figures(primal, 0.5 * total**2 / square, primal, slope, rounding, *last)
        primal = 0.5 * square + self.loss(self.b)
        constant = 2.0 * min(float(self.upper[self.y > 0].sum()), float(self.upper[self.y < 0].sum()))
        # A row that is outside the margin by no more than rounding may be inside.
        touched = np.where(1.0 - margins > -self.error, self.upper, 0.0) + self.alpha
        rounding = float(touched @ self.error) + 1e-13 * (abs(primal) + total)
        return Figures(primal, total - 0.5 * square, constant, float(touched.sum()), rounding, *last)


class Figures(NamedTuple):
    """What is known of one SVM, or, added up, of all of them; of the last two, the largest."""

    primal: float
    dual: float
    scale: float
    slope: float  # by how much P moves at most, times what every score moves by
    rounding: float
    violation: float
    score_rounding: float


def recompute(claims: Claims, claimed: Certificate) -> Recomputed:
    """Return the certificate of the public attributes.

    Raises
    ------
    CertificateError
        If the coefficients are none of a dual point of these rows, if they violate its conditions by more
        than was claimed, if the intercept is another, or if the kernel is not such that there is a bound.
    """
    _require_support(claims)
    kind = _confirmed_kind(claims, claimed)
    duals = list(_duals(claims))
    for dual in duals:
        _require_feasible(dual)
    figures = [dual.figures() for dual in duals]
    columns = list(zip(*figures, strict=True))
    total = Figures(*map(sum, columns[:5]), *map(max, columns[5:]))
    # What the solver says of its own rounding is believed where it can be so: scores are in float32 only if
    # that is within the tolerance, else they have the rounding of float64, and the objective that of scores.
    scores = min(claims.score_rounding, claimed.tolerance + total.score_rounding)
    objective = min(claimed.rounding, claimed.gap, 2.0 * (total.slope * scores + total.rounding))
    claims, claimed = replace(claims, score_rounding=scores), replace(claimed, rounding=objective)
    _require_claims(claims, claimed, total)
    for dual, own in zip(duals, figures, strict=True):
        _require_intercept(dual, own, claims.score_rounding, claimed)
    gap = max(total.primal - total.dual, 0.0)
    relative = gap / total.scale if total.scale > 0 else gap
    claim = f"stationary within {relative:.1g}; no bound, for the kernel may be no dot product"
    details: dict[str, Any] = {"violation": total.violation, "dual_objective": total.dual}
    found = Certificate(
        kind, total.primal, gap, total.scale, claimed.tolerance, details, claim if kind == "kkt" else ""
    )
    allowance = total.rounding + claimed.rounding
    return Recomputed(found, allowance, claimed.gap + 2.0 * total.rounding, ("duality gap", "kkt"))


def _duals(claims: Claims) -> Iterator[Dual]:
    """Go through the points of all SVMs."""
    given, coefficients = isinstance(claims.kernel, Precomputed), claims.coefficients()
    vectors: Any = None if given else claims.vectors.astype(np.float64)
    scores = np.zeros((claims.labels.size, claims.intercept.size))
    for part, rows in _row_blocks(claims.X, max(claims.support.size, claims.X.shape[1])):
        if claims.support.size:
            scores[part] = (rows[:, claims.support] if given else claims.kernel(rows, vectors)) @ coefficients
    lengths, entry = np.sqrt(np.abs(claims.kernel.diagonal(claims.X))), _entry_rounding(claims)
    for svm, (positive, negative) in enumerate(claims.sides()):
        there, signed = claims.rows_of(positive, negative), np.zeros(claims.labels.size)
        signed[claims.support] = coefficients[:, svm]
        y = np.where(claims.labels[there] == positive, 1.0, -1.0)
        b = float(claims.intercept[svm])
        error = entry * (lengths[there] * float(np.abs(signed) @ lengths) + abs(b) + 1.0)
        yield Dual(y, y * signed[there], claims.upper[there], scores[there, svm], b, error)


def _require_intercept(dual: Dual, found: Figures, score_rounding: float, claimed: Certificate) -> None:
    """Raise a CertificateError if b is neither that of the free rows nor, for an ended fit, of least loss."""
    v, free = dual.y - dual.s, (dual.alpha > 0) & (dual.alpha < dual.upper)
    ends = [end for end in dual.bounds() if math.isfinite(end)]
    expected = float(np.mean(v[free] if free.any() else ends or [0.0]))
    rounding, tol = 2.0 * (score_rounding + found.score_rounding), claimed.tolerance
    if abs(dual.b - expected) <= rounding:
        return
    # This SVM is short of the tolerance, or so near it that rounding may have told the solver so.
    ended = (
        found.violation > tol - rounding
        or found.primal - found.dual > 0.9 * tol * found.scale - found.rounding - claimed.rounding
    )
    if ended and not np.isinf(dual.upper).any():
        order = np.argsort(v, kind="stable")
        slope = np.cumsum(dual.upper[order]) - dual.upper[dual.y > 0].sum()
        more = dual.loss(dual.b) - dual.loss(float(v[order[np.searchsorted(slope, 0.0)]]))
        if more <= 2.0 * (found.rounding + claimed.rounding):
            return
    raise CertificateError(f"The intercept is {dual.b!r}, but these rows have {expected!r}. {REASONS}")


def _require_claims(claims: Claims, claimed: Certificate, found: Figures) -> None:
    """Raise a CertificateError if violation or scale are others than claimed, or a hard margin is none."""
    if math.isinf(found.primal) and math.isfinite(claimed.objective):
        raise CertificateError(f"Rows are on the wrong side of the hard margin. {REASONS}")
    # A violation is a difference of two scores, and either side has rounded both.
    if not found.violation <= claims.violation + 2.0 * (claims.score_rounding + found.score_rounding):
        raise CertificateError(
            f"The certificate says that no two rows violate optimality by more than {claims.violation:.3g}, "
            f"but on these data some do by {found.violation:.3g}. {REASONS}"
        )
    # That of a hard margin is its objective, else it is a sum of U.
    rounding = found.rounding + claimed.rounding if np.isinf(claims.upper).any() else 0.0
    if not abs(found.scale - claimed.scale) <= 1e-9 * found.scale + rounding:
        raise CertificateError(
            f"The certificate is relative to {claimed.scale!r}, these data have {found.scale!r}. {REASONS}"
        )


def _require_support(claims: Claims) -> None:
    known = np.repeat(np.arange(claims.n_support.size), claims.n_support)
    if known.size != claims.support.size or not np.array_equal(claims.labels[claims.support], known):
        raise CertificateError(f"The support vectors have other labels. {REASONS}")
    if np.any(claims.upper[claims.support] == 0):
        raise CertificateError(f"A support vector has weight 0. {REASONS}")


def _require_feasible(dual: Dual) -> None:
    excess = np.maximum(dual.alpha - dual.upper * (1.0 + 1e-10), -dual.alpha)
    if np.any(excess > 0):
        raise CertificateError(
            f"A dual coefficient is beyond its bounds by {float(excess.max()):.3g}. {REASONS}"
        )
    left = abs(float(dual.alpha @ dual.y))
    if not left <= 1e-9 * float(dual.alpha.sum()):
        raise CertificateError(f"The dual coefficients add up to {left:.3g} instead of 0. {REASONS}")


def _confirmed_kind(claims: Claims, claimed: Certificate) -> str:
    """Return the kind that was claimed; "kkt" for a bound on rows too many to look at."""
    if claimed.kind != "duality gap" or claims.kernel.definite:
        return claimed.kind
    # One against the rest, all SVMs have the same rows.
    groups = [claims.rows_of(*side) for side in claims.sides()[: None if claims.pairwise else 1]]
    if max(np.count_nonzero(there) for there in groups) > CHECKED_ROWS:
        return "kkt"
    for there in groups:
        _require_definite(claims, there)
    return claimed.kind


def _require_definite(claims: Claims, there: Array) -> None:
    """Raise a CertificateError if a c with sum c = 0 has c'K c < 0 on these rows, beyond rounding."""
    X = claims.X[there].astype(np.float64)
    gram = X[:, there] if isinstance(claims.kernel, Precomputed) else claims.kernel(X)
    gram = 0.5 * (gram + gram.T)
    rounding = _entry_rounding(claims) * float(np.abs(np.diagonal(gram)).sum())
    rounding += 64.0 * EPS * gram.shape[0] * float(np.abs(gram).max())
    means = gram.mean(axis=0)
    least = float(np.linalg.eigvalsh(gram - means - (means - means.mean())[:, None])[0])
    if least < -rounding:
        raise CertificateError(
            "The certificate claims a duality gap, but on these rows the kernel is not positive "
            f"semi-definite (an eigenvalue of its centred matrix is {least:.3g}): there is no such bound. "
            f"{REASONS}"
        )


def _entry_rounding(claims: Claims) -> float:
    return entry_rounding(claims.kernel, claims.X, claims.vectors)


def entry_rounding(kernel: Kernel, X: Any, vectors: Any) -> float:
    """Return how far a value between rows of X and vectors may be off, relative to sqrt(K(x, x) K(z, z))."""
    form = kernel.form
    if isinstance(kernel, Precomputed):
        return 16.0 * EPS
    # An error of the exponent is one of the value, relatively: gamma |x - z|^2 e^-(gamma |x - z|^2) < 1, but
    # |x - z|^2 comes from lengths.
    stretch = 1.0 if form is None or form.kind != "rbf" else 1.0 + form.gamma * _largest_length(X, vectors)
    degree = 1 if form is None else max(form.degree, 1)
    return EPS * (X.shape[1] + 16) * stretch * degree


def _largest_length(X: Any, vectors: Any) -> float:
    """Return the largest squared length of a row, as the kernel takes it: of dense rows, about a mean."""
    centre, factor = 0.0, 1.0
    if not hasattr(X, "toarray") and len(vectors):
        # About the mean of the vectors it is given; any two means of rows are within the diameter.
        centre, factor = vectors.mean(axis=0, dtype=np.float64), 4.0
    longest = 0.0
    for _, part in _row_blocks(X, X.shape[1]):
        about = (part.toarray() if hasattr(part, "toarray") else part) - centre
        longest = max(longest, float(np.einsum("ij,ij->i", about, about).max()))
    return factor * longest


def _row_blocks(X: Any, width: int) -> Iterator[tuple[slice, Any]]:
    step = max(ENTRIES // max(width, 1), 1)
    for start in range(0, X.shape[0], step):
        yield slice(start, start + step), X[start : start + step].astype(np.float64)
