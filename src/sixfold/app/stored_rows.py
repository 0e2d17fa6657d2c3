"""Rows of a table that may not fit in memory: typed piece by piece, and kept in a file that is mapped.

    files ─► pieces ─► a sample ─► the kinds of the columns
    files ─► pieces ─► typed rows ─► a file without a name ─► a frame whose pages the system reads when needed

The frame is one like others, so that everything works on it as on a table in memory.
"""

from __future__ import annotations

import errno
import mmap
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.many_files import Piece, pieces
from sixfold.data.columns.schema import TableSchema, infer_schema, known_values
from sixfold.data.files.json_lines import concat_frames
from sixfold.data.files.tables import table_facts
from sixfold.data.scan.files import arrow
from sixfold.errors import InputError

Array = NDArray[Any]

SAMPLE_CELLS = 6_000_000  # values that say what columns are: 200,000 rows of thirty columns
LEAST_SAMPLE = 5_000


@dataclass(frozen=True)
class KnownRows:
    """The rows of a table whose target is known.

    Attributes
    ----------
    X : polars.DataFrame
    y : ndarray
    dropped : int
        How many others there are.
    weight, groups : ndarray or None
    mapped : ndarray or None
        The bytes of the file that X is mapped from.
    """

    X: Any
    y: Array
    dropped: int
    weight: Array | None
    groups: Array | None
    mapped: Array | None = None


def known_rows(schema: TableSchema, frame: Any, first_row: int = 0, *, whole: bool = True) -> KnownRows:
    """Return the rows of a raw frame whose target is known, typed.

    Parameters
    ----------
    schema : TableSchema
    frame : polars.DataFrame
    first_row : int
        How many rows came before, for messages.
    whole : bool
        Whether these are all rows.
    """
    y = schema.target_values(frame, first_row)
    known = known_values(y)
    dropped = int(y.size - known.sum())
    if not schema.features:
        raise InputError(
            "No column is left to predict from: "
            + "; ".join(f"{one.name!r} was set aside ({one.reason})" for one in schema.set_aside[:5])
            + "."
        )
    y = y[known] if dropped else y
    try:
        X, weight, groups = _read(schema, frame.filter(known) if dropped else frame, first_row, whole)
    except InputError:
        if dropped:
            _read(schema, frame, first_row, whole)  # counts all rows in what it says
        raise
    return KnownRows(X, y if y.dtype.kind == "f" else y.astype(str), dropped, weight, groups)


def _read(
    schema: TableSchema, frame: Any, first_row: int, whole: bool
) -> tuple[Any, Array | None, Array | None]:
    """Return the features of a raw frame, its weights and its groups."""
    weight = schema.column_values(frame, "weight", first_row, whole=whole)
    return schema.typed(frame, first_row), weight, schema.column_values(frame, "group", first_row)


