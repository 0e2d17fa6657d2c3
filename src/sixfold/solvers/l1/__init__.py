"""Penalties with absolute values: coordinate descent and proximal Newton on working sets of columns."""
