"""What the support vectors decide for new rows: decisions, votes, and the class that wins.

    f(z) = sum_v dual_coef_v K(z, x_v) + b      for every binary SVM

K is computed in blocks by GEMM over the support vectors and never stored. With the linear kernel the sum over
support vectors is made once, w = sum_v dual_coef_v x_v.

One-vs-one, every SVM votes: for the first class of its pair where its decision is positive, else for the
second. The class with most votes wins, the first of equal ones. As a score for each class,

    votes_c + t(sum of the decisions for c minus those against it),     t(s) = s / (3 (|s| + 1))

orders the classes by votes, and equal ones by decisions, since |t| < 1/3.

*Single precision that is never wrong.* Values of the RBF kernel in float32 are off by about e = 1e-7, to
either side, so that a decision is off by about e sqrt(sum_v dual_coef_v^2). Where no decisions within eight
times that distance can change the winner, which is nearly everywhere, the winner is known; the other rows are
scored again in float64.

Source: Hsu and Lin (2002), A comparison of methods for multiclass support vector machines; the score of a
class is scikit-learn's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.geometry.kernels import Kernel, Linear, Precomputed
from sixfold.solvers.kernel.kernel_rows import KernelRows, densify_if_small, far_away
from sixfold.solvers.kernel.one_vs_one import SupportLayout

Array = NDArray[Any]

MOST_DECISIONS = 1 << 22  # that are held at a time
FEW_PRODUCTS = 1 << 24  # of numbers: below, float32 saves less than it costs to look for doubtful rows
FEW_VECTORS = 64  # tell whether all are far from zero
CERTAIN_ERRORS = 8.0  # of 90,000 decisions on images the one furthest off was so by 0.73 e sqrt(sum a^2)


class SupportVectors:
    """The support vectors of all binary SVMs, with their kernel and coefficients.

    Parameters
    ----------
    layout : SupportLayout
    kernel : Kernel
    vectors : ndarray or CSR array
        The support vectors; not looked at where the kernel is precomputed.
    """

    def __init__(self, layout: SupportLayout, kernel: Kernel, vectors: Any) -> None:
        self.layout, self.kernel = layout, kernel
        self.vectors = vectors if kernel.form is None else densify_if_small(vectors)
        self.n_classes = layout.n_support.size
        self._made: KernelRows | None = None

    @property
    def _rows(self) -> KernelRows:
        if self._made is None:
            self._made = KernelRows(self.vectors, self.kernel)
        return self._made

    def decisions(self, Z: Any, budget: Budget, dtype: Any = np.float64) -> Array:
        """Return f of every SVM, of shape (rows, SVMs), from kernel values of that type."""
        layout, count = self.layout, Z.shape[0]
        Z = Z if self.kernel.form is None else densify_if_small(Z)
        if isinstance(self.kernel, Linear):
            return np.asarray(Z @ self.normals().T + layout.intercept, dtype=np.float64)
        if isinstance(self.kernel, Precomputed):
            return layout.decisions(count, lambda some, factors: Z[:, layout.support[some]] @ factors)
        cross = self._rows.against(Z)
        places = np.arange(layout.support.size)
        return layout.decisions(
            count, lambda some, factors: cross.scores(places[some], factors, dtype, budget)
        )

    def kernel_values(self, row: Any) -> Array:
        """Return K of one row with every support vector."""
        if isinstance(self.kernel, Precomputed):
            return np.asarray(row[0, self.layout.support], dtype=np.float64)
        return self.kernel(row if self.kernel.form is None else densify_if_small(row), self.vectors)[0]

    def normals(self) -> Array:
        """Return w = sum_v dual_coef_v x_v of every SVM, of shape (SVMs, columns), for the linear kernel.

        Dense vectors far from zero are centred first, and sum_v dual_coef_v, which is 0 but for rounding,
        multiplies their mean, which then takes no digits.
        """
        layout, vectors = self.layout, self.vectors
        normals = np.zeros((layout.intercept.size, vectors.shape[1]))
        few = slice(None, None, max(layout.support.size // FEW_VECTORS, 1))
        if layout.support.size and not sp.issparse(vectors) and far_away(vectors[few]):
            mean = vectors.mean(axis=0, dtype=np.float64)
            vectors = vectors - mean
            for some, svms in layout.blocks():
                normals[svms] += np.outer(layout.dual_coef[:, some].sum(axis=1), mean)
        for some, svms in layout.blocks():
            normals[svms] += layout.dual_coef[:, some] @ vectors[some]
        return normals

    # -- who wins ------------------------------------------------------------------------------------------

    def portions(self, count: int) -> list[slice]:
        """Return runs of so many rows whose decisions are held at a time."""
        step = max(MOST_DECISIONS // self.layout.intercept.size, 1)
        return [slice(start, start + step) for start in range(0, count, step)]

    def predict(self, Z: Any, budget: Budget) -> Array:
        """Return the class number of each row, which is that of the decisions in float64."""
        return np.concatenate([self._predict(Z[part], budget) for part in self.portions(Z.shape[0])])

    def _predict(self, Z: Any, budget: Budget) -> Array:
        form = self.kernel.form
        work = Z.shape[0] * self.layout.support.size * Z.shape[1]
        sparse = sp.issparse(Z) or sp.issparse(self.vectors)
        if form is None or form.kind != "rbf" or sparse or work < FEW_PRODUCTS:
            return self.winners(self.decisions(Z, budget))
        decisions = self.decisions(Z, budget, np.float32)
        error = CERTAIN_ERRORS * self._rows.entry_error(np.float32) * self.layout.coefficient_lengths()
        doubtful = np.flatnonzero(~self.certain(decisions, error))
        if doubtful.size:
            decisions[doubtful] = self.decisions(Z[doubtful], budget)
        return self.winners(decisions)

    def winners(self, decisions: Array) -> Array:
        """Return the class number that the decisions of each row stand for."""
        if self.n_classes == 2:
            return (decisions[:, 0] > 0).astype(np.intp)
        votes = count_pair_votes(decisions, self.n_classes) if self.layout.pairwise else decisions
        result: Array = votes.argmax(axis=1)
        return result

    def certain(self, decisions: Array, error: Array) -> Array:
        """Return whether the winner of each row is the same for all decisions that are this near."""
        if self.n_classes == 2:
            sure: Array = np.abs(decisions[:, 0]) > error[0]
            return sure
        if self.layout.pairwise:
            return votes_are_certain(decisions, error, self.n_classes)
        low, high = decisions - error, decisions + error
        winner, rows = decisions.argmax(axis=1), np.arange(decisions.shape[0])
        own = low[rows, winner]
        high[rows, winner] = -np.inf
        ahead: Array = own > high.max(axis=1)
        return ahead

    def runner_up(self, decisions: Array, answer: int) -> tuple[int, Array, float]:
        """Return the class that comes next for one row, and what decides between the answer and it.

        Returns
        -------
        second : int
        coefficients : ndarray of shape (support vectors,)
            Of K(x_v, x), where the answer counts as positive.
        intercept : float
        """
        layout = self.layout
        if self.n_classes == 2:
            second = 1 - answer
        else:
            scores = class_scores(decisions, self.n_classes) if layout.pairwise else decisions
            second = int(np.where(np.arange(self.n_classes) == answer, -np.inf, scores[0]).argmax())
        # The SVM of the two with its sign, or, one against the rest, the difference of theirs.
        if self.n_classes > 2 and not layout.pairwise:
            parts = [(1.0, answer), (-1.0, second)]
        elif (answer, second) in layout.sides:
            parts = [(1.0, layout.sides.index((answer, second)))]
        else:
            parts = [(-1.0, layout.sides.index((second, answer)))]
        coefficients = sum(sign * layout.coefficients(svm) for sign, svm in parts)
        return (
            second,
            np.asarray(coefficients),
            float(sum(sign * layout.intercept[svm] for sign, svm in parts)),
        )


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


def votes_are_certain(decisions: Array, error: Array, n_classes: int) -> Array:
    """Return whether the winner of each row is the same for all decisions that are this near.

    An SVM whose decision may be of either sign may vote for either class: the winner has to be ahead of
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
