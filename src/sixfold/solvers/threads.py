"""How many threads native loops and BLAS may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from sixfold._native import core
from sixfold.errors import InputError, check_number

# Up to so many rows and columns LAPACK has one thread. At best two halve the time; beside other busy
# processes, where they wait for each other at every block, Cholesky took 660 ms instead of 0.2 with 200
# columns, 3 s instead of 0.03 with 1,000 and 2 to 14 s instead of 1.3 with 4,000.
SINGLE_THREADED_SIZE = 4096


# A product of BLAS with a table of fewer values takes less than half a millisecond; waking a second thread
# may take longer than that. Native loops decide by themselves (``team_size`` in native/core/threads.hpp).
LITTLE_DATA = 1 << 20


@contextmanager
def thread_limit(n_jobs: int | None, alone: bool = False, values: float = math.inf) -> Iterator[None]:
    """Let native loops use that many threads inside; -1 for all cores.

    None stands for as many as OpenMP would, or for the limit of whoever calls. ``alone`` is for work that is
    not worth a second one, whatever is asked for. BLAS has one thread where native loops have one, and where
    the table has few ``values``.
    """
    check_number("n_jobs", n_jobs, optional=True, whole=True)
    if n_jobs == 0:
        raise InputError("n_jobs=0 is no number of threads. Use None or -1 for all of them.")
    limit = 0 if n_jobs is None else n_jobs if n_jobs > 0 else max((os.cpu_count() or 1) + 1 + n_jobs, 1)
    limit = 1 if alone else limit
    before = core.limit_threads(limit)
    if limit == 0 and before > 0:
        core.limit_threads(before)
    try:
        with one_blas_thread if limit == 1 or values < LITTLE_DATA else nullcontext():
            yield
    finally:
        core.limit_threads(before)


def divide_threads(n_jobs: int | None, parts: int) -> tuple[int, int]:
    """Return how many parts of some work to do at the same time, and how many threads each has.

    None and -1 stand for all threads there are. Parts come before loops: a part that has its thread to itself
    never waits for another one.
    """
    check_number("n_jobs", n_jobs, optional=True, whole=True)
    if n_jobs == 0:
        raise InputError("n_jobs=0 is no number of threads. Use None or -1 for all of them.")
    available = core.threads()
    wanted = available if n_jobs is None else n_jobs if n_jobs > 0 else max(available + 1 + n_jobs, 1)
    jobs = max(min(wanted, parts), 1)
    return jobs, max(available // jobs, 1)


class _OneBlasThread:
    """``with one_blas_thread:``, also inside each other and in several threads; NumPy's BLAS and SciPy's."""

    def __enter__(self) -> None:
        core.begin_single_blas_thread()

    def __exit__(self, *error: object) -> None:
        core.end_single_blas_thread()


one_blas_thread = _OneBlasThread()


@contextmanager
def single_threaded_blas(size: int) -> Iterator[None]:
    """Keep BLAS and LAPACK to one thread for matrices of this size, unless they are large."""
    with one_blas_thread if size <= SINGLE_THREADED_SIZE else nullcontext():
        yield
