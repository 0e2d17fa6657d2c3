"""How the rows are split, and what to say where they cannot be."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples

from sixfold.errors import InputError, SixfoldWarning, warn

Array = NDArray[Any]


def make_splits(cv: Any, X: Any, y: Any, parameters: Mapping[str, Any]) -> list[tuple[Array, Array]]:
    """Return the row numbers of every fold; warn of classes that are too rare for it to have each of them."""
    if isinstance(cv, StratifiedKFold):
        _check_rare_classes(cv.n_splits, y)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)  # said better
        count = _num_samples(X)
        splits = [
            (row_numbers(train, count), row_numbers(test, count))
            for train, test in cv.split(X, y, **parameters)
        ]
    stated = cv.get_n_splits(X, y, **parameters)
    if len(splits) != stated:
        raise InputError(
            "cv.split and cv.get_n_splits return inconsistent results. "
            f"Expected {stated} splits, got {len(splits)}"
        )
    if not splits:
        raise InputError(
            "No fits were performed. Was the CV iterator empty? Were there no candidates? cv has no split: "
            "pass a number of folds, or a splitter that makes some."
        )
    return splits


def row_numbers(rows: Any, count: int) -> Array:
    """Return rows as numbers from 0: masks, and numbers counted from the end, are allowed too."""
    rows = np.asarray(rows)
    if rows.dtype == bool:
        return np.flatnonzero(rows)
    if rows.size == 0:
        return np.empty(0, dtype=np.intp)
    return rows % count if rows.min() < 0 else rows


def _check_rare_classes(folds: int, y: Any) -> None:
    if type_of_target(y) not in ("binary", "multiclass"):
        return
    classes, counts = np.unique(np.asarray(y), return_counts=True)
    if counts.max() < folds:
        raise InputError(
            f"cv={folds} asks for more folds than any class has rows: the largest, "
            f"{classes[counts.argmax()]}, has {counts.max()}, and each fold should hold out some of each "
            "class (n_splits cannot be greater than the number of members in each class). Use fewer folds."
        )
    rare = [
        f"{name} ({count})" for name, count in zip(classes.tolist(), counts, strict=True) if count < folds
    ]
    if rare:
        named = ", ".join(rare[:5]) + f" and {len(rare) - 5} more" * (len(rare) > 5)
        warn(
            f"With {folds} folds some hold out no row of the least populated classes (rows): {named}. "
            f"Use at most {counts.min()} folds, or leave these classes out.",
            SixfoldWarning,
        )
