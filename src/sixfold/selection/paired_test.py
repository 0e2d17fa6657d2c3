"""Whether one learner is better than another, by their scores on the same folds.

    d_i = score of one - score of the other on fold i,     i = 1, ..., K
    t = mean(d) / sqrt((1 / K + n_test / n_train) var(d)),   Student's t with K - 1 degrees of freedom

The folds share most of their training rows, so that the d_i vary together, and var(d) / K would be far too
small for their mean; the second term corrects for that.

Source: Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Array = NDArray[Any]


def corrected_p_value(one: Array, other: Array, test_share: float) -> float:
    """Return the two-sided p-value of equal scores; ``test_share`` is n_test / n_train.

    >>> a, b = np.array([0.9, 0.8, 0.85, 0.95, 0.9]), np.array([0.7, 0.75, 0.7, 0.8, 0.75])
    >>> round(corrected_p_value(a, b, 0.25), 4)
    0.0189
    """
    difference = np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    folds = difference.size
    if folds < 2 or np.isnan(difference).any():
        return math.nan
    variance = difference.var(ddof=1)
    if variance == 0.0:
        return 1.0 if difference[0] == 0.0 else 0.0
    statistic = difference.mean() / math.sqrt((1.0 / folds + test_share) * variance)
    return float(2.0 * student.sf(abs(statistic), folds - 1))
