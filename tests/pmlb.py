"""Tables of the Penn Machine Learning Benchmarks that lie beside the project."""

import gzip
from pathlib import Path

import numpy as np

BESIDE = Path(__file__).parents[2] / "shared" / "data"
PATHS = {path.name.partition(".")[0]: path for path in sorted((BESIDE / "pmlb").glob("*.tsv.gz"))}
CLASSIFICATION = [name for name in PATHS if not name[0].isdigit()]  # those with a number predict a quantity


def load(name):
    """Return the columns and the classes (or the quantity) of a table; what is not known is NaN."""
    with gzip.open(PATHS[name], "rt") as file:
        names = file.readline().rstrip("\n").split("\t")
        table = np.genfromtxt(file, delimiter="\t", missing_values="NA")
    target = names.index("target")
    y = table[:, target]
    return np.delete(table, target, axis=1), y.astype(int) if name in CLASSIFICATION else y
