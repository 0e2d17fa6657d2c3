"""scikit-learn's own callbacks (``sklearn.callback``, from 1.9 on): progress bars and monitors.

``sklearn.callback`` takes longer to import than a small fit takes, so it is imported where a callback is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from sixfold.budget import Record
from sixfold.errors import InputError


class CallbackSupport:
    """Adds ``set_callbacks`` to a learner; each iteration of a fit is a task that the callbacks hear of."""

    callbacks: Sequence[Callable[[Record], Any]] | None

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set callbacks of scikit-learn's protocol, for instance ``sklearn.callback.ProgressBar()``."""
        try:
            from sklearn.callback import CallbackSupportMixin
        except ImportError as error:
            raise InputError(
                "set_callbacks needs scikit-learn 1.9 or newer. Use the parameter callbacks=[...] "
                "instead, which "
                "takes any callable."
            ) from error
        return CallbackSupportMixin.set_callbacks(self, *callbacks)

    def _own_callbacks(self) -> list[Callable[[Record], Any]]:
        """Return what the parameter ``callbacks`` has."""
        given = [] if self.callbacks is None else self.callbacks
        if callable(given) or not all(callable(callback) for callback in given):
            raise InputError(
                f"callbacks={given!r} is no sequence of callables. Pass a list, for instance [print]."
            )
        return list(given)

    @contextmanager
    def _told(self, X: Any, y: Any, max_iter: int | None) -> Iterator[list[Callable[[Record], bool]]]:
        """Give what to call after each iteration so that scikit-learn's callbacks hear of it."""
        if not hasattr(self, "_skl_callbacks"):
            yield []
            return
        from sklearn.callback import CallbackSupportMixin
        from sklearn.callback._callback_support import callback_management_context

        with callback_management_context(self):
            context = CallbackSupportMixin._init_callback_context(self, max_subtasks=max_iter)
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)

            def tell(record: Record) -> bool:
                step = context.subcontext(task_name="iteration")
                step.call_on_fit_task_begin(estimator=self)
                return bool(step.call_on_fit_task_end(estimator=self))

            yield [tell]
            context.call_on_fit_task_end(estimator=self, X=X, y=y)
