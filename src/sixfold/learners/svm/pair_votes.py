"""From the decisions of machines for pairs of classes to one class a row.

Every machine votes: for the first class of its pair where its decision is positive, else for the second. The
class with most votes wins, the first of equal ones. As a score for each class,

    votes_c + t(sum of the decisions for c minus those against it),     t(s) = s / (3 (|s| + 1))

orders the classes by votes, and equal ones by decisions, since |t| < 1/3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def count_pair_votes(decisions: Array, n_classes: int) -> Array:
    """Return the votes for each class, of shape (rows, n_classes).

    >>> count_pair_votes(np.array([[0.5, -1.0, -2.0]]), 3)
    array([[1., 0., 2.]])
    """
    return _by_class(decisions > 0, decisions <= 0, n_classes)


def class_scores(decisions: Array, n_classes: int) -> Array:
    """Return the score of each class, of shape (rows, n_classes)."""
    sums = _by_class(decisions, -decisions, n_classes)
    result: Array = count_pair_votes(decisions, n_classes) + sums / (3.0 * (np.abs(sums) + 1.0))
    return result


def settled(decisions: Array, error: Array, n_classes: int) -> Array:
    """Return whether the winner of each row is the same for all decisions that are this near.

    A machine whose decision may be of either sign may vote for either class: the winner has to be ahead of
    every other class also without its doubtful votes, and with theirs. A class after it may have as many.

    Parameters
    ----------
    decisions : ndarray of shape (rows, pairs)
    error : ndarray of shape (pairs,)
        How far each may be off.
    """
    least = _by_class(decisions > error, decisions < -error, n_classes)
    most = _by_class(decisions >= -error, decisions <= error, n_classes)
    winner = count_pair_votes(decisions, n_classes).argmax(axis=1)
    rows = np.arange(winner.size)
    own = least[rows, winner]
    most[rows, winner] = -1.0
    most -= 0.5 * (np.arange(n_classes) > winner[:, None])
    result: Array = own > most.max(axis=1)
    return result


def _by_class(first: Array, second: Array, n_classes: int) -> Array:
    """Return what pairs have for their first class and for their second, added up for each class."""
    result = np.zeros((first.shape[0], n_classes))
    start = 0
    for label in range(n_classes - 1):
        pairs = slice(start, start + n_classes - 1 - label)  # of this class with each one after it
        result[:, label] += np.add.reduce(first[:, pairs], axis=1)
        result[:, label + 1 :] += second[:, pairs]
        start = pairs.stop
    return result
