"""From neighbours to an answer: how much each counts, and what they say together.

    weight of neighbour i      sample weight_i * 1            ("uniform")
                               sample weight_i / distance_i   ("distance")
                               sample weight_i * f(distances) (a callable)
    class                      the one whose neighbours' weights have the largest sum
    number                     sum_i weight_i y_i / sum_i weight_i

With "distance", rows at distance 0 are the only ones that count. A tied vote goes to the class with the
smaller total distance, then to the first class; under scikit-learn's name at once to the first class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError

Array = NDArray[Any]
Decision = Callable[[Array, Array, Array], Array]  # of votes, labels and distances

LARGEST_INVERSE = 1e300  # beyond, a sum of some would be infinite


def neighbor_weights(
    weights: Any, distances: Array, sample_weight: Array | None, numbers: Sequence[int] | Array | None = None
) -> Array:
    """Return how much each neighbour of each query counts.

    ``sample_weight`` holds that of each neighbour; ``numbers`` are those of the queries, for errors.
    """
    if callable(weights):
        result = _checked(weights(distances), distances, numbers)
    elif weights == "distance":
        result = _inverse(distances)
    else:
        result = np.ones_like(distances)
    if sample_weight is None:
        return result
    # A power of two that brings the largest to 1: products neither overflow nor vanish all at once.
    return result * (sample_weight / 2.0 ** np.floor(np.log2(sample_weight.max(axis=1, keepdims=True))))


def _inverse(distances: Array) -> Array:
    """Return 1 / distance; where one is 0 (or too small to divide by), only such neighbours count."""
    with np.errstate(divide="ignore", over="ignore"):
        inverse = 1.0 / distances
    endless = inverse > LARGEST_INVERSE
    result = np.where(endless.any(axis=1, keepdims=True), endless.astype(np.float64), inverse)
    # Infinitely far, all of them: then equally so.
    result[~(result > 0).any(axis=1)] = 1.0
    return result


def _checked(given: Any, distances: Array, numbers: Sequence[int] | Array | None) -> Array:
    """Return what the user's function gave as weights, if it can be used."""
    result = np.array(given, dtype=np.float64)
    numbers = range(distances.shape[0]) if numbers is None else numbers
    if result.shape != distances.shape:
        raise InputError(
            f"weights returned an array of shape {result.shape} for distances of shape {distances.shape}. "
            "Return one weight for each distance."
        )
    bad = ~((result >= 0) & (result < np.inf))
    if bad.any():
        query, place = np.argwhere(bad)[0].tolist()
        raise InputError(
            f"weights returned {result[query, place]} for the distance {distances[query, place]:g} of query "
            f"{numbers[query]}, counted from 0. Weights are finite numbers that are 0 or more."
        )
    none = np.flatnonzero(~(result > 0).any(axis=1))
    if none.size:
        raise InputError(
            f"weights returned 0 for every neighbour of query {numbers[none[0]]}, counted from 0, so "
            "nothing can be said about it. Return a positive weight for at least the nearest."
        )
    return result


def count_votes(labels: Array, weights: Array, classes: int) -> Array:
    """Return the sum of the weights of each class (columns) for each query (rows).

    >>> count_votes(np.array([[0, 1, 1]]), np.ones((1, 3)), 3)
    array([[1., 2., 0.]])
    """
    queries = labels.shape[0]
    place = labels + classes * np.arange(queries)[:, None]
    return np.bincount(place.ravel(), weights.ravel(), minlength=queries * classes).reshape(queries, classes)


def winners(votes: Array, labels: Array, distances: Array) -> NDArray[np.intp]:
    """Return the class with most votes; a tie goes to the smaller total distance, then to the first class.

    >>> labels, distances = np.array([[0, 1, 1, 0]]), np.array([[1.0, 2.0, 3.0, 5.0]])
    >>> winners(count_votes(labels, np.ones((1, 4)), 2), labels, distances)
    array([1])
    """
    best = votes.argmax(axis=1)
    tied = votes == votes.max(axis=1, keepdims=True)
    for query in np.flatnonzero(tied.sum(axis=1) > 1):
        totals = np.bincount(labels[query], distances[query], minlength=votes.shape[1])
        among = np.flatnonzero(tied[query])  # of which all may be infinitely far
        best[query] = among[totals[among].argmin()]
    return best


