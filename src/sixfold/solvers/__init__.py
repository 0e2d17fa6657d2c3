"""Solvers: each minimises a problem it declares it can, over row blocks, within a budget."""
