"""Write a table piece by piece, to a file that appears when it is whole.

    .csv .tsv               text, one line a row
    .jsonl .ndjson          one JSON object a row
    .parquet .arrow .feather    columns with types
    .gz after the first two: compressed

The pieces go to a hidden file in the same folder, which takes the name that was asked for at the end; until
then a file of that name stays as it is, and after an error or Ctrl-C nothing is left behind. Parquet and
Arrow files are closed by a list of their parts, and Polars writes them as a whole only: the pieces are kept
as files of their own and joined, piece after piece, at the end.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from sixfold.errors import InputError, UsageError

ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "json lines",
    ".ndjson": "json lines",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
TEXT = ("csv", "tsv", "json lines")
COMPRESSION = 5  # a third faster than gzip's usual 6, for files 2% larger


class Writer(Protocol):
    """Takes the rows of a table, some at a time, all with the same columns."""

    def write(self, frame: Any) -> None:
        """Append rows; the first frame, of any number of rows, gives the header."""


def output_format(path: Path) -> tuple[str, bool]:
    """Return the format that the ending of a file asks for, and whether it is compressed.

    >>> output_format(Path("scores.csv.gz"))
    ('csv', True)
    """
    name = path.name.lower()
    compressed = name.endswith(".gz")
    ending = Path(name.removesuffix(".gz")).suffix
    format = ENDINGS.get(ending)
    if format is None:
        given = f"ends with {ending}{'.gz' * compressed}" if ending else "has no ending"
        raise UsageError(
            f"The output file {path.name!r} {given}, which says no format. Use one of .csv, .tsv, .jsonl "
            "(each also with .gz), .parquet, .arrow or .feather."
        )
    if compressed and format not in TEXT:
        raise UsageError(
            f"The output file {path.name!r} asks for gzip around {ending[1:]}, which is compressed itself. "
            f"Use {path.name[:-3]!r}."
        )
    return format, compressed


@contextmanager
def table_writer(output: Path) -> Iterator[Writer]:
    """Give a writer for a file; the file is there when the block ends without an error.

    Raises
    ------
    UsageError
        At once if the ending says no format or the folder cannot be written to.
    InputError
        Later, if the disk is full.
    """
    format, compressed = output_format(output)
    part = _begin(output)
    try:
        with _say_of(output):
            writer = (FileWriter if format in TEXT else PartsWriter)(output, part, format, compressed)
        try:
            yield writer
            with _say_of(output):
                writer.finish()
                os.replace(part, output)
        finally:
            writer.close()
    finally:
        with suppress(OSError):
            part.unlink()
        shutil.rmtree(_parts_folder(part), ignore_errors=True)


@contextmanager
def stdout_writer(format: str = "csv") -> Iterator[Writer]:
    """Give a writer to stdout."""
    file = getattr(sys.stdout, "buffer", None)
    if file is None:  # a stream of text in its place
        file = _Encoded(sys.stdout)
    sys.stdout.flush()
    yield TextWriter(file, format)
    file.flush()


class TextWriter:
    """Rows as text or JSON lines."""

    def __init__(self, file: Any, format: str) -> None:
        self.file, self.format, self.begun = file, format, False

    def write(self, frame: Any) -> None:
        """Append rows, after a header where the format has one."""
        buffer = io.BytesIO()
        try:
            if self.format == "json lines":
                frame.write_ndjson(buffer)
            else:
                separator = "\t" if self.format == "tsv" else ","
                frame.write_csv(buffer, include_header=not self.begun, separator=separator)
        except Exception as error:
            nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
            if not nested:
                raise
            raise InputError(
                f"The column {nested[0]!r} holds lists or records, which a {self.format} file cannot hold. "
                "Leave it out or write .parquet."
            ) from error
        self.begun = True
        self.file.write(buffer.getbuffer())


class FileWriter(TextWriter):
    """Rows as text in a file."""

    def __init__(self, output: Path, part: Path, format: str, compressed: bool) -> None:
        self.output, self.plain = output, part.open("wb")
        # Neither name nor time inside, so that the same rows give the same bytes.
        packed: Any = gzip.GzipFile("", "wb", COMPRESSION, self.plain, mtime=0) if compressed else self.plain
        super().__init__(packed, format)

    def write(self, frame: Any) -> None:
        """Append rows; an error is told by the name of the output."""
        with _say_of(self.output):
            super().write(frame)

    def finish(self) -> None:
        """Write what is left."""
        self.file.close()
        self.plain.close()

    def close(self) -> None:
        """Let go of the file, whatever has become of it."""
        for file in (self.file, self.plain):
            with suppress(OSError, ValueError):
                file.close()


class PartsWriter:
    """Rows as files of some rows each, joined at the end."""

    def __init__(self, output: Path, part: Path, format: str, compressed: bool) -> None:
        self.output, self.part, self.format = output, part, format
        self.types: dict[str, set[Any]] = {}  # of each column
        self.folder = _parts_folder(part)
        self.folder.mkdir()
        self.parts: list[Path] = []

    def write(self, frame: Any) -> None:
        """Append rows; a column may be of another type than in the pieces before."""
        for name, kind in frame.schema.items():
            self.types.setdefault(name, set()).add(kind)
        path = self.folder / f"{len(self.parts):08d}.{self.format}"
        with _say_of(self.output):
            if self.format == "parquet":
                frame.write_parquet(path)
            else:
                frame.write_ipc(path)
        self.parts.append(path)

    def finish(self) -> None:
        """Make one file of the parts, without reading more than some of them at once."""
        import polars as pl

        if len(self.parts) == 1:
            os.replace(self.parts[0], self.part)
            return
        scan = pl.scan_parquet if self.format == "parquet" else pl.scan_ipc
        differ = {name: _common_type(types) for name, types in self.types.items() if len(types) > 1}
        whole = pl.concat([scan(path).cast(differ) for path in self.parts]) if differ else scan(self.parts)
        if self.format == "parquet":
            whole.sink_parquet(self.part)
        else:
            whole.sink_ipc(self.part)

    def close(self) -> None:
        """Nothing is open between two pieces."""


class _Encoded(io.RawIOBase):
    """A stream of text that takes bytes."""

    def __init__(self, text: Any) -> None:
        self.text = text

    def write(self, data: Any) -> int:
        self.text.write(bytes(data).decode())
        return len(data)


def _begin(output: Path) -> Path:
    """Return a new hidden file in the folder of the output, or say why there can be none."""
    if output.is_dir():
        raise UsageError(f"The output {str(output)!r} is a folder: name a file in it.")
    folder = output.parent
    part = folder / f".{output.name}.{os.getpid()}.part"
    try:
        part.touch()
    except OSError as error:
        if not folder.exists():
            reason = "does not exist"
        elif not folder.is_dir():
            reason = "is a file"
        else:
            reason = f"cannot be written to ({error.strerror or error})"
        raise UsageError(
            f"The output folder {str(folder)!r} {reason}: nothing was done. Choose another with -o."
        ) from error
    return part


def _parts_folder(part: Path) -> Path:
    return part.with_name(f"{part.name}s")


def _common_type(types: set[Any]) -> Any:
    """Return a type for pieces that differ: numbers with a fraction for numbers, text for all else."""
    import polars as pl

    known = types - {pl.Null}
    if len(known) == 1:
        return next(iter(known))
    return pl.Float64 if all(one.is_numeric() for one in known) else pl.String


@contextmanager
def _say_of(output: Path) -> Iterator[None]:
    """Tell an error of the system, or one that Polars makes of it, as one of this output."""
    from polars.exceptions import PolarsError

    try:
        yield
    except (OSError, PolarsError) as error:
        said = getattr(error, "strerror", None) or str(error).strip().splitlines()[0]
        raise InputError(f"Writing {str(output)!r} failed: {said}. Nothing was written.") from error
