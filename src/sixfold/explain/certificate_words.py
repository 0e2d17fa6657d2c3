"""What a certificate proves, in one line of plain words: for those who never asked for a duality gap."""

from __future__ import annotations

import math

from sixfold.certificate import Certificate

SMALL = 1e-3  # a share of the scale that is spelt out as a percentage above it


def in_plain_words(certificate: Certificate | None) -> str:
    """Return one sentence on how good the fit to the training rows is known to be.

    >>> in_plain_words(Certificate("duality gap", objective=0.5, gap=0.0, scale=1.0, tolerance=1e-4))
    'Proven optimal: no other model of this kind fits the training rows better.'
    """
    if certificate is None:
        return "Nothing is claimed: this model is not the solution of a problem."
    kind = certificate.kind
    if kind == "exact search":
        return "Proven exact: the neighbours it finds are the nearest, as if every distance were computed."
    if "tree" in kind:
        return (
            "Every split is the best one of its node, which is checked; that no other tree is better is not "
            "claimed."
        )
    if kind == "kkt" or not math.isfinite(certificate.gap):
        return "Not proven optimal: no bound on how much better another model could be is known."
    if not certificate.converged:
        return (
            f"Not optimal: another model could be better by up to {_share(certificate)}; the fit was stopped "
            "before that was settled."
        )
    if certificate.relative_gap <= 1e-15 or certificate._rounded_only:
        return "Proven optimal: no other model of this kind fits the training rows better."
    return f"Proven: no other model of this kind fits the training rows better by more than {_share(certificate)}."


def _share(certificate: Certificate) -> str:
    """Return the gap as a share of what it is judged against."""
    share = certificate.relative_gap
    if certificate.scale <= 0 or not math.isfinite(share):
        return f"{certificate.gap:.1g} in its objective"
    return f"{share:.1%} of its objective" if share >= SMALL else f"{share:.0e} of its objective"
