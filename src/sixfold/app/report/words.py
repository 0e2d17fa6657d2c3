"""Figures, shares, names and lists in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sixfold.explain.plots.search_results import score_label

MOST_NAMED = 5
LONGEST_NAME = 60


def listed(names: Sequence[Any], most: int = MOST_NAMED) -> str:
    """Return names in quotation marks, the first few.

    >>> listed(["a", "b", "c"]), listed(list("abcdefg"), 2)
    ("'a', 'b' and 'c'", "'a', 'b' and 5 more")
    """
    shown = [f"'{shortened(name)}'" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most:,} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)


def shortened(name: Any, letters: int = LONGEST_NAME) -> str:
    """Return a name on one line, cut where it is very long."""
    text = " ".join(str(name).split())
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def score_text(value: float | None, digits: int = 3) -> str:
    """Return a score as it is written on the page.

    >>> score_text(0.96667), score_text(-1234.5), score_text(None), score_text(0.0), score_text(2.5e-7)
    ('0.967', '-1,234', 'none', '0.000', '2.5e-07')
    """
    if value is None or not math.isfinite(value):
        return "none"
    if 0 < abs(value) < 0.5 * 10.0**-digits:
        return f"{value:.2g}"
    if abs(value) >= 1e9:
        return f"{value:.4g}"
    return f"{value:.{digits}f}" if abs(value) < 100 else f"{value:,.0f}"


def percent(share: float) -> str:
    """Return a share as per cent, with a decimal where it says something.

    >>> percent(1.0), percent(0.96667), percent(0.5), percent(0.0004)
    ('100%', '96.7%', '50%', '0.04%')
    """
    value = 100.0 * share
    if 0 < value < 0.1:
        return f"{value:.1g}%"
    text = f"{value:.1f}"
    if text in ("100.0", "0.0") and share not in (0.0, 1.0):
        text = f"{value:.2f}"
    return f"{text.removesuffix('.0')}%"


def number_text(value: Any) -> str:
    """Return a number with four digits, whole ones with all of theirs."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return shortened(value)
    if not math.isfinite(value):
        return "none"
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


class Metric:
    """A score as it is shown: errors whose sign was turned are turned back.

    Parameters
    ----------
    scoring : str or callable
        Its name in scikit-learn.
    words : str
        Its name on the page; "" for that of the scoring.
    """

    def __init__(self, scoring: Any, words: str = "") -> None:
        name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
        label, self.less_is_better = score_label(name)
        self.words = label if self.less_is_better or not words else words
        self.sign = -1.0 if self.less_is_better else 1.0

    def shown(self, score: float | None) -> str:
        """Return a score as text."""
        return score_text(None if score is None else self.sign * score)
