"""What a certificate proves, in one line of plain words: for those who never asked for a duality gap."""

from __future__ import annotations

import math

from sixfold.certificate import Certificate

SMALL = 1e-3  # a share of the scale that is spelt out as a percentage above it
# By a word of the kind: what is claimed where it is not a distance to the optimum.
OTHER_CLAIMS = {
    "exact search": "Proven exact: the neighbours are the nearest, as if every distance were computed.",
    "tree": "Every split is the best one of its node, which is checked; a better tree is not ruled out.",
    "not separable": "Proven: no plane separates the classes, so mistakes on the training rows cannot end.",
    "separating plane": "Proven: the plane it found separates the classes of all training rows.",
    "kkt": "Not proven optimal: no bound on how much better another model could be is known.",
}
PERFECT_TREE = "Proven optimal: no tree fits the training rows better."


def in_plain_words(certificate: Certificate | None) -> str:
    """Return one sentence on how good the fit to the training rows is known to be.

    >>> in_plain_words(Certificate("duality gap", objective=0.5, gap=0.0, scale=1.0, tolerance=1e-4))
    'Proven optimal: no other model of this kind fits the training rows better.'
    """
    if certificate is None:
        return "Nothing is claimed: this model is not the solution of a problem."
    for word, said in OTHER_CLAIMS.items():
        if word in certificate.kind:
            return PERFECT_TREE if word == "tree" and certificate.gap == 0 else said
    if not math.isfinite(certificate.gap):
        return "Not proven optimal: no bound on how much better another model could be is known."
    if not certificate.converged:
        most = _share(certificate)
        return (
            f"Not optimal: another model could be better by up to {most}; it ended before that was settled."
        )
    if certificate.optimal_to_rounding:
        return "Proven optimal: no other model of this kind fits the training rows better."
    most = _share(certificate)
    return f"Proven: no other model of this kind fits the training rows better by more than {most}."


def _share(certificate: Certificate) -> str:
    """Return the gap as a share of what it is judged against."""
    share = certificate.relative_gap
    if certificate.scale <= 0 or not math.isfinite(share):
        return f"{certificate.gap:.1g} in its objective"
    return f"{share:.1%} of its objective" if share >= SMALL else f"{share:.0e} of its objective"
