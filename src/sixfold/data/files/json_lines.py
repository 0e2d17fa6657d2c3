"""Tables in JSON: one object a line (JSON lines), or a list of objects.

The names of the columns are the keys of all objects; what an object lacks is missing.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

from sixfold.data.files.file_bytes import TableFileError, TextFile


def json_frames(file: TextFile) -> Iterator[Any]:
    """Give frames of the objects in a file, one for each block; their columns and types may differ."""
    import polars as pl

    _check_lines(file)
    for line, block in file.blocks():
        if not block.strip():
            continue
        try:
            frame = pl.read_ndjson(io.BytesIO(block), infer_schema_length=None)
            # A line of blanks is no row.
            lines = block.count(b"\n") + (not block.endswith(b"\n"))
            if frame.height != lines and frame.height != sum(map(bool, map(bytes.strip, block.split(b"\n")))):
                frame = _parse_by_python(block, line, file.name)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            frame = _parse_by_python(block, line, file.name)
        yield frame


def _parse_by_python(block: bytes, first_line: int, name: str) -> Any:
    """Return the objects of a block that Polars refuses; a line that is none is named in the error."""
    rows = []
    for number, text in enumerate(block.split(b"\n"), first_line):
        if not text.strip():
            continue
        try:
            value = json.loads(text, parse_constant=lambda _: None)
        except (ValueError, RecursionError) as error:
            raise TableFileError(f"{name}, line {number:,} is not JSON: {error}.") from None
        if not isinstance(value, dict):
            raise TableFileError(
                f'{name}, line {number:,} is not an object like {{"name": value, ...}}: each line is a row.'
            )
        rows.append(value)
    return frame_of(rows)


def frame_of(rows: list[dict[str, Any]]) -> Any:
    """Return objects as a frame; a column of different types is of text."""
    import polars as pl

    names = dict.fromkeys(key for row in rows for key in row)
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        try:
            columns.append(pl.Series(name, values, strict=True))
        except (TypeError, OverflowError, pl.exceptions.PolarsError):
            texts = [one if one is None or isinstance(one, str) else json.dumps(one) for one in values]
            columns.append(pl.Series(name, texts, pl.String))
    return pl.DataFrame(columns)


def read_json(file: TextFile) -> Any:
    """Return the table of a JSON file: lines, or a list of objects."""
    import polars as pl

    if file.head().lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        frame = _read_list(b"".join(block for _, block in file.blocks()), file.name)
    else:
        frames = list(json_frames(file))
        if not frames:
            raise TableFileError(f"{file.name} is empty: a table with rows is needed.")
        frame = frames[0] if len(frames) == 1 else concat_frames(frames, file.name)
    return pl.DataFrame(frame).rechunk()


def concat_frames(frames: list[Any], name: str) -> Any:
    """Return frames one below the other; what one lacks is missing, and types are made the same."""
    import polars as pl

    try:
        return pl.concat(frames, how="diagonal_relaxed", rechunk=False)
    except pl.exceptions.PolarsError as error:
        raise TableFileError(f"{name} has values in a column that cannot stand together: {error}.") from None


def _check_lines(file: TextFile) -> None:
    """Raise a :class:`TableFileError` for one object over several lines, which is no table."""
    for _, block in file.blocks():
        first, _, rest = block.strip().partition(b"\n")
        if first.rstrip().endswith(b"}") and rest:
            return
        try:
            value = json.loads(block)
        except ValueError:
            return
        if rest or (isinstance(value, dict) and any(isinstance(one, list | dict) for one in value.values())):
            raise TableFileError(
                f"{file.name} is one JSON object, not a table: give a list of objects, or one object a line."
            )
        return


def _read_list(text: bytes, name: str) -> Any:
    try:
        rows = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise TableFileError(f"{name} is not JSON: {error}.") from None
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise TableFileError(f"{name} is a JSON list, but not of objects: each row is {{name: value, ...}}.")
    return frame_of(rows)
