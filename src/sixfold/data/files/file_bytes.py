"""Files of text as blocks of UTF-8 that end where a record ends, whatever their compression and encoding.

    bytes -> unpacked (gzip, bzip2, xz, Zstandard)
          -> decoded (UTF-8, -16 or -32 by their mark; else each line from UTF-8, or from Windows-1252)
          -> blocks of some megabytes, cut after a line end that is not between quotes

A file is read once from its beginning to its end, so that its size does not matter.
"""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sixfold.errors import InputError

BLOCK = 1 << 23
LONGEST_RECORD = 1 << 24  # a quote that is still open after so many bytes was none
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
COMPRESSED = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
# What begins like this is no table that can be read, and what to do about it.
OTHERS = (
    (b"%PDF", "a PDF document", "Export the table as CSV."),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls)", "Open it and save the sheet as CSV."),
    (b"SQLite format 3", "an SQLite database", "Export a table of it as CSV or Parquet."),
    (b"\x89HDF", "an HDF5 file", "Export the table as CSV or Parquet."),
    (b"\x93NUMPY", "a NumPy array", "Write it as CSV or Parquet."),
    (b"FEA1", "a Feather file of version 1", "Write it again as Feather version 2 or Parquet."),
    (b"7z\xbc\xaf", "a 7-Zip archive", "Unpack it and give the table inside."),
    (b"Rar!", "a RAR archive", "Unpack it and give the table inside."),
    (b"\x80\x04\x95", "a Python pickle", "Write the table as CSV or Parquet."),
    (b"\x80\x05\x95", "a Python pickle", "Write the table as CSV or Parquet."),
    (b"\x89PNG", "a picture (PNG)", "Give a table."),
    (b"\xff\xd8\xff", "a picture (JPEG)", "Give a table."),
    (b"RDX", "an R data file", "In R, write it with write.csv."),
    (b"{\\rtf", "a text document (RTF)", "Save the table as CSV."),
)


class TableFileError(InputError):
    """A file that cannot be read as a table."""


class TextFile:
    """A file as text.

    Attributes
    ----------
    path : Path
    name : str
        For messages.
    encoding : str
        Known when the blocks have been read.
    odd_line : int or None
        The first line that is not UTF-8, in a file without a mark; it was read as Windows-1252.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.encoding = "utf-8"
        self.odd_line: int | None = None

    def head(self) -> bytes:
        """Return the first bytes, decompressed."""
        for block in chunks(self.path, self.name, 1 << 16):
            return block
        return b""

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Give the number of each block's first line, from 1, and the block in UTF-8."""
        line = 1
        self.odd_line = None
        for block in _whole_records(self._encoded()):
            yield line, self._as_utf8(block, line)
            line += block.count(b"\n")

    def _encoded(self) -> Iterator[bytes]:
        """Give the bytes in UTF-8, or in whatever eight-bit encoding they are."""
        decoder, first, old_line_ends = None, True, False
        for chunk in chunks(self.path, self.name):
            data = chunk
            if first:
                self.encoding, data = _encoding(chunk)
                if self.encoding != "utf-8":
                    decoder = codecs.getincrementaldecoder(self.encoding)()
            if decoder is not None:
                data = self._decode(decoder, data)
            if first:
                _check_text(data, self.name)
                old_line_ends, first = b"\n" not in data and b"\r" in data, False
            yield data.replace(b"\r", b"\n") if old_line_ends else data
        if decoder is not None:
            yield self._decode(decoder, b"", True)

    def _decode(self, decoder: Any, data: bytes, final: bool = False) -> bytes:
        try:
            return decoder.decode(data, final).encode("utf-8", "replace")
        except UnicodeDecodeError as error:
            raise TableFileError(
                f"{self.name} begins as {self.encoding.upper()} text, but goes on with bytes that are none "
                f"({error.reason}): it is damaged or cut off. Export it again, best as UTF-8."
            ) from None

    def _as_utf8(self, block: bytes, line: int) -> bytes:
        if block.isascii():
            return block
        try:
            block.decode()
            return block
        except UnicodeDecodeError as error:
            if self.odd_line is None:
                self.odd_line = line + block.count(b"\n", 0, error.start)
                self.encoding = "cp1252"
        return b"\n".join(_line_as_utf8(one) for one in block.split(b"\n"))


def _line_as_utf8(line: bytes) -> bytes:
    if line.isascii():
        return line
    for encoding in ("utf-8", "cp1252", "latin-1"):
        try:
            return line.decode(encoding).encode()
        except UnicodeDecodeError:
            continue
    raise AssertionError("Latin-1 has a letter for each byte")


def _encoding(head: bytes) -> tuple[str, bytes]:
    """Return the encoding that the first bytes show, and these bytes without the mark."""
    for mark, encoding in MARKS:
        if head.startswith(mark):
            return encoding, head[len(mark) :]
    even, odd = head[:2000:2].count(0), head[1:2000:2].count(0)
    half = len(head[:2000]) // 2
    if half and odd > 0.4 * half and even < 0.1 * half:
        return "utf-16-le", head
    if half and even > 0.4 * half and odd < 0.1 * half:
        return "utf-16-be", head
    return "utf-8", head


