"""Solvers of rows that can only be reduced: d numbers or d x d come back from a pass, and no row."""
