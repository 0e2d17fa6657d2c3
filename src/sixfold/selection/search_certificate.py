"""What is known of all fits of a search together."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class SearchCertificate:
    """How much work a search took, and how exact its fits were.

    Attributes
    ----------
    asked : int
        Fits that were asked for: candidates times folds.
    done : int
        Problems that were solved for them.
    largest_gap : float
        The largest relative gap among the certificates; NaN where no fit claims one.
    without_claim : int
        Fits whose certificate bounds nothing, such as those of greedy trees.
    failed : int
        Fits that failed; their scores are ``error_score``.
    unfinished : int
        Fits that were not begun when a limit or Ctrl-C ended the search.
    separate : int
        Fits that share no work although they might, since the shared work failed or did not reach them.
    separate_because : str or None
        The reason of the first of these.

    Examples
    --------
    >>> print(SearchCertificate(250, 5, 0.0))
    search: 250 fits from 5 solved problems; all are optimal
    """

    asked: int
    done: int
    largest_gap: float = math.nan
    without_claim: int = 0
    failed: int = 0
    unfinished: int = 0
    separate: int = 0
    separate_because: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    def __str__(self) -> str:
        solved = f"{self.done:,} solved problem{'s' * (self.done != 1)}"
        said = [f"search: {self.asked:,} fits from {solved}"]
        if self.largest_gap == 0.0 and not self.without_claim:
            said.append("all are optimal")
        elif not math.isnan(self.largest_gap):
            said.append(f"the largest relative gap is {self.largest_gap:.1e}")
        if self.without_claim:
            said.append(f"{self.without_claim:,} fits make no claim")
        if self.separate:
            said.append(f"{self.separate:,} were fitted separately ({self.separate_because})")
        if self.failed:
            said.append(f"{self.failed:,} failed")
        if self.unfinished:
            said.append(f"{self.unfinished:,} were not finished")
        return "; ".join(said)
