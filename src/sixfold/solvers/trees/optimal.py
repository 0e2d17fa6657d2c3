"""Search for the best tree: the one that costs least among all trees of a depth, and a number of leaves.

The cost of a tree is a sum over its leaves, w_c the class totals of a leaf, W_leaf their sum, W that of all
rows:

    "error"     1/W sum_leaves (W_leaf - max_c w_c)         + penalty * leaves     the share that is wrong
    "entropy"   1/W sum_leaves sum_c w_c ln(W_leaf / w_c)   + penalty * leaves     the average, in nats

The search (``native/trees/optimal/``) is dynamic programming with branch and bound. It keeps the best tree
so far, a bound that no tree goes below, and a frontier: sets of questions at the root that together are all
of them, each with bounds of the rows that are on the left, or on the right, of every question in the set.
The least cost of a tree never rises when rows are taken away, so these bounds hold for the whole set.

``lookahead`` is for trees too deep for that: at every node the best tree of depth two is found, its first
question is asked, and its children are searched likewise.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget, Record
from sixfold.errors import SixfoldWarning, warn
from sixfold.solvers.trees.fitted_tree import NO_NODE, FittedTree
from sixfold.solvers.trees.growth import TrainingRows, TreeParameters
from sixfold.solvers.trees.search_columns import (
    NO_RANK,
    NodeColumns,
    SearchColumn,
    SearchColumns,
    fitted_tree,
    labels_and_weight,
    search_columns,
)

Array = NDArray[Any]

LOOKAHEAD = 2  # questions below a node that are searched for its own
MEMORY = 1 << 30  # bytes
DEEP = 6  # a search for deeper trees is warned of where no time limit ends it
PROBE = 2.0  # seconds that a search for the warning may take
LEAST_TIMES = 10.0  # how much longer a level takes at least; on real tables it was 10 to 200


@dataclass(frozen=True)
class SearchRules:
    """Which tree is the best, and among which.

    Attributes
    ----------
    objective : {"error", "entropy"}
        The share of the weight that is not of the class its leaf answers, or the average entropy of the
        leaves in nats.
    max_depth : int
        Most questions above a leaf.
    max_leaf_nodes : int or None
    leaf_penalty : float
        What a leaf costs, in the unit of the objective.
    binary : bool
        Whether categories are put into two groups instead of a branch each.
    unknown_best : bool
        Whether unknown values join another branch instead of having their own.
    memory : int
        Most bytes for the costs of parts of rows that are kept.
    """

    objective: str = "error"
    max_depth: int = 3
    max_leaf_nodes: int | None = None
    leaf_penalty: float = 0.0
    binary: bool = False
    unknown_best: bool = False
    memory: int = MEMORY

    @classmethod
    def of(cls, parameters: TreeParameters, rows: TrainingRows) -> SearchRules:
        """Return the rules that the parameters state for a tree of these rows."""
        leaves = parameters.max_leaf_nodes
        return cls(
            objective=parameters.objective,
            max_depth=rows.count if parameters.depth is None else min(int(parameters.depth), rows.count),
            max_leaf_nodes=None if leaves is None else int(leaves),
            leaf_penalty=parameters.penalty,
            binary=parameters.categories == "binary",
            unknown_best=parameters.unknown == "best",
        )


@dataclass(frozen=True, eq=False)
class Frontier:
    """Sets of questions at the root that together are all of them, with bounds; one entry each.

    Every tree whose root asks ``column`` at t, low <= t <= high, costs at least left + right + unknown.

    Attributes
    ----------
    column, low, high : ndarray of int32
        The search column, and the lowest and highest t.
    left_leaves, unknown_leaves : ndarray of int32
        Most leaves on the left of these trees, and in the part of unknown values; 0 for any number.
    left, right, unknown : ndarray of float64
        Bounds of the rows with rank <= low, of those with rank > high, and of those that are unknown: no tree
        with one question less above its leaves costs less, penalties included. For a branch each ``left`` is
        the bound of all branches together.
    """

    column: NDArray[np.int32]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    left_leaves: NDArray[np.int32]
    unknown_leaves: NDArray[np.int32]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    unknown: NDArray[np.float64]

    def about(self, columns: SearchColumns, total: float) -> FrontierOfColumns:
        """Return it with its search columns and bounds that are no averages, of rows of this total weight."""
        arrays = {one.name: getattr(self, one.name) for one in fields(self)}
        bounds = {name: arrays[name] * total for name in ("left", "right", "unknown")}
        return FrontierOfColumns(**arrays | bounds, columns=columns.meaning, kinds=columns.kinds)


@dataclass(frozen=True, eq=False)
class FrontierOfColumns(Frontier):
    """A frontier, and what the ranks of its search columns are."""

    columns: tuple[SearchColumn, ...]
    kinds: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class SearchRecord:
    """What a fit keeps of a search: all that its certificate rests on.

    What the search columns of the frontier are follows from the rows and the rules.

    Attributes
    ----------
    objective, max_depth, max_leaf_nodes, leaf_penalty
        As in :class:`SearchRules`.
    lower_bound : float
        No tree of this depth and number of leaves costs less.
    unit : float
        Costs are whole numbers of this inside the search; 0 where they are exact.
    weight_rounding : float
        What the cost of a tree may differ by since the weights of rows are whole numbers as well.
    weighted : bool
        Whether rows count differently.
    all_groupings : bool
        Whether every grouping of categories was tried.
    frontier : Frontier
    history : tuple of Record
        One whenever the best tree or the bound improved.
    """

    objective: str
    max_depth: int
    max_leaf_nodes: int | None
    leaf_penalty: float
    lower_bound: float
    unit: float
    weight_rounding: float
    weighted: bool
    all_groupings: bool
    frontier: Frontier
    history: tuple[Record, ...]

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: not what the search took, so that the same fit twice is the same."""
        return vars(self) | {"history": tuple(record._replace(seconds=0.0) for record in self.history)}


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search has found; all costs are averages: divided by the total weight of the rows.

    Attributes
    ----------
    tree : FittedTree
        The best tree found.
    objective : float
        What it costs, penalties included.
    lower_bound : float
        No tree of this depth and number of leaves costs less.
    complete : bool
        Whether the search came to its end: the tree is the best there is.
    frontier : Frontier
    history : list of Record
        One whenever the best tree or the bound improved; seconds are those of the budget.
    columns : SearchColumns
        What the frontier is about.
    unit : float
        Costs are whole numbers of this inside the search; 0 where they are exact.
    """

    tree: FittedTree
    objective: float
    lower_bound: float
    complete: bool
    frontier: Frontier
    history: list[Record]
    columns: SearchColumns
    unit: float

    def record(self, rows: TrainingRows, rules: SearchRules) -> SearchRecord:
        """Return what a fit to these rows keeps.

        That a tree has a leaf needs no frontier. A search that was stopped before it knew more has begun
        items whose bounds are none yet.
        """
        frontier = self.frontier
        if self.lower_bound <= rules.leaf_penalty + self.unit:
            frontier = Frontier(**{one.name: getattr(frontier, one.name)[:0] for one in fields(frontier)})
        return SearchRecord(
            objective=rules.objective,
            max_depth=rules.max_depth,
            max_leaf_nodes=rules.max_leaf_nodes,
            leaf_penalty=rules.leaf_penalty,
            lower_bound=self.lower_bound,
            unit=self.unit,
            weight_rounding=_weight_rounding(rows, rules.objective, self.unit),
            weighted=rows.weight is not None and bool(np.ptp(rows.weight[rows.counting]) > 0),
            all_groupings=self.columns.all_groupings,
            frontier=frontier,
            history=tuple(self.history),
        )


def search(
    rows: TrainingRows,
    rules: SearchRules,
    budget: Budget,
    cutoff: float = math.inf,
    criterion: str = "entropy",
    left_out: Collection[int] = (),
) -> SearchResult:
    """Return the best tree, or the best one found when the budget ran out.

    Parameters
    ----------
    rows : TrainingRows
        At least one of them counts.
    rules : SearchRules
    budget : Budget
    cutoff : float
        Only trees that cost less, as an average, are looked for.
    criterion : str
        What the impurities of the tree are.
    left_out : collection of int
        Columns of the table that the tree does not ask.
    """
    columns = search_columns(rows, rules.binary, rules.unknown_best, left_out)
    begun = budget.seconds
    problem = _Problem(rows, rules)
    depth = min(rules.max_depth, rows.count)  # no tree of these rows is deeper
    found = problem.solve(columns.ranks, columns.kinds, slice(None), depth, budget, cutoff)
    column, rank, cost, bound, complete, frontier, history, unit = found
    if not complete:
        budget.exhausted()  # notes why
    *questions, left, right, unknown = frontier
    total = problem.total
    exact = rules.objective == "error" and rows.weight is None and rules.leaf_penalty == 0.0
    return SearchResult(
        tree=fitted_tree(columns, column, rank, rows, criterion),
        objective=cost / total,
        lower_bound=bound / total,
        complete=bool(complete),
        frontier=Frontier(*questions, *(part / total for part in (left, right, unknown))),
        history=[
            Record(number, begun + float(seconds), float(cost) / total, float(cost - bound) / total)
            for number, (seconds, cost, bound) in enumerate(zip(*history, strict=True), start=1)
        ],
        columns=columns,
        unit=0.0 if exact else unit / total,
    )


def _weight_rounding(rows: TrainingRows, objective: str, unit: float) -> float:
    """Return how much another cost, as an average, a tree has for weights that are whole numbers of a unit.

    With rows i whose weights change by d_i, the errors change by sum_i |d_i| at most, and entropies, but for
    terms of second order, by sum_i |d_i| ln(W / w_c), with W and w_c those of the leaf and class of i: the
    logarithm is ln(classes) + ln(the largest weight / the smallest one) at most, on average over the rows.
    """
    _, weight = labels_and_weight(rows)
    if weight is None or unit == 0.0:
        return 0.0
    whole = 2.0 ** round(math.log2(unit * rows.weight_sum))  # a power of two, which an average is not
    lost = np.abs(weight - whole * np.rint(weight / whole))
    if objective == "error":
        return float(lost.sum()) / rows.weight_sum
    factor = math.log(rows.classes) + math.log(float(weight.max()) / float(weight.min()))
    return float(lost.max()) * lost.size * factor / rows.weight_sum


class _Problem:
    """The rows and rules of all searches of one fit, as the native loop takes them."""

    def __init__(self, rows: TrainingRows, rules: SearchRules) -> None:
        self._rules, self._classes = rules, rows.classes
        self.labels, self._weight = labels_and_weight(rows)
        self.total = rows.weight_sum

    def solve(
        self, ranks: Array, kinds: Array, chosen: Any, depth: int, budget: Budget, cutoff: float = math.inf
    ) -> tuple[Any, ...]:
        """Return what the native search finds for the chosen rows; the cutoff is an average."""
        return core.search_tree(
            ranks,
            kinds,
            self.labels[chosen],
            None if self._weight is None else self._weight[chosen],
            self._classes,
            self._rules.objective,
            depth,
            self._rules.max_leaf_nodes or 0,
            self._rules.leaf_penalty * self.total,
            budget.seconds_left,
            budget.flag,
            0,  # all threads
            cutoff * self.total,
            self._rules.memory,
        )


def lookahead(
    rows: TrainingRows,
    rules: SearchRules,
    max_depth: int | None,
    budget: Budget,
    criterion: str = "entropy",
) -> FittedTree:
    """Return the tree each of whose questions is the first of the best tree of depth two at its node.

    A node is a leaf where no tree of depth two costs less than a leaf does. What the budget does not allow
    for is left unsplit.

    Parameters
    ----------
    rows : TrainingRows
        At least one of them counts.
    rules : SearchRules
        But for its depth and number of leaves.
    max_depth : int or None
        Most questions above a leaf.
    budget : Budget
    criterion : str
        What the impurities of the tree are.
    """
    columns = search_columns(rows, rules.binary, rules.unknown_best)
    problem = _Problem(rows, replace(rules, max_leaf_nodes=None))
    column, rank, stopped = list[int](), list[int](), list[bool]()
    waiting = [(np.arange(rows.count), math.inf if max_depth is None else max_depth)]
    while waiting:
        here, levels = waiting.pop()
        questions, complete = [(NO_NODE, NO_RANK)], True
        if levels > 0 and (problem.labels[here] != problem.labels[here[0]]).any():
            questions, complete = _best_of_node(columns, here, min(levels, LOOKAHEAD), problem, budget)
        # At the last levels, or where time is up, the tree that was found stays as it is.
        if complete and levels > LOOKAHEAD and questions[0][0] != NO_NODE:
            parts = columns.parts(*questions[0], here)
            waiting += [(part, levels - 1) for part in reversed(parts)]
            questions = questions[:1]
        for asked, t in questions:
            column.append(asked)
            rank.append(t)
            stopped.append(not complete)
    return fitted_tree(columns, np.array(column), np.array(rank), rows, criterion, np.array(stopped))


def _best_of_node(
    columns: SearchColumns, rows: Array, depth: float, problem: _Problem, budget: Budget
) -> tuple[list[tuple[int, int]], bool]:
    """Return the questions of the best tree of these rows, and whether it is the best for certain."""
    if budget.exhausted():
        return [(NO_NODE, NO_RANK)], False
    here = NodeColumns.of(columns, rows)
    if not here.kinds.size:  # all rows are equal
        return [(NO_NODE, NO_RANK)], True
    column, rank, _, _, complete, *_ = problem.solve(here.ranks, here.kinds, rows, int(depth), budget)
    if not complete:
        budget.exhausted()  # notes why
    return here.questions(column, rank), bool(complete)


# -- how long it may take ------------------------------------------------------------------------------------


def warn_of_depth(rows: TrainingRows, rules: SearchRules, budget: Budget) -> None:
    """Warn, where a search is for deep trees, of how long it may take.

    The search is made for depths two and three, and each level more is taken to need as many times longer as
    the third did.
    """
    if rules.max_depth <= DEEP or (rows.labels[rows.counting] == rows.labels[rows.counting][0]).all():
        return
    seconds = [_seconds(rows, replace(rules, max_depth=depth), budget) for depth in (2, 3)]
    if budget.interrupted:
        return
    times = max(seconds[1] / seconds[0], LEAST_TIMES)
    most = seconds[1] * times ** (rules.max_depth - 3)
    least = "more than " if seconds[1] >= PROBE else ""
    warn(
        SixfoldWarning(
            f"The search for the best tree of depth {rules.max_depth} may take {least}{_duration(most)}: "
            f"depth 2 took {seconds[0]:.2g} s and depth 3 {least}{seconds[1]:.2g} s, and each level takes "
            "longer by about that factor. Set time_limit, at which the best tree so far is kept with a "
            "bound, a smaller max_depth, or search='lookahead'. Ctrl-C also keeps the best tree so far."
        )
    )


def _seconds(rows: TrainingRows, rules: SearchRules, budget: Budget) -> float:
    """Return how long a search takes, or ``PROBE`` if that is longer."""
    probe = Budget(time_limit=PROBE)
    probe.flag = budget.flag  # Ctrl-C ends it
    columns = search_columns(rows, rules.binary, rules.unknown_best)
    problem, begun = _Problem(rows, rules), probe.seconds
    found = problem.solve(columns.ranks, columns.kinds, slice(None), rules.max_depth, probe)
    return max(probe.seconds - begun, 1e-5) if found[4] else PROBE


def _duration(seconds: float) -> str:
    """Return a rough duration in the largest unit that fits.

    >>> _duration(0.4), _duration(5000.0), _duration(1e30)
    ('a second', '1.4 hours', 'more than a thousand years')
    """
    units = (("year", 31_557_600.0), ("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0), ("second", 1.0))
    if seconds > 1e3 * units[0][1]:
        return "more than a thousand years"
    for name, size in units:
        if seconds >= size:
            count = float(f"{seconds / size:.2g}")
            return f"{count:g} {name}{'s' * (count != 1)}"
    return "a second"
