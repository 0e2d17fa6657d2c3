"""Decision trees under scikit-learn's names.

scikit-learn grows from numbers as float32 alone, splits them in two, and takes values for equal where

    upper <= float32(lower + 1e-7),

so that it would not part them. Ours parts them wherever they differ: where a chosen threshold lies between
two values that near, the fit is handed back. Of splits that are equally good scikit-learn draws one by
``random_state``; ours takes the lowest column, then the lowest threshold.
"""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import sklearn.tree as sk
from numpy.typing import NDArray
from sklearn.tree._tree import NODE_DTYPE, Tree, _build_pruned_tree_ccp
from sklearn.utils import check_array, check_random_state, compute_sample_weight
from sklearn.utils.validation import validate_data

import sixfold
from sixfold.budget import Budget
from sixfold.learners.trees.decision_tree import TreeSolution
from sixfold.patch.drop_in import DropIn, require
from sixfold.solvers.threads import thread_limit
from sixfold.solvers.trees.fitted_tree import NO_NODE, FittedTree
from sixfold.solvers.trees.growth import TrainingRows, TreeParameters
from sixfold.solvers.trees.pruning import weakest_links

Array = NDArray[Any]

# Half of the widest gap that scikit-learn takes for none: float32(0.5 + 1e-7) - 0.5 is 1.193e-7.
HALF_GAP = 6e-8
PURE = float(np.finfo(np.float64).eps)  # scikit-learn splits no node whose impurity is this small
SAME_ALPHA = 1e-9  # links that differ from ccp_alpha by so little, relatively, may do so by rounding alone
DRAWN_BELOW = 2**31 - 1  # scikit-learn draws one number of this range a fit


class DecisionTreeClassifier(DropIn, sk.DecisionTreeClassifier):
    """scikit-learn's DecisionTreeClassifier, fitted by ours.

    ``tree_`` is made when it is first asked for. From then on it answers, since who has it may change it.
    """

    _answers = ("predict", "predict_proba", "apply")
    _extras = (*DropIn._extras, "log_likelihood_", "export_rules", "export_svg", "pruned", "to_dict")

    def _learner(self) -> Any:
        require(self.splitter == "best", f"splitter={self.splitter!r} draws its thresholds")
        require(self.monotonic_cst is None, "monotonic_cst is not offered")
        require(self.criterion in ("gini", "entropy", "log_loss"), "the criterion is another")
        # What ours takes and scikit-learn refuses.
        require(self.max_depth is None or self.max_depth >= 1, "max_depth is below 1")
        require(
            isinstance(self.min_samples_leaf, Integral) or self.min_samples_leaf < 1, "a leaf has all rows"
        )
        return TreeOfFloat32(
            criterion=self.criterion,
            max_depth=self.max_depth,
            min_samples_split=self.min_samples_split,
            min_samples_leaf=self.min_samples_leaf,
            min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            max_features=self.max_features,
            max_leaf_nodes=self.max_leaf_nodes,
            min_impurity_decrease=self.min_impurity_decrease,
            class_weight=self.class_weight,
            ccp_alpha=self.ccp_alpha,
        )

    def _learn(self, X: Any, y: Any = None, sample_weight: Any = None, check_input: bool = True) -> Any:
        if not (type(y) is np.ndarray and y.ndim == 1):
            require(y is not None, "there is no y")
            y = check_array(y, ensure_2d=False, dtype=None)
            require(y.ndim == 1 or y.shape[1] == 1, "several outputs")
            y = y.ravel()
        model = self._learner()
        if sample_weight is not None and self.class_weight == "balanced":
            # scikit-learn balances the numbers of rows, not their weights.
            sample_weight = sample_weight * compute_sample_weight("balanced", y)
            model.class_weight = None
        model.fit(X, y, sample_weight)
        if isinstance(self.class_weight, dict):
            require(set(self.class_weight) <= set(model.classes_.tolist()), "class_weight has other classes")
        if isinstance(self.random_state, Integral):
            require(0 <= int(self.random_state) < 2**32, "random_state is out of range")
        else:
            check_random_state(self.random_state).randint(0, DRAWN_BELOW)  # as the fit of scikit-learn does
        return model

    def _set_fitted(self, model: Any) -> None:
        self.classes_, self.n_classes_, self.n_outputs_ = model.classes_, np.intp(model.classes_.size), 1
        self.max_features_ = model.max_features_

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("tree_", None)

    def _is_ours(self) -> bool:
        ours = self._ours
        return ours is not None and "tree_" not in self.__dict__ and self.classes_ is ours.classes_

    def __getattr__(self, name: str) -> Any:
        if name == "tree_" and self._ours is not None:
            self.tree_ = as_sklearn_tree(self._ours.tree_)
            return self.tree_
        return super().__getattr__(name)


