"""Why an SVM with a kernel answers as it does: the support vectors that decide, and their shares.

    f(x) = sum_j c_j + b,     c_j = dual_coef_j K(x_j, x),     share_j = |c_j| / sum |c|

f speaks for the answer where it is positive. Of several classes it is the SVM of the answer against the
runner-up that is explained; one against the rest, the difference of their scores.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.explain.axes import axes_or_new, named_rows, tick_names
from sixfold.explain.palette import COLOURS

Array = NDArray[Any]

MOST_SHOWN = 10  # support vectors that are printed or drawn


@dataclass(frozen=True)
class SupportExplanation:
    """An answer and the support vectors it comes from, as plain data.

    Attributes
    ----------
    answer, runner_up : object
        What the model predicts, and the class that comes next.
    decision : float
        How far the answer is ahead of the runner-up: ``intercept + sum(contributions)``. Below 0 where the
        SVM of these two alone says the other one, and the answer has more votes of all SVMs.
    intercept : float
    rows : list of int
        The training rows that are support vectors, those that contribute most first.
    index : list
        What they are called in the frame of the fit; their numbers where it has no index of its own.
    labels : list
        Their labels.
    kernel : list of float
        K(x_j, x), how like x each of them is.
    contributions : list of float
        What each adds to the decision; positive speaks for the answer.
    shares : list of float
        The size of each contribution, in parts of the sum of all sizes.
    votes : dict
        How many binary SVMs vote for each class; empty where there are none for pairs.
    of : str
        What the rows are: "support vectors", or "landmarks".
    """

    answer: Any
    runner_up: Any
    decision: float
    intercept: float
    rows: list[int]
    index: list[Any]
    labels: list[Any]
    kernel: list[float]
    contributions: list[float]
    shares: list[float]
    votes: dict[Any, int]
    of: str = "support vectors"

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dictionary."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        """Say what was found in a few lines."""
        ahead = (
            f"by {self.decision:.4g}"
            if self.decision >= 0
            else f"by votes, behind in their own comparison by {-self.decision:.4g}"
        )
        lines = [f"answer: {self.answer}, ahead of {self.runner_up} {ahead}"]
        lines += [
            f"  row {row!s:<8} {label!s:<12} kernel {value:<10.4g} adds {part:<+11.4g} {share:.1%}"
            for row, label, value, part, share in list(
                zip(self.index, self.labels, self.kernel, self.contributions, self.shares, strict=True)
            )[:MOST_SHOWN]
        ]
        if len(self.rows) > MOST_SHOWN:
            rest = sum(self.contributions[MOST_SHOWN:])
            share = sum(self.shares[MOST_SHOWN:])
            lines.append(f"  {len(self.rows) - MOST_SHOWN} more {self.of} add {rest:+.4g}  {share:.1%}")
        lines.append(f"  the intercept adds {self.intercept:+.4g}")
        most_first = sorted(self.votes.items(), key=lambda pair: -pair[1])
        votes = ", ".join(f"{count} for class {label}" for label, count in most_first if count)
        lines += [f"  votes: {votes}"] if votes else []
        return "\n".join(lines)

    def plot(self, axes: Any = None) -> Any:
        """Draw what each support vector adds to the decision, the largest first, and the intercept.

        Parameters
        ----------
        axes : matplotlib axes, default=None
            Where to draw; None makes new ones.

        Returns
        -------
        matplotlib axes
        """
        shown = min(len(self.rows), MOST_SHOWN)
        parts = self.contributions[:shown]
        names = [
            f"row {row}: {label}" for row, label in zip(self.index[:shown], self.labels[:shown], strict=True)
        ]
        if len(self.rows) > shown:
            parts = [*parts, sum(self.contributions[shown:])]
            names = [*names, f"{len(self.rows) - shown} more"]
        parts, names = [*parts, self.intercept], [*names, "intercept"]
        axes = axes_or_new(axes, 6.0, 0.3 * len(parts) + 1.2)
        axes.barh(range(len(parts)), parts, color=[COLOURS[part < 0] for part in parts])
        axes.axvline(0.0, color="black", linewidth=0.8)
        axes.set(yticks=range(len(parts)), yticklabels=tick_names(names))
        axes.set(
            xlabel=f"adds to the decision for {self.answer} (against {self.runner_up})",
            title=f"answer: {self.answer}, decision {self.decision:.4g}",
        )
        axes.invert_yaxis()
        return axes


def explain_decision(
    kernel: Array,
    coefficients: Array,
    intercept: float,
    rows: Array,
    labels: list[Any],
    index: Array | None,
    **names: Any,
) -> SupportExplanation:
    """Return the explanation of one decision; ``names`` are the answer, the runner-up, the votes and ``of``.

    Parameters
    ----------
    kernel, coefficients : ndarray of shape (support vectors,)
        K(x_j, x), and what it is multiplied by where the answer counts as positive.
    intercept : float
    rows : ndarray of shape (support vectors,)
        Their training rows.
    labels : list
        Their labels.
    index : ndarray or None
        What all training rows are called; None for their numbers.
    """
    there = np.flatnonzero(coefficients)
    parts = coefficients[there] * kernel[there]
    sizes = np.abs(parts)
    order = np.argsort(-sizes, kind="stable")
    there, parts, total = there[order], parts[order], float(sizes.sum())
    shares = sizes[order] / total if total > 0 else sizes[order]
    return SupportExplanation(
        decision=float(parts.sum() + intercept),
        intercept=float(intercept),
        rows=rows[there].tolist(),
        index=named_rows(rows[there], index),
        labels=[labels[j] for j in there],
        kernel=kernel[there].tolist(),
        contributions=parts.tolist(),
        shares=shares.tolist(),
        **names,
    )
