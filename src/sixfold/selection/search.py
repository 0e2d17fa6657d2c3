"""All candidates on all folds, with the work that they share done once.

    candidates  ->  groups with a plan each (:mod:`sixfold.selection.plans.groups`)
    plan, fold  ->  a fitted model for every candidate  ->  its scores on the held-out rows

Plans and folds are independent tasks, group by group, so that candidates are complete as early as possible.
The time of a fit is the time until the plan had it: the first of a fold pays for what all of them share.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from queue import Empty, SimpleQueue
from statistics import fmean
from threading import Event, get_ident
from traceback import format_exc
from typing import Any, NamedTuple

from numpy.typing import NDArray
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from sixfold.budget import interrupt
from sixfold.selection.plans.base import Answered, Fitted, Fold, Later, Plan, Table
from sixfold.selection.plans.groups import fit_one, gap_of, make_plans, weight_parameter
from sixfold.selection.progress import BestSoFar, Progress
from sixfold.selection.scoring import HeldOutScore
from sixfold.selection.search_certificate import SearchCertificate
from sixfold.solvers.threads import divide_threads, thread_limit

Array = NDArray[Any]
Place = tuple[int, int]  # the numbers of a candidate and a fold

CTRL_C = "Ctrl-C"
WAKE_UP = 0.1  # seconds after which the main thread looks at the clock, and for Ctrl-C
KEPT_FOLDS = 20  # of which the rows are kept for the next plan: that of leave-one-out would not fit in memory


class Failure(NamedTuple):
    """A fit that failed, as its traceback."""

    text: str


class Outcome(NamedTuple):
    """What came of one candidate on one fold."""

    test_scores: Any
    train_scores: Any = math.nan
    rows: int = 0
    fit_time: float = math.nan
    score_time: float = math.nan
    gap: float = math.nan
    solved: int = 0
    error: str | None = None  # of the fit
    score_error: str | None = None
    separate: str | None = None  # why it does not come from a plan

    def to_sklearn(self, metrics: list[str] | None) -> dict[str, Any]:
        """Return it as scikit-learn's ``_fit_and_score`` does; one score for several metrics is each's."""

        def of_each(scores: Any) -> Any:
            return scores if metrics is None or isinstance(scores, dict) else dict.fromkeys(metrics, scores)

        return {
            "test_scores": of_each(self.test_scores),
            "train_scores": of_each(self.train_scores),
            "n_test_samples": self.rows,
            "fit_time": self.fit_time,
            "score_time": self.score_time,
            "fit_error": self.error,
        }


@dataclass(frozen=True)
class Evaluation:
    """How fitted models are judged.

    Attributes
    ----------
    scorer : callable
        Of one metric or of several, as scikit-learn makes it.
    error_score : float or "raise"
    with_train_scores : bool
    fit_parameters, score_parameters : mapping
        What ``fit`` and the scorer take besides rows and targets, for all rows.
    chosen_by : str or None
        Which of several metrics decides.
    """

    scorer: Any
    error_score: Any
    with_train_scores: bool
    fit_parameters: Mapping[str, Any]
    score_parameters: Mapping[str, Any]
    chosen_by: str | None = None

    def every(self, score: Any) -> Any:
        """Return this score for every metric."""
        if isinstance(self.scorer, _MultimetricScorer):
            return dict.fromkeys(self.scorer._scorers, score)
        return score


class Task(NamedTuple):
    """A plan on a fold, and the numbers that its settings have among all candidates."""

    members: list[int]
    plan: Plan
    fold: int


@dataclass
class Search:
    """All candidates on all folds.

    Attributes
    ----------
    model : estimator
    candidates : list of dict
    X, y
        All rows.
    splits : list of (train, test)
    evaluation : Evaluation
    outcomes : dict
        Candidate and fold to their :class:`Outcome`, as far as there is one.
    stopped_by : str or None
        What ended the search early.
    """

    model: Any
    candidates: list[dict[str, Any]]
    X: Any
    y: Any
    splits: list[tuple[Array, Array]]
    evaluation: Evaluation
    outcomes: dict[Place, Outcome] = field(default_factory=dict)
    stopped_by: str | None = None
    _folds: dict[tuple[int, bool], Fold] = field(default_factory=dict)
    _stop: Event = field(default_factory=Event)

    def run(self, n_jobs: int | None, time_limit: float | None, show: Progress) -> None:
        """Evaluate everything, or as much as time and the user allow."""
        end = math.inf if time_limit is None else time.perf_counter() + time_limit
        try:
            for found in self._all_outcomes(n_jobs, timed=time_limit is not None):
                if found is not None:
                    self.outcomes.update([found])
                    show(len(self.outcomes), self.best_so_far)
                if time.perf_counter() > end and len(self.outcomes) < self.asked:
                    self.stopped_by = f"time_limit={time_limit:g} s"
                    break
        except KeyboardInterrupt:
            self.stopped_by = CTRL_C
        finally:
            self._stop.set()
            self.outcomes = dict(sorted(self.outcomes.items()))  # whichever thread was first

    @property
    def asked(self) -> int:
        """How many fits are asked for."""
        return len(self.candidates) * len(self.splits)

    def best_so_far(self) -> BestSoFar:
        """Return the best mean score of those that are complete; before there is one, of the folds done."""
        scores: dict[int, list[float]] = {}
        for (candidate, _), outcome in self.outcomes.items():
            score = outcome.test_scores
            if isinstance(score, dict):
                score = score.get(self.evaluation.chosen_by, math.nan)
            scores.setdefault(candidate, []).append(score)
        folds = len(self.splits)
        complete = [one for one in scores.values() if len(one) == folds]
        means = [mean for mean in map(fmean, complete or scores.values()) if not math.isnan(mean)]
        fewest = folds if complete else min(map(len, scores.values()), default=0)
        return BestSoFar(max(means, default=math.nan), fewest, folds)

    def metrics(self) -> list[str] | None:
        """Return the names of several metrics, which a function as scorer tells only when it is called."""
        scores = (one.test_scores for one in self.outcomes.values())
        return next((list(one) for one in scores if isinstance(one, dict)), None)

    def certificate(self) -> SearchCertificate:
        """Return what is known of all fits together."""
        fits = list(self.outcomes.values())
        gaps = [one.gap for one in fits if not math.isnan(one.gap)]
        failed = sum(one.error is not None for one in fits)
        separate = [one.separate for one in fits if one.separate is not None]
        return SearchCertificate(
            self.asked,
            sum(one.solved for one in fits),
            max(gaps, default=math.nan),
            len(fits) - len(gaps) - failed,
            failed,
            self.asked - len(fits),
            len(separate),
            separate[0] if separate else None,
        )

    # -- tasks ---------------------------------------------------------------------------------------------

    def _tasks(self) -> list[Task]:
        weight = self.evaluation.fit_parameters.get(weight_parameter(self.model))
        table = Table(self.X, self.y, weight, self.splits)
        return [
            Task(members, plan, fold)
            for members, plan in make_plans(self.model, self.candidates, table)
            for fold in range(len(self.splits))
        ]

    def _all_outcomes(self, n_jobs: int | None, timed: bool) -> Iterator[tuple[Place, Outcome] | None]:
        """Yield outcomes as they come from ``n_jobs`` threads, whose loops hold no lock; None to wake up.

        One is this thread, unless it has to look at the clock during a fit.
        """
        tasks = self._tasks()
        jobs, threads = divide_threads(n_jobs, len(tasks))
        if jobs <= 1 and not timed:
            for task in tasks:
                yield from self._outcomes(task)
            return
        at_work: set[int] = set()
        found: SimpleQueue[tuple[Place, Outcome] | Future[None]] = SimpleQueue()

        def run(task: Task) -> None:
            at_work.add(get_ident())
            with thread_limit(threads):
                for outcome in self._outcomes(task):
                    found.put(outcome)

        with ThreadPoolExecutor(jobs) as pool:
            try:
                for task in tasks:
                    pool.submit(run, task).add_done_callback(found.put)
                left = len(tasks)
                while left:
                    try:
                        one = found.get(timeout=WAKE_UP)
                    except Empty:
                        yield None
                        continue
                    if isinstance(one, Future):
                        one.result()  # raises what the task has raised
                        left -= 1
                    else:
                        yield one
            finally:
                self._stop.set()
                interrupt(at_work)
                pool.shutdown(cancel_futures=True)

    def _outcomes(self, task: Task) -> Iterator[tuple[Place, Outcome]]:
        """Yield what comes of the candidates of one plan on one fold."""
        fold = self._fold(task.fold, task.plan.model)
        score, begun = self._scores(fold), time.perf_counter()
        for fitted in self._models(task.plan, fold):
            if self._stop.is_set():
                return
            found = time.perf_counter()
            failed = fitted.model.text if isinstance(fitted.model, Failure) else None
            test, train, error = score(fitted.model)
            times = found - begun, time.perf_counter() - found if failed is None else 0.0
            solved = fitted.solved + (fitted.model.solved if isinstance(fitted.model, Answered) else 0)
            yield (
                (task.members[fitted.setting], task.fold),
                Outcome(
                    test, train, len(fold.test), *times, fitted.gap, solved, failed, error, fitted.separate
                ),
            )
            begun = time.perf_counter()

    def _models(self, plan: Plan, fold: Fold) -> Iterator[Fitted]:
        """Yield what the plan finds; what it cannot find is fitted separately, or fails."""
        missing = dict.fromkeys(range(len(plan.settings)))
        reason = "the shared work has no answer for it"
        try:
            for fitted in plan.fit(fold):
                del missing[fitted.setting]
                yield fitted
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
        for number in missing:
            if self._stop.is_set():
                return
            try:
                model = fit_one(plan.model, plan.settings[number], fold)
                fitted = Fitted(number, model, gap_of(model), separate=reason)
            except Exception:
                if self.evaluation.error_score == "raise":
                    raise
                fitted = Fitted(number, Failure(format_exc()), solved=0)
            yield fitted

    def _scores(self, fold: Fold) -> Callable[[Any], tuple[Any, Any, str | None]]:
        """Return what maps a fitted model to its scores on the fold and, if one failed, to the reason."""
        how = self.evaluation

        def on(X: Any, y: Any, rows: Array) -> HeldOutScore:
            parameters = _check_method_params(self.X, params=how.score_parameters, indices=rows)
            return HeldOutScore(how.scorer, self._scored_model, X, y, parameters, how.error_score)

        test = on(fold.X_test, fold.y_test, fold.test)
        train = on(fold.X_train, fold.y_train, fold.train) if how.with_train_scores else None

        def measured(model: Any, on_rows: HeldOutScore | None) -> tuple[Any, str | None]:
            if on_rows is None:
                return math.nan, None
            if isinstance(model, Failure):
                return how.every(how.error_score), None
            try:
                return on_rows(model), None
            except Exception:
                if how.error_score == "raise":
                    raise
                return how.every(how.error_score), format_exc()

        def score(model: Any) -> tuple[Any, Any, str | None]:
            (on_test, error), (on_train, other) = measured(model, test), measured(model, train)
            return on_test, on_train, error or other

        return score

    def _fold(self, number: int, model: Any) -> Fold:
        """Return a fold for a model; where folds are few, their rows are taken once."""
        key = number, get_tags(model).input_tags.pairwise
        if key in self._folds:
            return self._folds[key]
        train, test = self.splits[number]
        X_train = Later(lambda: _safe_split(model, self.X, None, train)[0])
        y_train = None if self.y is None else _safe_indexing(self.y, train)
        X_test, y_test = _safe_split(model, self.X, self.y, test, train)
        given = _check_method_params(self.X, params=self.evaluation.fit_parameters, indices=train)
        weight = given.get(weight_parameter(self.model))
        fold = Fold(number, train, test, X_train, y_train, X_test, y_test, weight)
        if len(self.splits) <= KEPT_FOLDS:
            self._folds[key] = fold
        return fold

    @cached_property
    def _scored_model(self) -> Any:
        """The model, unless candidates put others into the last step of a pipeline: None."""
        last = self.model.steps[-1][0] if isinstance(self.model, Pipeline) else None
        return None if any(last in one or "steps" in one for one in self.candidates) else self.model
