"""The peak of memory that one run needs beyond its data, measured in a child process.

The child warms up on small data (imports, compilers, thread pools), makes the real data, resets
the kernel's high-water mark and runs once:

    extra = peak of resident memory during the run - resident memory before it

The mark is reset through ``/proc/self/clear_refs``: ``ru_maxrss`` alone would be wrong twice, as
it remembers the temporaries of making the data and, after an exec, the peak of the *parent* (a
child that only prints it reports 260 MB if its parent holds 250 MB). Where there is no ``/proc``
it is the best there is: a lower bound.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import re
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")


def extra_memory(make: Callable[[bool], Any], run: Callable[[Any, Any], Any], job: Any, quick: bool) -> int:
    """Return the bytes that ``run(job, make(quick))`` needs at its peak beyond job and data."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as child:
        return child.submit(_measure, make, run, job, quick).result()


def _measure(make: Callable[[bool], Any], run: Callable[[Any, Any], Any], job: Any, quick: bool) -> int:
    run(job, make(True))
    data = make(quick)
    before = _reset_peak()
    result = run(job, data)
    peak = _peak()
    del result
    return max(peak - before, 0)


def _reset_peak() -> int:
    """Forget past peaks where the system can; return the resident bytes."""
    # Freed memory that malloc keeps for itself would serve the run unnoticed.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    if STATUS.exists():
        kilobytes = re.search(r"VmHWM:\s+(\d+)", STATUS.read_text())
        if kilobytes is not None:
            return int(kilobytes[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
