"""ID3: a decision tree, grown from the constant model by the best split there is at each node.

    H(S) = - sum_c p_c log p_c            H(S_1, ..., S_k) = sum_j |S_j| / |S| H(S_j)

Of all columns and all thresholds (or categories) the split with the least weighted average entropy is made,
and its parts are grown in the same way. What it minimises greedily is the average negative log-likelihood

    - 1/n sum_i ln p(y_i | leaf of x_i),

which is the average entropy of the leaves. Sources: Quinlan, Induction of decision trees, Machine Learning 1,
1986; Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984 (binary groups, pruning).

A split does not depend on what is split elsewhere. So the tree of a smaller ``max_depth`` or of a larger
``ccp_alpha`` is inside the one that was grown, and a row that ends at some node of the large tree ends, in
each smaller one, at the node above it where that one ends. One growth and one way through the tree for each
row give the answers of all of them, the same as those of separate fits. All that can be worked out from the
tree alone is worked out when it is asked for.

That is ``search="greedy"``. With ``search="optimal"`` all splits are chosen together: of all trees of a depth
the one with the fewest errors, or the least average entropy, is found by branch and bound
(:mod:`sixfold.solvers.trees.optimal`). A split then depends on all others, so that a smaller tree inside this
one is cut from it, and need not be the best of its size.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import CALLBACK, Budget, Record
from sixfold.certificate import Certificate, plain_parameter
from sixfold.data.checks import check_weight, column_names, require_order
from sixfold.data.labels import check_labels, with_class_weight
from sixfold.data.mixed_table import ColumnKinds
from sixfold.data.one_row import one_row
from sixfold.data.tree_table import check_tree_table, merged_numbers
from sixfold.errors import (
    CertificateError,
    InputError,
    StoppedEarly,
    check_flag,
    check_number,
    check_option,
    warn,
)
from sixfold.explain.trees import svg, text
from sixfold.explain.trees.explanation import TreeExplanation, explain_row, given_values
from sixfold.explain.trees.names import TreeNames
from sixfold.explain.trees.rashomon import RashomonSet
from sixfold.learners.base import IterativeLearner, Step
from sixfold.solvers.threads import thread_limit
from sixfold.solvers.trees.exhaustive_splits import ALL_GROUPINGS
from sixfold.solvers.trees.fitted_tree import (
    KIND,
    LOOKAHEAD_KIND,
    FittedTree,
    Reason,
    average_entropy,
    certify,
)
from sixfold.solvers.trees.growth import FitRecord, GrowthRules, TrainingRows, TreeParameters
from sixfold.solvers.trees.optimal import SearchRecord, SearchRules
from sixfold.solvers.trees.optimal_certificate import certify_optimal
from sixfold.solvers.trees.pruned_growth import grow_and_prune
from sixfold.solvers.trees.pruning import (
    by_alpha,
    by_depth,
    ccp_path,
    cut_depth,
    importances,
    leaves_by_depth,
    levels,
    most_rewarding,
    prune_ccp,
)
from sixfold.solvers.trees.rashomon import GoodTree, GoodTrees, good_trees
from sixfold.solvers.trees.search_columns import search_columns
from sixfold.verify.optimal_trees import OptimalTreeClaim
from sixfold.verify.optimal_trees import recompute as recompute_optimal
from sixfold.verify.recomputed import Recomputed
from sixfold.verify.trees import TreeClaim, recompute

Array = NDArray[Any]

_PARAMETERS = tuple(one.name for one in fields(TreeParameters))
SOLVERS = {"greedy": "ID3", "lookahead": "lookahead", "optimal": "branch and bound"}
_BY_POSITION = "Rows that were held out are found by their positions: pass all rows in the order of the fit."


class TreeSolution(NamedTuple):
    """A tree, the alpha it was cut by, what it was grown by, and its trace where one was asked for."""

    tree: FittedTree
    alpha: float
    record: FitRecord
    trace: Any


class DecisionTreeClassifier(ClassifierMixin, IterativeLearner):
    """Answer one question after the other until the class is clear.

    The parameters are those of scikit-learn's class, without ``monotonic_cst``; ``splitter`` is "best" alone,
    and entropy is the default. Columns of text and categories are taken as they are, and so are unknown
    values. Every split is the best of its node; equal ones go to the lowest column, then to the lowest
    threshold, and ``random_state`` does not decide between them. With ``search="optimal"`` the whole tree is
    the best of its depth, which is proven.

    Parameters
    ----------
    criterion : {"entropy", "log_loss", "gini", "gain_ratio", "homogeneous"}, default="entropy"
        What the best split has least of: entropy ("log_loss" is the same), Gini index, entropy relative to
        how finely it divides ("gain_ratio", as in C4.5: of the columns with at least the average gain, each
        by its split with the most), or rows in parts that are not of one class. With another ``search`` than
        "greedy" it chooses no split: ``objective`` does. It is then what is shown as impurity, and what
        ``ccp_alpha`` and importances are counted in.
    splitter : {"best"}, default="best"
        Every split is the best of its node.
    max_depth : int, default=None
        Most splits above a leaf; 0 for the constant model, None for no limit, or for 3 with
        ``search="optimal"``, where each level takes some 10 to 200 times longer than the one before.
    min_samples_split : int or float, default=2
        Fewest rows of a node that is split, or their share of all rows.
    min_samples_leaf : int or float, default=1
        Fewest rows, or their share of all rows, of at least two of the parts of a split: a rare category or
        unknown branch may have fewer.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the total weight that at least two of the parts of a split have: a rare category or
        unknown branch may have less.
    max_features : int, float, "sqrt", "log2" or None, default=None
        How many columns, drawn at random, a node looks at; None for all.
    random_state : int, RandomState or None, default=None
        Draws these columns, and the rows that are held out.
    max_leaf_nodes : int, default=None
        Most leaves; the most rewarding splits are kept, or with ``search="optimal"`` the best tree of so many
        is found. A split that gives each category a branch is left out
        where its branches would be too many, so fewer leaves may result, even the constant model, of which a
        warning tells; with ``categories="binary"`` each split adds one or, for unknown values, two.
    min_impurity_decrease : float, default=0.0
        Least gain of a split, times the share of the weight that its node has.
    class_weight : dict, "balanced" or None, default=None
        How much the rows of each class count; "balanced" gives all classes the same total weight.
    ccp_alpha : float, default=0.0
        What a leaf costs: the tree is cut to the one with the least impurity + ccp_alpha * leaves.
    base : {2, "e"}, default=2
        The unit of entropies, also of ``min_impurity_decrease`` and ``ccp_alpha``: bits or nats.
    categories : {"multiway", "binary"}, default="multiway"
        Whether categories get a branch each, as in ID3, or are put into the two best groups: of all groups
        if there are two classes or at most eight categories, else of those that the shares of a class tell.
    unknown : {"branch", "best"}, default="branch"
        Whether unknown values are a branch of their own, or go where it is best.
    categorical_features : sequence of names, numbers or bools, or None, default=None
        Columns of numbers that are categories; None or "from_dtype" for those that are by their type.
    prune : {"none", "reduced_error", "cost_complexity"}, default="none"
        Cut the tree where held-out rows are no worse off, or by the ``ccp_alpha`` that is best for them
        unless one is given.
    validation_fraction : float, default=0.25
        The share of the rows of every class that pruning holds out; ``random_state`` draws them.
    trace : bool, default=False
        Whether to keep what every node could have been split by, in ``trace_``.
    search : {"greedy", "lookahead", "optimal"}, default="greedy"
        How the splits are chosen: each by itself, the best of its node; each as the first of the best tree of
        two levels at its node ("lookahead", for deep trees and large tables); or all together, so that no
        tree of this depth is better ("optimal"). The last two know no ``max_features``, no
        ``min_impurity_decrease`` and no least size of nodes.
    objective : {"entropy", "error"}, default="entropy"
        What the best tree has least of, where it is searched for: average entropy of the leaves, which is
        what a greedy tree makes small as well, or errors on the training rows.
    leaf_penalty : float, default=0.0
        What each leaf adds to the objective of a search: a share of the rows that are errors, or entropy in
        the unit of ``base``.
    time_limit : float, default=None
        Most seconds of growth; beyond, nodes are left as they are. A search for the best tree then keeps the
        best that it has found, and the certificate says how far from the best it is at most.
    callbacks : sequence of callables, default=None
        Each is called with the record of every level, as in ``history_``, once the tree is grown; one that
        returns True cuts it there. While it grows none is called: ``time_limit`` and Ctrl-C end that. With
        ``search="optimal"`` the records are those of the search, and none of them cuts the tree.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    verbose : int, default=0
        Whether to print a line for each level, or step of the search, when the tree is there.

    Attributes
    ----------
    tree_ : FittedTree
        The tree as arrays.
    classes_ : ndarray of shape (n_classes,)
    n_classes_, n_outputs_, n_features_in_, max_features_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where the columns have names.
    feature_importances_ : ndarray of shape (n_features_in_,)
        The share of all gain that is due to each column.
    ccp_alpha_ : float
        The cost of a leaf by which the tree was cut.
    ccp_path_ : Bunch
        The smaller trees inside this one by cost: ``ccp_alphas``, ``impurities``, ``leaves``, each alpha once
        (:meth:`cost_complexity_pruning_path` repeats them). To choose among them, fit once and compare what
        :meth:`staged_predict` yields for other rows.
    depth_path_ : Bunch
        Those by depth: ``max_depths``, ``objectives`` (average entropy in nats), ``leaves``. They are cut
        from this tree; only where each split is chosen by itself are they those of fits with less depth.
    log_likelihood_ : float
        The average log-likelihood of the training rows, in nats.
    history_ : list of Record
        One a level: the average entropy in nats, were the tree cut there; the seconds are those of it all.
        With ``search="optimal"`` one for each better tree or bound that was found: when, the objective of the
        best tree so far, and its distance from the bound.
    solver_ : str
        What grew the tree.
    trace_ : Trace
        Only with ``trace``.
    certificate_ : Certificate
        That every split is the best of its node, among the columns drawn with ``max_features`` and, where
        ``categories="binary"`` does not try all, the groupings tried; and how much better any tree could fit
        at most. With ``search="optimal"`` that no tree of this depth is better, or by how much one could be.

    Examples
    --------
    >>> from sixfold import DecisionTreeClassifier
    >>> shadow, garlic = ["?", "yes", "?", "no", "?", "yes"], ["yes", "yes", "no", "no", "no", "no"]
    >>> people = [list(row) for row in zip(shadow, garlic)]
    >>> model = DecisionTreeClassifier().fit(people, ["no", "no", "yes", "yes", "yes", "no"])
    >>> model.predict([["no", "yes"], ["?", "no"]])
    array(['yes', 'yes'], dtype='<U3')
    >>> print(model.certificate_)
    greedy tree: every split is the best of its node; no tree fits these rows better
    >>> X, y = [[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 0], [1, 1, 0]], [0, 1, 1, 0, 0, 0]
    >>> best = DecisionTreeClassifier(search="optimal", objective="error", max_depth=2).fit(X, y)
    >>> print(best.certificate_)
    optimal tree: the best tree of depth 2: no other has fewer errors (0.0% of the rows)
    """

    _progress_interval = 0.0  # records come all at once

    classes_: Array
    n_features_in_: int
    tree_: FittedTree
    _kinds: ColumnKinds | None  # None where all columns are of numbers
    _grown: FitRecord
    _size: dict[str, Any]  # the limits of depth, leaves and alpha that the tree has

    def __init__(
        self,
        *,
        criterion: str = "entropy",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        base: Any = 2,
        categories: str = "multiway",
        unknown: str = "branch",
        categorical_features: Any = None,
        prune: str = "none",
        validation_fraction: float = 0.25,
        trace: bool = False,
        search: str = "greedy",
        objective: str = "entropy",
        leaf_penalty: float = 0.0,
        time_limit: float | None = None,
        callbacks: Sequence[Callable[[Record], Any]] | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.base = base
        self.categories = categories
        self.unknown = unknown
        self.categorical_features = categorical_features
        self.prune = prune
        self.validation_fraction = validation_fraction
        self.trace = trace
        self.search = search
        self.objective = objective
        self.leaf_penalty = leaf_penalty
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- growing ---------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
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
        return self._run_fit(X, y, sample_weight)

    def _fit_on_cluster(self, X: Any, y: Any, sample_weight: Any, solve: Step) -> Self:
        from sixfold.learners.trees.on_cluster import fit_on_cluster

        return fit_on_cluster(self, X, y, sample_weight)

    def _check_parameters(self) -> None:
        self._parameters().check()
        check_flag("trace", self.trace)

    def _parameters(self) -> TreeParameters:
        return TreeParameters(**{name: getattr(self, name) for name in _PARAMETERS})

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> TrainingRows:
        require_order(self, X, y)
        if reset:
            table, self._kinds = check_tree_table(self, X, True, categorical=self.categorical_features)
        else:
            table, _ = check_tree_table(self, X, False, self._kinds)
        self._rounded = any(True for _ in merged_numbers(X, table, self._kinds))
        classes, index = check_labels(self, y, table, None if reset else self.classes_)
        weight = check_weight(sample_weight, table.shape[0])
        class_weight = self.class_weight if reset else self._grown.class_weight
        with np.errstate(over="ignore", invalid="ignore"):
            weight = with_class_weight(class_weight, classes, index, weight)
            if weight is not None and not np.isfinite(weight.sum()):
                raise InputError("The weights of all rows add up to infinity. Divide them by a large number.")
        if weight is not None and not weight.any():
            raise InputError("class_weight leaves every row without weight. Give some class more than 0.")
        self.classes_ = classes
        kinds = np.zeros(table.shape[1], np.uint8) if self._kinds is None else self._kinds.categorical
        return TrainingRows.of(table, kinds.view(np.uint8), index.astype(np.int32), classes.size, weight)

    def _state_problem(self, data: TrainingRows) -> TreeParameters:
        parameters = self._parameters()
        self.max_features_ = parameters.columns_looked_at(self.n_features_in_)
        return parameters

    def _solve(self, problem: TreeParameters, data: TrainingRows, budget: Budget) -> TreeSolution:
        seed = problem.draw_seed(self.n_features_in_)
        growth = grow_and_prune(data, problem, seed, budget)
        rows = data if growth.left_out is None else data.without(growth.left_out)
        rules = problem.rules(rows, seed)
        tree, seconds = growth.tree.in_units(data.weight_exponent, problem.unit), budget.seconds
        tree = replace(tree, limits=problem.limits)
        if budget.callbacks and growth.search is not None:
            self._notify_steps(growth.search.history, budget)
        elif budget.callbacks:
            tree = self._notify_levels(tree, seconds, budget)
        record = FitRecord(
            rules=rules,
            fraction=float(problem.validation_fraction),
            left_out=data.count - rows.count,
            class_weight=copy.copy(self.class_weight),
            all_groupings=self._tried_all_groupings(rules, problem.search),
            rounded=self._rounded,
            stopped=budget.stopped_by is not None,
            seconds=seconds,
            method=problem.search,
            search=growth.search,
        )
        trace = None
        if self.trace:
            from sixfold.explain.trees.trace import trace as trace_of

            trace = trace_of(tree, rows, rules, self._names(), budget)
        return TreeSolution(tree, growth.alpha * problem.unit, record, trace)

    def _tried_all_groupings(self, rules: GrowthRules, search: str) -> bool:
        """Return whether no grouping of the categories of a column is better than all that were tried.

        In the order of their shares of one of two classes the best groups are neighbours (Breiman et al.
        1984, section 9.4), unless a leaf can be too small for them.
        """
        if self._kinds is None or not rules.binary:
            return True
        most = max((len(some) for some in self._kinds.categories if some is not None), default=0)
        if search != "greedy":  # a split need not be the best of its node
            return most + rules.unknown_best <= ALL_GROUPINGS
        if self.classes_.size > 2:
            return most <= ALL_GROUPINGS
        return most <= 2 or (rules.min_samples_leaf == 1 and rules.min_leaf_weight == 0.0)

    def _notify_levels(self, tree: FittedTree, seconds: float, budget: Budget) -> FittedTree:
        """Call the callbacks for every level; return the tree up to the one at which they say stop."""
        for record in levels(tree, seconds):
            answers = [callback(record) for callback in budget.callbacks]
            if any(isinstance(answer, bool | np.bool_) and answer for answer in answers):
                if record.iteration < tree.max_depth:
                    budget.stopped_by = budget.stopped_by or CALLBACK
                return tree.cut(tree.depth < record.iteration, Reason.STOPPED)
        return tree

    def _notify_steps(self, history: Sequence[Record], budget: Budget) -> None:
        """Call the callbacks for every step of a search, which has ended."""
        for record in history:
            for callback in budget.callbacks:
                callback(record)

    @property
    def _step(self) -> str:  # type: ignore[override]
        """What a record is of."""
        return "step" if self.search == "optimal" else "level"

    def _set_fitted(self, solution: TreeSolution, data: TrainingRows, budget: Budget) -> None:
        self.tree_, self.ccp_alpha_, self._grown, self._trace = solution
        self.n_classes_, self.n_outputs_ = self.classes_.size, 1
        self.solver_ = SOLVERS[self._grown.method]
        self._size = {
            "max_depth": self._grown.rules.max_depth,
            "max_leaf_nodes": self.max_leaf_nodes,
            "ccp_alpha": self.ccp_alpha_,
        }

    def _warn(self, solution: TreeSolution, data: TrainingRows, budget: Budget) -> None:
        if solution.record.stopped or budget.interrupted:
            nodes = solution.tree.node_count
            reached = f"{nodes} node{'s' * (nodes != 1)}"
            advice = "Let it grow on if that is not good enough."
            if self._grown.search is not None:
                advice = "Allow more time if that is not good enough."
            budget.conclude(self.certificate_, reached, advice)

    def _certify(self) -> Certificate:
        grown = self._grown
        if grown.search is not None:
            return certify_optimal(self.tree_, grown.search, grown.left_out, grown.rounded, grown.stopped)
        kind = LOOKAHEAD_KIND if grown.method == "lookahead" else KIND
        return certify(self.tree_, grown.left_out, grown.tried, grown.rounded, grown.stopped, kind)

    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        grown = self._grown
        rows = grown.grown_from(self._check(X, y, sample_weight, reset=False))
        claim, check = self._claim(rows)
        if not grown.left_out:
            return check(claim, claimed)
        try:
            return check(claim, claimed, _BY_POSITION)
        except CertificateError as error:
            raise CertificateError(f"{error} {_BY_POSITION}") from None

    def _claim(self, rows: TrainingRows) -> tuple[Any, Callable[..., Recomputed]]:
        """Return what the certificate claims, as its checker takes it, and that checker."""
        grown, rules, search, tree = self._grown, self._grown.rules, self._grown.search, self._fitted_tree()
        # A table in a file is not copied where all of its rows count.
        counts = slice(None) if rows.rows is None else rows.rows
        given = (
            tree.in_units(-rows.weight_exponent, tree.unit),
            rows.X[counts],
            rows.kinds,
            rows.labels[counts],
            np.ones(rows.count) if rows.weight is None else rows.weight[counts],
        )
        if search is None:
            claim = TreeClaim(
                *given,
                rules.criterion,
                rules.binary,
                rules.unknown_best,
                rules.min_samples_leaf,
                rules.min_leaf_weight,
                rules.max_columns,
                rules.seed,
                self._rounded,
                LOOKAHEAD_KIND if grown.method == "lookahead" else KIND,
            )
            return claim, recompute
        optimal = OptimalTreeClaim(
            *given,
            search.objective,
            search.max_depth,
            search.max_leaf_nodes,
            search.leaf_penalty,
            rules.binary,
            rules.unknown_best,
            search.frontier.about(search_columns(rows, rules.binary, rules.unknown_best), rows.weight_sum),
            search.unit * rows.weight_sum,
            self._rounded,
        )
        return optimal, recompute_optimal

    def __sklearn_is_fitted__(self) -> bool:
        return "tree_" in self.__dict__

    def _fitted_tree(self) -> FittedTree:
        check_is_fitted(self)
        return self.tree_

    # -- answering -------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Array:
        """Return the most frequent class where each row ends.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            A category or unknown value that a node has not met when the tree was grown ends the way there.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        nodes = self._node_of(X)
        return self.classes_[self.tree_.answer[nodes]]

    def predict_proba(self, X: Any) -> Array:
        """Return the share of each class, by weight, among the training rows where each row ends.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        nodes = self._node_of(X)
        return self.tree_.shares[nodes]

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of the share of each class where each row ends.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        nodes = self._node_of(X)
        with np.errstate(divide="ignore"):
            return np.log(self.tree_.shares[nodes])

    def staged_predict(self, X: Any, *, by: str = "max_depth", values: Any = None) -> Iterator[Array]:
        """Yield the predictions of all smaller trees inside this one, without growing any of them.

        They are those of separate fits with each value, unless ``max_leaf_nodes``, ``prune`` or the other of
        the two limits has cut this tree, or another ``search`` than "greedy" has found it: then they are cut
        from it, and a fit of that size may find a better one.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
        by : {"max_depth", "ccp_alpha"}, default="max_depth"
            What makes the trees smaller.
        values : sequence of numbers, default=None
            Depths or alphas in ascending order; None for all in ``depth_path_`` or ``ccp_path_``.

        Yields
        ------
        ndarray of shape (n_samples,)
            One for each value.
        """
        stages = self._staged_nodes(X, by, values)
        return (self.classes_[self.tree_.answer[nodes]] for nodes in stages)

    def staged_predict_proba(self, X: Any, *, by: str = "max_depth", values: Any = None) -> Iterator[Array]:
        """Yield the shares of the classes in all smaller trees inside this one, as :meth:`staged_predict`.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
        by : {"max_depth", "ccp_alpha"}, default="max_depth"
            What makes the trees smaller.
        values : sequence of numbers, default=None
            Depths or alphas in ascending order; None for all in ``depth_path_`` or ``ccp_path_``.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            One for each value.
        """
        stages = self._staged_nodes(X, by, values)
        return (self.tree_.shares[nodes] for nodes in stages)

    def apply(self, X: Any) -> Array:
        """Return the number of the node where each row ends.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of int64, shape (n_samples,)
        """
        return self._node_of(X).astype(np.int64)

    def decision_path(self, X: Any) -> Any:
        """Return which nodes each row goes through.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        CSR matrix of shape (n_samples, n_nodes)
            1 for a node on the way.
        """
        nodes = self._node_of(X)
        return self.tree_.paths_to(nodes)

    def _node_of(self, X: Any) -> NDArray[np.int32]:
        """Return the node where each row ends."""
        tree = self._fitted_tree()
        table, _ = check_tree_table(self, X, False, self._kinds)
        with thread_limit(self.n_jobs):
            return tree.apply(table)

    def _staged_nodes(self, X: Any, by: str, values: Any) -> Iterator[NDArray[np.int32]]:
        """Return the node that answers each row, in the tree of each size."""
        tree = self._fitted_tree()
        check_option("by", by, ("max_depth", "ccp_alpha"))
        if values is None:
            values = self.depth_path_.max_depths if by == "max_depth" else self.ccp_path_.ccp_alphas
        else:
            values = list(values)
            for value in values:
                check_number(by, value, at_least=0, whole=by == "max_depth")
                self._require_inside({by: value})
            if any(after < before for before, after in pairwise(values)):
                raise InputError(f"The values of {by} are not in ascending order. Sort them.")
        ended = self._node_of(X)
        if by == "max_depth":
            return by_depth(tree, ended, values)
        return by_alpha(tree, ended, ccp_path(tree), np.asarray(values, np.float64) / tree.unit)

    # -- what the tree says of itself ------------------------------------------------------------------------

    @property
    def log_likelihood_(self) -> float:
        """The average log-likelihood, in nats, of the rows the tree has grown from."""
        check_is_fitted(self)
        return 0.0 - average_entropy(self._fitted_tree())  # never -0

    @property
    def history_(self) -> list[Record]:
        """One record a level: the average entropy in nats, were the tree cut there; or one a search step."""
        tree, search = self._fitted_tree(), self._grown.search
        return levels(tree, self._grown.seconds) if search is None else list(search.history)

    @property
    def feature_importances_(self) -> Array:
        """The share of all gain that is due to each column; zeros where there is no gain."""
        return importances(self._fitted_tree())

    @property
    def trace_(self) -> Any:
        """For every node what it could have been split by."""
        if self.__dict__.get("_trace") is None:
            raise AttributeError("There is no trace_. Fit with trace=True.")
        return self._trace

    def get_depth(self) -> int:
        """Return the most splits above a leaf."""
        return self._fitted_tree().max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        return self._fitted_tree().leaf_count

    # -- smaller trees ---------------------------------------------------------------------------------------

    @property
    def ccp_path_(self) -> Bunch:
        """Every ``ccp_alpha`` at which the tree becomes smaller, with impurity and leaves of what is left.

        Each alpha is there once, with all nodes that it makes leaves; ``cost_complexity_pruning_path`` has an
        entry for each of these nodes, as scikit-learn does, and so repeats alphas.
        """
        tree = self._fitted_tree()
        path = ccp_path(tree).distinct.in_unit(tree.unit)
        path.ccp_alphas[0] = self.ccp_alpha_  # below, there were larger trees
        return Bunch(ccp_alphas=path.ccp_alphas, impurities=path.impurities, leaves=path.leaves)

    @property
    def depth_path_(self) -> Bunch:
        """Every depth, with the average entropy in nats and the leaves of the tree cut there."""
        tree = self._fitted_tree()
        objectives = np.array([record.objective for record in levels(tree, self._grown.seconds)])
        leaves = leaves_by_depth(tree)
        return Bunch(max_depths=np.arange(leaves.size), objectives=objectives, leaves=leaves)

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
        whole: dict[str, Any] = {"ccp_alpha": 0.0, "prune": "none", "trace": False}
        if self.search == "greedy":  # any other may never end
            whole["time_limit"] = None
        model = clone(self).set_params(**whole, callbacks=None, verbose=0)
        tree = model.fit(X, y, sample_weight).tree_
        path = ccp_path(tree).in_unit(tree.unit)
        return Bunch(ccp_alphas=path.ccp_alphas, impurities=path.impurities)

    def pruned(
        self,
        *,
        ccp_alpha: float | None = None,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
    ) -> Self:
        """Return the model with a smaller tree, cut from this one without growing anything anew.

        It is the tree of a new fit with this limit, unless both another limit and this one cut it, or another
        ``search`` than "greedy" has found it: the best tree of a smaller size need not be inside this one,
        and the certificate goes on comparing with trees of the size that was searched for.

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
        tree = self._fitted_tree()
        check_number("ccp_alpha", ccp_alpha, at_least=0, optional=True)
        check_number("max_depth", max_depth, at_least=0, whole=True, optional=True)
        check_number("max_leaf_nodes", max_leaf_nodes, at_least=2, whole=True, optional=True)
        wanted = {"ccp_alpha": ccp_alpha, "max_depth": max_depth, "max_leaf_nodes": max_leaf_nodes}
        # NumPy's numbers become Python's, as they are shown among the parameters.
        given = {name: np.asarray(value).item() for name, value in wanted.items() if value is not None}
        self._require_inside(given)
        if max_depth is not None:
            tree = cut_depth(tree, max_depth)
        if max_leaf_nodes is not None:
            tree = most_rewarding(tree, max_leaf_nodes)
        if ccp_alpha is not None:
            tree = prune_ccp(tree, ccp_alpha / tree.unit)
        return self._with_tree(replace(tree, limits=tree.limits | given), given)

    def _with_tree(self, tree: FittedTree, given: dict[str, Any]) -> Self:
        """Return a copy whose tree is a smaller one inside this one, with the parameters that made it so."""
        model = copy.copy(self).set_params(**given)
        model.tree_, model._size = (
            tree,
            self._size | {name: given[name] for name in self._size.keys() & given},
        )
        model.ccp_alpha_ = float(model._size["ccp_alpha"])
        model._fit_parameters = self._fit_parameters | given
        subject = self._subject
        if subject is not None:
            model._subject = replace(subject, parameters=subject.parameters | plain_parameter(given))
        model._trace = self._trace and self._trace.inside(self.tree_, tree)
        return model

    def _require_inside(self, given: dict[str, float]) -> None:
        """Raise where a limit asks for a larger tree than this one was allowed to be."""
        for name, value in given.items():
            had = self._size[name]
            if had is None or (value >= had if name == "ccp_alpha" else value <= had):
                continue
            raise InputError(
                f"{name}={value!r} asks for a larger tree than this one, which was grown with "
                f"{name}={had!r}. A larger tree needs a new fit."
            )

    # -- other good trees ------------------------------------------------------------------------------------

    def rashomon(
        self, X: Any, y: Any, *, epsilon: float = 0.01, limit: int = 100, sample_weight: Any = None
    ) -> RashomonSet:
        """Return the different good trees: those little worse than the best one that ask other columns.

        For a model that was fitted with ``search="optimal"``. A tree of its depth and number of leaves is
        good where its objective is at most the best one plus ``epsilon``. Two trees are different where they
        ask different sets of columns. They are found by leaving columns out: the best tree without each of
        the columns that a good tree asks, and so on, one search each. Whatever good tree there is, one of
        those found then asks no other columns, and is as good.

        ``time_limit`` is for all searches together; at its end and after Ctrl-C the set is what was found
        until then, at least the tree of the fit. ``callbacks`` and ``verbose`` tell of each tree, the gap
        being its distance from the best.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The rows of the fit, in the same order.
        y : array of shape (n_samples,)
            Their labels.
        epsilon : float, default=0.01
            How much worse than the best a good tree is at most, in the unit of ``certificate_.objective``:
            the share of the rows that are errors, or nats. Penalties of leaves are included.
        limit : int, default=100
            Most trees; the best ones are kept.
        sample_weight : array of shape (n_samples,), default=None
            The weights of the fit.

        Returns
        -------
        RashomonSet
            ``models``, ``required`` (the columns that every good tree asks), ``columns`` (how many of the
            trees ask each) and more; printed it is a table.

        Examples
        --------
        >>> from sixfold import DecisionTreeClassifier
        >>> X, y = [[0, 0, 1], [0, 1, 1], [1, 0, 0], [1, 1, 0]], [0, 0, 1, 1]
        >>> model = DecisionTreeClassifier(search="optimal", objective="error", max_depth=1).fit(X, y)
        >>> print(model.rashomon(X, y))
        2 good trees, at most 0.01 worse than the best one
        objective  leaves  columns asked
        0               2  x0
        0               2  x2
        No column is asked by every good tree.
        Every good tree asks all columns of one of these, and is no better than it.
        """
        check_is_fitted(self)
        check_number("epsilon", epsilon, at_least=0)
        check_number("limit", limit, at_least=1, whole=True)
        search = self._whole_search()
        rows = self._as_fitted()._check(X, y, sample_weight, reset=False)
        self._require_same_rows(rows)
        with self._budget(X, y) as budget, self._threads(rows):
            found = self._good_trees(rows, search, float(epsilon), int(limit), budget)
        stopped_by = None if found.complete else budget.stopped_by or f"limit={limit}"
        result = self._rashomon_set(found, rows, float(epsilon), stopped_by)
        if budget.stopped_by is not None and not budget.stopped_by_callback:
            words = f"{len(result)} good tree{'s' * (len(result) != 1)}"
            warn(
                StoppedEarly(
                    f"Stopped by {budget.stopped_by} after {words} that ask different columns; there may be "
                    "more. Allow more time, or a smaller epsilon, if that is not enough.",
                    self.certificate_,
                )
            )
        return result

    def _good_trees(
        self, rows: TrainingRows, search: SearchRecord, epsilon: float, limit: int, budget: Budget
    ) -> GoodTrees:
        rules, certificate = self._grown.rules, self._certify()
        wanted = SearchRules(
            objective=search.objective,
            max_depth=search.max_depth,
            max_leaf_nodes=search.max_leaf_nodes,
            leaf_penalty=search.leaf_penalty,
            binary=rules.binary,
            unknown_best=rules.unknown_best,
        )
        leaves = min(rows.count, search.max_leaf_nodes or rows.count)
        rounding = leaves * (rows.classes + 1) * search.unit + search.weight_rounding
        rounding += 1e-12 * (1 + certificate.scale)
        own = self.tree_.in_units(-rows.weight_exponent, self.tree_.unit)
        best = own if certificate.gap == 0 else None
        found = good_trees(rows, wanted, epsilon, limit, budget, best, rounding, rules.criterion)
        # Where the fit was stopped, and there was no time to find the best tree now, its own is all there is.
        return found if found.trees else replace(found, trees=[GoodTree(own, certificate.objective)])

    def _rashomon_set(
        self, found: GoodTrees, rows: TrainingRows, epsilon: float, stopped_by: str | None
    ) -> RashomonSet:
        names = self._names().columns
        models, unit, limits = [], self.tree_.unit, self.tree_.limits
        for one in found.trees:
            tree = replace(one.tree.in_units(rows.weight_exponent, unit), limits=limits)
            model = copy.copy(self)
            model.tree_, model._trace = tree, None  # a trace is of the tree of the fit
            models.append(model)
        asked = [tuple(names[j] for j in sorted(one.asked)) for one in found.trees]
        return RashomonSet(
            models=models,
            objectives=[one.objective for one in found.trees],
            asked=asked,
            left_out=[tuple(names[j] for j in sorted(one.left_out)) for one in found.trees],
            required=tuple(names[j] for j in found.required),
            columns={name: sum(j in one.asked for one in found.trees) for j, name in enumerate(names)},
            epsilon=epsilon,
            complete=found.complete,
            stopped_by=stopped_by,
        )

    def _whole_search(self) -> SearchRecord:
        """Return what is known of the search; raise unless the tree is what it has found, as it was found."""
        search = self._grown.search
        if search is None:
            raise InputError(
                f"This tree was fitted with search={self._grown.method!r}, but good trees are told by the "
                "best one. Fit with search='optimal'."
            )
        if self._grown.left_out or (self._certify().gap > 0 and not self._grown.stopped):
            raise InputError(
                "This is not the tree that the search has found: it was pruned, or is one of a RashomonSet. "
                "Ask the model that was fitted, with prune='none' and ccp_alpha=0.0; leaf_penalty makes its "
                "tree smaller."
            )
        return search

    def _require_same_rows(self, rows: TrainingRows) -> None:
        """Raise unless the tree has met rows of these classes and weights in every leaf."""
        tree = self.tree_.in_units(-rows.weight_exponent, self.tree_.unit)
        counts = rows.counting
        weight = None if rows.weight is None else rows.weight[counts]
        at = tree.apply(rows.X)[counts].astype(np.int64) * rows.classes + rows.labels[counts]
        size = tree.node_count * rows.classes
        totals = np.bincount(at, weight, size).reshape(tree.node_count, rows.classes)
        expected = np.where(tree.is_leaf[:, None], tree.totals, 0.0)
        if not np.allclose(totals, expected, rtol=1e-9, atol=1e-9 * float(tree.totals[0].sum())):
            raise InputError(
                "These are not the rows of the fit: other classes or weights end in the leaves of the tree. "
                "Pass X, y and sample_weight as they were given to fit."
            )

    # -- what people read ------------------------------------------------------------------------------------

    def export_text(
        self,
        *,
        max_depth: int | None = None,
        decimals: int | None = 3,
        max_categories: int | None = 8,
        max_branches: int | None = 30,
    ) -> str:
        """Return the tree as indented lines: the test of each branch, the class and its share in each leaf.

        Parameters
        ----------
        max_depth : int, default=None
            How many tests deep the text goes; deeper nodes are counted.
        decimals : int, default=3
            Of thresholds and impurities; None for every digit. Thresholds that would look the same
            have more.
        max_categories : int, default=8
            How many categories of a branch are listed; the others are counted. None for all.
        max_branches : int, default=30
            How many branches of a node are shown, those with the most rows; others are counted. None for all.

        Returns
        -------
        str
        """
        return text.export_text(
            *self._named_tree(),
            max_depth=max_depth,
            decimals=decimals,
            max_categories=max_categories,
            max_branches=max_branches,
        )

    def export_rules(self, *, decimals: int | None = 3, max_categories: int | None = None) -> str:
        """Return one if/then sentence a leaf, each on a line.

        Parameters
        ----------
        decimals : int, default=3
            Of thresholds and impurities; None for every digit. Thresholds that would look the same
            have more.
        max_categories : int, default=None
            How many categories of a condition are listed; the others are counted. None for all.

        Returns
        -------
        str
        """
        return text.export_rules(*self._named_tree(), decimals=decimals, max_categories=max_categories)

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as nested plain data that JSON can hold, with nothing rounded or shortened.

        Returns
        -------
        dict
            ``columns``, ``classes``, ``unit`` and ``root``, see :func:`sixfold.explain.trees.text.to_dict`.
        """
        return text.to_dict(*self._named_tree())

    def export_graphviz(
        self,
        *,
        max_depth: int | None = None,
        decimals: int | None = 3,
        max_categories: int | None = 4,
        max_branches: int | None = 12,
    ) -> str:
        """Return the tree in DOT, the language of Graphviz.

        Parameters
        ----------
        max_depth : int, default=None
            How many tests deep the drawing goes; deeper nodes are counted.
        decimals : int, default=3
            Of thresholds and impurities; None for every digit. Thresholds that would look the same
            have more.
        max_categories : int, default=4
            How many categories of a branch are listed; the others are counted. None for all.
        max_branches : int, default=12
            How many branches of a node are drawn, those with the most rows; others are counted. None for all.

        Returns
        -------
        str
        """
        return text.export_graphviz(
            *self._named_tree(),
            max_depth=max_depth,
            decimals=decimals,
            max_categories=max_categories,
            max_branches=max_branches,
        )

    def export_svg(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        max_depth: int | None = 4,
        decimals: int | None = 3,
        max_branches: int | None = 12,
    ) -> svg.Picture:
        """Return the tree as a drawing in SVG, and write it to a file if a path is given.

        Parameters
        ----------
        path : str or path, default=None
            Where to write the drawing, a name that ends in .svg; a file that is there is replaced by the
            whole new one.
        max_depth : int, default=4
            How many tests deep the drawing goes; a node where it ends says how many are below. None for all.
        decimals : int, default=3
            Of thresholds and impurities; None for every digit. Thresholds that would look the same
            have more.
        max_branches : int, default=12
            How many branches of a node are drawn, those with the most rows; others are counted. None for all.

        Returns
        -------
        Picture
            A str, which notebooks show as a picture.
        """
        return svg.export_svg(
            *self._named_tree(), path=path, max_depth=max_depth, decimals=decimals, max_branches=max_branches
        )

    def explain(self, x: Any) -> TreeExplanation:
        """Return why one row gets its label: its way, the entropy at each step, and what would change it.

        Parameters
        ----------
        x : array of shape (n_features,), or a table with one row

        Returns
        -------
        TreeExplanation
        """
        tree, names = self._named_tree()
        given = one_row(x, names.columns)
        with warnings.catch_warnings():  # one row is rightly written without names
            warnings.simplefilter("ignore", UserWarning)
            table, _ = check_tree_table(self, given, False, self._kinds)
        row = table.toarray()[0] if sp.issparse(table) else np.asarray(table)[0]
        return explain_row(tree, names, row.astype(np.float64), given_values(given, row))

    def _names(self) -> TreeNames:
        """Return what columns, categories and classes are called."""
        columns = column_names(self, self.n_features_in_)
        categories = (None,) * len(columns) if self._kinds is None else self._kinds.categories
        return TreeNames(tuple(columns), categories, tuple(self.classes_.tolist()))

    def _named_tree(self) -> tuple[FittedTree, TreeNames]:
        """Return the tree and the names of what it speaks of."""
        return self._fitted_tree(), self._names()

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """What a notebook shows: the tree once there is one, else scikit-learn's page of parameters."""
        page: Callable[[], str] = super()._repr_html_  # raises where scikit-learn is set to show text
        return (lambda: svg.tree_html(*self._named_tree())) if self.__sklearn_is_fitted__() else page

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return shown | {"text/html": self._repr_html_()} if "text/html" in shown else shown

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
