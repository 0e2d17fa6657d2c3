"""The tables of the scale benchmarks, Parquet files of any number of rows, made in bounded memory.

30 columns of float64, correlated with their neighbours and of unequal spread, a label of two classes and a
number to predict, both from one noisy linear score:

    x_j = s_j (z_j + z_{j-1} / 2),    s_j from 1/2 to 2,    z standard normal
    label = [w.x + logistic noise > 0],    amount = w.x + normal noise

Each row group has a seed of its own, so a table is the beginning of every longer one.

    python -m benchmarks.scale.made_table 1e6
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.scale.warm_memory import warm

Array = NDArray[Any]

FOLDER = Path(__file__).parents[2] / "build" / "scale"
COLUMNS = tuple(f"x{j:02d}" for j in range(30))
LABEL, AMOUNT = "label", "amount"
GROUP_ROWS = 131_072  # 31 MB of columns
QUERIES_SEED = 1


def table(rows: int, folder: Path = FOLDER) -> Path:
    """Return the file of so many rows, made where it is not there yet."""
    path = folder / f"{rows}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        _write(unfinished, rows)
        unfinished.replace(path)
    return path


def _write(path: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = [pa.field(name, pa.float64(), nullable=False) for name in (*COLUMNS, AMOUNT)]
    schema = pa.schema([*numbers, pa.field(LABEL, pa.int8(), nullable=False)])
    # A dictionary of values that are all different would only be thrown away again.
    with pq.ParquetWriter(path, schema, compression="snappy", use_dictionary=False) as file:
        for start in range(0, rows, GROUP_ROWS):
            X, label, amount = made_rows(start // GROUP_ROWS, min(GROUP_ROWS, rows - start))
            columns = [*np.ascontiguousarray(X.T), amount, label]
            file.write_table(pa.table(list(map(pa.array, columns)), schema=schema), row_group_size=GROUP_ROWS)


def made_rows(group: int, rows: int) -> tuple[Array, Array, Array]:
    """Return the first rows of a row group: the columns, the labels, the amounts."""
    random = np.random.default_rng([0, group])
    X = _correlated(random, rows)
    score = X @ weights()
    return X, (score + random.logistic(size=rows) > 0.0).astype(np.int8), score + random.normal(size=rows)


def queries(count: int = 1000) -> Array:
    """Return points of the same distribution that are in no table."""
    return _correlated(np.random.default_rng(QUERIES_SEED), count)


def weights() -> Array:
    """Return the weights of the score; that of one column in three is 0."""
    j = np.arange(len(COLUMNS))
    return np.where(j % 3 == 0, 0.0, 0.4 * np.cos(j))


def _correlated(random: np.random.Generator, rows: int) -> Array:
    Z = random.normal(size=(rows, len(COLUMNS)))
    return np.geomspace(0.5, 2.0, len(COLUMNS)) * (Z + 0.5 * np.roll(Z, 1, axis=1))


def forget(path: Path) -> None:
    """Have the system drop what it holds of a file in memory: the next read comes from the disk.

    There is memory then for the file and for its rows that the system need not fetch from elsewhere.
    """
    warm(2 * path.stat().st_size)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # what is not on the disk yet cannot be dropped
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    for text in sys.argv[1:]:
        print(table(int(float(text))))
