"""Progress of a search: a live bar with the best score so far and the time left.

With Rich installed it is a bar that moves; without, a line now and then.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

BAR_INTERVAL = 0.1  # seconds between two pictures of the bar
LINE_INTERVAL = 2.0  # seconds between two lines, where there is no bar


class Progress(Protocol):
    """Hears of finished work."""

    def __call__(self, done: int, best: Callable[[], str]) -> None:
        """Note how many fits are done in all; ``best`` says what the best score so far is."""


@contextmanager
def progress(total: int, shown: bool) -> Iterator[Progress]:
    """Give what shows the progress of so many fits."""
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

        shown_at = -math.inf

        def show(done: int, best: Callable[[], str]) -> None:
            nonlocal shown_at
            now = time.perf_counter()
            if done == total or now - shown_at >= BAR_INTERVAL:
                shown_at = now
                bar.update(task, completed=done, best=best())

        yield show


class _Lines:
    """Prints a line now and then, and one at the end."""

    def __init__(self, total: int) -> None:
        self.total, self._begun = total, time.perf_counter()
        self._printed = self._begun

    def __call__(self, done: int, best: Callable[[], str]) -> None:
        now = time.perf_counter()
        if done < self.total and now - self._printed < LINE_INTERVAL:
            return
        self._printed = now
        spent = now - self._begun
        left = f"{spent / done * (self.total - done):.0f} s left" if done < self.total else f"{spent:.1f} s"
        print(f"Search: {done} of {self.total} fits, best {best()}, {left}", flush=True)
