"""Decisions for new rows: f(z) = sum_v dual_coef_v K(z, x_v) + b for every machine, and who wins by them.

K is computed in blocks by GEMM over the support vectors and never stored. With the linear
kernel the sum over support vectors is made once, w = sum_v dual_coef_v x_v.

*Single precision that is never wrong.* Values of the RBF kernel in float32 are off by about e = 1e-7, to
either side, so that a decision is off by about e sqrt(sum_v dual_coef_v^2). Where no decisions within eight
times that distance can change the winner, which is nearly everywhere, the winner is known; the other rows are
scored again in float64.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.geometry.kernels import Kernel, Linear, Precomputed
from sixfold.learners.svm.pair_votes import count_pair_votes, settled
from sixfold.learners.svm.support_layout import SupportLayout
from sixfold.solvers.kernel.kernel_rows import KernelRows, far_away

Array = NDArray[Any]

SMALL = 1 << 22  # numbers: a sparse table that is no larger is faster dense, and gives the very same model
HELD = 1 << 22  # decisions
FEW = 1 << 24  # products of numbers: below, float32 saves less than it costs to look for doubtful rows
FEW_VECTORS = 64  # tell whether all are far from zero
CERTAIN = 8.0  # of 90,000 decisions on images the one furthest off was so by 0.73 errors times sqrt(sum a^2)


def as_loops_read(X: Any) -> Any:
    """Return a sparse table that is small as a dense one, every other as it is."""
    return X.toarray() if sp.issparse(X) and X.shape[0] * X.shape[1] <= SMALL else X


class SupportScores:
    """The decisions of machines for new rows.

    Parameters
    ----------
    layout : SupportLayout
    kernel : Kernel
    vectors : ndarray or CSR array
        The support vectors; not looked at where the kernel is precomputed.
    """

    def __init__(self, layout: SupportLayout, kernel: Kernel, vectors: Any) -> None:
        self.layout, self.kernel = layout, kernel
        self.vectors = vectors if kernel.form is None else as_loops_read(vectors)
        self._made: KernelRows | None = None

    def decisions(self, Z: Any, budget: Budget, dtype: Any = np.float64) -> Array:
        """Return f of every machine, of shape (rows, machines), from kernel values of that type."""
        layout, count = self.layout, Z.shape[0]
        Z = Z if self.kernel.form is None else as_loops_read(Z)
        if isinstance(self.kernel, Linear):
            products = Z @ plane_normals(layout, self.vectors).T
            return np.asarray(products + layout.intercept, dtype=np.float64)
        if isinstance(self.kernel, Precomputed):
            return layout.decisions(count, lambda some, factors: Z[:, layout.support[some]] @ factors)
        cross = self._rows().against(Z)
        places = np.arange(layout.support.size)
        return layout.decisions(
            count, lambda some, factors: cross.scores(places[some], factors, dtype, budget)
        )

    def _rows(self) -> KernelRows:
        if self._made is None:
            self._made = KernelRows(self.vectors, self.kernel)
        return self._made

    def portions(self, count: int) -> list[slice]:
        """Return runs of so many rows whose decisions are held at a time."""
        step = max(HELD // self.layout.intercept.size, 1)
        return [slice(start, start + step) for start in range(0, count, step)]

    def winners(self, Z: Any, budget: Budget) -> Array:
        """Return the class number of each row, which is that of the decisions in float64."""
        return np.concatenate([self._winners(Z[part], budget) for part in self.portions(Z.shape[0])])

    def _winners(self, Z: Any, budget: Budget) -> Array:
        n_classes = self.layout.n_support.size
        form = self.kernel.form
        work = Z.shape[0] * self.layout.support.size * Z.shape[1]
        if form is None or form.kind != "rbf" or sp.issparse(Z) or sp.issparse(self.vectors) or work < FEW:
            return winning(self.decisions(Z, budget), n_classes, self.layout.pairwise)
        decisions = self.decisions(Z, budget, np.float32)
        error = CERTAIN * self._rows().entry_error(np.float32) * self.layout.coefficient_lengths()
        doubtful = np.flatnonzero(~_known(decisions, error, n_classes, self.layout.pairwise))
        if doubtful.size:
            decisions[doubtful] = self.decisions(Z[doubtful], budget)
        return winning(decisions, n_classes, self.layout.pairwise)


def plane_normals(layout: SupportLayout, vectors: Any) -> Array:
    """Return w = sum_v dual_coef_v x_v of every machine, of shape (machines, columns).

    Dense vectors far from zero are centred first, and sum_v dual_coef_v, which is 0 but for rounding,
    multiplies their mean, which then takes no digits.
    """
    normals = np.zeros((layout.intercept.size, vectors.shape[1]))
    few = slice(None, None, max(layout.support.size // FEW_VECTORS, 1))
    if layout.support.size and not sp.issparse(vectors) and far_away(vectors[few]):
        mean = vectors.mean(axis=0, dtype=np.float64)
        vectors = vectors - mean
        for some, machines in layout.blocks():
            normals[machines] += np.outer(layout.dual_coef[:, some].sum(axis=1), mean)
    for some, machines in layout.blocks():
        normals[machines] += layout.dual_coef[:, some] @ vectors[some]
    return normals


def from_origin(layout: SupportLayout, vectors: Any, origin: Array) -> SupportLayout:
    """Return machines of the linear kernel for rows as they are, from those for rows minus an origin.

    w.(x - origin) + b = w.x + (b - w.origin), with the w that decisions are made of.
    """
    normals = plane_normals(layout, as_loops_read(vectors))
    return replace(layout, intercept=layout.intercept - normals @ origin)


def winning(decisions: Array, n_classes: int, pairwise: bool) -> Array:
    """Return the class number that the decisions of each row stand for."""
    if n_classes == 2:
        return (decisions[:, 0] > 0).astype(np.intp)
    votes = count_pair_votes(decisions, n_classes) if pairwise else decisions
    result: Array = votes.argmax(axis=1)
    return result


def _known(decisions: Array, error: Array, n_classes: int, pairwise: bool) -> Array:
    """Return whether the winner of each row is the same for all decisions that are this near."""
    if n_classes == 2:
        sure: Array = np.abs(decisions[:, 0]) > error[0]
        return sure
    if pairwise:
        return settled(decisions, error, n_classes)
    low, high = decisions - error, decisions + error
    winner, rows = decisions.argmax(axis=1), np.arange(decisions.shape[0])
    own = low[rows, winner]
    high[rows, winner] = -np.inf
    ahead: Array = own > high.max(axis=1)
    return ahead
