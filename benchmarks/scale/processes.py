"""Runs a fit in a process of its own and says how much memory it took at most.

The process prints what it found as one line of JSON, the last of its output. Meanwhile its own high-water
mark (VmHWM) and those of its children are read from ``/proc`` ten times a second: the machine of Java is a
child of the Python that drives Spark, workers are children of the client that drives them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.__main__ import ROOT

PROC = Path("/proc")
PAUSE = 0.1
WARMING = "benchmarks.scale.warm_memory"  # its memory is not that of a fit


class FailedError(Exception):
    """The process ended without a result; the end of what it wrote says why."""


def run(command: Sequence[str], seconds: float = 3600.0) -> dict[str, Any]:
    """Return what the process found, with the sum of the peaks of all its processes as ``peak``, in bytes."""
    peaks: dict[int, int] = {}
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=complaints)
        end = time.monotonic() + seconds
        try:
            while process.poll() is None and time.monotonic() < end:
                for pid in (process.pid, *descendants(process.pid)):
                    peaks[pid] = max(peak(pid), peaks.get(pid, 0))
                time.sleep(PAUSE)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
        said.seek(0)
        complaints.seek(0)
        lines = said.read().strip().splitlines()
        if process.returncode or not lines:
            raise FailedError(
                f"{' '.join(command)} ended with {process.returncode}: {complaints.read()[-2000:]}"
            )
    return {**json.loads(lines[-1]), "peak": sum(peaks.values())}


def descendants(pid: int) -> list[int]:
    """Return the processes that this one started, and those that they started."""
    parents: dict[int, list[int]] = {}
    for entry in os.scandir(PROC):
        if entry.name.isdigit() and WARMING not in _read(Path(entry.path) / "cmdline"):
            fields = _read(Path(entry.path) / "stat").rpartition(")")[2].split()
            if fields:
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    reached = [pid]
    while reached:
        reached = [child for one in reached for child in parents.get(one, [])]
        found += reached
    return found


def peak(pid: int | str = "self") -> int:
    """Return the most bytes that a process had in memory so far, 0 if it is no more."""
    kilobytes = re.search(r"VmHWM:\s+(\d+)", _read(PROC / str(pid) / "status"))
    return int(kilobytes[1]) * 1024 if kilobytes else 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has ended meanwhile
        return ""
