"""Data sets of ConTree's own benchmark that lie beside the project; a line is a class and numbers."""

import gzip

import numpy as np

from tests.pmlb import BESIDE

PATHS = {path.name.partition(".")[0]: path for path in sorted((BESIDE / "contree").glob("*.txt.gz"))}


def load(name):
    """Return the columns and the classes, numbered from 0, of a table."""
    with gzip.open(PATHS[name], "rt") as file:
        table = np.loadtxt(file)
    return np.ascontiguousarray(table[:, 1:]), np.unique(table[:, 0], return_inverse=True)[1]