class RunningVotes:
    """The votes of the first k neighbours of some queries, for one k after the other.

    A neighbour more adds its weight to its class, in the order in which :func:`count_votes` adds them, so
    that every sum is the same to the last bit.

    >>> labels, distances = np.array([[0, 1, 1]]), np.array([[1.0, 2.0, 3.0]])
    >>> running = RunningVotes(labels, distances, 2)
    >>> [int(running.winners(np.ones((1, 3)), k)[0]) for k in (1, 2, 3)]
    [0, 0, 1]
    """

    def __init__(self, labels: Array, distances: Array, classes: int) -> None:
        self.labels, self.distances = labels, distances
        # Votes of a class stand side by side: a maximum over few classes is fast that way.
        self._places = np.ascontiguousarray(
            (labels * labels.shape[0] + np.arange(labels.shape[0])[:, None]).T
        )
        self._votes = np.zeros((classes, labels.shape[0]))
        self._counted = 0

    def winners(self, weights: Array, k: int, anew: bool = False) -> NDArray[np.intp]:
        """Return the class with most votes of the first k; a tie goes as in :func:`winners`.

        ``weights`` are those of at least k neighbours of each query, and the same as for the last k unless
        the votes are to be counted ``anew``.
        """
        if anew or k < self._counted:
            self._votes[:] = 0.0
            self._counted = 0
        flat = self._votes.reshape(-1)
        for place in range(self._counted, k):
            flat[self._places[place]] += weights[:, place]
        self._counted = k
        best = self._votes.argmax(axis=0)
        tied = self._votes == self._votes.max(axis=0)
        rows = np.flatnonzero(np.count_nonzero(tied, axis=0) > 1)
        if rows.size:
            best[rows] = self._nearest_of(tied[:, rows], rows, k)
        return best

    def _nearest_of(self, tied: NDArray[np.bool_], rows: Array, k: int) -> NDArray[np.intp]:
        """Return which of the tied classes has the smallest total distance, for some of the queries."""
        labels, distances = self.labels[rows, :k], self.distances[rows, :k]
        totals = count_votes(labels, distances, tied.shape[0]).T
        nearest = np.where(tied, totals, np.inf).argmin(axis=0)
        endless = ~tied[nearest, np.arange(rows.size)]  # all that are tied are infinitely far
        nearest[endless] = tied[:, endless].argmax(axis=0)
        return nearest


def vote_shares(votes: Array, labels: Array, distances: Array) -> Array:
    """Return the share of the votes of each class, the winner's larger than any other by a unit at least."""
    shares = plain_shares(votes, labels, distances)
    best = winners(votes, labels, distances)
    for query in np.flatnonzero(shares.argmax(axis=1) != best):
        shares[query, best[query]] = np.nextafter(shares[query].max(), 2.0)
    return shares


def first_winners(votes: Array, labels: Array, distances: Array) -> NDArray[np.intp]:
    """Return the class with most votes; a tie goes to the first class, wherever the neighbours are.

    >>> labels = np.array([[1, 0, 1, 0]])
    >>> first_winners(count_votes(labels, np.ones((1, 4)), 2), labels, np.array([[1.0, 2.0, 3.0, 5.0]]))
    array([0])
    """
    return votes.argmax(axis=1)


def plain_shares(votes: Array, labels: Array, distances: Array) -> Array:
    """Return the share of the votes of each class."""
    return votes / votes.sum(axis=1, keepdims=True)


def averages(targets: Array, weights: Array) -> Array:
    """Return the weighted mean of targets (queries x neighbours x outputs) over the neighbours."""
    share = weights / weights.sum(axis=1, keepdims=True)
    return np.einsum("ik,ikj->ij", share, targets)
