"""Rows of delimited text, block by block, and whole tables of them.

    block -> Polars -> a frame of text        every line must have as many fields as the header
    frames of text -> numbers where all values of a column are plain ones -> a table

Text takes 16 bytes and more for a value, a number 8: columns of numbers are typed block by block, so that a
table takes little more memory than its numbers. A column that turns out not to be of numbers is read again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.data.columns.missing_words import AMONG_VALUES
from sixfold.data.columns.text_kinds import table_customs
from sixfold.data.files.csv_layout import Layout, find_layout
from sixfold.data.files.file_bytes import TableFileError, TextFile

SMALL = 1 << 25
CODES = r"^-?0[0-9]|^\+"  # leading zeros make codes; a plus, telephone numbers


class CsvRows:
    """The rows of a file of delimited text.

    Attributes
    ----------
    layout : Layout
        Known when the first frame has been given.
    blank_rows : int
        Rows without any value between others, which were passed over.
    """

    def __init__(self, file: TextFile, ending: str) -> None:
        self.file, self.ending = file, ending
        self.layout: Layout | None = None
        self.blank_rows = self._blank_end = 0

    def frames(self) -> Iterator[Any]:
        """Give frames of text, one for each block of the file."""
        self.blank_rows = self._blank_end = 0
        empty_rows: list[Any] = []
        layout = None
        for first_line, block in self.file.blocks():
            data, line = block, first_line
            if layout is None:
                if not block.strip():
                    continue
                layout = self.layout = find_layout(block, self.ending, self.file.name)
                data, line = block[layout.start :], layout.line
            if not data:
                continue
            frame = parse_block(data, layout, line, self.file.name)
            yield from self._without_blank_rows(frame, empty_rows)
        if layout is None:
            raise TableFileError(f"{self.file.name} is empty: a table with a header line and rows is needed.")

    def _without_blank_rows(self, frame: Any, held: list[Any]) -> Iterator[Any]:
        """Give the frame without blank rows; those of one column are missing values, but not at the end."""
        import polars as pl

        blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
        last = (~blank).arg_true()
        keep = int(last[-1]) + 1 if last.len() else 0
        if frame.width > 1:
            if keep:
                self.blank_rows += self._blank_end + keep - last.len()
                yield frame.filter(~blank) if blank.any() else frame
            self._blank_end = frame.height - keep + (0 if keep else self._blank_end)
            return
        if keep:
            yield from held
            held.clear()
            yield frame.head(keep)
        held.append(frame.slice(keep))


def parse_block(block: bytes, layout: Layout, line: int, file: str) -> Any:
    """Return the rows of a block as text; lines of another width are a :class:`TableFileError`."""
    import polars as pl

    width = len(layout.names)
    header = layout.delimiter.join(f"c{k}" for k in range(width)).encode() + b"\n"
    options: dict[str, Any] = {"separator": layout.delimiter, "infer_schema": False}
    try:
        frame = pl.read_csv(header + block, **options)
    except pl.exceptions.PolarsError:
        return _named(_parse_odd_quotes(block, layout, line, file), layout, file)
    if frame.to_series(width - 1).null_count() and width > 1:
        plain = b'"' not in block and block.count(layout.delimiter.encode()) == frame.height * (width - 1)
        if not plain:
            clean = check_fields(block, layout, line, file)
            frame = frame if len(clean) == len(block) else pl.read_csv(header + clean, **options)
    return _named(frame, layout, file)


def _named(frame: Any, layout: Layout, file: str) -> Any:
    for k, name in enumerate(layout.names):
        if name is None and frame.to_series(k).drop_nulls().str.strip_chars().ne("").any():
            raise TableFileError(
                f"{file} has values in field {k + 1} of its lines, but no name for it in the header."
            )
    names = {f"c{k}": name for k, name in enumerate(layout.names) if name is not None}
    return frame.select(list(names)).rename(names)


def count_fields(block: bytes, delimiter: str) -> tuple[NDArray[Any], NDArray[Any]]:
    r"""Return where each record of a block ends, and how many fields it has.

    >>> count_fields(b'a,b\n"c,c",d,e\n', ",")[1]
    array([2, 3])
    """
    data = np.frombuffer(block, np.uint8)
    outside = np.cumsum(data == ord('"'), dtype=np.uint8) % 2 == 0
    ends = np.flatnonzero((data == ord("\n")) & outside)
    if not ends.size or ends[-1] != data.size - 1:
        ends = np.append(ends, data.size)
    marks = np.flatnonzero((data == ord(delimiter)) & outside)
    return ends, np.diff(np.searchsorted(marks, ends), prepend=0) + 1


def check_fields(block: bytes, layout: Layout, line: int, file: str) -> bytes:
    """Return the block without lines of blanks; a :class:`TableFileError` names a line of another width."""
    width = len(layout.names)
    ends, counts = count_fields(block, layout.delimiter)
    starts = np.append(0, ends[:-1] + 1)
    blanks = []
    for k in np.flatnonzero(counts != width):
        record = block[starts[k] : ends[k]]
        if record.strip():
            number = line + block.count(b"\n", 0, int(starts[k]))
            raise TableFileError(_ragged(record, number, int(counts[k]), width, layout, file))
        if record.strip(b"\r"):
            blanks.append(k)
    if not blanks:
        return block
    keep = np.delete(np.arange(ends.size), blanks)
    return b"".join(block[starts[k] : ends[k] + 1] for k in keep)


def _ragged(record: bytes, number: int, found: int, width: int, layout: Layout, file: str) -> str:
    lines = record.count(b"\n")
    if lines > 50:
        return (
            f"{file}, line {number:,}: a quote opens a field that goes on over {lines:,} lines. Close it, or "
            'double a quote that is part of the text ("").'
        )
    more = "more" if found > width else "fewer"
    mark = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "vertical bar"}.get(
        layout.delimiter, layout.delimiter
    )
    hint = f' If a field holds a {mark}, put it between quotes ("...").' if found > width else ""
    fields = "field" if found == 1 else "fields"
    return f"{file}, line {number:,}: {found} {fields}, {more} than the {width} that the header names.{hint}"


def _parse_odd_quotes(block: bytes, layout: Layout, line: int, file: str) -> Any:
    """Return the rows of a block that Polars refuses; where quotes open and never close, they are text."""
    import polars as pl

    try:
        return _parse_by_python(block, layout, line, file)
    except TableFileError:
        unquoted = block.replace(b'"', b"'")  # of the same length, without any quote
        _, counts = count_fields(unquoted, layout.delimiter)
        if not (counts == len(layout.names)).all():
            raise
    header = layout.delimiter.join(f"c{k}" for k in range(len(layout.names))).encode() + b"\n"
    return pl.read_csv(header + block, separator=layout.delimiter, infer_schema=False, quote_char=None)


def _parse_by_python(block: bytes, layout: Layout, line: int, file: str) -> Any:
    """Return the rows of a block with quotes that Polars refuses, such as in ``5" pipe``."""
    import polars as pl

    width, rows = len(layout.names), []
    reader = csv.reader(io.StringIO(block.decode("utf-8", "replace"), newline=""), delimiter=layout.delimiter)
    start = line
    try:
        for row in reader:
            if row and row[-1].endswith("\n"):
                raise TableFileError(
                    f"{file}, line {start:,}: a quote opens a field that is never closed. Close it, or "
                    'double a quote that is part of the text ("").'
                )
            if len(row) != width and any(cell.strip() for cell in row):
                raise TableFileError(_ragged(b"", start, len(row), width, layout, file))
            if len(row) == width:
                rows.append([cell or None for cell in row])
            start = line + reader.line_num
    except csv.Error as error:
        raise TableFileError(f"{file}, line {start:,}: {error}.") from None
    return pl.DataFrame(rows, schema={f"c{k}": pl.String for k in range(width)}, orient="row")


