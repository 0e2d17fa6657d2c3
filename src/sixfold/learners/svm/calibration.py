"""Probabilities from decisions, calibrated by cross-validation.

    p(f) = 1 / (1 + exp(-a f))      a = ``above`` for f > 0, ``below`` for f < 0, both 0 or more

p grows with f and p(0) = 1/2, so that the more probable class is the one that the sign of f stands for; a
slope of its own on either side makes up for decisions that are surer on one than on the other. Each slope
minimises the cross-entropy to the targets of Platt (1999), (n+ + 1) / (n+ + 2) for rows of the positive class
and 1 / (n- + 2) for the others. Each row's decision comes from SVMs that were not fitted on it
(:func:`stratified_folds`); where the only row of a class is held out, the SVM of what is left has rows of one
class alone and says so with f = 1 or -1. Where rows have weights, n+ and n- are how many equal ones would say
as much, (sum w)^2 / sum w^2 (Kish, 1965): weights in other units are the same weights.

The probabilities r_ij of class i against class j are joined into one of each class by the second method of
Wu, Lin and Weng (2004): minimise sum_i sum_{j != i} (r_ji p_i - r_ij p_j)^2 over sum_i p_i = 1, which is one
linear system a row.

Sources: Platt (1999), Probabilistic outputs for support vector machines; Wu, Lin and Weng (2004), Probability
estimates for multi-class classification by pairwise coupling, equations 18 to 21; Kish (1965), Survey
sampling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils import check_random_state

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.labels import LabelledData
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.kernel.one_vs_one import SupportLayout, class_sides

Array = NDArray[Any]

FOLDS = 5
JUST_ABOVE_HALF = np.nextafter(0.5, 1.0)
SUREST = 1e-7  # no class of a pair is ruled out altogether: the system of the coupling would be singular
COUPLED = 1 << 22  # entries of the systems that are solved at a time


@dataclass(frozen=True)
class Calibration:
    """The slopes of each binary SVM, on either side of 0.

    Attributes
    ----------
    below, above : ndarray of shape (SVMs,)
    """

    below: Array
    above: Array

    def probabilities(self, decisions: Array) -> Array:
        """Return the probability of the positive class of each SVM: above 1/2 just where f > 0.

        Parameters
        ----------
        decisions : ndarray of shape (rows, SVMs)

        Returns
        -------
        ndarray of shape (rows, SVMs)
        """
        positive = decisions > 0
        p = expit(np.where(positive, self.above, self.below) * decisions)
        result: Array = np.where(positive, np.maximum(p, JUST_ABOVE_HALF), np.minimum(p, 0.5))
        return result

    def class_probabilities(self, decisions: Array, n_classes: int, pairwise: bool) -> Array:
        """Return the probability of each class, of shape (rows, n_classes)."""
        positive = self.probabilities(decisions)
        if n_classes == 2:
            return np.column_stack([1.0 - positive, positive])
        if pairwise:
            return couple(positive, n_classes)
        result: Array = positive / positive.sum(axis=1, keepdims=True)
        return result


def calibrate(
    decide: Callable[[Array, Array], Array],
    data: LabelledData,
    upper: Array,
    pairwise: bool,
    seed: Any,
    budget: Budget,
) -> tuple[Calibration, bool]:
    """Return the slopes of every SVM, and whether all parts of the rows were held out in time.

    Nothing is fitted once a callback has asked for the end. Rows that were not held out tell nothing; if
    none was, all slopes are 1.

    Parameters
    ----------
    decide : callable
        Fits all SVMs for given bounds of the dual variables (0 leaves a row out), and returns their decisions
        for some rows, of shape (rows, SVMs).
    data : LabelledData
        The weight is that of rows alone: classes weigh what they weigh among new rows.
    upper : ndarray of shape (rows,)
        The bounds of the whole fit.
    pairwise : bool
        Whether there is an SVM for each of several pairs.
    seed : int, RandomState, Generator or None
        Of the folds; None means 0.
    """
    there = np.flatnonzero(upper > 0)
    random = seed if isinstance(seed, np.random.Generator) else check_random_state(seed or 0)
    folds = stratified_folds(data.index[there], data.classes.size, random)
    sides = class_sides(data.classes.size, pairwise)
    decisions, known = np.zeros((upper.size, len(sides))), np.zeros(upper.size, dtype=bool)
    try:
        for fold in range(0 if budget.stopped_by_callback else int(folds.max()) + 1):
            held = there[folds == fold]
            found = decide(_without(upper, held), held)
            if budget.interrupted or budget.seconds_left <= 0:
                break  # SVMs that were stopped are not those of the fit
            decisions[held] = found
            known[held] = True
    except BudgetExhausted:
        pass
    slopes = []
    for number, (positive, negative) in enumerate(sides):
        some = np.flatnonzero(known & _members(data.index, positive, negative))
        weight = None if data.weight is None else data.weight[some]
        slopes.append(fit_slopes(decisions[some, number], data.index[some] == positive, weight))
    below, above = np.array(slopes).T
    return Calibration(below, above), bool(known[there].all())


def _without(upper: Array, held: Array) -> Array:
    """Return the bounds with 0 for rows that are held out."""
    bounds = upper.copy()
    bounds[held] = 0.0
    return bounds


def _members(index: Array, positive: int, negative: int | None) -> Array:
    """Return whether a row is of one of an SVM's two classes."""
    if negative is None:
        return np.ones(index.size, dtype=bool)
    there: Array = (index == positive) | (index == negative)
    return there


