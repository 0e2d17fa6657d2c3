"""``python -m benchmarks.trees.time_limit [set ...] [--depth 4] [--seconds 60]``: trees of a limit of time.

The search for the fewest errors at depth 4 is cut short on every set of ConTree's, ours and ConTree's at the
same limit, one after the other. Of both trees the errors are counted; of ours also

    gap = (errors - errors that are proven to be needed) / errors,      overrun = seconds - limit.

A large made table is searched at depth 3, by us alone: ConTree would need hours. Nine sets take 20 minutes,
which is why this is no part of ``make bench``. The table goes to ``benchmarks/results/time_limit.md``.
The exit code is 1 where ours has more errors, no finite gap, a gap above what is demanded or an overrun of
more than a second.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.__main__ import ROOT, limit_threads

RESULTS = ROOT / "benchmarks" / "results" / "time_limit.md"
LARGE = "made"
LARGE_TITLE = "100,000 x 50, 2 classes, depth 3"
GAPS = {"rice": 0.03, "htru": 0.15}  # the gap that is demanded
OVERRUN = 1.0
HEAD = ("set", "errors", "pycontree's", "gap", "overrun", "pycontree's", "as demanded")


@dataclass(frozen=True)
class Outcome:
    """What one search found within its limit; seconds are those that passed."""

    errors: int
    seconds: float
    stopped: bool
    gap: float = math.nan


@dataclass(frozen=True)
class Line:
    """A set, our tree, and ConTree's where it took part."""

    name: str
    title: str
    limit: float
    ours: Outcome
    peer: Outcome | None = None

    @property
    def wrong(self) -> str:
        """What is not as demanded, in words; nothing where all is."""
        most = GAPS.get(self.name, math.inf)
        faults = {
            "more errors": self.peer is not None and self.ours.errors > self.peer.errors,
            "no gap": not math.isfinite(self.ours.gap),
            f"gap above {most:.0%}": self.ours.gap > most,
            "overrun": self.ours.seconds > self.limit + OVERRUN,
        }
        return ", ".join(fault for fault, there in faults.items() if there)

    def cells(self) -> tuple[str, ...]:
        """Return the line of the table."""
        return (
            f"{self.name}, {self.title}",
            f"{self.ours.errors}",
            "" if self.peer is None else f"{self.peer.errors}",
            f"{self.ours.gap:.1%}" if self.ours.stopped else "0, proven",
            overrun(self.ours, self.limit),
            "" if self.peer is None else overrun(self.peer, self.limit),
            f"**no**: {self.wrong}" if self.wrong else "yes",
        )


def overrun(outcome: Outcome, limit: float) -> str:
    """Return by how many seconds the limit was passed."""
    if not outcome.stopped:
        return "finished"
    return f"{outcome.seconds - limit:+.2f} s"


def measure(prepare: Callable, run: Callable, task, limit: float) -> Outcome:
    """Return what a contender finds within the limit."""
    from benchmarks.trees.optimal_tasks import relative_gap, wrong_rows

    job = prepare(task, seconds=limit)
    start = time.perf_counter()
    found = run(job, task)
    seconds = time.perf_counter() - start
    gap = relative_gap(task, found) if hasattr(found.model, "certificate_") else math.nan
    return Outcome(int(wrong_rows(task, found)), seconds, found.stopped, gap)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees.time_limit", description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="set", help=f"names of sets, or {LARGE}; all by default")
    parser.add_argument("--depth", type=int, default=4, help="of the trees (default: 4)")
    parser.add_argument("--seconds", type=float, default=60.0, help="the limit (default: 60)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads of ours")
    parser.add_argument("--no-peers", action="store_false", dest="peers", help="do not run ConTree")
    parser.add_argument("--quick", action="store_true", help="tiny data: tries the command, measures nothing")
    asked = parser.parse_args(arguments)
    threads = limit_threads(asked.threads)

    # Only now: the libraries behind these imports read the number of threads when they are loaded.
    from benchmarks import report
    from benchmarks.runner import MissingDataError
    from benchmarks.trees import optimal
    from benchmarks.trees.optimal_tasks import contree_set, mixture

    if unknown := set(asked.sets) - {*optimal.SETS, LARGE}:
        parser.error(f"no set is called {', '.join(sorted(unknown))}")
    ours = partial(optimal.sixfold, threads=threads)
    lines = []
    for name in asked.sets or [*optimal.SETS, LARGE]:
        print(f"searching {name} ...", file=sys.stderr, flush=True)
        make = partial(mixture, 100_000, 50, 3) if name == LARGE else partial(contree_set, name, asked.depth)
        try:
            task = make(asked.quick)
        except MissingDataError as reason:
            print(f"left out: {reason}", file=sys.stderr)
            continue
        found = measure(ours, optimal.search, task, asked.seconds)
        peer = None
        if asked.peers and name != LARGE:
            peer = measure(optimal.contree, optimal.contree_search, task, asked.seconds)
        title = LARGE_TITLE if name == LARGE else f"{optimal.SETS[name]}, depth {asked.depth}"
        lines.append(Line(name, title, asked.seconds, found, peer))
    facts = report.machine_facts(threads) | {"limit": f"{asked.seconds:g} s; ConTree has one thread"}
    text = "\n".join(
        [
            "# The fewest errors within a limit of time",
            "",
            *(f"- {name}: {fact}" for name, fact in facts.items()),
            "",
            *report.table([HEAD, *(line.cells() for line in lines)]),
            "",
        ]
    )
    if not asked.quick:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        report.write_whole(RESULTS, text)
    print(text)
    return int(any(line.wrong for line in lines))


if __name__ == "__main__":
    sys.exit(main())
