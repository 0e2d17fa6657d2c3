"""What a checker finds, and when it contradicts the certificate.

    -objective_allowance <= objective claimed - objective found <= objective_allowance + overstated,
    gap found <= gap_allowance,     scale claimed <= scale_allowance,     kind claimed in kinds

A checker recomputes the figures from the data and the model's public attributes, and states as allowances
what rounding may have done to them, on its own side and on that of the solver.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sixfold.certificate import Certificate, join_certificates
from sixfold.errors import CertificateError

REASONS = (
    "Either the data are not those of the fit, or the model was changed. If there were weights, "
    "pass the sample_weight of the fit."
)


@dataclass(frozen=True)
class Recomputed:
    """A certificate from the data alone.

    Attributes
    ----------
    certificate : Certificate
    objective_allowance : float
        By how much the objective may differ from the one that is claimed.
    gap_allowance : float
        The largest gap that does not contradict the claim.
    kinds : tuple of str
        The kinds of certificates that the checker can confirm.
    hint : str
        What else may be the matter where they disagree.
    scale_allowance : float
        The largest scale to judge the gap by; infinite where it is not looked at.
    overstated : float
        By how much more the objective that is claimed, an upper bound, may be above the one that is found.
    """

    certificate: Certificate
    objective_allowance: float
    gap_allowance: float
    kinds: tuple[str, ...]
    hint: str = ""
    scale_allowance: float = math.inf
    overstated: float = 0.0

    def compare(self, claimed: Certificate) -> Certificate:
        """Return the recomputed certificate, or raise a :class:`CertificateError` where it is another."""
        found, reasons = self.certificate, f"{REASONS} {self.hint}".rstrip()
        if claimed.kind not in self.kinds:
            raise CertificateError(
                f"The certificate is of kind {claimed.kind!r}, but that of such a model is of kind "
                f"{' or '.join(map(repr, self.kinds))}. Pass the certificate of this model."
            )
        # Both may be infinite: a hard margin that was stopped before any plane separated the classes.
        same = found.objective == claimed.objective
        above = claimed.objective - found.objective
        if not (same or -self.objective_allowance <= above <= self.objective_allowance + self.overstated):
            raise CertificateError(
                f"The certificate says the objective is {claimed.objective!r}, but on these data the "
                f"model has {found.objective!r}. {reasons}"
            )
        restricted = found.unrestricted_bound is not None and claimed.unrestricted_bound is None
        if restricted and claimed.gap < claimed.objective:
            raise CertificateError(
                "The certificate claims a bound on all models, but some columns differ from combinations of "
                "others in their last digits only, and the bound does not hold for models that tell them "
                f"apart. {reasons}"
            )
        if claimed.lower_bound > max(found.lower_bound, claimed.objective - claimed.gap):
            raise CertificateError(
                f"The certificate claims that no model is below {claimed.lower_bound!r}, but "
                f"{found.lower_bound!r} is all that is known. {reasons}"
            )
        if not found.gap <= self.gap_allowance:
            raise CertificateError(
                f"The certificate claims a gap of at most {claimed.gap:.3g}, but the recomputed "
                f"bound only supports {found.gap:.3g}. {reasons}"
            )
        if not claimed.scale <= self.scale_allowance:
            raise CertificateError(
                f"The certificate judges its gap by a scale of {claimed.scale!r}, but on these data it is "
                f"{found.scale!r}. {reasons}"
            )
        return found


def join_recomputed(parts: Sequence[Recomputed]) -> Recomputed:
    """Return what is found of the sum of several objectives; allowances add up as they do."""
    return replace(
        parts[0],
        certificate=join_certificates([part.certificate for part in parts]),
        objective_allowance=math.fsum(part.objective_allowance for part in parts),
        gap_allowance=math.fsum(part.gap_allowance for part in parts),
        scale_allowance=math.fsum(part.scale_allowance for part in parts),
        overstated=math.fsum(part.overstated for part in parts),
    )
