"""The Gram matrix of a changing set of rows, in a fixed amount of memory.

    K_ij = K(x_i, x_j)      for the rows i, j that are held

The rows an active-set method works on change little from one round to the next, so what is held is kept:
new rows are appended (their block with the old rows, and with each other), rows no longer wanted stay while
there is room, and are squeezed out when there is not, or when they have become many. The same cache serves
other values of C, since the matrix does not depend on it.

One-vs-one SVMs share the blocks of a class with itself (:class:`ClassBlocks`): each is wanted by all
pairs of that class.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.solvers.kernel.kernel_rows import KernelRows

Array = NDArray[Any]

WORTH_KEEPING = 0.9  # squeeze when a smaller share of the held rows is wanted: SMO goes through all of them
SPARE_ROWS = 1.1  # times the rows there are: room for more. Its pages are touched at once: with 1.2, 9% more
LINE_BYTES = 64  # of the caches: whole ones are written without being read (native/core/non_temporal.hpp)
WORTH_LINES = 1024  # new rows for which that is worth calls of its own: 8,128 after 4,500 in 59 ms, not 79


class GramCache:
    """Kernel values between the wanted ones of some rows.

    Parameters
    ----------
    rows : KernelRows
    index : ndarray of int
        The rows of a problem; the methods speak of positions in it.
    memory : int
        Most bytes for the matrix.
    blocks : ClassBlocks, optional
        Where the classes' own blocks are, if ``index`` is the rows of one class and then those of another.
    pair : tuple of int, optional
        These two classes.
    """

    def __init__(
        self,
        rows: KernelRows,
        index: Array,
        memory: int,
        blocks: ClassBlocks | None = None,
        pair: tuple[int, int] | None = None,
    ) -> None:
        self.rows = rows
        self.index = index
        self.memory = memory
        self.definite: bool | None = None  # whether the whole is, once somebody has found out
        self._shared = (blocks, *pair) if blocks is not None and pair is not None else None
        self._reset(np.dtype(np.float64))

    @property
    def held(self) -> Array:
        """The positions that are held, in the order of the matrix."""
        return self._held

    @property
    def whole(self) -> Array | None:
        """The Gram matrix of all rows in float64, if that is what is held; in the order of ``held``."""
        n = self.index.size
        return self._gram[:n, :n] if self._dtype == np.float64 and self._held.size == n else None

    def capacity(self, dtype: Any) -> int:
        """How many rows fit."""
        return min(self.index.size, self._largest(dtype))

    def hold(self, wanted: Array, dtype: Any, budget: Budget) -> tuple[Array, Array]:
        """Return positions, the wanted ones (no more than fit) and perhaps others, and their Gram matrix.

        The matrix is a view that the next call may change.
        """
        if np.dtype(dtype) != self._dtype:
            self._reset(np.dtype(dtype))
        new = wanted[~self._holds[wanted]]
        stay, size = wanted.size - new.size, self._held.size
        if size and (size + new.size > self.capacity(dtype) or stay < WORTH_KEEPING * size):
            self._squeeze(wanted)
        if new.size:
            self._grow(new, budget)
        size = self._held.size
        return self._held, self._gram[:size, :size]

    def _largest(self, dtype: Any) -> int:
        """Return how many rows memory allows for."""
        return max(int((self.memory / np.dtype(dtype).itemsize) ** 0.5), 2)

    def _reset(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._line = LINE_BYTES // dtype.itemsize  # the numbers of one
        self._room: Array = np.empty(0, dtype=dtype)  # where the matrix is, all that memory allows for
        self._gram: Array = np.empty((0, 0), dtype=dtype)
        self._held = np.zeros(0, dtype=np.int64)
        self._holds = np.zeros(self.index.size, dtype=bool)

    def _squeeze(self, wanted: Array) -> None:
        """Let go of rows that are not wanted: the last of the others take their places."""
        want = np.zeros(self.index.size, dtype=bool)
        want[wanted] = True
        stays = want[self._held]
        kept, size = int(np.count_nonzero(stays)), self._held.size
        holes, movers = np.flatnonzero(~stays[:kept]), kept + np.flatnonzero(stays[kept:])
        core.fill_holes(self._gram[:size, :size], kept=kept, holes=holes, movers=movers)
        held = self._held[:kept].copy()  # callers keep what they were given
        held[holes] = self._held[movers]
        self._held = held
        self._holds[:] = False
        self._holds[self._held] = True

    def _widen(self, size: int) -> None:
        """Make rows long enough for so many, in place: a row only moves to the place of one after it.

        Rows as long as memory allows from the start would lie on pages of their own, and 2,000 of them would
        touch as much memory as 10,000 do.
        """
        if not self._room.size:
            self._room = self._make_room()
        side = size if size == self.index.size else min(self.capacity(self._dtype), int(SPARE_ROWS * size))
        side = self._to_lines(side, size)
        core.widen_rows(self._room, rows=self._held.size, stride=self._gram.shape[0], wider=side)
        self._gram = self._room[: side * side].reshape(side, side)

    def _make_room(self) -> Array:
        """Return room for all that memory allows; pages take none until they are written to."""
        most = self.capacity(self._dtype)
        side = self._to_lines(most, most)
        room = np.empty(side * side + self._line, dtype=self._dtype)
        start = -room.ctypes.data % LINE_BYTES // self._dtype.itemsize
        return room[start : start + side * side]

    def _to_lines(self, side: int, least: int) -> int:
        """Return a side near this one, of whole lines of the cache if memory allows for it."""
        whole = min(-(-side // self._line), self._largest(self._dtype) // self._line) * self._line
        return whole if whole >= least else side

    def _grow(self, new: Array, budget: Budget) -> None:
        """Append rows; where they are many, a few of them first, so that the others begin with a line."""
        size = self._held.size + new.size
        if size > self._gram.shape[0]:
            self._widen(size)
        first = -self._held.size % self._line if new.size >= WORTH_LINES else 0
        if first:
            self._append(new[:first], budget)
        self._append(new[first:], budget)

    def _append(self, new: Array, budget: Budget) -> None:
        old, size = self._held.size, self._held.size + new.size
        corner = self._gram[old:size, old:size]
        if old == 0 and self._shared and new.size == self.index.size:
            self._assemble(corner, new, budget)
        else:
            self.rows.gram(self.index[new], self._dtype, budget, out=corner)
        if old:  # threads share the first rows: those that are held, for 40 new ones 1.5 ms instead of 2.4
            self.rows.block(
                self.index[self._held],
                self.index[new],
                self._dtype,
                budget,
                out=self._gram[:old, old:size],
                mirrored=self._gram[old:size, :old],
            )
        self._held = np.concatenate([self._held, new])
        self._holds[new] = True

    def _assemble(self, out: Array, new: Array, budget: Budget) -> None:
        """Put the whole matrix of a pair together."""
        assert self._shared is not None
        blocks, one, other = self._shared
        split = blocks.classes[one].size
        blocks.fill(one, out[:split, :split], budget)
        blocks.fill(other, out[split:, split:], budget)
        self.rows.block(
            self.index[new[:split]],
            self.index[new[split:]],
            self._dtype,
            budget,
            out=out[:split, split:],
            mirrored=out[split:, :split],
        )


class ClassBlocks:
    """The Gram matrix of each class with itself, computed by whoever asks first.

    Parameters
    ----------
    rows : KernelRows
    classes : sequence of ndarray of int
        The rows of each class.
    memory : int
        Most bytes; blocks that do not fit are computed again each time.
    """

    def __init__(self, rows: KernelRows, classes: Sequence[Array], memory: int) -> None:
        self.rows = rows
        self.classes = classes
        self._left = memory
        self._blocks: dict[tuple[int, np.dtype[Any]], Array] = {}
        self._locks = [threading.Lock() for _ in classes]
        self._account = threading.Lock()  # of what is left for all classes

    def fill(self, number: int, out: Array, budget: Budget) -> None:
        """Write the block of a class with itself."""
        key = (number, out.dtype)
        with self._locks[number]:
            if key not in self._blocks:
                self.rows.gram(self.classes[number], out.dtype, budget, out=out)
                if self._take(out.nbytes):
                    self._blocks[key] = out.copy()
                return
        out[...] = self._blocks[key]

    def _take(self, size: int) -> bool:
        """Set so many bytes aside, if there are as many."""
        with self._account:
            enough = self._left >= size
            if enough:
                self._left -= size
            return enough
