"""``python -m benchmarks.gauntlet [--quick] [--learners ...] [--sets ...] [--families ...] ...``.

The fits are shuffled with a fixed seed, so that a run cut short has seen a bit of everything. Each is written
to ``benchmarks/results/gauntlet.jsonl`` at once; ``--resume`` goes on with a file and ``--again``
repeats what was wrong in one. The exit code is 1 where a fit is not certified, not verified or too slow.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

from benchmarks.__main__ import ROOT, THREAD_VARIABLES

RESULTS = ROOT / "benchmarks" / "results" / "gauntlet.jsonl"


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gauntlet", description=__doc__)
    parser.add_argument("--learners", nargs="+", metavar="NAME", help="names of classes; all by default")
    parser.add_argument("--settings", nargs="+", metavar="TEXT", help="as 'hinge l2' or 'C=100': any part")
    parser.add_argument("--sets", nargs="*", metavar="NAME", help="real tables; with this, only those named")
    parser.add_argument("--families", nargs="*", metavar="NAME", help="synthetic tables, as 'wide'; likewise")
    parser.add_argument("--rows", type=int, default=3_000, help="most rows of a real table")
    parser.add_argument("--fits", type=int, help="most fits in all")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="most minutes in all")
    parser.add_argument("--seconds", type=float, default=120.0, help="most of a fit, of the processor")
    parser.add_argument("--no-peers", action="store_false", dest="peers", help="do not time scikit-learn")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes, of one thread each")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the records go")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="go on with these records")
    parser.add_argument("--again", type=Path, metavar="FILE", help="repeat what was wrong in these")
    parser.add_argument("--quick", action="store_true", help="400 fits of at most 500 rows: two minutes")
    found = parser.parse_args(arguments)
    if found.quick:
        found.rows, found.fits = min(found.rows, 500), found.fits or 400
        found.seconds = min(found.seconds, 20.0)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = options(arguments)
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(max((os.cpu_count() or 1) // chosen.jobs, 1))

    # Only now: the libraries behind these imports read the number of threads when they are loaded.
    from benchmarks.gauntlet import fits, report
    from benchmarks.report import write_whole

    jobs = [job for job in fits.all_jobs(chosen.rows) if _asked(job, chosen)]
    jobs = _mixed(jobs)
    if chosen.again:
        wrong = {record["key"] for record in _read(chosen.again) if report.wrong(record)}
        jobs = [job for job in jobs if job.key in wrong]
    jobs = jobs[: chosen.fits]
    output = chosen.resume or chosen.output
    records = _read(chosen.resume) if chosen.resume else []
    done = {record["key"] for record in records}
    jobs = [job for job in jobs if job.key not in done]
    end = time.monotonic() + 60 * chosen.minutes
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("a" if chosen.resume else "w", encoding="utf-8") as file:
        running = fits.run(jobs, chosen.jobs, chosen.seconds, chosen.peers)
        try:
            for record in running:
                records.append(record)
                print(json.dumps(record), file=file, flush=True)
                if report.wrong(record):
                    count = len(records) - len(done)
                    print(f"{count} of {len(jobs)}: {report.line(record)}", file=sys.stderr, flush=True)
                if time.monotonic() > end:
                    break
        except KeyboardInterrupt:
            print("\nstopped; --resume goes on", file=sys.stderr)
        finally:
            running.close()
    text = report.text(records)
    write_whole(output.with_suffix(".md"), text)
    print(text)
    return int(any(map(report.wrong, records)))


def _mixed(jobs: list) -> list:
    """Return the jobs in a random order in which the lines of the table take turns."""
    random.Random(0).shuffle(jobs)
    seen: Counter[str] = Counter()
    turns = []
    for job in jobs:
        turns.append(seen[job.setting.group])
        seen[job.setting.group] += 1
    return [job for _, job in sorted(zip(turns, jobs, strict=True), key=itemgetter(0))]


def _asked(job, chosen) -> bool:
    """Return whether the options ask for this fit."""
    setting = job.setting
    if chosen.learners and setting.learner not in chosen.learners:
        return False
    if chosen.settings and not any(f"{part} " in f"{setting.name} " for part in chosen.settings):
        return False
    if chosen.sets is None and chosen.families is None:
        return True
    named = chosen.families if job.preparation == "synthetic" else chosen.sets
    return named is not None and (not named or job.table in named)


def _read(path: Path) -> list[dict]:
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    sys.exit(main())
