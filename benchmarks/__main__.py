"""``python -m benchmarks [name ...] [--quick] [--threads 2]``: measure, print and keep the table.

A name is that of a file (``linear.regression``: all its cases) or of a case (``lasso``). The table
goes to ``benchmarks/results/``. The exit code says whether the measuring worked, not whether
sixfold was fast enough: the last lines of the table do.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

FILES = ("linear.regression", "linear.classifiers", "neighbors.cases", "trees.cases", "kernel.cases")
RESULTS = Path(__file__).parent / "results"
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="sixfold beside its peers.")
    parser.add_argument("names", nargs="*", metavar="name", help="files or cases to run; all by default")
    parser.add_argument("--quick", action="store_true", help="tiny data: tries the harness, measures nothing")
    parser.add_argument("--threads", type=int, default=2, help="threads of every contender (default: 2)")
    options = parser.parse_args(arguments)
    threads = limit_threads(options.threads)

    # Only now: the libraries behind these imports read the number of threads when they are loaded.
    from benchmarks import report
    from benchmarks.runner import run_case

    known = [(file, case) for file in FILES for case in importlib.import_module(f"benchmarks.{file}").CASES]
    unknown = set(options.names) - {name for file, case in known for name in (file, case.name)}
    if unknown:
        choice = ", ".join([*FILES, *(case.name for _, case in known)])
        parser.error(f"no file or case is called {', '.join(sorted(unknown))}; there are {choice}")
    facts = report.machine_facts(threads)
    rows = []
    for file, case in known:
        if not options.names or {file, case.name} & set(options.names):
            print(f"measuring {case.name} ...", file=sys.stderr, flush=True)
            rows += run_case(case, options.quick)
    report.write(rows, facts, RESULTS, options.quick)
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
