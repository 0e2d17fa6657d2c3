"""One fit after another in a process of their own, so that one that hangs or crashes ends nothing but itself.

A fit has three stages, ``STAGES``, each reported as soon as it is done: the fit itself, the check of its
certificate, and scikit-learn's fit of the same problem. A stage that is not done in time, or in which the
process ends, is written down as such, and a new process goes on with the next fit. Seconds are those of the
processor, so that what else the machine does counts little.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import signal
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple

from benchmarks.gauntlet import families, tables
from benchmarks.gauntlet.settings import CLASSES, Setting, peers, settings

STAGES = ("fit", "verify", "peer")
PATIENCE = 10.0  # by the clock a stage may take so many times what it may of the processor: it may hang
LEAST_PEER_SECONDS = 5.0  # how long scikit-learn may take at least; else as long as sixfold did
ANSWERS = ("PerfectSeparation", "NotSeparable")  # they carry the proof that there is no such model

Record = dict[str, Any]


class Job(NamedTuple):
    """A table (a family's where there is no preparation) and a setting."""

    table: str
    preparation: str
    rows: int
    setting: Setting

    @property
    def key(self) -> str:
        """What tells this fit from all others."""
        return f"{self.table} | {self.preparation} | {self.rows} | {self.setting.name}"

    def data(self) -> tables.Table:
        """Return the table."""
        return _data(self.table, self.preparation, self.rows, self.setting.task)


@lru_cache(maxsize=64)
def _data(table: str, preparation: str, rows: int, task: str) -> tables.Table:
    if preparation == "synthetic":
        return families.make(table, task)
    return tables.load(table, preparation, rows)


def all_jobs(rows: int) -> Iterator[Job]:
    """Yield every setting on every table it is for."""
    for setting in settings():
        for name, task in tables.TASKS.items():
            if task == setting.task:
                yield from (Job(name, preparation, rows, setting) for preparation in tables.PREPARATIONS)
        for name, family in families.FAMILIES.items():
            if setting.task in family.tasks:
                yield Job(name, "synthetic", 0, setting)


def stages(job: Job, with_peers: bool = True) -> Iterator[Record]:
    """Fit, verify, and fit scikit-learn's counterpart; yield what each of the three found out."""
    X, y, weight = job.data()
    model = job.setting.model()
    options = {} if weight is None else {"sample_weight": weight}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        wall, cpu = time.perf_counter(), time.process_time()
        error = None
        try:
            model.fit(X, y, **options)
        except Exception as raised:  # whatever it is, it is written down
            error = raised
        seconds, wall_seconds = time.process_time() - cpu, time.perf_counter() - wall
    found: Record = {
        "seconds": seconds,
        "wall_seconds": wall_seconds,
        "shape": list(X.shape),
        "warnings": [f"{warning.category.__name__}: {warning.message}" for warning in warned],
    }
    if error is not None:
        name = type(error).__name__
        yield found | {"certified": name in ANSWERS, "error": f"{name}: {error}"}
        yield {"verified": name in ANSWERS}
    else:
        certificate = model.certificate_
        # A perceptron claims whether planes separate the classes; whether it finds them, its epochs say.
        open_question = any("is not known" in note for note in certificate.notes)
        decided = job.setting.learner == "Perceptron" and not open_question
        yield found | {
            "certified": bool(certificate.converged or decided),
            "gap": float(certificate.relative_gap),
            "kind": certificate.kind,
            "solver": getattr(model, "solver_", None),
            "notes": list(certificate.notes),
            "n_iter": _count(getattr(model, "n_iter_", None)),
        }
        yield _verified(certificate, X, y, options)
    yield _peer(job.setting, X, y, options) if with_peers else {}


def _count(iterations: Any) -> int | None:
    return None if iterations is None else int(max(getattr(iterations, "flat", [iterations])))


def _verified(certificate: Any, X: Any, y: Any, options: Record) -> Record:
    begun = time.process_time()
    try:
        certificate.verify(X, y, **options)
        found: Record = {"verified": True}
    except Exception as raised:
        found = {"verified": False, "verify_error": f"{type(raised).__name__}: {raised}"}
    return found | {"verify_seconds": time.process_time() - begun}


def _peer(setting: Setting, X: Any, y: Any, options: Record) -> Record:
    """Return the least time of scikit-learn's counterparts that take the table."""
    best: Record = {}
    classes = len(set(y.tolist())) if setting.task == CLASSES else 0
    for peer in peers(setting, X.shape[0], classes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            begun = time.process_time()
            try:
                peer.fit(X, y, **options)
            except Exception:
                continue
            seconds = time.process_time() - begun
        if seconds < best.get("peer_seconds", math.inf):
            best = {"peer_seconds": seconds, "peer": type(peer).__name__}
    return best


class Worker:
    """A process that fits what it is given, each stage within so many seconds of the processor."""

    def __init__(self, limit: float, with_peers: bool) -> None:
        self._limit, self._with_peers = limit, with_peers
        self._process: Any = None

    def run(self, job: Job) -> Record:
        """Return the record of a fit."""
        if self._process is None:
            # Not a fork: a process with threads of BLAS and OpenMP must not be copied.
            context = multiprocessing.get_context("spawn")
            self._pipe, other = context.Pipe()
            asked = other, self._limit, self._with_peers
            self._process = context.Process(target=_serve, args=asked, daemon=True)
            self._process.start()
            other.close()
            self._pipe.recv()  # its imports take no time of a fit
        record: Record = {"key": job.key, "group": job.setting.group, "certified": False, "verified": False}
        self._pipe.send(job)
        for stage in STAGES:
            allowed = _allowed(stage, self._limit, record)
            try:
                if self._pipe.poll(PATIENCE * allowed):
                    record |= self._pipe.recv()
                    continue
            except EOFError:
                self._process.join()
            in_time = self._process.exitcode not in (None, -signal.SIGPROF)
            self.close()
            record.setdefault("seconds", allowed)
            if stage == "peer":  # it takes longer than that
                record |= {"peer_seconds": allowed, "peer": "unfinished"}
            else:
                record["error"] = f"{stage} {'ended its process' if in_time else 'was stopped'}"
            break
        return record

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def _allowed(stage: str, limit: float, record: Record) -> float:
    return max(LEAST_PEER_SECONDS, record["seconds"]) if stage == "peer" else limit


def _serve(pipe: Any, limit: float, with_peers: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what ends
    pipe.send("ready")
    with contextlib.suppress(EOFError, BrokenPipeError):  # whoever asks has ended
        while True:
            running, record = stages(pipe.recv(), with_peers), {}
            for stage in STAGES:
                # The signal ends the process, whatever it is in the middle of.
                signal.setitimer(signal.ITIMER_PROF, _allowed(stage, limit, record))
                record |= (found := next(running))
                signal.setitimer(signal.ITIMER_PROF, 0.0)
                pipe.send(found)


def run(jobs: Iterable[Job], processes: int, limit: float, with_peers: bool) -> Iterator[Record]:
    """Yield the record of each job, in the order in which they end."""
    own = threading.local()
    workers: list[Worker] = []

    def one(job: Job) -> Record:
        if not hasattr(own, "worker"):
            own.worker = Worker(limit, with_peers)
            workers.append(own.worker)
        return own.worker.run(job)

    pool = ThreadPoolExecutor(processes)
    try:
        yield from pool.map(one, jobs)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.close()
