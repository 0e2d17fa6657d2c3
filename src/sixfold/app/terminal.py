"""What `fit` shows in a terminal: labelled paragraphs of 80 columns, and a bar for each learner.

In a terminal the bars move, with the best score so far and the time left; elsewhere a line is printed for
each learner that is done.
"""

from __future__ import annotations

import math
import shlex
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sixfold.app.plain_text import paragraph, visible
from sixfold.plain_words import width_of
from sixfold.selection.leaderboard import Entry

WIDTH = 80
LABEL = 13  # columns for the label of a paragraph


class Terminal:
    """Prints to people; nothing where it is to be quiet."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
        self.live = sys.stdout.isatty() and not quiet

    def line(self, text: str = "") -> None:
        """Print a line as it is."""
        if not self.quiet:
            print(text, flush=True)

    def paragraph(self, label: str, *texts: str, mark: str = "") -> None:
        """Print texts, wrapped, to the right of a label; each after a mark, if there is to be one."""
        indent = " " * (LABEL + len(mark))
        lines = []
        for text in texts:
            lines += paragraph(visible(text), indent, " " * LABEL + mark, self.width).splitlines()
        self.lines(label, [line[LABEL:] for line in lines])

    def command(self, label: str, words: Sequence[str]) -> None:
        """Print a command beside a label; lines that go on end in a backslash, so that it can be copied."""
        first, *others = _with_values(words)
        lines, room = [first], self.width - LABEL
        for number, part in enumerate(others, 1):
            goes_on = 2 * (number < len(others))  # a blank and a backslash
            if width_of(lines[-1]) + 1 + width_of(part) + goes_on <= room:
                lines[-1] += f" {part}"
            else:
                lines.append(f"  {part}")
        self.lines(label, [*(f"{line} \\" for line in lines[:-1]), lines[-1]])

    def lines(self, label: str, lines: Sequence[str]) -> None:
        """Print lines as they are to the right of a label."""
        for number, line in enumerate(lines):
            head = f"{label if number == 0 else '':<{LABEL}}"
            self.line(self._bold(head) + line if number == 0 else head + line)

    def heading(self, text: str) -> None:
        """Print a line that begins a part."""
        self.line()
        self.line(self._bold(text))

    def _bold(self, text: str) -> str:
        return f"\033[1m{text}\033[0m" if self.live else text

    @contextmanager
    def watch(self) -> Iterator[Any]:
        """Give what hears of the progress of learners."""
        if self.quiet:
            yield None
        elif self.live:
            with _Bars() as bars:
                yield bars
        else:
            yield _Lines(self)


class _Lines:
    """A line for each learner that is done."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal, self._begun = terminal, time.perf_counter()

    def start(self, name: str, fits: int) -> None:
        """Note the time."""
        self._begun = time.perf_counter()

    def update(self, name: str, done: int, fits: int, best: float) -> None:
        """Say nothing: a line is printed when all is done."""

    def finish(self, entry: Entry) -> None:
        """Print what came out."""
        spent = time.perf_counter() - self._begun
        said = entry.left_out or f"{entry.mean:.3f} ± {entry.std:.3f}"
        mark = "-" if entry.left_out else f"{spent:.1f} s"
        for line in textwrap.wrap(f"  {entry.name:<27}{mark:>8}  {said}", WIDTH, subsequent_indent=" " * 39):
            self._terminal.line(line)


class _Bars:
    """A bar for each learner, drawn by Rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._progress = Progress(
            TextColumn("  {task.description:<27}", markup=False),
            BarColumn(bar_width=18),
            TextColumn("{task.fields[count]:>9}"),
            TextColumn("{task.fields[best]:>6}"),
            TextColumn("{task.fields[left]:>9}"),
            console=Console(highlight=False, width=WIDTH),
        )
        self._tasks: dict[str, Any] = {}
        self._begun: dict[str, float] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> _Bars:
        self._progress.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._progress.__exit__(*error)

    def start(self, name: str, fits: int) -> None:
        """Add the bar of a learner."""
        self._begun[name] = time.perf_counter()
        self._tasks[name] = self._progress.add_task(name, total=max(fits, 1), count="", best="", left="")

    def update(self, name: str, done: int, fits: int, best: float) -> None:
        """Move it."""
        with self._lock:
            spent = time.perf_counter() - self._begun[name]
            left = _duration(spent / done * (fits - done)) + " left" if 0 < done < fits else ""
            score = "" if math.isnan(best) else f"{best:.3f}"
            self._progress.update(
                self._tasks[name], completed=done, count=f"{done}/{fits}", best=score, left=left
            )

    def finish(self, entry: Entry) -> None:
        """Show what came out."""
        if entry.name not in self._tasks:
            self.start(entry.name, 1)
        task = self._tasks[entry.name]
        spent = _duration(time.perf_counter() - self._begun[entry.name])
        total = next(one.total for one in self._progress.tasks if one.id == task)
        done = "left out" if entry.left_out else f"{total:.0f} fits"
        score = "" if math.isnan(entry.mean) else f"{entry.mean:.3f}"
        self._progress.update(task, completed=total, count=done, best=score, left=spent)


def _duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _with_values(words: Sequence[str]) -> list[str]:
    """Return words quoted for a shell, options together with their values.

    >>> _with_values(["sixfold", "explain", "a model.sixfold", "--row", "1"])
    ['sixfold', 'explain', "'a model.sixfold'", '--row 1']
    """
    parts: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        quoted = shlex.quote(word)
        if before.startswith("-"):
            parts[-1] += f" {quoted}"
        else:
            parts.append(quoted)
    return parts
