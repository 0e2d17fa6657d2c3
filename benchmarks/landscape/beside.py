"""``python -m benchmarks.landscape.beside [--base REV] [--only TEXT ...]``: an old build beside this one.

The source of a revision (the last commit by default) is built into ``build/base``, where it has an
environment of its own that borrows all other packages from this one. Two processes of one thread then fit the
landscape's tables of up to a million numbers in turns; what counts is time of the processor, the shortest run
of each. What the old build did faster by more than the noise is listed at the end, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.__main__ import ROOT, THREAD_VARIABLES
from benchmarks.landscape.settings import SETTINGS, Setting
from benchmarks.landscape.tables import SHAPES, Table, make

BASE = ROOT / "build" / "base"
MOST = 1_000_000  # numbers of a table
ROUNDS = 4
SHORTEST = 0.02  # seconds of a turn
SLOWER = 0.9  # old / new below this is more than noise, if it is again in as many more rounds


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.landscape.beside", description=__doc__)
    parser.add_argument(
        "--base", default="HEAD", help="the revision that is built (default: the last commit)"
    )
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="settings with one of these in their names")
    chosen = parser.parse_args(arguments)
    python, commit = build(chosen.base)
    cases = [
        (shape, setting)
        for shape in SHAPES
        for setting in SETTINGS
        if shape.values <= MOST
        and setting.suits(shape)
        and (not chosen.only or any(text in setting.name for text in chosen.only))
    ]
    sides = [Side(python), Side(Path(sys.executable))]
    ratios = []
    try:
        for shape, setting in cases:
            ratio = _compared(sides, SHAPES.index(shape), SETTINGS.index(setting))
            ratios.append((ratio, f"{setting.name}, {shape.name}"))
            print(f"{ratio:6.2f}  {ratios[-1][1]}", file=sys.stderr, flush=True)
    finally:
        for side in sides:
            side.close()
    slower = sorted(one for one in ratios if one[0] < SLOWER)
    print(f"Time of {commit} over that of the working tree; below 1 it was faster before.")
    for ratio, name in slower:
        print(f"{ratio:6.2f}  {name}")
    mean = statistics.geometric_mean(ratio for ratio, _ in ratios)
    print(f"{len(ratios)} cases, {len(slower)} slower than before, geometric mean {mean:.2f}")
    return int(bool(slower))


def build(revision: str) -> tuple[Path, str]:
    """Return the Python of an environment with sixfold as of a revision, and its commit."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", revision], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    folder = BASE / commit
    python = folder / "venv" / "bin" / "python"
    if not (folder / "ready").exists():
        source = folder / "source"
        source.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", source], input=archive.stdout, check=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder / "venv"], check=True)
        # A folder that a .pth file names is searched, and .pth files in it are not obeyed: the working tree's
        # sixfold is not found there.
        site = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        Path(site, "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        install = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
        native = "--config-settings=cmake.define.SIXFOLD_LEVELS=native"
        subprocess.run([python, "-m", "pip", *install, native, source], check=True, env=tools)
        (folder / "ready").touch()
    return python, commit


class Side:
    """A process in which one of the two builds fits."""

    def __init__(self, python: Path) -> None:
        threads = dict.fromkeys(THREAD_VARIABLES, "1")
        command = [str(python), "-m", "benchmarks.landscape.beside_worker"]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **threads},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, shape: int, setting: int) -> float:
        """Return the seconds of the shortest of some fits."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([shape, setting]), file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def _compared(sides: list[Side], shape: int, setting: int) -> float:
    """Return how many times longer the first side takes; one that seems faster is measured twice."""
    best = [float("inf")] * len(sides)
    for _ in range(2):
        for _ in range(ROUNDS):
            best = [min(least, side.seconds(shape, setting)) for least, side in zip(best, sides, strict=True)]
        if best[0] >= SLOWER * best[1]:
            break
    return best[0] / best[1]


def serve(asked: Iterable[str]) -> Iterator[float]:
    """Fit what is asked for, one case a line, and answer with the seconds of the shortest fit."""
    warnings.simplefilter("ignore")
    loops: dict[str, int] = {}
    for line in asked:
        shape, number = json.loads(line)
        setting = SETTINGS[number]
        table = make(SHAPES[shape], setting.classes)
        if line not in loops:
            _fit(setting, table)
            loops[line] = max(int(SHORTEST / max(_fit(setting, table), 1e-5)), 1)
        yield min(_fit(setting, table) for _ in range(loops[line]))


def _fit(setting: Setting, table: Table) -> float:
    """Return the seconds of one fit, with answers where they count."""
    start = time.process_time()
    model = setting.model().fit(table.X, table.y)
    if setting.work == "answer":
        model.predict(table.queries)
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
