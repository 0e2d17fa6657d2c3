"""Tables in several files, or too large for memory: the rows of all files, some at a time.

``DATA`` is a file, a folder, or a glob. All files must have the same columns, and values of the same sort in
each: which file, and which column, is said where they do not.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sixfold.data.columns.schema import TableSchema
from sixfold.data.files.tables import EXAMPLE, TableFileError, table_batches
from sixfold.data.scan.files import find_files
from sixfold.data.scan.table import LEAST_LIMIT
from sixfold.errors import InputError, UsageError

ROWS = 100_000  # at a time: 24 MB for thirty columns of numbers
UNITS = {"": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def is_several(data: str) -> bool:
    """Return whether this names a folder, or a glob, rather than a file."""
    if data == "-" or data.startswith(EXAMPLE):
        return False
    path = os.path.expanduser(data)
    return os.path.isdir(path) or (not os.path.exists(path) and glob.has_magic(path))


def data_files(data: str) -> list[str]:
    """Return the files that are meant, in order; a :class:`UsageError` where there is none."""
    if not is_several(data):
        return [data]
    try:
        return find_files(os.path.expanduser(data))
    except InputError as error:
        raise UsageError(str(error)) from error


def plain_name(data: str) -> str:
    """Return what to call the table in several files.

    >>> plain_name("sales/2024-*.parquet"), plain_name("sales/"), plain_name("*.csv")
    ('2024', 'sales', 'table')
    """
    name = re.split(r"[*?\[]", Path(data).name)[0] or re.split(r"[*?\[]", Path(data).parent.name)[0]
    return Path(name).stem.strip(" -_.") or "table"


def bytes_of(size: str | None) -> float | None:
    """Return a size such as 2GB in bytes; None stays None.

    >>> bytes_of("1.5GB"), bytes_of("500 mb"), bytes_of("300000000")
    (1500000000.0, 500000000.0, 300000000.0)
    """
    if size is None:
        return None
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?B?)\s*", size.upper())
    unit = "" if found is None else found[2].removesuffix("B")
    if found is None:
        raise UsageError(f"--memory-limit {size!r} is no size. Say it like 2GB or 500MB.")
    limit = float(found[1]) * UNITS[f"{unit}B" if unit else ""]
    if limit < LEAST_LIMIT:
        raise UsageError(
            f"--memory-limit {size} is less than the program takes: {LEAST_LIMIT / 1e6:.0f}MB at least."
        )
    return limit


@dataclass(frozen=True)
class Piece:
    """Some rows of a file, raw.

    Attributes
    ----------
    frame : polars.DataFrame
    file : str
    first_row : int
        How many rows of the file came before.
    several : bool
        Whether there are other files.
    """

    frame: Any
    file: str
    first_row: int
    several: bool

    @contextmanager
    def named(self) -> Iterator[None]:
        """Name the file in errors of data, whose rows are counted in it."""
        try:
            yield
        except InputError as error:
            if not self.several:
                raise
            raise InputError(f"{self.file}: {error}") from error


def pieces(data: str, schema: TableSchema | None = None, rows: int = ROWS) -> Iterator[Piece]:
    """Go through the rows of all files; of files without rows, an empty piece.

    Parameters
    ----------
    data : str
    schema : TableSchema or None
        Whose columns are read, if it is known; else files must have the same ones.
    rows : int
        How many at a time.
    """
    files = data_files(data)
    first: dict[str, str | None] = {}
    for file in files:
        before = 0
        for frame in _batches(file, schema, rows, len(files) > 1):
            piece = Piece(frame, file, before, len(files) > 1)
            if piece.several and before == 0:
                first = _compared(piece, files[0], first, schema)
            yield piece
            before += frame.height


def _batches(file: str, schema: TableSchema | None, rows: int, several: bool) -> Iterator[Any]:
    """Go through the rows of a file; its folder is named too in errors where there are others."""
    try:
        yield from table_batches(file, schema, rows)
    except TableFileError as error:
        name = os.path.basename(file)
        if several and str(error).startswith(name):
            raise TableFileError(file + str(error).removeprefix(name)) from error
        raise


def _compared(piece: Piece, one: str, first: dict[str, str | None], schema: TableSchema | None) -> Any:
    """Return the sorts of the columns so far; refuse a file with other columns than the first, ``one``."""
    here = {column.name: _sort(column.dtype) for column in piece.frame.iter_columns()}
    if not first:
        return here
    if schema is not None:  # what it does not know is not read
        known = {column.name for column in schema.features}
        first = {name: sort for name, sort in first.items() if name in known}
        here = {name: sort for name, sort in here.items() if name in known}
    for name in first:
        if name not in here:
            raise InputError(
                f"{piece.file} has no column {name!r}, which {one} has. All files must have the same columns."
            )
    for name, sort in here.items():
        if name not in first:
            raise InputError(
                f"{piece.file} has a column {name!r}, which {one} does not have. All files must have the "
                "same columns."
            )
        if None not in (sort, first[name]) and sort != first[name]:
            raise InputError(
                f"Column {name!r} of {piece.file} holds {sort}, and {first[name]} in {one}. Write the files "
                "alike."
            )
    return {name: first[name] or here[name] for name in first}


def _sort(dtype: Any) -> str | None:
    """Return what a type holds, None where it says nothing."""
    import polars as pl

    if dtype == pl.Null:
        return None
    if dtype.is_numeric():
        return "numbers"
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return "text"
    if dtype == pl.Boolean:
        return "True and False"
    return "dates" if dtype in (pl.Date, pl.Datetime) else str(dtype.base_type())
