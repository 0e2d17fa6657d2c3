"""``python -m benchmarks.scale [--rows N] [--only ...] [--rounds K] [--growth]``: fits to files, and peers.

Each fit has a process of its own, and its file is dropped from memory first; ours and theirs take turns. The
table says how many times longer a peer takes than ours in the same round, how much memory the processes of
each take at most, how far its objective is above the best of the run, by the judge of ``tasks.py``, and how
ours compares with decoding the file once and reading as many bytes as the later passes touch.

``--growth`` measures sixfold alone, from 100,000 rows to 20,000,000. Figures go to
``docs/figures/scale.json``; those of fits that were not asked for are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.__main__ import ROOT, limit_threads
from benchmarks.report import table, write_whole
from benchmarks.scale import made_table
from benchmarks.scale.processes import FailedError, run
from benchmarks.scale.tasks import LINEAR, NAMES, objective

KEPT = ROOT / "docs" / "figures" / "scale.json"
SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 20_000_000)
COLUMNS_BYTES = 8 * len(made_table.COLUMNS)
PEERS = {
    "Spark MLlib": ("spark", "spark_peer", ("cold",)),
    "Spark MLlib, rows in memory": ("spark", "spark_peer", ("held",)),
    "dask-ml": ("dask-ml", "dask_peer", ("cold",)),
    "dask-ml, rows in memory": ("dask-ml", "dask_peer", ("held",)),
}
WANTED = {"spark": ("pyspark", "numpy"), "dask-ml": ("dask-ml", "pyarrow")}
HELD_MARK = "rows in memory"  # compared with sixfold's fit to an array
HELD = f"sixfold, {HELD_MARK}"
OURS = {"sixfold": (), HELD: ("held",)}
HINGELESS = "dask-ml"  # has no support vector machine of its own
HEAD = (
    "fit",
    "by",
    "seconds",
    "sixfold is faster by",
    "peak memory",
    "objective above the best",
    "certified gap",
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="Fits to files.")
    parser.add_argument("--rows", type=number, default=1_000_000)
    parser.add_argument("--from", type=number, default=0, dest="least", help="least rows of --growth")
    parser.add_argument("--only", nargs="+", metavar="TASK", choices=NAMES, default=NAMES)
    parser.add_argument("--peers", nargs="*", metavar="PEER", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--growth", action="store_true", help="sixfold alone, on all sizes up to --rows")
    options = parser.parse_args(arguments)
    limit_threads(2)
    made_table.table(100_000)  # what warms up
    for task in options.only:
        if options.growth:
            for rows in filter(lambda size: options.least <= size <= options.rows, SIZES):
                keep("growth", [growth(task, rows, options.rounds)])
        else:
            keep("beside peers", beside_peers(task, options.rows, options.peers, options.rounds))
    print("\n".join(shown(json.loads(KEPT.read_text(encoding="utf-8")).get("beside peers", []))))
    return 0


def number(text: str) -> int:
    """Read 20000000 and 2e7."""
    return int(float(text))


# -- measuring -----------------------------------------------------------------------------------------------


def ours(path: Path, task: str, *asked: str) -> dict[str, Any]:
    return run([sys.executable, "-m", "benchmarks.scale.ours", str(path), task, *asked])


def theirs(peer: str, path: Path, task: str) -> dict[str, Any]:
    home, script, mode = PEERS[peer]
    return run([python_of(home), "-m", f"benchmarks.scale.{script}", str(path), task, *mode])


def plain_reads(path: Path, wanted: float) -> dict[str, Any]:
    found = run([sys.executable, "-m", "benchmarks.scale.plain_reads", str(path), str(wanted)])
    return {**found, "seconds": found["decode"] + found["read"]}


def growth(task: str, rows: int, rounds: int) -> dict[str, Any]:
    """Return the median time of fits to so many rows, and the largest peak."""
    path = made_table.table(rows)
    load = os.getloadavg()[0]
    fits = [ours(path, task) for _ in range(rounds)]
    found = record(task, rows, "sixfold", fits)
    print(json.dumps(found), file=sys.stderr, flush=True)
    return {**found, "load": load}


def beside_peers(task: str, rows: int, peers: Sequence[str], rounds: int) -> list[dict[str, Any]]:
    """Return a record of sixfold, one of each peer that has the task, and one of plain reads."""
    path = made_table.table(rows)
    chosen = [
        peer for peer in peers if task in LINEAR and not (task == "hinge" and peer.startswith(HINGELESS))
    ]
    beside = ("sixfold", "plain reads", *([HELD] if any(HELD_MARK in peer for peer in chosen) else []))
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in (*beside, *chosen)}
    for _ in range(rounds):
        for name, fits in runs.items():
            try:
                if name in OURS:
                    fits.append(ours(path, task, *OURS[name]))
                elif name == "plain reads":
                    fits.append(plain_reads(path, runs["sixfold"][-1]["passes"] * COLUMNS_BYTES * rows))
                else:
                    fits.append(theirs(name, path, task))
            except FailedError as error:
                print(error, file=sys.stderr, flush=True)
                continue
            print(name, task, rows, {**fits[-1], "coef": None}, file=sys.stderr, flush=True)
    records = [
        record(task, rows, name, fits, runs[HELD if HELD_MARK in name else "sixfold"])
        for name, fits in runs.items()
        if fits
    ]
    if task in LINEAR:
        judge(path, task, records, runs)
    return records


def record(
    task: str, rows: int, name: str, fits: list[dict[str, Any]], beside: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return what is kept of the fits of one contender, with the ratio to ours of the same round."""
    found = {"task": task, "rows": rows, "by": name, "rounds": len(fits)}
    found["seconds"] = round(statistics.median(fit["seconds"] for fit in fits), 3)
    found["peak"] = max(fit["peak"] for fit in fits)
    for key in ("busy", "decode", "read"):
        if key in fits[0]:
            found[key] = round(statistics.median(fit[key] for fit in fits), 3)
    for key in ("passes", "solver", "iterations", "gap", "converged", "certificate"):
        if fits[-1].get(key) is not None:
            found[key] = fits[-1][key]
    if beside and name not in OURS:
        ratios = [fit["seconds"] / own["seconds"] for fit, own in zip(fits, beside, strict=False)]
        found["ratio"] = round(statistics.median(ratios), 3)
    return found


