"""Compare learners: each tuned on a grid that suits the table, all on the same folds, and a test at the end.

    rows = training rows + test rows, which are looked at once, by the tuned models
    each learner    the best candidate of its grid by cross-validation on the training rows, fitted to all
    leaderboard     by mean score, with a corrected paired t-test of each against the first

Where rows are many, learners may be tuned on a sample of them (``max_rows``), and the chosen one is fitted to
all (:mod:`sixfold.selection.refit`). Learners that did not finish all folds when time was up stand below
those that did, and are not tested. The mean score of a tuned model is somewhat too good, since it was chosen
for it; the test score is not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import indexable
from sklearn.utils._indexing import _safe_indexing

from sixfold.data.checks import check_weight
from sixfold.errors import InputError, check_number, check_option
from sixfold.selection.contenders import Contender, contenders
from sixfold.selection.leaderboard import BASELINE, Comparison, Entry
from sixfold.selection.memory import give_back_memory
from sixfold.selection.paired_test import corrected_p_value
from sixfold.selection.parts import class_counts, draw_sample, make_folds, split_off_test
from sixfold.selection.refit import WholeTable
from sixfold.selection.rules import RULES
from sixfold.selection.scoring import check_scoring, metric_in_words
from sixfold.selection.target import as_array, check_table, check_target, check_variety, task_of
from sixfold.selection.trial import INTERRUPTED, Rows, Trial, noted

Array = NDArray[Any]

FOLDS = 5
# Beyond so many training rows the command line tunes on a sample. Of a million with 30 columns, a tree on
# 20,000 was worse than logistic regression, and on 50,000 better, as on all; 100,000 need 300 MB more.
SAMPLE_ROWS = 50_000
# With a short time limit the sample is smaller: learners that finish all folds on fewer rows tell more.
LEAST_SAMPLE_ROWS = 5_000
ROWS_EACH_SECOND = 500  # seven learners on 50,000 rows of 42 columns took 20 s, and 40 s on a busy computer
REFIT_SHARE = 0.3  # of the time, kept for the fit to all rows where learners are tuned on a sample


class Watcher(Protocol):
    """Hears of the progress of a comparison, in the thread that makes it."""

    def start(self, name: str, fits: int) -> None:
        """Hear that a learner begins, whose search makes so many fits."""

    def update(self, name: str, done: int, fits: int, best: float) -> None:
        """Hear how many fits are done, and the best mean score so far, NaN before there is one."""

    def finish(self, entry: Entry) -> None:
        """Hear what came of a learner; of one that is left out, without a start."""


def compare(
    X: Any,
    y: Any,
    learners: Any = "all",
    *,
    task: str = "auto",
    scoring: Any = None,
    cv: Any = FOLDS,
    test_size: float = 0.2,
    rule: str = "best",
    sample_weight: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    random_state: Any = 0,
    verbose: int = 0,
    max_rows: int | None = None,
) -> Comparison:
    """Tune every learner that suits the task, and rank them.

    Columns of numbers are standardised (trees take them as they are), columns of text become one column for
    each category, unknown values are filled in by the median, dates become numbers of days. Text with few
    rows for each value, such as names, is left out and named below the table: fewer than five for trees,
    fewer than two for the others. A baseline that ignores the columns takes part.

    Parameters
    ----------
    X : array, table or sparse matrix of shape (n_samples, n_features)
        The columns to predict from: numbers, or in a table text and categories too.
    y : array of shape (n_samples,)
        Labels or numbers to predict.
    learners : "all", str or sequence of str, default="all"
        Which: "logistic regression", "logistic regression (l1)", "perceptron", "linear SVM", "SVM (rbf)",
        "tree", "nearest neighbours"; for numbers "ridge regression", "lasso", "absolute loss", "nearest
        neighbours".
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" takes text, booleans and up to 20 different whole numbers for classes.
    scoring : str or callable, default=None
        By what models are ranked; None is accuracy, or R-squared for numbers.
    cv : int, splitter or iterable, default=5
        The folds of the training rows; a number is lowered to the rows of the rarest class.
    test_size : float, default=0.2
        The share of rows that is held out for the test at the end; 0 for none.
    rule : {"best", "1se"}, default="best"
        How a candidate is chosen from its grid; see :class:`GridSearchCV`.
    sample_weight : array of shape (n_samples,), default=None
        How much each row counts in the fits.
    groups : array of shape (n_samples,), default=None
        Rows of one group stay together, in the test rows and in the folds where ``cv`` is a number or a
        splitter that keeps groups.
    n_jobs : int, default=None
        As in :class:`GridSearchCV`.
    time_limit : float, default=None
        Most seconds for everything, shared among the learners; those that did not finish all folds are marked
        and ranked below those that did, those that finished none are left out, and said to be.
    random_state : int, RandomState or None, default=0
        Draws the test rows and the folds.
    verbose : int, default=0
        Whether to show what is being done.
    max_rows : int, default=None
        Where there are more training rows, learners are tuned on a sample of so many, and the best one is
        fitted to all of them, as far as time and memory allow. None for no sample.

    Returns
    -------
    Comparison
        The leaderboard: prints as a table, ``to_frame()``, ``plot()``, and the tuned models.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sixfold import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> result = compare(X, y, ["tree", "nearest neighbours"])
    >>> result.best.name, round(result.best.test, 2)
    ('nearest neighbours', 1.0)
    """
    run = ComparisonRun(
        X,
        y,
        learners,
        task=task,
        scoring=scoring,
        cv=cv,
        test_size=test_size,
        rule=rule,
        sample_weight=sample_weight,
        groups=groups,
        n_jobs=n_jobs,
        time_limit=time_limit,
        random_state=random_state,
        max_rows=max_rows,
        watcher=_Printed() if verbose else None,
    )
    for _ in run:
        pass
    if run.sample_rows is not None:
        run.refit(run.comparison().best)
    return run.comparison()


class ComparisonRun:
    """A comparison in the making: iterate to tune one learner after the other.

    What is finished stays in ``entries``, also where Ctrl-C or the caller ends the loop, and ``comparison()``
    ranks it. The parameters are those of :func:`compare`.

    Parameters
    ----------
    X, y, learners, task, scoring, cv, test_size, rule, sample_weight, groups, n_jobs, time_limit
    random_state, max_rows
        As in :func:`compare`. The time begins now, and covers everything up to the end of :meth:`refit`.
    memory_limit : float, default=None
        Bytes that the caller keeps to: arrays beyond some size are in files, so that the fit to all rows
        takes them all where its columns are numbers.
    watcher : Watcher, default=None
        Hears of the progress.

    Attributes
    ----------
    names : list of str
        The learners, in the order in which they are tuned.
    train, test : ndarray
        The numbers of the training rows and of the test rows.
    sample_rows : int or None
        How many of the training rows learners are tuned on; None for all.
    entries : list of Entry
        Of the learners that are finished, or left out.
    task, metric : str
    folds : list of (train, test)
        The numbers of the rows in the table that learners are tuned on.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        learners: Any = "all",
        *,
        task: str = "auto",
        scoring: Any = None,
        cv: Any = FOLDS,
        test_size: float = 0.2,
        rule: str = "best",
        sample_weight: Any = None,
        groups: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        random_state: Any = 0,
        max_rows: int | None = None,
        memory_limit: float | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        begun = time.perf_counter()
        _check(test_size, time_limit, scoring, rule)
        check_number("max_rows", max_rows, at_least=2, whole=True, optional=True)
        X, y, groups = X if hasattr(X, "shape") else np.asarray(X), as_array(y), as_array(groups)
        check_target(y)
        check_table(X, y)
        X, y, groups = indexable(X, y, groups)
        self.task = task_of(task, y)
        check_variety(y, self.task, "y")
        self.metric = metric_in_words(scoring, self.task)
        self._options = {"scoring": scoring, "rule": rule, "n_jobs": n_jobs}
        self._watcher = watcher
        self.train, self.test = split_off_test(y, groups, test_size, self.task, random_state)

        def draw(rows: Array, most: int) -> Array:
            return draw_sample(rows, y, groups, most, self.task, random_state)

        most = _most_rows(max_rows, time_limit)
        rows = self.train if most is None else draw(self.train, most)
        sampled = rows.size < self.train.size
        self.sample_rows = int(rows.size) if sampled else None
        tested = draw(self.test, math.ceil(self.test.size * rows.size / self.train.size))
        weight = check_weight(sample_weight, len(y))
        self._train = Rows(_safe_indexing(X, rows), y[rows], None if weight is None else weight[rows])
        check_variety(self._train.y, self.task, "the training part of y")
        self._test = Rows(_safe_indexing(X, tested), y[tested]) if tested.size else None
        own_groups = None if groups is None else groups[rows]
        self.folds = make_folds(cv, self._train.X, self._train.y, own_groups, self.task, random_state)
        with noted():  # the learners will say it again
            self._who = contenders(self.task, self._train.X, self._train.y, learners)
        self.names = [one.name for one in self._who]
        self.entries: list[Entry] = []
        self.time_limit = time_limit
        self._end = math.inf if time_limit is None else begun + time_limit
        self._tuned_by = self._end - (REFIT_SHARE * time_limit if sampled and time_limit else 0.0)
        self._whole = WholeTable(X, y, weight, self.train, self.test, tested, draw, self._end, memory_limit)

    def __iter__(self) -> Iterator[Entry]:
        """Tune the learners that are not tuned yet; KeyboardInterrupt passes, and what is finished stays."""
        for number in range(len(self.entries), len(self._who)):
            one = self._who[number]
            try:
                entry, interrupted = self._tune(number, one)
            except KeyboardInterrupt:
                entry, interrupted = Entry(one.name, left_out=INTERRUPTED), True
            self.entries.append(entry)
            if self._watcher is not None:
                self._watcher.finish(entry)
            if interrupted:
                raise KeyboardInterrupt
            if self.sample_rows is not None:
                give_back_memory()
            yield entry

    def _tune(self, number: int, one: Contender) -> tuple[Entry, bool]:
        """Return the entry of a learner, and whether Ctrl-C was pressed meanwhile."""
        now = time.perf_counter()
        left = self._tuned_by - now
        if left <= 0 and number:
            return Entry(one.name, left_out=f"time_limit={self.time_limit:g} s was over"), False
        waiting = sum(not other.left_out for other in self._who[number:])
        end = now + left / max(1, waiting) if number else math.inf  # the first is the baseline
        trial = Trial(one, self.folds, **self._options, end=end, last=self._tuned_by if number else math.inf)
        watcher = self._watcher
        if watcher is not None and not one.left_out:
            watcher.start(one.name, trial.fits)

        def listener(done: int, fits: int, best: float) -> None:
            if watcher is not None:
                watcher.update(one.name, done, fits, best)

        return trial.run(self._train, self._test, listener), trial.interrupted

    def refit(self, entry: Entry) -> Entry:
        """Return the entry with its model fitted to all training rows, and tested on all test rows.

        Where learners were not tuned on a sample that is so already. As far as time and memory do not allow
        it, the notes of the entry say what was done instead. Ctrl-C leaves the entry as it was.

        Parameters
        ----------
        entry : Entry
            Of ``comparison()``, the one that was chosen.
        """
        if self.sample_rows is None or entry.search is None:
            return entry
        entry = self._whole.refit(entry)
        self.entries = [entry if one.name == entry.name else one for one in self.entries]
        return entry

    def comparison(self) -> Comparison:
        """Return the leaderboard of what is finished; learners whose turn did not come are left out."""
        if all(one.left_out for one in self.entries):
            raise InputError(self._nothing_finished())
        waiting = [Entry(name, left_out="not tried") for name in self.names[len(self.entries) :]]
        share = sum(held.size for _, held in self.folds) / max(1, sum(kept.size for kept, _ in self.folds))
        return Comparison(
            _ranked([*self.entries, *waiting], share, len(self.folds)),
            self.task,
            self.metric,
            self.train.size,
            self.test.size,
            len(self.folds),
            self.sample_rows,
            None if self._test is None or self.sample_rows is None else len(self._test.y),
        )

    def _nothing_finished(self) -> str:
        if not self.entries:
            return "No learner is finished yet: there is nothing to compare."
        first = self.entries[0]
        if first.left_out == INTERRUPTED:
            return "Interrupted before the first learner was finished: there is nothing to compare."
        said = f"No learner could be fitted and scored. {first.name}: {first.left_out.rstrip('.')}."
        counts = class_counts(self._train.y) if self.task == "classification" else {}
        rarest = min(counts, key=lambda label: counts[label], default=None)
        if rarest is not None and counts[rarest] < len(self.folds):
            rows = f"{counts[rarest]} row" + "s" * (counts[rarest] > 1)
            said += (
                f" The class {rarest!r} has {rows} to learn from, so that some folds lack it. Leave it out, "
                "or choose another score."
            )
        return said


