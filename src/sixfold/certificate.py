"""A certificate: how far a fitted model is from the best one at most, and how to check it.

For a minimisation problem with objective R, a certificate states

    R(model) <= objective,   min R >= lower_bound,   gap = objective - lower_bound >= 0,

in exact arithmetic: ``objective`` and ``gap`` include what rounding may have done to the sums behind them
(``rounding``, its part of the gap), so the model is at most ``gap`` worse than any other, whatever the
solver did. The gap is judged against ``scale``, for most learners the objective of a model that has learnt
nothing: one that predicts a constant, or whose scores are all zero (``legend`` says which): ``converged``
means ``gap <= tolerance * scale``. A certificate of kind "kkt" says how far the conditions of optimality
are from holding, one of kind "stationary point" how steep the objective is there; both bound nothing.

It can be handed on: ``to_json`` writes it with its subject (learner, parameters, version, date, and a
fingerprint of the data), and ``Certificate.from_json(text).bind(model).verify(X, y)`` checks it elsewhere.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from numbers import Integral, Real
from typing import Any, Self

from sixfold.errors import CertificateError

CONSTANT_MODEL = "the objective of the model that predicts a constant (zero without intercept)"
NO_BOUND = ("kkt", "stationary point")  # kinds that do not speak of the optimum
MACHINE_PRECISION = 1e-12  # a relative gap below which one that rounding accounts for is none
PLAIN = (str, bool, int, type(None))  # joined by | at every call they would cost most of the time
CARD = (
    "border:1px solid #8886;border-radius:6px;padding:10px 14px;display:inline-block;max-width:44em;"
    "font-family:sans-serif;font-size:13px;line-height:1.5"
)


@dataclass(frozen=True)
class Subject:
    """What a certificate speaks of.

    Attributes
    ----------
    learner : str
        The name of the class.
    parameters : dict
        Its parameters as JSON knows them; what is not finite, and what is an object, as text.
    version : str
        That of sixfold.
    date : str
        When the fit ended, in UTC and ISO 8601.
    rows, columns : int
        Of the training table.
    fingerprint : str or None
        64 bits of X, y and the weights, whatever the order of the rows
        (:mod:`sixfold.data.fingerprint`).
    fingerprint_note : str
        Why there is none.
    relative_to : str
        What the scale of the certificate is.
    """

    learner: str
    parameters: dict[str, Any]
    version: str
    date: str
    rows: int
    columns: int
    fingerprint: str | None
    fingerprint_note: str = ""
    relative_to: str = CONSTANT_MODEL


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
        How much better than this model any other can be at most; of kind "kkt", how far the conditions of
        optimality are from holding, and of kind "stationary point" the slope.
    scale : float
        What gaps are judged against; ``subject.relative_to`` says what it is.
    tolerance : float
        The relative gap that was asked for.
    details : dict
        What else the solver found out, for people to read: condition number, digits, rank.
    claim : str
        What is claimed where it is not a distance to the optimum.
    notes : tuple of str
        What else has to be known.
    rounding : float
        The part of the gap that rounding may account for, in the objective and in the bound.
    unrestricted_bound : float or None
        What no model at all is below, where the gap compares with some models only; ``notes`` say with which.
    subject : Subject or None
        What it speaks of: learner, parameters, date, data. Two certificates are equal whatever it is.
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
    unrestricted_bound: float | None = None
    subject: Subject | None = field(default=None, repr=False, compare=False)
    model: Any = field(default=None, repr=False, compare=False)

    @property
    def lower_bound(self) -> float:
        """No model has an objective below this; minus infinity where no bound is known."""
        if self.unrestricted_bound is not None:
            return self.unrestricted_bound
        known = self.kind not in NO_BOUND and math.isfinite(self.gap)
        return self.objective - self.gap if known else -math.inf

    @property
    def relative_gap(self) -> float:
        """The gap as a fraction of the scale."""
        return self.gap / self.scale if self.scale > 0 else (0.0 if self.gap == 0 else math.inf)

    @property
    def converged(self) -> bool:
        """Whether the gap is within the tolerance, or as small as rounding allows."""
        return self.relative_gap <= self.tolerance or self._rounded_only

    @property
    def optimal_to_rounding(self) -> bool:
        """Whether nothing but rounding is left of the gap."""
        return self.relative_gap <= 1e-15 or self._rounded_only

    @property
    def _rounded_only(self) -> bool:
        """Whether rounding accounts for half of the gap or more, and that is next to nothing."""
        return 0.0 < self.gap <= 2.0 * self.rounding and self.relative_gap <= MACHINE_PRECISION

    @property
    def legend(self) -> str:
        """How to read the figures, in one sentence."""
        if self.scale == 0:
            figures = "The gap is in the units of the objective"
        else:
            relative_to = CONSTANT_MODEL if self.subject is None else self.subject.relative_to
            figures = f"The relative gap is the gap divided by {relative_to}"
        if self.kind == "kkt":
            figures += ", 0 where all conditions of optimality hold, and bounds nothing"
        if self.kind == "stationary point":
            figures += ", which is the slope: 0 where no small change gains anything, and bounds nothing"
        return f"{figures}; it speaks of the fit to these rows, not of the accuracy on new ones."

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as a dictionary that JSON can hold; what is infinite is None."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "model"}
        fields |= {
            "subject": None if self.subject is None else vars(self.subject),
            "lower_bound": self.lower_bound,
            "relative_gap": self.relative_gap,
            "converged": self.converged,
            "legend": self.legend,
        }
        return {name: plain_json(value) for name, value in fields.items()}

    def to_json(self) -> str:
        """Return the certificate as JSON, to be handed on and read by :meth:`from_json`.

        The fingerprint of the data is taken at the fit up to 1 MB; of larger tables the certificate that
        :meth:`verify` returns has it.
        """
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the certificate that was written by :meth:`to_json`, attached to no model.

        Raises
        ------
        CertificateError
            If the text is not one of those.
        """
        try:
            read = json.loads(text)
            given = {f.name: read[f.name] for f in dataclasses.fields(cls) if f.name != "model"}
            for name in ("objective", "gap", "scale", "tolerance", "rounding"):
                given[name] = math.inf if given[name] is None else float(given[name])
            given["notes"] = tuple(given["notes"])
            given["subject"] = None if given["subject"] is None else Subject(**given["subject"])
            return cls(**given)
        except (ValueError, TypeError, KeyError) as error:
            raise CertificateError(
                f"This is no certificate ({type(error).__name__}: {error}). Pass the text that "
                "`certificate_.to_json()` returned."
            ) from error

    def bind(self, model: Any) -> Self:
        """Return this certificate attached to the fitted model it speaks of."""
        return dataclasses.replace(self, model=model)

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
        """Recompute objective and bound from the data and the model's public attributes.

        The recomputation is plain float64 NumPy and shares no code with the solver. A search without targets
        needs no y.

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
                "This certificate is not attached to a model. Use `model.certificate_.verify(X, y)`; one "
                "that was read from JSON needs the fitted model: `certificate.bind(model).verify(X, y)`."
            )
        found: Certificate = self.model._verify(self, X, y, sample_weight)
        return found

    def __str__(self) -> str:
        """Say in plain words what is certified."""
        return "; ".join([f"{self.kind}: {self._claim_in_words()}", *self.notes])

    def _claim_in_words(self) -> str:
        if self.claim:
            claim = self.claim
        elif self.optimal_to_rounding:
            claim = "optimal to machine precision"
        elif not math.isfinite(self.gap):
            claim = "no bound known"
        elif self.scale > 0:
            claim = f"within {self.relative_gap:.1g} of the optimum"
        else:
            claim = f"at most {self.gap:.1g} above the optimum"
        # Where none was asked for, the claim says all.
        short = not self.converged and not (self.claim and self.tolerance == 0)
        return claim + (f", short of the {self.tolerance:g} asked for" if short else "")

    def _repr_html_(self) -> str:
        """Return the certificate as a card, for notebooks."""
        figures = {
            "objective": f"{self.objective:.10g}",
            "lower bound": f"{self.lower_bound:.10g}" if self.lower_bound > -math.inf else "none claimed",
            "gap": f"{self.gap:.3g}",
            "relative gap": f"{self.relative_gap:.3g}",
            "tolerance": f"{self.tolerance:g}",
            "converged": "yes" if self.converged else "no",
        }
        rows = "".join(
            f'<tr><td style="text-align:left;opacity:0.7">{name}</td>'
            f'<td style="text-align:right;font-family:monospace;padding-left:1.5em">{value}</td></tr>'
            for name, value in figures.items()
        )
        parts = [f"<b>{escape(self.kind)}</b>: {escape(self._claim_in_words())}"]
        parts += [f'<table style="margin:6px 0;font-size:inherit">{rows}</table>']
        parts += [f"<div>{escape(note)}</div>" for note in self.notes]
        parts += [f'<div style="margin-top:6px;opacity:0.7">{escape(self.legend)}</div>']
        return f'<div style="{CARD}">{"".join(parts)}</div>'


def join_certificates(parts: Sequence[Certificate], *notes: str) -> Certificate:
    """Return what is known of the sum of several objectives, each of which has a certificate.

    >>> one = Certificate("least squares", objective=2.0, gap=0.5, scale=4.0, tolerance=1e-6)
    >>> both = join_certificates([one, one])
    >>> both.objective, both.lower_bound, both.relative_gap
    (4.0, 3.0, 0.125)
    """
    kinds = {part.kind for part in parts}
    restricted = any(part.unrestricted_bound is not None for part in parts)
    known = [note for part in parts for note in part.notes]
    return dataclasses.replace(
        parts[0],
        kind=kinds.pop() if len(kinds) == 1 else "duality gap",
        objective=math.fsum(part.objective for part in parts),
        gap=math.fsum(part.gap for part in parts),
        scale=math.fsum(part.scale for part in parts),
        rounding=math.fsum(part.rounding for part in parts),
        unrestricted_bound=math.fsum(part.lower_bound for part in parts) if restricted else None,
        details={},
        notes=(*dict.fromkeys(known), *notes),
    )


def plain_parameter(value: Any) -> Any:
    """Return a parameter as JSON knows it: what is not finite is text, and so is an object (by its name)."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, Real):  # NumPy's long doubles as well
        number = int(value) if isinstance(value, Integral) else float(value)
        return number if math.isfinite(number) else repr(number)
    if hasattr(value, "tolist"):
        return plain_parameter(value.tolist())
    if isinstance(value, dict):
        return {str(key): plain_parameter(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_parameter(part) for part in value]
    # Without the address in memory that an object shows where it has no words of its own.
    return getattr(value, "__name__", None) or re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def plain_json(value: Any) -> Any:
    """Return a value as JSON knows it: arrays are lists, and what is not finite is None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
