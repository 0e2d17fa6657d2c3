"""``python -m benchmarks.roofline [case ...] [--quick]``: the share of the machine's limit that fits reach.

Measures what the machine can do, fits every case, and writes ``docs/roofline.md`` unless only some cases were
asked for. All on one thread, in seconds of the processor, so that others at work on the machine count little;
of each case the fastest fit counts, as of the machine's own loops.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.__main__ import ROOT, limit_threads

PAGE = ROOT / "docs" / "roofline.md"
FITS = 5


class Share(NamedTuple):
    """A case: what it needs, the least time that takes here, and the time of a fit."""

    title: str
    bytes_read: float
    operations: float
    limit: str
    least: float
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.roofline", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="case", help="cases; all by default")
    parser.add_argument("--quick", action="store_true", help="tiny data: tries the harness, measures nothing")
    chosen = parser.parse_args(arguments)
    limit_threads(1)

    # Only now: the libraries behind these imports read the number of threads when they are loaded.
    from benchmarks.families import chosen_cases
    from benchmarks.report import machine_facts
    from benchmarks.roofline.machine import Machine, measure
    from benchmarks.roofline.needs import NEEDS
    from benchmarks.runner import Case

    if unknown := set(chosen.names) - NEEDS.keys():
        parser.error(f"no needs are known of {', '.join(sorted(unknown))}; there are {', '.join(NEEDS)}")

    def share_of(case: Case, machine: Machine) -> Share:
        data, contender = case.data(chosen.quick), case.contenders[0]
        job, seconds = contender.prepare(data), []
        for _ in range(FITS + 1):  # the first one warms up
            begun = time.process_time()
            contender.run(job, data)
            seconds.append(time.process_time() - begun)
        needs = NEEDS[case.name](data)
        least = machine.least_seconds(*needs)
        limit = "reads" if least == needs.bytes_read / machine.bandwidth else "operations"
        return Share(case.title, needs.bytes_read, needs.operations, limit, least, min(seconds[1:]))

    machine = measure(1 << 16, 1 << 10) if chosen.quick else measure()
    shares = [share_of(case, machine) for case in chosen_cases(chosen.names or NEEDS)]
    processor = machine_facts(1)["processor"]
    text = page(shares, machine._asdict(), processor)
    if not (chosen.names or chosen.quick):
        PAGE.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0


TEXT = """# The roofline

How far is a fit from the fastest that this machine allows? Counted are the bytes that any method has to read
from memory for the same answer, and the additions and multiplications it has to make
([benchmarks/roofline](../benchmarks/roofline/needs.py) says which). Two tiny native loops measure what the
machine can do: one adds up a long array and only reads, the other multiplies and adds in registers. The
longer of the two times is the roof; the share is the roof over the time of a whole fit, checks and
certificate included. Work is worth most where the share is least. Neighbours that a bound rules out need no
product, so that a search can come close to its roof, or beyond.

Measured by `python -m benchmarks.roofline`, in seconds of one thread, on {processor}:
{bandwidth:.0f} GB/s and {operations:.0f} billion operations a second in double precision, twice as many in
single.

| case | GB | billion operations | roof | at the least | a fit | share |
|---|---|---|---|---|---|---|
"""


def page(shares: Sequence[Share], machine: Mapping[str, float], processor: str) -> str:
    """Return the page: the machine, and the cases from the smallest share on."""
    figures = {name: figure / 1e9 for name, figure in machine.items()}
    lines = [
        f"| {one.title} | {one.bytes_read / 1e9:.3g} | {one.operations / 1e9:.3g} | {one.limit} "
        f"| {1e3 * one.least:.4g} ms | {1e3 * one.seconds:.4g} ms | {one.least / one.seconds:.0%} |\n"
        for one in sorted(shares, key=lambda one: one.least / one.seconds)
    ]
    return TEXT.format(processor=processor, **figures) + "".join(lines)


if __name__ == "__main__":
    sys.exit(main())
