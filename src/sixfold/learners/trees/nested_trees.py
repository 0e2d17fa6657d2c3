"""All the smaller trees inside a fitted one, for whoever tunes its size.

A split does not depend on what is split elsewhere. So the tree of a smaller ``max_depth`` or of a larger
``ccp_alpha`` is inside the one that was grown, and a row that ends at some node of the large tree ends, in
each smaller one, at the node above it where that one ends. One growth and one way through the tree for each
row give the answers of all of them, the same as those of separate fits.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import Record
from sixfold.errors import InputError, check_number, check_option
from sixfold.solvers.trees.fitted_tree import FittedTree
from sixfold.solvers.trees.pruning import by_alpha, by_depth, ccp_path

Array = NDArray[Any]

SIZES = ("max_depth", "ccp_alpha")


class NestedTrees:
    """Adds the sizes and the answers of all smaller trees to a learner that is a tree."""

    tree_: FittedTree
    ccp_alpha_: float

    @property
    @abstractmethod
    def history_(self) -> list[Record]:
        """One record a level."""

    @abstractmethod
    def _ends(self, X: Any) -> NDArray[np.int32]:
        """Return the node where each row ends."""

    @abstractmethod
    def _require_inside(self, given: dict[str, Any]) -> None:
        """Raise where a limit asks for a larger tree than this one was allowed to be."""

    @property
    def ccp_path_(self) -> Bunch:
        """Every ``ccp_alpha`` at which the tree becomes smaller, with impurity and leaves of what is left.

        Each alpha is there once, with all nodes that it makes leaves; ``cost_complexity_pruning_path`` has an
        entry for each of these nodes, as scikit-learn does, and so repeats alphas.
        """
        check_is_fitted(self, "tree_")
        path = ccp_path(self.tree_, self.tree_.criterion).distinct
        alphas = in_unit(path.ccp_alphas, self.tree_.unit)
        alphas[0] = self.ccp_alpha_  # below, there were larger trees
        return Bunch(ccp_alphas=alphas, impurities=self.tree_.unit * path.impurities, leaves=path.leaves)

    @property
    def depth_path_(self) -> Bunch:
        """Every depth, with the average entropy in nats and the leaves of the tree cut there."""
        check_is_fitted(self, "tree_")
        nodes = np.bincount(self.tree_.depth)
        ended = np.cumsum(np.bincount(self.tree_.depth[self.tree_.is_leaf], minlength=nodes.size))
        return Bunch(
            max_depths=np.arange(nodes.size),
            objectives=np.array([record.objective for record in self.history_]),
            leaves=nodes + np.concatenate([[0], ended[:-1]]),
        )

    def _staged_ends(self, X: Any, by: str, values: Any) -> Iterator[NDArray[np.int32]]:
        """Return the node that answers each row, in the tree of each size."""
        check_is_fitted(self, "tree_")
        check_option("by", by, SIZES)
        if values is None:
            values = self.depth_path_.max_depths if by == "max_depth" else self.ccp_path_.ccp_alphas
        else:
            values = list(values)
            for value in values:
                check_number(by, value, at_least=0, whole=by == "max_depth")
                self._require_inside({by: value})
            if any(after < before for before, after in pairwise(values)):
                raise InputError(f"The values of {by} are not in ascending order. Sort them.")
        ended = self._ends(X)
        if by == "max_depth":
            return by_depth(self.tree_, ended, values)
        path = ccp_path(self.tree_, self.tree_.criterion)
        return by_alpha(self.tree_, ended, path, np.asarray(values, np.float64) / self.tree_.unit)


def in_unit(alphas: Array, unit: float) -> Array:
    """Return alphas in another unit, rounded so that they are no smaller when they come back in bits."""
    given = unit * alphas
    return np.where(given / unit < alphas, np.nextafter(given, np.inf), given)
