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
    "stationary": "Not proven optimal: the objective may have better maxima, and no bound on them is known.",
    "kkt": "Not proven optimal: no bound on how much better another model could be is known.",
}
PERFECT_TREE = "Proven optimal: no tree fits the training rows better."
LOOKAHEAD_TREE = "Every split begins the best two levels of its node; a better tree is not ruled out."
BEST_TREE = "Proven optimal: no other tree of this size fits the training rows better."


def in_plain_words(certificate: Certificate | None) -> str:
    """Return one sentence on how good the fit to the training rows is known to be.

    >>> in_plain_words(Certificate("duality gap", objective=0.5, gap=0.0, scale=1.0, tolerance=1e-4))
    'Proven optimal: no other model of this kind fits the training rows better.'
    """
    if certificate is None:
        return "Nothing is claimed: this model is not the solution of a problem."
    for word, said in OTHER_CLAIMS.items():
        if word in certificate.kind:
            return _of_tree(certificate) if word == "tree" else said
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


def _of_tree(certificate: Certificate) -> str:
    """Say what is known of a tree that was grown split by split, or searched for as a whole."""
    searched = certificate.kind == "optimal tree"
    if certificate.gap == 0:
        return BEST_TREE if searched else PERFECT_TREE
    if not searched:
        return LOOKAHEAD_TREE if certificate.kind == "lookahead tree" else OTHER_CLAIMS["tree"]
    if certificate.lower_bound <= 0:
        return "Not proven optimal: no bound on how much better another tree could be is known."
    most = math.ceil(1e3 * certificate.gap / certificate.lower_bound - 1e-6) / 10
    return f"Proven: within {most:g}% of the best tree of the size that was searched for."


def _share(certificate: Certificate) -> str:
    """Return the gap as a share of what it is judged against."""
    share = certificate.relative_gap
    if certificate.scale <= 0 or not math.isfinite(share):
        return f"{certificate.gap:.1g} in its objective"
    return f"{share:.1%} of its objective" if share >= SMALL else f"{share:.0e} of its objective"
