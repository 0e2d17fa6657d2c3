"""All squared penalties of a linear regression from one factorisation a fold.

    w(l2) = V ((V'c) / (e + l2)),     A = mean (x - mean)(x - mean)' = V diag(e) V'

(:mod:`sixfold.solvers.least_squares.ridge_path`, with the bound on how far each model is from its minimum).
Folds share what they are made of:

*Tall tables.* The moments of the rows to learn from are those of all rows minus those of the held-out rows
(Chan, Golub and LeVeque 1983). Where the folds hold out every row once, those of all rows are the sum of the
parts, so that every row is read once. That is done where a quarter of the weight, and of the scatter of every
column, is left, so that no more than two bits are lost; otherwise (one held-out row is far away from all
others; most rows are held out; rows are in neither part) moments are taken from the rows themselves.

*Wide tables.* The products of all pairs of rows are computed once, and a fold uses its rows and columns of
them, on the same condition.

What the held-out rows are predicted is one matrix product for all penalties. A penalty for which the bound is
not next to nothing (alpha = 0; a tiny one with nearly dependent columns) is fitted by the learner itself.
"""

from __future__ import annotations

import importlib
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial, reduce
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, clone

from sixfold.data.blocks import Block
from sixfold.data.checks import TrainingData, check_rows, check_training, require_finite
from sixfold.errors import InputError
from sixfold.learners.linear.linear_regression import LinearRegression
from sixfold.selection.plans.base import Answered, Fitted, Fold, Plan, Setting, Table
from sixfold.selection.plans.groups import fit_one, gap_of
from sixfold.solvers.least_squares.conjugate_gradient import MAX_SPARSE_SIDE
from sixfold.solvers.least_squares.moments import Moments, block_moments
from sixfold.solvers.least_squares.ridge_path import (
    ColumnPath,
    RidgeModels,
    RowPath,
    row_products,
    squared_lengths,
    suspects,
)

Array = NDArray[Any]

PREDICTIONS = 1 << 22  # that are made at a time
KEPT_MOMENTS = 1 << 25  # entries of the moments of all folds that are kept at a time


