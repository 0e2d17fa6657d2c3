"""What the main cases need at the least: bytes from memory and operations.

Counted is what no method that gives the same answer can do without, not what ours does:

    least squares      one read; the moments of half a matrix, n d^2
    logistic, hinge    two reads, one to find the plane and one to prove how good it is; scores and slope,
                       4 n d a read (second derivatives of a sample will do)
    softmax            the same with K scores, 4 n d K a read
    perceptron         a read an epoch; the score of every row, 2 n d (its few updates are left out)
    SGD                a read an epoch; score and update, 4 n d
    tree               one read, and one byte a number and level, which is its bin; one addition each
    kNN                one read; n q products of length d (a bound on the distance may do with fewer, so that
                       a search can be beyond this roof)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

EPOCHS = 10
DEPTH = 10


class Needs(NamedTuple):
    """Bytes and operations of a case, and whether single precision will do."""

    bytes_read: float
    operations: float
    single: bool = False


def least_squares(data: Any) -> Needs:
    n, d = data.X.shape
    return Needs(data.X.nbytes, float(n) * d * d)


def plane(data: Any) -> Needs:
    return Needs(2.0 * data.X.nbytes, 2 * 4.0 * data.X.size)


def softmax(data: Any) -> Needs:
    return Needs(2.0 * data.X.nbytes, 2 * 4.0 * data.X.size * np.unique(data.y).size)


def perceptron(data: Any) -> Needs:
    return Needs(EPOCHS * data.X.nbytes, EPOCHS * 2.0 * data.X.size)


def sgd(data: Any) -> Needs:
    return Needs(EPOCHS * data.X.nbytes, EPOCHS * 4.0 * data.X.size)


def tree(data: Any) -> Needs:
    return Needs(data.X.nbytes + DEPTH * data.X.size, DEPTH * data.X.size)


def neighbors(data: Any) -> Needs:
    return Needs(data.X.nbytes + data.Q.nbytes, 2.0 * data.X.size * len(data.Q), single=True)


NEEDS: dict[str, Callable[[Any], Needs]] = {
    "ols": least_squares,
    "logistic": plane,
    "softmax": softmax,
    "hinge": plane,
    "perceptron": perceptron,
    "sgd": sgd,
    "tree_depth_10": tree,
    "uniform": neighbors,
}
"""By the name of the benchmark's case."""
