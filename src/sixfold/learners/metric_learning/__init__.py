"""Distances that are learnt from labelled rows, as transformers."""
