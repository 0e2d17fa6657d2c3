"""How a file of delimited text is laid out: its delimiter, its header, where the rows begin.

::

    comments and blank lines, a title, "sep=;"   are passed over
    the delimiter                                is that of , ; tab | which gives lines equally many fields
    the header                                   is the first line that is left, unless it is all numbers
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mode

from sixfold.data.files.file_bytes import TableFileError

DELIMITERS = ",;\t|"
NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
RECORDS = 200  # to look at


@dataclass(frozen=True)
class Layout:
    """How delimited text is laid out.

    Attributes
    ----------
    delimiter : str
    names : tuple of (str or None)
        None for a field without a name that must be empty, as delimiters at line ends make.
    start : int
        The byte of the first block where the rows begin.
    line : int
        The line of that byte, from 1.
    notes : tuple of str
    """

    delimiter: str
    names: tuple[str | None, ...]
    start: int
    line: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """A line, or several where a quoted field has line ends; ``end`` is the byte after it."""

    line: int
    end: int
    text: str


def find_layout(block: bytes, ending: str, name: str) -> Layout:
    """Return the layout that the first block of a file shows."""
    records = list(_records(block))
    first, records, said, notes = _without_comments(records)
    if not records:
        what = "empty" if first is None else "empty but for comments"
        raise TableFileError(f"{name} is {what}: a table with a header line and rows is needed.")
    delimiter = said or _find_delimiter(records, ending)
    rows = [split_fields(one.text, delimiter) for one in records]
    common = mode([len(row) for row in rows[1:] if any(row)] or [len(rows[0])])
    top = _header_row(rows, common)
    if top:
        notes.append(f"the header is line {records[top].line}; what stands above it was passed over")
    if first is not None and _all_numbers(rows[top]):  # a header that begins with #
        cells = split_fields(first.text.lstrip("# "), delimiter)
        if len(cells) == common and not _all_numbers(cells):
            rows, records, top = [cells, *rows], [first, *records], 0
            notes = [note for note in notes if "comment" not in note]
    cells, below = rows[top], [row for row in rows[top + 1 :] if any(row)]
    if said is None and delimiter != ("\t" if "tsv" in ending or "tab" in ending else ","):
        notes.append(f"fields are separated by {NAMES[delimiter]}")
    if _no_header(cells, below):
        names = [f"column {k}" for k in range(1, len(cells) + 1)]
        notes.append(
            "the first line holds only numbers, so it was read as a row; columns are called column 1, 2, ..."
        )
        start, line = (records[top - 1].end, records[top].line) if top else _begin(block, records[0])
        return Layout(delimiter, tuple(names), start, line, tuple(notes))
    layout = Layout(delimiter, (), records[top].end, 0, tuple(notes))
    layout = replace(layout, line=1 + block.count(b"\n", 0, layout.start))
    return _named(layout, cells, below, common, name)


def _begin(block: bytes, record: Record) -> tuple[int, int]:
    """Return the byte and the line where a record begins."""
    position = 0
    for _ in range(record.line - 1):
        position = block.index(b"\n", position) + 1
    return position, record.line


def _records(block: bytes) -> Iterator[Record]:
    """Give the first records of a block."""
    position, line = 0, 1
    for _ in range(RECORDS):
        if position >= len(block):
            return
        start, quotes = position, 0
        for _ in range(1000):
            end = block.find(b"\n", position)
            end = len(block) if end < 0 else end + 1
            quotes += block.count(b'"', position, end)
            position = end
            if quotes % 2 == 0 or end >= len(block):
                break
        else:  # an open quote that was none
            position = block.find(b"\n", start) + 1
        yield Record(line, position, block[start:position].decode("utf-8", "replace"))
        line += block.count(b"\n", start, position)


def _without_comments(records: Sequence[Record]) -> tuple[Record | None, list[Record], str | None, list[str]]:
    """Return the last comment on top, the records below, the delimiter that is said there, and notes."""
    last, said, notes = None, None, []
    rest = list(records)
    while rest and (
        not rest[0].text.strip() or rest[0].text.startswith("#") or _says_delimiter(rest[0].text)
    ):
        text = rest[0].text.strip()
        said = text[4] if _says_delimiter(text) else said
        last = rest[0] if text.startswith("#") else last
        rest = rest[1:]
    if last is not None:
        notes.append("comment lines above the header were passed over")
    return last, rest, said, notes


def _says_delimiter(text: str) -> bool:
    text = text.strip("\r\n")
    return text.lower().startswith("sep=") and len(text) == 5


def split_fields(text: str, delimiter: str) -> list[str]:
    r"""Return the fields of a record.

    >>> split_fields('a;"b;c";d\n', ";")
    ['a', 'b;c', 'd']
    """
    # Python's reader limits a field to 128 KB, and counts on quotes being closed.
    try:
        rows = list(csv.reader(io.StringIO(text.rstrip("\r\n"), newline=""), delimiter=delimiter))
    except csv.Error:
        return text.rstrip("\r\n").split(delimiter)
    return rows[0] if rows else [""]


def _find_delimiter(records: Sequence[Record], ending: str) -> str:
    """Return the delimiter by which the most lines have the same number of fields, of several as many."""
    expected = "\t" if "tsv" in ending or "tab" in ending else ","
    best, best_rank = expected, (0.0, 0, 0.0)
    for delimiter in DELIMITERS:
        counts = [len(split_fields(one.text, delimiter)) for one in records[:100] if one.text.strip()]
        fields, lines = Counter(counts[1:] or counts).most_common(1)[0]
        if fields < 2:
            continue
        share = lines / max(1, len(counts) - 1)
        agrees = abs(counts[0] - fields) <= 1 and counts[0] > 1
        # A decimal comma divides lines equally as well, but seldom the header.
        rank = (float(agrees) + min(share, 1.0), int(delimiter == expected), float(fields))
        if (round(rank[0], 1), rank[2] + 2 * rank[1]) > (
            round(best_rank[0], 1),
            best_rank[2] + 2 * best_rank[1],
        ):
            best, best_rank = delimiter, rank
    return best


def _header_row(rows: Sequence[Sequence[str]], common: int) -> int:
    """Return which row is the header: titles have one field, in tables of three columns or more."""
    if common < 3:
        return 0
    for number, row in enumerate(rows[:20]):
        if sum(bool(cell.strip()) for cell in row) > 1:
            return number
    return 0


def _is_number(cell: str) -> bool:
    try:
        float(cell.strip().replace(",", "."))
    except ValueError:
        return False
    return True


def _all_numbers(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and all(_is_number(cell) for cell in filled)


def _no_header(cells: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row is of numbers that are no names such as 0, 1, 2 or years."""
    if not _all_numbers(cells) or not below:
        return False
    if not all(cell.strip().isdigit() for cell in cells) or len(cells) == 1:
        return True
    steps = {int(after) - int(before) for before, after in pairwise(cells)}
    return len(steps) != 1 or steps == {0}


