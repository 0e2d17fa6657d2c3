"""A fit of rows on a cluster: Dask arrays and data frames, whose rows never leave their workers.

    check the types of the columns -> one block a partition, kept where it is
    -> labels, weights and what is not finite, found by a pass
    -> the same problem as in memory -> a solver that only reduces (:mod:`sixfold.solvers.streamed`)
    -> the same fitted attributes

Attributes with an entry a row (``dual_``, ``support_``) are not set, and neither is what ``summary`` of a
logistic regression needs. A learner that needs all rows in one process says so, and what to use instead.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from sixfold.data.checks import OVERFLOW, column_names
from sixfold.data.dask_blocks import (
    DaskBlocks,
    FirstBad,
    Rows,
    Table,
    check_collections,
    find_bad,
    map_rows,
    one_row,
    refuse,
)
from sixfold.data.labels import class_factors, find_classes, join_classes, positions, signs
from sixfold.errors import InputError

Array = NDArray[Any]

LEARNERS = (
    "LinearRegression", "Ridge", "RidgeClassifier", "Lasso", "ElasticNet", "LogisticRegression", "LinearSVC",
    "ERMRegressor", "ERMClassifier", "KNeighborsClassifier", "KNeighborsRegressor",
    "Perceptron", "SGDClassifier", "SGDRegressor", "DecisionTreeClassifier",
)  # fmt: skip
SAMPLE = (
    "Fit a sample, for instance X.sample(frac=0.1).compute(), or use a learner that fits on a cluster: "
    f"{', '.join(LEARNERS)}."
)
ADVICE = {
    "SVC": "Use LinearSVC, or Nystroem features of a sample with LinearSVC, or fit a sample.",
}
NO_FINGERPRINT = "not taken of rows on a cluster; verify(X, y) takes it of rows in memory"


@dataclass(frozen=True)
class Shape:
    """What the steps of a fit ask of a table whose rows are elsewhere."""

    shape: tuple[int, ...]
    dtype: Any


@dataclass(frozen=True)
class DistributedData:
    """A checked table on a cluster, in the place of :class:`sixfold.data.checks.TrainingData`.

    Attributes
    ----------
    X, y : Shape
    rows : DaskBlocks
    single_target : bool
    estimator : object
    counted : int
        How many rows have a weight above 0.
    """

    X: Shape
    y: Shape
    rows: DaskBlocks
    single_target: bool
    estimator: Any
    counted: int
    weight: None = None

    @property
    def names(self) -> list[str]:
        """What to call the columns when speaking of them."""
        return column_names(self.estimator, self.X.shape[1])

    def blocks(self) -> DaskBlocks:
        """Return the rows as blocks."""
        return self.rows

    def require_computable(self) -> None:
        """Do nothing: values were looked at when the table was checked."""

    def require_finite(self) -> None:
        """Do nothing: values were looked at when the table was checked."""

    def refuse_overflow(self) -> NoReturn:
        """Raise an :class:`InputError`: finite values are too large."""
        raise InputError(OVERFLOW)


# -- what is found out about the rows ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Summary:
    rows: int
    counted: int
    weight: float
    bad: FirstBad | None
    classes: Array | None
    totals: Array | None  # of the weights of each of these classes
    counts: Array | None  # of their rows


def summarise(rows: Rows, labels: bool) -> _Summary:
    """Return what has to be known of one partition."""
    n = rows.X.shape[0]
    counted = n if rows.weight is None else int(np.count_nonzero(rows.weight))
    weight = float(n) if rows.weight is None else float(rows.weight.sum())
    bad = find_bad(replace(rows, y=None) if labels else rows)
    if not labels or n == 0:
        return _Summary(n, counted, weight, bad, None, None, None)
    classes, index = find_classes(rows.y)
    totals = np.bincount(index, rows.weight, classes.size).astype(np.float64)
    return _Summary(n, counted, weight, bad, classes, totals, np.bincount(index, minlength=classes.size))


def encode(rows: Rows, classes: Array, factors: Array | None, labels: str, dtype: Any) -> Rows:
    """Return the rows with targets as a loss with these ``labels`` reads them, classes weighted."""
    if rows.X.shape[0] == 0:
        width = 1 if labels == "class" or classes.size == 2 else classes.size
        return Rows(rows.X, np.zeros((0, width), dtype=dtype), rows.weight)
    index = positions(rows.y, classes)
    y = index[:, None].astype(dtype) if labels == "class" else signs(index, classes.size, dtype)
    weight = rows.weight
    if factors is not None:
        weight = factors[index] if weight is None else factors[index] * weight
    return Rows(rows.X, np.ascontiguousarray(y), weight)


def check_on_cluster(
    model: Any, X: Any, y: Any, sample_weight: Any, labels_of: Callable[[], str], least: int = 2
) -> DistributedData:
    """Return a checked table; ``labels_of`` says how targets are read, once ``classes_`` are known.

    There have to be ``least`` classes.
    """
    labels = is_classifier(model)
    table = check_collections(model, X, y, sample_weight, labels)
    found: list[_Summary] = table.summaries(partial(summarise, labels=labels))
    before = 0
    for partition, part in enumerate(found):
        if part.bad is not None:
            refuse(part.bad, before, partition, model, table.n_columns)
        before += part.rows
    if before == 0:
        raise InputError(
            f"Found array with 0 sample(s) (shape=(0, {table.n_columns})) while a minimum of 1 is required. "
            "The "
            "collection is empty: pass at least one row."
        )
    if not sum(part.weight for part in found) > 0:
        raise InputError(
            "Every entry of sample_weight is zero, so no row counts. Give some rows a positive weight."
        )
    weight, counted = sum(part.weight for part in found), sum(part.counted for part in found)
    single, width = table.y_columns == 0, max(table.y_columns, 1)
    if labels:
        table, weight, counted, width = _with_classes(model, table, found, labels_of, least)
        single = False
    kept = [k for k, part in enumerate(found) if part.rows > 0]
    blocks = DaskBlocks(
        table.workers,
        [table.parts[k] for k in kept],
        [found[k].rows for k in kept],
        table.n_columns,
        width,
        weight,
        table.dtype,
    )
    dtype = np.dtype(table.dtype)
    X_shape, y_shape = Shape((blocks.n_rows, table.n_columns), dtype), Shape((counted, width), dtype)
    return DistributedData(X_shape, y_shape, blocks, single, model, counted)


def _with_classes(
    model: Any, table: Table, found: list[_Summary], labels_of: Callable[[], str], least: int
) -> tuple[Table, float, int, int]:
    """Return the table with encoded targets, the sum of weights, the rows that count, and the targets."""
    parts = [part for part in found if part.classes is not None]
    classes = join_classes([part.classes for part in parts if part.classes is not None])
    totals, counts = np.zeros(classes.size), np.zeros(classes.size, dtype=np.int64)
    for part in parts:
        assert part.classes is not None
        assert part.totals is not None
        assert part.counts is not None
        where = positions(part.classes, classes)
        totals[where] += part.totals
        counts[where] += part.counts
    if classes.size < least:
        raise InputError(
            f"y has {classes.size} class: every row is {classes.tolist()[0]!r}, but a classifier needs rows "
            "of at "
            "least two classes to tell them apart."
        )
    factors = None
    if getattr(model, "class_weight", None) is not None:
        # Of one row a class, with the weight of all of them.
        factors = class_factors(model.class_weight, classes, np.arange(classes.size), totals)
        totals = totals * factors
    if (totals == 0).any():
        name = classes.tolist()[int(np.argmin(totals))]
        raise InputError(
            f"All rows of class {name!r} have weight 0, so nothing can be learnt about it. Give some of "
            "them a "
            "positive sample_weight (or class_weight), or drop the class."
        )
    model.classes_ = classes
    labels = labels_of()
    encoded = table.mapped(
        partial(encode, classes=classes, factors=factors, labels=labels, dtype=table.dtype)
    )
    counted = sum(part.counted for part in found)
    width = 1 if labels == "class" or classes.size == 2 else classes.size
    return encoded, float(totals.sum()), counted, width


# -- the fit -------------------------------------------------------------------------------------------------


def refuse_cluster(model: Any, batch: bool = False) -> NoReturn:
    """Raise an :class:`InputError`: a learner needs all rows, or those of a batch, in one process."""
    name = type(model).__name__
    if batch:
        raise InputError(
            f"{name}.partial_fit takes rows in memory, and these are on a cluster. Pass parts of them, "
            "for instance X.partitions[0].compute(), or use fit."
        )
    raise InputError(
        f"{name} needs all rows in one process, and these are on a cluster. {ADVICE.get(name, SAMPLE)}"
    )


def fit_table(model: Any, data: DistributedData, solve: Callable[..., Any]) -> tuple[Any, ...]:
    """Go through the steps of a fit with rows that were checked; return what to warn of at the end."""
    found: list[tuple[Any, ...]] = []
    model._run_fit(
        data.X, data.y, None, check=lambda *given: data, solve=solve, warn=lambda *given: found.append(given)
    )
    say_rows(model, data)
    return found[0]


def say_rows(model: Any, data: DistributedData) -> None:
    """Let the certificate speak of these rows."""
    rows, columns = data.X.shape
    model._subject = replace(
        model._subject, rows=rows, columns=columns, fingerprint=None, fingerprint_note=NO_FINGERPRINT
    )


# -- answers and scores --------------------------------------------------------------------------------------


def answer_on_cluster(model: Any, method: str, X: Any, args: Any, options: Any) -> Any:
    """Return the answers for a collection as a lazy Dask array: nothing is computed yet."""
    _require_portable(model)
    ask = partial(answer, model=_portable(model), method=method, args=args, options=options)
    return map_rows(ask, X, np.asarray(ask(one_row(X))))


def answer(part: Any, model: Any, method: str, args: Any, options: Any) -> Any:
    """Return the answers for one partition."""
    return getattr(model, method)(part, *args, **options)


def _require_portable(model: Any) -> None:
    """Raise an :class:`InputError` where a model cannot go to the rows, since its own are on a cluster."""
    check_is_fitted(model)
    if hasattr(getattr(model, "_store", None), "blocks"):
        raise InputError(
            "The training rows are on a cluster, and so are those that are asked about. Pass these in "
            "memory, some at a time, for instance X.partitions[0].compute()."
        )


def _portable(model: Any) -> Any:
    """Return the model as it can be sent: without what is called in this process."""
    sent = copy(model)
    for name in ("callbacks", "history_", "_fitted_to"):
        sent.__dict__.pop(name, None)
    sent.callbacks = None
    return sent


def score_on_cluster(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
    """Return the accuracy, or R^2 (averaged over targets): one pass, some numbers a partition."""
    labels = is_classifier(model)
    _require_portable(model)
    check_is_fitted(model)
    table = check_collections(model, X, y, sample_weight, labels, reset=False)
    plain = _portable(model)
    plain.__dict__.pop("feature_names_in_", None)
    parts = [part for part in table.summaries(partial(score_sums, model=plain, labels=labels)) if part]
    if not parts:
        raise InputError("The collection is empty, so that there is nothing to score. Pass at least a row.")
    weight = np.array([part[0] for part in parts])
    if labels:
        return float(sum(part[1] for part in parts) / weight.sum())
    mean = sum(part[0] * part[2] for part in parts) / weight.sum()
    left = sum(part[1] for part in parts)
    whole = sum(part[3] + part[0] * (part[2] - mean) ** 2 for part in parts)
    explained = np.where(whole > 0, 1.0 - left / np.where(whole > 0, whole, 1.0), (left == 0) * 1.0)
    return float(np.mean(explained))


def score_sums(rows: Rows, model: Any, labels: bool) -> tuple[Any, ...] | None:
    """Return the weight and that of right answers; of numbers squares left, the mean, squares about it."""
    if rows.X.shape[0] == 0:
        return None
    q = np.ones(rows.X.shape[0]) if rows.weight is None else rows.weight
    answers = model.predict(rows.X)
    if labels:
        return float(q.sum()), float(q @ (np.asarray(answers) == np.asarray(rows.y).reshape(-1)))
    y = np.asarray(rows.y, dtype=np.float64)
    total = float(q.sum())
    mean = q @ y / total if total > 0 else np.zeros(y.shape[1])
    return total, q @ np.square(y - answers.reshape(y.shape)), mean, q @ np.square(y - mean)
