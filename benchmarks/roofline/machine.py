"""What this machine can do: two tiny native loops, one that only reads and one that only calculates.

    bandwidth     the sum of an array that is many times as large as the caches: bytes a second
    operations    multiplications with an addition in registers, none of which waits for another

on one thread, of several runs the best, in seconds of the processor. Registers hold twice as many numbers in
single precision, which are as fast. A product of matrices by a BLAS is no measure: that of NumPy's wheels
runs at half of this on AMD's processors.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

NUMBERS = 1 << 25  # 256 MB
ROUNDS = 1 << 22
RUNS = 7


class Machine(NamedTuple):
    """Bytes a second from memory, and operations a second in double precision."""

    bandwidth: float
    operations: float

    def least_seconds(self, bytes_read: float, operations: float, single: bool = False) -> float:
        """Return what no program is below: the time of the reads or of the operations, the longer one.

        >>> Machine(bandwidth=10.0, operations=100.0).least_seconds(20.0, 100.0)
        2.0
        """
        return max(bytes_read / self.bandwidth, operations / (self.operations * (1 + single)))


def measure(numbers: int = NUMBERS, rounds: int = ROUNDS) -> Machine:
    """Return the figures of this machine."""
    from sixfold._native import core

    array = np.ones(numbers)
    reads = array.nbytes / _least(lambda: core.sum_numbers(array))
    return Machine(reads, core.multiply_and_add(rounds) / _least(lambda: core.multiply_and_add(rounds)))


def _least(run: Callable[[], object]) -> float:
    run()
    seconds = []
    for _ in range(RUNS):
        begun = time.process_time()
        run()
        seconds.append(time.process_time() - begun)
    return max(min(seconds), 1e-9)
