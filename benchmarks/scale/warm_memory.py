"""``python -m benchmarks.scale.warm_memory BYTES``: touches so much memory, and gives it back.

A virtual machine gets pages that it has not used for a while from its host, one by one: the first fit after a
pause took 13 seconds, and the same one after it 5. Every contender begins with as many pages as it may need.
"""

from __future__ import annotations

import mmap
import subprocess
import sys

PIECE = b"\1" * (1 << 20)


def touch(size: int) -> None:
    """Write to so many bytes of new memory."""
    pieces = max(size // len(PIECE), 1)
    with mmap.mmap(-1, pieces * len(PIECE)) as memory:
        for _ in range(pieces):
            memory.write(PIECE)


def warm(size: int) -> None:
    """Touch memory in a process of its own, whose peak is not that of who asks."""
    subprocess.run([sys.executable, "-m", "benchmarks.scale.warm_memory", str(size)], check=True)


if __name__ == "__main__":
    touch(int(sys.argv[1]))
