"""A file for rows of numbers: written once from front to back, then read as an array any number of times.

Columns of a Parquet file are compressed and apart; loops want rows. Turning 4.8 GB of columns into rows takes
as long as reading them ten times, so that it is done once. The file has no name: whatever happens, it is gone
when the process is.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError

Array = NDArray[Any]

AHEAD = 1 << 28  # bytes that are asked for at a time: writing where there is room already is twice as fast


class Scratch:
    """Rows of numbers in a file without a name.

    Parameters
    ----------
    folder : str
    columns : int
    dtype : numpy dtype
    """

    def __init__(self, folder: str, columns: int, dtype: Any) -> None:
        self.folder, self.columns, self.dtype = folder, columns, np.dtype(dtype)
        try:
            self._file = tempfile.TemporaryFile(dir=folder, prefix="sixfold-")  # noqa: SIM115 - closed by close
        except OSError as error:
            raise InputError(
                f"scratch={folder!r} is where rows were to be kept, but no file can be made there "
                f"({error.strerror}). Name a folder that can be written to."
            ) from error
        self._bytes = self._room = 0

    def __enter__(self) -> Scratch:
        """Give the file up at the end; arrays that are mapped from it stay valid."""
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def append(self, rows: Array) -> None:
        """Write rows behind those that are there; they are not kept in memory."""
        if rows.size == 0:
            return
        part = np.ascontiguousarray(rows, dtype=self.dtype).data.cast("B")
        self._make_room(self._bytes + len(part))
        while len(part):
            written = os.pwrite(self._file.fileno(), part, self._bytes)
            self._bytes += written
            part = part[written:]

    def _make_room(self, wanted: int) -> None:
        if wanted <= self._room or not hasattr(os, "posix_fallocate"):
            return
        room = max(wanted, self._room + AHEAD)
        try:
            os.posix_fallocate(self._file.fileno(), self._room, room - self._room)
        except OSError as error:
            disk = os.statvfs(self.folder)
            free = disk.f_bavail * disk.f_frsize
            raise InputError(
                f"There is no room for the rows in scratch={self.folder!r}: {wanted / 1e9:.3g} GB were "
                f"needed so far, and {free / 1e9:.3g} GB are left ({error.strerror}). "
                "Name another folder, or scan fewer columns."
            ) from error
        self._room = room

    def rows(self) -> Array:
        """Return all rows as an array that is mapped from the file, or a copy of it where there are none."""
        count = self._bytes // max(self.columns * self.dtype.itemsize, 1)
        if self._bytes == 0:
            return np.empty((count, self.columns), dtype=self.dtype)
        os.ftruncate(self._file.fileno(), self._bytes)
        mapped = mmap.mmap(self._file.fileno(), self._bytes)
        return np.frombuffer(mapped, dtype=self.dtype).reshape(count, self.columns)

    def close(self) -> None:
        """Give the file up; arrays that are mapped from it stay valid."""
        self._file.close()
