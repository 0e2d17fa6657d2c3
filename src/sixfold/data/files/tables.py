"""Tables from files, as written there: CSV, TSV, Parquet, Arrow, JSON lines, and built-in examples.

    read_table(source)      the whole table; plain numbers are numbers, all else of CSV and TSV is text
    table_batches(source)   the same rows, some at a time, so that memory does not grow with the file

The first bytes of a file say what it is; its ending helps where they do not. Delimited text: see csv_layout.
"""

from __future__ import annotations

import difflib
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sixfold.data.examples import load_example
from sixfold.data.files.csv_rows import CsvRows, read_rows
from sixfold.data.files.file_bytes import TableFileError, TextFile, check_known
from sixfold.data.files.json_lines import concat_frames, json_frames, read_json
from sixfold.data.files.typed_files import read_typed, typed_frames
from sixfold.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from sixfold.data.columns.schema import TableSchema

__all__ = ["EXAMPLE", "Table", "TableFileError", "read_table", "table_batches", "table_facts"]

EXAMPLE = "example:"
PACKED = (".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz")
JSON_ENDINGS = (".json", ".jsonl", ".ndjson", ".jsonlines")
BINARY = ("parquet", "arrow", "arrow stream")
NO_ROWS = "{} has names of columns, but no rows: there is nothing to read."
ENCODINGS = {"cp1252": "Windows-1252 (Latin-1)"}


