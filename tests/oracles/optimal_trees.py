"""The best tree by brute force, with a memory of row sets. Slow, short, obviously right.

A set of rows S has for every number of leaves l and every depth d the least cost of a tree,

    c(S, 1, d) = leaf(S)
    c(S, l, d) = min over questions, and over l_1 + l_2 + ... = l, of sum_k c(S_k, l_k, d - 1)

with S_k the rows of the children that have any, at least two of them. Leaves cost, with class totals w_c and
W = sum_c w_c,

    error     W - max_c w_c
    entropy   W ln W - sum_c w_c ln w_c

and each the penalty. Of trees that cost the same one with the fewest leaves is taken, of those the one that
asks the first column, then the lowest t. Costs are floats; or, with ``scale`` s, whole numbers of 2^-s:
the weight of a row, x ln x of a sum of weights and the penalty are rounded, each once.

``search_tree`` is called as ``core.search_tree`` is, and answers likewise. For tables of up to 14 rows.
"""

import math
from itertools import product

import numpy as np

ORDERED, WITH_UNKNOWN, BRANCH_EACH = range(3)


class Search:
    """The least costs of sets of rows; a set is a whole number with a bit for each of its rows."""

    def __init__(self, ranks, kinds, labels, weight, classes, objective, penalty, scale):
        self.of_class = [as_set(np.asarray(labels) == wanted) for wanted in range(classes)]
        self.kinds, self.objective, self.scale = np.asarray(kinds), objective, scale
        weight = [1.0] * len(labels) if weight is None else np.asarray(weight, dtype=float).tolist()
        self.weight = [self.in_units(self.rounded(w)) for w in weight]
        self.penalty = self.rounded(penalty)
        self.questions = list(all_questions(np.asarray(ranks), self.kinds))
        self.met = {}
        self.leaf_costs = {}

    def rounded(self, x):
        return x if self.scale is None else round(math.ldexp(x, self.scale))  # to even, as rint does

    def in_units(self, cost):
        return float(cost) if self.scale is None else math.ldexp(float(cost), -self.scale)

    def total(self, rows):
        return math.fsum(w for row, w in enumerate(self.weight) if rows >> row & 1)

    def leaf_cost(self, rows):
        """Return what a leaf of these rows costs, without the penalty."""
        if rows not in self.leaf_costs:
            w = [self.total(rows & some) for some in self.of_class]
            if self.objective == "error":
                w = [self.rounded(one) for one in w]
                self.leaf_costs[rows] = sum(w) - max(w)
            else:
                f = [self.rounded(x_ln_x(one)) for one in (math.fsum(w), *w)]
                cost = f[0] - sum(f[1:])
                self.leaf_costs[rows] = cost if np.count_nonzero(w) > 1 else 0 * cost
        return self.leaf_costs[rows]

    def best(self, rows, depth):
        """Return cost (penalties included) and tree for each number of leaves that a tree may have.

        A tree is a list of nodes, depth first: pairs of search column and t, -1 and -1 in a leaf.
        """
        if (rows, depth) not in self.met:
            found = {1: (self.leaf_cost(rows) + self.penalty, [(-1, -1)])}
            tried = set()
            for column, t, sides in self.questions if depth > 0 else []:
                parts = tuple(rows & side for side in sides if rows & side)
                if len(parts) < 2 or parts in tried:
                    continue
                tried.add(parts)
                together = {0: (0, [(column, t)])}
                for part in parts:
                    together = joined(together, self.best(part, depth - 1))
                for leaves, (cost, tree) in together.items():
                    if leaves not in found or cost < found[leaves][0]:
                        found[leaves] = cost, tree
            self.met[rows, depth] = found
        return self.met[rows, depth]

    def least(self, rows, depth, leaves):
        """Return the least cost of a tree of at most so many leaves (0: of any number), 0 for no rows."""
        if not rows:
            return 0
        trees = self.best(rows, depth).items()
        return min(cost for count, (cost, _) in trees if not leaves or count <= leaves)