class TreeOfFloat32(sixfold.DecisionTreeClassifier):
    """Our tree of what scikit-learn reads: numbers as float32, shares of all rows, no unknown values."""

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> TrainingRows:
        table = self._as_float32(X, "csc", reset)
        names = self.__dict__.pop("feature_names_in_", None)  # an array has none
        rows = super()._check(table, y, sample_weight, reset)
        if names is not None:
            self.feature_names_in_ = names
        return rows

    def _as_float32(self, X: Any, sparse_format: str, reset: bool) -> Any:
        """Return the table as scikit-learn reads it; hand back one with NaN or infinity."""
        plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype in (np.float64, np.float32) and X.size
        with np.errstate(over="ignore", invalid="ignore"):
            if plain and (reset or "feature_names_in_" not in vars(self)):
                X = X.astype(np.float32, copy=False)
            else:
                X = validate_data(
                    self,
                    X,
                    reset=reset,
                    dtype=np.float32,
                    accept_sparse=sparse_format,
                    ensure_all_finite=False,
                )
            require(math.isfinite(X.sum()), "a value is unknown or infinite")
        return X

    def _state_problem(self, data: TrainingRows) -> TreeParameters:
        problem, rows = super()._state_problem(data), data.labels.size
        require(self.max_features_ >= self.n_features_in_, "max_features draws columns")
        shares = {"min_samples_split": 2, "min_samples_leaf": 1}
        counts = {
            name: max(least, math.ceil(value * rows))
            for name, least in shares.items()
            if not isinstance(value := getattr(problem, name), Integral)
        }
        return replace(problem, **counts) if counts else problem

    def _solve(self, problem: TreeParameters, data: TrainingRows, budget: Budget) -> TreeSolution:
        alpha = problem.alpha
        solution = super()._solve(replace(problem, ccp_alpha=0.0) if alpha else problem, data, budget)
        tree = solution.tree
        require(not parts_equals(tree, data), "a threshold lies between values that differ by 1e-7 or less")
        if data.weight is not None:
            require(not (tree.impurity[~tree.is_leaf] <= PURE).any(), "a node as good as pure was split")
        return solution._replace(tree=tree.cut(split_at(tree, alpha)), alpha=alpha) if alpha else solution

    def _node_of(self, X: Any) -> NDArray[np.int32]:
        X = self._as_float32(X, "csr", False)
        require(X.shape[1] == self.n_features_in_, "X has other columns")
        with thread_limit(self.n_jobs):
            return self.tree_.apply(X)

    def predict(self, X: Any) -> Array:
        """Return the class with the largest share; shares may be equal where the weights behind are not."""
        return self.classes_[self.tree_.shares[self._node_of(X)].argmax(axis=1)]


def parts_equals(tree: FittedTree, data: TrainingRows) -> bool:
    """Return whether a threshold lies between values that scikit-learn takes for equal, or nearly does.

    It is halfway between them: some row would end in another leaf were all thresholds lower by half the gap.
    """
    if not (np.abs(tree.threshold[tree.column >= 0]) < 2.0).any():  # beyond, float32 is not that fine
        return False
    lower = replace(tree, threshold=tree.threshold - HALF_GAP)
    ended = lower.apply(data.X if data.rows is None else data.X[data.rows])
    reached = np.bincount(ended, minlength=tree.node_count)
    return bool((reached[tree.is_leaf] != tree.rows[tree.is_leaf]).any())


# -- scikit-learn's own tree ---------------------------------------------------------------------------------


def as_sklearn_tree(tree: FittedTree) -> Tree:
    """Return a tree of two branches a node as scikit-learn's own.

    Unknown values, of which there were none, go where there were more rows.
    """
    left, right = tree.children_left, tree.children_right
    nodes = np.zeros(tree.node_count, dtype=NODE_DTYPE)  # zeros between the fields as well
    nodes["left_child"], nodes["right_child"] = left, right
    nodes["feature"], nodes["threshold"], nodes["impurity"] = tree.feature, tree.threshold, tree.impurity
    nodes["n_node_samples"], nodes["weighted_n_node_samples"] = tree.rows, tree.weight
    nodes["missing_go_to_left"] = (left != NO_NODE) & (tree.rows[left] > tree.rows[right])
    made = Tree(tree.n_features, tree.n_classes.astype(np.intp), 1)
    made.__setstate__(
        {
            "max_depth": tree.max_depth,
            "node_count": tree.node_count,
            "nodes": nodes,
            "values": np.ascontiguousarray(tree.value),
        }
    )
    return made


def split_at(tree: FittedTree, alpha: float) -> NDArray[np.bool_]:
    """Return which nodes stay split where a leaf costs alpha.

    An alpha that ``cost_complexity_pruning_path`` has found is the link of some node but for rounding: there
    scikit-learn's own pruning decides.
    """
    links = weakest_links(tree)[0]
    if not (np.abs(links - alpha) <= SAME_ALPHA * alpha).any():
        return links > alpha
    pruned = Tree(tree.n_features, tree.n_classes.astype(np.intp), 1)
    _build_pruned_tree_ccp(pruned, as_sklearn_tree(tree), alpha)
    split = np.zeros(tree.node_count, dtype=bool)
    whole = tree.children_left, tree.children_right
    below = pruned.children_left, pruned.children_right
    level, reached = (
        np.zeros(1, np.intp),
        np.zeros(1, np.intp),
    )  # the same nodes in the whole and the pruned tree
    while level.size:
        inner = below[0][reached] != NO_NODE
        level, reached = level[inner], reached[inner]
        split[level] = True
        level = np.concatenate([side[level] for side in whole])
        reached = np.concatenate([side[reached] for side in below])
    return split
