"""The statistics of a linear regression: how sure each coefficient is.

For unpenalised least squares with n rows, p parameters and residual r:

    s^2 = sum_i w_i r_i^2 / (n - p)        covariance of the coefficients = s^2 (X' W X)^-1

    t = coefficient / standard error       p = P(|T_{n-p}| > |t|)

R-squared is 1 - (residual / total) sum of squares, about the mean if there is an intercept, else about zero.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from sixfold.data.checks import column_names
from sixfold.errors import InputError

Array = NDArray[Any]


@dataclass(frozen=True)
class Summary:
    """One target's coefficients with their uncertainties, as plain data.

    Attributes
    ----------
    names : list of str
        The parameters; "intercept" is first where there is one.
    coefficient, standard_error, t, p, low, high : ndarray
        One entry a parameter; ``low`` and ``high`` are the ends of the confidence interval.
    confidence : float
    rows, parameters, freedom : int
        Rows with weight, independent parameters, and their difference.
    r_squared, adjusted_r_squared, residual_deviation : float
    notes : list of str
    """

    names: list[str]
    coefficient: Array
    standard_error: Array
    t: Array
    p: Array
    low: Array
    high: Array
    confidence: float
    rows: int
    parameters: int
    freedom: int
    r_squared: float
    adjusted_r_squared: float
    residual_deviation: float
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python numbers and lists."""
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in asdict(self).items()}

    def __str__(self) -> str:
        """Return the table."""
        percent = f"{100 * self.confidence:g}%"
        header = ("coefficient", "std error", "t", "p", f"{percent} low", f"{percent} high")
        columns = (self.coefficient, self.standard_error, self.t, self.p, self.low, self.high)
        lines = coefficient_table(self.names, header, columns)
        foot = (
            f"R-squared {self.r_squared:.4f} (adjusted {self.adjusted_r_squared:.4f}), "
            f"residual deviation {self.residual_deviation:.5g} on {self.freedom} degrees of freedom"
        )
        return "\n".join([*lines, "", foot, *self.notes])


def coefficient_table(names: list[str], header: tuple[str, ...], columns: tuple[Array, ...]) -> list[str]:
    """Return the lines of a table with one row a coefficient; the column called "p" holds probabilities."""
    rows = [
        (name, *(_number(column[k], title == "p") for title, column in zip(header, columns, strict=True)))
        for k, name in enumerate(names)
    ]
    cells = [("", *header), *rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        )
        for row in cells
    ]
    return [lines[0], "-" * len(lines[0]), *lines[1:]]


def _number(value: float, probability: bool) -> str:
    if np.isnan(value):
        return "--"
    if probability:
        return "<0.001" if value < 0.001 else f"{value:.3f}"
    return f"{value:.5g}"


def summarise(model: Any, confidence: float) -> Any:
    """Return the summary of a fitted, unpenalised linear regression (a list for several targets)."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence={confidence!r} is outside 0 to 1. Use for instance 0.95.")
    if model._problem(1.0).penalised or model.positive or model._direct is None:
        raise InputError(
            "Standard errors exist for unpenalised least squares by the direct solver with more rows "
            "than columns. "
            f"This model has penalty={model.penalty!r}, positive={model.positive}, solver {model.solver_!r}."
        )
    w, b = model._parameters()
    summaries = [_one_target(model, k, w[:, k], b[k], confidence) for k in range(w.shape[1])]
    return summaries[0] if np.ndim(model.coef_) == 1 else summaries


def _one_target(model: Any, target: int, w: Array, b: float, confidence: float) -> Summary:
    factor, moments = model._direct.factor, model._direct.moments
    intercept = bool(model.fit_intercept)
    parameters = factor.rank + intercept
    freedom = moments.rows - parameters
    _, _, y2 = moments.second(intercept)
    square = float(model._direct.square[target])
    variance = square * moments.weight / freedom if freedom > 0 else np.nan
    spread = factor.inverse_diagonal() / moments.weight
    spread[_undetermined(factor)] = np.nan
    names, coefficient = column_names(model, w.size), w
    if intercept:
        mean = moments.mean[: w.size, None]
        of_mean = (1.0 + np.square(factor.half_solve(mean)).sum()) / moments.weight
        of_mean = np.nan if factor.dependent.size else of_mean
        names, coefficient, spread = ["intercept", *names], np.r_[b, w], np.r_[of_mean, spread]
    error = np.sqrt(variance * spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = coefficient / error
    p = 2.0 * stdtr(freedom, -np.abs(t)) if freedom > 0 else np.full_like(t, np.nan)
    half = error * stdtrit(freedom, 0.5 + 0.5 * confidence) if freedom > 0 else np.full_like(t, np.nan)
    r_squared = 1.0 - square / y2[target] if y2[target] > 0 else np.nan
    total_freedom = moments.rows - intercept
    adjusted = 1.0 - (1.0 - r_squared) * total_freedom / freedom if freedom > 0 else np.nan
    notes = []
    if factor.dependent.size:
        notes.append(
            "Columns that depend on others have no standard error: their coefficients are not unique."
        )
    return Summary(
        names, coefficient, error, t, p, coefficient - half, coefficient + half, confidence,
        moments.rows, parameters, freedom, r_squared, adjusted, float(np.sqrt(variance)), notes,
    )  # fmt: skip


def _undetermined(factor: Any) -> Array:
    """Return the columns whose coefficient the data leave open: dependent ones and what they depend on."""
    involved = np.any(factor.combination != 0, axis=1)
    return np.concatenate([factor.dependent, factor.kept[involved]])
