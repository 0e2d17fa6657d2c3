"""A scan in pieces that the workers of a cluster read by themselves: some row groups of a file, or all of it.

What goes to a worker is the name of a file and the numbers of row groups; rows are read where they stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sixfold.data.scan.files import FileRows, FileSet, arrow, damaged
from sixfold.data.scan.table import Portion, Scan, ScanRows, first_gap, values_of
from sixfold.errors import InputError

PIECE = 1 << 19  # rows, about, of which row groups are put together
TARGET, WEIGHT = "target of the scan", "weight of the scan"  # no column of an encoder is called so


@dataclass(frozen=True)
class Piece:
    """Some rows of a file, from the row ``first`` on; all of them where no row groups are named."""

    file: str
    groups: tuple[int, ...] = ()
    first: int = 0


def pieces_of(table: Scan) -> list[Piece]:
    """Return the pieces of a scan, in the order of its rows."""
    return [piece for file in table.files for piece in _pieces_of_file(file)]


def _pieces_of_file(file: str) -> list[Piece]:
    if not file.lower().endswith((".parquet", ".pq")):
        return [Piece(file)]
    import pyarrow.parquet

    try:
        known = pyarrow.parquet.read_metadata(file)
    except (arrow().ArrowInvalid, OSError) as error:
        raise InputError(damaged(file, error)) from error
    found: list[Piece] = []
    groups: tuple[int, ...] = ()
    first = rows = 0
    for number in range(known.num_row_groups):
        if rows - first >= PIECE:
            found.append(Piece(file, groups, first))
            groups, first = (), rows
        groups += (number,)
        rows += known.row_group(number).num_rows
    return [*found, Piece(file, groups, first)]


class PieceReader:
    """Reads a piece as a pandas data frame: numbers, and target and weight as they are."""

    def __init__(self, table: Scan) -> None:
        self.columns, self.encoder, self.names = table.columns, table.encoder, table.names()
        self.dtype = table.dtype()
        special = {TARGET: table.target, WEIGHT: table.weight}
        self.special = {called: name for called, name in special.items() if name is not None}

    def __call__(self, piece: Piece) -> Any:
        """Return the rows of a piece, all of them complete."""
        import pandas as pd

        try:
            read = self._read(piece, [*self.columns, *self.special.values()])
        except (arrow().ArrowInvalid, OSError) as error:
            raise InputError(damaged(piece.file, error)) from error
        rows = FileRows(read, piece.file, piece.first, piece.first)
        X = self._numbers(read)
        gap = first_gap(Portion(ScanRows(X, self.names), None, None, rows), None)
        if gap is not None:
            gap.refuse()
        found = pd.DataFrame(X, columns=self.names)
        for called, name in self.special.items():
            found[called] = values_of(rows, name, "target" if called == TARGET else "weight")
        return found

    def _read(self, piece: Piece, wanted: list[str]) -> Any:
        if piece.groups:
            import pyarrow.parquet

            with pyarrow.parquet.ParquetFile(piece.file) as file:
                return file.read_row_groups(list(piece.groups), columns=wanted)
        files = FileSet(piece.file)
        batches = [rows.table for rows in files.batches(wanted)]
        if not batches:
            return files.schema.empty_table().select(wanted)
        return arrow().Table.from_batches(batches)

    def _numbers(self, read: Any) -> Any:
        X = np.empty((read.num_rows, len(self.names)), dtype=self.dtype)
        if self.encoder is not None:
            X[:] = self.encoder.transform(read.select(self.columns)) if read.num_rows else X
            return X
        for j, name in enumerate(self.columns):
            number = arrow().compute.cast(read.column(name), arrow().float64(), safe=False)
            X[:, j] = number.to_numpy(zero_copy_only=False)
        return X