def _named(layout: Layout, cells: list[str], below: list[list[str]], common: int, file: str) -> Layout:
    """Return the layout with the names of its columns."""
    notes = list(layout.notes)
    names: list[str | None] = [cell.strip().strip("\ufeff") for cell in cells]
    empty_end = bool(below) and all(row[-1].strip() == "" for row in below if len(row) == common)
    if common == len(names) + 1 and empty_end:
        names.append(None)
    elif common == len(names) + 1 and len({row[0] for row in below}) == len(below) > 1:
        names.insert(0, "row name")
        notes.append(
            "the header names one column less than the rows have, so the first was called 'row name'"
        )
    elif common == len(names) - 1 and not names[-1]:
        names.pop()
    elif common == len(names) > 1 and not names[-1] and empty_end:
        names[-1] = None
    nameless = [
        k for k, one in enumerate(names) if one is not None and (not one or one.startswith("Unnamed:"))
    ]
    for k in nameless:
        names[k] = f"column {k + 1}"
    if nameless:
        listed = ", ".join(str(names[k]) for k in nameless[:5]) + (", ..." if len(nameless) > 5 else "")
        notes.append(f"without a name in the header: {listed}")
    check_unique([one for one in names if one is not None], file)
    if _all_numbers(cells):
        notes.append("the names in the header are all numbers")
    return replace(layout, names=tuple(names), notes=tuple(notes))


def check_unique(names: Sequence[str], file: str) -> None:
    """Raise a :class:`TableFileError` that names the columns of one name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        listed = ", ".join(repr(name) for name in twice[:5]) + (" and more" if len(twice) > 5 else "")
        raise TableFileError(f"{file} has several columns of one name: {listed}. Give each its own name.")
