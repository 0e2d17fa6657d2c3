"""A plain NumPy ID3: every candidate of every column is written out and scored. Slow, short, obviously right.

A candidate is a list that says which child each row goes to. The score of its children with class totals w_kc
and weights W_k = sum_c w_kc is, least being best, with f(x) = x log2 x and W the weight of the node,

    entropy       sum_k f(W_k) - sum_kc f(w_kc)
    gini          sum_k (W_k - sum_c w_kc^2 / W_k)
    gain_ratio    - W gain / info, gain = (f(W) - sum_c f(w_c) - E) / W and info = (f(W) - sum_k f(W_k)) / W,
                  E the score by entropy; each column has only its candidate with the most gain,
                  and only columns with at least the average gain are compared
    homogeneous   W less the weight of the children with rows of one class only

Chosen is the first candidate (lowest column, then in the order in which they are listed here) whose score is
within 1e-12 W of the least. Rows of weight 0 are left out before anything else.
"""

from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

SPLIT, PURE, EXHAUSTED, LIMIT = range(4)
TIE = 1e-12


class Candidate(NamedTuple):
    column: int
    threshold: float
    codes: dict  # of a branch: the number of its child
    unknown: int  # the child of unknown values, -1 where there are none
    part: np.ndarray  # the child of each row


# -- candidates, in their order ------------------------------------------------------------------------


def candidates(x, column, is_category, labels, weight, classes, binary, unknown_best):
    """Return every split of a node's rows by one column."""
    known = ~np.isnan(x)
    if is_category:
        found = list(category_splits(x, known, labels, weight, classes, binary, unknown_best))
    else:
        found = list(number_splits(x, known, unknown_best))
    if known.any() and not known.all():
        found.append(known_or_unknown(x, known, is_category, unknown_best))
    return [Candidate(column, *split, part.astype(np.int16)) for *split, part in found]


def number_splits(x, known, unknown_best):
    for low, high in pairwise(np.unique(x[known])):
        threshold = float(Fraction(low) / 2 + Fraction(high) / 2)  # rounded once
        if not low <= threshold < high:
            threshold = low
        part = np.where(x <= low, 0, 1)
        yield from with_unknown(threshold, {0: 0, 1: 1}, 2, part, known, unknown_best)


def category_splits(x, known, labels, weight, classes, binary, unknown_best):
    present = np.unique(x[known]).astype(int)
    for group_of in groupings(x, present, labels, weight, classes) if binary else one_each(present):
        children = max(group_of.values()) + 1
        part = np.array([group_of.get(code, -1) for code in np.where(known, x, -1).astype(int)])
        yield from with_unknown(np.nan, group_of, children, part, known, unknown_best)


def one_each(present):
    return [{code: k for k, code in enumerate(present)}] if len(present) > 1 else []


def groupings(x, present, labels, weight, classes):
    """Yield which of two children each category goes to; the lowest one goes to child 0."""
    q = len(present)
    if classes > 2 and q <= 8:
        for mask in range(1, 2 ** max(q - 1, 0)):
            yield {code: (mask >> (i - 1)) & 1 if i else 0 for i, code in enumerate(present)}
        return
    for wanted in [1] if classes <= 2 else range(classes):
        share = [weight[(x == code) & (labels == wanted)].sum() / weight[x == code].sum() for code in present]
        order = [present[i] for i in np.argsort(share, kind="stable")]
        for size in range(1, q):
            left = order[:size] if present[0] in order[:size] else order[size:]
            yield {code: int(code not in left) for code in present}


def with_unknown(threshold, codes, children, part, known, unknown_best):
    if known.all():
        yield threshold, codes, -1, part
    else:
        for child in range(children) if unknown_best else [children]:
            yield threshold, codes, child, np.where(known, part, child)


def known_or_unknown(x, known, is_category, unknown_best):
    if is_category:
        threshold, codes = np.nan, dict.fromkeys(np.unique(x[known]).astype(int), 0)
    else:
        threshold, codes = np.inf, {0: 0, 1: 1} if unknown_best else {0: 0}
    return threshold, codes, 1, np.where(known, 0, 1)


