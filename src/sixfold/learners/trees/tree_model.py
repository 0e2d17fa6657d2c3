"""What a fitted tree is asked: how it grew, how well it fits, which parts of it matter, and smaller ones.

One fit is

    check the table -> state the rules -> grow within a budget -> cut as asked -> keep and certify

All that can be worked out from the tree alone is worked out when it is asked for.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import Budget, Record
from sixfold.certificate import Certificate
from sixfold.data.checks import check_weight, column_names
from sixfold.data.labels import check_labels, with_class_weight
from sixfold.data.mixed_table import ColumnKinds
from sixfold.data.tree_table import check_tree_table
from sixfold.errors import CertificateError, InputError, check_number
from sixfold.explain.trees.names import TreeNames
from sixfold.learners.callbacks import CallbackSupport
from sixfold.learners.trees.nested_trees import NestedTrees, in_unit
from sixfold.learners.trees.readable_tree import ReadableTree
from sixfold.learners.trees.rules import check_parameters, columns_looked_at, growth_rules, unit_of
from sixfold.solvers.threads import thread_limit
from sixfold.solvers.trees.certificate import certify, lost_nats, lost_of_all
from sixfold.solvers.trees.exhaustive_splits import ALL_GROUPINGS
from sixfold.solvers.trees.fitted_tree import FittedTree
from sixfold.solvers.trees.growth import GrowthRules
from sixfold.solvers.trees.pruning import ccp_path, cut_depth, importances, keep_leaves, node_gains, prune_ccp
from sixfold.solvers.trees.training import (
    Cuts,
    GrowthRecord,
    TrainingRows,
    cut_at,
    grow_and_cut,
    warn_if_constant,
)
from sixfold.solvers.trees.tree import Tree
from sixfold.verify.recomputed import Recomputed
from sixfold.verify.trees import TreeClaim, recompute

Array = NDArray[Any]


_BY_POSITION = "Rows that were held out are found by their positions: pass all rows in the order of the fit."


class TreeModel(NestedTrees, ReadableTree, CallbackSupport, BaseEstimator):
    """A learner that is a tree; what it predicts, its subclasses say."""

    max_features: Any
    random_state: Any
    max_leaf_nodes: int | None
    ccp_alpha: float
    class_weight: Any
    categorical_features: Any
    prune: str
    validation_fraction: float
    base: Any
    trace: bool
    time_limit: float | None
    callbacks: Sequence[Callable[[Record], Any]] | None
    n_jobs: int | None

    classes_: Array
    n_features_in_: int
    tree_: FittedTree
    _kinds: ColumnKinds | None  # None where all columns are of numbers
    _limits: dict[str, Any]  # the depth and the leaves that the tree was allowed to have
    _grown: GrowthRecord

    # -- growing ---------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            Columns of numbers and of categories; NaN, None, and "?" in text are unknown.
        y : array of shape (n_samples,)
            The label of each row: text, whole numbers or booleans.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts.

        Returns
        -------
        DecisionTreeClassifier
            The fitted model itself.
        """
        check_parameters(self)
        with unchanged_on_failure(self):
            budget = self._grow(X, y, sample_weight)
        if self._grown.stopped or budget.interrupted:
            reached = f"{self.tree_.node_count} node{'s' * (self.tree_.node_count != 1)}"
            budget.conclude(self.certificate_, reached, "Let it grow on if that is not good enough.")
        return self

    def _grow(self, X: Any, y: Any, sample_weight: Any) -> Budget:
        """Learn what the columns and classes are, and grow the tree; return what was spent on it."""
        table, self._kinds = check_tree_table(self, X, True, categorical=self.categorical_features)
        self.classes_, rows = self._training_rows(table, y, sample_weight, self.class_weight)
        self.max_features_ = columns_looked_at(self.max_features, self.n_features_in_)
        cuts, rules_for = self._cuts(), partial(self._rules, seed=self._draw_seed())
        with (
            self._callbacks(X, y, None) as callbacks,
            Budget(0.0, None, self.time_limit, callbacks) as budget,
            thread_limit(self.n_jobs),
        ):
            growth = grow_and_cut(rows, rules_for, cuts, budget)
            rules = rules_for(rows if growth.left_out is None else rows.without(growth.left_out))
            tree = FittedTree.of(rows.as_given(growth.tree), rules.criterion, unit_of(self))
            seconds = budget.seconds
            self.tree_ = self._heard(tree, seconds, budget) if budget.callbacks else tree
            self._grown = GrowthRecord(
                rules=rules,
                fraction=cuts.fraction,
                left_out=0 if growth.left_out is None else int(growth.left_out.sum()),
                class_weight=copy.copy(self.class_weight),
                all_groupings=self._tried_all_groupings(rules),
                stopped=budget.stopped_by is not None,
                seconds=seconds,
            )
            self._trace = self._traced(rows, budget) if self.trace else None
        self.n_classes_, self.n_outputs_, self.solver_ = self.classes_.size, 1, "ID3"
        self.ccp_alpha_ = growth.alpha * unit_of(self)
        self._limits = {"max_depth": rules.max_depth, "max_leaf_nodes": self.max_leaf_nodes}
        return budget

    def _training_rows(
        self, table: Any, y: Any, sample_weight: Any, class_weight: Any, classes: Array | None = None
    ) -> tuple[Array, TrainingRows]:
        """Return the classes, and a checked table with the labels and weights of its rows."""
        classes, index = check_labels(self, y, table, classes)
        weight = check_weight(sample_weight, table.shape[0])
        with np.errstate(over="ignore", invalid="ignore"):
            weight = with_class_weight(class_weight, classes, index, weight)
            if weight is not None and not np.isfinite(weight.sum()):
                raise InputError("The weights of all rows add up to infinity. Divide them by a large number.")
        if weight is not None and not weight.any():
            raise InputError("class_weight leaves every row without weight. Give some class more than 0.")
        kinds = np.zeros(table.shape[1], np.uint8) if self._kinds is None else self._kinds.categorical
        labels = index.astype(np.int32)
        return classes, TrainingRows.of(table, kinds.view(np.uint8), labels, classes.size, weight)

    def _draw_seed(self) -> int:
        """Return a number that draws columns and held-out rows, where any are drawn."""
        if self.max_features_ >= self.n_features_in_ and not self._cuts().needs_rows:
            return 0
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _rules(self, rows: TrainingRows, seed: int) -> GrowthRules:
        return growth_rules(self, rows.count, self.n_features_in_, rows.weight_sum, seed)

    def _tried_all_groupings(self, rules: GrowthRules) -> bool:
        """Return whether no grouping of the categories of a column is better than all that were tried.

        In the order of their shares of one of two classes the best groups are neighbours (Breiman et al.
        1984, section 9.4), unless a leaf can be too small for them.
        """
        if self._kinds is None or not rules.binary:
            return True
        most = max((len(some) for some in self._kinds.categories if some is not None), default=0)
        if self.classes_.size > 2:
            return most <= ALL_GROUPINGS
        return most <= 2 or (rules.min_samples_leaf == 1 and rules.min_leaf_weight == 0.0)

    def _cuts(self) -> Cuts:
        alpha = float(self.ccp_alpha) / unit_of(self)
        return Cuts(self.max_leaf_nodes, alpha, self.prune, float(self.validation_fraction))

    def _heard(self, tree: FittedTree, seconds: float, budget: Budget) -> FittedTree:
        """Tell the callbacks of every level; return the tree up to the one at which they say stop."""
        for record in levels(tree, seconds):
            answers = [callback(record) for callback in budget.callbacks]
            if any(isinstance(answer, bool | np.bool_) and answer for answer in answers):
                if record.iteration < tree.max_depth:
                    budget.stopped_by = budget.stopped_by or "a callback"
                return FittedTree.of(cut_at(tree, record.iteration), tree.criterion, tree.unit)
        return tree

    def _traced(self, rows: TrainingRows, budget: Budget) -> Any:
        from sixfold.explain.trees.trace import trace

        tree, names = self._reading()
        return trace(tree, self._grown.grown_from(rows), self._grown.rules, names, budget)

    # -- what the tree says of itself ------------------------------------------------------------------------

    def _names(self) -> TreeNames:
        """Return what columns, categories and classes are called."""
        columns = self._column_names()
        categories = (None,) * len(columns) if self._kinds is None else self._kinds.categories
        return TreeNames(tuple(columns), categories, tuple(self.classes_.tolist()))

    def _column_names(self) -> list[str]:
        return column_names(self, self.n_features_in_)

    @property
    def log_likelihood_(self) -> float:
        """The average log-likelihood, in nats, of the rows the tree has grown from."""
        check_is_fitted(self, "tree_")
        return 0.0 - self.certificate_.objective  # never -0

    @property
    def history_(self) -> list[Record]:
        """One record a level: the average entropy in nats, were the tree cut there."""
        check_is_fitted(self, "tree_")
        return levels(self.tree_, self._grown.seconds)

    @property
    def feature_importances_(self) -> Array:
        """The share of all gain that is due to each column; zeros where there is no gain."""
        check_is_fitted(self, "tree_")
        return importances(self.tree_, self.tree_.criterion)

    @property
    def trace_(self) -> Any:
        """For every node what it could have been split by."""
        if self.__dict__.get("_trace") is None:
            raise AttributeError("There is no trace_. Fit with trace=True.")
        return self._trace

    @property
    def certificate_(self) -> Certificate:
        """That every split is the best of its node, and how much better any tree could fit at most."""
        if "tree_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no certificate_ before it is fitted.")
        return certify(self.tree_, self._grown).bind(self)

    def _verify(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Certificate:
        return self._recompute(claimed, X, y, sample_weight).compare(claimed)

    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        """Return the certificate of the tree, from the data alone."""
        check_is_fitted(self, "tree_")
        table, _ = check_tree_table(self, X, False, self._kinds)
        _, rows = self._training_rows(table, y, sample_weight, self._grown.class_weight, self.classes_)
        rows, rules = self._grown.grown_from(rows), self._grown.rules
        counts = np.flatnonzero(rows.counting)
        claim = TreeClaim(
            replace(self.tree_, totals=np.ldexp(self.tree_.totals, -rows.weight_exponent)),
            rows.X[counts],
            rows.kinds,
            rows.labels[counts],
            np.ones(counts.size) if rows.weight is None else rows.weight[counts],
            rules.criterion,
            rules.binary,
            rules.unknown_best,
            rules.min_samples_leaf,
            rules.min_leaf_weight,
            rules.max_columns,
            rules.seed,
        )
        if not self._grown.left_out:
            return recompute(claim, claimed)
        try:
            return recompute(claim, claimed, _BY_POSITION)
        except CertificateError as error:
            raise CertificateError(f"{error} {_BY_POSITION}") from None

    def get_depth(self) -> int:
        """Return the most splits above a leaf."""
        check_is_fitted(self, "tree_")
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self, "tree_")
        return self.tree_.leaf_count

    def _ends(self, X: Any) -> NDArray[np.int32]:
        """Return the node where each row ends."""
        check_is_fitted(self, "tree_")
        table, _ = check_tree_table(self, X, False, self._kinds)
        with thread_limit(self.n_jobs):
            return self.tree_.apply(table)

    # -- smaller trees ---------------------------------------------------------------------------------------

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Return every ``ccp_alpha`` at which the tree of these rows becomes smaller.

        As in scikit-learn there is an entry for each node that becomes a leaf, so an alpha is repeated where
        several do at once. Of these, ``ccp_path_`` of a fitted tree keeps the last: each alpha once.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            As in :meth:`fit`.
        y : array of shape (n_samples,)
            As in :meth:`fit`.
        sample_weight : array of shape (n_samples,), default=None
            As in :meth:`fit`.

        Returns
        -------
        Bunch
            ``ccp_alphas`` and ``impurities``, the impurity of the leaves of each tree.
        """
        model = clone(self).set_params(
            ccp_alpha=0.0, prune="none", trace=False, callbacks=None, time_limit=None
        )
        tree = model.fit(X, y, sample_weight).tree_
        path = ccp_path(tree, tree.criterion)
        return Bunch(ccp_alphas=in_unit(path.ccp_alphas, tree.unit), impurities=tree.unit * path.impurities)

    def pruned(
        self,
        *,
        ccp_alpha: float | None = None,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
    ) -> Self:
        """Return the model with a smaller tree, cut from this one without growing anything anew.

        It is the tree of a new fit with this limit, unless both another limit and this one cut it.

        Parameters
        ----------
        ccp_alpha : float, default=None
            What a leaf costs.
        max_depth : int, default=None
            Most splits above a leaf.
        max_leaf_nodes : int, default=None
            Most leaves; fewer may result where categories have a branch each.

        Returns
        -------
        DecisionTreeClassifier
            A fitted copy.
        """
        check_is_fitted(self, "tree_")
        check_number("ccp_alpha", ccp_alpha, at_least=0, optional=True)
        check_number("max_depth", max_depth, at_least=0, whole=True, optional=True)
        check_number("max_leaf_nodes", max_leaf_nodes, at_least=2, whole=True, optional=True)
        wanted = {"ccp_alpha": ccp_alpha, "max_depth": max_depth, "max_leaf_nodes": max_leaf_nodes}
        # NumPy's numbers become Python's, as they are shown among the parameters.
        given = {name: np.asarray(value).item() for name, value in wanted.items() if value is not None}
        self._require_inside(given)
        model = copy.copy(self)
        model.set_params(**given)
        tree: Tree = self.tree_
        if max_depth is not None:
            tree = cut_depth(tree, max_depth)
        if max_leaf_nodes is not None:
            whole, tree = tree, keep_leaves(tree, max_leaf_nodes, node_gains(tree, self.tree_.criterion))
            warn_if_constant(whole, tree, max_leaf_nodes)
        if ccp_alpha is not None:
            tree = prune_ccp(tree, ccp_alpha / self.tree_.unit, self.tree_.criterion)
            model.ccp_alpha_ = float(ccp_alpha)
        model.tree_ = FittedTree.of(tree, self.tree_.criterion, self.tree_.unit)
        model._limits = self._limits | {name: given[name] for name in self._limits if name in given}
        model._trace = self._trace and self._trace.inside(self.tree_, model.tree_)
        return model

    def _require_inside(self, given: dict[str, float]) -> None:
        """Raise where a limit asks for a larger tree than this one was allowed to be."""
        for name, value in given.items():
            had = self.ccp_alpha_ if name == "ccp_alpha" else self._limits[name]
            if had is None or (value >= had if name == "ccp_alpha" else value <= had):
                continue
            raise InputError(
                f"{name}={value!r} asks for a larger tree than this one, which was grown with "
                f"{name}={had!r}. A larger tree needs a new fit."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


@contextmanager
def unchanged_on_failure(model: Any) -> Iterator[None]:
    """Let a model that fails to become another one stay what it was."""
    before = vars(model).copy()
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


def levels(tree: Tree, seconds: float) -> list[Record]:
    """Return one record a level, from the constant model on, as if the tree were cut there.

    The gap is the distance to the least objective that any tree could have, as far as this one knows.
    """
    lost = lost_nats(tree.totals / tree.totals[0].sum())
    here = np.bincount(tree.depth, weights=lost)
    ended = np.cumsum(np.bincount(tree.depth, weights=np.where(tree.is_leaf, lost, 0.0)))
    objectives = here + np.concatenate([[0.0], ended[:-1]])
    bound = lost_of_all(tree)
    return [
        Record(level, seconds, float(objective), max(float(objective) - bound, 0.0))
        for level, objective in enumerate(objectives)
    ]
