"""Least squares: direct factorisation, conjugate gradients, and all ridge penalties at once."""
