"""A scan in pieces that the workers of a cluster read by themselves: some row groups of a file, or all of it.

What goes to a worker is the name of a file and the numbers of row groups; rows are read where they stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sixfold.data.scan.files import FileSet, arrow
from sixfold.data.scan.table import Scan

PIECE = 1 << 19  # rows, about, of which row groups are put together
TARGET, WEIGHT = "target of the scan", "weight of the scan"  # no column of an encoder is called so


@dataclass(frozen=True)
class Piece:
    """Some rows of a file; all of them where no row groups are named."""

    file: str
    groups: tuple[int, ...] = ()


def pieces_of(table: Scan) -> list[Piece]:
    """Return the pieces of a scan, in the order of its rows."""
    return [piece for file in table.files for piece in _pieces_of_file(file)]


def _pieces_of_file(file: str) -> list[Piece]:
    if not file.lower().endswith((".parquet", ".pq")):
        return [Piece(file)]
    import pyarrow.parquet

    known = pyarrow.parquet.read_metadata(file)
    found: list[list[int]] = [[]]
    rows = 0
    for number in range(known.num_row_groups):
        if rows >= PIECE:
            found.append([])
            rows = 0
        found[-1].append(number)
        rows += known.row_group(number).num_rows
    return [Piece(file, tuple(groups)) for groups in found]


class PieceReader:
    """Reads a piece as a pandas data frame: numbers, and target and weight as they are."""

    def __init__(self, table: Scan) -> None:
        self.columns, self.encoder, self.names = table.columns, table.encoder, table.names()
        special = {TARGET: table.target, WEIGHT: table.weight}
        self.special = {called: name for called, name in special.items() if name is not None}

    def __call__(self, piece: Piece) -> Any:
        """Return the rows of a piece."""
        wanted = [*self.columns, *self.special.values()]
        if piece.groups:
            import pyarrow.parquet

            with pyarrow.parquet.ParquetFile(piece.file) as file:
                return self.frame(file.read_row_groups(list(piece.groups), columns=wanted))
        batches = [rows.table for rows in FileSet(piece.file).batches(wanted)]
        return self.frame(arrow().Table.from_batches(batches))

    def frame(self, read: Any) -> Any:
        """Return an Arrow table as a frame of numbers, with target and weight."""
        import pandas as pd

        X = np.empty((read.num_rows, len(self.names)))
        if self.encoder is not None:
            X[:] = self.encoder.transform(read.select(self.columns)) if read.num_rows else X
        else:
            for j, name in enumerate(self.columns):
                number = arrow().compute.cast(read.column(name), arrow().float64(), safe=False)
                X[:, j] = number.to_numpy(zero_copy_only=False)
        found = pd.DataFrame(X, columns=self.names)
        for called, name in self.special.items():
            column = read.column(name)
            plain = column.cast(column.type.value_type) if _is_dictionary(column) else column
            found[called] = plain.to_numpy(zero_copy_only=False)
        return found


def _is_dictionary(column: Any) -> bool:
    return bool(arrow().types.is_dictionary(column.type))