def joined(some, others):
    """Return the least costs of one tree of each, by their leaves together."""
    best = {}
    for a, (cost_a, tree_a) in some.items():
        for b, (cost_b, tree_b) in others.items():
            if a + b not in best or cost_a + cost_b < best[a + b][0]:
                best[a + b] = cost_a + cost_b, tree_a + tree_b
    return best


def as_set(inside):
    return sum(1 << row for row in np.flatnonzero(inside).tolist())


def x_ln_x(x):
    return x * math.log(x) if x > 0 else 0.0


def all_questions(ranks, kinds):
    """Yield search column, t and the rows of each side of every question, in their order."""
    for column, (r, kind) in enumerate(zip(ranks, kinds, strict=True)):
        if kind == BRANCH_EACH:
            yield column, 0, [as_set(r == rank) for rank in range(r.max() + 1)]
        elif kind == WITH_UNKNOWN:
            for t in range(1, r.max() + 1):
                yield column, t, [as_set((r > 0) & (r <= t)), as_set(r > t), as_set(r == 0)]
        else:
            for t in range(r.max()):
                yield column, t, [as_set(r <= t), as_set(r > t)]


def search_tree(
    ranks,
    kinds,
    labels,
    weight,
    classes,
    objective,
    depth,
    leaves,
    penalty,
    seconds_left=math.inf,
    flag=None,
    threads=0,
    cutoff=math.inf,
    memory=0,
    *,
    scale=None,
):
    """Return what core.search_tree does, always complete; limits of time and memory mean nothing here."""
    search = Search(ranks, kinds, labels, weight, classes, objective, penalty, scale)
    everything = (1 << len(labels)) - 1
    trees = search.best(everything, depth)
    allowed = [count for count in trees if not leaves or count <= leaves]
    cost, tree = trees[min(allowed, key=lambda count: (trees[count][0], count))]
    bound = search.in_units(cost)
    if bound >= cutoff:  # none is to be found
        cost, tree = trees[1]
    column, rank = np.array(tree, dtype=np.int32).T
    history = tuple(np.array([value]) for value in (0.0, search.in_units(cost), bound))
    found = frontier(search, everything, depth, leaves)
    unit = 1.0 if scale is None else math.ldexp(1.0, -scale)
    return column.copy(), rank.copy(), search.in_units(cost), bound, True, found, history, unit


def frontier(search, everything, depth, leaves):
    """Return every question of the root as an item of its own, with the least costs of its sides.

    Where leaves are limited there is an item for every number of leaves on the left and of unknown values.
    """
    items = []
    for column, t, sides in search.questions if depth > 0 else []:
        if search.kinds[column] == BRANCH_EACH:
            whole = {0: (0, [])}
            for rows in sides:
                whole = joined(whole, search.best(rows, depth - 1)) if rows else whole
            few = [cost for count, (cost, _) in whole.items() if not leaves or count <= leaves]
            items.append((column, 0, 0, 0, 0, search.in_units(min(few, default=math.inf)), 0.0, 0.0))
            continue
        unknown = bool(len(sides) > 2 and sides[2])
        for on_left, apart in (
            product(range(1, leaves), range(1, leaves) if unknown else [0]) if leaves else [(0, 0)]
        ):
            if leaves and on_left + apart + bool(sides[1]) > leaves:
                continue
            most = (on_left, leaves - on_left - apart if leaves else 0, apart)
            costs = [search.least(rows, depth - 1, few) for rows, few in zip(sides, most, strict=False)]
            items.append((column, t, t, on_left, apart, *(search.in_units(cost) for cost in (*costs, 0)[:3])))
    types = (np.int32,) * 5 + (np.float64,) * 3
    arrays = zip(*items, strict=True) if items else [()] * len(types)
    return tuple(np.array(values, dtype=kind) for values, kind in zip(arrays, types, strict=True))
