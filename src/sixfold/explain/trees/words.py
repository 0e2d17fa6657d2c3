"""The words for what a tree says: its conditions, numbers, categories and reasons, each on one line.

A branch of a tree is a :class:`Condition` on one column: numbers in low < x <= high, or some of the
categories, and perhaps unknown values too. Those on one column along a path make one condition, so that
x > 2.5 and x <= 4 read 2.5 < x <= 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from sixfold.errors import check_number
from sixfold.explain.trees.names import TreeNames
from sixfold.solvers.trees.fitted_tree import FittedTree, Reason

REASONS = {
    Reason.SPLIT: "split",
    Reason.PURE: "all rows are of one class",
    Reason.EXHAUSTED: "all rows are equal in every column",
    Reason.STOPPED: "growth was stopped",
    Reason.PRUNED: "pruned",
}

# What impurities in a unit are called.
MEASURES = {"bits": "entropy", "nats": "entropy", "gini": "gini", "homogeneous": "mixed"}

MOST_DECIMALS = 17  # any two numbers that need more are written with every digit


def end_words(tree: FittedTree, node: int) -> str:
    """Say why a node was not split; of limits, which."""
    reason, limits = Reason(tree.reason[node]), tree.limits
    if reason != Reason.LIMIT:
        return REASONS[reason]
    if "max_depth" in limits and tree.depth[node] >= limits["max_depth"]:
        return f"max_depth={limits['max_depth']} was reached"
    least = limits.get("min_samples_split", 0)
    least = least if least >= 2 else least * tree.rows[0]  # it may be a share of the rows
    if tree.rows[node] < least:
        return f"fewer rows than min_samples_split={limits['min_samples_split']} asks for"
    apart = ("max_depth", "min_samples_split", "ccp_alpha", "objective", "leaf_penalty")
    others = [name for name in limits if name not in apart]
    if "objective" in limits and not others:  # of a search
        better = "makes fewer errors" if limits["objective"] == "error" else "makes it purer"
        return f"no split {better}" + f" by leaf_penalty={limits['leaf_penalty']}" * bool(
            limits["leaf_penalty"]
        )
    if others == ["max_leaf_nodes"]:
        return f"max_leaf_nodes={limits['max_leaf_nodes']} was reached"
    named = " or ".join(f"{name}={limits[name]!r}" for name in others)
    return f"{named} allows no split" if named else "no split makes it purer"


def check_shown(
    max_depth: Any = None, decimals: Any = None, max_categories: Any = None, max_branches: Any = None
) -> None:
    """Raise an :class:`~sixfold.errors.InputError` about what is asked to be shown, if it makes no sense."""
    check_number("max_depth", max_depth, at_least=0, whole=True, optional=True)
    check_number("decimals", decimals, at_least=0, whole=True, optional=True)
    check_number("max_categories", max_categories, at_least=1, whole=True, optional=True)
    check_number("max_branches", max_branches, at_least=1, whole=True, optional=True)


def cut_nodes(tree: FittedTree, max_depth: int | None) -> dict[int, int]:
    """Return the split nodes at a depth, below which nothing is shown, and how many nodes that leaves out."""
    if max_depth is None:
        return {}
    ends = np.flatnonzero((tree.depth == max_depth) & ~tree.is_leaf)
    # Nodes are numbered depth first: a subtree ends where the next node as high as its root begins.
    high = np.append(np.flatnonzero(tree.depth <= max_depth), tree.node_count)
    after = high[np.searchsorted(high, ends, side="right")]
    return dict(zip(ends.tolist(), (after - ends - 1).tolist(), strict=True))


# -- conditions --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """Which values of one column go a way.

    Attributes
    ----------
    column : int
    low, high : float
        Numbers go this way where low < x <= high.
    codes : tuple of int or None
        The categories that go this way; None for numbers.
    known, unknown : bool
        Whether any known value goes this way, and whether unknown ones do.
    """

    column: int
    low: float = -math.inf
    high: float = math.inf
    codes: tuple[int, ...] | None = None
    known: bool = True
    unknown: bool = False

    def narrowed(self, later: Condition) -> Condition:
        """Return what is left of this condition after one on the same column further down."""
        return replace(
            later,  # the values that a node lets through are some of those that reached it
            low=max(self.low, later.low),
            high=min(self.high, later.high),
            unknown=self.unknown and later.unknown,
        )


def branch_conditions(tree: FittedTree, node: int) -> dict[int, Condition]:
    """Return what leads from a node to each of its children, in their order."""
    column, threshold, unknown = int(tree.column[node]), float(tree.threshold[node]), int(tree.unknown[node])
    codes: dict[int, list[int]] = {} if unknown < 0 else {unknown: []}
    for code, child in tree.branches(node).items():
        codes.setdefault(child, []).append(code)
    result = {}
    for child in sorted(codes):
        some, joined = codes[child], child == unknown
        if tree.kinds[column]:
            result[child] = Condition(column, codes=tuple(some), known=bool(some), unknown=joined)
        elif 0 in some:
            result[child] = Condition(column, high=threshold, unknown=joined)
        elif some and threshold < math.inf:
            result[child] = Condition(column, low=threshold, unknown=joined)
        else:  # nothing known is above an infinite threshold
            result[child] = Condition(column, known=False, unknown=joined)
    return result


def shown_branches(
    tree: FittedTree, node: int, most: int | None
) -> tuple[dict[int, Condition], dict[int, Condition]]:
    """Return the branches of a node with the most rows, which are shown in their order, and the others."""
    branches = branch_conditions(tree, node)
    if most is None or len(branches) <= most:
        return branches, {}
    shown = set(sorted(branches, key=lambda child: -tree.rows[child])[:most])
    return (
        {child: one for child, one in branches.items() if child in shown},
        {child: one for child, one in branches.items() if child not in shown},
    )


def path_conditions(tree: FittedTree, node: int) -> list[Condition]:
    """Return what a row meets that reaches a node: one condition a column, in the order they are asked."""
    met: dict[int, Condition] = {}
    for above, below in pairwise(tree.path_to(node)):
        met = _after(met, branch_conditions(tree, above)[below])
    return list(met.values())


def leaf_conditions(tree: FittedTree) -> Iterator[tuple[int, list[Condition]]]:
    """Yield each leaf, and what a row meets that reaches it."""
    met: dict[int, dict[int, Condition]] = {0: {}}
    for node, leaf in enumerate(tree.is_leaf.tolist()):
        before = met.pop(node)
        if leaf:
            yield node, list(before.values())
        else:
            met |= {child: _after(before, one) for child, one in branch_conditions(tree, node).items()}


def _after(met: dict[int, Condition], condition: Condition) -> dict[int, Condition]:
    before = met.get(condition.column)
    return met | {condition.column: condition if before is None else before.narrowed(condition)}


def column_decimals(tree: FittedTree, least: int | None = 3) -> list[int | None]:
    """Return for each column with how many decimals its thresholds are written, None for every digit.

    At least so many, and as many more as it takes for thresholds that differ to look different: a tree that
    asks the same question twice would contradict itself.
    """
    result: list[int | None] = [least] * len(tree.kinds)
    if least is None:
        return result
    numbers = (tree.column >= 0) & np.isfinite(tree.threshold)
    for column in np.unique(tree.column[numbers]).tolist():
        thresholds = np.unique(tree.threshold[numbers & (tree.column == column)]).tolist()
        enough = (d for d in range(least, MOST_DECIMALS + 1) if _look_different(thresholds, d))
        result[column] = next(enough, None)
    return result


def _look_different(ascending: list[float], decimals: int) -> bool:
    # Rounding keeps the order, so that equal ones are neighbours; the first two end the search.
    return all(low != high for low, high in pairwise(number(x, decimals) for x in ascending))


def condition_words(
    condition: Condition, names: TreeNames, decimals: Sequence[int | None], most: int | None = None
) -> str:
    """Return a condition with the name of its column: ``2.5 < width <= 4``, ``colour in {red, blue}``."""
    column = word(names.columns[condition.column])
    if not condition.known:
        return f"{column} unknown"
    if condition.codes is not None:
        values = _categories(condition, names, most)
        several = len(condition.codes) > 1
        text = f"{column} in {{{', '.join(values)}}}" if several else f"{column} = {values[0]}"
    else:
        text = _interval(condition.low, condition.high, column, decimals[condition.column])
    return f"{text} or unknown" if condition.unknown else text


def branch_words(
    condition: Condition, names: TreeNames, decimals: Sequence[int | None], most: int | None = None
) -> str:
    """Return the condition of one branch without the name of its column: ``≤ 2.5``, ``red, blue``."""
    if not condition.known:
        return "unknown"
    if condition.codes is not None:
        text = ", ".join(_categories(condition, names, most))
    elif condition.low > -math.inf:
        text = f"> {number(condition.low, decimals[condition.column])}"
    elif condition.high < math.inf:
        text = f"≤ {number(condition.high, decimals[condition.column])}"
    else:
        text = "known"
    return f"{text} or unknown" if condition.unknown else text


def _categories(condition: Condition, names: TreeNames, most: int | None) -> list[str]:
    values = category_values(condition, names)
    if most is None or len(values) <= most:
        return [word(value) for value in values]
    return [*(word(value) for value in values[:most]), f"... {len(values) - most} more"]


def category_values(condition: Condition, names: TreeNames) -> list[Any]:
    """Return the categories of a condition as they were given."""
    categories = names.categories[condition.column]
    return [code if categories is None else categories[code] for code in condition.codes or ()]


def _interval(low: float, high: float, column: str, decimals: int | None) -> str:
    if low == -math.inf and high == math.inf:
        return f"{column} known"
    if low == -math.inf:
        return f"{column} <= {number(high, decimals)}"
    if high == math.inf:
        return f"{column} > {number(low, decimals)}"
    return f"{number(low, decimals)} < {column} <= {number(high, decimals)}"


# -- single words ------------------------------------------------------------------------------------------


def number(x: float, decimals: int | None = 3) -> str:
    """Return a number with so many decimals, but at least two digits; None for every digit."""
    if decimals is None:
        return repr(int(x)) if x == round(x) and abs(x) < 1e15 else repr(float(x))
    if x == 0 or 10.0 ** (1 - decimals) <= abs(x) < 1e15:
        text = f"{x:.{decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{x:.{decimals + 1}g}"


def given_number(x: float) -> str:
    """Return a number of a row as it was most likely written: 12 digits hide what binary fractions add."""
    return number(x, None) if x == round(x) and abs(x) < 1e15 else f"{x:.12g}"


def percent(share: float) -> str:
    """Return a share in percent; only what is all or nothing reads 100% or 0%."""
    if 0.995 <= share < 1.0:
        return ">99%"
    if 0.0 < share < 0.005:
        return "<1%"
    return f"{share:.0%}"


def by_weight(tree: FittedTree) -> bool:
    """Return whether the rows a tree was grown from had weights, so that shares are not those of the rows."""
    return not (np.array_equal(tree.weight, tree.rows) and np.array_equal(tree.totals, tree.totals.round()))


def share_words(share: float, weighted: bool) -> str:
    """Return a share in percent, and what it is a share of where that is not the rows."""
    return f"{percent(share)} by weight" if weighted else percent(share)


def more_branches(branches: int) -> str:
    """Return how many branches are not shown: ``1 more branch``, ``288 more branches``."""
    return f"{branches:,} more {'branch' if branches == 1 else 'branches'}"


def word(value: Any) -> str:
    """Return a name or value on one line, with what cannot be seen written as an escape."""
    value = plain(value)
    if isinstance(value, float):
        return number(value, None)
    text = str(value)
    # A zero-width joiner holds an emoji together.
    shown = "".join(c if c.isprintable() or c == "\u200d" else ascii(c)[1:-1] for c in text)
    return repr(shown) if not shown.strip() else shown


def class_word(label: Any) -> str:
    """Return the name of a class, one that is a number as ``class 0`` so that it is no count or share."""
    text = word(label)
    try:
        float(text)
    except ValueError:
        return text
    return f"class {text}"


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: NaN and infinities as None, NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)
