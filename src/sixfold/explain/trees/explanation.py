"""Why a tree answers as it does: the tests a row met on its way, and which value would change the answer.

With every other value as it is, a number x leads to one node for each interval of its values. The nearest end
of an interval whose node has another class is the least change of x alone that changes the answer. Of
categories none is nearer than another: of those that lead to another class the ones are named that end where
the most training rows did.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.explain.axes import axes_or_new, tick_names
from sixfold.explain.palette import class_colours, matplotlib_fill
from sixfold.explain.trees.names import TreeNames
from sixfold.explain.trees.words import (
    MEASURES,
    Condition,
    branch_conditions,
    by_weight,
    class_word,
    column_decimals,
    condition_words,
    end_words,
    given_number,
    number,
    percent,
    plain,
    share_words,
    word,
)
from sixfold.plain_words import counted
from sixfold.solvers.trees.fitted_tree import NO_NODE, FittedTree


@dataclass(frozen=True)
class TreeStep:
    """One test on the way of a row.

    Attributes
    ----------
    node : int
        The node that asks.
    column : str
        What it asks for.
    value : object
        The value the row has; None where it is unknown.
    test : str
        What the row met, in words: ``petal width <= 0.8``.
    impurity : float
        Of the node, before the test.
    rows : int
        How many training rows reached the node.
    shares : list of float
        The share of each class among them.
    """

    node: int
    column: str
    value: Any
    test: str
    impurity: float
    rows: int
    shares: list[float]


@dataclass(frozen=True)
class TreeChange:
    """A value that alone would change the answer.

    Attributes
    ----------
    column : str
    value : object
        What the row has; None where it is unknown.
    test : str
        What it would have to meet, in words: ``0.8 < petal width <= 1.75``.
    threshold : float or None
        The end of that interval which is nearest to the value; None for categories.
    answer : object
        The class there.
    """

    column: str
    value: Any
    test: str
    threshold: float | None
    answer: Any


@dataclass(frozen=True)
class TreeExplanation:
    """An answer and the way to it, as plain data.

    Attributes
    ----------
    answer : object
        The class the tree predicts.
    shares : dict
        The share of the weight each class has where the row ends.
    path : list of TreeStep
        The tests that the row met, from the root.
    node, rows, impurity : int, int and float
        The node where the row ends, its training rows, and how mixed they are.
    unit : str
        What impurity is measured in: "bits", "nats", "gini" or "homogeneous".
    reason : str
        Why the way ends there, in words.
    changes : list of TreeChange
        For each column on the way the nearest number, or the categories with the most rows, with which alone
        the answer would be another, where there are any.
    weighted : bool
        Whether the training rows had weights, of which the shares are.
    """

    answer: Any
    shares: dict[Any, float]
    path: list[TreeStep]
    node: int
    rows: int
    impurity: float
    unit: str
    reason: str
    changes: list[TreeChange]
    weighted: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dictionary."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        """Say what was found in a few lines."""
        share = share_words(self.shares[self.answer], self.weighted)
        lines = [f"answer: {class_word(self.answer)} ({share}, {counted(self.rows, 'row')})"]
        for step in self.path:
            given = f"{word(step.column)} {_shown(step.value)}"
            met = step.test if step.test == given else f"{given}, so {step.test}"
            lines.append(f"  {self._before(step.rows, step.impurity)}: {met}")
        lines.append(f"  {self._before(self.rows, self.impurity)}: {self.reason}")
        lines += [
            f"  {percent(share)}: {class_word(label)}" for label, share in self.shares.items() if share > 0
        ]
        for change in self.changes:
            number_now = change.threshold is not None
            now = f" ({word(change.column)} is {given_number(change.value)})" if number_now else ""
            lines.append(f"with {change.test}{now} the answer would be {class_word(change.answer)}")
        return "\n".join(lines)

    def _before(self, rows: int, impurity: float) -> str:
        measure = MEASURES[self.unit]
        unit = f" {self.unit}" if measure == "entropy" else ""
        return f"{counted(rows, 'row')}, {measure} {number(impurity)}{unit}"

    def plot(self, axes: Any = None) -> Any:
        """Draw the class shares from the root to where the row ends, a bar for each node.

        Parameters
        ----------
        axes : matplotlib axes, default=None
            Where to draw; None makes new ones.

        Returns
        -------
        matplotlib axes
        """
        bars = np.array([*(step.shares for step in self.path), list(self.shares.values())])
        axes = axes_or_new(axes, 7.0, 0.4 * len(bars) + 1.2)
        starts = bars.cumsum(axis=1) - bars
        handles = [
            axes.barh(
                range(len(bars)), bars[:, label], left=starts[:, label], height=0.7, **matplotlib_fill(colour)
            )
            for label, colour in class_colours(bars[0]).items()
        ]
        rows = [*(step.rows for step in self.path), self.rows]
        met = ["all", *(step.test for step in self.path)]
        ticks = [
            f"{_literal(test)}: {counted(some, 'row')}"
            for test, some in zip(tick_names(met), rows, strict=True)
        ]
        axes.set(yticks=range(len(bars)), yticklabels=ticks, xlim=(0.0, 1.0))
        axes.set(xlabel="share of the classes", title=f"answer: {_literal(class_word(self.answer))}")
        axes.invert_yaxis()
        numbers = [str(i) for i in range(len(handles))]
        legend = axes.legend(handles, numbers, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        for text, label in zip(legend.get_texts(), self.shares, strict=True):
            text.set_text(
                _literal(class_word(label))
            )  # only now: a name that starts with _ would be left out
        return axes


def _shown(value: Any) -> str:
    if value is None:
        return "unknown"
    return f"= {given_number(value) if isinstance(value, float) else word(value)}"


def _literal(text: str) -> str:
    return text.replace("$", r"\$")  # matplotlib reads a formula between two of them


def explain_row(
    tree: FittedTree, names: TreeNames, row: NDArray[Any], shown_values: Sequence[Any]
) -> TreeExplanation:
    """Return why the tree answers as it does for one row.

    Parameters
    ----------
    tree : FittedTree
    names : TreeNames
    row : ndarray of shape (columns,)
        Numbers and codes of categories; NaN is unknown, -1 a category never seen.
    shown_values : sequence
        The values of the row as they were given.

    Returns
    -------
    TreeExplanation
    """
    way = _way(tree, row)
    decimals = column_decimals(tree)
    end = way[-1]
    steps = []
    for node, after in pairwise(way):
        column = int(tree.column[node])
        steps.append(
            TreeStep(
                node=node,
                column=str(names.columns[column]),
                value=_given(row[column], shown_values[column]),
                test=condition_words(branch_conditions(tree, node)[after], names, decimals, 8),
                impurity=float(tree.impurity[node]),
                rows=int(tree.rows[node]),
                shares=tree.shares[node].tolist(),
            )
        )
    labels = [plain(label) for label in names.classes]
    return TreeExplanation(
        answer=labels[tree.answer[end]],
        shares=dict(zip(labels, tree.shares[end].tolist(), strict=True)),
        path=steps,
        node=end,
        rows=int(tree.rows[end]),
        impurity=float(tree.impurity[end]),
        unit=tree.unit_name,
        reason=_reason(tree, names, end, row, shown_values),
        changes=list(_changes(tree, names, row, shown_values, way, decimals)),
        weighted=by_weight(tree),
    )


def given_values(table: Any, row: NDArray[Any]) -> list[Any]:
    """Return the values of a table of one row as they were given; those that were checked if it is sparse."""
    if sp.issparse(table):
        return row.tolist()
    if isinstance(table, np.ndarray):
        return table[0].tolist()
    import narwhals.stable.v1 as nw

    frame: Any = nw.from_native(table, eager_only=True, pass_through=True)
    return (
        list(frame.row(0)) if isinstance(frame, nw.DataFrame) else np.asarray(table, dtype=object)[0].tolist()
    )


def _way(tree: FittedTree, row: NDArray[Any]) -> list[int]:
    """Return the nodes that a row passes, from the root to where it ends."""
    way = [0]
    while (after := _next(tree, way[-1], row)) != NO_NODE:
        way.append(after)
    return way


def _next(tree: FittedTree, node: int, row: NDArray[Any]) -> int:
    """Return the child to which a row goes; -1 in a leaf and where its value has no branch."""
    column = tree.column[node]
    if column < 0:
        return NO_NODE
    if math.isnan(row[column]):
        return int(tree.unknown[node])
    code = int(row[column]) if tree.kinds[column] else int(row[column] > tree.threshold[node])
    return tree.branches(node).get(code, NO_NODE)


def _given(value: float, shown: Any) -> Any:
    return None if math.isnan(value) else plain(shown)


def _reason(
    tree: FittedTree, names: TreeNames, node: int, row: NDArray[Any], shown_values: Sequence[Any]
) -> str:
    """Return why a way ends at a node: it is a leaf, or the row's value was not seen there."""
    column = int(tree.column[node])
    if column < 0:
        return end_words(tree, node)
    rows = counted(int(tree.rows[node]), "row")
    value = _given(row[column], shown_values[column])
    shown = "unknown" if value is None else f"= {value!r}"
    return f"{word(names.columns[column])} {shown} was never seen here: the {rows} of this node answer"


