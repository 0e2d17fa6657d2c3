"""Whether some rows differ from others: training and test part, beginning and end of the file, copies.

*Drift.* Numbers: D = max |F1 - F2| of the two distribution functions, and the test of Kolmogorov and Smirnov.
Categories, and whether a value is missing: the chi-square test, and Cramér's V = sqrt(chi2 / n). A column is
said to differ where p times the number of tests is below 0.01 (Bonferroni), and D or V is at least 0.1, since
in a large table every difference is certain and few matter.

The beginning and the end of the file are the first and the last quarter of the rows of each class, since many
tables are sorted by their target, wholly or in parts, and all columns with it; D or V is at least 0.2 there.

*Copies.* Rows are compared by a 64-bit hash of all columns. Among rows that are the same in all columns, no
model is right about more than those of the most frequent class: their share is the highest accuracy there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.report.column_checks import some_rows
from sixfold.app.report.column_codes import ColumnCodes

Array = NDArray[Any]

MOST_ROWS = 5_000  # of each side
SURE = 0.01  # of p times the number of tests
NOTABLE = 0.1  # of D and V
LEAST_ROWS = 20  # of each side
NOTABLE_ORDER = 0.2  # of D and V, between the beginning and the end of the file
MOST_CLASSES = 50  # whose rows are compared class by class
COUNTED = 20  # categories; those beyond are counted together


@dataclass(frozen=True)
class Drift:
    """A column that differs between two parts of the rows.

    Attributes
    ----------
    column : str
    what : {"values", "missing"}
    size : float
        D of numbers, V of categories, from 0 to 1.
    p_value : float
        Times the number of tests, at most 1.
    """

    column: str
    what: str
    size: float
    p_value: float


def find_drift(
    codes: ColumnCodes, one: Array, other: Array, seed: int, notable: float = NOTABLE
) -> list[Drift]:
    """Return the columns that differ between two parts of the rows, the most different first."""
    if min(one.size, other.size) < LEAST_ROWS:
        return []
    first = codes.values[some_rows(one, MOST_ROWS, seed)]
    second = codes.values[some_rows(other, MOST_ROWS, seed + 1)]
    tests: list[tuple[str, str, float, float]] = []
    for j, name in enumerate(codes.names):
        a, b = first[:, j], second[:, j]
        unknown = np.isnan(a), np.isnan(b)
        if any(side.any() for side in unknown):
            tests.append((name, "missing", *_chi_square(*(side.astype(int) for side in unknown))))
        a, b = a[~unknown[0]], b[~unknown[1]]
        if min(a.size, b.size) < LEAST_ROWS:
            continue
        if codes.is_category[j]:
            tests.append(
                (name, "values", *_chi_square(*(side.astype(int).clip(max=COUNTED) for side in (a, b))))
            )
        else:
            tests.append((name, "values", *_kolmogorov(a, b)))
    found = [
        Drift(name, what, size, min(1.0, p * len(tests)))
        for name, what, size, p in tests
        if p * len(tests) < SURE and size >= notable
    ]
    return sorted(found, key=lambda drift: -drift.size)


def _kolmogorov(a: Array, b: Array) -> tuple[float, float]:
    from scipy.stats import ks_2samp

    found = ks_2samp(a, b, method="asymp")
    return float(found.statistic), float(found.pvalue)


def _chi_square(a: Array, b: Array) -> tuple[float, float]:
    from scipy.stats import chi2_contingency

    values = np.union1d(a, b)
    counts = np.array([[np.count_nonzero(side == value) for value in values] for side in (a, b)])
    if values.size < 2:
        return 0.0, 1.0
    statistic, p, _, _ = chi2_contingency(counts, correction=False)
    return float(np.sqrt(statistic / counts.sum())), float(p)


def drift_with_order(codes: ColumnCodes, y: Array, task: str, seed: int) -> tuple[list[Drift], str]:
    """Return what differs between the beginning and the end of the file, and by what it is sorted."""
    if is_sorted(y, task) and task == "regression":
        return [], "target"
    groups = [np.flatnonzero(y == label) for label in np.unique(y)] if task == "classification" else []
    groups = groups if 0 < len(groups) <= MOST_CLASSES else [np.arange(y.size)]
    first = np.sort(np.concatenate([rows[: rows.size // 4] for rows in groups]))
    last = np.sort(np.concatenate([rows[rows.size - rows.size // 4 :] for rows in groups]))
    found = find_drift(codes, first, last, seed, NOTABLE_ORDER)
    return found, "target" if is_sorted(y, task) else ""


def is_sorted(y: Array, task: str) -> bool:
    """Whether rows are sorted by their target: classes one after the other, or numbers up or down.

    >>> is_sorted(np.array(["b", "b", "a", "a"]), "classification")
    True
    >>> is_sorted(np.array([1.0, 3.0, 2.0]), "regression")
    False
    """
    if task == "classification":
        return int((y[1:] != y[:-1]).sum()) + 1 <= np.unique(y).size
    steps = np.diff(y)
    return bool((steps >= 0).all() or (steps <= 0).all())


@dataclass(frozen=True)
class Copies:
    """Rows that are the same in all columns.

    Attributes
    ----------
    rows : int
        That are copies of an earlier one.
    test_rows : ndarray of bool
        For each test row, whether a training row is the same.
    contradicting : int
        Rows that have a twin with another target.
    best_accuracy : float or None
        The highest accuracy that any model has on all rows; None for numbers.
    """

    rows: int
    test_rows: Array
    contradicting: int
    best_accuracy: float | None


def find_copies(X: Any, y: Array, train: Array, test: Array, task: str) -> Copies:
    """Return which rows are the same in all columns."""
    rows = X.hash_rows(seed=0).to_numpy() if X.width else np.zeros(y.size, dtype=np.uint64)
    distinct, place = np.unique(rows, return_inverse=True)
    place = place.ravel()
    seen = np.zeros(distinct.size, dtype=bool)
    seen[place[train]] = True
    label = np.unique(y, return_inverse=True)[1].ravel().astype(np.int64)
    pairs, counts = np.unique(place.astype(np.int64) * (label.max() + 1) + label, return_counts=True)
    labels_of = np.bincount(pairs // (label.max() + 1), minlength=distinct.size)
    contradicting = int((labels_of[place] > 1).sum())
    best = None
    if task == "classification":
        most = np.zeros(distinct.size, dtype=np.int64)
        np.maximum.at(most, pairs // (label.max() + 1), counts)
        best = float(most.sum() / y.size)
    return Copies(int(y.size - distinct.size), seen[place[test]], contradicting, best)