def judge(
    path: Path, task: str, records: list[dict[str, Any]], runs: dict[str, list[dict[str, Any]]]
) -> None:
    """Add how far objectives are above the best of the run, relatively."""
    for one in records:
        fit = runs[one["by"]][-1]
        if "coef" in fit:
            one["objective"] = objective(path, LINEAR[task], np.array(fit["coef"]), fit["intercept"])
    best = min(one["objective"] for one in records if "objective" in one)
    for one in records:
        if "objective" in one:
            one["above the best"] = one["objective"] / best - 1.0


@cache
def python_of(home: str) -> str:
    """Return the Python of an environment in ``build/``, made where it is not there yet."""
    folder = ROOT / "build" / f"venv-{home}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *WANTED[home]], check=True)
        (folder / "ready").touch()
    return str(python)


# -- keeping and showing ------------------------------------------------------------------------------------


def keep(section: str, records: list[dict[str, Any]]) -> None:
    """Put records in the place of older ones of the same fit, or behind them."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    place = {_key(one): one for one in kept.get(section, [])} | {_key(one): one for one in records}
    order = sorted(place.values(), key=lambda one: ((*NAMES, one["task"]).index(one["task"]), one["rows"]))
    write_whole(KEPT, _lines({**kept, section: order}))


def _key(one: dict[str, Any]) -> tuple[Any, ...]:
    return one["task"], one["rows"], one["by"]


def _lines(kept: dict[str, list[dict[str, Any]]]) -> str:
    """Return JSON with a record a line."""
    sections = (
        f'"{name}": [\n' + ",\n".join(json.dumps(one) for one in records) + "\n]"
        for name, records in kept.items()
    )
    return "{\n" + ",\n".join(sections) + "\n}\n"


def shown(records: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [HEAD]
    for one in records:
        lines.append(
            (
                f"{one['task']}, {one['rows']:,} rows",
                one["by"],
                f"{one['seconds']:.3g}",
                f"{one['ratio']:.3g}x" if "ratio" in one else "",
                f"{one['peak'] / 1e9:.2f} GB",
                f"{one['above the best']:.1e}" if "above the best" in one else "",
                f"{one['gap']:.0e}" if "gap" in one else "",
            )
        )
    return table(lines)


if __name__ == "__main__":
    sys.exit(main())
