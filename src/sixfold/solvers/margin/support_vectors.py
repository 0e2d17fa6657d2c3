"""Support vectors: the rows on or inside the margin, y (w.x + b) <= 1.

Whether a row is exactly on the margin is beyond rounding, so its multiplier decides where one is known: the
slope u of the loss is zero for the rows that could be left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.data.blocks import Block, Blocks
from sixfold.risk.problem import normalized_weights, scores

Array = NDArray[Any]
LEAST_MULTIPLIER = 1e-6  # multipliers below this are what an interior point leaves of zero


def margins(w: Array, b: Array, blocks: Blocks) -> Array:
    """Return y (w.x + b), one row a row and one column a target."""

    def part(block: Block) -> Array:
        return np.asarray(block.y, dtype=np.float64) * scores(block, w, b)

    return np.concatenate(list(blocks.map(part)))


def support(w: Array, b: Array, blocks: Blocks, dual: Array | None = None) -> NDArray[np.bool_]:
    """Return which rows are support vectors, one column a target.

    Parameters
    ----------
    dual : ndarray of shape (rows, targets), or None
        The slopes that a solver returned as its dual point; without them the margins decide.
    """
    if dual is not None:
        return np.abs(dual) > LEAST_MULTIPLIER
    counts = np.concatenate([normalized_weights(block, blocks) > 0 for block in blocks])
    return (margins(w, b, blocks) <= 1.0 + LEAST_MULTIPLIER) & counts[:, None]