class LeastSquaresPlan(Plan):
    """All penalties of LinearRegression or Ridge on a fold."""

    parameters = ("alpha",)
    simpler = {"alpha": 1, "l1_ratio": 1}  # noqa: RUF012 - as the base class declares it

    def __init__(self, model: Any, settings: Sequence[Setting], table: Table) -> None:
        super().__init__(model, settings, table)
        self._path = _lasso_plan()(model, settings, table) if _has_absolute_values(model) else None
        self._lock = threading.Lock()
        self._rows: SharedRows | None = None
        self._looked_at_table = table.X is None

    @classmethod
    def knows(cls, model: Any, parameter: str) -> bool:
        """Return whether settings of this parameter share work."""
        if _has_absolute_values(model):
            return bool(_lasso_plan().knows(model, parameter))
        return super().knows(model, parameter)

    @classmethod
    def objection(cls, model: Any) -> str | None:
        """Return why these candidates have to be fitted one by one, or None."""
        if _has_absolute_values(model):
            reason: str | None = _lasso_plan().objection(model)
            return reason
        if model.penalty != "l2":
            return f"penalty={model.penalty!r} has no path of penalties"
        if model.positive:
            return "coefficients that are kept positive have no common factorisation"
        if model._solver_name() not in ("auto", "direct"):
            return f"solver={model.solver!r} is to be used for each"
        if model.callbacks or model.verbose:
            return "callbacks and progress are told of every fit"
        return None

    def fit(self, fold: Fold) -> Iterator[Fitted]:
        """Yield the fitted model of every setting."""
        if self._path is not None:
            yield from self._path.fit(fold)
            return
        alphas = [setting.get("alpha", self.model.alpha) for setting in self.settings]
        total = len(fold.train) if fold.sample_weight is None else float(np.sum(fold.sample_weight))
        shared = [number for number, alpha in enumerate(alphas) if _is_penalty(alpha)]
        alone = [number for number, alpha in enumerate(alphas) if not _is_penalty(alpha)]
        factored = self._factored(fold) if shared else None
        if factored is None:
            shared, alone = [], list(range(len(alphas)))
        else:
            solved = 1
            step = max(PREDICTIONS // max(factored.n_held_out * factored.n_targets, 1), 1)
            for first in range(0, len(shared), step):
                numbers = shared[first : first + step]
                models = factored.models([self._l2(alphas[number], total) for number in numbers])
                accurate, answers = factored.accurate(models), factored.predict(models)
                of_fit = _AnswersOfFit(factored, models)
                for place, (number, answer) in enumerate(zip(numbers, answers, strict=True)):
                    if not accurate[place]:
                        alone.append(number)
                        continue
                    make = partial(fit_one, self.model, self.settings[number], fold)
                    model = answered(make, fold.X_test, answer, fold, partial(of_fit.get, place))
                    yield Fitted(number, model, float(models.gap[place]), solved)
                    solved = 0
        for number in sorted(alone):
            model = fit_one(self.model, self.settings[number], fold)
            yield Fitted(number, model, gap_of(model))

    def _l2(self, alpha: float, weight_sum: float) -> float:
        """Return the factor of half the squares that the learner takes this alpha for."""
        model = copy(self.model)
        model.alpha = alpha
        return float(model._problem(weight_sum).l2)

    def _factored(self, fold: Fold) -> FactoredFold | None:
        """Return the fold, factored; None where the learner itself has to say what is wrong with it."""
        intercept = self.model.fit_intercept
        if not isinstance(intercept, bool | np.bool_):
            return None
        try:
            rows = self._shared()
            if rows is None:
                probe = clone(self.model)
                data = check_training(probe, fold.X_train, fold.y_train, fold.sample_weight)
                return factor_rows(data, check_rows(probe, fold.X_test), bool(intercept))
            return rows.fold(fold.number, fold.train, fold.test, bool(intercept))
        except (InputError, FloatingPointError):
            return None

    def _shared(self) -> SharedRows | None:
        """Return the checked table, once for all folds; None where each fold has to be looked at."""
        with self._lock:
            if not self._looked_at_table:
                self._looked_at_table = True
                table = self.table
                try:
                    data = check_training(clone(self.model), table.X, table.y, table.sample_weight)
                    require_finite(data.X, "X")
                    self._rows = SharedRows(data, table.splits)
                except InputError:
                    self._rows = None
            return self._rows


def _has_absolute_values(model: Any) -> bool:
    return model.penalty in ("l1", "elasticnet")


def _lasso_plan() -> Any:
    return importlib.import_module("sixfold.selection.plans.l1_path").LassoPlan


def _is_penalty(alpha: Any) -> bool:
    """Return whether it is a number that the factorisation serves."""
    number = isinstance(alpha, Real) and not isinstance(alpha, bool | np.bool_)
    return number and 0.0 < float(alpha) < math.inf


def answered(
    make: Callable[[], Any], X_test: Any, answer: Array, fold: Fold | None = None, of_fit: Any = None
) -> Answered:
    """Return what stands for a linear regression that predicts ``answer`` for the held-out rows.

    ``of_fit`` returns what it predicts for the rows of the fit, X_train of ``fold``, which scores of training
    rows ask for.
    """

    def predict(X: Any) -> Any:
        if X is X_test:
            return answer
        return of_fit() if fold is not None and X is fold.X_train else itself.model.predict(X)

    known: dict[str, Any] = {"__sklearn_tags__": LinearRegression().__sklearn_tags__, "predict": predict}
    model = Answered(make, X_test, {"predict": answer}, known, solves=1)
    itself = weakref.proxy(model)  # a circle would keep the rows until the next collection of garbage
    known["score"] = partial(RegressorMixin.score, itself)  # which asks for predictions only
    return model


# -- one fold ------------------------------------------------------------------------------------------------


class FactoredFold:
    """The rows of a fold, factored, and its held-out rows as the factorisation reads them.

    ``of_fit`` returns the rows of the fit in the same form.
    """

    def __init__(
        self, path: ColumnPath | RowPath, held_out: Any, of_fit: Callable[[], Any], data: TrainingData
    ) -> None:
        self.path = path
        self.of_fit = of_fit
        self.n_held_out = (held_out[0] if isinstance(held_out, tuple) else held_out).shape[0]
        self.n_targets = data.y.shape[1]
        self._held_out = held_out
        self._single = data.single_target
        self._dtype = data.X.dtype

    def models(self, penalties: Sequence[float] | Array) -> RidgeModels:
        """Return the models of some penalties."""
        return self.path.models(penalties)

    def accurate(self, models: RidgeModels) -> NDArray[np.bool_]:
        """Return, for every penalty, whether the answers have the digits that count."""
        return self.path.accurate(models, self._held_out)

    def predict(self, models: RidgeModels, rows: Any = None) -> list[Array]:
        """Return the answers for the held-out rows, or others, in the form the learner would give them."""
        rows = self._held_out if rows is None else rows
        scores = self.path.predict(models, rows).astype(self._dtype, copy=False)
        if self._single:
            return list(scores)
        by_penalty = scores.reshape(-1, self.n_targets, scores.shape[1])
        return [np.ascontiguousarray(part.T) for part in by_penalty]


class _AnswersOfFit:
    """What models predict for the rows of their fit, made for some of them at a time when asked for."""

    def __init__(self, factored: FactoredFold, models: RidgeModels) -> None:
        self.factored, self.models = factored, models
        self._first = self._step = 0
        self._rows: Any = None
        self._answers: list[Array] = []

    def get(self, place: int) -> Array:
        """Return the answers of one model."""
        if self._rows is None:
            self._rows = self.factored.of_fit()
            size = (self._rows[0] if isinstance(self._rows, tuple) else self._rows).shape[0]
            self._step = max(PREDICTIONS // (size * self.factored.n_targets), 1)
        if not 0 <= place - self._first < len(self._answers):
            self._first = place
            some = self.models.some(slice(place, place + self._step))
            self._answers = self.factored.predict(some, self._rows)
        return self._answers[place - self._first]


def factor_rows(data: TrainingData, held_out: Any, fit_intercept: bool) -> FactoredFold | None:
    """Return a fold from its rows alone; None where a direct solution is not what the learner would take."""
    X, Y, weight = data.X, data.y, data.weight
    n, d = X.shape
    total = float(n if weight is None else weight.sum())
    if not total > 0 or _one_row(n, weight) or _too_large(X):
        return None
    if d < n:
        moments = _moments_of(X, Y, weight)
        path = ColumnPath(moments, fit_intercept, _constant(moments, X, weight))
        return FactoredFold(path, path.centred(held_out), lambda: path.centred(X), data)
    q = np.full(n, 1.0 / n) if weight is None else weight / total
    about = np.asarray(q @ X, dtype=np.float64) if fit_intercept and not sp.issparse(X) else None
    products = row_products(X, about)
    rows = RowPath(products, Y.astype(np.float64), q, d, fit_intercept)
    of_held_out = row_products(held_out, about, X), squared_lengths(held_out, about)
    return FactoredFold(rows, of_held_out, lambda: (products, products.diagonal()), data)


class SharedRows:
    """The rows of a table, and what its folds have in common."""

    def __init__(self, data: TrainingData, splits: Sequence[tuple[Array, Array]]) -> None:
        self.data, self.splits = data, splits
        self.n_rows, self.n_columns = data.X.shape
        self._lock = threading.Lock()
        self._parts: list[Moments] = []  # of the held-out rows of every fold
        self._all: Moments | None = None
        self._products: dict[bool, tuple[Array, Array | None]] = {}

    def fold(self, number: int, train: Array, test: Array, fit_intercept: bool) -> FactoredFold | None:
        """Return a fold, factored; None where a direct solution is not what the learner would take."""
        train, test = np.asarray(train), np.asarray(test)
        if self.n_columns >= train.size:
            shared = self._wide(train, test, fit_intercept)
        else:
            shared = self._tall(number, train, test, fit_intercept)
        if shared is not None:
            return shared
        X, Y, weight = self._take(train)
        data = TrainingData(X, Y, weight, self.data.single_target, self.data.estimator)
        return factor_rows(data, _rows_of(self.data.X, test), fit_intercept)

    def _take(self, rows: Array) -> tuple[Any, Array, Array | None]:
        data = self.data
        weight = None if data.weight is None else _rows_of(data.weight, rows)
        return _rows_of(data.X, rows), _rows_of(data.y, rows), weight

    # -- tall tables

    def _tall(self, number: int, train: Array, test: Array, fit_intercept: bool) -> FactoredFold | None:
        """Return the fold from moments that folds share, or None."""
        if _too_large(self.data.X) or not _complement(train, test, self.n_rows):
            return None
        with self._lock:
            if self._all is None:
                self._all = self._all_moments()
        X = self.data.X
        known = self._parts and np.array_equal(self.splits[number][1], test)
        others = self._parts[number] if known else _moments_of(*self._take(test))
        moments = self._all.without(others)
        if moments is None or moments.rows < 2:
            return None
        weight = None if self.data.weight is None else self.data.weight[train]
        constant = _constant(moments, X, weight, train)
        path = ColumnPath(moments, fit_intercept, constant)
        held_out = path.centred(_rows_of(X, test))
        return FactoredFold(path, held_out, lambda: path.centred(_rows_of(X, train)), self.data)

    def _all_moments(self) -> Moments:
        """Return the moments of all rows: the sum of those that are held out, where each is once."""
        tests = [np.asarray(test) for _, test in self.splits]
        width = self.n_columns + self.data.y.shape[1]
        held_out = np.zeros(self.n_rows, dtype=bool)
        for test in tests:
            held_out[test] = True
        once = held_out.all() and sum(test.size for test in tests) == self.n_rows
        if once and len(tests) * width**2 <= KEPT_MOMENTS:
            self._parts = [_moments_of(*self._take(test)) for test in tests]
            return reduce(Moments.__add__, self._parts)
        return _moments_of(self.data.X, self.data.y, self.data.weight)

    # -- wide tables

    def _wide(self, train: Array, test: Array, fit_intercept: bool) -> FactoredFold | None:
        """Return the fold from products of rows that folds share, or None."""
        data, n, d = self.data, train.size, self.n_columns
        if _too_large(data.X) or 2 * n < self.n_rows:
            return None
        weight = np.ones(n) if data.weight is None else data.weight[train]
        total = float(weight.sum())
        if not total > 0 or _one_row(n, weight):
            return None
        with self._lock:
            if fit_intercept not in self._products:
                centred = fit_intercept and not sp.issparse(data.X)
                about = np.asarray(np.mean(data.X, axis=0, dtype=np.float64)) if centred else None
                self._products[fit_intercept] = row_products(data.X, about), about
        products, about = self._products[fit_intercept]
        q = weight / total
        Y = data.y[train].astype(np.float64)
        of_fit = products[np.ix_(train, train)]
        path = RowPath(of_fit, Y, q, d, fit_intercept)
        if about is not None and path.lost_digits:
            return None
        held_out = products[np.ix_(test, train)], products.diagonal()[test]
        return FactoredFold(path, held_out, lambda: (of_fit, of_fit.diagonal()), data)


def _rows_of(values: Any, rows: Array) -> Any:
    """Return some rows; a view where they are next to each other."""
    if rows.size and not sp.issparse(values):
        first, last = int(rows[0]), int(rows[-1])
        if last - first + 1 == rows.size and bool((rows[1:] > rows[:-1]).all()):
            return values[first : last + 1]
    return values[rows]


def _complement(train: Array, test: Array, n_rows: int) -> bool:
    """Return whether every row is in one of the two, and once."""
    if train.size + test.size != n_rows:
        return False
    seen = np.zeros(n_rows, dtype=bool)
    seen[train] = True
    seen[test] = True
    return bool(seen.all())


def _moments_of(X: Any, Y: Array, weight: Array | None) -> Moments:
    return block_moments(Block(X, Y, weight, 0), np.zeros(1, dtype=np.int32))


def _one_row(n: int, weight: Array | None) -> bool:
    """Return whether nothing can be learnt, of which the learner warns."""
    return (n if weight is None else int(np.count_nonzero(weight))) < 2


def _too_large(X: Any) -> bool:
    """Return whether a dense matrix of the smaller side of a sparse table is too large."""
    return sp.issparse(X) and min(X.shape) > MAX_SPARSE_SIDE


def _constant(moments: Moments, X: Any, weight: Array | None, rows: Array | None = None) -> Array:
    """Return the columns that are the same in all rows that count: their coefficients are exactly zero."""
    columns = suspects(moments)
    if columns.size == 0:
        return columns
    if rows is None:
        rows = np.arange(X.shape[0])
    if weight is not None:
        rows = rows[weight > 0]
    values = X[rows][:, columns] if sp.issparse(X) else X[np.ix_(rows, columns)]
    dense = values.toarray() if sp.issparse(values) else values
    return columns[(dense == dense[0]).all(axis=0)]
