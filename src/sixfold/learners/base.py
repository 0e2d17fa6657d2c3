"""The steps of a fit, once for every learner.

    check the parameters and the table -> state the problem -> solve it within a budget
    -> set the fitted attributes -> warn of what has to be known

A family says what each step is (``_check``, ``_state_problem``, ``_solve``, ``_set_fitted``, ``_warn``); a
batch of ``partial_fit`` goes through the same steps with another check and another solver. What they share is
here: limits, callbacks, progress, threads, Ctrl-C, the certificate, and what it speaks of. A fit that fails
leaves the model as it was; one that is stopped leaves it fitted.

``sklearn.callback`` (from scikit-learn 1.9 on) takes longer to import than a small fit takes, so it is
imported where one of its callbacks is set.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sixfold import __version__
from sixfold.budget import Budget, Record
from sixfold.certificate import CONSTANT_MODEL, Certificate, Subject, plain_parameter
from sixfold.data.dask_blocks import is_collection
from sixfold.data.fingerprint import fingerprint, table_size
from sixfold.data.scan.table import Scan
from sixfold.errors import CertificateError, InputError, check_number, check_seed
from sixfold.learners.scanned import read_rows, rows_on_workers, take_scans
from sixfold.solvers.threads import thread_limit
from sixfold.verify.recomputed import Recomputed

Step = Callable[..., Any] | None

PROGRESS_INTERVAL = 0.5  # seconds between two lines of progress
# Up to here the fingerprint is taken at the fit, in a third of a millisecond; beyond it would slow fits down.
FINGERPRINT_BYTES = 1 << 20
KEPT_BYTES = 1 << 17  # of arrays that are kept until the fingerprint is asked for


class Learner(BaseEstimator, ABC):
    """An estimator whose every fit ends with a certificate."""

    time_limit: float | None
    n_jobs: int | None = None

    _certificate: Certificate

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        take_scans(cls)

    # -- one fit -----------------------------------------------------------------------------------------

    def _run_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        check: Step = None,
        solve: Step = None,
        warn: Step = None,
    ) -> Self:
        """Go through the steps; ``check``, ``solve`` and ``warn`` take the place of the methods."""
        if isinstance(X, Scan) and X.client is not None:
            with X.client.as_current():
                return self._run_fit(*rows_on_workers(X, y, sample_weight), check, solve, warn)
        if isinstance(X, Scan):
            with read_rows(self, X, y, sample_weight) as rows:
                return self._run_fit(rows.X, rows.y, rows.weight, check, solve, warn)
        if is_collection(X):
            if check is not None:
                from sixfold.learners.distributed import refuse_cluster

                refuse_cluster(self, batch=warn is not None)
            return self._fit_on_cluster(X, y, sample_weight, solve)
        with self._unchanged_on_failure():
            self._check_parameters()
            check_seed(getattr(self, "random_state", None))
            data = (check or self._check)(X, y, sample_weight)
            problem = self._state_problem(data)
            with self._budget(X, y) as budget, self._threads(data), self._arithmetic(data):
                solution = (solve or self._solve)(problem, data, budget)
            self._set_fitted(solution, data, budget)
            self._fit_parameters = {name: getattr(self, name) for name in _parameter_names(type(self))}
            self._subject = describe(self, X, y, sample_weight, self._subject_before())
        (warn or self._warn)(solution, data, budget)
        return self

    def _fit_on_cluster(self, X: Any, y: Any, sample_weight: Any, solve: Step) -> Self:
        """Fit rows that stay on their workers."""
        from sixfold.learners.distributed import refuse_cluster

        refuse_cluster(self)

    def _run_batch(self, X: Any, y: Any, sample_weight: Any, check: Step, solve: Step) -> Self:
        """Learn from more rows, going on from the model there is."""
        return self._run_fit(X, y, sample_weight, check, solve, self._warn_of_batch)

    def _subject_before(self) -> Subject | None:
        """Return what the rows before were, where these are added to them."""
        return None

    def _check_parameters(self) -> None:
        """Raise an :class:`InputError` for a parameter that cannot be used as given."""

    @abstractmethod
    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> Any:
        """Return table and targets as solvers read them; compare with those of the fit unless ``reset``."""

    @abstractmethod
    def _state_problem(self, data: Any) -> Any:
        """Return what is to be solved, and with what."""

    @abstractmethod
    def _solve(self, problem: Any, data: Any, budget: Budget) -> Any:
        """Return the solution."""

    @abstractmethod
    def _set_fitted(self, solution: Any, data: Any, budget: Budget) -> None:
        """Set the fitted attributes."""

    def _warn(self, solution: Any, data: Any, budget: Budget) -> None:
        """Warn of what has to be known, and raise the KeyboardInterrupt that the budget held back."""
        if budget.stopped_by is not None or budget.interrupted:
            budget.conclude(self.certificate_)

    def _warn_of_batch(self, solution: Any, data: Any, budget: Budget) -> None:
        """Raise the KeyboardInterrupt that the budget held back; a batch is short of the optimum anyway."""
        if budget.interrupted:
            budget.conclude(self.certificate_)

    # -- what surrounds the solver -----------------------------------------------------------------------

    def _limits(self) -> tuple[float, int | None]:
        """Return the tolerance and the most iterations of a fit."""
        return 0.0, None

    @contextmanager
    def _budget(self, X: Any, y: Any) -> Iterator[Budget]:
        """Give the budget that the parameters state."""
        tol, max_iter = self._limits()
        check_number("tol", tol, at_least=0)
        check_number("max_iter", max_iter, at_least=1, whole=True, optional=True)
        check_number("time_limit", self.time_limit, above=0, optional=True)
        with (
            self._callbacks(X, y, max_iter) as callbacks,
            Budget(tol, max_iter, self.time_limit, callbacks) as budget,
        ):
            yield budget

    @contextmanager
    def _callbacks(self, X: Any, y: Any, max_iter: int | None) -> Iterator[list[Callable[[Record], Any]]]:
        """Give what is called after each iteration."""
        yield []

    def _threads(self, data: Any) -> AbstractContextManager[None]:
        return thread_limit(self.n_jobs)

    @contextmanager
    def _arithmetic(self, data: Any) -> Iterator[None]:
        """Say which values are at fault where the arithmetic inside meets what is not finite."""
        yield

    @contextmanager
    def _unchanged_on_failure(self) -> Iterator[None]:
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    # -- figures -----------------------------------------------------------------------------------------

    def plot(self, X: Any = None, y: Any = None, **options: Any) -> Any:
        """Draw the figure that fits this model: its tree, its coefficients, its decision boundary.

        Parameters
        ----------
        X, y : table and targets, default=None
            Rows to draw, for figures that show some: the decision boundary of kNN and support vector
            machines needs them.
        **options
            ``kind`` asks for another figure ("boundary", "calibration", "coefficients", "history", "path",
            "residuals", "threshold", "tree", "validation"), ``ax`` says where to draw, ``dark`` that the
            ground is dark; others are those of the figure in :mod:`sixfold.plot`.

        Returns
        -------
        matplotlib Axes
        """
        from sixfold.explain.plots.choose import plot_model

        check_is_fitted(self)
        return plot_model(self, X, y, **options)

    # -- the certificate ---------------------------------------------------------------------------------

    @property
    def certificate_(self) -> Certificate:
        """How far from the best possible fit this one is at most; ``verify(X, y)`` recomputes it."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__} has no certificate_ before it is fitted.")
        # Bound here and not when it was made, so that a copy of the model verifies itself.
        return replace(self._certify(), subject=self._subject, model=self)

    @property
    def _subject(self) -> Subject | None:
        """What was fitted, and to what; None where no fit has told."""
        found = self.__dict__.get("_fitted_to")
        if callable(found):
            found = self.__dict__["_fitted_to"] = found()
        return found

    @_subject.setter
    def _subject(self, subject: Subject | Callable[[], Subject]) -> None:
        self.__dict__["_fitted_to"] = subject

    def __getstate__(self) -> Any:
        """Return what a pickle holds: no date and no seconds, so that two fits of the same data are the same.

        And the subject, not the numbers that it is made of.
        """
        state, subject = dict(super().__getstate__()), self._subject
        if subject is not None:
            state["_fitted_to"] = replace(subject, date="")
        if "history_" in state:
            state["history_"] = [record._replace(seconds=0.0) for record in state["history_"]]
        return state

    def __copy__(self) -> Self:
        """Return a model with the same attributes, date and seconds among them."""
        model = type(self).__new__(type(self))
        model.__dict__.update(self.__dict__)
        return model

    def _certify(self) -> Certificate:
        return self._certificate

    def _relative_to(self) -> str:
        """Say what the scale of the certificate is."""
        return CONSTANT_MODEL

    def _verify(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Certificate:
        """Return what the checker finds; raise a :class:`CertificateError` where it contradicts the claim."""
        if isinstance(X, Scan):
            with read_rows(self, X, y, sample_weight) as rows:
                return self._verify(claimed, rows.X, rows.y, rows.weight)
        if is_collection(X):
            raise InputError(
                "verify recomputes the claim from rows in memory, and these are on a cluster. Pass them as "
                "arrays: certificate_.verify(X.compute(), y.compute())."
            )
        own = self._subject
        handed_on = claimed.subject is not own
        if handed_on and claimed.subject is not None and own is not None:
            _require_same_model(claimed, replace(self._certify(), subject=own))
        with same_subject(claimed.subject, X, y, sample_weight, handed_on) as subject:
            found = self._as_fitted()._recompute(claimed, X, y, sample_weight).compare(claimed)
        return replace(found, subject=subject)

    def _as_fitted(self) -> Self:
        """Return the model with the parameters of its fit: set_params speaks of the next one."""
        model = copy(self)
        model.__dict__.update(self.__dict__.get("_fit_parameters", {}))
        return model

    @abstractmethod
    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        """Hand the public attributes and the data to the checker."""

    def __sklearn_is_fitted__(self) -> bool:
        return "_certificate" in self.__dict__


class IterativeLearner(Learner):
    """A learner that iterates: callbacks, the user's and scikit-learn's, and ``verbose``."""

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
        if not isinstance(given, Iterable) or callable(given) or not all(map(callable, given)):
            raise InputError(
                f"callbacks={given!r} is no sequence of callables. Pass a list, for instance [print]."
            )
        if not (given or self.verbose or hasattr(self, "_skl_callbacks")):
            yield []
            return
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


# -- what a certificate speaks of ----------------------------------------------------------------------------


def describe(
    model: Any, X: Any, y: Any, sample_weight: Any, before: Subject | None = None
) -> Subject | Callable[[], Subject]:
    """Return what the certificate of a model speaks of that has just learnt these rows, and those before.

    Of a few numbers a copy is kept, and the subject is made of it when it is asked for: hashing 100 x 4
    numbers takes 25 microseconds and 1,000 x 10 take 56, a tenth of a small fit; copying them 1 and 4.
    """
    make = partial(
        _describe, type(model).__name__, model._fit_parameters, time.time(), model._relative_to(), before
    )
    given = (X, y) if sample_weight is None else (X, y, sample_weight)
    if before is None and all(type(part) is np.ndarray and part.nbytes <= KEPT_BYTES for part in given):
        return partial(make, *(part.copy() for part in given))
    return make(*given)


def _describe(
    learner: str,
    parameters: dict[str, Any],
    seconds: float,
    relative_to: str,
    before: Subject | None,
    X: Any,
    y: Any,
    sample_weight: Any = None,
) -> Subject:
    rows, columns, size = table_size(X)
    if size > FINGERPRINT_BYTES:
        taken, note = (
            None,
            f"not taken at the fit of {size / 1e6:.0f} MB, to save time; verify(X, y) takes it",
        )
    else:
        taken = fingerprint(X, y, sample_weight)
        note = "" if taken else "there is none of rows that are neither numbers nor text"
    if before is not None:
        rows += before.rows
        if taken is not None and before.fingerprint is not None:  # they are sums over the rows
            taken = f"{(int(taken, 16) + int(before.fingerprint, 16)) % 2**64:016x}"
        else:
            taken, note = None, before.fingerprint_note or note
    return Subject(
        learner,
        {name: plain_parameter(value) for name, value in parameters.items()},
        __version__,
        datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds"),
        rows,
        columns,
        taken,
        note,
        relative_to,
    )


@cache
def _parameter_names(learner: type) -> list[str]:
    # Looking at the signature takes longer than hashing a small table.
    return list(learner._get_param_names())  # type: ignore[attr-defined]


def _require_same_model(claimed: Certificate, own: Certificate) -> None:
    """Raise a :class:`CertificateError` that names what is another than in the model's own certificate."""
    said, true = (
        {name: getattr(one.subject, name) for name in ("learner", "rows", "columns")}
        | {"tolerance": one.tolerance}
        | one.subject.parameters  # type: ignore[union-attr]
        for one in (claimed, own)
    )
    other = [
        f"{name} is {said.get(name)!r} there and {true.get(name)!r} here"
        for name in true | said
        if name not in said or name not in true or said[name] != true[name]
    ]
    if other:
        raise CertificateError(
            f"The certificate speaks of another model: {', '.join(other)}. Bind it to the model it came from."
        )


@contextmanager
def same_subject(
    subject: Subject | None, X: Any, y: Any, sample_weight: Any, handed_on: bool
) -> Iterator[Subject | None]:
    """Give the subject with the fingerprint of these data; a check that fails on others says so.

    A certificate that was handed on speaks of its data alone. That of the model itself may be checked on rows
    that were made anew, which differ by rounding.
    """
    taken, other = fingerprint(X, y, sample_weight), ""
    if subject is not None and taken is not None and taken != subject.fingerprint:
        if subject.fingerprint is not None:
            other = (
                f"X, y and the weights have the fingerprint {taken}, those of the fit {subject.fingerprint}: "
                "the data are not those of the fit. "
            )
        note = f"of the rows that were checked; those of the fit have {subject.fingerprint}" if other else ""
        subject = replace(subject, fingerprint=taken, fingerprint_note=note)
    try:
        yield subject
    except CertificateError as error:
        raise CertificateError(f"{other}{error}") from error
    if other and handed_on:
        raise CertificateError(f"{other}Pass X, y and, if there were weights, the sample_weight of the fit.")
    rows, columns, _ = table_size(X)
    if handed_on and subject is not None and (subject.rows, subject.columns) != (rows, columns):
        raise CertificateError(
            f"The certificate speaks of {subject.rows} rows and {subject.columns} columns, but X has {rows} "
            f"and {columns}. Pass the data of the fit."
        )
