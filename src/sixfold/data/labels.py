"""Class labels: from what users pass in to the numbers that losses read.

    classes   the labels in order: numbers by size, text by alphabet
    index     the position of each row's label in classes
    signs     +1 where a row is of the class, -1 elsewhere; one column for two classes (the second one
              counts as +1), one column a class for more (one class against the rest)

A class weight multiplies the weight of every row of its class; "balanced" gives each class the same total:
weight_c = (sum of all weights) / (number of classes * sum of the weights of class c).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from numbers import Number, Real
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from sixfold.data.checks import (
    TrainingData,
    check_table,
    check_weight,
    collected,
    require_order,
    require_rows,
    require_y,
)
from sixfold.errors import InputError, warn

Array = NDArray[Any]

MOST_CLASSES = 10_000  # each has a score a row: beyond, the labels are surely numbers to predict or names
GAPS = ("nan", "np.float64(nan)", "np.float32(nan)", "<NA>", "NaT")  # how missing labels are written
SMALL_RANGE = 1 << 20  # whole numbers in such a range are counted instead of sorted


@dataclass(frozen=True)
class LabelledData:
    """A checked training table whose targets are classes.

    Attributes
    ----------
    X, weight, estimator
        As in :class:`sixfold.data.checks.TrainingData`; the class weights are part of the weight.
    classes : ndarray of shape (classes,)
    index : ndarray of shape (rows,)
    """

    X: Any
    weight: Array | None
    estimator: Any
    classes: Array
    index: NDArray[np.intp]

    def encoded(self, labels: str) -> TrainingData:
        """Return the table with targets as a loss with these ``labels`` reads them."""
        return TrainingData(self.X, self._targets(labels), self.weight, False, self.estimator)

    def _targets(self, labels: str) -> Array:
        if labels == "class":
            return self.index[:, None].astype(self.X.dtype)
        return signs(self.index, self.classes.size, self.X.dtype)


def signs(index: NDArray[np.intp], classes: int, dtype: Any) -> Array:
    """Return -1 and +1, one column for two classes and one a class for more.

    >>> signs(np.array([0, 1, 1]), 2, np.float64).T
    array([[-1.,  1.,  1.]])
    """
    own = np.ones(1, dtype=np.intp) if classes == 2 else np.arange(classes)
    result = (index[:, None] == own).astype(dtype)
    result *= 2.0
    result -= 1.0
    return result


def check_labelled(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    class_weight: Any = None,
    classes: Any = None,
    reset: bool = True,
) -> LabelledData:
    """Return the table and its labels in the form solvers read.

    ``classes`` are those that are known already (``verify`` and ``partial_fit``); None finds them in y. NaN
    and infinity in X are looked for separately.
    """
    require_y(estimator, y)
    require_order(estimator, X, y)
    X = check_table(estimator, X, reset)
    known, index = check_labels(estimator, y, X, classes)
    weight = check_weight(sample_weight, X.shape[0])
    weight = with_class_weight(class_weight, known, index, weight)
    if classes is None:
        _require_two(known, index, weight)
    return LabelledData(X, weight, estimator, known, index)


def check_labels(
    estimator: Any, y: Any, X: Any, classes: Array | None = None
) -> tuple[Array, NDArray[np.intp]]:
    """Return the classes and the class number of each row of X; one class alone will do.

    ``classes`` are those that are known already, beside which there may be no others.
    """
    require_y(estimator, y)
    labels = _one_column(y, estimator)
    require_rows(labels, X)
    return _encode(labels) if classes is None else (classes, _index_of(labels, classes))


def find_classes(y: Any) -> tuple[Array, NDArray[np.intp]]:
    """Return the classes of a part of the rows, in order, and the class number of each of these rows."""
    return _encode(_to_array(y).reshape(-1))


def join_classes(parts: Sequence[Array]) -> Array:
    """Return the classes of all parts, in order."""
    return reduce(_union, parts)


def positions(y: Any, classes: Array) -> NDArray[np.intp]:
    """Return the number of each label of a part of the rows among all classes."""
    return _index_of(_to_array(y).reshape(-1), classes)


@dataclass(frozen=True)
class LabelColumns:
    """Labels of one or several columns, which are predicted one by one.

    Attributes
    ----------
    classes : list of ndarray
        Those of each column, in order.
    index : ndarray of shape (rows, columns)
    single : bool
        Whether there is one column, given without a second axis or with one that is 1 long.
    """

    classes: list[Array]
    index: NDArray[np.intp]
    single: bool

    def with_classes(self, classes: Any) -> LabelColumns:
        """Return the same labels of one column, beside which there may be these classes."""
        known, _ = _encode(_to_array(classes))
        return self.joined(LabelColumns([known], np.empty((0, 1), dtype=np.intp), True))

    def joined(self, more: LabelColumns) -> LabelColumns:
        """Return these labels followed by more, whose classes may be new."""
        if len(more.classes) != len(self.classes):
            raise InputError(
                f"y has {len(more.classes)} columns of labels, but the rows before had {len(self.classes)}."
            )
        together = [_union(old, new) for old, new in zip(self.classes, more.classes, strict=True)]
        columns = [
            np.concatenate([_index_of(old, every)[mine], _index_of(new, every)[added]])
            for old, new, every, mine, added in zip(
                self.classes, more.classes, together, self.index.T, more.index.T, strict=True
            )
        ]
        return LabelColumns(together, np.column_stack(columns), self.single)


def check_label_columns(estimator: Any, y: Any, X: Any, known: list[Array] | None = None) -> LabelColumns:
    """Return the labels of rows, in one column or several; one class alone will do.

    ``known`` are the classes of each column, beside which there may be no others.
    """
    require_y(estimator, y)
    several = getattr(y, "ndim", None) == 2 or (isinstance(y, list | tuple) and _nested(y))
    labels = _to_array(y) if several and not sp.issparse(y) else None
    if labels is None or labels.ndim != 2 or labels.shape[1] == 1:
        labels = _one_column(y, estimator)[:, None]
        several = False
    require_rows(labels, X)
    columns = [np.ascontiguousarray(column) for column in labels.T]
    if known is not None and len(known) == len(columns):
        pairs = [
            (classes, _index_of(column, classes)) for column, classes in zip(columns, known, strict=True)
        ]
    else:
        pairs = [_encode(column) for column in columns]
    index = np.column_stack([index for _, index in pairs])
    return LabelColumns([classes for classes, _ in pairs], index, not several)


def _nested(y: Any) -> bool:
    return bool(y) and isinstance(y[0], list | tuple | np.ndarray)


def _union(old: Array, new: Array) -> Array:
    """Return the classes of both, in order."""
    numbers = ["number" if classes.dtype.kind in "biuf" else "text" for classes in (old, new)]
    if numbers[0] != numbers[1]:
        raise InputError(
            f"y has {numbers[1]} labels such as {new.tolist()[0]!r}, but the rows before had {numbers[0]} "
            f"labels such as {old.tolist()[0]!r}. Labels must be all of one kind."
        )
    return _encode(np.concatenate([old, new]))[0]


def class_weighted(class_weight: Any, labels: LabelColumns, weight: Array | None) -> Array | None:
    """Return the weights of rows, multiplied by those of their classes."""
    if class_weight is not None and len(labels.classes) > 1:
        raise InputError(
            f"class_weight={class_weight!r} is for one column of labels, and y has {len(labels.classes)}. "
            "Pass sample_weight instead."
        )
    product = with_class_weight(class_weight, labels.classes[0], labels.index[:, 0], weight)
    if len(labels.classes) == 1:
        require_weight(labels.classes[0], labels.index[:, 0], product)
    return product


def check_classes(classes: Any) -> Array:
    """Return the classes that ``partial_fit`` is told of, in order."""
    if classes is None:
        raise InputError(
            "classes must be passed on the first call to partial_fit: later batches may have labels that "
            "this one has not. Pass all of them, for instance classes=np.unique(y)."
        )
    known, _ = _encode(_to_array(classes))
    if known.size < 2:
        raise InputError(f"classes={classes!r} has {known.size} class, but two or more are needed.")
    return known


def _one_column(y: Any, estimator: Any) -> Array:
    if sp.issparse(y):
        raise InputError("y is sparse, but labels are kept dense. Pass one label a row.")
    labels = _to_array(y)
    if labels.ndim == 0:
        raise InputError(f"y is {y!r:.50}, of type {type(y).__name__}. Pass one label a row.")
    if labels.ndim == 2 and labels.shape[1] == 1:
        warn(
            "A column-vector y was passed when a 1d array was expected. Pass y.ravel() to silence this.",
            DataConversionWarning,
        )
        return labels[:, 0]
    if labels.ndim != 1:
        raise InputError(
            f"y should be a 1d array of labels, got an array of shape {labels.shape} instead: "
            f"{type(estimator).__name__} gives each row one label. Fit one model for each column."
        )
    return labels


def _to_array(y: Any) -> Array:
    """Return labels as an array: lists, and columns of pandas, Polars and Arrow, categories among them."""
    if isinstance(y, np.ma.MaskedArray):
        gaps = np.flatnonzero(np.ma.getmaskarray(y))
        if gaps.size:
            _refuse_gap(int(gaps[0]))
    if isinstance(y, list | tuple):
        return _from_list(y)
    if not isinstance(y, np.ndarray):
        import narwhals.stable.v1 as nw

        frame: Any = nw.from_native(collected(y), allow_series=True, pass_through=True)
        y = frame.to_numpy() if isinstance(frame, nw.DataFrame | nw.Series) else y
    labels = np.asarray(y)
    return labels.astype(object) if labels.dtype.kind == "T" else labels


def _from_list(y: Any) -> Array:
    try:
        labels = np.asarray(y)
    except ValueError as error:
        raise InputError("The rows of y are not all of one length. Pass one label a row.") from error
    # NumPy would spell numbers and gaps out where there is text beside them.
    spelt = labels.dtype.kind in "US" and labels.ndim == 1 and len(set(map(type, y))) > 1
    return np.array(y, dtype=object) if spelt else labels


def _encode(labels: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return the classes in order and the class number of each row."""
    if labels.dtype.kind == "O":
        labels = _of_one_kind(labels)
    kind = labels.dtype.kind
    if kind == "c":
        raise InputError("Complex data not supported: y holds complex numbers. Pass labels.")
    if kind in "MmV":
        raise InputError(f"Unknown label type: {labels.dtype}. Turn dates and records into text or numbers.")
    if kind == "f":
        _require_whole(labels)
    if kind in "biuf":
        classes, index = _count(labels)
    elif kind == "O":
        classes, index = _look_up(labels)
    else:
        classes, index = np.unique(labels, return_inverse=True)
    if classes.size > MOST_CLASSES:
        raise InputError(
            f"y has {classes.size} different classes, more than the {MOST_CLASSES} that are sensible: a "
            "model keeps one score a class. If y is a quantity, use a regressor such as LinearRegression; if "
            "it is an identifier, predict something else."
        )
    return classes, index.astype(np.intp, copy=False).reshape(labels.shape)


