"""The statistics of a linear regression: how sure each coefficient is.

For unpenalised least squares with n rows, p parameters and residual r:

    s^2 = sum_i w_i r_i^2 / (n - p)        covariance of the coefficients = s^2 (X' W X)^-1

    t = coefficient / standard error       p = P(|T_{n-p}| > |t|)

R-squared is 1 - (residual / total) sum of squares, about the mean if there is an intercept, else about zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from sixfold.data.checks import column_names
from sixfold.errors import InputError

Array = NDArray[Any]


@dataclass(frozen=True)
class CoefficientTable(ABC):
    """Coefficients with their uncertainties, one line each, as text and as HTML.

    Attributes
    ----------
    title : str
        Which target or class, where there are several.
    names : list of str
        The parameters; "intercept" is first where there is one.
    coefficient, standard_error, p, low, high : ndarray
        One entry a name; ``low`` and ``high`` are the ends of the interval of the given ``confidence``.
    confidence : float
    rows : float
    """

    statistic: ClassVar[str]  # "t" or "z": the coefficient divided by its standard error
    title: str
    names: list[str]
    coefficient: Array
    standard_error: Array
    p: Array
    low: Array
    high: Array
    confidence: float
    rows: float

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python numbers and lists."""
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in asdict(self).items()}

    @abstractmethod
    def _foot(self) -> list[str]:
        """Return the lines below the table."""

    def _cells(self) -> list[list[str]]:
        """Return the header and one row a coefficient."""
        percent = f"{100 * self.confidence:g}%"
        header = ["coefficient", "std error", self.statistic, "p", f"{percent} low", f"{percent} high"]
        score = getattr(self, self.statistic)
        columns = (self.coefficient, self.standard_error, score, self.p, self.low, self.high)
        rows = [
            [name, *(_number(value, title == "p") for title, value in zip(header, values, strict=True))]
            for name, *values in zip(self.names, *columns, strict=True)
        ]
        return [["", *header], *rows]

    def __str__(self) -> str:
        """Return the table as text."""
        cells = self._cells()
        widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
        header, *lines = [
            "  ".join([name.ljust(widths[0]), *map(str.rjust, values, widths[1:])]) for name, *values in cells
        ]
        title = [self.title] * bool(self.title)
        return "\n".join([*title, header, "-" * len(header), *lines, "", *self._foot()])

    def _repr_html_(self) -> str:
        """Return the table as HTML, which notebooks show."""
        (_, *header), *rows = self._cells()
        head = "".join(f"<th>{escape(title)}</th>" for title in ["", *header])
        body = "".join(
            f"<tr><th>{escape(name)}</th>{''.join(f'<td>{escape(value)}</td>' for value in values)}</tr>"
            for name, *values in rows
        )
        caption = f"<caption>{escape(self.title)}</caption>" * bool(self.title)
        foot = "".join(f"<p>{escape(line)}</p>" for line in self._foot())
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{foot}"


class Summaries(list[Any]):
    """One summary a target or class."""

    def __str__(self) -> str:
        """Return the tables one below the other."""
        return "\n\n".join(map(str, self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(summary._repr_html_() for summary in self)


@dataclass(frozen=True)
class Summary(CoefficientTable):
    """One target's coefficients with their uncertainties, as plain data.

    Attributes
    ----------
    title, names, coefficient, standard_error, p, low, high, confidence
        As in :class:`CoefficientTable`.
    t : ndarray
    rows, parameters, freedom : int
        Rows with weight, independent parameters, and their difference.
    r_squared, adjusted_r_squared, residual_deviation : float
    notes : list of str
    """

    statistic: ClassVar[str] = "t"
    t: Array
    parameters: int
    freedom: int
    r_squared: float
    adjusted_r_squared: float
    residual_deviation: float
    notes: list[str]

    def _foot(self) -> list[str]:
        fit = (
            f"R-squared {self.r_squared:.4f} (adjusted {self.adjusted_r_squared:.4f}), "
            f"residual deviation {self.residual_deviation:.5g} on {self.freedom} degrees of freedom"
        )
        return [fit, *self.notes]


def check_confidence(confidence: float) -> None:
    """Raise an :class:`InputError` for a probability that is none."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence={confidence!r} is outside 0 to 1. Use for instance 0.95.")


def _number(value: float, probability: bool) -> str:
    if np.isnan(value):
        return "--"
    if probability:
        return "<0.001" if value < 0.001 else f"{value:.3f}"
    return f"{value:.5g}"


def summarise(model: Any, confidence: float) -> Any:
    """Return the summary of a fitted, unpenalised linear regression (a list for several targets)."""
    check_confidence(confidence)
    if model._problem(1.0).penalised or model.positive or model._direct is None:
        raise InputError(
            "Standard errors exist for unpenalised least squares by the direct solver with more rows "
            "than columns. "
            f"This model has penalty={model.penalty!r}, positive={model.positive}, solver {model.solver_!r}."
        )
    w, b = model._parameters()
    if np.ndim(model.coef_) == 1:
        return _one_target(model, 0, w[:, 0], b[0], confidence, "")
    return Summaries(
        _one_target(model, k, w[:, k], b[k], confidence, f"target {k}") for k in range(w.shape[1])
    )


def _one_target(model: Any, target: int, w: Array, b: float, confidence: float, title: str = "") -> Summary:
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
        title, names, coefficient, error, p, coefficient - half, coefficient + half, confidence, moments.rows,
        t, parameters, freedom, r_squared, adjusted, float(np.sqrt(variance)), notes,
    )  # fmt: skip


def _undetermined(factor: Any) -> Array:
    """Return the columns whose coefficient the data leave open: dependent ones and what they depend on."""
    involved = np.any(factor.combination != 0, axis=1)
    return np.concatenate([factor.dependent, factor.kept[involved]])