def _check_text(head: bytes, name: str) -> None:
    """Raise a :class:`TableFileError` unless the first bytes are text."""
    start = head[:500].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        raise TableFileError(
            f"{name} is a web page, not a table: was the download sent to a page to sign in?"
        )
    if start.startswith(b"<?xml"):
        raise TableFileError(f"{name} is an XML document, not a table: export it as CSV.")
    odd = sum(head[:4000].count(bytes([code])) for code in (*range(9), *range(14, 32)))
    if odd > max(10, 0.02 * len(head[:4000])) or b"\0" in head[:4000]:
        raise TableFileError(
            f"{name} holds binary data, not text: give CSV, TSV, JSON lines, Parquet or Arrow."
        )


def check_known(head: bytes, name: str) -> None:
    """Raise a :class:`TableFileError` for files of other kinds that their first bytes give away."""
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        if b"xl/" in head or b"[Content_Types].xml" in head[:200]:
            raise TableFileError(f"{name} is an Excel workbook: open it and save the sheet as CSV.")
        if b"mimetypeapplication/vnd.oasis" in head[:200]:
            raise TableFileError(f"{name} is a LibreOffice document: open it and save the sheet as CSV.")
        raise TableFileError(f"{name} is a zip archive: unpack it and give the table inside.")
    for start, what, remedy in OTHERS:
        if head.startswith(start):
            raise TableFileError(f"{name} is {what}, not a table that can be read. {remedy}")


def chunks(path: Path, name: str, size: int | None = None) -> Iterator[bytes]:
    """Give the decompressed bytes of a file."""
    try:
        with open_bytes(path, name) as stream:
            while chunk := stream.read(size or BLOCK):
                yield chunk
    except EOFError:
        raise TableFileError(
            f"{name} is compressed, but its end is missing: fetch or pack it again."
        ) from None
    except (zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise TableFileError(
            f"{name} is compressed, but damaged ({error}): fetch or pack it again."
        ) from None
    except OSError as error:
        raise TableFileError(f"{name} cannot be read: {error.strerror or error}.") from None


def compression(path: Path) -> str | None:
    """Return how a file is compressed, by its first bytes; None if it is not."""
    with open(path, "rb") as stream:
        head = stream.read(6)
    return next((kind for start, kind in COMPRESSED if head.startswith(start)), None)


def open_bytes(path: Path, name: str) -> Any:
    """Return a stream of the file's decompressed bytes."""
    kind = compression(path)
    if kind == "gzip":
        return gzip.open(path)
    if kind == "bzip2":
        import bz2

        return bz2.open(path)
    if kind == "xz":
        return lzma.open(path)
    return _open_zstd(path, name) if kind == "zstd" else open(path, "rb")


def _open_zstd(path: Path, name: str) -> Any:
    """Return the bytes of a Zstandard file, by Python 3.14, by zstandard, or all at once by Polars."""
    try:
        from compression import zstd  # type: ignore[import-not-found]

        return zstd.open(path)
    except ImportError:
        pass
    try:
        import zstandard  # type: ignore[import-not-found]

        return zstandard.open(path)
    except ImportError:
        pass
    import polars as pl

    options: dict[str, Any] = {"separator": "\x01", "quote_char": None, "truncate_ragged_lines": True}
    try:
        lines = pl.read_csv(path, has_header=False, infer_schema=False, **options).to_series(0)
    except pl.exceptions.PolarsError as error:
        raise TableFileError(
            f"{name} is compressed by Zstandard, but cannot be unpacked ({error})."
        ) from None
    return io.BytesIO("\n".join(lines.fill_null("").to_list()).encode())


def _whole_records(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Give blocks that end after a line end which is not between quotes."""
    rest = b""
    for chunk in chunks:
        # What is cut off is followed by more, so that the last block is the end of the file.
        cut = _last_record_end(rest)
        if cut == 0 and len(rest) > LONGEST_RECORD:
            cut = rest.rfind(b"\n") + 1
        if cut:
            yield rest[:cut]
        rest = rest[cut:] + chunk
    if rest:
        yield rest


def _last_record_end(data: bytes) -> int:
    r"""Return where the last whole record ends; 0 if there is none.

    >>> _last_record_end(b'a,b\n1,"x\ny"\n2,"z\n'), _last_record_end(b"a,b")
    (12, 0)
    """
    end = data.rfind(b"\n")
    if end < 0:
        return 0
    odd = data.count(b'"', 0, end) % 2
    while odd and end > 0:
        before = data.rfind(b"\n", 0, end)
        odd = (odd - data.count(b'"', max(before, 0), end)) % 2
        end = before
    return 0 if odd else end + 1
