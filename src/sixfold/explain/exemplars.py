"""Why an exemplar machine answers as it does: the exemplars that fire, and what the first of them looks at.

    f_e(x) = w_e.x + b_e,     p_e = 1 / (1 + exp(-(slope_e f_e + offset_e)))

The exemplars are ordered by what they are compared by: p_e, or f_e where scores are not calibrated. With the
linear kernel the score of the first is taken apart column by column, w_j x_j; with another it is what each
support vector adds that :class:`sixfold.SVC` explains in the same way.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from sixfold.explain.axes import axes_or_new, tick_names
from sixfold.explain.palette import COLOURS

MOST_SHOWN = 10  # exemplars and columns that are printed or drawn


@dataclass(frozen=True)
class ExemplarExplanation:
    """An answer and the exemplars it comes from, as plain data.

    Attributes
    ----------
    answer : object
        What the model predicts.
    classes : dict
        The probability of each class, by a calibration of its own: the largest of many exemplars' is too
        large. Empty where scores are not calibrated.
    rows : list of int
        The training rows of the exemplars, that with the highest score first.
    index : list
        What they are called in the frame of the fit; their numbers where it has no index of its own.
    labels : list
        Their labels.
    decisions : list of float
        f of each machine.
    probabilities : list of float
        p of each machine; empty where they are not calibrated.
    columns : list of str
        The columns, those that add most to the first machine's score, or take most from it, first; empty
        for a kernel that is not linear.
    contributions : list of float
        What each adds.
    intercept : float
        Of the first machine: its f is ``intercept + sum(contributions)``.
    """

    answer: Any
    classes: dict[Any, float]
    rows: list[int]
    index: list[Any]
    labels: list[Any]
    decisions: list[float]
    probabilities: list[float]
    columns: list[str]
    contributions: list[float]
    intercept: float

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dictionary."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        """Say what was found in a few lines."""
        lines = [f"answer: {self.answer}"]
        lines += [f"  {share:.1%} {label}" for label, share in self.classes.items()]
        lines.append("exemplars, by " + ("their probabilities:" if self.probabilities else "their scores:"))
        for place in range(min(len(self.rows), MOST_SHOWN)):
            surely = f" {self.probabilities[place]:<8.1%}" if self.probabilities else ""
            lines.append(
                f"  exemplar {self.index[place]!s:<8} {self.labels[place]!s:<12}{surely} "
                f"score {self.decisions[place]:+.4g}"
            )
        if len(self.rows) > MOST_SHOWN:
            lines.append(f"  {len(self.rows) - MOST_SHOWN} more exemplars")
        if self.columns:
            lines.append(f"why the score of exemplar {self.index[0]}:")
            parts = list(zip(self.columns, self.contributions, strict=True))
            lines += [f"  {name:<20} adds {part:+.4g}" for name, part in parts[:MOST_SHOWN]]
            if len(parts) > MOST_SHOWN:
                rest = sum(self.contributions[MOST_SHOWN:])
                lines.append(f"  {len(parts) - MOST_SHOWN} more columns add {rest:+.4g}")
            lines.append(f"  the intercept adds {self.intercept:+.4g}")
        return "\n".join(lines)

    def plot(self, axes: Any = None) -> Any:
        """Draw the scores of the exemplars, the highest first.

        Parameters
        ----------
        axes : matplotlib axes, default=None
            Where to draw; None makes new ones.

        Returns
        -------
        matplotlib axes
        """
        shown = min(len(self.rows), MOST_SHOWN)
        values = (self.probabilities or self.decisions)[:shown]
        names = [
            f"row {row}: {label}" for row, label in zip(self.index[:shown], self.labels[:shown], strict=True)
        ]
        axes = axes_or_new(axes, 6.0, 0.3 * shown + 1.2)
        colours = [COLOURS[label != self.answer] for label in self.labels[:shown]]
        axes.barh(range(shown), values, color=colours)
        axes.axvline(0.0, color="black", linewidth=0.8)
        axes.set(yticks=range(shown), yticklabels=tick_names(names))
        axes.set(
            xlabel="probability by the exemplar" if self.probabilities else "score of the exemplar",
            title=f"answer: {self.answer}",
        )
        axes.invert_yaxis()
        return axes