# -- scores --------------------------------------------------------------------------------------------


def f(x):
    return x * np.log2(np.where(x > 0, x, 1.0))


def impurity(totals, criterion):
    """Return how mixed a node is: entropy in bits, Gini's index, or whether it is not pure."""
    share = totals / totals.sum()
    if criterion == "gini":
        return 1.0 - (share**2).sum()
    return float((share > 0).sum() > 1) if criterion == "homogeneous" else -f(share).sum()


def children_of(splits, labels, weight, classes):
    """Return rows and class totals of each child of each candidate: (candidates, children, classes)."""
    is_class = (labels[:, None] == np.arange(classes)).astype(np.float64)
    children = max(split.part.max() for split in splits) + 1
    counts, totals = [], []
    for start in range(0, len(splits), 256):  # a few at a time, for memory
        parts = np.array([split.part for split in splits[start : start + 256]])
        inside = (parts[:, None, :] == np.arange(children)[:, None]).astype(np.float64)
        counts.append(inside @ is_class)
        totals.append(inside @ (is_class * weight[:, None]))
    return np.concatenate(counts), np.concatenate(totals)


def scores(counts, w, criterion):
    """Return the score and the average impurity of the children of each candidate."""
    W_k = w.sum(axis=2)
    W = W_k[0].sum()
    entropy = f(W_k).sum(axis=1) - f(w).sum(axis=(1, 2))
    if criterion == "entropy":
        return entropy, entropy / W
    if criterion == "gain_ratio":
        gain = (f(W) - f(w[0].sum(axis=0)).sum() - entropy) / W
        info = (f(W) - f(W_k).sum(axis=1)) / W
        return -W * gain / info, entropy / W
    if criterion == "gini":
        gini = (W_k - (w**2).sum(axis=2) / np.where(W_k > 0, W_k, 1.0)).sum(axis=1)
        return gini, gini / W
    homogeneous = W - np.where((counts > 0).sum(axis=2) == 1, W_k, 0.0).sum(axis=1)
    return homogeneous, homogeneous / W


def are_valid(counts, w, splits, min_samples_leaf, min_leaf_weight):
    """Return which candidates have two children that are large enough.

    A branch for unknown values does not count, but where it is one of two children.
    """
    rows = counts.sum(axis=2)
    lightest = min_leaf_weight - TIE * w[0].sum()  # rounding does not make a child too light
    large = (rows >= max(min_samples_leaf, 1)) & (w.sum(axis=2) >= lightest)
    for i, split in enumerate(splits):
        if split.unknown > 1 and split.unknown not in split.codes.values():
            large[i, split.unknown] = False
    return large.sum(axis=1) >= 2


def rewarding(valid, splits, average, whole):
    """Return the first candidate with the most gain of each column that has at least the average gain."""
    of_column = {}
    for i in valid:
        of_column.setdefault(splits[i].column, []).append(i)
    best = []
    for some in map(np.array, of_column.values()):
        best.append(some[np.argmax(average[some] <= average[some].min() + TIE)])
    gain = whole - average[best]
    return np.array(best)[gain >= gain.mean() - TIE]


# -- growth --------------------------------------------------------------------------------------------