def _changes(
    tree: FittedTree,
    names: TreeNames,
    row: NDArray[Any],
    shown_values: Sequence[Any],
    way: list[int],
    decimals: Sequence[int | None],
) -> Iterator[TreeChange]:
    """Yield for each column on a way a value of it alone with which the answer is another."""
    for column in dict.fromkeys(tree.column[way].tolist()):
        if column < 0:
            continue
        find = _other_categories if tree.kinds[column] else _nearest_interval
        found = find(tree, row, column, int(tree.answer[way[-1]]))
        if found is None:
            continue
        condition, end = found
        value = _given(row[column], shown_values[column]) if tree.kinds[column] else float(row[column])
        nearest = condition.high if row[column] > condition.high else condition.low
        yield TreeChange(
            column=str(names.columns[column]),
            value=value,
            test=condition_words(condition, names, decimals, 8),
            threshold=None if tree.kinds[column] else nearest,
            answer=plain(names.classes[tree.answer[end]]),
        )


def _nearest_interval(
    tree: FittedTree, row: NDArray[Any], column: int, answer: int
) -> tuple[Condition, int] | None:
    """Return the nearest numbers with another answer, and the node they lead to."""
    value = float(row[column])
    others = [
        (value - high if value > high else low - value, low, high, node)
        for node, low, high in _intervals(tree, row, column)
        if tree.answer[node] != answer
    ]
    if not others or math.isnan(value):
        return None
    _, low, high, node = min(others)
    return Condition(column, low, high), node


