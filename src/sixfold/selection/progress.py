"""Progress of a search: a live bar with the best score so far and the time left.

With Rich installed it is a bar that moves; without, a line now and then. Whoever runs searches for somebody
else can listen instead: ``with heard_by(listener): search.fit(X, y)``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Protocol

BAR_INTERVAL = 0.1  # seconds between two pictures of the bar, and between two calls of a listener
LINE_INTERVAL = 2.0  # seconds between two lines, where there is no bar


class BestSoFar(NamedTuple):
    """The best mean score so far, NaN before there is one, and on how many of the folds it is."""

    mean: float
    folds: int
    all_folds: int

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "-"
        return f"{self.mean:.4g}" + f" ({self.folds} of {self.all_folds} folds)" * (
            self.folds < self.all_folds
        )


class Progress(Protocol):
    """Hears of finished work."""

    def __call__(self, done: int, best: Callable[[], BestSoFar]) -> None:
        """Note how many fits are done in all; ``best`` says what the best score so far is."""


Listener = Callable[[int, int, float], None]  # fits done, all fits, the best mean score so far

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Tell of the searches that this thread makes inside, ten times a second and at the end of each."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def progress(total: int, shown: bool) -> Iterator[Progress]:
    """Give what shows the progress of so many fits."""
    listener = _LISTENER.get()
    if listener is not None:
        yield _Seldom(total, lambda done, best: listener(done, total, best().mean))
        return
    if not shown:
        yield lambda done, best: None
        return
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
    except ImportError:
        yield _Lines(total)
        return
    columns = (
        TextColumn("Search"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("best {task.fields[best]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Bar(*columns) as bar:
        task = bar.add_task("", total=total, best="-")
        yield _Seldom(total, lambda done, best: bar.update(task, completed=done, best=str(best())))


class _Seldom:
    """Passes on what it hears ten times a second, and the last."""

    def __init__(self, total: int, show: Progress) -> None:
        self.total, self.show, self._shown_at = total, show, -math.inf

    def __call__(self, done: int, best: Callable[[], BestSoFar]) -> None:
        now = time.perf_counter()
        if done == self.total or now - self._shown_at >= BAR_INTERVAL:
            self._shown_at = now
            self.show(done, best)


class _Lines:
    """Prints a line now and then, and one at the end."""

    def __init__(self, total: int) -> None:
        self.total, self._begun = total, time.perf_counter()
        self._printed = self._begun

    def __call__(self, done: int, best: Callable[[], BestSoFar]) -> None:
        now = time.perf_counter()
        if done < self.total and now - self._printed < LINE_INTERVAL:
            return
        self._printed = now
        spent = now - self._begun
        left = f"{spent / done * (self.total - done):.0f} s left" if done < self.total else f"{spent:.1f} s"
        print(f"Search: {done} of {self.total} fits, best {best()}, {left}", flush=True)