def _most_rows(max_rows: int | None, time_limit: float | None) -> int | None:
    """Return how many rows learners are tuned on, in thousands where time decides."""
    if max_rows is None or time_limit is None:
        return max_rows
    return min(max_rows, max(LEAST_SAMPLE_ROWS, int(ROWS_EACH_SECOND * time_limit // 1000 * 1000)))


class _Printed:
    """Says which learner begins."""

    def start(self, name: str, fits: int) -> None:
        print(f"{name} ({fits:,} fits) ...", flush=True)

    def update(self, name: str, done: int, fits: int, best: float) -> None:
        pass

    def finish(self, entry: Entry) -> None:
        pass


def _check(test_size: Any, time_limit: Any, scoring: Any, rule: Any) -> None:
    check_number("test_size", test_size, at_least=0, finite=True)
    if test_size >= 1:
        raise InputError(
            f"test_size={test_size!r} leaves no row to learn from: a share below 1 is needed, such as 0.2."
        )
    check_number("time_limit", time_limit, above=0, optional=True)
    check_option("rule", rule, RULES)
    check_scoring(scoring)


def _ranked(entries: list[Entry], test_share: float, folds: int) -> list[Entry]:
    """Return the entries by mean score, each with its p-value against the best.

    Those that finished fewer folds than another learner come later; the baseline, which always finishes,
    does not put them back.
    """
    there = [one for one in entries if not one.left_out]
    most = max((one.scores.size for one in there if one.name != BASELINE), default=folds)
    there.sort(key=lambda one: (one.scores.size < most, math.isnan(one.mean), -one.mean))
    first = there[0]
    compared = [
        one
        if one is first or min(one.scores.size, first.scores.size) < folds
        else replace(one, p_value=corrected_p_value(first.scores, one.scores, test_share))
        for one in there
    ]
    return [*compared, *(one for one in entries if one.left_out)]
