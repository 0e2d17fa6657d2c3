"""The different good trees of a table, as a result that people read.

"Rashomon set" is Breiman's name for models that fit about equally well and tell different stories
(Statistical modeling: the two cultures, 2001). Here two trees are different where they ask different columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sixfold.certificate import plain_json

COMPLETE = "Every good tree asks all columns of one of these, and is no better than it."
MOST_SHOWN = 20  # trees in a printed table


@dataclass(frozen=True, eq=False)
class RashomonSet:
    """Good trees that ask different columns, the best first.

    Attributes
    ----------
    models : list of DecisionTreeClassifier
        Fitted copies of the model, each with one of the trees. Their certificates compare them with the best
        tree of all columns, as that of a tree which was pruned does.
    objectives : list of float
        What each costs: its share of errors or its average entropy in nats, penalties included.
    asked : list of tuple of str
        The columns that each asks.
    left_out : list of tuple of str
        Columns without which each is the best tree; there are none for the first.
    required : tuple of str
        Columns of which it is proven that every good tree asks them: all such columns, unless the search was
        stopped.
    columns : dict of str to int
        How many of the trees ask each column, for all columns of the table.
    epsilon : float
        How much more than the best one a good tree costs at most.
    complete : bool
        Whether every good tree asks all columns of one of these, and is no better than it.
    stopped_by : str or None
        What ended the search where it is not complete: ``limit``, ``time_limit``, a callback or Ctrl-C.
    """

    models: list[Any]
    objectives: list[float]
    asked: list[tuple[str, ...]]
    left_out: list[tuple[str, ...]]
    required: tuple[str, ...]
    columns: dict[str, int]
    epsilon: float
    complete: bool
    stopped_by: str | None = None

    def __len__(self) -> int:
        """Return how many trees there are."""
        return len(self.models)

    def __iter__(self) -> Iterator[Any]:
        """Go through the models."""
        return iter(self.models)

    @property
    def leaves(self) -> list[int]:
        """How many leaves each tree has."""
        return [model.get_n_leaves() for model in self.models]

    def to_dict(self) -> dict[str, Any]:
        """Return the set as plain data that JSON can hold.

        Returns
        -------
        dict
            ``trees`` (``objective``, ``leaves``, ``asked``, ``left_out`` and ``tree``, the nodes, of each),
            ``required``, ``columns``, ``epsilon``, ``complete`` and ``stopped_by``.
        """
        each = zip(self.objectives, self.leaves, self.asked, self.left_out, self.models, strict=True)
        trees = [
            {
                "objective": objective,
                "leaves": leaves,
                "asked": list(asked),
                "left_out": list(left_out),
                "tree": model.to_dict(),
            }
            for objective, leaves, asked, left_out, model in each
        ]
        found: dict[str, Any] = plain_json(
            {
                "trees": trees,
                "required": self.required,
                "columns": self.columns,
                "epsilon": self.epsilon,
                "complete": self.complete,
                "stopped_by": self.stopped_by,
            }
        )
        return found

    def __str__(self) -> str:
        """Return a table: objective, leaves and columns of each tree."""
        count = len(self)
        head = f"{count} good tree{'s' * (count != 1)}, at most {self.epsilon:g} worse than the best one"
        cells = [("objective", "leaves", "columns asked")]
        each = zip(self.objectives, self.leaves, self.asked, strict=True)
        cells += [
            (f"{objective:.6g}", str(leaves), ", ".join(asked) or "none") for objective, leaves, asked in each
        ]
        shown = cells[: MOST_SHOWN + 1]
        widths = [max(len(row[k]) for row in shown) for k in (0, 1)]
        lines = [f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]}" for row in shown]
        if len(cells) > len(shown):
            lines.append(f"... and {len(cells) - len(shown)} more")
        return "\n".join([head, *lines, self._required_in_words(), self._end_in_words()])

    def __repr__(self) -> str:
        """Return the table."""
        return str(self)

    def _required_in_words(self) -> str:
        if self.required:
            return f"Every good tree asks: {', '.join(self.required)}."
        decided = self.complete or self.stopped_by is None or self.stopped_by.startswith("limit=")
        return "No column is asked by every good tree." if decided else "No column is known to be in all."

    def _end_in_words(self) -> str:
        if self.complete:
            return COMPLETE
        return f"There may be more: the search was stopped by {self.stopped_by}."
