"""What a fit to rows in files costs: bytes read, bytes sent, memory, and the seconds they take.

With n rows of d columns (8 bytes each), p passes, m machines and P partitions (P = m for one machine alone):

    bytes of rows      8 n d                                  written once, as rows, each machine its share
    bytes read         files + 8 n d p                        the files once, the rows once a pass
    bytes sent a pass  P (down + up)                          d numbers or d x d, never rows
    memory a machine   base + 8 v n / m + 2 blocks            v numbers a row that a solver keeps, in files
                                                              where the limit asks for it

Seconds are those of the slowest of what happens at once, one after the other:

    decoding           8 n d / (m decode)                     columns to rows, and the files from the disk
    a pass             8 n d / (m read)                       at the speed of memory, or of the disk where the
                                                              share of a machine does not fit in its memory
                       + ceil(P / slots) delay                what every task waits for, slots at once
                       + (P + joins) scheduling               one scheduler hands out all tasks
                       + P down / bandwidth                   what it sends to them
                       + levels (delay + 2 latency + 8 up / bandwidth)     results are joined eight at a time

Nothing overlaps in this, so it is a little too high rather than too low.

    python -m benchmarks.scale.model        10,000,000,000 rows on 100 machines, as docs/scale.md has it
"""

from __future__ import annotations

import math
from dataclasses import dataclass

JOINED = 8  # results that are joined by one task
NUMBER = 8  # bytes


@dataclass(frozen=True)
class Work:
    """What a learner does.

    Attributes
    ----------
    passes : float
        How often all rows are read, after decoding.
    read : float
        Bytes of rows that one machine gets through a second in a pass, from memory.
    down, up : float
        Bytes that a task is sent, and that it returns, in a pass.
    kept : float
        Numbers a row that are kept besides the columns: target, weight, scores, multipliers.
    most : float
        Bytes of all results of a pass together, where they are cut to that when they are joined.
    """

    passes: float
    read: float
    down: float
    up: float
    kept: float = 1.0
    most: float = math.inf


@dataclass(frozen=True)
class Machine:
    """One machine: bytes a second, and bytes of memory that the rows may take."""

    decode: float
    disk: float
    memory: float
    slots: int = 1  # tasks at once


@dataclass(frozen=True)
class Network:
    """Bytes a second, seconds one way, seconds of the scheduler a task, seconds that a task waits."""

    bandwidth: float = math.inf
    latency: float = 0.0
    scheduling: float = 0.0
    delay: float = 0.0


@dataclass(frozen=True)
class Cost:
    """What a fit costs: seconds, and bytes of all machines together, memory of one."""

    decoding: float
    reading: float
    talking: float
    bytes_read: float
    bytes_sent: float
    memory: float

    @property
    def seconds(self) -> float:
        """All of them."""
        return self.decoding + self.reading + self.talking


def cost(
    work: Work,
    rows: float,
    columns: int,
    machine: Machine,
    machines: int = 1,
    network: Network | None = None,
    partitions: int | None = None,
    files: float | None = None,
) -> Cost:
    """Return what the work costs on so many machines; without a network it is one, and no tasks are sent."""
    size = NUMBER * rows * columns
    share = size / machines
    speed = work.read if share <= machine.memory else min(work.read, machine.disk)
    talking = sent = 0.0
    if network is not None:
        count = partitions or machines * machine.slots
        talking = work.passes * _talk(work, network, count, machines * machine.slots)
        sent = work.passes * (count * work.down + min(count * work.up, work.most))
    return Cost(
        decoding=share / machine.decode,
        reading=work.passes * share / speed,
        talking=talking,
        bytes_read=(size if files is None else files) + work.passes * size,
        bytes_sent=sent,
        memory=share + NUMBER * work.kept * rows / machines,
    )


def _talk(work: Work, network: Network, partitions: int, slots: int) -> float:
    """Return the seconds of a pass in which no row is read."""
    joins, level, levels = 0, partitions, 0
    while level > 1:
        joins += math.ceil(level / JOINED)
        level, levels = math.ceil(level / JOINED), levels + 1
    return (
        math.ceil(partitions / slots) * network.delay
        + (partitions + joins) * network.scheduling
        + partitions * work.down / network.bandwidth
        + levels
        * (network.delay + 2.0 * network.latency + min(JOINED * work.up, work.most) / network.bandwidth)
    )


# -- learners: what they send, in numbers of d columns -------------------------------------------------------


def symmetric(columns: int, passes: float, read: float, kept: float = 1.0) -> Work:
    """Return the work of who sends coefficients and gets a slope and d x d back: Newton, least squares."""
    size = columns + 1
    return Work(passes, read, NUMBER * size, NUMBER * (1 + size + size * size), kept)


def neighbours(columns: int, queries: int, k: int, read: float) -> Work:
    """Return the work of a search: queries go out, k distances and row numbers of each come back, once."""
    return Work(1.0, read, NUMBER * queries * columns, 2 * NUMBER * queries * k)


def tree(columns: int, depth: int, bins: int, classes: int, read: float) -> Work:
    """Return the work of a tree: a pass a level, with histograms as of the widest level.

    Half of its nodes have some: what a sibling has is the difference.
    """
    nodes = 2 ** max(depth - 2, 0)
    return Work(depth, read, 4 * NUMBER * nodes, NUMBER * nodes * columns * bins * classes)


# -- 10,000,000,000 rows on 100 machines ---------------------------------------------------------------------

# What 20,000,000 rows took here: two cores decode and write rows, and read them in the passes below.
HERE = Machine(decode=0.5e9, disk=0.5e9, memory=50e9, slots=2)
# What is assumed: 10 Gbit/s, half a millisecond, and a millisecond of Dask's scheduler a task.
CLUSTER = Network(bandwidth=1.25e9, latency=0.5e-3, scheduling=1e-3)
# Passes as on a cluster of Dask, with those that check the values.
CLUSTER_WORK = {
    "least squares": symmetric(30, 3, 4.8e9),
    "logistic": symmetric(30, 11, 4.8e9),
    "hinge": Work(8, 2.8e9, NUMBER * 31, 64e6, most=64e6),  # rows near the margin
    "1,000 neighbour queries": neighbours(30, 1_000, 5, 4.8e9),
}


def main() -> None:
    """Print the table of the page."""
    print("| fit | partitions | decoding | passes | talking | sent | in all |\n|---|---|---|---|---|---|---|")
    for name, work in CLUSTER_WORK.items():
        for partitions in (1_000, 10_000):
            one = cost(work, 1e10, 30, HERE, 100, CLUSTER, partitions)
            print(
                f"| {name} | {partitions:,} | {one.decoding:.0f} s | {one.reading:.0f} s "
                f"| {one.talking:.0f} s | {one.bytes_sent / 1e9:.2g} GB | {one.seconds:.0f} s |"
            )


if __name__ == "__main__":
    main()
