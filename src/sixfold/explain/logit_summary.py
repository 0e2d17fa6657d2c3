"""What the coefficients of an unpenalised logistic regression are worth: standard errors, z, p, intervals.

The estimate is nearly normal around the truth with covariance I^-1, where I is the information in the rows,

    I = sum_i weight_i p_i (1 - p_i) z_i z_i',    z = (x, 1),    p = P(second class | x)

and with K classes, of which the first is the reference (its coefficients are taken as 0),

    I_cd = sum_i weight_i p_ic ([c = d] - p_id) z_i z_i',    c, d = 1 ... K - 1.

The weights count as repetitions of a row. Where columns D depend on the others K, x_D = C'x_K + c, only
beta = w_K + C w_D and b + c.w_D can be estimated, with the covariance of a fit without D. The shortest
coefficients, which the model has, are functions of these,

    w_D = (1 + C'C)^-1 C' beta,    w_K = beta - C w_D,    b = (b + c.w_D) - c.w_D

so they have standard errors too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from sixfold.data.blocks import Blocks
from sixfold.data.checks import column_names
from sixfold.errors import InputError
from sixfold.explain.summary import CoefficientTable, Summaries, check_confidence
from sixfold.risk.losses import softmax
from sixfold.risk.problem import normalized_weights, scores
from sixfold.risk.rank import ColumnSpace
from sixfold.solvers import base as solver
from sixfold.solvers.least_squares.moments import weighted_gram

Array = NDArray[Any]

DEPENDENT = (
    "Columns that depend on others have the shortest of all coefficients that predict the same, and the\n"
    "standard errors of these: of levels that add up to 1, for instance, how far each is from their mean."
)
MOST_PARAMETERS = 2000  # beyond, the information matrix takes more than 32 MB


@dataclass(frozen=True)
class Likelihood:
    """What a fit keeps for its summary: the information, and the likelihood with and without the columns."""

    information: Array  # of the columns that do not depend on others, and the intercept
    shortest: Array  # (beta, b + c.w_D) -> (w, b)
    rows: float
    fitted: float
    constant: float


@dataclass(frozen=True)
class LogitSummary(CoefficientTable):
    """Coefficients of one class against the first, with what they are worth.

    Attributes
    ----------
    title, names, coefficient, standard_error, p, low, high, confidence
        As in :class:`~sixfold.explain.summary.CoefficientTable`.
    z : ndarray
    rows : float
        The sum of the weights.
    log_likelihood, constant_log_likelihood : float
        Of the model, and of the frequencies of the classes alone.
    pseudo_r_squared : float
        McFadden's: 1 - log_likelihood / constant_log_likelihood.
    dependent : bool
        Whether columns depend on others, so that the coefficients are the shortest of many.
    """

    statistic: ClassVar[str] = "z"
    z: Array
    log_likelihood: float
    constant_log_likelihood: float
    pseudo_r_squared: float
    dependent: bool

    def _foot(self) -> list[str]:
        fit = (
            f"log-likelihood {self.log_likelihood:.6g} (constant model {self.constant_log_likelihood:.6g}), "
            f"pseudo R-squared {self.pseudo_r_squared:.4f}, {self.rows:g} rows"
        )
        return [fit, *[DEPENDENT] * self.dependent]


def measure_likelihood(
    w: Array, b: Array, blocks: Blocks, intercept: bool, flag: NDArray[np.int32], space: ColumnSpace
) -> Likelihood | None:
    """Return the information in the rows at a model; None where it would be too large.

    ``space`` says which columns depend on others.
    """
    free = max(w.shape[1] - 1, 1)
    d = w.shape[0] + intercept
    if free * d > MOST_PARAMETERS:
        return None
    information = np.zeros((free, d, free, d))
    fitted, totals = 0.0, np.zeros(w.shape[1] if w.shape[1] > 1 else 2)
    for block in blocks:
        score = scores(block, w, b)
        weight = (
            np.ones(score.shape[0]) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
        )
        if w.shape[1] == 1:
            second = block.y[:, 0] > 0
            log_p, own = _of_two_classes(np.where(second, score[:, 0], -score[:, 0]))
            fitted += float(weight @ log_p)
            totals += float(weight @ ~second), float(weight @ second)
            information[0, :, 0] += weighted_gram(block, weight * own, flag)[:d, :d]
            continue
        index, p = np.asarray(block.y[:, 0], dtype=np.intp), softmax(score)
        fitted += float(weight @ np.log(np.take_along_axis(p, index[:, None], axis=1)[:, 0]))
        totals += np.bincount(index, weights=weight, minlength=totals.size)
        for c in range(free):
            own = weight * p[:, c + 1] * (1.0 - p[:, c + 1])
            information[c, :, c] += weighted_gram(block, own, flag)[:d, :d]
            for k in range(c):
                # Native sums take the roots of the weights: none may be negative.
                gram = weighted_gram(block, weight * p[:, c + 1] * p[:, k + 1], flag)[:d, :d]
                information[c, :, k] -= gram
                information[k, :, c] -= gram
    share = totals / totals.sum() if intercept else np.full(totals.size, 1.0 / totals.size)
    constant = float(totals @ np.log(share))
    kept = np.append(space.kept, np.arange(w.shape[0], d))
    information = information[:, kept][:, :, :, kept].reshape(free * kept.size, free * kept.size)
    shortest = _shortest(space, blocks, intercept)
    return Likelihood(information, shortest, float(totals.sum()), fitted, constant)


def likelihood_of(known: solver.Likelihood, intercept: bool) -> Likelihood:
    """Return the same from what the solver knows."""
    second, same = known.second, np.eye(known.information.shape[0])
    each = second * math.log(second) + (1.0 - second) * math.log1p(-second) if intercept else -math.log(2.0)
    return Likelihood(known.information, same, known.weight, -known.loss, known.weight * each)


def _of_two_classes(margin: Array) -> tuple[Array, Array]:
    """Return log p and p (1 - p) of the class that leads the other by this margin, from one exponential."""
    e = np.exp(-np.abs(margin))
    over = 1.0 / (1.0 + e)
    return np.minimum(margin, 0.0) - np.log1p(e), e * over * over


def _shortest(space: ColumnSpace, blocks: Blocks, intercept: bool) -> Array:
    """Return the matrix that makes the shortest (w, b) of what can be estimated."""
    if space.dependent.size == 0:
        return np.eye(space.scale.size + intercept)
    C, some = space.combination, space.dependent.size
    of_dependent = np.linalg.solve(np.eye(some) + C.T @ C, C.T)
    result = np.zeros((space.scale.size + intercept, space.kept.size + intercept))
    result[space.dependent, : space.kept.size] = of_dependent
    result[space.kept, : space.kept.size] = np.eye(space.kept.size) - C @ of_dependent
    if intercept:
        mean = sum(block.X.T @ normalized_weights(block, blocks) for block in blocks)
        result[-1, :-1] = (mean[space.kept] @ C - mean[space.dependent]) @ of_dependent
        result[-1, -1] = 1.0
    return result


def summarise_logit(model: Any, confidence: float) -> Any:
    """Return the summary of a fitted, unpenalised logistic regression (a list for more than two classes)."""
    check_confidence(confidence)
    found: Likelihood | None = model.__dict__.get("_likelihood")
    if found is None and "_no_summary" in model.__dict__:
        raise InputError(f"{model._no_summary}, and there are no standard errors.")
    if found is None:
        raise InputError(
            "Standard errors exist for fits without penalty (C=inf) to the end, with at most "
            f"{MOST_PARAMETERS} coefficients. This model has penalty={model.penalty!r}, C={model.C!r} and "
            f"{model.coef_.size} coefficients."
        )
    w, b = model._parameters()
    if w.shape[1] > 1:
        w, b = w[:, 1:] - w[:, :1], b[1:] - b[:1]
    # Units of the columns must not decide what can be inverted.
    scale = np.sqrt(np.diag(found.information))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(found.information / np.outer(scale, scale))
    certain = values > 1e-13 * values[-1]
    open_ = np.abs(vectors[:, ~certain]).max(axis=1, initial=0.0) > 1e-6  # has a part on which no row depends
    half = (vectors[:, certain] / np.sqrt(values[certain]) / scale[:, None]).reshape(
        w.shape[1], -1, certain.sum()
    )
    error = np.sqrt(np.square(found.shortest @ half).sum(axis=2))
    error[open_.reshape(w.shape[1], -1) @ (found.shortest.T != 0.0)] = np.nan
    summaries = [_one(model, found, k, w[:, k], b[k], error[k], confidence) for k in range(w.shape[1])]
    return summaries[0] if len(summaries) == 1 else Summaries(summaries)


def _one(
    model: Any, found: Likelihood, k: int, w: Array, b: float, error: Array, confidence: float
) -> LogitSummary:
    names, coefficient = column_names(model, w.size), w
    if model.fit_intercept:  # z has its 1 last; the table has the intercept first
        names, coefficient, error = ["intercept", *names], np.r_[b, w], np.r_[error[-1], error[:-1]]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = coefficient / error
    half = error * ndtri(0.5 + 0.5 * confidence)
    labels = model.classes_.tolist()
    return LogitSummary(
        f"{labels[k + 1]!r} against {labels[0]!r}", names, coefficient, error, 2.0 * ndtr(-np.abs(z)),
        coefficient - half, coefficient + half, confidence, found.rows, z, found.fitted, found.constant,
        1.0 - found.fitted / found.constant, found.shortest.shape[0] > found.shortest.shape[1],
    )  # fmt: skip
