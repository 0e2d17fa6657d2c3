"""Which rows are learnt from, which are held out for the test, and how the former are folded.

    all rows  =  training rows + test rows
    a sample  of either, where they are more than tuning needs: the same share of every class, groups whole
    folds     of the training rows, or of their sample

All are drawn by the seed. A class with a single row is learnt from: held out, it could not be known.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
    train_test_split,
)
from sklearn.utils import check_random_state

from sixfold.errors import InputError, check_number
from sixfold.selection.folds import make_splits

Array = NDArray[Any]


def class_counts(y: Array) -> dict[Any, int]:
    """Return how many rows each label has, in the order of the labels.

    >>> class_counts(np.array(["b", "a", "b"], dtype=object))
    {'a': 1, 'b': 2}
    """
    if y.dtype == object:  # a million of them are counted in a tenth of the time that sorting takes
        return dict(sorted(Counter(y.tolist()).items(), key=lambda one: str(one[0])))
    labels, counts = np.unique(y, return_counts=True)
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))


def class_codes(y: Array) -> Array:
    """Return the label of each row as a number from 0, in the order of the labels."""
    if y.dtype != object:
        return np.unique(y, return_inverse=True)[1]
    numbers = {label: number for number, label in enumerate(class_counts(y))}
    return np.fromiter((numbers[label] for label in y.tolist()), dtype=np.intp, count=y.size)


def split_off_test(
    y: Array, groups: Array | None, test_size: float, task: str, seed: Any
) -> tuple[Array, Array]:
    """Return the training rows and the test rows, of which there may be none."""
    rows = np.arange(y.shape[0])
    if test_size == 0:
        return rows, rows[:0]
    if groups is not None:
        _check_share(test_size, group_count(groups), "groups")
        splitter = GroupShuffleSplit(1, test_size=test_size, random_state=seed)
        train, test = next(splitter.split(rows, y, groups))
        return train, test
    _check_share(test_size, rows.size, "rows")
    by_class = None
    alone = rows[:0]
    if task == "classification":
        codes = class_codes(y)
        single = np.bincount(codes)[codes] == 1
        enough = max(test_size * np.count_nonzero(~single), 1) >= np.unique(codes[~single]).size
        some_left = (1 - test_size) * np.count_nonzero(~single) >= np.unique(codes[~single]).size
        if not single.all() and enough and some_left:  # a test row of each class, and one to learn from
            alone, rows = rows[single], rows[~single]
            by_class = codes[rows]
    train, test = train_test_split(rows, test_size=test_size, random_state=seed, stratify=by_class)
    return np.sort(np.concatenate([train, alone])), np.sort(test)


def _check_share(test_size: float, count: int, what: str) -> None:
    held_out = math.ceil(test_size * count)
    if held_out >= count:
        raise InputError(
            f"test_size={test_size:g} of {count:,} {what} leaves none to learn from. Use a smaller share, or "
            f"more {what}."
        )


def draw_sample(rows: Array, y: Array, groups: Array | None, most: int, task: str, seed: Any) -> Array:
    """Return ``most`` of the rows: of each class its share, two at least if it has them; whole groups.

    A smaller sample is part of a larger one, and a sample of the size of a sample is that sample, so that it
    can be drawn again by its size.
    """
    if rows.size <= most:
        return rows
    random = check_random_state(seed)
    if groups is not None:
        return rows[_whole_groups(groups[rows], most, random)]
    if task != "classification":
        return np.sort(random.choice(rows, most, replace=False))
    codes = class_codes(y[rows])
    counts = np.bincount(codes)
    shuffled = random.permutation(rows.size)
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]  # class by class
    place = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
    turn = np.where(place < 2, 0.0, (place + 0.5) / np.repeat(counts, counts))
    most = max(most, int(np.minimum(counts, 2).sum()))
    return np.sort(rows[order[np.argsort(turn, kind="stable")[:most]]])


def _whole_groups(groups: Array, most: int, random: Any) -> Array:
    """Return the rows of groups that are drawn until the next one would be too many; two at least."""
    codes = class_codes(groups)
    counts = np.bincount(codes)
    order = random.permutation(counts.size)
    taken = max(2, int(np.searchsorted(np.cumsum(counts[order]), most, side="right")))
    return np.flatnonzero(np.isin(codes, order[:taken]))


def make_folds(
    cv: Any, X: Any, y: Array, groups: Array | None, task: str, seed: Any
) -> list[tuple[Array, Array]]:
    """Return the folds that all learners share; a number is lowered to the rows of the rarest class.

    Folds whose training rows are of one class, since the only row or group of the other is held out, are no
    use to most learners: they are left out.
    """
    if isinstance(cv, int | np.integer):
        check_number("cv", cv, at_least=2, whole=True)
        y = class_codes(y) if task == "classification" else y
        rarest = int(np.bincount(y).min()) if task == "classification" else 0
        by_class = rarest >= 2
        if groups is None:
            kind, most = (StratifiedKFold, rarest) if by_class else (KFold, y.size)
        else:
            kind, most = StratifiedGroupKFold if by_class else GroupKFold, group_count(groups)
            most = min(most, rarest) if by_class else most
        if most < 2:
            raise InputError(f"There is {most} row to learn from: cross-validation needs two at least.")
        cv = kind(min(cv, most), shuffle=True, random_state=seed)
    splitter = check_cv(cv, y, classifier=task == "classification")
    folds = make_splits(splitter, X, y, {} if groups is None else {"groups": groups})
    if task != "classification":
        return folds
    able = [(kept, held) for kept, held in folds if (y[kept] != y[kept[:1]]).any()]
    if not able:
        raise InputError(
            f"In each of the {len(folds)} folds the rows to learn from are of one class only. More rows, or "
            "groups, of the other classes are needed."
        )
    return able


def group_count(groups: Array) -> int:
    """Return how many groups there are, which must be two at least."""
    count = int(np.unique(groups.astype(str)).size)
    if count < 2:
        raise InputError(f"The rows to be split are all of the group {groups[0]}: two groups are needed.")
    return count
