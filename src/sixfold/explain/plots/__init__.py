"""Figures of fits, searches and comparisons; the public names are in :mod:`sixfold.plot`."""
