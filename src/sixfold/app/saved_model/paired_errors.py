"""Whether two models that answer the same rows differ by more than chance would have it.

    labels     b rows that only the first gets right, c that only the second does: were both equally good,
               b would be binomial(b + c, 1/2)                                (McNemar 1947, exact)
    recalls    d_i = what row i adds to the balanced accuracy of the first - to that of the second: were both
               equally good, every d_i would be as probable with the other sign
    losses     d_i = loss of the first - loss of the second in row i:
               t = mean(d) / sqrt(var(d) / n), Student's t with n - 1 degrees of freedom
               ranks of |d_i|, signed as d_i                                  (Wilcoxon 1945)

All p-values are two-sided.
"""

from __future__ import annotations

import math
import warnings
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, norm, wilcoxon
from scipy.stats import t as student

Array = NDArray[Any]

DRAWS, DRAWN_ROWS = 9999, 500


def mcnemar_p_value(only_first: int, only_second: int) -> float:
    """Return the p-value of equal shares of right answers.

    >>> round(mcnemar_p_value(1, 9), 4)
    0.0215
    """
    both = only_first + only_second
    return float(binomtest(only_first, both).pvalue) if both else 1.0


def sign_flip_p_value(difference: Array) -> float:
    """Return the p-value of sum(d) when every d_i may have either sign.

    All signs are tried for a few rows, some are drawn for more, and for many the sum is normal.

    >>> sign_flip_p_value(np.ones(5))  # 2 of 2^5
    0.0625
    """
    d = np.asarray(difference, dtype=np.float64)
    d = d[d != 0.0]
    found = abs(float(d.sum()))
    if not d.size:
        return 1.0
    if d.size > DRAWN_ROWS:
        return float(2.0 * norm.sf(found / math.sqrt(float(d @ d))))
    few = 2**d.size <= DRAWS
    signs = np.array(list(product((-1.0, 1.0), repeat=d.size))) if few else _drawn_signs(d.size)
    as_large = np.abs(signs @ d) >= found * (1.0 - 1e-12)
    return float(as_large.mean()) if few else (1 + int(as_large.sum())) / (DRAWS + 1)


def _drawn_signs(rows: int) -> Array:
    return np.random.default_rng(0).choice((-1.0, 1.0), (DRAWS, rows))


def paired_t_p_value(first: Array, second: Array) -> float:
    """Return the p-value of equal mean losses; NaN for fewer than two rows.

    >>> round(paired_t_p_value(np.array([1.0, 2.0, 4.0]), np.array([0.0, 1.0, 1.0])), 4)
    0.1296
    """
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    if difference.size < 2 or not np.isfinite(difference).all():
        return math.nan
    spread = difference.std(ddof=1)
    if spread == 0.0:
        return 1.0 if difference[0] == 0.0 else 0.0
    statistic = difference.mean() / (spread / math.sqrt(difference.size))
    return float(2.0 * student.sf(abs(statistic), difference.size - 1))


def wilcoxon_p_value(first: Array, second: Array) -> float:
    """Return the p-value of losses that are as often and as far on either side.

    >>> round(wilcoxon_p_value(np.array([1.0, 2.0, 4.0]), np.array([0.0, 0.5, 1.0])), 4)
    0.25
    """
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    if not difference.size or not np.isfinite(difference).all():
        return math.nan
    if not difference.any():
        return 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ties, for which the approximation is used
        return float(wilcoxon(difference).pvalue)
