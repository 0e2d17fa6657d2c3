"""Questions to the rows that are kept: which are nearest, which are within a radius, what belongs to them.

Queries are answered some thousand at a time, so that the memory they take does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import Budget
from sixfold.errors import InputError, check_number, check_option
from sixfold.learners.neighbors.stored_rows import StoredRows, check_neighbour_rows, without_self
from sixfold.learners.neighbors.transfer import picked
from sixfold.solvers.neighbors.search import Neighbours
from sixfold.solvers.threads import thread_limit

Array = NDArray[Any]
Answer = TypeVar("Answer")

PORTION = 8192  # queries at a time: votes and copies of them stay small, whatever their number
PORTION_BYTES = 1 << 26
NEIGHBOURS = 1 << 20  # that are held at a time, each with its distance, weight and target


class NeighbourQueries:
    """A learner that knows the nearest of its training rows."""

    n_neighbors: int
    metric: Any
    n_jobs: int | None
    time_limit: float | None
    n_samples_fit_: int
    _store: StoredRows

    def _check_queries(self, X: Any) -> Any:
        return check_neighbour_rows(self, X, self._store.metric, reset=False, kinds=self._store.kinds)[0]

    @contextmanager
    def _budget(self) -> Iterator[Budget]:
        with Budget(time_limit=self.time_limit) as budget, thread_limit(self.n_jobs):
            yield budget
        if budget.interrupted:
            raise KeyboardInterrupt

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Return the nearest training rows of each row, the nearest first.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features), default=None
            The rows to find neighbours of; None for the training rows, which are not their own neighbours.
        n_neighbors : int, default=None
            How many; None for the model's own.
        return_distance : bool, default=True
            Whether to return distances too.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            Only with ``return_distance``.
        rows : ndarray of shape (n_queries, n_neighbors)
            Numbers of training rows; equal distances are ordered by them.
        """
        queries, k = self._asked(X, n_neighbors)
        distances, rows = np.empty((queries.shape[0], k)), np.empty((queries.shape[0], k), dtype=np.int64)

        def keep(part: slice, found: Neighbours) -> None:
            distances[part], rows[part] = found.distances, found.rows

        self._visit(queries, k, X is None, keep, PORTION)
        return (distances, rows) if return_distance else rows

    def _asked(self, X: Any, n_neighbors: int | None) -> tuple[Any, int]:
        """Return the queries, checked, and how many neighbours of each are asked for."""
        check_is_fitted(self, "n_samples_fit_")
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        check_number("n_neighbors", k, at_least=1, whole=True)
        queries = self._store.rows if X is None else self._check_queries(X)
        self._require_enough(int(k), X is None, queries.shape[0])
        return queries, int(k)

    def _answers(
        self,
        X: Any,
        make: Callable[[slice, Neighbours], Answer],
        n_neighbors: int | None = None,
        most: int = PORTION,
    ) -> list[Answer]:
        """Return what ``make`` makes of the neighbours of some queries at a time: of all those of X."""
        return self._visit(*self._asked(X, n_neighbors), X is None, make, most)

    def _visit(
        self, queries: Any, k: int, own: bool, make: Callable[[slice, Neighbours], Answer], most: int
    ) -> list[Answer]:
        """Go through checked queries, of the training rows themselves if ``own``."""
        answers = []
        with self._budget() as budget:
            self._store.ready(budget)
            for part in self._portions(queries, min(most, NEIGHBOURS // k)):
                found = self._store.nearest(queries[part], k + own, budget)
                found = without_self(found, np.arange(part.start, part.stop)) if own else found
                if sp.issparse(queries) and self._store.precomputed:
                    _require_known(found, part.start)
                answers.append(make(part, found))
        return answers

    def _require_enough(self, k: int, own: bool, queries: int) -> None:
        there = self._store.usable - own
        if k > there:
            others = " other than itself" if own else ""
            raise InputError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = "
                f"{self._store.usable}, n_samples = {queries}: a row has at most {there} neighbours{others}, "
                "which are training rows of positive weight. Ask for fewer neighbours, or fit on more rows."
            )

    @staticmethod
    def _portions(queries: Any, most: int) -> Iterator[slice]:
        count = queries.shape[0]
        row_bytes = max(queries.shape[1] * 8, 1) if not sp.issparse(queries) else 1024
        size = max(min(most, PORTION_BYTES // row_bytes), 1)
        for start in range(0, count, size):
            yield slice(start, min(start + size, count))

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> Any:
        """Return a sparse matrix that joins each row with its nearest training rows.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features), default=None
            As in :meth:`kneighbors`.
        n_neighbors : int, default=None
            How many; None for the model's own.
        mode : {"connectivity", "distance"}, default="connectivity"
            Whether entries are 1 or distances.

        Returns
        -------
        csr_matrix of shape (n_queries, n_samples_fit_)
        """
        check_option("mode", mode, ("connectivity", "distance"))
        distances, rows = self.kneighbors(X, n_neighbors)
        ends = np.arange(rows.shape[0] + 1) * rows.shape[1]
        values = distances.ravel() if mode == "distance" else np.ones(rows.size)
        return sp.csr_matrix((values, rows.ravel(), ends), shape=(rows.shape[0], self.n_samples_fit_))

    def radius_neighbors(
        self,
        X: Any = None,
        radius: float = 1.0,
        return_distance: bool = True,
        sort_results: bool = False,
    ) -> Any:
        """Return all training rows within a radius of each row.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features), default=None
            As in :meth:`kneighbors`.
        radius : float, default=1.0
            Rows at exactly this distance count.
        return_distance : bool, default=True
            Whether to return distances too.
        sort_results : bool, default=False
            Whether the nearest come first; by row number otherwise.

        Returns
        -------
        distances : ndarray of shape (n_queries,) of arrays
            Only with ``return_distance``.
        rows : ndarray of shape (n_queries,) of arrays
        """
        check_is_fitted(self, "n_samples_fit_")
        check_number("radius", radius, at_least=0)
        own = X is None
        queries = self._store.rows if own else self._check_queries(X)
        distances, rows = np.empty(queries.shape[0], dtype=object), np.empty(queries.shape[0], dtype=object)
        with self._budget() as budget:
            for part in self._portions(queries, 1024):
                found = self._store.within(queries[part], float(radius), budget)
                for i, number in enumerate(range(part.start, part.stop)):
                    piece = slice(found.ends[i], found.ends[i + 1])
                    d, r = found.distances[piece], found.rows[piece]
                    if own:
                        d, r = d[r != number], r[r != number]
                    order = np.argsort(d, kind="stable") if sort_results else slice(None)
                    distances[number], rows[number] = d[order], r[order]
        return (distances, rows) if return_distance else rows

    def radius_neighbors_graph(
        self, X: Any = None, radius: float = 1.0, mode: str = "connectivity", sort_results: bool = False
    ) -> Any:
        """Return a sparse matrix that joins each row with the training rows within a radius.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features), default=None
            As in :meth:`kneighbors`.
        radius : float, default=1.0
            Rows at exactly this distance count.
        mode : {"connectivity", "distance"}, default="connectivity"
            Whether entries are 1 or distances.
        sort_results : bool, default=False
            Whether the entries of a row are ordered by distance.

        Returns
        -------
        csr_matrix of shape (n_queries, n_samples_fit_)
        """
        check_option("mode", mode, ("connectivity", "distance"))
        distances, rows = self.radius_neighbors(X, radius, sort_results=sort_results)
        ends = np.cumsum([0, *(part.size for part in rows)])
        columns = np.concatenate([np.empty(0, dtype=np.int64), *rows])
        values = np.concatenate([np.empty(0), *distances]) if mode == "distance" else np.ones(columns.size)
        return sp.csr_matrix((values, columns, ends), shape=(rows.size, self.n_samples_fit_))

    def transfer(self, X: Any, payload: Any, n_neighbors: int = 1) -> Any:
        """Return what belongs to the nearest training rows: captions, masks, records, anything.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features)
            The rows to find neighbours of.
        payload : array, table, list or tuple
            One entry for each training row, in their order.
        n_neighbors : int, default=1
            Of how many neighbours; more than 1 adds an axis (a list of lists for a list).

        Returns
        -------
        array, table or list
            The payload of the nearest row of each query.
        """
        check_is_fitted(self, "n_samples_fit_")
        rows = self.kneighbors(X, n_neighbors, return_distance=False)
        return picked(payload, rows, self.n_samples_fit_)


def _require_known(found: Neighbours, start: int) -> None:
    """Raise an :class:`InputError` where a sparse matrix of distances has too few; ``start`` is a number."""
    short = np.flatnonzero(np.isinf(found.distances[:, -1]))
    if short.size:
        known = int(np.isfinite(found.distances[short[0]]).sum())
        raise InputError(
            f"{found.rows.shape[1]} neighbors per samples are required, but some samples have only {known}: "
            f"of row {start + int(short[0])}, counted from 0, the sparse matrix has no more distances. Pass "
            "more of them, or ask for fewer neighbours."
        )
