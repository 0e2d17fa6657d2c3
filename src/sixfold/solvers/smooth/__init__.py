"""Losses with a curvature: Newton, Newton-CG, L-BFGS and the objectives they minimise."""
