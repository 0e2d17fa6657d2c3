"""How the machines of several classes share one list of support vectors, in scikit-learn's layout.

    two classes          one machine; classes_[1] is its positive class
    one against one      a machine for each pair i < j, in the order (0, 1), (0, 2), ..., (1, 2), ...; class i
                         is its positive class
    one against the rest a machine for each class, which is its positive one

Support vectors are those of any machine, sorted by class, then by row. ``dual_coef[m, v]`` is y_v a_v of
support vector v in its m-th machine. One against one, a support vector of class c is in the machines of c and
each other class j, and row m speaks of j = m for m < c and of j = m + 1 from there on; so there are as many
rows as other classes. Otherwise, row m speaks of machine m.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


# Machines: up to so many, most of them with coefficient 0, cost less than reading the rows once a class. Ten
# classes of 4,000 images: 0.13 s of processor time at once and 0.21 s class by class.
TOGETHER = 64


class Scorer(Protocol):
    """Scores rows by coefficients on some of the support vectors."""

    def __call__(self, vectors: slice, coefficients: Array) -> Array:
        """Return K(rows, support vectors) @ coefficients, of shape (rows, columns of coefficients)."""


@dataclass(frozen=True)
class SupportLayout:
    """Support vectors and the coefficients of all machines.

    Attributes
    ----------
    support : ndarray of int of shape (support vectors,)
        Their training rows.
    n_support : ndarray of int of shape (classes,)
        How many are of each class.
    dual_coef : ndarray of shape (classes - 1, support vectors) or (machines, support vectors)
    intercept : ndarray of shape (machines,)
    pairwise : bool
        Whether there is a machine for each of several pairs.
    """

    support: Array
    n_support: Array
    dual_coef: Array
    intercept: Array
    pairwise: bool

    @property
    def machines(self) -> list[tuple[int, int | None]]:
        """The positive and the negative class of each machine; None is the rest."""
        return machine_classes(self.n_support.size, self.pairwise)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Go through runs of support vectors, with the machines that the rows of ``dual_coef`` speak of."""
        if not self.pairwise:
            if self.support.size:
                yield slice(0, self.support.size), np.arange(self.intercept.size)
            return
        end = 0
        for label, count in enumerate(self.n_support.tolist()):
            start, end = end, end + count
            if count:
                yield slice(start, end), machines_of(label, self.n_support.size)

    def decisions(self, rows: int, score: Scorer) -> Array:
        """Return f of every machine for so many rows; ``score`` is asked at once, or class by class."""
        if self.pairwise and self.intercept.size <= TOGETHER and self.support.size:
            factors = np.zeros((self.support.size, self.intercept.size))
            for vectors, machines in self.blocks():
                factors[vectors, machines] = self.dual_coef[:, vectors].T
            return score(slice(0, self.support.size), factors) + self.intercept
        result = np.tile(self.intercept, (rows, 1))
        for vectors, machines in self.blocks():
            result[:, machines] += score(vectors, np.ascontiguousarray(self.dual_coef[:, vectors].T))
        return result

    def coefficients(self, machine: int) -> Array:
        """Return y_v a_v of every support vector in one machine; 0 where it is in none of its classes."""
        result = np.zeros(self.support.size)
        for vectors, machines in self.blocks():
            for row in np.flatnonzero(machines == machine):
                result[vectors] = self.dual_coef[row, vectors]
        return result

    def coefficient_lengths(self) -> Array:
        """Return sqrt(sum_v a_v^2) of every machine."""
        squares = np.zeros(self.intercept.size)
        for vectors, machines in self.blocks():
            squares[machines] += np.square(self.dual_coef[:, vectors]).sum(axis=1)
        return np.sqrt(squares)


def machine_classes(n_classes: int, pairwise: bool) -> list[tuple[int, int | None]]:
    """Return the positive and the negative class of each machine; None is the rest.

    >>> machine_classes(3, pairwise=True)
    [(0, 1), (0, 2), (1, 2)]
    """
    if n_classes == 2:
        return [(1, 0)]
    if pairwise:
        return [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]
    return [(label, None) for label in range(n_classes)]


def machines_of(label: int, n_classes: int) -> Array:
    """Return the machines of a class with each other class, in the order of the others.

    >>> machines_of(1, 3)
    array([0, 2])
    """
    first = np.arange(label)  # those before it, which are the first of their pair
    before = first * (2 * n_classes - first - 1) // 2 + label - first - 1
    start = label * (2 * n_classes - label - 1) // 2
    return np.concatenate([before, np.arange(start, start + n_classes - label - 1)])


def arrange(machines: Sequence[Any], labels: Array, n_classes: int, pairwise: bool) -> SupportLayout:
    """Return machines in the layout of scikit-learn.

    Parameters
    ----------
    machines : sequence of Machine
        In the order of :func:`machine_classes`.
    labels : ndarray of int of shape (rows,)
        The class of each training row.
    pairwise : bool
        Whether there is one machine for each pair of more than two classes.
    """
    # Of every machine: its support vectors, y a of each, and the rows of the layout that these belong in.
    rows, values, lines = [], [], []
    sides = machine_classes(n_classes, pairwise)
    for number, machine in enumerate(machines):
        signed = machine.problem.y * machine.solution.alpha
        there = signed.nonzero()[0]
        rows.append(machine.problem.index[there])
        values.append(signed[there])
        positive, negative = sides[number]
        up, down = ((negative or 0) - 1, positive) if pairwise else (number, number)
        lines.append(np.where(values[-1] > 0, up, down))
    own = np.concatenate(rows)
    used = np.zeros(labels.size, dtype=bool)
    used[own] = True
    support = used.nonzero()[0]
    support = support[labels[support].argsort(kind="stable")]
    place = np.empty(labels.size, dtype=np.intp)
    place[support] = np.arange(support.size)
    coefficients = np.zeros((n_classes - 1 if pairwise else len(machines), support.size))
    coefficients[np.concatenate(lines), place[own]] = np.concatenate(values)
    return SupportLayout(
        support=support.astype(np.int32),
        n_support=np.bincount(labels[support], minlength=n_classes).astype(np.int32),
        dual_coef=coefficients,
        intercept=np.array([machine.solution.intercept for machine in machines], dtype=np.float64),
        pairwise=pairwise,
    )
