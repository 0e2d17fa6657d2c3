"""``python -m benchmarks [name ...] [--full] [--quick] [--threads 2]``: measure, print and keep the table.

A name is that of a family (``trees``), of a file (``linear.regression``) or of a case (``lasso``). Without
one, all is measured that half an hour is enough for, and with ``--full`` what takes longer, too. The table of
the run goes to ``benchmarks/results/``; ``docs/benchmarks.md`` and the README's short table are renewed,
unless the run is quick. The exit code says whether the measuring worked, not whether sixfold was fast enough:
the last lines of the table do.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="sixfold beside its peers.")
    parser.add_argument("names", nargs="*", metavar="name", help="families, files or cases; all by default")
    parser.add_argument("--full", action="store_true", help="also what takes minutes a case")
    parser.add_argument("--quick", action="store_true", help="tiny data: tries the harness, measures nothing")
    parser.add_argument("--threads", type=int, default=2, help="threads of every contender (default: 2)")
    options = parser.parse_args(arguments)
    threads = limit_threads(options.threads)

    # Only now: the libraries behind these imports read the number of threads when they are loaded.
    from benchmarks import page, report
    from benchmarks.families import chosen_cases, measured_means
    from benchmarks.runner import run_case

    try:
        cases = chosen_cases(options.names, options.full or options.quick)
    except ValueError as unknown:
        parser.error(str(unknown))
    facts = report.machine_facts(threads)
    rows = []
    for case in cases:
        print(f"measuring {case.name} ...", end="", file=sys.stderr, flush=True)
        begun = time.perf_counter()
        rows += run_case(case, options.quick)
        print(f" {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    rows += measured_means(rows)
    report.write(rows, facts, ROOT / "benchmarks" / "results", options.quick)
    if not options.quick:
        page.update(ROOT / "docs" / "benchmarks.md", ROOT / "README.md", rows, facts)
    print(report.markdown(rows, facts, options.quick))
    return 0


def limit_threads(wanted: int) -> int:
    """Give this process and its children that many threads; return how many they really have."""
    if hasattr(os, "sched_setaffinity"):
        # TBB, which scikit-learn-intelex runs on, heeds no variable: it counts its processors.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:wanted])
        wanted = len(os.sched_getaffinity(0))
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(wanted)
    return wanted


if __name__ == "__main__":
    sys.exit(main())
