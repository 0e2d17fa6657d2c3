"""A limit of memory that is kept: large arrays live in files, and their pages are let go of when it is near.

While it holds, what NumPy allocates in this thread beyond some megabytes is mapped from files without names
(``native/core/spilled_memory.hpp``), and so are the vectors of native loops that ask for it. Solvers need not
know: an array is an array. The kernel keeps pages in its cache as long as there is room, so that a limit
costs little where there is, and disk accesses where there is not.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core

LARGE = 8 << 20  # bytes of an array that goes to a file; smaller ones come and go with every pass
NEAR = 0.75  # of the limit: from there pages are let go of, since it takes some milliseconds to notice


def _numpy() -> object:
    """Return NumPy's table of functions, where an allocator is set."""
    home = "numpy._core" if hasattr(np, "_core") else "numpy.core"  # the latter up to NumPy 1.26
    table: object = importlib.import_module(f"{home}._multiarray_umath")._ARRAY_API
    return table


@contextmanager
def bounded_memory(limit: float, folder: str, table: NDArray[np.generic] | None = None) -> Iterator[None]:
    """Keep what the process holds below ``limit`` bytes inside, as far as large arrays are concerned.

    ``folder`` is where files go, ``table`` an array that is mapped from one already.
    """
    before = core.begin_spilling(_numpy(), folder, int(NEAR * limit), LARGE)
    if before is None:  # a system that says nothing of the pages a process holds
        yield
        return
    address = None if table is None or table.size == 0 else table.__array_interface__["data"][0]
    if address is not None:
        core.watch_pages(address - address % 4096, table.nbytes + address % 4096)  # type: ignore[union-attr]
    try:
        yield
    finally:
        if address is not None:
            core.forget_pages(address - address % 4096)
        core.end_spilling(_numpy(), before)
