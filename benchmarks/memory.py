"""The peak of memory that one run needs beyond its data, measured in a child process.

The child warms up on small data (imports, compilers, thread pools), makes the real data, resets
the kernel's high-water mark and runs once:

    extra = peak of resident memory during the run - resident memory before it

What the run adds of the code of libraries does not count: the system reads it when it is run for the first
time, and small data may take other paths. 2 MB of LAPACK would be an eighth of a table of 16 MB.

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
MAPPINGS = Path("/proc/self/smaps")


def extra_memory(make: Callable[[bool], Any], run: Callable[[Any, Any], Any], job: Any, quick: bool) -> int:
    """Return the bytes that ``run(job, make(quick))`` needs at its peak beyond job and data."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as child:
        return child.submit(_measure, make, run, job, quick).result()


def _measure(make: Callable[[bool], Any], run: Callable[[Any, Any], Any], job: Any, quick: bool) -> int:
    run(job, make(True))
    data = make(quick)
    code = _library_code()
    before = _reset_peak()
    result = run(job, data)
    peak = _peak()
    del result
    return max(peak - before - (_library_code() - code), 0)


def _library_code() -> int:
    """Return the resident bytes of libraries that nothing is written to; 0 where the system does not tell."""
    if not MAPPINGS.exists():
        return 0
    resident, library = 0, False
    for line in MAPPINGS.read_text().splitlines():
        mapping = re.match(r"[0-9a-f]+-[0-9a-f]+ (\S+) .*", line)
        if mapping is not None:
            library = ".so" in line and "w" not in mapping[1]
        elif library and line.startswith("Rss:"):
            resident += int(line.split()[1]) * 1024
    return resident


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
