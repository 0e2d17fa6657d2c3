"""How many threads native loops and BLAS may use."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from sixfold._native import core
from sixfold.errors import InputError, check_number


@contextmanager
def thread_limit(n_jobs: int | None, alone: bool = False) -> Iterator[None]:
    """Let native loops use that many threads inside; None for as many as OpenMP would, -1 for all cores.

    ``alone`` is for work that is not worth a second one, whatever is asked for.
    """
    check_number("n_jobs", n_jobs, optional=True, whole=True)
    if n_jobs == 0:
        raise InputError("n_jobs=0 is no number of threads. Use None or -1 for all of them.")
    limit = 0 if n_jobs is None else n_jobs if n_jobs > 0 else max((os.cpu_count() or 1) + 1 + n_jobs, 1)
    before = core.limit_threads(1 if alone else limit)
    try:
        yield
    finally:
        core.limit_threads(before)


class _BlasThreads:
    """Counts who asks for one BLAS thread: the limit is the process's, whichever thread sets it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = core.limit_blas_threads(1)
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                core.limit_blas_threads(self._before)


# ``with one_blas_thread:``, also inside each other; the last one out restores what the first one found.
one_blas_thread = _BlasThreads()


@contextmanager
def single_threaded_blas(size: int) -> Iterator[None]:
    """Keep LAPACK to one thread for matrices of this size, if they are small.

    Up to about a thousand columns its threads wait for each other longer than they work: next to another busy
    process, Cholesky of 200 columns took 270 ms with two threads and 0.4 ms with one.
    """
    with one_blas_thread if size <= 1024 else nullcontext():
        yield
