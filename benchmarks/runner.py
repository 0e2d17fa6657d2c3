"""Measures contenders at one task side by side and returns ratios.

The method, for each case:

1.  The data are made once. Every contender prepares (imports, options, a tolerance that reaches
    the accuracy demanded) and runs twice: compilers and caches are warm.
2.  Rounds A B C A B C ...: a change in the machine's speed meets all contenders alike. A contender
    takes part in as many rounds as fit into ``SECONDS``, from ``FEWEST`` to ``ROUNDS``; a run
    shorter than ``SHORTEST`` is repeated within its turn. One that takes ``SLOW`` seconds runs
    once in all.
3.  The ratio of a peer is the median over its rounds of (its time / sixfold's time in the same
    round), the spread is given by the quartiles.
    Where a contender gave up at a limit of time, the ratio is "at least".
4.  The answers of the last timed runs are judged on the data. One whose error is above what the
    case demands is marked: its ratio compares unequal work. Where the exact answer is not known,
    errors count from the best answer of the run, and sixfold's has to be as good as each peer's.
5.  The peak of memory is taken in a child process, see :mod:`benchmarks.memory`.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.memory import extra_memory

ROUNDS = 15
FEWEST = 3
SECONDS = 5.0
SLOW = 10.0
SHORTEST = 0.02
# Idle workers of OpenBLAS spin for some 25 ms before they sleep; the next contender must not share
# its cores with them.
PAUSE = 0.05

Clock = Callable[[], float]


class MissingDataError(Exception):
    """The data of a case are not on this machine; the case is left out."""


def nothing(result: Any) -> str:
    """Remark nothing about a result."""
    return ""


def finished(result: Any) -> bool:
    """Say of any result that it was not cut short."""
    return False


@dataclass(frozen=True)
class Contender:
    """One way to do a task.

    Attributes
    ----------
    name : str
    prepare : callable
        Maps the data to a job, outside the timing: imports, choice of options. An ImportError
        means that the contender is not installed.
    run : callable
        Maps the job and the data to a result; this is what is timed. The job and this function
        are sent to a child process, so pickle must know them.
    answer : callable
        Maps the result to what the case judges.
    remark : callable
        Maps the result to what the table should say about it: the options chosen, a fallback.
    stopped : callable
        Maps the result to whether a limit of time ended the work: it would have taken longer.
    """

    name: str
    prepare: Callable[[Any], Any]
    run: Callable[[Any, Any], Any]
    answer: Callable[[Any], Any]
    remark: Callable[[Any], str] = nothing
    stopped: Callable[[Any], bool] = finished


@dataclass(frozen=True)
class Case:
    """A task, who does it, and what is required.

    Attributes
    ----------
    name, title : str
        What one types, and what the table says.
    data : callable
        Makes the data, small if its argument ``quick`` is true; pickle must know it. The table
        ``X`` of the data is what memory is compared with. A :class:`MissingDataError` means that the
        case cannot be measured here.
    contenders : sequence of Contender
        sixfold first.
    error : callable
        Maps data and answer to a number that is 0 for the exact answer.
    accuracy : float
        The error above which an answer is marked.
    bars : mapping
        Peer to the ratio that is required.
    memory_bar : float, optional
        What sixfold's extra memory must stay below, as a fraction of ``X``.
    with_memory : bool
        Whether memory is measured.
    slack : float, optional
        Given where the exact answer is not known: ``error`` is then a number that is smaller for a
        better answer, counted from the smallest of the run, and a bar is met only if sixfold's is
        above the peer's by no more than this.
    clock : callable
        The seconds that count: those that pass, or ``time.process_time`` for those of the processor.
    long : bool
        Whether only a full run measures it: it takes minutes, or says much the same as a shorter case.
    """

    name: str
    title: str
    data: Callable[[bool], Any]
    contenders: Sequence[Contender]
    error: Callable[[Any, Any], float]
    accuracy: float
    bars: Mapping[str, float] = field(default_factory=dict)
    memory_bar: float | None = None
    with_memory: bool = True
    slack: float | None = None
    clock: Clock = time.perf_counter
    long: bool = False

    def __post_init__(self) -> None:
        unknown = set(self.bars) - {peer.name for peer in self.contenders[1:]}
        if unknown:
            raise ValueError(f"Case {self.name!r} has bars for {sorted(unknown)}, which are not its peers.")


@dataclass(frozen=True)
class Row:
    """What was found out about one contender in one case, as plain data.

    ``ratio`` is how many times faster sixfold is; ``memory`` a fraction of X; ``bar`` what is
    required of the ratio (of the memory in sixfold's own row), ``met`` whether it was reached,
    None where there is no bar or it could not be measured. ``at_least`` is true where the contender
    was stopped before it had finished. ``installed`` is false where the contender, or the data of the
    case, are not on this machine; ``remark`` then says which.
    """

    case: str
    contender: str
    installed: bool = True
    ratio: float | None = None
    at_least: bool = False
    quartiles: tuple[float, float] | None = None
    rounds: int = 0
    error: float | None = None
    accurate: bool = False
    memory: float | None = None
    bar: float | None = None
    met: bool | None = None
    remark: str = ""


@dataclass
class _Entry:
    """A contender that takes part, and its times (seconds a run) so far."""

    contender: Contender
    job: Any
    rounds: int = 0
    loops: int = 1
    times: list[float] = field(default_factory=list)
    result: Any = None


def run_case(case: Case, quick: bool = False, clock: Clock | None = None) -> list[Row]:
    """Measure a case, by its own clock unless one is given; return a row for every contender."""
    clock = clock or case.clock
    try:
        data = case.data(quick)
    except MissingDataError as reason:
        return [_absent(case, contender.name, f"no data ({reason})") for contender in case.contenders]
    sixfold, *peers = case.contenders
    ours = _Entry(sixfold, sixfold.prepare(data))
    entries = [ours, *(_prepare(peer, data) for peer in peers)]
    present = [entry for entry in entries if isinstance(entry, _Entry)]
    for entry in present:
        _warm_up(entry, data, clock, FEWEST if quick else ROUNDS)
    ours.rounds = max(entry.rounds for entry in present)
    for turn in range(ours.rounds):
        for entry in present:
            if turn < entry.rounds:
                entry.result = None
                entry.times.append(_seconds(entry, data, clock))
    errors = _errors(case, present, data)
    rows = [
        _row(case, entry, ours, errors[contender.name], data, quick)
        if isinstance(entry, _Entry)
        else _absent(case, contender.name, f"not installed ({entry})")
        for contender, entry in zip(case.contenders, entries, strict=True)
    ]
    return _judge_bars(rows, case.slack)


def _prepare(peer: Contender, data: Any) -> _Entry | ImportError:
    try:
        return _Entry(peer, peer.prepare(data))
    except ImportError as error:
        return error


def _warm_up(entry: _Entry, data: Any, clock: Clock, most: int) -> None:
    """Run until caches are warm, and plan rounds and loops from the last time."""
    seconds = _seconds(entry, data, clock)
    if seconds >= SLOW:
        entry.times.append(seconds)  # long enough to be its one round: what was cold does not matter
        return
    seconds = _seconds(entry, data, clock)
    entry.loops = math.ceil(SHORTEST / seconds) if 0 < seconds < SHORTEST else 1
    fitting = int(SECONDS / max(seconds * entry.loops, SHORTEST))
    entry.rounds = min(max(fitting, FEWEST), most)


def _seconds(entry: _Entry, data: Any, clock: Clock) -> float:
    """Return the seconds of one run and keep its result."""
    gc.collect()
    time.sleep(PAUSE)
    run, job = entry.contender.run, entry.job
    start = clock()
    for _ in range(entry.loops):
        entry.result = run(job, data)
    return (clock() - start) / entry.loops


def _errors(case: Case, entries: list[_Entry], data: Any) -> dict[str, float]:
    """Return the error of each contender's last answer."""
    errors = {
        entry.contender.name: case.error(data, entry.contender.answer(entry.result)) for entry in entries
    }
    if case.slack is None:
        return errors
    best = min(errors.values())
    return {name: error - best for name, error in errors.items()}


def _row(case: Case, entry: _Entry, ours: _Entry, error: float, data: Any, quick: bool) -> Row:
    """Return what was found out about a contender that took part."""
    name, run = entry.contender.name, entry.contender.run
    # The peer may have taken part in fewer rounds than sixfold; it is paired with those.
    ratios = [theirs / own for theirs, own in zip(entry.times, ours.times, strict=False)]
    memory = None
    if case.with_memory:
        memory = extra_memory(case.data, run, entry.job, quick) / data.X.nbytes
    return Row(
        case.title,
        name,
        ratio=statistics.median(ratios),
        at_least=entry.contender.stopped(entry.result),
        quartiles=_quartiles(ratios),
        rounds=len(ratios),
        error=error,
        accurate=error <= case.accuracy,
        memory=memory,
        bar=case.memory_bar if entry is ours else case.bars.get(name),
        remark=entry.contender.remark(entry.result),
    )


def _absent(case: Case, name: str, reason: str) -> Row:
    bar = case.memory_bar if name == case.contenders[0].name else case.bars.get(name)
    return Row(case.title, name, installed=False, bar=bar, remark=reason)


def _quartiles(values: list[float]) -> tuple[float, float] | None:
    if len(values) < 3:
        return None
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def _judge_bars(rows: list[Row], slack: float | None) -> list[Row]:
    """Fill in ``met``. Nothing is met by an answer of ours that is too inaccurate or was cut short."""
    ours = rows[0]

    def met(row: Row) -> bool | None:
        if row.bar is None or not row.installed:
            return None
        reached = row.memory < row.bar if row is ours else row.ratio >= row.bar
        as_good = slack is None or ours.error <= row.error + slack
        return ours.accurate and not ours.at_least and as_good and reached

    return [replace(row, met=met(row)) for row in rows]
