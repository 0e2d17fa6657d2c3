"""The claim of a linear model, checked with losses, penalties and bounds of its own."""

from sixfold.verify.linear.check import recompute
from sixfold.verify.linear.claim import LinearClaim

__all__ = ["LinearClaim", "recompute"]
