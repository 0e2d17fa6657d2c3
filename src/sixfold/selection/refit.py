"""The chosen learner on all training rows, where it was tuned on a sample of them.

    seconds(r)  =  s (r / n)^g         s: the final fit to the n rows of the sample;  g: how the learner grows
    bytes(r)    =  8 r d               of the encoded table, d columns

As many rows are taken as time and memory allow. Where that is less than twice the sample, or the fit does not
reach its optimum in time, the model of the sample stays, and its entry says so.
"""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils._indexing import _safe_indexing

from sixfold.errors import TimeLimitReached
from sixfold.explain.last_step import last_step
from sixfold.selection.contenders import AS_THEY_ARE, GOWER
from sixfold.selection.leaderboard import Entry
from sixfold.selection.memory import give_back_memory
from sixfold.selection.plans.groups import limited_time, with_setting
from sixfold.selection.trial import certificate_of, noted, reason_of

Array = NDArray[Any]

MOST_BYTES = 128 << 20  # of an encoded table; learners work on it as it is, or
MOST_TIMES = 0.8  # as many as the table itself has, as numbers
SHARE_OF_LIMIT = 0.25  # of a limit of memory, for rows that learners read as they are: they copy them
PORTION = 50_000  # rows that are encoded at a time
FIT_SHARE = 0.6  # of the time that is left; the estimate is rough, and the test follows
WORTH_IT = 2.0  # times the rows of the sample
GROWTH = {"SVM (rbf)": 2.0}  # of the seconds of a fit with the rows
USUAL_GROWTH = 1.1  # sorting, and tables that leave the cache
COMPARE_ROWS = (
    "nearest neighbours",
    GOWER,
    "SVM (rbf)",
)  # their predictions slow down with the training rows


