"""One contract for long work: tolerance, iteration and time limits, progress, history and Ctrl-C.

A solver asks its budget one question after every iteration::

    for iteration in budget.iterations():
        ...one step...
        if budget.record(objective, gap, scale):   # history, callbacks, every limit
            break

Inside ``with budget:`` Ctrl-C does not raise; it makes ``record`` and ``exhausted`` answer true, and
``check`` (for loops inside an iteration) raise :class:`BudgetExhausted`, so that the solver can hand over the
best model it has. ``conclude`` then warns of a limit, or raises the KeyboardInterrupt that was held back,
when the estimator is complete.
"""

from __future__ import annotations

# What signal wraps: making enumerations of handlers takes 6 us a fit.
import _signal  # type: ignore[import-not-found]
import math
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from sixfold.certificate import Certificate
from sixfold.errors import StoppedEarly, warn


class Record(NamedTuple):
    """What is known after one iteration."""

    iteration: int
    seconds: float
    objective: float
    gap: float


class BudgetExhausted(Exception):  # noqa: N818 - no error: the best model so far is kept
    """Time is up, or Ctrl-C was pressed, in the middle of an iteration; never leaves a solver."""


Item = TypeVar("Item")
Callback = Callable[[Record], Any]
CALLBACK = "a callback"  # what ``stopped_by`` says then


SIGINT = int(signal.SIGINT)

_AT_WORK: set[Budget] = set()  # those inside ``with``, of all threads


def interrupt(threads: Collection[int]) -> None:
    """Do to the work of other threads, by their identifiers, what Ctrl-C does to that of the main one."""
    for budget in list(_AT_WORK):
        if budget._thread in threads:
            budget.flag[0] = 1


class Budget:
    """The limits of one fit and what has been used of them.

    Parameters
    ----------
    tol : float
        Relative gap at which to stop (see :class:`~sixfold.certificate.Certificate`).
    max_iter : int or None
        Most iterations of each part of the work (see :meth:`new_part`); None for no limit.
    time_limit : float or None
        Most seconds; None for no limit.
    callbacks : sequence of callables
        Each is called with a :class:`Record` after every iteration; one that returns True stops
        the fit.
    """

    def __init__(
        self,
        tol: float = 1e-6,
        max_iter: int | None = None,
        time_limit: float | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.callbacks = tuple(callbacks)
        self.history: list[Record] = []
        self.flag = np.zeros(1, dtype=np.int32)  # set by Ctrl-C, read by native loops
        self.stopped_by: str | None = None
        self.another_follows = False  # a solver that crawls should return, since another one can go on
        self._part = 0  # records before this part of the work
        self._cut_short: str | None = None  # the limit that an earlier part has met
        self._start = time.perf_counter()
        self._handler: Any = None
        self._thread = 0

    # -- Ctrl-C ---------------------------------------------------------------------------------

    def __enter__(self) -> Budget:
        self._start = time.perf_counter()
        self._thread = threading.get_ident()
        _AT_WORK.add(self)
        # A handler of the user's own is left alone: it decides what Ctrl-C means.
        if (
            self._thread == threading.main_thread().ident
            and _signal.getsignal(SIGINT) is signal.default_int_handler
        ):
            self._handler = _signal.signal(SIGINT, self._note_interrupt)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _AT_WORK.discard(self)
        if self._handler is not None:
            _signal.signal(SIGINT, self._handler)
            self._handler = None

    def _note_interrupt(self, number: int, frame: FrameType | None) -> None:
        self.flag[0] = 1

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return bool(self.flag[0])

    # -- time and iterations ----------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Seconds since the work began."""
        return time.perf_counter() - self._start

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit; infinite without one."""
        return math.inf if self.time_limit is None else self.time_limit - self.seconds

    @property
    def iterations_left(self) -> float:
        """Iterations of this part until the limit; infinite without one."""
        return math.inf if self.max_iter is None else self.max_iter - (len(self.history) - self._part)

    @property
    def _iteration_limit(self) -> str:
        return f"max_iter={self.max_iter}"

    def new_part(self) -> None:
        """Begin another part of the work (a target, a solver), which has ``max_iter`` iterations of its own.

        One target that is hard must not keep the others from being begun.
        """
        self._part = len(self.history)
        if self.stopped_by == self._iteration_limit:
            self.stopped_by, self._cut_short = None, self.stopped_by

    @property
    def shortened_by(self) -> str | None:
        """The limit that ended the work, or a part of it; None if there was none."""
        return self.stopped_by or self._cut_short

    def iterations(self) -> Iterator[int]:
        """Count 1, 2, ... until a limit is reached."""
        while not self.exhausted():
            yield len(self.history) + 1

    def exhausted(self) -> bool:
        """Whether the work has to end now; ``stopped_by`` then says why."""
        if self.stopped_by is None:
            if self.flag[0]:
                self.stopped_by = "Ctrl-C"
            elif self.time_limit is not None and self.seconds_left <= 0:
                self.stopped_by = f"time_limit={self.time_limit:g} s"
            elif self.max_iter is not None and self.iterations_left <= 0:
                self.stopped_by = self._iteration_limit
        return self.stopped_by is not None

    def check(self, finished: bool | None = None) -> None:
        """Raise :class:`BudgetExhausted` if time is up; a native loop has looked, and says if it finished."""
        if (self.interrupted or self.seconds_left <= 0) if finished is None else not finished:
            raise BudgetExhausted

    def watch(self, items: Iterable[Item]) -> Iterator[Item]:
        """Go through the items, but no further than time allows."""
        for item in items:
            self.check()
            yield item

    def record(self, objective: float, gap: float, scale: float) -> bool:
        """Note one finished iteration; true when the solver should stop, converged or not."""
        record = Record(len(self.history) + 1, self.seconds, float(objective), float(gap))
        self.history.append(record)
        if self.callbacks:
            # Every callback hears of every iteration, also when an earlier one has asked to stop.
            answers = [callback(record) for callback in self.callbacks]
            if any(isinstance(answer, bool | np.bool_) and answer for answer in answers):
                self.stopped_by = self.stopped_by or CALLBACK
                return True
        return gap <= self.tol * scale or self.exhausted()

    @property
    def stopped_by_callback(self) -> bool:
        """Whether a callback asked for the end, rather than a limit."""
        return self.stopped_by == CALLBACK

    def conclude(
        self,
        certificate: Certificate,
        reached: str | None = None,
        advice: str = "Allow more, or a larger tol, if that is not good enough.",
    ) -> None:
        """Warn of a limit that was reached, or raise the KeyboardInterrupt that was held back.

        ``reached`` says how far the work came, where that is not a number of iterations.
        """
        if self.interrupted:
            raise KeyboardInterrupt
        if self.stopped_by is not None and not certificate.converged:
            count = len(self.history)
            after = reached or f"{count} iteration{'s' * (count != 1)}"
            text = (
                f"Stopped by {self.stopped_by} after {after}; the best model so far was kept "
                f"({certificate}). {advice}"
            )
            warn(StoppedEarly(text, certificate))
