"""``python -m benchmarks.landscape [--only TEXT ...] [--shapes TEXT ...] [--threads 1 2] [--small]``.

Measures every setting on every table that suits it, prints the cases from the worst on, and keeps them in
``docs/figures/landscape.json`` (or ``--output``), from which ``docs/landscape.md`` and its picture are made.
Cases that were not asked for are kept. ``--small`` leaves out tables of more than a million numbers.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.__main__ import ROOT, THREAD_VARIABLES
from benchmarks.landscape import page
from benchmarks.report import write_whole

KEPT = ROOT / "docs" / "figures" / "landscape.json"
PAGE = ROOT / "docs" / "landscape.md"
SMALL = 1_000_000  # numbers

Record = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.landscape", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="settings with one of these in their names")
    parser.add_argument("--shapes", nargs="+", metavar="TEXT", help="tables, as '100 x 4'")
    parser.add_argument("--threads", nargs="+", type=int, default=[1], help="1 counts time of the processor")
    parser.add_argument("--small", action="store_true", help="no table of more than a million numbers")
    parser.add_argument("--output", type=Path, default=KEPT, help="where the records are kept")
    chosen = parser.parse_args(arguments)
    kept = _read(chosen.output)
    for threads in chosen.threads:
        for record in _measured(threads, chosen):
            kept[_key(record)] = record
            print(page.line(record), file=sys.stderr, flush=True)
            write_whole(chosen.output, _lines(list(kept.values())))
    if chosen.output == KEPT:
        write_whole(PAGE, page.text(list(kept.values())))
    print(page.summary(list(kept.values())))
    return 0


def _measured(threads: int, chosen: argparse.Namespace) -> Iterator[Record]:
    """Yield the records of the cases, measured in a process of so many threads."""
    from benchmarks.landscape.measure import serve

    context = multiprocessing.get_context("spawn")
    own, other = context.Pipe()
    most = SMALL if chosen.small else math.inf
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    process = context.Process(target=serve, args=(other, threads, chosen.only, chosen.shapes, most))
    try:
        process.start()
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    other.close()
    try:
        while True:
            yield own.recv()
    except EOFError:
        process.join()
        if process.exitcode:
            raise RuntimeError("The process that measures has failed.") from None
    finally:
        process.kill()


def _key(record: Record) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("threads", "setting", "rows", "columns", "sparse"))


def _read(path: Path) -> dict[tuple[Any, ...], Record]:
    if not path.exists():
        return {}
    return {_key(record): record for record in json.loads(path.read_text(encoding="utf-8"))}


def _lines(records: list[Record]) -> str:
    return "[\n" + ",\n".join(json.dumps(record) for record in records) + "\n]\n"


if __name__ == "__main__":
    sys.exit(main())