def _other_categories(
    tree: FittedTree, row: NDArray[Any], column: int, answer: int
) -> tuple[Condition, int] | None:
    """Return the categories with another answer that lead to the most rows, and the node they lead to."""
    others = [
        (-int(tree.rows[node]), node, codes)
        for node, codes in _categories_to(tree, row, column)
        if tree.answer[node] != answer
    ]
    if not others:
        return None
    _, node, codes = min(others)
    return Condition(column, codes=codes), node


def _categories_to(tree: FittedTree, row: NDArray[Any], free: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield each node where the row can end by its category in one column, and the ones that lead there."""
    waiting: list[tuple[int, tuple[int, ...] | None]] = [(0, None)]
    while waiting:
        node, codes = waiting.pop()
        if tree.column[node] == free:
            before = None if codes is None else set(codes)
            for child, branch in branch_conditions(tree, node).items():
                taken = tuple(c for c in branch.codes or () if before is None or c in before)
                if taken:
                    waiting.append((child, taken))
        elif (after := _next(tree, node, row)) != NO_NODE:
            waiting.append((after, codes))
        elif codes is not None:
            yield node, codes


def _intervals(tree: FittedTree, row: NDArray[Any], free: int) -> Iterator[tuple[int, float, float]]:
    """Yield each node where the row can end by its value of one column of numbers, and low < x <= high."""
    waiting = [(0, -math.inf, math.inf)]
    while waiting:
        node, low, high = waiting.pop()
        if tree.column[node] == free:
            threshold, branches = float(tree.threshold[node]), tree.branches(node)
            waiting.append((branches[0], low, min(high, threshold)))
            if threshold < math.inf:
                waiting.append((branches[1], threshold, high))
        elif (after := _next(tree, node, row)) != NO_NODE:
            waiting.append((after, low, high))
        else:
            yield node, low, high
