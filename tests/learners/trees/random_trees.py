"""Random trees of every kind of split, for hypothesis."""

import numpy as np
from hypothesis import strategies as st

from learners.trees.small_trees import build, leaf, split
from sixfold.explain.trees.names import TreeNames
from sixfold.solvers.trees.fitted_tree import Reason

CODES = 5  # of each column of categories


@st.composite
def trees(draw, max_depth=5, classes=3, names=None):
    """Return a tree whose tests on a path never contradict each other, and its names."""
    kinds = draw(st.lists(st.sampled_from([0, 1]), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    full = draw(st.floats(0.3, 1.0))
    free = [(set(range(CODES)) if kind else (-8.0, 8.0), True) for kind in kinds]
    tree = build(_grow(rng, kinds, free, max_depth, classes, full), kinds)
    text = st.text(max_size=30) if names is None else names
    columns = tuple(draw(text) for _ in kinds)
    categories = tuple(tuple(draw(text) for _ in range(CODES)) if kind else None for kind in kinds)
    return tree, TreeNames(columns, categories, tuple(f"{draw(text)}{c}" for c in range(classes)))


def _grow(rng, kinds, free, depth, classes, full):
    column = int(rng.integers(len(kinds)))
    values, unknown = free[column]
    few = len(values) < 2 if kinds[column] else values[1] - values[0] < 1e-3
    if depth == 0 or rng.random() > full or few:
        totals = rng.integers(0, 9, classes)
        totals[rng.integers(classes)] += 1
        return leaf(
            *totals.tolist(), reason=int(rng.choice([Reason.LIMIT, Reason.STOPPED, Reason.EXHAUSTED]))
        )

    def below(values, unknown):
        inner = [*free]
        inner[column] = (values, unknown)
        return _grow(rng, kinds, inner, depth - 1, classes, full)

    where = rng.choice(["none", "first", "own"]) if unknown else "none"
    own = below(set() if kinds[column] else (0.0, 0.0), True) if where == "own" else None
    if kinds[column]:
        groups = [[code] for code in sorted(values)]
        if rng.random() < 0.5:
            groups = [sorted(values)[:1], sorted(values)[1:]]
        nodes = [below(set(group), where == "first" and i == 0) for i, group in enumerate(groups)]
        branches = {code: node for group, node in zip(groups, nodes, strict=True) for code in group}
        return split(column, branches, unknown=nodes[0] if where == "first" else own)
    low, high = values
    if own is not None and rng.random() < 0.3:
        return split(column, {0: below(values, False)}, unknown=own, threshold=np.inf)
    threshold = float(rng.uniform(low, high))
    left, right = below((low, threshold), where == "first"), below((threshold, high), False)
    return split(column, (left, right), unknown=left if where == "first" else own, threshold=threshold)


def random_rows(tree, rows, seed):
    """Return rows with unknown values and categories that were never seen."""
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(-9, 9, (rows, tree.kinds.size))
    codes = rng.integers(-1, CODES, (rows, tree.kinds.size))
    X = np.where(tree.kinds == 1, codes, numbers)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X
