"""Which columns a node looks at where it looks at some only: drawn anew from the seed, in plain Python.

A node has a number that the seed and the way to it alone decide,

    path(root) = mix(seed),    path(child k) = mix(path(node) + k + 1),    all modulo 2^64

and its columns are shuffled (Fisher and Yates) with mix(path), mix(mix(path)), ... as random numbers. Source
of mix: Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014. Engines do so
in native code (``native/trees/columns/column_order.hpp``).
"""

from __future__ import annotations

from collections.abc import Iterator

from sixfold.solvers.trees.fitted_tree import FittedTree

LOW_BITS = (1 << 64) - 1


def mix(x: int) -> int:
    """Return a number that looks random, of each number below 2^64 another.

    >>> hex(mix(0))
    '0xe220a8397b1dcdaf'
    """
    x = (x + 0x9E3779B97F4A7C15) & LOW_BITS
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & LOW_BITS
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & LOW_BITS
    return x ^ (x >> 31)


def node_paths(tree: FittedTree, seed: int) -> list[int]:
    """Return the number of each node from which its columns are drawn."""
    paths = [mix(seed)] * tree.node_count
    for node in (~tree.is_leaf).nonzero()[0].tolist():
        for k, child in enumerate(tree.children(node)):
            paths[child] = mix((paths[node] + k + 1) & LOW_BITS)
    return paths


def drawn_columns(path: int, columns: int) -> Iterator[int]:
    """Yield all columns in the order in which a node looks at them."""
    order = list(range(columns))
    for place in range(columns):
        path = mix(path)
        other = place + path % (columns - place)
        order[place], order[other] = order[other], order[place]
        yield order[place]
