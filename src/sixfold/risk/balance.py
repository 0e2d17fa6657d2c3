"""Bringing a dual point into balance: sum_i q_i u_i z_i = 0, z the columns whose slopes are prescribed.

Let e = sum_i G_i z_i, G the computed q u, and a_i >= 0 how far u_i may move. With H = sum_i q_i a_i z_i z_i'
= R'R, moving every u_i by a_i z_i.beta, H beta = -e, makes it 0 exactly, and

    |z_i.beta|  <=  tau = max_i |R^-T z_i| |R^-T e|.

For the squared loss a_i = 1, for others a_i <= |u_i|, for classes a_i = diag(p) - p p'. What such a move
costs is said in :mod:`sixfold.risk.candidate`. Before it, BALANCE brings u to sum_i q_i u_i = 0, but for
rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from sixfold.data.blocks import MemoryBlocks
from sixfold.risk.point import Point
from sixfold.risk.rank import column_space
from sixfold.risk.rounding import U

Array = NDArray[Any]

PIECE = 256  # rows that are multiplied at a time
FARTHEST = 3.0  # that the logarithm of a probability moves at once
DIGITS = 1e-9  # of the products of columns, below which their factor comes from the rows themselves
LOST = 64.0 * U  # times the order: what a factor of the rows may be off, columns of length 1
CERTAIN = 1e-14  # probabilities below it are 0 where they would have to balance those of other rows
FAR_MOVE = 2.0  # of the room for a move by the slope that is left: from there on it is measured again
APART = 1e-3  # of columns of length 1, what others leave of them
STILL = 1e-11  # of a direction of length 1: far less than probabilities above CERTAIN move


class Balance:
    """The system H beta = -e by which a dual point is brought into balance; see the formulas above.

    z = (1, x_kept - m), without the 1 where there is no intercept; the kept columns are independent in the
    ``known`` rows. Rows that are certain of their class have no slopes, and those that are certain of another
    have slopes that do not move. Where no row has slopes of some classes and of others, either have equations
    of their own, and slopes that sum to 0: those of one class follow.
    """

    def __init__(self, point: Point, u: Array, y: Array, kept: Array, known: Array) -> None:
        self.point, self.kept, self.y, self.known = point, kept, y, known
        self.ones = int(point.problem.fit_intercept)
        self.width = kept.size + self.ones
        self.share, self.p = self._room(u)
        self.steep = (u != 0) & (point.q > 0)[:, None]
        self.some = self.share > 0
        if self.p is not None:
            self.some &= (self.p > 0).sum(axis=1) > 1
        self.free = np.arange(1) if self.p is None else self._free_classes(self.p)
        self.dependent = np.arange(0)
        self.used = self._used()
        self.scale, self.least, self.trust = np.ones(self.used.size), 1.0, 1.0
        if self.used.size:
            self._factor()

    def _room(self, u: Array) -> tuple[Array, Array | None]:
        """Return sqrt(q a); for classes sqrt(q) and p."""
        if self.point.classes:
            return np.sqrt(self.point.q), self._probabilities(u)
        return np.sqrt(self.point.q * self._most(u)[:, 0]), None

    def _probabilities(self, u: Array) -> Array:
        own = self.y.astype(np.intp)
        p = np.maximum(u, 0.0)
        rows = np.arange(p.shape[0])
        p[rows, own] = 0.0
        p[rows, own] = np.maximum(1.0 - p.sum(axis=1), 0.0)
        return p

    def _free_classes(self, p: Array) -> Array:
        """Return all classes but one of each group that rows with slopes link; the most frequent follows."""
        linked = self.steep.T.astype(float) @ self.steep
        # What a penalty asks of the slopes sums to 0 over all classes only.
        groups = np.zeros(p.shape[1], dtype=np.intp)
        if not self.point.problem.penalised:
            groups = connected_components(linked, directed=False)[1]
        order = np.argsort(-(np.square(self.share) @ (p * (1.0 - p))), kind="stable")
        return np.setdiff1d(order, order[np.unique(groups[order], return_index=True)[1]])

    def _used(self) -> Array:
        """Return the equations, numbered score by score, of columns that count in the rows with a slope.

        The others follow, but for last bits where they are among ``dependent``.
        """
        point, used = self.point, np.ones((self.free.size, self.width), dtype=bool)
        if point.problem.penalised or point.problem.loss.labels == "real":
            return np.flatnonzero(used)
        known = np.count_nonzero(self.known)
        for place, k in enumerate(self.free):
            rows = np.flatnonzero(self.steep[:, k])
            if rows.size == known or not rows.size:
                continue
            whole = point.blocks.whole()
            weight = None if whole.weight is None else whole.weight[rows]
            mine = MemoryBlocks(whole.X[rows][:, self.kept], whole.y[rows], weight)
            space = column_space(mine, bool(self.ones))
            used[place, self.ones + space.dependent] = False
            self.dependent = np.union1d(self.dependent, self.kept[space.dependent[~space.exact]])
        return np.flatnonzero(used)

    def _most(self, u: Array) -> Array:
        """Return a."""
        name = self.point.problem.loss.name
        if name in ("squared", "absolute"):
            return np.ones_like(u)
        size = np.abs(u)
        return size * np.maximum(1.0 - size, 0.0) if name == "logistic" else size

    def pieces(self) -> Iterator[tuple[Array, Array]]:
        """Go through z of the rows that move, piece by piece."""
        for block in self.point.blocks:
            for piece, Z in self.point.rows.pieces(block):
                some = np.flatnonzero(self.some[piece])
                rows, part = some + piece.start, Z if some.size == Z.shape[0] else Z[some]
                part = part.toarray() if self.point.blocks.sparse else part
                part = part if self.kept.size == part.shape[1] else part[:, self.kept]
                if not self.ones and self.point.rows.moved:  # nothing balances, so that the centre counts
                    part = part + self.point.rows.centre[self.kept]
                yield rows, np.column_stack([np.ones(part.shape[0]), part]) if self.ones else part

    def _weighted(self, rows: Array, z: Array) -> Array:
        """Return the rows whose squares sum to H: of classes, sqrt(diag(p)) (1 - p') for each in doubt."""
        if self.p is None:
            return self.share[rows, None] * z[:, self.used]
        p = self.p[rows]
        row, own = np.nonzero(p > 0)
        root = (np.arange(p.shape[1]) == own[:, None]) - p[row]
        root *= (self.share[rows[row]] * np.sqrt(p[row, own]))[:, None]
        each = root[:, self.free, None] * z[row, None, :]
        return each.reshape(row.size, self.free.size * self.width)[:, self.used]

    def _products(self) -> Array:
        """Return H."""
        H = np.zeros((self.free.size, self.width, self.free.size, self.width))
        for rows, z in self.pieces():
            if self.p is None:
                part = self.share[rows, None] * z
                H[0, :, 0] += part.T @ part
                continue
            p, q = self.p[rows][:, self.free], np.square(self.share[rows])
            for k in range(self.free.size):
                mine = np.flatnonzero(p[:, k] > 0)
                part, weight = z[mine], (q[mine] * p[mine, k])[:, None]
                for other in range(k + 1):
                    H[k, :, other] += part.T @ (weight * ((k == other) - p[mine, other, None]) * part)
        for k in range(self.free.size):
            H[:k, :, k] = H[k, :, :k].transpose(1, 2, 0)
        order = self.free.size * self.width
        return H.reshape(order, order)[np.ix_(self.used, self.used)]

    def _factor(self) -> None:
        H, order = self._products(), self.used.size
        self.scale = np.sqrt(H.diagonal())
        self.scale[self.scale == 0] = 1.0
        H /= np.outer(self.scale, self.scale)
        values, vectors = np.linalg.eigh(H)
        lost = LOST * order
        if values[0] > DIGITS:
            roots = np.sqrt(values)
            lost = (self.point.rows.depth + 8) * order * U / float(roots[0])
        else:
            # Once more, from the rows in the coordinates that the products suggest: these cost next to no
            # digits any more, and a product of matrices is several times as fast as QR.
            length = np.sqrt(np.maximum(values, order * U))
            products = np.zeros((order, order))
            for rows, z in self.pieces():
                for part in np.array_split(self._weighted(rows, z), 1 + rows.size // PIECE):
                    turned = (part / self.scale) @ (vectors / length)
                    products += turned.T @ turned
            values, again = np.linalg.eigh(products)
            R = np.sqrt(np.maximum(values, 0.0))[:, None] * (again.T @ (vectors * length).T)
            try:
                _, roots, vectors = np.linalg.svd(R)
            except np.linalg.LinAlgError:  # divide and conquer may fail where values differ by many decades
                _, roots, vectors = scipy.linalg.svd(R, lapack_driver="gesvd")
            vectors = vectors.T
        # Where classes are certain of some rows, nothing moves in some directions, and nothing is left there.
        moves = roots > (STILL if self.p is not None else lost)
        self.null = vectors[:, ~moves]
        self.inverse = vectors[:, moves] / roots[moves]
        self.least = 0.0
        if moves.all() or (self.p is not None and self._apart(self.p)):
            self.least = float(roots[moves].min(initial=1.0))
        # These are the roots of a table that is off by this much.
        self.trust = 1.0 - lost / self.least if self.least > 0 else 0.0

    def _apart(self, p: Array) -> bool:
        """Return whether columns are far from depending on each other: only classes can stand still then."""
        total = np.zeros((self.free.size, self.width, self.width))
        for rows, z in self.pieces():
            for place, k in enumerate(self.free):
                part = (self.share[rows] * (p[rows, k] > 0))[:, None] * z
                total[place] += part.T @ part
        used = np.zeros((self.free.size, self.width), dtype=bool)
        used.flat[self.used] = True
        for mine, products in zip(used, total, strict=True):
            length = np.sqrt(products.diagonal())[mine]
            if not length.any():  # nothing is in doubt
                continue
            if not length.all():
                return False
            scaled = products[np.ix_(mine, mine)] / np.outer(length, length)
            if np.linalg.eigvalsh(scaled)[0] <= APART**2:
                return False
        return True

    def _equations(self, slope: Array, total: Array) -> Array:
        """Return e / scale."""
        e = np.vstack([total, slope[self.kept]]) if self.ones else slope[self.kept]
        return e[:, self.free].T.ravel()[self.used] / self.scale

    def moved(self, u: Array, slope: Array, total: Array) -> Array:
        """Return u after the move that would balance it."""
        if not self.scale.size:
            return u
        e = self._equations(slope, total)
        beta: Array = np.zeros(self.free.size * self.width)
        beta[self.used] = -(self.inverse @ (self.inverse.T @ e)) / self.scale
        beta = beta.reshape(self.free.size, self.width).T
        moves = np.zeros_like(u)
        for rows, z in self.pieces():
            moves[np.ix_(rows, self.free)] = z @ beta
        if self.p is None:
            return u + self._most(u) * moves
        p = self._probabilities(u)
        # As logarithms move, none becomes negative, and where they end does not depend on the way.
        p *= np.exp(np.clip(moves, -FARTHEST, FARTHEST))
        p /= p.sum(axis=1, keepdims=True)
        p[p < CERTAIN] = 0.0
        return whole(p, (np.arange(p.shape[0]), self.y.astype(np.intp)))

    def cost(
        self, u: Array, slope: Array, error: Array, total: Array, total_error: Array
    ) -> tuple[float, float]:
        """Return tau, by which every slope may move to be in balance exactly, and |R^-T e|."""
        e, off = self._equations(slope, total), self._equations(error, total_error)
        if not e.any() and not off.any():
            return 0.0, 0.0
        if not self.trust > 0:
            return math.inf, math.inf
        length = float(
            np.linalg.norm(self.inverse.T @ e) * (1.0 + LOST / self.least) + np.linalg.norm(off) / self.least
        )
        length += float(np.linalg.norm(self.null.T @ e)) / STILL
        length /= self.trust
        if self.point.problem.loss.name == "squared":
            return length, length
        largest = 0.0
        ratio = self._ratio(u)
        inverse = np.zeros((self.free.size * self.width, self.inverse.shape[1]))
        inverse[self.used] = self.inverse / self.scale[:, None]
        for rows, z in self.pieces():
            for k in range(self.free.size):
                part = z @ inverse[k * self.width : (k + 1) * self.width]
                sizes = np.sqrt(np.einsum("ij,ij->i", part, part)) * ratio[rows]
                largest = max(largest, float(sizes.max(initial=0.0)))
        return largest * length * (1.0 + 1e-6) / self.trust, length

    def _ratio(self, u: Array) -> Array:
        """Return how large a move is of the slope it moves, for a beta of 1; without slope none moves."""
        if self.p is not None:
            return 2.0 * (self.share > 0)
        if self.point.problem.loss.name == "absolute":
            return np.ones(u.shape[0])
        size = np.abs(u[:, 0])
        room = np.square(self.share) / np.where(self.point.q > 0, self.point.q, 1.0)
        return np.divide(room, size, out=np.where(room > 0, np.inf, 0.0), where=size > 0)

    def renewed(self, u: Array) -> Balance:
        """Return the system at u where that was moved far from where the room was measured."""
        if self.p is None and self._ratio(u).max(initial=0.0) > FAR_MOVE:
            return Balance(self.point, u, self.y, self.kept, self.known)
        return self


def _remove_mean(u: Array, y: Array, q: Array) -> Array:
    return u - q @ u


def _even_sides(u: Array, y: Array, q: Array) -> Array:
    """Scale the positive or the negative entries down, so that each stays between 0 and itself."""
    up, down = np.maximum(u, 0.0), np.maximum(-u, 0.0)
    sums = q @ up, q @ down
    least = np.minimum(*sums)
    share_up, share_down = (np.divide(least, x, out=np.zeros_like(x), where=x > 0) for x in sums)
    return up * share_up - down * share_down


def _move_probability(u: Array, y: Array, q: Array) -> Array:
    """Take p = u + onehot(y) from the classes that have too much to those that have too little."""
    own = np.arange(u.shape[0]), np.asarray(y, dtype=np.intp)
    p = u.copy()
    p[own] += 1.0
    excess = q @ u
    surplus, missing = np.maximum(excess, 0.0), np.maximum(-excess, 0.0)
    if missing.sum() <= 0:
        return u
    taken = p * (surplus / np.where(surplus > 0, q @ p, 1.0))
    u = u - taken + taken.sum(axis=1, keepdims=True) * (missing / missing.sum())
    return whole(u, own)


def whole(u: Array, own: tuple[Array, Array]) -> Array:
    """Return slopes of classes that sum to 0, to the digits of the smallest of them."""
    u[own] = 0.0
    u[own] = -u.sum(axis=1)
    return u


def exactly_whole(mass: Array, y: Array) -> Array:
    """Return the masses of classes rounded to where those of every row sum to 0 without rounding."""
    own = np.arange(mass.shape[0]), np.asarray(y, dtype=np.intp)
    largest = np.abs(mass).max(axis=1, keepdims=True)
    bits = 51 - mass.shape[1].bit_length()
    unit = np.exp2(np.frexp(largest)[1].astype(float) - bits)
    return whole(np.rint(mass / unit), own) * unit


BALANCE: dict[str, Callable[[Array, Array, Array], Array]] = {
    "real": _remove_mean,
    "sign": _even_sides,
    "class": _move_probability,
}
