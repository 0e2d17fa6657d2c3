"""One case of the landscape: a setting on a table, ours beside each peer, in a process of so many threads.

1.  Everyone fits twice, so that caches are warm. A peer keeps its own tolerance where its answer is within
    ``ACCURACY`` of the best; else it gets the loosest that is. One that never is, or takes too long on the
    way, is marked: it does less than ours.
2.  ``ROUNDS`` rounds in turns; a run shorter than ``SHORTEST`` is repeated within its turn. Of each the
    shortest counts, and of the peers the fastest. With one thread that is time of the processor.
"""

from __future__ import annotations

import gc
import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.landscape.settings import SETTINGS, Setting
from benchmarks.landscape.tables import SHAPES, Shape, Table, make

ACCURACY = 1e-4
TIGHT = 1e-10  # of our fit that answers are compared with
TOLERANCES = (None, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
ROUNDS = 3
SHORTEST = 0.02
LONG = 5.0  # seconds of a fit that is not repeated, and of one after which no tighter tolerance is tried

Record = dict[str, Any]


def serve(
    pipe: Any, threads: int, only: Sequence[str] | None, shapes: Sequence[str] | None, most: float
) -> None:
    """Send the records of the cases that are asked for, on tables of so many numbers at most."""
    for shape in SHAPES:
        if shape.values > most or (shapes and shape.name not in shapes):
            continue
        for setting in SETTINGS:
            if setting.suits(shape) and (not only or any(text in setting.name for text in only)):
                pipe.send(measure(setting, shape, threads))


def measure(setting: Setting, shape: Shape, threads: int) -> Record:
    """Return what was found out about a case; seconds are those of the shortest run."""
    table = make(shape, setting.classes)
    clock = time.process_time if threads == 1 else time.perf_counter
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jobs, errors = _contenders(setting, shape, table)
        seconds = _in_turns(setting, table, jobs, clock)
    peers = [name for name in jobs if name != "sixfold"]
    fair = [name for name in peers if errors[name] <= max(ACCURACY, errors["sixfold"])]
    best = min(fair or peers, key=seconds.__getitem__)
    return {
        "setting": setting.name,
        "rows": shape.rows,
        "columns": shape.columns,
        "sparse": shape.sparse,
        "threads": threads,
        "seconds": seconds["sixfold"],
        "peer": best,
        "peer seconds": seconds[best],
        "ratio": seconds[best] / seconds["sixfold"],
        "error": errors["sixfold"],
        "peer error": errors[best],
        "fair": bool(fair),
    }


def _contenders(setting: Setting, shape: Shape, table: Table) -> tuple[dict[str, Any], dict[str, float]]:
    """Return estimators that are ready to be timed, and how far their answers are from the best."""
    ours = setting.model().fit(table.X, table.y)
    jobs: dict[str, Any] = {"sixfold": setting.model()}
    if setting.judge is None:
        labels = ours.predict(table.queries)
        errors = {"sixfold": 0.0}
        for number in setting.peers_for(shape):
            name = setting.peer_name(number)
            jobs[name] = setting.peer(number)
            answers = setting.peer(number).fit(table.X, table.y).predict(table.queries)
            errors[name] = float(np.mean(answers != labels))
        # Where rules for ties or the order of rows differ no one is right: nobody is marked for it.
        return jobs, dict.fromkeys(errors, 0.0)
    risks = {"sixfold": setting.judge(table, ours), "tight": setting.judge(table, _tight(setting, table))}
    start = setting.judge(table, None)
    for number in setting.peers_for(shape):
        name = setting.peer_name(number)
        for tol in TOLERANCES:
            begun = time.perf_counter()
            try:
                risks[name] = setting.judge(table, setting.peer(number, tol).fit(table.X, table.y))
            except (ValueError, TypeError):  # a peer that does not take the table, or has no tolerance
                break
            jobs[name] = setting.peer(number, tol)
            least = min(risks.values())
            if risks[name] - least <= ACCURACY * (start - least) or time.perf_counter() - begun > LONG:
                break
    least = min(risks.values())
    scale = max(start - least, np.finfo(float).tiny)
    return jobs, {name: (risks[name] - least) / scale for name in jobs}


def _tight(setting: Setting, table: Table) -> Any:
    return setting.model(None if "tol" not in setting.model().get_params() else TIGHT).fit(table.X, table.y)


def _in_turns(
    setting: Setting, table: Table, jobs: dict[str, Any], clock: Callable[[], float]
) -> dict[str, float]:
    """Return the seconds of the shortest run of each."""
    runs = {name: _run_of(setting, table, model) for name, model in jobs.items()}
    loops, best = {}, {}
    for name, run in runs.items():
        first = _seconds(run, 1, clock)
        loops[name] = math.ceil(SHORTEST / max(first, 1e-6)) if first < SHORTEST else 1
        best[name] = first
    for _ in range(ROUNDS):
        for name, run in runs.items():
            if best[name] < LONG:
                best[name] = min(best[name], _seconds(run, loops[name], clock))
    return best


def _run_of(setting: Setting, table: Table, model: Any) -> Callable[[], Any]:
    if setting.work == "one row":
        fitted, row = model.fit(table.X, table.y), table.queries[:1]
        return lambda: fitted.predict(row)
    if setting.work == "answer":
        return lambda: model.fit(table.X, table.y).predict(table.queries)
    return lambda: model.fit(table.X, table.y)


def _seconds(run: Callable[[], Any], loops: int, clock: Callable[[], float]) -> float:
    gc.collect()
    start = clock()
    for _ in range(loops):
        run()
    return (clock() - start) / loops
