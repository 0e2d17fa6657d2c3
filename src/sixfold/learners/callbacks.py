"""What is called after each iteration: the user's callbacks, scikit-learn's, and ``verbose``'s printing.

``sklearn.callback`` (from scikit-learn 1.9 on) takes longer to import than a small fit takes, so it is
imported where one of its callbacks is set.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from sixfold.budget import Record
from sixfold.errors import InputError

PROGRESS_INTERVAL = 0.5  # seconds between two lines of progress


class CallbackSupport:
    """Adds callbacks and progress to a learner that iterates."""

    callbacks: Sequence[Callable[[Record], Any]] | None
    verbose: Any = 0
    _step = "iteration"  # what a record is of
    _progress_interval = PROGRESS_INTERVAL

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set callbacks of scikit-learn's protocol, for instance ``sklearn.callback.ProgressBar()``."""
        try:
            from sklearn.callback import CallbackSupportMixin
        except ImportError as error:
            raise InputError(
                "set_callbacks needs scikit-learn 1.9 or newer. Use the parameter callbacks=[...] "
                "instead, which takes any callable."
            ) from error
        return CallbackSupportMixin.set_callbacks(self, *callbacks)

    @contextmanager
    def _callbacks(self, X: Any, y: Any, max_iter: int | None) -> Iterator[list[Callable[[Record], Any]]]:
        """Give what is called after each iteration."""
        given = [] if self.callbacks is None else self.callbacks
        if callable(given) or not all(callable(callback) for callback in given):
            raise InputError(
                f"callbacks={given!r} is no sequence of callables. Pass a list, for instance [print]."
            )
        with self._sklearn_callbacks(X, y, max_iter) as theirs, self._progress() as lines:
            yield [*given, *theirs, *lines]

    @contextmanager
    def _progress(self) -> Iterator[list[Callable[[Record], None]]]:
        """Give what prints records where ``verbose`` asks for it: the first, the last and some between."""
        if not self.verbose:
            yield []
            return
        printed, newest = -math.inf, None

        def show(record: Record) -> None:
            nonlocal printed, newest
            newest = record
            if time.perf_counter() - printed >= self._progress_interval:
                print(_line(self, record), flush=True)
                printed, newest = time.perf_counter(), None

        yield [show]
        if newest is not None:
            print(_line(self, newest), flush=True)

    @contextmanager
    def _sklearn_callbacks(
        self, X: Any, y: Any, max_iter: int | None
    ) -> Iterator[list[Callable[[Record], bool]]]:
        """Give what notifies scikit-learn's callbacks of an iteration."""
        if not hasattr(self, "_skl_callbacks"):
            yield []
            return
        from sklearn.callback import CallbackSupportMixin
        from sklearn.callback._callback_support import callback_management_context

        with callback_management_context(self):
            context = CallbackSupportMixin._init_callback_context(self, max_subtasks=max_iter)
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)

            def notify(record: Record) -> bool:
                step = context.subcontext(task_name="iteration")
                step.call_on_fit_task_begin(estimator=self)
                return bool(step.call_on_fit_task_end(estimator=self))

            yield [notify]
            context.call_on_fit_task_end(estimator=self, X=X, y=y)


def _line(model: Any, record: Record) -> str:
    return (
        f"{type(model).__name__}: {model._step} {record.iteration}, {record.seconds:.2f} s, "
        f"objective {record.objective:.8g}, gap {record.gap:.2g}"
    )
