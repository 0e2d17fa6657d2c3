"""What single columns say, and which of them say the same.

*Alone.* A tree of one column is cross-validated on the training rows, with the score of the comparison. Its
place between the baseline b and a perfect score p,

    strength = (score - b) / (p - b),

is 0 for a column that knows nothing and 1 for one that gives the answer away.

*Dependence.* With R from a QR factorisation with column pivoting of the standardised numbers, Z P = Q R, a
column whose diagonal entry is below 1e-9 of the first is a combination of those before it, with coefficients
R11^-1 R12 (Golub and Van Loan, Matrix Computations, section 5.4.2).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.report.answers import scorer_of
from sixfold.app.report.column_codes import ColumnCodes

Array = NDArray[Any]

MOST_ROWS = 5_000
FOLDS = 5
MOST_ALONE = 60  # columns that are cross-validated; of more, those that fit the training rows best
MOST_NUMBERS = 300  # columns that are factorised
ZERO = 1e-9  # of a diagonal entry of R, relative to the first
MOST_TERMS = 4  # of an equation
NEARLY_ONE = 0.99  # of a correlation


# -- one column at a time ------------------------------------------------------------------------------------


def scores_alone(
    codes: ColumnCodes, y: Array, train: Array, *, task: str, scoring: Any, seed: int
) -> dict[str, float]:
    """Return the cross-validated score of a tree for each column alone, on the training rows."""
    from sklearn.model_selection import KFold, StratifiedKFold

    rows = some_rows(train, MOST_ROWS, seed)
    values, target = codes.values[rows], y[rows]
    if task == "classification":
        counts = np.unique(target, return_counts=True)[1]
        if counts.min() < 2 or counts.size < 2:
            return {}
        folds = StratifiedKFold(min(FOLDS, int(counts.min())), shuffle=True, random_state=seed)
    else:
        if target.size < 2 * FOLDS:
            return {}
        folds = KFold(FOLDS, shuffle=True, random_state=seed)
    parts = list(folds.split(values, target))
    columns = [j for j in range(values.shape[1]) if not np.isnan(values[:, j]).all()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if len(columns) > MOST_ALONE:
            everything = [(np.arange(target.size),) * 2]
            known = {j: _tree_score(values[:, [j]], target, everything, task, scoring) for j in columns}
            columns = sorted(columns, key=lambda j: -np.nan_to_num(known[j], nan=-np.inf))[:MOST_ALONE]
        found = {
            codes.names[j]: _tree_score(values[:, [j]], target, parts, task, scoring) for j in sorted(columns)
        }
    return {name: score for name, score in found.items() if np.isfinite(score)}


def _tree_score(column: Array, y: Array, parts: list[Any], task: str, scoring: Any) -> float:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    model_class = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
    model = model_class(max_leaf_nodes=64, min_samples_leaf=2 if y.size < 200 else 5, random_state=0)
    scorer, scores = scorer_of(model, scoring), []
    for kept, held in parts:
        try:
            scores.append(float(scorer(model.fit(column[kept], y[kept]), column[held], y[held])))
        except ValueError:  # a score that needs what this fold has not
            return float("nan")
    return float(np.mean(scores))


def perfect_score(scoring: Any) -> float:
    """Return the best score there is: 0 for errors whose sign was turned, 1 for all others."""
    return 0.0 if isinstance(scoring, str) and scoring.startswith("neg_") else 1.0


def strength(score: float, baseline: float, perfect: float) -> float:
    """Return where a score is between the baseline's, 0, and a perfect one, 1.

    >>> strength(0.9, 0.5, 1.0)
    0.8
    """
    return (score - baseline) / (perfect - baseline) if perfect > baseline else float("nan")


# -- columns that say the same -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dependence:
    """Columns that can be computed from others.

    Attributes
    ----------
    equations : dict of str to str
        For each dependent column of numbers, how it follows from others.
    copies : list of list of str
        Categories that are the same but for the words.
    correlated : list of (str, str, float)
        Pairs of other columns of numbers with a correlation of at least 0.99, the largest first.
    """

    equations: dict[str, str]
    copies: list[list[str]]
    correlated: list[tuple[str, str, float]]


def find_dependence(codes: ColumnCodes, train: Array, seed: int) -> Dependence:
    """Return which columns of the training rows follow from others."""
    rows = some_rows(train, MOST_ROWS, seed)
    numbers = np.flatnonzero(~codes.is_category)[:MOST_NUMBERS]
    Z, spread, kept = _standardised(codes.values[np.ix_(rows, numbers)])
    names = [codes.names[j] for j in numbers[kept]]
    equations = _equations(Z, spread, names)
    pairs = [pair for pair in _pairs(Z, names) if not {pair[0], pair[1]} & set(equations)]
    return Dependence(equations, _copies(codes, rows), pairs)


def _standardised(values: Array) -> tuple[Array, Array, Array]:
    """Return columns of mean 0 and length 1, unknown values as the mean, and which are not constant."""
    if values.size == 0:
        return np.empty((values.shape[0], 0)), np.empty(0), np.empty(0, dtype=int)
    scale = np.nanmax(np.abs(np.where(np.isnan(values), 0.0, values)), axis=0)
    scale[scale == 0] = 1.0
    values = values / scale  # so that squares neither overflow nor vanish
    counts = (~np.isnan(values)).sum(axis=0)
    mean = np.nansum(values, axis=0) / np.maximum(counts, 1)
    centred = np.where(np.isnan(values), 0.0, values - mean)
    length = np.sqrt((centred**2).sum(axis=0))
    kept = np.flatnonzero(length > 1e-12 * np.sqrt(values.shape[0]))
    spread = length[kept] * scale[kept].astype(np.longdouble)  # which of numbers near 1e308 is beyond them
    return centred[:, kept] / length[kept], spread, kept


def _equations(Z: Array, spread: Array, names: list[str]) -> dict[str, str]:
    from scipy.linalg import qr, solve_triangular

    rows, columns = Z.shape
    if columns < 2 or rows < columns + 2:  # fewer rows than columns: each is a combination of others
        return {}
    R, order = qr(Z, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > ZERO * diagonal[0]).sum())
    if rank == columns:
        return {}
    combination = solve_triangular(R[:rank, :rank], R[:rank, rank:])
    found = {}
    for place, column in enumerate(order[rank:]):
        own = combination[:, place]
        used = np.flatnonzero(np.abs(own) > 1e-6)
        used = used[np.argsort(-np.abs(own[used]), kind="stable")]
        terms = [(own[k] * spread[column] / spread[order[k]], names[order[k]]) for k in used[:MOST_TERMS]]
        text = "".join(_term(factor, name) for factor, name in terms).removeprefix(" + ").strip()
        rest = f" + {used.size - MOST_TERMS} more" if used.size > MOST_TERMS else ""
        found[names[column]] = f"{names[column]!r} = {text}{rest} + a constant"
    return found


def _term(factor: float, name: str) -> str:
    size = abs(factor)
    number = "" if abs(size - 1) < 1e-6 else f"{size:.4g} "
    return f" {'-' if factor < 0 else '+'} {number}{name!r}"


def _pairs(Z: Array, names: list[str]) -> list[tuple[str, str, float]]:
    if Z.shape[1] < 2 or Z.shape[0] < 10:
        return []
    correlation = Z.T @ Z
    first, second = np.nonzero(np.triu(np.abs(correlation) >= NEARLY_ONE, k=1))
    found = [
        (names[i], names[j], float(correlation[i, j]))
        for i, j in zip(first.tolist(), second.tolist(), strict=True)
    ]
    return sorted(found, key=lambda pair: -abs(pair[2]))


def _copies(codes: ColumnCodes, rows: Array) -> list[list[str]]:
    """Return groups of categories that tell the same rows apart, whatever they are called."""
    groups: dict[bytes, list[str]] = {}
    for j in np.flatnonzero(codes.is_category).tolist():
        column = np.nan_to_num(codes.values[rows, j], nan=-1.0)
        distinct, first, place = np.unique(column, return_index=True, return_inverse=True)
        if distinct.size < 2:
            continue
        by_appearance = np.empty(distinct.size, dtype=np.int64)
        by_appearance[np.argsort(first)] = np.arange(distinct.size)
        groups.setdefault(by_appearance[place.ravel()].tobytes(), []).append(codes.names[j])
    return [group for group in groups.values() if len(group) > 1]


def some_rows(rows: Array, most: int, seed: int) -> Array:
    """Return the rows, or so many of them drawn at random, in their order."""
    if rows.size <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
