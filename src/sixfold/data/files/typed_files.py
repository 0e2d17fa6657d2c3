"""Files whose columns have types: Parquet and Arrow, whole or some rows at a time."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sixfold.data.files.csv_layout import check_unique
from sixfold.data.files.file_bytes import TableFileError, chunks, compression


@contextlib.contextmanager
def reading(shown: str, kind: str) -> Iterator[None]:
    """Turn every failure to read into a :class:`TableFileError`.

    Polars panics on some damaged files, and its threads write pages to standard error about it; that stream
    is closed meanwhile.
    """
    import polars as pl

    kept = None
    with contextlib.suppress(OSError):
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        what = "a Parquet" if kind == "parquet" else "an Arrow"
        first = str(error).strip().split("\n")[0][:200]
        raise TableFileError(
            f"{shown} is {what} file that is damaged or cut off: {first}. Write or fetch it again."
        ) from None
    finally:
        if kept is not None:
            os.dup2(kept, 2)
            os.close(kept)


def read_typed(path: Path, shown: str, kind: str) -> Any:
    """Return the table of a Parquet or Arrow file."""
    import polars as pl

    source: Any = path
    if compression(path) is not None:
        source = io.BytesIO(b"".join(chunks(path, shown)))
    readers = {"parquet": pl.read_parquet, "arrow": pl.read_ipc, "arrow stream": pl.read_ipc_stream}
    with reading(shown, kind):
        frame = readers[kind](source)
    check_unique(frame.columns, shown)
    return frame


def typed_frames(path: Path, shown: str, kind: str, rows: int) -> Iterator[Any]:
    """Give the rows of a Parquet or Arrow file, so many at a time; a compressed one or a stream at once."""
    import polars as pl

    if kind == "arrow stream" or compression(path) is not None:
        yield read_typed(path, shown, kind)
        return
    with reading(shown, kind):
        lazy = pl.scan_parquet(path) if kind == "parquet" else pl.scan_ipc(path)
        height = int(lazy.select(pl.len()).collect().item())
    for start in range(0, height, rows):
        with reading(shown, kind):
            frame = lazy.slice(start, rows).collect()
        yield frame