@dataclass(frozen=True)
class WholeTable:
    """All rows, of which the entry's model knows a sample.

    Attributes
    ----------
    X, y, weight
        Of all rows.
    train, test : ndarray
        The numbers of the training rows and of the test rows.
    test_sample : ndarray
        Those of the test rows that the model of the sample was tested on.
    draw : callable
        From training rows and how many are wanted to a sample of them.
    end : float
        When time is over, by ``time.perf_counter``.
    memory_limit : float or None
        Bytes that the caller keeps to by putting large arrays of numbers into files; rows of other tables are
        as many as take a quarter of it.
    """

    X: Any
    y: Array
    weight: Array | None
    train: Array
    test: Array
    test_sample: Array
    draw: Any
    end: float = math.inf
    memory_limit: float | None = None

    def refit(self, entry: Entry) -> Entry:
        """Return the entry with a model of as many training rows as time and memory allow, tested anew."""
        rows, why = self._affordable(entry)
        if rows < WORTH_IT * entry.fitted_rows:
            return replace(entry, notes=(self._said(entry.fitted_rows, why), *entry.notes))
        chosen = self.train if rows >= self.train.size else self.draw(self.train, rows)
        start = time.perf_counter()
        with noted() as notes:
            try:
                model, failed = self._fitted(entry.search, chosen), ""
            except (TimeLimitReached, MemoryError):
                failed = "time or memory did not suffice for more"
            except Exception as error:
                failed = reason_of(error)
        if not failed and converged(entry.model) and not converged(model):
            failed = "time was over before the fit to more rows reached its optimum"
        if failed:
            return replace(entry, notes=(self._said(entry.fitted_rows, failed), *entry.notes))
        spent = time.perf_counter() - start
        search = copy.copy(entry.search)
        search.best_estimator_, search.refit_time_ = model, spent
        said = () if chosen.size == self.train.size else (self._said(chosen.size, why),)
        grown = chosen.size / entry.fitted_rows if entry.name in COMPARE_ROWS else 1.0
        entry = replace(
            entry,
            search=search,
            fit_seconds=spent,
            fitted_rows=chosen.size,
            certificate=certificate_of(model),
            notes=tuple(dict.fromkeys((*said, *entry.notes, *notes))),
        )
        return self._tested(entry, grown)

    def _said(self, rows: int, why: str) -> str:
        return f"fitted to {rows:,} of {self.train.size:,} training rows: {why}"

    def _affordable(self, entry: Entry) -> tuple[int, str]:
        """Return how many training rows time and memory allow, and why they are not more."""
        growth = GROWTH.get(entry.name, USUAL_GROWTH)
        seconds = max(entry.fit_seconds, 1e-3)
        left = FIT_SHARE * (self.end - time.perf_counter())
        by_time = entry.fitted_rows * (max(left, 0.0) / seconds) ** (1.0 / growth)  # infinite without a limit
        width = int(getattr(last_step(entry.model), "n_features_in_", 1))
        if self.memory_limit is None:
            by_memory = max(MOST_BYTES, MOST_TIMES * 8 * math.prod(self.X.shape)) / (8 * width)
        elif entry.name in (*AS_THEY_ARE, *COMPARE_ROWS):  # whose tables, or models, are in memory
            by_memory = self._rows_in_memory(width)
        else:
            by_memory = math.inf
        rows = int(min(self.train.size, by_time, by_memory))
        if by_time <= by_memory:
            needed = seconds * (self.train.size / entry.fitted_rows) ** growth
            return rows, f"all of them would take about {needed:,.0f} s, longer than there is"
        return (
            rows,
            f"all of them would need {8 * width * self.train.size / 1e6:,.0f} MB as {width:,} columns",
        )

    def _rows_in_memory(self, width: int) -> float:
        return math.inf if self.memory_limit is None else SHARE_OF_LIMIT * self.memory_limit / (8 * width)

    def _fitted(self, search: Any, rows: Array) -> Any:
        """Return the chosen candidate fitted to these rows, none of which is in memory longer than needed."""
        model = with_setting(search.estimator, search.best_params_)
        y = self.y[rows]
        given = {} if self.weight is None else {"sample_weight": self.weight[rows]}
        steps = model.steps[:-1] if isinstance(model, Pipeline) else []
        X = self._encoded(Pipeline(steps), rows, y) if steps else _safe_indexing(self.X, rows)
        give_back_memory()
        limit = FIT_SHARE * (self.end - time.perf_counter())
        with limited_time(model, None if math.isinf(limit) else max(limit, 1e-2)):
            last_step(model).fit(X, y, **given)
        return model

    def _encoded(self, before: Pipeline, rows: Array, y: Array) -> Any:
        """Return the rows as the steps before the learner give them to it; numbers portion by portion."""
        encoder = before.steps[-1][1]
        if self.memory_limit is not None and len(before) == 1 and encoder.categories == "one-hot":
            encoder.fit_batches(
                _safe_indexing(self.X, rows[start : start + PORTION])
                for start in range(0, rows.size, PORTION)
            )
            first = before.transform(_safe_indexing(self.X, rows[:PORTION]))
        else:
            X = _safe_indexing(self.X, rows)
            before.fit(X, y)
            first = before.transform(X[:PORTION])
            if not isinstance(first, np.ndarray):
                return before.transform(X)
            del X
        encoded = np.empty((rows.size, first.shape[1]), dtype=first.dtype)
        for start in range(0, rows.size, PORTION):
            encoded[start : start + PORTION] = before.transform(
                _safe_indexing(self.X, rows[start : start + PORTION])
            )
        return encoded

    def _tested(self, entry: Entry, grown: float) -> Entry:
        """Return the entry with the test score of its new model, which predicts that much slower."""
        if self.test.size == 0:
            return entry
        expected = grown * entry.predict_seconds * self.test.size / max(1, self.test_sample.size)
        left = self.end - time.perf_counter()
        all_of_them = not expected > left
        tested = self.test if all_of_them else self.test_sample
        fitting = self._rows_in_memory(self.X.shape[1])
        if all_of_them and tested.size > fitting:
            tested = self.draw(self.test, int(fitting))
        start = time.perf_counter()
        X, y = _safe_indexing(self.X, tested), self.y[tested]
        with noted() as notes:
            try:
                with limited_time(entry.model, None if math.isinf(left) else max(left, 1e-2)):
                    score = float(entry.search.scorer_(entry.model, X, y))
            except Exception as error:
                score = math.nan
                notes.append(f"no test score: {reason_of(error)}")
        if tested.size < self.test.size:
            why = "memory" if all_of_them else "time"
            notes.append(f"tested on {tested.size:,} of {self.test.size:,} test rows, for the sake of {why}")
        return replace(
            entry,
            test=score,
            predict_seconds=time.perf_counter() - start,
            notes=tuple(dict.fromkeys((*entry.notes, *notes))),
        )


def converged(model: Any) -> bool:
    """Return whether a fitted model is as good as was asked for, or makes no claim about that."""
    certificate = getattr(last_step(model), "certificate_", None)
    return certificate is None or bool(certificate.converged)
