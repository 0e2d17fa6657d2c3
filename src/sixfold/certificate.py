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
        What else the solver found out, for people to read: condition number, digits, rank.
    claim : str
        What is claimed where it is not a distance to the optimum.
    notes : tuple of str
        What else has to be known.
    rounding : float
        How far the solver's own sums may have moved the objective.
    """

    kind: str
    objective: float
    gap: float
    scale: float
    tolerance: float
    details: dict[str, Any] = field(default_factory=dict)
    claim: str = ""
    notes: tuple[str, ...] = ()
    rounding: float = 0.0
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
        found: Certificate = self.model._verify(self, X, y, sample_weight)
        return found

    def __str__(self) -> str:
        """Say in plain words what is certified."""
        if self.claim:
            claim = self.claim
        elif self.relative_gap <= 1e-15:
            claim = "optimal to machine precision"
        elif not math.isfinite(self.gap):
            claim = "no bound known"
        elif self.scale > 0:
            claim = f"within {self.relative_gap:.1g} of the optimum"
        else:
            claim = f"at most {self.gap:.1g} above the optimum"
        # Where none was asked for, the claim says all.
        short = not self.converged and not (self.claim and self.tolerance == 0)
        verdict = f", short of the {self.tolerance:g} asked for" if short else ""
        return "; ".join([f"{self.kind}: {claim}{verdict}", *self.notes])


def _plain(value: Any) -> Any:
    """Return the value as JSON knows it: arrays are lists, and what is not finite is None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
