"""Calibration of machines by cross-validation: each row's decision comes from machines that have not seen it.

Where the only row of a class is held out, the machine of what is left has rows of one class alone and says so
with f = 1 or -1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.labels import LabelledData
from sixfold.learners.svm.sigmoid import Calibration, fit_slopes, stratified_folds
from sixfold.learners.svm.support_layout import SupportLayout, arrange, machine_classes
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.kernel.one_vs_one import Machine

Array = NDArray[Any]


def calibrate(
    fit: Callable[[Array], list[Machine]],
    rows: KernelRows,
    data: LabelledData,
    upper: Array,
    pairwise: bool,
    seed: Any,
    budget: Budget,
) -> tuple[Calibration, bool]:
    """Return the slopes of every machine, and whether all parts of the rows were held out in time.

    Nothing is trained once a callback has asked for the end. Rows that were not held out tell nothing; if
    none was, all slopes are 1.

    Parameters
    ----------
    fit : callable
        Trains all machines for given bounds of the dual variables; 0 leaves a row out.
    rows : KernelRows
    data : LabelledData
        The weight is that of rows alone: classes weigh what they weigh among new rows.
    upper : ndarray of shape (rows,)
        The bounds of the whole fit.
    pairwise : bool
        Whether there is a machine for each of several pairs.
    seed : int, RandomState or None
        Of the folds; None means 0.
    """
    there = np.flatnonzero(upper > 0)
    random = check_random_state(0 if seed is None else seed)
    folds = stratified_folds(data.index[there], data.classes.size, random)
    sides = machine_classes(data.classes.size, pairwise)
    decisions, known = np.zeros((upper.size, len(sides))), np.zeros(upper.size, dtype=bool)
    try:
        for fold in range(0 if budget.stopped_by_callback else int(folds.max()) + 1):
            held = there[folds == fold]
            layout = arrange(fit(_without(upper, held)), data.index, data.classes.size, pairwise)
            if budget.interrupted or budget.seconds_left <= 0:
                break  # machines that were stopped are not those of the fit
            decisions[held] = _decisions(layout, rows, held, budget)
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
    """Return whether a row is of one of a machine's two classes."""
    if negative is None:
        return np.ones(index.size, dtype=bool)
    there: Array = (index == positive) | (index == negative)
    return there


def _decisions(layout: SupportLayout, rows: KernelRows, held: Array, budget: Budget) -> Array:
    return layout.decisions(
        held.size,
        lambda some, factors: rows.scores(held, layout.support[some], factors, np.float64, budget),
    )
