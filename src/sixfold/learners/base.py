"""The steps of a fit, once for every learner.

    check the parameters and the table -> state the problem -> solve it within a budget
    -> set the fitted attributes -> warn of what has to be known

A family says what each step is (``_check``, ``_state_problem``, ``_solve``, ``_set_fitted``, ``_warn``); a
batch of ``partial_fit`` goes through the same steps with another check and another solver. What they share is
here: limits, callbacks, progress, threads, Ctrl-C, and the certificate. A fit that fails leaves the model as
it was; one that is stopped leaves it fitted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Self

from sklearn.base import BaseEstimator

from sixfold.budget import Budget, Record
from sixfold.certificate import CONSTANT_MODEL, Certificate, Subject
from sixfold.errors import check_number
from sixfold.learners.subject import describe, same_subject
from sixfold.solvers.threads import thread_limit
from sixfold.verify.recomputed import Recomputed

Step = Callable[..., Any] | None


class Learner(BaseEstimator, ABC):
    """An estimator whose every fit ends with a certificate."""

    time_limit: float | None
    n_jobs: int | None = None

    _certificate: Certificate
    _subject: Subject

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
        with self._unchanged_on_failure():
            self._check_parameters()
            data = (check or self._check)(X, y, sample_weight)
            problem = self._state_problem(data)
            with self._budget(X, y) as budget, self._threads(data), self._arithmetic(data):
                solution = (solve or self._solve)(problem, data, budget)
            self._set_fitted(solution, data, budget)
            self._subject = describe(self, X, y, sample_weight)
        (warn or self._warn)(solution, data, budget)
        return self

    def _run_batch(self, X: Any, y: Any, sample_weight: Any, check: Step, solve: Step) -> Self:
        """Learn from more rows, going on from the model there is."""
        return self._run_fit(X, y, sample_weight, check, solve, self._warn_of_batch)

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

    # -- the certificate ---------------------------------------------------------------------------------

    @property
    def certificate_(self) -> Certificate:
        """How far from the best possible fit this one is at most; ``verify(X, y)`` recomputes it."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__} has no certificate_ before it is fitted.")
        # Bound here and not when it was made, so that a copy of the model verifies itself.
        return replace(self._certify(), subject=self.__dict__.get("_subject"), model=self)

    def _certify(self) -> Certificate:
        return self._certificate

    def _relative_to(self) -> str:
        """Say what the scale of the certificate is."""
        return CONSTANT_MODEL

    def _verify(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Certificate:
        """Return what the checker finds; raise a :class:`CertificateError` where it contradicts the claim."""
        handed_on = claimed.subject is not self.__dict__.get("_subject")
        with same_subject(claimed.subject, X, y, sample_weight, handed_on) as subject:
            found = self._recompute(claimed, X, y, sample_weight).compare(claimed)
        return replace(found, subject=subject)

    @abstractmethod
    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        """Hand the public attributes and the data to the checker."""

    def __sklearn_is_fitted__(self) -> bool:
        return "_certificate" in self.__dict__
