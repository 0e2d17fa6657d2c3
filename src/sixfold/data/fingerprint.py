"""A fingerprint of training data: 64 bits that tell other rows, targets or weights from those of a fit.

    h_i = mix(sum_j m_j fold(x_ij) + sum_k m'_k fold(y_ik) + m'' fold(weight_i)),    fingerprint = sum_i h_i

modulo 2^64, where fold(x) are the bits of x as float64, the upper half added to the lower by exclusive or, m
are odd multipliers and mix is the last step of SplitMix64 (Steele, Lea and Flood 2014). Neither the order of
the rows nor that in memory counts, nor whether numbers are kept as float32, integers or floats. The bits of 0
are 0, so a sparse table has the fingerprint of the dense one. No weights count as 1 for every row. Text
counts by its characters, also beside numbers. Nothing here withstands someone who looks for two tables with
one fingerprint.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.data.checks import collected, in_narwhals

Array = NDArray[Any]

HASHED_ENTRIES = 1 << 15  # at a time: they stay in the cache
HALF, GOLDEN = np.uint64(32), np.uint64(0x9E3779B97F4A7C15)
# The shifts and factors of SplitMix64, as NumPy's own numbers: making them takes as long as a small sum.
S1, F1 = np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)
S2, F2 = np.uint64(27), np.uint64(0x94D049BB133111EB)
S3 = np.uint64(31)
Y_COLUMN, WEIGHT_COLUMN = 1 << 40, 1 << 50  # where the multipliers of y and of the weights are counted from


def fingerprint(X: Any, y: Any, sample_weight: Any = None) -> str | None:
    """Return 16 hexadecimal digits; None for rows that are neither numbers nor text.

    >>> fingerprint([[1.0, 2.0], [3.0, 4.0]], [0, 1]) == fingerprint([[3, 4], [1, 2]], [1, 0])
    True
    """
    try:
        rows = _row_sums(X, 0) + (0 if y is None else _row_sums(y, Y_COLUMN))
        rows += (
            UNIT_WEIGHT if sample_weight is None else _row_sums(np.atleast_1d(sample_weight), WEIGHT_COLUMN)
        )
    except (TypeError, ValueError, IndexError):
        return None
    return f"{int(_mix(rows).sum(dtype=np.uint64)):016x}"


def table_size(X: Any) -> tuple[int, int, int]:
    """Return rows, columns and about as many bytes as the values take."""
    X = collected(X)
    X = X if hasattr(X, "shape") or not hasattr(X, "__array__") else np.asarray(X)
    shape = getattr(X, "shape", None)
    if shape is None:
        first = X[0] if len(X) else ""
        shape = len(X), len(first) if hasattr(first, "__len__") and not isinstance(first, str) else 1
    rows, columns = int(shape[0]), int(shape[1]) if len(shape) > 1 else 1
    stored = X.nnz if sp.issparse(X) else rows * columns
    return rows, columns, stored * getattr(getattr(X, "dtype", None), "itemsize", 8)


def _row_sums(values: Any, first: int) -> Array:
    """Return sum_j m_j fold(x_ij) for each row, the columns counted from ``first``."""
    if not isinstance(values, np.ndarray):
        if sp.issparse(values):
            return _sparse_sums(values.tocsr(), first)
        values = in_narwhals(collected(values))
        if hasattr(values, "iter_columns"):
            return _by_column([column.to_numpy() for column in values.iter_columns()], first, _row_sums)
        values = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    values = values[:, None] if values.ndim == 1 else values
    count, columns = values.shape
    kind = values.dtype.kind
    if kind == "O":
        return _by_column(list(values.T), first, _object_sums)
    if kind in "US":
        return _by_column(list(values.T), first, _text_sums)
    if kind not in "fiub":
        raise TypeError(f"{values.dtype} is neither numbers nor text")
    multipliers, step = _multipliers(first, columns), max(HASHED_ENTRIES // max(columns, 1), 1)
    parts = (values[start : start + step] for start in range(0, max(count, 1), step))
    sums = [np.einsum("ij,j->i", _fold(part), multipliers) for part in parts]
    return sums[0] if len(sums) == 1 else np.concatenate(sums)


def _by_column(columns: list[Array], first: int, row_sums: Callable[[Array, int], Array]) -> Array:
    parts = [row_sums(column, first + number) for number, column in enumerate(columns)]
    return np.asarray(np.sum(parts, axis=0, dtype=np.uint64))


def _object_sums(column: Array, first: int) -> Array:
    """Return the sums of texts and of numbers, each value as what it is; None is NaN."""
    text = np.fromiter((isinstance(value, str) for value in column), dtype=bool, count=column.size)
    sums = np.empty(column.size, dtype=np.uint64)
    sums[text] = _text_sums(column[text], first)
    sums[~text] = _row_sums(column[~text].astype(np.float64), first)
    return sums


def _text_sums(column: Array, first: int) -> Array:
    """Return the sums of the characters of texts, with multipliers of the column's own."""
    texts = np.ascontiguousarray(column.astype(str))
    characters = texts.view(np.uint32).reshape(texts.size, texts.itemsize // 4).astype(np.uint64)
    return np.asarray(characters @ _multipliers((first + 1) << 20, characters.shape[1]))


def _sparse_sums(values: Any, first: int) -> Array:
    if not values.has_canonical_format:
        values = values.copy()
        values.sum_duplicates()
    folded = sp.csr_array((_fold(values.data), values.indices, values.indptr), shape=values.shape)
    return np.asarray(folded @ _multipliers(first, values.shape[1]))


def _fold(values: Array) -> Array:
    numbers = np.add(values, 0.0, dtype=np.float64)  # -0 becomes 0
    missing = np.isnan(numbers)
    if missing.any():  # all of them the same
        numbers[missing] = np.nan
    bits = numbers.view(np.uint64)
    return bits ^ (bits >> HALF)


@lru_cache(8)
def _multipliers(first: int, count: int) -> Array:
    numbers = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(first % 2**64)
    return _mix(numbers * GOLDEN) | np.uint64(1)


def _mix(z: Array) -> Array:
    z = (z ^ (z >> S1)) * F1
    z = (z ^ (z >> S2)) * F2
    return z ^ (z >> S3)


UNIT_WEIGHT = _row_sums(np.ones(1), WEIGHT_COLUMN)
