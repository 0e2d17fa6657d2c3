"""The files of a table, and their rows as they come: Parquet, Arrow IPC and CSV, through pyarrow's datasets.

find_files    files, folders and globs, in order
open_files    their schema; files that have other columns are named
batches       some rows at a time, decoded by threads in the background
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sixfold.errors import InputError, MissingExtraError

ENDINGS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".csv": "csv",
}
BATCH = 1 << 16  # rows that are handed on at a time: 16 MB of 30 columns
AHEAD = 1  # batches decoded while one is worked on: with 4, 10 million rows took no less time, and 740 MB
CSV_BLOCK = 1 << 23  # bytes of text that are parsed at a time, and whose first ones decide the types


def arrow() -> Any:
    """Return pyarrow with its datasets; say what to install where it is not there."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.dataset
    except ImportError as error:
        raise MissingExtraError("Scanning files needs pyarrow: pip install 'sixfold[scan]'.") from error
    return pyarrow


@dataclass(frozen=True)
class FileRows:
    """Some consecutive rows of one file.

    Attributes
    ----------
    table : pyarrow.RecordBatch
    path : str
    first : int
        The number of the first row in its file.
    start : int
        The number of the first row in the whole table.
    """

    table: Any
    path: str
    first: int
    start: int

    def where(self, row: int) -> str:
        """Say where a row of these is, for messages."""
        return f"row {self.first + row}, counted from 0, of {self.path}"


def find_files(path: Any) -> list[str]:
    """Return the files that a path, a glob, a folder or a list of these stands for, in order.

    Files in folders whose names begin with a dot or an underscore are left out, as Spark and Arrow do.
    """
    if isinstance(path, str | os.PathLike):
        return _files_of(os.fspath(path))
    if not isinstance(path, Sequence) or not all(isinstance(one, str | os.PathLike) for one in path):
        raise InputError(
            f"path={path!r:.60} is no path. Pass the name of a file or folder, a glob, or a list of these."
        )
    if not path:
        raise InputError("path=[] names no file. Pass one at least.")
    return [file for one in path for file in _files_of(os.fspath(one))]


def _files_of(path: str) -> list[str]:
    if os.path.isdir(path):
        found = sorted(
            os.fspath(file)
            for file in Path(path).rglob("*")
            if file.is_file()
            and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        )
        if not found:
            raise InputError(f"The folder {path!r} holds no files. Write the table there first.")
        return found
    if os.path.exists(path):
        return [path]
    if glob.has_magic(path):
        found = sorted(file for file in glob.glob(path, recursive=True) if os.path.isfile(file))
        if found:
            return found
        raise InputError(f"No file is called like {path!r}. Check the pattern and the folder.")
    raise InputError(f"There is no file {path!r}. Check the name and the folder.")


def format_of(files: list[str]) -> str:
    """Return the format that the endings of files say, the same for all."""
    kinds: dict[str, str] = {}
    for file in files:
        ending = os.path.splitext(file.removesuffix(".gz"))[1].lower()
        if ending not in ENDINGS:
            raise InputError(
                f"{file!r} ends in {ending or 'nothing'!r}, and is taken for none of "
                f"{', '.join(sorted(ENDINGS))}. Rename it, or leave it out."
            )
        kinds.setdefault(ENDINGS[ending], file)
    if len(kinds) > 1:
        (one, first), (other, second) = list(kinds.items())[:2]
        raise InputError(f"{first!r} is {one} and {second!r} is {other}. Scan files of one format at a time.")
    return next(iter(kinds))


class FileSet:
    """Files of one format with the same columns.

    Attributes
    ----------
    files : list of str
    schema : pyarrow.Schema
        That of the first file.
    rows : int or None
        How many rows there are, where the files say so.
    """

    def __init__(self, path: Any) -> None:
        self.files = find_files(path)
        self._format = format_of(self.files)
        self._datasets = [self._opened(file) for file in self.files]
        self.schema = self._datasets[0].schema
        self.rows = sum(one.count_rows() for one in self._datasets) if self._format == "parquet" else None
        self.bytes = sum(os.path.getsize(file) for file in self.files)

    def _opened(self, file: str) -> Any:
        pa = arrow()
        kind: Any = self._format
        if kind == "csv":
            kind = pa.dataset.CsvFileFormat(read_options=pa.csv.ReadOptions(block_size=CSV_BLOCK))
        if os.path.getsize(file) == 0:
            raise InputError(f"{file!r} is empty: it has neither rows nor names of columns. Leave it out.")
        try:
            return pa.dataset.dataset(file, format=kind)
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(damaged(file, error)) from error

    def require_columns(self, names: list[str], numbers: list[str]) -> None:
        """Raise an :class:`InputError` for a column that a file lacks, or that holds text for numbers."""
        for file, one in zip(self.files, self._datasets, strict=True):
            for name in names:
                if one.schema.get_all_field_indices(name) == []:
                    raise InputError(
                        f"{file!r} has no column {name!r}, which {self.files[0]!r} has. All files must have "
                        "the columns of the table: name those to read in columns=, or leave the file out."
                    )
            for name in numbers:
                kind = one.schema.field(name).type
                if not is_number(kind):
                    raise InputError(
                        f"Column {name!r} of {file!r} holds {kind}, and numbers in {self.files[0]!r}. Mend "
                        "the file, or leave the column out."
                    )

    def batches(self, names: list[str]) -> Iterator[FileRows]:
        """Go through the rows in order, some at a time, with the columns that are named."""
        pa = arrow()
        options = None
        if self._format == "parquet":
            # What is read ahead of whole row groups would count as memory of the process.
            options = pa.dataset.ParquetFragmentScanOptions(pre_buffer=False)
        start = 0
        for file, one in zip(self.files, self._datasets, strict=True):
            first = 0
            try:
                for table in one.to_batches(
                    columns=names,
                    batch_size=BATCH,
                    batch_readahead=AHEAD,
                    fragment_readahead=1,
                    fragment_scan_options=options,
                ):
                    yield FileRows(table, file, first, start)
                    first += table.num_rows
                    start += table.num_rows
            except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
                raise InputError(damaged(file, error, first)) from error
            finally:
                pa.default_memory_pool().release_unused()


def damaged(file: str, error: Exception, rows: int = 0) -> str:
    """Say which file cannot be read, and why."""
    after = f" after {rows} rows" if rows else ""
    reason = str(error).splitlines()[0].rstrip(".")
    return f"{file!r} cannot be read{after}: {reason}. Is it complete? Write it anew, or leave it out."


def is_number(kind: Any) -> bool:
    """Return whether an Arrow type is one of numbers or of yes and no."""
    types = arrow().types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is one of text, as it is or as numbers of a dictionary."""
    types = arrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or getattr(types, "is_string_view", lambda _: False)(kind)
    )
