"""Which search suits the rows: the answers are the same, so only time decides.

small tables                    a scan of all rows
few columns                     a k-d tree
many columns with structure     bounds from leading principal directions
many columns without            products of all rows and queries, and the smallest kept
bytes, absolute differences     byte-wise sums, bounded by those of groups of columns
sparse rows                     inverted lists; written out and scanned where squares are not asked for
other measures                  a scan of all rows
distances that no loop knows    the distance computes itself
tables in files                 one block of rows after the other, each in one of these ways
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.geometry.distances import Distance, Precomputed
from sixfold.geometry.distances.base import Measure
from sixfold.solvers.neighbors.blocked import BlockedSearch, is_streamed
from sixfold.solvers.neighbors.kd_tree import KdTree
from sixfold.solvers.neighbors.pairwise import PairwiseSearch
from sixfold.solvers.neighbors.projected import ProductSearch, dense_search
from sixfold.solvers.neighbors.scan import ByteSearch, ScanSearch, SparseScan
from sixfold.solvers.neighbors.search import DistanceSearch, Search
from sixfold.solvers.neighbors.sparse import SparseSearch

Array = NDArray[Any]

ALGORITHMS = ("auto", "ball_tree", "kd_tree", "brute")
SCANNED_NUMBERS = 1 << 15  # up to which a table is gone through as fast as any index is
# Up to here boxes rule out most rows even of uniform data: of 100,000 rows of 8 columns the tree and products
# of all rows take the same time, of 12 columns the tree 2.5 times as much; a scan takes longer than both.
FEW_COLUMNS, FEW_COLUMNS_TO_SCAN = 8, 12


def make_search(
    X: Any,
    distance: Distance,
    algorithm: str,
    leaf_size: int,
    budget: Budget,
    kept: NDArray[np.int64] | None = None,
) -> DistanceSearch:
    """Return the rows made ready for the search that suits them.

    Parameters
    ----------
    X : ndarray or CSR array
        Training rows as they were given, checked.
    distance : Distance
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}
        "ball_tree" means "auto", and so does "kd_tree" where no tree is possible; "brute" makes neither trees
        nor projections.
    leaf_size : int
        Rows in a leaf of a tree.
    kept : ndarray of int64, default=None
        The rows that may be neighbours, in order; the search numbers these. None for all.
    """
    count = X.shape[0] if kept is None else kept.size
    if is_streamed(X) and not isinstance(distance, Precomputed):
        measure = distance.measure
        tree = measure is not None and _wants_tree(X, measure, "brute" if algorithm == "brute" else "auto")
        return DistanceSearch(BlockedSearch(X, distance, kept, tree, leaf_size), distance, count)
    rows = distance.embed(X if kept is None else X[kept])
    return DistanceSearch(_loops(rows, distance, algorithm, leaf_size, budget), distance, count)


def _loops(rows: Any, distance: Distance, algorithm: str, leaf_size: int, budget: Budget) -> Search:
    measure = distance.measure
    if measure is None:
        return PairwiseSearch(rows, distance)
    if sp.issparse(rows):
        return SparseSearch(rows, measure) if measure.family == "squares" else SparseScan(rows, measure)
    rows = np.ascontiguousarray(rows)
    if _wants_tree(rows, measure, algorithm):
        return KdTree(rows, measure, leaf_size, budget)
    return _dense_search(rows, measure, algorithm)


def _wants_tree(rows: Array, measure: Measure, algorithm: str) -> bool:
    if measure.family == "count" or rows.dtype == np.uint8 or algorithm == "brute":
        return False
    few = rows.shape[1] <= (FEW_COLUMNS if measure.family == "squares" else FEW_COLUMNS_TO_SCAN)
    return algorithm == "kd_tree" or (few and rows.size > SCANNED_NUMBERS)


def _dense_search(rows: Array, measure: Measure, algorithm: str) -> Search:
    if rows.dtype == np.uint8 and measure.family == "absolute":
        return ByteSearch(rows, measure)
    if measure.family == "squares" and rows.size > SCANNED_NUMBERS:
        return ProductSearch(rows, measure) if algorithm == "brute" else dense_search(rows, measure)
    return ScanSearch(rows, measure)
