"""From a file to a tuned model, told once.

    read -> infer the columns and the task -> hold out a test part -> tune every learner -> choose -> test

:func:`prepare` ends before the work begins, so that what was inferred can be shown; :func:`tune` does the
work. What comes out, a :class:`FitResult`, is all that the model file and the report are made of.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sixfold.app.many_files import bytes_of, data_files, is_several, plain_name
from sixfold.app.stored_rows import KnownRows, known_rows, sampled_columns, stored_rows
from sixfold.data.columns.schema import TableSchema, infer_schema, infer_task
from sixfold.data.files.tables import Table, read_table, table_facts
from sixfold.errors import InputError, UsageError, check_number, check_option, check_seed
from sixfold.plain_words import counted
from sixfold.selection.choice import choose
from sixfold.selection.comparison import SAMPLE_ROWS, ComparisonRun
from sixfold.selection.contenders import CLASSIFIERS, REGRESSORS
from sixfold.selection.leaderboard import Comparison, Entry
from sixfold.selection.memory import give_back_memory
from sixfold.selection.rules import RULES
from sixfold.selection.scoring import check_scoring, default_scoring, metric_in_words
from sixfold.solvers.memory import bounded_memory

Array = NDArray[Any]

REPORT_SHARE = 0.1  # of a time limit, for choosing, explaining and writing
ALIASES = {"knn": "nearest neighbours", "neighbors": "neighbours", "ols": "ridge regression"}


@dataclass(frozen=True)
class FitOptions:
    """What was asked for.

    Attributes
    ----------
    data : str
        A file, a folder, a glob, or ``example:NAME``.
    target : str or None
        None where the example knows its own.
    task, learners, folds, seed, rule
        As in :func:`sixfold.compare`; names of learners may be parts of them.
    metric : str or None
        The ``scoring`` of :func:`sixfold.compare`; None takes one that suits.
    time_limit : float or None
        Seconds for everything, reading and the report as well.
    test_fraction : float
        The ``test_size`` of :func:`sixfold.compare`.
    weights, groups : str or None
        Columns.
    ids : tuple of str
        Columns to be set aside.
    memory_limit : str or None
        Bytes that the process may hold, such as "2GB"; the table is then read in pieces.
    output : Path
        The folder for the files that are written.
    name : str or None
        What they are called; None takes that of the data.
    """

    data: str
    target: str | None = None
    task: str = "auto"
    learners: tuple[str, ...] = ("all",)
    metric: str | None = None
    folds: int = 5
    seed: int = 0
    time_limit: float | None = None
    test_fraction: float = 0.2
    rule: str = "1se"
    weights: str | None = None
    groups: str | None = None
    ids: tuple[str, ...] = ()
    memory_limit: str | None = None
    output: Path = Path()
    name: str | None = None

    def check(self) -> None:
        """Raise a :class:`UsageError` for what cannot be done, before any work is."""
        try:
            check_option("--task", self.task, ("auto", "classification", "regression"))
            check_option("--rule", self.rule, RULES)
            check_number("--folds", self.folds, at_least=2, whole=True)
            check_number("--time-limit", self.time_limit, above=0, optional=True)
            check_number("--test-fraction", self.test_fraction, at_least=0, finite=True)
            check_seed(self.seed)
            check_scoring(self.metric, "--metric")
            bytes_of(self.memory_limit)
        except InputError as error:
            raise UsageError(str(error)) from error
        if self.test_fraction >= 1:
            raise UsageError(f"--test-fraction {self.test_fraction:g} leaves no row to learn from. Try 0.2.")
        if self.name is not None and Path(self.name).name != self.name:
            raise UsageError(f"--name {self.name!r} is no plain name. Name the folder by --output.")
        check_folder(self.output)


@dataclass(frozen=True)
class Prepared:
    """What is known before the work begins.

    Attributes
    ----------
    options : FitOptions
    table : Table
        What was read; its frame is given up once the columns are typed.
    schema : TableSchema
    X : polars.DataFrame
        The features of all rows whose target is known, typed.
    y : ndarray
        Labels as text, or numbers.
    dropped : int
        Rows whose target is missing.
    weight, groups : ndarray or None
        Of the same rows.
    task, scoring, metric : str
        ``metric`` is ``scoring`` in words.
    learners : tuple of str
        Who takes part, or "all".
    begun : float
        The clock when work began.
    mapped : ndarray or None
        The bytes of the file that X is mapped from, where it is.
    memory_limit : float or None
        Bytes, if it was asked for.
    """

    options: FitOptions
    table: Table
    schema: TableSchema
    X: Any
    y: Array
    dropped: int
    weight: Array | None
    groups: Array | None
    task: str
    scoring: str
    metric: str
    learners: tuple[str, ...]
    begun: float
    mapped: Array | None = None
    memory_limit: float | None = None

    @contextmanager
    def within_memory(self) -> Iterator[None]:
        """Keep to the limit of memory, as far as rows and what is computed from each of them go."""
        if self.memory_limit is None:
            yield
            return
        with bounded_memory(self.memory_limit, tempfile.gettempdir(), self.mapped):
            yield

    @property
    def name(self) -> str:
        """What the files are called."""
        return self.options.name or self.table.name


@dataclass(frozen=True)
class FitResult(Prepared):
    """What one run found.

    Attributes
    ----------
    train, test : ndarray
        Row numbers.
    comparison : Comparison
    chosen : Entry
        With the model, fitted to all training rows where that could be done.
    reason : str
        Why it was chosen, one sentence.
    stopped : str
        "" or what ended the work early: "Ctrl-C" or "the time limit".
    """

    train: Array = field(kw_only=True)
    test: Array = field(kw_only=True)
    comparison: Comparison = field(kw_only=True)
    chosen: Entry = field(kw_only=True)
    reason: str = field(kw_only=True)
    stopped: str = ""

    @property
    def model(self) -> Any:
        """The chosen model: a pipeline that takes typed frames."""
        return self.chosen.model


def run_fit(options: FitOptions, watcher: Any = None) -> FitResult:
    """Return the tuned model and all there is to say about it."""
    given = prepare(options)
    with given.within_memory():
        return tune(given, watcher)


def prepare(options: FitOptions) -> Prepared:
    """Read the table, infer what its columns are, and settle task and metric."""
    begun = time.perf_counter()
    options.check()
    limit = bytes_of(options.memory_limit)
    if limit is None and not is_several(options.data):
        table = read_table(options.data)
        schema = _schema(table, options)
        rows = known_rows(schema, table.frame)
    else:
        table, schema, rows = _in_pieces(options)
    task = infer_task(schema)
    scoring = options.metric or default_scoring(rows.y, task)
    return Prepared(
        options,
        replace(table, frame=None),
        schema,
        **vars(rows),
        task=task,
        scoring=scoring,
        metric=metric_in_words(scoring, task),
        learners=_learners(options.learners, task),
        begun=begun,
        memory_limit=limit,
    )


def _in_pieces(options: FitOptions) -> tuple[Table, TableSchema, KnownRows]:
    """Return several files, or one that is large, as rows that are kept in a file."""
    if options.data == "-":
        raise UsageError("--memory-limit needs files, which are read twice: '-' can be read once.")
    files = data_files(options.data)
    table = table_facts(files[0])
    sample = sampled_columns(options.data)
    schema = _inferred(sample.schema, table, sample.columns, options)
    del sample
    give_back_memory()
    rows = stored_rows(options.data, schema)
    if is_several(options.data):
        size = sum(os.path.getsize(file) for file in files)
        said = f"{counted(len(files), 'file')}, from {files[0]} on"
        table = replace(
            table, name=plain_name(options.data), source=options.data, bytes=size, notes=(*table.notes, said)
        )
    return table, schema, rows


def tune(given: Prepared, watcher: Any = None) -> FitResult:
    """Tune every learner, choose one and test it; Ctrl-C keeps what is finished."""
    options = given.options
    run = ComparisonRun(
        given.X,
        given.y,
        list(given.learners),
        task=given.task,
        scoring=given.scoring,
        cv=options.folds,
        test_size=options.test_fraction,
        rule=options.rule,
        sample_weight=given.weight,
        groups=given.groups,
        time_limit=_time_left(given),
        random_state=options.seed,
        max_rows=SAMPLE_ROWS,
        memory_limit=given.memory_limit,
        watcher=watcher,
    )
    stopped = ""
    try:
        for _ in run:
            pass
    except KeyboardInterrupt:
        stopped = "Ctrl-C"
    choice = choose(run.comparison(), options.rule)
    chosen = choice.entry
    try:
        chosen = run.refit(choice.entry)
    except KeyboardInterrupt:
        stopped = "Ctrl-C"
    return FitResult(
        **vars(given),
        train=run.train,
        test=run.test,
        comparison=run.comparison(),
        chosen=chosen,
        reason=choice.reason,
        stopped=stopped,
    )


def check_folder(folder: Path) -> None:
    """Make the folder for what is written; raise a :class:`UsageError` if nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"The output folder {str(folder)!r} cannot be made ({error.strerror}). Name another by --output."
        ) from error
    probe = folder / f".sixfold-{os.getpid()}"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"The output folder {str(folder)!r} cannot be written to ({error.strerror}). Name another by "
            "--output."
        ) from error