def _count(numbers: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return classes and index of whole numbers; in a small range they are counted and not sorted."""
    low, high = np.minimum.reduce(numbers, initial=0), np.maximum.reduce(numbers, initial=0)
    if float(high) - float(low) > SMALL_RANGE:
        return np.unique(numbers, return_inverse=True)
    offset = numbers.astype(np.int64) - int(low)
    there = np.bincount(offset) > 0
    position = there.cumsum() - 1
    return (there.nonzero()[0] + int(low)).astype(numbers.dtype), position[offset]


def _look_up(texts: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return classes and index of text that is kept as objects: a table is looked up, nothing is sorted."""
    ordered = sorted(set(texts))
    position = {label: k for k, label in enumerate(ordered)}
    index = np.fromiter(map(position.__getitem__, texts), dtype=np.intp, count=texts.size)
    return np.array(ordered, dtype=object), index


def _require_whole(labels: Array) -> None:
    bad = ~np.isfinite(labels)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        if np.isnan(labels[row]):
            _refuse_gap(row)
        raise InputError(f"Input y contains infinity in row {row}, counted from 0. Give that row a label.")
    parts = labels != np.rint(labels)
    if parts.any():
        row = int(np.flatnonzero(parts)[0])
        raise InputError(
            f"Unknown label type: continuous. Row {row} of y, counted from 0, is {labels[row]}, which is a "
            "quantity and no class. Use a regressor such as LinearRegression, or cut y into classes first."
        )


def _refuse_gap(row: int) -> NoReturn:
    raise InputError(
        f"Input y contains NaN: the label of row {row}, counted from 0, is missing. Drop such rows, or give "
        "them a label."
    )


def _of_one_kind(labels: Array) -> Array:
    """Return text as it is and numbers as numbers; refuse gaps, and what has no order or no common one."""
    if set(map(type, labels)) == {str}:  # nearly always
        return labels
    for row, label in enumerate(labels):
        if label is None or repr(label) in GAPS:
            _refuse_gap(row)
        if _kind(label) is None:
            raise InputError(
                f"Unknown label type: row {row} of y, counted from 0, holds {label!r:.50} of type "
                f"{type(label).__name__}. Labels are text, whole numbers or booleans."
            )
        if _kind(label) != _kind(labels[0]):
            raise InputError(
                f"y mixes text and numbers: row 0 is {labels[0]!r} and row {row}, counted from 0, is "
                f"{label!r}. Labels must be all of one kind, for instance y.astype(str)."
            )
    return labels if labels.size and _kind(labels[0]) != "number" else np.array(labels.tolist())


def _kind(label: Any) -> str | None:
    for name, kind in (("text", str), ("bytes", bytes), ("number", Number | np.bool_)):
        if isinstance(label, kind):
            return name
    return None


def _index_of(labels: Array, classes: Array) -> NDArray[np.intp]:
    """Return the class number of each label, refusing one that is not known."""
    found, inverse = _encode(labels)
    position = {label: k for k, label in enumerate(classes.tolist())}
    for place, label in enumerate(found.tolist()):
        if label not in position:
            row = int(np.flatnonzero(inverse == place)[0])
            raise InputError(
                f"y has the label {label!r} (row {row}, counted from 0), which is none of the classes "
                f"{_shown(classes)}. Pass all labels in the first call, or correct this one."
            )
    return np.array([position[label] for label in found.tolist()], dtype=np.intp)[inverse]


def _shown(classes: Array) -> str:
    shown = ", ".join(repr(label) for label in classes[:5].tolist())
    return shown + (f", ... ({classes.size} in all)" if classes.size > 5 else "")


def _require_two(classes: Array, index: NDArray[np.intp], weight: Array | None) -> None:
    if classes.size < 2:
        only = f": every row is {classes.tolist()[0]!r}" if classes.size else ""
        raise InputError(
            f"y has {classes.size} class{only}, but a classifier needs rows of at least two classes to tell "
            "them apart."
        )
    require_weight(classes, index, weight)


def require_weight(classes: Array, index: NDArray[np.intp], weight: Array | None) -> None:
    """Raise an :class:`InputError` if there are rows of a class, and all have weight 0."""
    if weight is None:
        return
    totals = np.bincount(index, weights=weight, minlength=classes.size)
    without = np.flatnonzero((totals == 0) & (np.bincount(index, minlength=classes.size) > 0))
    if without.size:
        raise InputError(
            f"All rows of class {classes.tolist()[without[0]]!r} have weight 0, so nothing can be learnt "
            "about it. Give some of them a positive sample_weight (or class_weight), or drop the class."
        )


def with_class_weight(
    class_weight: Any, classes: Array, index: NDArray[np.intp], weight: Array | None
) -> Array | None:
    """Return the weights of rows, each multiplied by that of its class."""
    if class_weight is None:
        return weight
    factor = class_factors(class_weight, classes, index, weight)
    product: Array = factor[index] if weight is None else factor[index] * weight
    return product


def class_factors(class_weight: Any, classes: Array, index: NDArray[np.intp], weight: Array | None) -> Array:
    """Return the weight of each class."""
    if class_weight is None:
        return np.ones(classes.size)
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(index, weights=weight, minlength=classes.size)
        # A batch need not have rows of every class.
        result: Array = totals.sum() / (np.count_nonzero(totals) * np.where(totals > 0, totals, 1.0))
        return result
    if isinstance(class_weight, dict):
        return _named_weights(class_weight, classes)
    raise InputError(
        f"class_weight={class_weight!r} is neither None, 'balanced' nor a dictionary of a weight a label."
    )


def _named_weights(class_weight: dict[Any, Any], classes: Array) -> Array:
    position = {label: k for k, label in enumerate(classes.tolist())}
    factor = np.ones(classes.size)
    for label, value in class_weight.items():
        if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < np.inf:
            raise InputError(
                f"class_weight gives {label!r} the weight {value!r}: a number from 0 up is needed."
            )
        if label in position:
            factor[position[label]] = value
        # Rows of a class may be missing from a part of the data; where a class has no weight, it is a slip.
        elif position.keys() - class_weight.keys():
            raise InputError(
                f"class_weight has a weight for {label!r}, which is none of the classes {_shown(classes)}. "
                "Name classes as they are in y."
            )
    return factor