@dataclass(frozen=True)
class Table:
    """A table as it was read.

    Attributes
    ----------
    frame : polars.DataFrame
        Columns of text where the file has no types and they are not plain numbers.
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
    """Return the table in a file, in standard input (``-``), or a built-in one (``example:iris``).

    >>> table = read_table("example:iris")
    >>> table.frame.shape, table.target
    ((150, 5), 'species')
    """
    _require_polars()
    given = str(source)
    if given.startswith(EXAMPLE):
        return _example_table(given)
    path, shown, ending = _local_file(given)
    kind = _kind(path, shown, ending)
    table = Table(None, _plain_name(shown), given, kind, bytes=path.stat().st_size)
    if kind in BINARY:
        frame = read_typed(path, shown, kind)
        return _finished(replace(table, frame=frame, format=kind.split()[0]), shown)
    text = TextFile(path, shown)
    if kind == "json lines":
        table = replace(table, frame=read_json(text))
    else:
        table = _read_delimited(table, text, ending)
    notes = table.notes
    if text.odd_line is not None:
        notes += (f"line {text.odd_line:,} is not UTF-8, so such lines were read as {ENCODINGS['cp1252']}",)
    return _finished(replace(table, encoding=text.encoding, notes=notes), shown)


def _require_polars() -> None:
    try:
        import polars  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "Tables are read by Polars, which is not there: pip install 'sixfold[app]'."
        ) from error


def _read_delimited(table: Table, text: TextFile, ending: str) -> Table:
    rows = CsvRows(text, ending)
    frame, missing = read_rows(rows)
    assert rows.layout is not None
    notes = list(rows.layout.notes)
    if rows.blank_rows:
        notes.append(f"{rows.blank_rows:,} blank row{'s' * (rows.blank_rows > 1)} passed over")
    if missing:
        listed = ", ".join(repr(one) for one in sorted(missing)[:5]) + (", ..." if len(missing) > 5 else "")
        notes.append(f"{listed} among numbers counted as missing")
    kind = "tsv" if rows.layout.delimiter == "\t" else "csv"
    return replace(table, frame=frame, format=kind, delimiter=rows.layout.delimiter, notes=tuple(notes))


def _finished(table: Table, shown: str) -> Table:
    """Return the table unless it has no rows or columns."""
    if table.frame.width == 0:
        raise TableFileError(f"{shown} has no columns.")
    if table.frame.height == 0:
        raise TableFileError(NO_ROWS.format(shown))
    return table


def _example_table(given: str) -> Table:
    import polars as pl

    example = load_example(given.removeprefix(EXAMPLE))
    columns: dict[str, Any] = {}
    for k, name in enumerate(example.columns):
        values = example.X[:, k].tolist()
        # "?" would be read as missing; here it is an answer.
        columns[name] = ["unknown" if one == "?" else one for one in values]
    columns[example.target] = example.y.tolist()
    name = example.name.replace(" ", "_")
    return Table(pl.DataFrame(columns), name, given, "example", target=example.target, about=example.about)


def _local_file(given: str) -> tuple[Path, str, str]:
    """Return a path that can be read, the name for messages, and the ending before that of compression."""
    if given == "-":
        return _standard_input(), "standard input", ""
    path = Path(given).expanduser()
    if path.is_dir():
        raise UsageError(f"{given} is a folder: name a file in it.")
    if not path.exists():
        raise UsageError(f"There is no file {given}.{_near(path)}")
    try:
        with open(path, "rb") as stream:
            stream.read(1)
    except OSError as error:
        raise TableFileError(f"{given} cannot be read: {error.strerror or error}.") from None
    name = path.name.lower()
    for packed in PACKED:
        name = name.removesuffix(packed)
    return path, path.name, Path(name).suffix


def _plain_name(shown: str) -> str:
    """Return the name of a file without its endings.

    >>> _plain_name("churn.v2.csv.gz")
    'churn.v2'
    """
    name = shown
    for packed in PACKED:
        name = name[: -len(packed)] if name.lower().endswith(packed) else name
    return Path(name).stem or shown


def _near(path: Path) -> str:
    """Return a suggestion of a file of nearly that name, or where to look."""
    folder = path.parent
    if not folder.is_dir():
        return f" Its folder {folder} is not there either."
    try:
        names = sorted(one.name for one in folder.iterdir())[:10_000]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    if near:
        return f" Did you mean {folder / near[0]}?"
    if path.stem and difflib.get_close_matches(path.stem, ["iris", "digits", "wine", "diabetes"], cutoff=0.8):
        return f" The built-in table is {EXAMPLE}{path.stem}."
    return " Check the name, and the folder it is in."


def _standard_input() -> Path:
    """Return standard input as a file, which is removed when the program ends."""
    global _KEPT  # noqa: PLW0603 - the file lives as long as this reference
    _KEPT = tempfile.NamedTemporaryFile(prefix="sixfold-")  # noqa: SIM115
    while chunk := sys.stdin.buffer.read(1 << 20):
        _KEPT.write(chunk)
    _KEPT.flush()
    return Path(_KEPT.name)


_KEPT: Any = None


def _kind(path: Path, shown: str, ending: str) -> str:
    """Return what a file holds: "parquet", "arrow", "arrow stream", "json lines" or "delimited"."""
    head = TextFile(path, shown).head()
    if not head.strip():
        raise TableFileError(f"{shown} is empty: a table with a header line and rows is needed.")
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1"):
        return "arrow"
    if head.startswith(b"\xff\xff\xff\xff") and head[6:8] == b"\x00\x00":
        return "arrow stream"
    check_known(head, shown)
    if ending in (".parquet", ".pq", ".arrow", ".feather", ".ipc"):
        what = "a Parquet" if ending in (".parquet", ".pq") else "an Arrow"
        raise TableFileError(
            f"{shown} is not {what} file, as its name says: it is damaged, or of another kind."
        )
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if ending in JSON_ENDINGS or start.startswith((b'{"', b"{ ", b"{\n", b"{\r", b"[{", b"{}")):
        return "json lines"
    return "delimited"


def table_facts(source: str | Path) -> Table:
    """Return what is known of a file before its rows are read; the frame of its table is None.

    >>> table_facts("example:iris").target
    'species'
    """
    given = str(source)
    if given.startswith(EXAMPLE):
        return replace(_example_table(given), frame=None)
    path, shown, ending = _local_file(given)
    kind = _kind(path, shown, ending)
    kind = (
        ("tsv" if ending in (".tsv", ".tab") else "csv") if kind == "delimited" else kind.split(" stream")[0]
    )
    return Table(None, _plain_name(shown), given, kind, bytes=path.stat().st_size)


def table_batches(
    source: str | Path, schema: TableSchema | None = None, rows: int = 100_000
) -> Iterator[Any]:
    """Give the rows of a file as raw frames of so many rows, never all at once; without rows, an empty one.

    Parameters
    ----------
    source : str or Path
    schema : TableSchema or None
        Where objects in JSON lines lack a key, its column is added, with missing values.
    rows : int

    >>> [frame.height for frame in table_batches("example:iris", rows=100)]
    [100, 50]
    """
    _require_polars()
    given = str(source)
    if given.startswith(EXAMPLE):
        yield from read_table(given).frame.iter_slices(rows)
        return
    path, shown, ending = _local_file(given)
    kind = _kind(path, shown, ending)
    seen = False
    for frame in _regrouped(_frames(path, shown, ending, kind, schema, rows), rows):
        seen = True
        yield frame
    if not seen:
        yield _no_rows(path, shown, ending, kind)


def _no_rows(path: Path, shown: str, ending: str, kind: str) -> Any:
    """Return the columns of a file that has no rows."""
    import polars as pl

    if kind in BINARY:
        return read_typed(path, shown, kind).head(0)
    if kind == "delimited":
        rows = CsvRows(TextFile(path, shown), ending)
        for _ in rows.frames():
            pass
        if rows.layout is not None:
            return pl.DataFrame(schema={name: pl.String for name in rows.layout.names if name is not None})
    raise TableFileError(NO_ROWS.format(shown))


def _frames(
    path: Path, shown: str, ending: str, kind: str, schema: TableSchema | None, rows: int
) -> Iterator[Any]:
    """Give the rows of a file as frames of any size."""
    if kind in BINARY:
        yield from typed_frames(path, shown, kind, rows)
    elif kind == "delimited":
        yield from CsvRows(TextFile(path, shown), ending).frames()
    elif TextFile(path, shown).head().lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        yield read_json(TextFile(path, shown))
    else:
        yield from _json_frames(TextFile(path, shown), schema)


def _json_frames(file: TextFile, schema: TableSchema | None) -> Iterator[Any]:
    import polars as pl

    wanted = [one.name for one in schema.features] if schema is not None else []
    for frame in json_frames(file):
        lost = [pl.lit(None, pl.String).alias(name) for name in wanted if name not in frame.columns]
        yield frame.with_columns(lost)


def _regrouped(frames: Iterator[Any], rows: int) -> Iterator[Any]:
    """Give the same rows in frames of exactly so many, the last one excepted."""
    held: list[Any] = []
    height = 0
    for frame in frames:
        held.append(frame)
        height += frame.height
        while height >= rows:
            whole = held[0] if len(held) == 1 else concat_frames(held, "The table")
            yield whole.head(rows)
            rest = whole.slice(rows)
            held, height = [rest], rest.height
    if height:
        yield held[0] if len(held) == 1 else concat_frames(held, "The table")