def decisions_of(layout: SupportLayout, rows: KernelRows, held: Array, budget: Budget) -> Array:
    """Return the decisions of SVMs for some of the training rows."""
    return layout.decisions(
        held.size,
        lambda some, factors: rows.scores(held, layout.support[some], factors, np.float64, budget),
    )


def fit_slopes(decisions: Array, positive: Array, weight: Array | None = None) -> tuple[float, float]:
    """Return the slopes below and above 0 of one SVM.

    Parameters
    ----------
    decisions : ndarray of shape (rows,)
        For rows that the SVM was not fitted on.
    positive : ndarray of bool of shape (rows,)
        Whether a row is of the SVM's positive class.
    weight : ndarray of shape (rows,), default=None
        How much each row counts beside the others; None for the same each.

    Examples
    --------
    >>> below, above = fit_slopes(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([False, False, True, True]))
    >>> round(below, 6) == round(above, 6)
    True
    """
    weight = np.ones(decisions.size) if weight is None else weight / weight.max(initial=0.0)
    yes, no = _effective_count(weight[positive]), _effective_count(weight[~positive])
    target = np.where(positive, (yes + 1.0) / (yes + 2.0), 1.0 / (no + 2.0))
    sides = [_slope(decisions[side], target[side], weight[side]) for side in (decisions < 0, decisions > 0)]
    # No row was on that side: it gets the slope of the other, and 1 where all decisions were 0.
    known = [slope for slope in sides if slope is not None]
    below, above = (slope if slope is not None else known[0] if known else 1.0 for slope in sides)
    return below, above


def _effective_count(weight: Array) -> float:
    total, squares = float(weight.sum()), float(weight @ weight)
    return total**2 / squares if squares > 0 else 0.0


def _slope(f: Array, target: Array, weight: Array) -> float | None:
    """Return the a >= 0 that minimises sum_i w_i (log(1 + exp(a f_i)) - t_i a f_i); None without any f."""
    if not np.any(weight > 0):
        return None
    unit = float(np.abs(f).max())
    f = f / unit

    def slope(a: float) -> tuple[float, float]:
        p = expit(a * f)
        return float(weight @ (f * (p - target))), float(weight @ (f * f * p * (1.0 - p)))

    low, high = 0.0, 1.0
    if slope(low)[0] >= 0:
        return 0.0
    while slope(high)[0] < 0:
        low, high = high, 2.0 * high
    a = high
    for _ in range(200):
        first, second = slope(a)
        low, high = (a, high) if first < 0 else (low, a)
        step = a - first / second if second > 0 else low
        # Bisection where Newton's step leaves the bracket.
        nearer = step if low < step < high else 0.5 * (low + high)
        if abs(nearer - a) <= 1e-12 * a:
            break
        a = nearer
    return a / unit


def couple(pairs: Array, n_classes: int) -> Array:
    """Return the probability of each class from those of the first against the second of each pair.

    Parameters
    ----------
    pairs : ndarray of shape (rows, n_classes * (n_classes - 1) / 2)
        For the pairs (0, 1), (0, 2), ..., (1, 2), ...

    Returns
    -------
    ndarray of shape (rows, n_classes)

    Examples
    --------
    Where r_ij = p_i / (p_i + p_j), it is p that comes out:

    >>> couple(np.array([[0.2 / 0.5, 0.2 / 0.7, 0.3 / 0.8]]), 3).round(12)
    array([[0.2, 0.3, 0.5]])
    """
    result = np.empty((pairs.shape[0], n_classes))
    block = max(COUPLED // (n_classes + 1) ** 2, 1)
    for start in range(0, pairs.shape[0], block):
        part = slice(start, start + block)
        result[part] = _coupled(pairs[part], n_classes)
    return result


def _coupled(pairs: Array, n_classes: int) -> Array:
    first, second = np.triu_indices(n_classes, 1)
    r = np.zeros((pairs.shape[0], n_classes, n_classes))
    r[:, first, second] = np.clip(pairs, SUREST, 1.0 - SUREST)
    r[:, second, first] = 1.0 - r[:, first, second]
    system = np.ones((pairs.shape[0], n_classes + 1, n_classes + 1))
    system[:, :-1, :-1] = -r * r.transpose(0, 2, 1)
    every = np.arange(n_classes)
    system[:, every, every] = np.square(r).sum(axis=1)  # sum_j r_ji^2
    system[:, -1, -1] = 0.0
    right = np.zeros((pairs.shape[0], n_classes + 1, 1))
    right[:, -1] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :-1, 0], 0.0)  # what rounding leaves below 0
    result: Array = p / p.sum(axis=1, keepdims=True)
    return result


def stratified_folds(index: Array, n_classes: int, random: Any) -> Array:
    """Return the fold of each row: every class is spread over all folds, at random.

    Parameters
    ----------
    index : ndarray of shape (rows,)
        The class number of each row.
    n_classes : int
    random : RandomState or Generator
        Where the order of rows comes from.

    Returns
    -------
    ndarray of int of shape (rows,)
        0 to 4, or fewer where a class has fewer rows; a class with one row has it in one of two.
    """
    counts = np.bincount(index, minlength=n_classes)
    n_folds = max(min(FOLDS, int(counts.min())), 2)
    folds, first = np.empty(index.size, dtype=np.intp), 0
    for label, count in enumerate(counts):
        rows = np.flatnonzero(index == label)[random.permutation(count)]
        # Going on where the class before ended keeps the folds of one size.
        folds[rows] = (first + np.arange(count)) % n_folds
        first += int(count)
    return folds
