"""Nearest neighbours whose training rows stay on a cluster.

``fit`` finds out what has to be known of the rows and keeps where they are; a query is one pass over them.
The answers bring along the targets and weights of the rows they name, so that nothing with an entry a row is
kept here: :class:`TargetsOfAnswers` looks them up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.checks import check_rows
from sixfold.data.dask_blocks import DaskBlocks
from sixfold.data.labels import LabelColumns
from sixfold.errors import InputError, TimeLimitReached
from sixfold.geometry.distances import Cosine, Minkowski, SquaredEuclidean, distance_kind
from sixfold.learners.base import describe
from sixfold.learners.distributed import check_on_cluster, refuse_cluster, say_rows
from sixfold.learners.neighbors.model import CheckedRows
from sixfold.learners.neighbors.stored_rows import Queries, StoredRows
from sixfold.solvers.neighbors.search import Neighbors
from sixfold.solvers.streamed.neighbors import Candidates, nearest_rows

Array = NDArray[Any]
Model = TypeVar("Model")

ABLE = ("KNeighborsClassifier", "KNeighborsRegressor")
ON_WORKERS = "The training rows are on a cluster and stay there. "


class TargetsOfAnswers:
    """One column of what training rows answer, known for the rows that the last query has found."""

    def __init__(self, store: ClusterRows, name: str, column: int | None, kind: Any) -> None:
        self.store, self.name, self.column, self.kind = store, name, column, kind
        self.shape = (store.count, store.blocks.n_targets)

    def __getitem__(self, rows: Any) -> Any:
        """Return the entries of rows that were found."""
        if isinstance(rows, tuple):  # the column of all rows, of which some will be asked for
            part, column = rows
            if isinstance(part, slice):
                return TargetsOfAnswers(self.store, self.name, column, self.kind)
            return self[part][..., column]
        numbers, values = self.store.answered(self.name)
        places = np.searchsorted(numbers, rows)
        found = values[places] if self.column is None else values[places, self.column]
        return found.astype(self.kind)

    @property
    def T(self) -> list[TargetsOfAnswers]:  # noqa: N802 - as arrays have it
        """The columns."""
        columns = range(self.store.blocks.n_targets)
        return [TargetsOfAnswers(self.store, self.name, column, self.kind) for column in columns]


@dataclass(frozen=True)
class _Loops:
    name: str = "brute"


@dataclass(frozen=True)
class _Search:
    loops: _Loops = _Loops()


class ClusterRows(StoredRows):
    """Training rows on a cluster, in the place of those in memory."""

    def __init__(self, metric: Any, parameters: dict[str, Any], blocks: DaskBlocks, usable: int) -> None:
        super().__init__(metric, parameters, "brute", 30)
        self.blocks, self._usable = blocks, usable
        self._last: Candidates | None = None
        self.weighted = False

    @property
    def rows(self) -> NoReturn:
        """Refuse: they stay where they are."""
        raise InputError(ON_WORKERS + "Pass the rows that neighbours are asked for, and not None.")

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.blocks.n_rows

    @property
    def usable(self) -> int:
        """How many rows may be neighbours."""
        return self._usable

    def require_here(self) -> None:
        """Refuse: they are not."""
        raise InputError(ON_WORKERS + "Fit all rows in one call, instead of adding some with partial_fit.")

    def like_stored(self, X: Any) -> NoReturn:
        """Refuse: it is asked for where stored rows are compared with others."""
        raise InputError(ON_WORKERS + "To have a search verified, fit and verify a sample of them in memory.")

    def copy(self) -> ClusterRows:
        """Return the same rows, with counts of their own."""
        other = ClusterRows(self.metric, self.parameters, self.blocks, self._usable)
        other.weight, other.weighted, other.stats = self.weight, self.weighted, replace(self.stats)
        return other

    def __getstate__(self) -> NoReturn:
        raise InputError(
            ON_WORKERS
            + "A model of them cannot be saved or sent. Save the rows, and fit again where they are."
        )

    def ready(self, budget: Budget | None = None) -> Any:
        """Return what finds the neighbours."""
        return _Search()

    def check_queries(self, estimator: Any, X: Any, k: int = 0) -> Queries:
        """Return rows to find k neighbours of, checked."""
        if X is None:
            _ = self.rows
        queries = Queries(np.ascontiguousarray(check_rows(estimator, X)), k)
        if k > self.usable:
            raise InputError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = "
                f"{self.usable}. Ask for fewer neighbours, or fit on more rows."
            )
        return queries

    def nearest(self, queries: Queries, chunk: slice, budget: Budget) -> Neighbors:
        """Return the nearest rows of a chunk of the queries: one pass."""
        rows = queries.rows[chunk]
        self.blocks.watch = budget.check
        try:
            found = nearest_rows(self.blocks, rows, queries.k, self.metric, self.parameters)
        except BudgetExhausted:
            if budget.interrupted:
                raise KeyboardInterrupt from None
            raise TimeLimitReached(
                f"The query took longer than time_limit={budget.time_limit:g} s. Allow more time, or ask for "
                "fewer rows at a time."
            ) from None
        finally:
            self.blocks.watch = None
        self._last = found
        self.stats.queries += rows.shape[0]
        self.stats.pairs += rows.shape[0] * self.usable
        self.stats.computed += found.computed
        return Neighbors(found.distances, found.rows, found.computed)

    def within(self, queries: Queries, chunk: slice, radius: float, budget: Budget) -> NoReturn:
        """Refuse: how many rows are within a radius is not known beforehand."""
        raise InputError(ON_WORKERS + "Ask for a number of neighbours: kneighbors(X, n_neighbors).")

    def answered(self, name: str) -> tuple[Array, Array]:
        """Return the numbers of the rows that were found last, in order, and their targets or weights."""
        assert self._last is not None
        numbers, first = np.unique(self._last.rows, return_index=True)
        values = self._last.targets if name == "targets" else self._last.weights
        return numbers, values.reshape(-1, *values.shape[2:])[first]


def fit_on_cluster(model: Model, X: Any, y: Any, sample_weight: Any) -> Model:
    """Keep where the rows are, and what has to be known of them."""
    learner: Any = model
    if not {kind.__name__ for kind in type(model).__mro__}.intersection(ABLE):
        refuse_cluster(model)
    metric, parameters = learner._metric()
    if not isinstance(metric, str) or distance_kind(metric) not in (Minkowski, SquaredEuclidean, Cosine):
        raise InputError(
            f"metric={metric!r} is learnt from all rows, or called for each pair of them, and these are on a "
            "cluster. Use a Minkowski distance ('euclidean', 'manhattan', ...), 'sqeuclidean' or 'cosine'."
        )
    with learner._unchanged_on_failure():
        learner._check_parameters()
        classes = is_classifier(model)
        data = check_on_cluster(learner, X, y, sample_weight, lambda: "class", least=1)
        store = ClusterRows(metric, parameters, data.blocks(), data.counted)
        if sample_weight is not None or getattr(learner, "class_weight", None) is not None:
            weights: Any = TargetsOfAnswers(store, "weights", None, np.float64)
            store.weight = weights
        index: Any = TargetsOfAnswers(store, "targets", None, np.intp if classes else np.float64)
        targets = LabelColumns([learner.classes_], index, True) if classes else (index, data.single_target)
        learner._set_fitted(store, CheckedRows(data.X, None, targets, None, None, None), Budget())
        learner._fit_parameters = learner.get_params(deep=False)
        learner._subject = describe(learner, data.X, data.y, None)
        say_rows(learner, data)
    return model