def _schema(table: Table, options: FitOptions) -> TableSchema:
    return _inferred(partial(infer_schema, table.frame), table, table.frame.columns, options)


def _inferred(
    infer: Callable[..., TableSchema], table: Table, names: Sequence[str], options: FitOptions
) -> TableSchema:
    target = options.target or table.target
    if target is None:
        columns = ", ".join(names[:10]) + ", ..." * (len(names) > 10)
        raise UsageError(f"Which column is to be predicted? Say --target COLUMN, one of: {columns}.")
    return infer(
        target,
        task=options.task,
        weights=options.weights,
        groups=options.groups,
        ids=options.ids,
    )


def _learners(asked: tuple[str, ...], task: str) -> tuple[str, ...]:
    """Return the learners whose names are those asked for, or contain them."""
    known = list(CLASSIFIERS if task == "classification" else REGRESSORS)
    if "all" in asked:
        return ("all",)  # those that suit the table as well
    chosen: list[str] = []
    for one in asked:
        word = one.lower().replace("-", " ").replace("_", " ").strip()
        word = ALIASES.get(word, word)
        exact = [name for name in known if name.lower() == word]
        found = exact or [name for name in known if word in name.lower()]
        if not found:
            raise UsageError(f"--learner {one!r} is none of those for {task}: {', '.join(known)}.")
        chosen += [name for name in found if name not in chosen]
    return tuple(name for name in known if name in chosen)


def _time_left(given: Prepared) -> float | None:
    """Return the seconds for tuning: what is left of the limit, less what the report will take."""
    limit = given.options.time_limit
    if limit is None:
        return None
    left = limit - (time.perf_counter() - given.begun)
    return max(left - min(REPORT_SHARE * limit, 20.0), math.ulp(1.0))
