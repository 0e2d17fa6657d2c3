"""``python -m benchmarks.scale.delayed_cluster``: the model of costs, checked on a slow cluster.

Four worker processes on this machine; every task sleeps before it works, as if it had come from far away. The
model is told what a fit takes without that (the best of three), and how often it goes to the rows; it says
what it takes with delays of 50, 100 and 200 ms. Figures go to ``docs/figures/scale.json``.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.scale.made_table import COLUMNS, made_rows
from benchmarks.scale.model import Machine, Network, Work, cost

WORKERS = 4
PARTITIONS = 16
ROWS = 20_000  # of a partition
DELAYS = (0.05, 0.1, 0.2)
LEARNERS = ("LogisticRegression", "LinearRegression", "LinearSVC", "KNeighborsClassifier")
TASKS = ("_on_block", "_on_rows", "_on_state", "_join", "_listed")


def install(delay: float) -> None:
    """Let every task of sixfold in this process sleep first."""
    from sixfold.data import dask_blocks

    for name in TASKS:
        original = getattr(dask_blocks, name)
        setattr(dask_blocks, name, _late(getattr(original, "__wrapped__", original), delay))


def _late(function: Callable[..., Any], delay: float) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        time.sleep(delay)
        return function(*arguments)

    return call


@contextmanager
def counted_passes() -> Iterator[list[int]]:
    """Count how often the rows are gone to."""
    from sixfold.data.dask_blocks import Workers

    count = [0]
    before = {name: getattr(Workers, name) for name in ("result", "persist")}

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            count[0] += 1
            return function(*arguments)

        return call

    for name, function in before.items():
        setattr(Workers, name, counting(function))
    try:
        yield count
    finally:
        for name, function in before.items():
            setattr(Workers, name, function)


def predicted(passes: int, base: float, delay: float, partitions: int = PARTITIONS) -> float:
    """Return the seconds the model expects where ``base`` are those without a delay."""
    machine, network = Machine(decode=1.0, disk=1.0, memory=0.0), Network(delay=delay)
    work = Work(passes=passes, read=1.0, down=0.0, up=0.0)
    return base + cost(work, 0, len(COLUMNS), machine, WORKERS, network, partitions).talking


def collections() -> tuple[Any, Any, Any]:
    """Return columns, labels and amounts as Dask arrays."""
    import dask
    import dask.array as da

    parts = [dask.delayed(made_rows)(group, ROWS) for group in range(PARTITIONS)]
    shapes = (((ROWS, len(COLUMNS)), "f8"), ((ROWS,), "i1"), ((ROWS,), "f8"))
    X, label, amount = (
        da.concatenate([da.from_delayed(part[place], shape, dtype) for part in parts])
        for place, (shape, dtype) in enumerate(shapes)
    )
    return X, label, amount


def fit(name: str, X: Any, label: Any, amount: Any) -> None:
    import sixfold

    model = getattr(sixfold, name)(**({"loss": "hinge"} if name == "LinearSVC" else {}))
    model.fit(X, amount if name == "LinearRegression" else label)
    if name.startswith("KNeighbors"):
        model.kneighbors(made_rows(99, 100)[0])


def timed(name: str, X: Any, label: Any, amount: Any) -> tuple[float, int]:
    """Return the seconds of a fit, and how often it went to the rows."""
    with counted_passes() as count:
        start = time.perf_counter()
        fit(name, X, label, amount)
        return time.perf_counter() - start, count[0]


def main() -> int:
    import distributed

    from benchmarks.scale.__main__ import keep

    records = []
    with (
        distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        X, label, amount = (client.persist(one) for one in collections())
        distributed.wait([X, label, amount])
        for name in LEARNERS:
            client.run(install, 0.0)
            base = min(timed(name, X, label, amount)[0] for _ in range(3))
            for delay in DELAYS:
                client.run(install, delay)
                seconds, passes = timed(name, X, label, amount)
                expected = predicted(passes, base, delay)
                one = {"task": name, "rows": PARTITIONS * ROWS, "by": f"delay {delay:g} s", "passes": passes}
                records.append({**one, "seconds": round(seconds, 3), "model": round(expected, 3)})
                print(records[-1], file=sys.stderr, flush=True)
    keep("delayed", records)
    return 0


if __name__ == "__main__":
    sys.exit(main())
