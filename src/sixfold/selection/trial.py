"""One learner of a comparison: its search, its final fit, its test.

    search      all candidates of its grid on the folds, in 0.8 of its share of the time
    final fit   of the chosen candidate to the rows it was tuned on; it may take half of the time of all that
                is left, since a model that was cut off predicts little
    test        of the fitted model, once

What a learner warns of becomes notes of its entry, and what it raises the reason why it is left out. Ctrl-C
ends the search; where some of its folds are finished, the best of that is still fitted, in a few seconds.
"""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import ParameterGrid

from sixfold.errors import InputError, TimeLimitReached
from sixfold.explain.last_step import last_step
from sixfold.selection.contenders import Contender
from sixfold.selection.grid_search import GridSearchCV
from sixfold.selection.leaderboard import Entry
from sixfold.selection.plans.groups import limited_time, weight_parameter
from sixfold.selection.progress import Listener, heard_by
from sixfold.selection.rules import require_order

Array = NDArray[Any]

SEARCH_SHARE = 0.8  # of the time that a learner has
AFTER_CTRL_C = 5.0  # seconds for the final fit then
LEAST_SECONDS = 0.01  # a limit has to be above 0
INTERRUPTED = "interrupted"
# Said by scikit-learn of every fold that lacks a class, which changes nothing.
NOT_WORTH_A_NOTE = re.compile(r"y_pred contains classes not in y_true|The least populated class")


class Rows(NamedTuple):
    """Some rows of a table."""

    X: Any
    y: Array
    weight: Array | None = None


@dataclass
class Trial:
    """One learner of a comparison.

    Attributes
    ----------
    one : Contender
    folds : list of (train, test)
    scoring, rule, n_jobs
        As in :class:`GridSearchCV`; the rule is "best" where nothing in the grid is simpler.
    end, last : float
        When its share of the time is over, and that of all learners, by ``time.perf_counter``.
    interrupted : bool
        Whether Ctrl-C was pressed meanwhile.
    """

    one: Contender
    folds: list[tuple[Array, Array]]
    scoring: Any = None
    rule: str = "best"
    n_jobs: int | None = None
    end: float = math.inf
    last: float = math.inf
    interrupted: bool = False

    @property
    def fits(self) -> int:
        """How many fits its search asks for."""
        return len(ParameterGrid(self.one.grid or {})) * len(self.folds)

    def run(self, train: Rows, test: Rows | None, listener: Listener) -> Entry:
        """Return its line of the leaderboard."""
        one = self.one
        if one.left_out:
            return Entry(one.name, left_out=one.left_out)
        with noted() as notes:
            try:
                entry = self._tuned(train, test, listener)
            except TimeLimitReached:
                return Entry(one.name, left_out="its share of the time was over before a fold was done")
            except Exception as error:  # of one learner: the others go on
                return Entry(one.name, left_out=reason_of(error))
        return replace(entry, notes=(*one.notes, *entry.notes, *notes))

    def _tuned(self, train: Rows, test: Rows | None, listener: Listener) -> Entry:
        start = time.perf_counter()
        search = self._searched(train, listener)
        spent = time.perf_counter() - start
        results, chosen = search.cv_results_, search.best_index_
        scores = np.array([results[f"split{k}_test_score"][chosen] for k in range(search.n_splits_)])
        self._fit_chosen(search, train)
        seconds, score, said = self._tested(search, train, test, bool(np.isnan(scores).all()))
        if self.interrupted:
            asked, unfinished = search.certificate_.asked, search.certificate_.unfinished
            said = (f"interrupted after {asked - unfinished:,} of {asked:,} fits", *said)
        return Entry(
            self.one.name,
            float(scores.mean()),
            float(scores.std()),
            scores,
            score,
            spent,
            search.refit_time_,
            seconds,
            {name.partition("__")[2] or name: value for name, value in search.best_params_.items()},
            certificate_of(search.best_estimator_),
            said,
            search,
            fitted_rows=len(train.y),
        )

    def _searched(self, train: Rows, listener: Listener) -> GridSearchCV:
        """Return the search, done as far as time and Ctrl-C allow, without the final fit."""
        search = GridSearchCV(
            self.one.model,
            self.one.grid or {},
            scoring=self.scoring,
            cv=self.folds,
            rule=self._rule(),
            n_jobs=self.n_jobs,
            time_limit=self._search_limit(),
            refit=False,
        )
        try:
            with heard_by(listener):
                search.fit(train.X, train.y, **self._weights(train))
        except KeyboardInterrupt:
            if not hasattr(search, "best_index_"):
                raise
            self.interrupted = True
        return search.set_params(refit=True)

    def _rule(self) -> str:
        grids = [self.one.grid] if isinstance(self.one.grid, dict) else self.one.grid
        try:
            require_order(self.one.model, [name for grid in grids for name in grid])
        except InputError:
            return "best"  # nothing is simpler among these
        return self.rule

    def _fit_chosen(self, search: GridSearchCV, train: Rows) -> None:
        """Fit the chosen candidate to all rows; once more, quickly, if Ctrl-C ends that."""
        while True:
            limit = AFTER_CTRL_C if self.interrupted else self._left_after_search()
            try:
                search._fit_best(train.X, train.y, self._weights(train), None if math.isinf(limit) else limit)
                return
            except KeyboardInterrupt:
                if self.interrupted:
                    raise
                self.interrupted = True

    def _tested(
        self, search: GridSearchCV, train: Rows, test: Rows | None, never_scored: bool
    ) -> tuple[float, float, tuple[str, ...]]:
        """Return the seconds that the test took, its score, and what to say about it."""
        if test is None:
            if never_scored:
                search.scorer_(search.best_estimator_, train.X, train.y)  # says why
            return math.nan, math.nan, ()
        start = time.perf_counter()
        limit = self._left_after_search()
        try:
            with limited_time(search.best_estimator_, None if math.isinf(limit) else limit):
                score = float(search.scorer_(search.best_estimator_, test.X, test.y))
        except TimeLimitReached:
            return math.nan, math.nan, ("no test score: its share of the time was over",)
        except Exception as error:
            if never_scored:
                raise
            return math.nan, math.nan, (f"no test score: {reason_of(error)}",)
        return time.perf_counter() - start, score, ()

    def _weights(self, rows: Rows) -> dict[str, Any]:
        return {} if rows.weight is None else {weight_parameter(self.one.model): rows.weight}

    def _search_limit(self) -> float | None:
        seconds = SEARCH_SHARE * (self.end - time.perf_counter())
        return None if math.isinf(seconds) else max(LEAST_SECONDS, seconds)

    def _left_after_search(self) -> float:
        now = time.perf_counter()
        return max(LEAST_SECONDS, self.end - now, (self.last - now) / 2)


def reason_of(error: Exception) -> str:
    """Return what an error says, without what the search puts before it."""
    said = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, AttributeError) and "predict_proba" in said:
        return "it gives no probabilities, which this score needs"
    return re.sub(r"^All the \d+ fits failed\. The first was .*?\}: ([\w.]+: )?", "", said)


def certificate_of(model: Any) -> str:
    """Return what the certificate of a fitted model says; empty where it has none."""
    found = getattr(last_step(model), "certificate_", None)
    return "" if found is None else str(found)


@contextmanager
def noted() -> Iterator[list[str]]:
    """Give the warnings of what is done here when it is done; of those that differ in numbers, the last."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    said = (str(one.message) for one in caught)
    notes.extend({re.sub(r"\d+", "", one): one for one in said if not NOT_WORTH_A_NOTE.match(one)}.values())
