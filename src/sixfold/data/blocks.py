"""Row blocks: what every solver reads, wherever the rows are kept.

A solver never touches a whole table. It asks for

    blocks.map(f)             f(block) for every block, in row order, one at a time
    blocks.reduce(f, join)    join(...join(f(block_1), f(block_2))..., f(block_k))

so the same solver serves an array in memory, a file larger than memory and a cluster: each is a
subclass of :class:`Blocks` that says how to go through its blocks. In memory a block is as large
as it may be, since the native loops share the rows of a block between threads by themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from mmap import PAGESIZE, mmap
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[Any]
Result = TypeVar("Result")

# A pass over this much takes about 20 ms, so Ctrl-C and time limits are honoured promptly between
# blocks.
BLOCK_BYTES = 1 << 28
FEW_ROWS = 64  # that are picked from a mapped table before their pages are let go of, or more
FEW_BYTES = 1 << 26  # where the table has no more between them
MADV_DONTNEED = getattr(import_module("mmap"), "MADV_DONTNEED", 4)  # not known to every system


@dataclass(frozen=True)
class Block:
    """Some consecutive rows.

    Attributes
    ----------
    X : ndarray or CSR array of shape (rows, columns)
    y : ndarray of shape (rows, targets)
    weight : ndarray of shape (rows,), or None where every row counts 1
    start : int
        The number of the first row.
    """

    X: Any
    y: Array
    weight: Array | None
    start: int

    @property
    def rows(self) -> slice:
        """Where these rows are among all rows."""
        return slice(self.start, self.start + self.y.shape[0])

    @property
    def counts(self) -> NDArray[np.bool_]:
        """Which rows have a weight above 0."""
        return np.ones(self.y.shape[0], dtype=bool) if self.weight is None else np.asarray(self.weight) > 0

    @property
    def float64_weight(self) -> Array | None:
        """The weights as native loops read them."""
        return None if self.weight is None else np.ascontiguousarray(self.weight, dtype=np.float64)


class Blocks(ABC):
    """Rows of a training table, as blocks.

    Attributes
    ----------
    n_rows, n_columns, n_targets : int
    weight_sum : float
        The sum of the weights; the number of rows without weights.
    dtype : numpy dtype
    sparse : bool
        Whether ``Block.X`` is a CSR array.
    mean : ndarray of shape (columns,) or None
        The weighted mean of the columns, once a solver has found it from all rows.
    streamed : bool
        Whether the rows stay where they are: there is nothing but ``reduce`` and ``fold``, whose functions
        have to be picklable.
    watch : callable or None
        Called now and then while a pass runs elsewhere; what it raises ends the pass.
    """

    n_rows: int
    n_columns: int
    n_targets: int
    weight_sum: float
    dtype: np.dtype[Any]
    sparse: bool
    mean: Array | None = None
    streamed: ClassVar[bool] = False
    watch: Callable[[], None] | None = None

    @abstractmethod
    def __iter__(self) -> Iterator[Block]:
        """Go through the blocks in row order."""

    def map(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """Return what the function makes of each block, in row order."""
        return (function(block) for block in self)

    def reduce(self, function: Callable[[Block], Result], join: Callable[[Result, Result], Result]) -> Result:
        """Return what the function makes of each block, joined in row order."""
        return reduce(join, self.map(function))

    def fold(self, function: Callable[[Block, Result], Result], state: Result) -> Result:
        """Return what the function makes of the state, block after block in row order."""
        for block in self:
            state = function(block, state)
        return state

    def whole(self) -> Block:
        """Return all rows as one block, for solvers that need them again and again in any order."""
        parts = list(self)
        if len(parts) == 1:
            return parts[0]
        tables = [part.X for part in parts]
        X = sp.vstack(tables, format="csr") if self.sparse else np.concatenate(tables)
        weights = [part.weight for part in parts if part.weight is not None]
        weight = np.concatenate(weights) if weights else None
        return Block(X, np.concatenate([part.y for part in parts]), weight, 0)

    def rounded(self, values: Array) -> Array:
        """Return values as the type of the data holds them, in float64: what is certified is what is kept."""
        return values.astype(self.dtype).astype(np.float64)


class MemoryBlocks(Blocks):
    """Rows that are in memory: views, never copies.

    >>> blocks = MemoryBlocks(np.arange(6.0).reshape(3, 2), np.ones((3, 1)))
    >>> blocks.reduce(lambda block: block.X.sum(), lambda a, b: a + b)
    np.float64(15.0)
    """

    def __init__(
        self, X: Any, y: Array, weight: Array | None = None, rows_per_block: int | None = None
    ) -> None:
        self.X, self.y, self.weight = X, y, weight
        self.n_rows, self.n_columns = X.shape
        self.n_targets = y.shape[1]
        self.weight_sum = float(self.n_rows if weight is None else weight.sum(dtype=np.float64))
        self.dtype = X.dtype
        self.sparse = sp.issparse(X)
        held = X.data.nbytes + X.indices.nbytes if self.sparse else X.nbytes
        row_bytes = held / max(self.n_rows, 1)
        self.rows_per_block = rows_per_block or max(int(BLOCK_BYTES / max(row_bytes, 1)), 1)
        self._mapping = None if self.sparse else mapping_of(X)

    def whole(self) -> Block:
        """Return all rows as one block."""
        return Block(self.X, self.y, self.weight, 0)

    def __iter__(self) -> Iterator[Block]:
        """Go through the blocks in row order."""
        if self.rows_per_block >= self.n_rows:
            yield self.whole()
            return
        for start in range(0, self.n_rows, self.rows_per_block):
            rows = slice(start, start + self.rows_per_block)
            weight = None if self.weight is None else self.weight[rows]
            X = _rows_of_csr(self.X, rows) if self.sparse else self.X[rows]
            yield Block(X, self.y[rows], weight, start)
            if self._mapping is not None:
                let_go(self._mapping, self.X, rows)


def mapping_of(X: Array) -> mmap | None:
    """Return the map of a file that all rows of an array lie in, as those of a scan do; None for others."""
    base: Any = X
    while isinstance(base, np.ndarray):
        base = base.base
    base = base.obj if isinstance(base, memoryview) else base  # as NumPy keeps what it was made from
    return base if isinstance(base, mmap) and X.flags.c_contiguous else None


def rows_of(X: Any, numbers: Array) -> Any:
    """Return ``X[numbers]``, ascending numbers; rows that are mapped from a file are read a few at a time.

    Where pages are large, each of some thousand rows would map two megabytes: all of the table at once.
    """
    mapping = None if sp.issparse(X) else mapping_of(X)
    if mapping is None:
        return X[numbers]
    found = np.empty((numbers.size, X.shape[1]), dtype=X.dtype)
    apart = X.strides[0] * (int(numbers[-1] - numbers[0]) // numbers.size + 1) if numbers.size else 1
    step = max(FEW_ROWS, FEW_BYTES // apart)
    for first in range(0, numbers.size, step):
        some = numbers[first : first + step]
        found[first : first + step] = X[some]
        let_go(mapping, X, slice(int(some[0]), int(some[-1]) + 1))
    return found


def let_go(mapping: mmap, X: Array, rows: slice) -> None:
    """Let go of the pages of some rows: the process need not hold them, and the file keeps them."""
    first, row_bytes = X.ctypes.data - np.frombuffer(mapping, dtype=np.uint8).ctypes.data, X.strides[0]
    begin = (first + rows.start * row_bytes) // PAGESIZE * PAGESIZE
    end = first + min(rows.stop, X.shape[0]) * row_bytes
    if hasattr(mapping, "madvise") and end > begin:
        mapping.madvise(MADV_DONTNEED, begin, end - begin)


class EveryNth(Blocks):
    """Every so many-th row of a table: one block a block.

    They are copied, so that they lie next to each other, unless few passes do not make up for the memory.
    """

    def __init__(self, blocks: Blocks, every: int, copied: bool = True) -> None:
        self.parts: list[Block] = []
        start = 0
        for block in blocks:
            rows = slice(None, None, every)
            weight = None if block.weight is None else block.weight[rows]
            X = block.X[rows].copy() if copied else block.X[rows]
            self.parts.append(Block(X, block.y[rows], weight, start))
            start += self.parts[-1].y.shape[0]
        self.n_rows, self.n_columns, self.n_targets = start, blocks.n_columns, blocks.n_targets
        self.weight_sum = float(
            sum(part.y.shape[0] if part.weight is None else part.weight.sum() for part in self.parts)
        )
        self.dtype, self.sparse = blocks.dtype, blocks.sparse

    def __iter__(self) -> Iterator[Block]:
        """Go through the blocks in row order."""
        return iter(self.parts)


def squared_entries(X: Any) -> Any:
    """Return X with every entry squared; one of a CSR table may be the sum of several that are stored."""
    if isinstance(X, np.ndarray):
        return np.square(X)
    if X.format != "csr" or not X.has_canonical_format:
        return X.multiply(X)
    # The places stay as they are, which SciPy would find out at ten times the cost.
    return sp.csr_array((np.square(X.data), X.indices, X.indptr), shape=X.shape)


def _rows_of_csr(X: Any, rows: slice) -> Any:
    """Return X[rows] on the memory of X, which SciPy's own slicing copies."""
    ends = X.indptr[rows.start : rows.stop + 1]
    part = slice(ends[0], ends[-1])
    # The constructor would copy what is less than half of the memory it points into.
    block = type(X)((ends.size - 1, X.shape[1]), dtype=X.dtype)
    block.data, block.indices, block.indptr = X.data[part], X.indices[part], ends - ends[0]
    return block