@dataclass
class RowSample:
    """Rows of a table that goes by, of which no more than so many are kept.

    Attributes
    ----------
    most : int
        How many, by the number of columns.
    columns : sequence of str
    rows : int
        That have gone by.
    share : float
        Of the rows after the first ones, how many are kept.
    first, others : list of polars.DataFrame
        The first half of them, and those drawn from the rest.
    random : numpy Generator
    """

    most: int = 0
    columns: Sequence[str] = ()
    rows: int = 0
    share: float = 1.0
    first: list[Any] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)
    random: Any = field(default_factory=lambda: np.random.default_rng(0))

    def add(self, frame: Any) -> None:
        """Look at some rows."""
        if not self.columns:
            self.columns = frame.columns
            self.most = max(LEAST_SAMPLE, SAMPLE_CELLS // max(frame.width, 1))
        room = max(self.most // 2 - self.rows, 0)
        self.rows += frame.height
        self.columns = list(dict.fromkeys([*self.columns, *frame.columns]))  # of JSON lines, later ones too
        frame = _plain(frame)
        self.first.append(frame.head(room))
        self.others.append(self._thinned(frame.slice(room), self.share))
        while sum(one.height for one in self.others) > self.most // 2:
            self.share /= 2
            self.others = [self._thinned(concat_frames(self.others, "The table"), 0.5)]

    def _thinned(self, frame: Any, share: float) -> Any:
        return frame if share == 1.0 else frame.filter(self.random.random(frame.height) < share)

    def schema(self, target: str, **options: Any) -> TableSchema:
        """Return what the columns are, as :func:`infer_schema` says of these rows."""
        sample = concat_frames([*self.first, *self.others], "The table")
        schema = infer_schema(sample, target, **options)
        if self.share == 1.0:
            return schema
        # Numbers that count the rows do so only where no row is left out.
        first = concat_frames([*self.first, sample.clear()], "The table")
        counting = {one.name: one for one in infer_schema(first, target, **options).columns}
        return TableSchema(
            tuple(
                counting[one.name]
                if one.role == "feature" and counting[one.name].reason.startswith("counts the rows")
                else one
                for one in schema.columns
            )
        )


def _plain(frame: Any) -> Any:
    """Return a frame with text for categories, whose codes differ between files."""
    import polars as pl

    texts = [one.name for one in frame.iter_columns() if one.dtype in (pl.Categorical, pl.Enum)]
    return frame.with_columns(pl.col(texts).cast(pl.String)) if texts else frame


def sampled_columns(data: str) -> RowSample:
    """Return a sample of the rows of all files."""
    sample = RowSample()
    for piece in pieces(data):
        sample.add(piece.frame)
    if sample.rows == 0:
        raise InputError(f"{data} has names of columns, but no rows: there is nothing to read.")
    return sample


def stored_rows(data: str, schema: TableSchema) -> KnownRows:
    """Return the rows of all files whose target is known, as a frame that is mapped from a file."""
    import polars as pl

    pa = arrow()
    writer, parts = None, []
    with tempfile.TemporaryFile(prefix="sixfold-") as file, _room():
        for piece in pieces(data, schema):
            part = _typed(schema, piece)
            parts.append(replace(part, X=None))
            typed = part.X.to_arrow(compat_level=pl.CompatLevel.newest())
            writer = writer or pa.ipc.new_file(file, typed.schema)
            writer.write_table(typed)
        if writer is None:
            raise InputError(f"{data} has no rows: there is nothing to read.")
        writer.close()
        file.flush()
        mapped = mmap.mmap(file.fileno(), 0)
    X = pl.from_arrow(pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapped))).read_all(), rechunk=False)
    weight = _joined([one.weight for one in parts])
    if weight is not None and weight.size and not weight.any():
        raise InputError("The column of weights has only weights of 0: at least one row must count.")
    return KnownRows(
        X,
        np.concatenate([one.y for one in parts]),
        sum(one.dropped for one in parts),
        weight,
        _joined([one.groups for one in parts]),
        np.frombuffer(mapped, dtype=np.uint8),
    )


@contextmanager
def _room() -> Iterator[None]:
    """Say where there is no space left."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise InputError(
            f"There is no space left in {tempfile.gettempdir()}, where the rows are kept, 8 bytes a number. "
            "Name another folder by the environment variable TMPDIR."
        ) from error


def _typed(schema: TableSchema, piece: Piece) -> KnownRows:
    import polars as pl

    frame = piece.frame
    used = [one.name for one in schema.columns if one.role in ("target", "weight", "group")]
    lost = [name for name in used if name not in frame.columns]
    if lost and table_facts(piece.file).format == "json lines":  # keys that these objects do not have
        frame = frame.with_columns(pl.lit(None, pl.String).alias(name) for name in lost)
    with piece.named():
        schema.check_columns(frame)
        return known_rows(schema, frame, piece.first_row, whole=False)


def _joined(parts: list[Array | None]) -> Array | None:
    there = [one for one in parts if one is not None]
    return np.concatenate(there) if there else None
