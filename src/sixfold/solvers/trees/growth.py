"""ID3: grow a tree from the constant model, each split the best there is at its node.

Of all columns and all thresholds (or categories) the split with the least weighted average entropy is taken,

    H(S_1, ..., S_k) = sum_j |S_j| / |S| H(S_j),      H(S) = - sum_c p_c log2 p_c,

and its parts are grown in the same way, until rows are of one class, equal in every column, or at a limit.
Ties go to the lowest column, then to the lowest threshold; averages within 1e-12 are ties. No split that a
native loop chooses is worse than one that an exhaustive search would find.

Sparse tables give the same tree without writing zeros out. What is not stored is 0, like zeros that are, and
a stored NaN is unknown. At a node with class totals w_c the rows that are 0 in a column have

    w_c(zeros) = w_c - sum of the stored rows of class c,

so that a column costs what it has stored among the rows of the node. All open nodes of a level are searched
in one pass: each column's entries, sorted by value once, stand in groups, one for each open node, and follow
their rows to the children (as in SPRINT: Shafer, Agrawal and Mehta 1996). A level costs time in proportion to
the entries of its open nodes, and lists take 20 bytes an entry. The loops are
``native/trees/growth_impl.hpp`` and ``native/trees/sparse/sparse_tree.cpp``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.data.blocks import let_go, mapping_of
from sixfold.data.stratified_split import held_out
from sixfold.errors import InputError, check_number, check_option, check_seed
from sixfold.solvers.trees.fitted_tree import LEAF_THRESHOLD, FittedTree, sparse_parts

if TYPE_CHECKING:
    from sixfold.solvers.trees.optimal import SearchRecord

Array = NDArray[Any]

CRITERIA = ("entropy", "gini", "gain_ratio", "homogeneous")
ENTROPIES = ("entropy", "log_loss", "gain_ratio")  # the criteria whose unit is bits or nats
LIMITS = (
    "max_depth", "min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf", "max_features",
    "max_leaf_nodes", "min_impurity_decrease",
)  # fmt: skip
SEARCHES = ("greedy", "lookahead", "optimal")
OBJECTIVES = ("error", "entropy")
# What makes sense only where each split is chosen by itself.
GREEDY_ONLY = (
    "min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf", "max_features",
    "min_impurity_decrease",
)  # fmt: skip
OPTIMAL_DEPTH = 3  # of a search for the best tree where none is given
DEEPEST_SEARCH = 100
TIE = 1e-12  # averages this close are equal
TURNED_ROWS = 1 << 17  # of a table in a file that are turned at a time


@dataclass(frozen=True)
class GrowthRules:
    """How a split is chosen, and when a node is not split.

    Attributes
    ----------
    criterion : {"entropy", "gini", "gain_ratio", "homogeneous"}
    binary : bool
        Whether categories are put into two groups instead of a branch each.
    unknown_best : bool
        Whether unknown values join the child that suits best instead of having a branch.
    max_depth : int or None
    min_samples_split : int
    min_samples_leaf, min_leaf_weight : int and float
        The fewest rows and the least total weight of at least two of the children of a split.
    min_impurity_decrease : float
        The least gain, times the share of the weight that the node has; in bits for entropies.
    max_columns : int or None
        How many columns are looked at in a node; None for all.
    seed : int
        Of the choice of columns.
    """

    criterion: str = "entropy"
    binary: bool = False
    unknown_best: bool = False
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_leaf_weight: float = 0.0
    min_impurity_decrease: float = 0.0
    max_columns: int | None = None
    seed: int = 0

    @property
    def limits(self) -> tuple[float, ...]:
        """Return when a node is not split, and which columns are drawn, as the native loops take it."""
        return (
            -1 if self.max_depth is None else self.max_depth,
            self.min_samples_split,
            self.min_samples_leaf,
            self.min_leaf_weight,
            self.min_impurity_decrease,
            self.max_columns or 0,
            self.seed,
        )


@dataclass(frozen=True)
class TrainingRows:
    """What a tree grows from.

    Attributes
    ----------
    X : ndarray or CSR array of shape (rows, columns)
        Numbers and codes of categories; NaN is unknown.
    kinds : ndarray of uint8, shape (columns,)
        0 for numbers, 1 for categories.
    labels : ndarray of int32, shape (rows,)
        The class of each row, counted from 0.
    classes : int
        How many classes there are.
    weight : ndarray of float64, shape (rows,), or None
        How much each row counts, in units of 2 ** weight_exponent.
    rows : ndarray of int64, or None
        Which rows count, in order; None for all.
    weight_exponent : int
    """

    X: Any
    kinds: NDArray[np.uint8]
    labels: NDArray[np.int32]
    classes: int
    weight: NDArray[np.float64] | None
    rows: NDArray[np.int64] | None = None
    weight_exponent: int = 0

    @classmethod
    def of(cls, X: Any, kinds: Array, labels: Array, classes: int, weight: Array | None) -> TrainingRows:
        """Return rows of which those with weight count."""
        if weight is None:
            return cls(X, kinds, labels, classes, None)
        exponent = _mean_exponent(weight)
        weight = np.ldexp(weight, -exponent)
        rows = None if weight.all() else np.flatnonzero(weight)
        return cls(X, kinds, labels, classes, weight, rows, exponent)

    @property
    def counting(self) -> NDArray[np.bool_]:
        """Return which rows count."""
        counts = np.zeros(self.labels.size, dtype=bool)
        counts[slice(None) if self.rows is None else self.rows] = True
        return counts

    @property
    def count(self) -> int:
        """Return how many rows count."""
        return self.labels.size if self.rows is None else self.rows.size

    @property
    def weight_sum(self) -> float:
        """Return their total weight."""
        if self.weight is None:
            return float(self.count)
        return float((self.weight if self.rows is None else self.weight[self.rows]).sum())

    def without(self, left_out: NDArray[np.bool_]) -> TrainingRows:
        """Return the same rows of which these do not count."""
        return replace(self, rows=np.flatnonzero(self.counting & ~left_out))


def _mean_exponent(weight: Array) -> int:
    """Return the exponent of the power of two that is next to the mean of the weights above 0.

    The criteria have squares and logarithms of weights: divided by that power, which is exact, these neither
    overflow nor vanish.
    """
    exponent = int(np.frexp(weight.max())[1])
    mean = np.ldexp(weight, -exponent).sum() / np.count_nonzero(weight)
    return exponent + round(math.log2(mean))


def grow(rows: TrainingRows, rules: GrowthRules, budget: Budget) -> FittedTree:
    """Return the tree that the rules grow; what the budget does not allow for is left unsplit."""
    given = rows.labels, rows.weight, rows.rows, rows.classes
    left = budget.seconds_left, budget.flag
    if sp.issparse(rows.X):
        parts, limits = sparse_parts(rows.X.tocsc()), (rules.criterion, rules.unknown_best, *rules.limits)
        grown = core.grow_sparse_tree(*parts, rows.X.shape[0], *given, *limits, *left)
    else:
        choice = rules.criterion, rules.binary, rules.unknown_best
        grown = core.grow_tree(column_by_column(rows.X), rows.kinds, *given, *choice, *rules.limits, *left)
    *arrays, completed = grown
    if not completed:
        budget.exhausted()  # notes why
    tree = FittedTree(*(rows.kinds, *arrays, rules.criterion))
    tree.threshold[tree.is_leaf] = LEAF_THRESHOLD
    return tree


def column_by_column(X: Array) -> Array:
    """Return rows that are mapped from a file with each column by itself, where large arrays go to files.

    The exact search of a few bins reads single values of one column in the order of rows. Where pages of rows
    come and go, each of them costs a page of X: 8,000,000 x 30 rows took 39 s, and 12 s with columns apart.
    """
    mapping = mapping_of(X)
    if mapping is None:
        return X
    before = core.spilled_bytes()
    turned = np.empty(X.shape[::-1], dtype=X.dtype).T
    if core.spilled_bytes() - before < X.nbytes:  # it would be in memory
        return X
    for start in range(0, len(X), TURNED_ROWS):
        some = slice(start, start + TURNED_ROWS)
        turned[some] = X[some]
        let_go(mapping, X, some)
        core.look_at_memory()
    return turned


# -- what the user asks for ----------------------------------------------------------------------------------

_COUNT = "a whole number that is at least {}, or a share above 0 and at most 1.0"


@dataclass(frozen=True)
class TreeParameters:
    """The parameters of a decision tree as users give them, see :class:`~sixfold.DecisionTreeClassifier`.

    Limits may be shares of rows, columns and weight, which become numbers of the rows that a tree grows from;
    thresholds on entropies are in the unit of ``base``, and become bits.
    """

    criterion: str = "entropy"
    splitter: str = "best"
    max_depth: int | None = None
    min_samples_split: float = 2
    min_samples_leaf: float = 1
    min_weight_fraction_leaf: float = 0.0
    max_features: Any = None
    random_state: Any = None
    max_leaf_nodes: int | None = None
    min_impurity_decrease: float = 0.0
    ccp_alpha: float = 0.0
    base: Any = 2
    categories: str = "multiway"
    unknown: str = "branch"
    prune: str = "none"
    validation_fraction: float = 0.25
    search: str = "greedy"
    objective: str = "entropy"
    leaf_penalty: float = 0.0

    def check(self) -> None:
        """Raise an :class:`InputError` about the first parameter that makes no sense."""
        check_option("criterion", self.criterion, (*CRITERIA, "log_loss"))
        if self.splitter != "best":
            raise InputError(
                f"splitter={self.splitter!r} is not an option: every split is the best of its node. For "
                "trees that differ from each other, set max_features and random_state."
            )
        check_number("max_depth", self.max_depth, at_least=0, whole=True, optional=True)
        _check_count("min_samples_split", self.min_samples_split, 2)
        _check_count("min_samples_leaf", self.min_samples_leaf, 1)
        check_number("min_weight_fraction_leaf", self.min_weight_fraction_leaf, at_least=0)
        if self.min_weight_fraction_leaf > 0.5:
            raise InputError(
                f"min_weight_fraction_leaf={self.min_weight_fraction_leaf!r} is out of range: no split "
                "leaves more than half of the weight on both sides. Use at most 0.5."
            )
        if isinstance(self.max_features, str):
            check_option("max_features", self.max_features, ("sqrt", "log2", None), also=_COUNT.format(1))
        elif self.max_features is not None:
            _check_count("max_features", self.max_features, 1)
        check_number("max_leaf_nodes", self.max_leaf_nodes, at_least=2, whole=True, optional=True)
        check_number("min_impurity_decrease", self.min_impurity_decrease, at_least=0)
        check_number("ccp_alpha", self.ccp_alpha, at_least=0)
        if not isinstance(self.base, Real | str) or self.base not in (2, "e", math.e):
            raise InputError(f"base={self.base!r} is not an option: entropies are in bits (2) or nats ('e').")
        check_option("categories", self.categories, ("multiway", "binary"))
        check_option("unknown", self.unknown, ("branch", "best"))
        check_option("prune", self.prune, ("none", "reduced_error", "cost_complexity"))
        check_number("validation_fraction", self.validation_fraction, above=0)
        if self.validation_fraction >= 1:
            raise InputError(
                f"validation_fraction={self.validation_fraction!r} is out of range: rows to grow from have "
                "to be left. Use a share below 1."
            )
        check_seed(self.random_state)
        check_option("search", self.search, SEARCHES)
        check_option("objective", self.objective, OBJECTIVES)
        check_number("leaf_penalty", self.leaf_penalty, at_least=0)
        self._check_search()

    def _check_search(self) -> None:
        """Raise where a parameter makes no sense for this way of searching."""
        if self.search == "greedy":
            if self.objective != "entropy":
                raise InputError(
                    f"objective={self.objective!r} is what search='optimal' and search='lookahead' look for, "
                    "but search='greedy' takes the best split by criterion. Set search, or criterion."
                )
            if self.leaf_penalty:
                raise InputError(
                    f"leaf_penalty={self.leaf_penalty!r} is for search='optimal' and search='lookahead', but "
                    "the search is 'greedy'. Set ccp_alpha, by which a grown tree is cut, or search."
                )
            return
        usual = TreeParameters()
        for name in GREEDY_ONLY:
            if getattr(self, name) != getattr(usual, name):
                raise InputError(
                    f"{name}={getattr(self, name)!r} limits how single splits are chosen, but "
                    f"search={self.search!r} looks for whole trees. Leave it at {getattr(usual, name)!r}, "
                    "and set max_depth, max_leaf_nodes or leaf_penalty for a smaller tree."
                )
        if self.search == "optimal" and (self.max_depth or 0) > DEEPEST_SEARCH:
            raise InputError(
                f"max_depth={self.max_depth!r} is out of range: search='optimal' is for at most "
                f"{DEEPEST_SEARCH}, and already takes very long for 6. Set search='lookahead' for deep trees."
            )

    @property
    def depth(self) -> int | None:
        """Return the most splits above a leaf; a search for the best tree has a limit in any case."""
        if self.search == "optimal" and self.max_depth is None:
            return OPTIMAL_DEPTH
        return self.max_depth

    @property
    def penalty(self) -> float:
        """Return what a leaf costs a search: a share of errors, or nats."""
        in_bits = self.objective == "entropy" and self.base == 2
        return float(self.leaf_penalty) * (math.log(2.0) if in_bits else 1.0)

    @property
    def unit(self) -> float:
        """Return what a bit is in the unit of the impurities."""
        return math.log(2.0) if self.base != 2 and self.criterion in ENTROPIES else 1.0

    @property
    def alpha(self) -> float:
        """Return what a leaf costs, in bits."""
        return float(self.ccp_alpha) / self.unit

    @property
    def limits(self) -> dict[str, Any]:
        """Return the parameters that may leave a node unsplit, as they were given."""
        usual = TreeParameters()
        given = {name: getattr(self, name) for name in LIMITS if getattr(self, name) != getattr(usual, name)}
        if self.search != "greedy":
            given |= {"objective": self.objective, "leaf_penalty": self.leaf_penalty}
        return given if self.depth is None else given | {"max_depth": self.depth}

    @property
    def holds_out(self) -> bool:
        """Return whether pruning needs rows that the tree is not grown from."""
        return self.prune == "reduced_error" or (self.prune == "cost_complexity" and self.alpha == 0.0)

    def columns_looked_at(self, columns: int) -> int:
        """Return how many columns are looked at in a node, as scikit-learn counts them."""
        if self.max_features is None:
            return columns
        if self.max_features == "sqrt":
            return max(1, int(math.sqrt(columns)))
        if self.max_features == "log2":
            return max(1, int(math.log2(columns)))
        if isinstance(self.max_features, Integral):
            return int(self.max_features)
        return max(1, int(self.max_features * columns))

    def draw_seed(self, columns: int) -> int:
        """Return a number that draws columns and held-out rows, where any are drawn."""
        if self.columns_looked_at(columns) >= columns and not self.holds_out:
            return 0
        largest = np.iinfo(np.int32).max
        if isinstance(self.random_state, np.random.Generator):
            return int(self.random_state.integers(largest))
        return int(check_random_state(self.random_state).randint(largest))

    def rules(self, rows: TrainingRows, seed: int) -> GrowthRules:
        """Return the rules for a tree of these rows."""
        count, columns = rows.count, rows.X.shape[1]
        looked_at = self.columns_looked_at(columns)
        return GrowthRules(
            criterion="entropy" if self.criterion == "log_loss" else self.criterion,
            binary=self.categories == "binary",
            unknown_best=self.unknown == "best",
            # What no tree of these rows can reach is the same, however far it lies beyond.
            max_depth=None if self.depth is None else min(int(self.depth), count),
            min_samples_split=min(max(2, _count(self.min_samples_split, count)), count + 1),
            min_samples_leaf=min(max(1, _count(self.min_samples_leaf, count)), count),
            min_leaf_weight=float(self.min_weight_fraction_leaf) * rows.weight_sum,
            min_impurity_decrease=float(self.min_impurity_decrease) / self.unit,
            max_columns=looked_at if looked_at < columns else None,
            seed=seed,
        )


def _check_count(parameter: str, value: Any, least: int) -> None:
    """Raise unless the value is a whole number from ``least`` on, or a share."""
    right_kind = isinstance(value, Real) and not isinstance(value, bool)
    whole = isinstance(value, Integral)
    if right_kind and (value >= least if whole else 0 < value <= 1):
        return
    problem = "is out of range" if right_kind else f"is of type {type(value).__name__}"
    raise InputError(f"{parameter}={value!r} {problem}: {_COUNT.format(least)}, is needed.")


def _count(value: float, rows: int) -> int:
    return int(value) if isinstance(value, Integral) else math.ceil(value * rows)


# -- what a fit keeps ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FitRecord:
    """All that a tree was grown by, whatever the parameters of its model say later.

    Attributes
    ----------
    rules : GrowthRules
    fraction : float
        The share of the rows that was held out, where any were.
    left_out : int
        How many rows the tree was not grown from.
    class_weight : dict, "balanced" or None
    all_groupings : bool
        Whether no grouping of categories is better than those that were tried.
    rounded : bool
        Whether different whole numbers of a column are one as float64.
    stopped : bool
        Whether growth was cut short.
    seconds : float
        What growing took.
    method : {"greedy", "lookahead", "optimal"}
        How the tree was looked for.
    search : SearchRecord or None
        What a search for the best tree has found out; None where there was none.
    """

    rules: GrowthRules
    fraction: float
    left_out: int
    class_weight: Any
    all_groupings: bool
    rounded: bool
    stopped: bool
    seconds: float
    method: str = "greedy"
    search: SearchRecord | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: not what growing took, so that the same fit twice is the same."""
        return vars(self) | {"seconds": 0.0}

    def grown_from(self, rows: TrainingRows) -> TrainingRows:
        """Return the rows without those that were held out, which their positions tell."""
        if not self.left_out:
            return rows
        return rows.without(held_out(rows.labels, rows.counting, self.fraction, self.rules.seed))

    @property
    def tried(self) -> list[str]:
        """Say among what every split is the best of its node, where that is not all there is."""
        return ["the columns drawn"] * (self.rules.max_columns is not None) + ["the groupings tried"] * (
            not self.all_groupings
        )
