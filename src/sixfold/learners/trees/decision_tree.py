"""ID3: a decision tree, grown from the constant model by the best split there is at each node.

    H(S) = - sum_c p_c log p_c            H(S_1, ..., S_k) = sum_j |S_j| / |S| H(S_j)

Of all columns and all thresholds (or categories) the split with the least weighted average entropy is made,
and its parts are grown in the same way. What it minimises greedily is the average negative log-likelihood

    - 1/n sum_i ln p(y_i | leaf of x_i),

which is the average entropy of the leaves. Sources: Quinlan, Induction of decision trees, Machine Learning 1,
1986; Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984 (binary groups, pruning).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from sixfold.budget import Record
from sixfold.learners.trees.tree_model import TreeModel

Array = NDArray[Any]


class DecisionTreeClassifier(ClassifierMixin, TreeModel):
    """Answer one question after the other until the class is clear.

    The parameters are those of scikit-learn's class, without ``monotonic_cst``; ``splitter`` is "best" alone,
    and entropy is the default. Columns of text and categories are taken as they are, and so are unknown
    values. Every split is the best of its node; equal ones go to the lowest column, then to the lowest
    threshold, and ``random_state`` does not decide between them.

    Parameters
    ----------
    criterion : {"entropy", "log_loss", "gini", "gain_ratio", "homogeneous"}, default="entropy"
        What the best split has least of: entropy ("log_loss" is the same), Gini index, entropy relative to
        how finely it divides ("gain_ratio", as in C4.5: of the columns with at least the average gain, each
        by its split with the most), or rows in parts that are not of one class.
    splitter : {"best"}, default="best"
        Every split is the best of its node.
    max_depth : int, default=None
        Most splits above a leaf; 0 for the constant model, None for no limit.
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
        Most leaves; the most rewarding splits are kept. A split that gives each category a branch is left out
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
    time_limit : float, default=None
        Most seconds of growth; beyond, nodes are left as they are.
    callbacks : sequence of callables, default=None
        Each hears of every level, as in ``history_``, when the tree is grown; one that returns True cuts it
        there. While it grows none is called: ``time_limit`` and Ctrl-C end that.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.

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
        Those by depth: ``max_depths``, ``objectives`` (average entropy in nats), ``leaves``.
    log_likelihood_ : float
        The average log-likelihood of the training rows, in nats.
    history_ : list of Record
        One a level: the average entropy in nats, were the tree cut there; the seconds are those of it all.
    solver_ : str
        What grew the tree.
    trace_ : Trace
        Only with ``trace``.
    certificate_ : Certificate
        That every split is the best of its node, among the columns drawn with ``max_features`` and, where
        ``categories="binary"`` does not try all, the groupings tried; and how much better any tree could fit
        at most.

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
    """

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
        time_limit: float | None = None,
        callbacks: Sequence[Callable[[Record], Any]] | None = None,
        n_jobs: int | None = None,
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
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.n_jobs = n_jobs

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
        nodes = self._ends(X)
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
        nodes = self._ends(X)
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
        nodes = self._ends(X)
        with np.errstate(divide="ignore"):
            return np.log(self.tree_.shares[nodes])

    def staged_predict(self, X: Any, *, by: str = "max_depth", values: Any = None) -> Iterator[Array]:
        """Yield the predictions of all smaller trees inside this one, without growing any of them.

        They are those of separate fits with each value, unless ``max_leaf_nodes``, ``prune`` or the other of
        the two limits has cut this tree.

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
        stages = self._staged_ends(X, by, values)
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
        stages = self._staged_ends(X, by, values)
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
        return self._ends(X).astype(np.int64)

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
        nodes = self._ends(X)
        way, starts = self.tree_.ways_to(nodes)
        passed = np.ones(way.size, dtype=np.int64)
        return sp.csr_matrix((passed, way, starts), (nodes.size, self.tree_.node_count))
