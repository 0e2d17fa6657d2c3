"""``python -m benchmarks.scale.plain_reads FILE BYTES``: the least that fitting to a file can cost.

The columns are decoded once by pyarrow and written as rows to a scratch file; then as many bytes are read
from there as the passes of a fit touch, by two threads, and summed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from benchmarks.scale.made_table import COLUMNS, forget

PIECE = 1 << 20  # bytes that are read and summed at a time: they stay in the cache of a core
BATCH = 1 << 16  # rows
THREADS = 2


def decode(path: Path, scratch: BinaryIO) -> int:
    """Write the rows of a file to a scratch file and return how many bytes they take."""
    import pyarrow.dataset as ds

    X = np.empty((BATCH, len(COLUMNS)))
    for batch in ds.dataset(path).to_batches(columns=list(COLUMNS), batch_size=BATCH):
        for j, column in enumerate(batch.columns):
            X[: batch.num_rows, j] = column.to_numpy()
        scratch.write(X[: batch.num_rows])
    scratch.flush()
    return scratch.tell()


def read(scratch: BinaryIO, size: int, wanted: int) -> float:
    """Read so many bytes of a file of this size, again and again from the front; return their sum."""
    starts = [start % size for start in range(0, wanted, PIECE)]
    with ThreadPoolExecutor(THREADS) as threads:
        shares = threads.map(lambda first: _sum(scratch.fileno(), starts[first::THREADS]), range(THREADS))
        return sum(shares)


def _sum(file: int, starts: list[int]) -> float:
    room = np.empty(PIECE // 8)
    total = 0.0
    for start in starts:
        count = os.preadv(file, [room], start) // 8
        total += float(room[:count].sum())
    return total


def main(path: Path, wanted: int) -> dict[str, Any]:
    import pyarrow.dataset  # noqa: F401 - imports do not count

    forget(path)
    with tempfile.TemporaryFile(dir=path.parent) as scratch:
        start = time.perf_counter()
        size = decode(path, scratch)
        decoded = time.perf_counter()
        read(scratch, size, wanted)
        return {"decode": decoded - start, "read": time.perf_counter() - decoded, "bytes": size}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(float(sys.argv[2])))))
