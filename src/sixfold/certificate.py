"""A certificate: how far a fitted model is from the best one at most, and how to check it.

For a minimisation problem with objective R, a certificate states

    R(model) = objective,   min R >= lower_bound,   gap = objective - lower_bound >= 0,

so the model is at most ``gap`` worse than any other, whatever the solver did. The gap is judged
against ``scale``, the objective of the model that predicts a constant (zero without intercept):
``converged`` means ``gap <= tolerance * scale``.
"""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from typing import Any

from sixfold.errors import CertificateError

_REASONS = (
    "Either the data are not those of the fit, or the model was changed. If there were weights, "
    "pass the sample_weight of the fit."
)


@dataclass(frozen=True)
class Certificate:
    """A bound on the distance to the optimum, as plain data.

    Attributes
    ----------
    kind : str
        What is claimed and why, for instance ``"duality gap"`` or ``"least squares"``.
    objective : float
        The problem's objective at the model.
    gap : float
        How much better than this model any other can be at most.
    scale : float
        The objective of the constant model, against which gaps are judged.
    tolerance : float
        The relative gap that was asked for.
    details : dict
        What else the solver found out: condition number, digits, rank, why it stopped.
    """

    kind: str
    objective: float
    gap: float
    scale: float
    tolerance: float
    details: dict[str, Any] = field(default_factory=dict)
    model: Any = field(default=None, repr=False, compare=False)

    @property
    def lower_bound(self) -> float:
        """No model has an objective below this; minus infinity where no bound is known."""
        return self.objective - self.gap if math.isfinite(self.gap) else -math.inf

    @property
    def relative_gap(self) -> float:
        """The gap as a fraction of the constant model's objective."""
        return self.gap / self.scale if self.scale > 0 else (0.0 if self.gap == 0 else math.inf)

    @property
    def converged(self) -> bool:
        """Whether the gap is within the tolerance."""
        return self.relative_gap <= self.tolerance

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as a dictionary that JSON can hold; what is infinite is None."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "model"}
        fields |= {
            "lower_bound": self.lower_bound,
            "relative_gap": self.relative_gap,
            "converged": self.converged,
        }
        return {name: _plain(value) for name, value in fields.items()}

    def to_json(self) -> str:
        """Return the certificate as JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def bind(self, model: Any) -> Certificate:
        """Return this certificate attached to the fitted model it speaks of."""
        return dataclasses.replace(self, model=model)

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        """Recompute objective and bound from the data and the model's public attributes.

        The recomputation is plain float64 NumPy and shares no code with the solver.

        Returns
        -------
        Certificate
            The recomputed certificate.

        Raises
        ------
        CertificateError
            If the objective differs, or if the recomputed gap is larger than the certified one
            beyond rounding.
        """
        if self.model is None:
            raise CertificateError(
                "This certificate is not attached to a model. Use `model.certificate_.verify(X, y)`."
            )
        found: Certificate = self.model._recompute_certificate(X, y, sample_weight)
        # What rounding can do to the figures is part of the recomputation; a solver that did not sum over
        # the rows says itself how much it may be off.
        allowance = found.details["objective_rounding"] + self.details.get("objective_rounding", 0.0)
        reasons = " ".join([_REASONS, found.details["hint"]] if "hint" in found.details else [_REASONS])
        # Both may be infinite: a hard margin that was stopped before any plane separated the classes.
        same = found.objective == self.objective
        if not (same or abs(found.objective - self.objective) <= allowance):
            raise CertificateError(
                f"The certificate says the objective is {self.objective!r}, but on these data the "
                f"model has {found.objective!r}. {reasons}"
            )
        # A gap that is a square, e^2 with e rounded by r, is up to (e + r)^2 <= 2 e^2 + 2 r^2; one that is a
        # sum over rows says that it is linear. Rounding errors of the slope, eps times the residuals, are
        # stretched by the condition.
        claimed = self.gap if found.details.get("gap_is_linear", False) else 2.0 * self.gap
        stretched = (1e-15 * self.details.get("condition", 1.0)) ** 2 * self.objective
        if not found.gap <= claimed + found.details["gap_rounding"] + stretched:
            raise CertificateError(
                f"The certificate claims a gap of at most {self.gap:.3g}, but the recomputed "
                f"bound only supports {found.gap:.3g}. {reasons}"
            )
        return found

    def __str__(self) -> str:
        """Say in plain words what is certified."""
        if "claim" in self.details:
            claim = self.details["claim"]
        elif self.relative_gap <= 1e-15:
            claim = "optimal to machine precision"
        elif not math.isfinite(self.gap):
            claim = "no bound known"
        elif self.scale > 0:
            claim = f"within {self.relative_gap:.1g} of the optimum"
        else:
            claim = f"at most {self.gap:.1g} above the optimum"
        # Where none was asked for, the claim says all.
        short = not self.converged and not ("claim" in self.details and self.tolerance == 0)
        verdict = f", short of the {self.tolerance:g} asked for" if short else ""
        notes = self.details.get("notes", [])
        return "; ".join([f"{self.kind}: {claim}{verdict}", *notes])


def _plain(value: Any) -> Any:
    """Return the value as JSON knows it: arrays are lists, and what is not finite is None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