class NumberColumns:
    """Columns of text that become numbers as long as all values are plain ones.

    Attributes
    ----------
    parts : dict of lists of polars.Series
        The blocks of each column.
    kinds : dict of str
        "whole", "number" or "text".
    words : dict of sets of str
        Words in each column that count as missing among numbers.
    """

    def __init__(self, head: Any) -> None:
        self.parts: dict[str, list[Any]] = {name: [] for name in head.columns}
        self.kinds = dict.fromkeys(head.columns, "whole")
        self.words: dict[str, set[str]] = {name: set() for name in head.columns}
        # Where commas mark decimals, a point marks thousands: such columns are left as text.
        self.points = not table_customs(head.head(20_000)).commas

    def add(self, frame: Any) -> None:
        """Take the next block."""
        import polars as pl

        asked = [name for name, kind in self.kinds.items() if kind != "text"]
        codes = frame.select(pl.col(asked).str.contains(CODES).any(ignore_nulls=True)).row(0) if asked else ()
        is_code = dict(zip(asked, codes, strict=True))
        wanted = {
            name: pl.Int64 if self.kinds[name] == "whole" else pl.Float64
            for name in asked
            if not is_code[name]
        }
        cast = frame.select(pl.col(name).cast(kind, strict=False) for name, kind in wanted.items())
        for name in frame.columns:
            text = frame[name]
            numbers = self._numbers(text, cast[name]) if name in wanted else None
            if numbers is None:
                self.kinds[name] = "text"
            # Words alone say nothing yet: another block may have numbers.
            if numbers is None or numbers.null_count() == numbers.len():
                numbers = text
            self.parts[name].append(numbers.rechunk())

    def _numbers(self, text: Any, cast: Any) -> Any:
        """Return the text as numbers, or None."""
        import polars as pl

        if cast.null_count() == text.null_count() and (cast.dtype == pl.Int64 or cast.is_finite().all()):
            return cast
        stripped = text.str.strip_chars()
        for kind in (pl.Int64, pl.Float64):
            if kind == pl.Float64 and not self.points:
                return None
            numbers = stripped.cast(kind, strict=False)
            if kind == pl.Float64:
                numbers = numbers.set(~numbers.is_finite(), None)
            odd = stripped.filter(numbers.is_null() & stripped.is_not_null()).unique()
            if (
                odd.str.to_lowercase().is_in(sorted(AMONG_VALUES)).all()
                and not stripped.str.contains(CODES).any()
            ):
                self.words[text.name] |= set(odd.to_list()) - {""}
                if kind == pl.Float64:
                    self.kinds[text.name] = "number"
                return numbers
        return None

    def mixed(self) -> list[str]:
        """Return the columns of text that began as numbers."""
        import polars as pl

        wrong = [name for name, kind in self.kinds.items() if kind == "text"]
        return [
            name for name in wrong if any(part.dtype != pl.String and part.len() for part in self.parts[name])
        ]

    def frame(self) -> Any:
        """Return the table, of one piece if it is small: the copy of a large one costs memory."""
        import polars as pl

        columns = []
        small = sum(part.estimated_size() for parts in self.parts.values() for part in parts) < SMALL
        for name in list(self.parts):
            parts = self.parts.pop(name)
            kind = {"whole": pl.Int64, "number": pl.Float64, "text": pl.String}[self.kinds[name]]
            if all(part.dtype == pl.String for part in parts):
                kind = pl.String  # no value says that it is a number
            if kind == pl.String:
                self.words[name] = set()
            columns.append(
                pl.concat([part.cast(kind, strict=False) for part in parts], rechunk=small).alias(name)
            )
        return pl.DataFrame(columns)


def read_rows(rows: CsvRows) -> tuple[Any, set[str]]:
    """Return the whole table, with numbers where columns are plain numbers, and missing words among them."""
    import polars as pl

    table: NumberColumns | None = None
    for frame in rows.frames():
        table = table or NumberColumns(frame)
        table.add(frame)
    if table is None:
        assert rows.layout is not None
        return pl.DataFrame({name: [] for name in rows.layout.names if name is not None}), set()
    again = table.mixed()
    if again:
        for name in again:
            table.parts[name] = []
        for frame in rows.frames():
            for name in again:
                table.parts[name].append(frame[name])
    frame = table.frame()
    return frame, set().union(*table.words.values())
