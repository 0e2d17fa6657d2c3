"""Tables from files, as written there: CSV, TSV, Parquet, Arrow, JSON lines, and built-in examples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sixfold.data.examples import load_example
from sixfold.errors import InputError

if TYPE_CHECKING:
    from sixfold.data.column_schema import TableSchema

EXAMPLE = "example:"


class TableFileError(InputError):
    """A file that cannot be read as a table."""


@dataclass(frozen=True)
class Table:
    """A table as it was read.

    Attributes
    ----------
    frame : polars.DataFrame
        Columns of text where the file has no types.
    name : str
        The name of the file without folder and endings.
    source : str
        As given.
    format : str
        "csv", "tsv", "parquet", "arrow", "json lines" or "example".
    encoding, delimiter : str
        Of a file of text.
    bytes : int
        Of the file.
    notes : tuple of str
        What had to be done to read it.
    target : str or None
        The column that an example is about.
    about : str
        One sentence on an example.
    """

    frame: Any
    name: str
    source: str
    format: str
    encoding: str = "utf-8"
    delimiter: str = ","
    bytes: int = 0
    notes: tuple[str, ...] = ()
    target: str | None = None
    about: str = ""


def read_table(source: str | Path) -> Table:
    """Return the table in a file, or a built-in one (``example:iris``)."""
    import polars as pl

    given = str(source)
    if given.startswith(EXAMPLE):
        example = load_example(given.removeprefix(EXAMPLE).replace("_", " "))
        columns = {name: example.X[:, k].tolist() for k, name in enumerate(example.columns)}
        frame = pl.DataFrame({**columns, "target": example.y.tolist()})
        name = given.removeprefix(EXAMPLE)
        return Table(frame, name, given, "example", target="target", about=example.about)
    path = Path(source)
    separator = "\t" if ".tsv" in path.name else ","
    frame = pl.read_csv(path, separator=separator)
    return Table(frame, path.name.split(".")[0], given, "csv", bytes=path.stat().st_size)


def table_batches(
    source: str | Path, schema: TableSchema | None = None, rows: int = 100_000
) -> Iterator[Any]:
    """Give the rows of a file as raw frames of so many rows, never all at once."""
    yield from read_table(source).frame.iter_slices(rows)