class Growth:
    """A tree on its way: the rows, the rules, and the nodes so far."""

    def __init__(
        self,
        X,
        kinds,
        labels,
        classes,
        weight=None,
        *,
        criterion="entropy",
        binary=False,
        unknown_best=False,
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_leaf_weight=0.0,
        min_impurity_decrease=0.0,
        columns=None,
    ):
        self.X, self.kinds, self.labels, self.classes = np.asarray(X, np.float64), kinds, labels, classes
        self.weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
        self.whole = self.weight[self.weight > 0].sum()
        self.criterion, self.binary, self.unknown_best = criterion, binary, unknown_best
        self.max_depth, self.min_samples_split = max_depth, min_samples_split
        self.leaf = min_samples_leaf, min_leaf_weight
        self.min_impurity_decrease = min_impurity_decrease
        self.columns = columns
        self.nodes = []

    def best_split(self, rows, totals, asked):
        """Return the chosen candidate, or why there is none."""
        labels, weight, splits = self.labels[rows], self.weight[rows], []
        for column in asked:
            of_column = self.X[rows, column], column, self.kinds[column]
            splits += candidates(*of_column, labels, weight, self.classes, self.binary, self.unknown_best)
        if not splits:
            return None, EXHAUSTED
        counts, w = children_of(splits, labels, weight, self.classes)
        score, average = scores(counts, w, self.criterion)
        valid = np.flatnonzero(are_valid(counts, w, splits, *self.leaf))
        if not valid.size:
            return None, LIMIT
        W = totals.sum()
        if self.criterion == "gain_ratio":
            valid = rewarding(valid, splits, average, impurity(totals, self.criterion))
        chosen = valid[np.argmax(score[valid] <= score[valid].min() + TIE * W)]
        gain = impurity(totals, self.criterion) - average[chosen]
        if W / self.whole * gain < self.min_impurity_decrease - TIE:
            return None, LIMIT
        return splits[chosen], SPLIT

    def add(self, rows, depth=0):
        """Add the node of these rows and all below it; return its number."""
        number = len(self.nodes)
        of_class = self.labels[rows][:, None] == np.arange(self.classes)
        totals = (of_class * self.weight[rows][:, None]).sum(axis=0)
        node = {"column": -1, "threshold": np.nan, "branches": {}, "unknown": -1}
        node |= {"rows": len(rows), "totals": totals}
        self.nodes.append(node)
        split = None
        if of_class.any(axis=0).sum() == 1:
            node["reason"] = PURE
        elif depth == self.max_depth or len(rows) < self.min_samples_split:
            node["reason"] = LIMIT
        else:
            asked = range(self.X.shape[1]) if self.columns is None else self.columns[number]
            split, node["reason"] = self.best_split(rows, totals, asked)
        if split is not None:
            number_of = [self.add(rows[split.part == k], depth + 1) for k in range(split.part.max() + 1)]
            node["column"], node["threshold"] = split.column, split.threshold
            node["branches"] = {int(code): number_of[k] for code, k in split.codes.items()}
            node["unknown"] = number_of[split.unknown] if split.unknown >= 0 else -1
        return number


def grow(X, kinds, labels, classes, weight=None, **rules):
    """Return the nodes, depth first, each a dict with the names of the fields of a tree.

    With ``columns`` a list, entry i holds the only columns that node i may ask for.
    """
    growth = Growth(X, kinds, labels, classes, weight, **rules)
    growth.add(np.flatnonzero(growth.weight > 0))
    return growth.nodes


def flat(nodes):
    """Return the arrays of a tree with these nodes, by name."""
    kinds_of = {"column": np.int32, "threshold": np.float64, "unknown": np.int32, "reason": np.uint8}
    kinds_of |= {"rows": np.int64, "totals": np.float64}
    arrays = {name: np.array([node[name] for node in nodes], dtype=kind) for name, kind in kinds_of.items()}
    arrays["threshold"][arrays["column"] < 0] = -2.0  # as scikit-learn has it
    branches = [sorted(node["branches"].items()) for node in nodes]
    arrays["first"] = np.cumsum([0] + [len(some) for some in branches])
    arrays["code"] = np.array([code for some in branches for code, _ in some], dtype=np.int32)
    arrays["child"] = np.array([child for some in branches for _, child in some], dtype=np.int32)
    return arrays


def end(nodes, row, kinds):
    """Return the node at which a row ends."""
    number = 0
    while (column := nodes[number]["column"]) >= 0:
        value = row[column]
        if np.isnan(value):
            following = nodes[number]["unknown"]
        else:
            code = int(value) if kinds[column] else int(value > nodes[number]["threshold"])
            following = nodes[number]["branches"].get(code, -1)
        if following < 0:
            break
        number = following
    return number
