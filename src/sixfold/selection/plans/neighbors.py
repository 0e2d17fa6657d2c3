"""k nearest neighbours: all k and all kinds of votes from one search.

    R_1(x) c R_2(x) c ... c R_K(x)

The k nearest rows are the first k of the K nearest, so the largest k is searched for, and the votes for the
others are those of its beginnings: one neighbour more adds one vote to each query. Leave-one-out takes one
search in all: the neighbours of every row, itself left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, partial
from numbers import Integral
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from sixfold.geometry.distances import Learned
from sixfold.selection.plans.base import Answered, Fitted, Fold, Plan, Setting, Table
from sixfold.selection.plans.groups import fit_one
from sixfold.solvers.neighbors.votes import RunningVotes, averages, count_votes, neighbor_weights, vote_shares

Array = NDArray[Any]

# Distances that learn nothing from the rows, so that one row less changes none of the others.
FIXED_METRICS = ("minkowski", "p", "euclidean", "l2", "manhattan", "l1", "cityblock", "chebyshev", "cosine")
# Weights of rows are scaled by the largest of a query's neighbours; beyond this ratio that of a few
# neighbours and that of many could round differently.
WIDEST_WEIGHTS = 1e100
KINDS_OF_WEIGHTS = ("uniform", "distance", None)  # besides functions


class NeighborsPlan(Plan):
    """All k and all weights from one search a fold."""

    parameters = ("n_neighbors", "weights")
    simpler = {"n_neighbors": +1}  # noqa: RUF012 - typed in the base class

    def __init__(self, model: Any, settings: Sequence[Setting], table: Table) -> None:
        super().__init__(model, settings, table)
        self._lock = Lock()

    def fit(self, fold: Fold) -> Iterator[Fitted]:
        """Yield a model for every k and kind of weights."""
        if self._leaves_one_out:
            with self._lock:
                left_out, classes = self._left_out
            row = slice(int(fold.test[0]), int(fold.test[0]) + 1)
            alone = classes is not None and not np.isin(fold.y_test, fold.y_train).all()
            if not alone:
                first = fold.number == 0
                for number, predicted in left_out.items():
                    yield self._answered(number, fold, {"predict": predicted[row]}, classes, int(first))
                    first = False
                return
        model = self._fit_largest(fold)
        nearest, solved = _Nearest(model, fold.X_test, self._ks), 1

        @cache
        def of_training() -> dict[int, dict[str, Any]]:
            return dict(_Nearest(model, fold.X_train, self._ks).answers(self._complete))

        for number, answers in nearest.answers(self._complete):
            also = {name: partial(_taken, of_training, number, name) for name in answers}
            yield self._answered(number, fold, answers, nearest.classes, solved, [(fold.X_train, also)])
            solved = 0

    def _answered(
        self, number: int, fold: Fold, answers: Any, classes: Any, solved: int, also: Any = ()
    ) -> Fitted:
        make = partial(fit_one, self.model, self.settings[number], fold)
        known = {} if classes is None else {"classes_": classes}
        model = Answered(make, fold.X_test, answers, known, also, unfitted=self.model, solves=1)
        return Fitted(number, model, math.nan if isinstance(self.model.metric, Learned) else 0.0, solved)

    @cached_property
    def _complete(self) -> list[tuple[int, Any, Any]]:
        """The number, k and kind of weights of each setting that a fit would take, the smallest k first."""
        both = [
            (
                number,
                setting.get("n_neighbors", self.model.n_neighbors),
                setting.get("weights", self.model.weights),
            )
            for number, setting in enumerate(self.settings)
        ]
        able = [one for one in both if _is_count(one[1]) and (callable(one[2]) or one[2] in KINDS_OF_WEIGHTS)]
        return sorted(able, key=lambda one: one[1])

    @property
    def _ks(self) -> list[int]:
        return [int(k) for _, k, _ in self._complete]

    def _fit_largest(self, fold: Fold) -> Any:
        return fit_one(self.model, {"n_neighbors": max(self._ks), "weights": "uniform"}, fold)

    # -- leave-one-out -------------------------------------------------------------------------------------

    @cached_property
    def _leaves_one_out(self) -> bool:
        """Whether every fold holds out one row and learns from all others, which change no distance."""
        splits, model = self.table.splits, self.model
        return (
            self.table.X is not None
            and isinstance(model.metric, str)
            and model.metric in FIXED_METRICS
            and not model.metric_params
            and getattr(model, "class_weight", None) != "balanced"
            and self.table.sample_weight is None
            and _holds_out_each_row(splits, _num_samples(self.table.X))
        )

    @cached_property
    def _left_out(self) -> tuple[dict[int, Array], Any]:
        """What each setting predicts for every row from the others, and the classes there are."""
        rows = np.arange(len(self.table.splits))
        whole = Fold(0, rows, rows, self.table.X, self.table.y, None, None)
        nearest = _Nearest(self._fit_largest(whole), None, self._ks)
        return {number: one["predict"] for number, one in nearest.answers(self._complete)}, nearest.classes


def _is_count(k: Any) -> bool:
    return isinstance(k, Integral) and not isinstance(k, bool) and int(k) >= 1


def _holds_out_each_row(splits: Sequence[tuple[Array, Array]], count: int) -> bool:
    """Return whether every row is held out, and all others are learnt from, in their order."""
    rows = np.arange(count)
    return len(splits) == count and all(
        test.size == 1 and train.size == count - 1 and np.array_equal(train, np.delete(rows, test[0]))
        for train, test in splits
    )


def _taken(answers: Callable[[], dict[int, dict[str, Any]]], number: int, name: str) -> Any:
    """Return one of the answers, which are worked out for all settings when the first is asked for."""
    found = answers()[number][name]
    return found() if callable(found) else found


class _Nearest:
    """The nearest training rows of some queries, and what the first k of them say."""

    def __init__(self, model: Any, X: Any, ks: list[int]) -> None:
        self.model = model
        self.classes = getattr(model, "classes_", None)
        most = model._store.usable - (X is None)
        self.largest = max(k for k in ks if k <= most)
        self.distances, self.rows = model.kneighbors(X, self.largest)
        weight = model._store.weight
        self.row_weight = None if weight is None else weight[self.rows]
        if weight is not None and weight.max() > WIDEST_WEIGHTS * weight[weight > 0].min():
            raise ArithmeticError("weights that only a separate fit scales as it should")

    def answers(self, settings: list[tuple[int, Any, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number of each setting and its answers, but for those with too many neighbours."""
        say = self._averages if self.classes is None else self._votes
        kinds: dict[Any, list[tuple[int, int]]] = {}
        for number, k, weights in settings:
            if k <= self.largest:
                kinds.setdefault(weights, []).append((number, int(k)))
        for weights, members in kinds.items():
            yield from say(weights, members)

    def _weights(self, kind: Any, k: int) -> Array:
        row_weight = None if self.row_weight is None else self.row_weight[:, :k]
        return neighbor_weights(kind, self.distances[:, :k], row_weight)

    def _votes(self, kind: Any, members: list[tuple[int, int]]) -> Iterator[tuple[int, dict[str, Any]]]:
        labels = self.model._labels
        columns = list(zip(labels.classes, labels.index.T, strict=True))
        weights = None if callable(kind) else self._weights(kind, self.largest)
        running = [RunningVotes(index[self.rows], self.distances, len(classes)) for classes, index in columns]
        for number, k in members:
            # What a function makes of k distances may be nothing like the first k of what it makes of more.
            counted = self._weights(kind, k) if weights is None else weights
            best = [one.winners(counted, k, anew=weights is None) for one in running]
            predicted = [classes[index] for (classes, _), index in zip(columns, best, strict=True)]
            yield (
                number,
                {
                    "predict": predicted[0] if labels.single else np.column_stack(predicted),
                    "predict_proba": partial(self._shares, kind, k),
                },
            )

    def _shares(self, kind: Any, k: int) -> Any:
        labels, weights = self.model._labels, self._weights(kind, k)
        shares = []
        for classes, index in zip(labels.classes, labels.index.T, strict=True):
            near = index[self.rows[:, :k]]
            shares.append(vote_shares(count_votes(near, weights, len(classes)), near, self.distances[:, :k]))
        return shares[0] if labels.single else shares

    def _averages(self, kind: Any, members: list[tuple[int, int]]) -> Iterator[tuple[int, dict[str, Any]]]:
        targets = self.model._targets[self.rows]
        for number, k in members:
            mean = averages(targets[:, :k], self._weights(kind, k))
            yield number, {"predict": mean[:, 0] if self.model._single else mean}
