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
    return (decisions > 0).astype(np.float64) @ _first(n_classes) + (decisions <= 0) @ _second(n_classes)


def class_scores(decisions: Array, n_classes: int) -> Array:
    """Return the score of each class, of shape (rows, n_classes)."""
    sums = decisions @ (_first(n_classes) - _second(n_classes))
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
    first, second = _first(n_classes), _second(n_classes)
    least = (decisions > error).astype(np.float64) @ first + (decisions < -error) @ second
    most = (decisions >= -error).astype(np.float64) @ first + (decisions <= error) @ second
    winner = count_pair_votes(decisions, n_classes).argmax(axis=1)
    rows = np.arange(winner.size)
    own = least[rows, winner]
    most[rows, winner] = -1.0
    most -= 0.5 * (np.arange(n_classes) > winner[:, None])
    result: Array = own > most.max(axis=1)
    return result


def _first(n_classes: int) -> Array:
    """Return which class comes first in each pair: 1 there, of shape (pairs, n_classes)."""
    return np.eye(n_classes)[np.triu_indices(n_classes, 1)[0]]


def _second(n_classes: int) -> Array:
    return np.eye(n_classes)[np.triu_indices(n_classes, 1)[1]]
