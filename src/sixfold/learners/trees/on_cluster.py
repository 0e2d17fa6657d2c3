"""A decision tree of rows on a cluster: what the passes of :mod:`sixfold.solvers.streamed.tree` can do.

Columns are of numbers without gaps, and each split is chosen by itself. What chooses or prunes in another way
needs all rows in one process, which is said before any row is looked at.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.blocks import Block
from sixfold.data.tree_table import LARGEST_EXACT
from sixfold.errors import InputError
from sixfold.learners.distributed import DistributedData, check_on_cluster, fit_table
from sixfold.learners.trees.decision_tree import TreeSolution
from sixfold.solvers.streamed.tree import StreamedGrowth, sampled_every, unit_of
from sixfold.solvers.streamed.tree_passes import Beginning, begin
from sixfold.solvers.trees.growth import FitRecord, TreeParameters
from sixfold.solvers.trees.pruning import prune_ccp

Array = NDArray[Any]
Model = TypeVar("Model")


@dataclass(frozen=True)
class RowsElsewhere:
    """What limits that are shares of rows, columns and weight are taken of."""

    X: Any  # its shape
    count: int
    weight_sum: float


def fit_on_cluster(model: Model, X: Any, y: Any, sample_weight: Any) -> Model:
    """Grow the tree of rows that stay on their workers."""
    learner: Any = model
    with learner._unchanged_on_failure():
        learner._check_parameters()
        require_able(learner)
        require_no_truth(X)
        data = check_on_cluster(learner, X, y, sample_weight, lambda: "class", least=1)
        if learner._parameters().columns_looked_at(learner.n_features_in_) < learner.n_features_in_:
            refuse("max_features", learner.max_features, "None")
        blocks, classes = data.blocks(), learner.classes_.size
        ask = partial(begin, step=sampled_every(blocks.n_rows), classes=classes)
        beginning = blocks.reduce(ask, Beginning.join)
        learner._kinds = None
        learner._rounded = _of_large_types(X) and blocks.reduce(largest, max) >= LARGEST_EXACT
        given = fit_table(learner, data, partial(grow, model=learner, beginning=beginning))
    learner._warn(*given)
    return model


def grow(
    problem: TreeParameters, data: DistributedData, budget: Budget, model: Any, beginning: Beginning
) -> TreeSolution:
    """Return the tree, as the same rows in memory have it."""
    exponent = unit_of(beginning)
    weight = float(np.ldexp(beginning.weights, -exponent).sum())
    rules: Any = problem.rules(RowsElsewhere(data.X, int(beginning.counts.sum()), weight), 0)  # type: ignore[arg-type]
    grown = StreamedGrowth(data.blocks(), beginning, exponent, rules).grow(budget)
    tree, seconds = prune_ccp(grown, problem.alpha).in_units(exponent, problem.unit), budget.seconds
    tree = replace(tree, limits=problem.limits)
    if budget.callbacks:
        tree = model._notify_levels(tree, seconds, budget)
    record = FitRecord(
        rules=rules,
        fraction=float(problem.validation_fraction),
        left_out=0,
        class_weight=copy.copy(model.class_weight),
        all_groupings=True,
        rounded=model._rounded,
        stopped=budget.stopped_by is not None,
        seconds=seconds,
    )
    return TreeSolution(tree, problem.alpha * problem.unit, record, None)


# -- what is not done where the rows are ---------------------------------------------------------------------


def require_able(model: Any) -> None:
    """Raise an :class:`InputError` about the first parameter that needs all rows in one process."""
    problem = model._parameters()
    able = (
        ("search", problem.search == "greedy", "'greedy'"),
        ("criterion", problem.criterion in ("entropy", "log_loss", "gini"), "'entropy' or 'gini'"),
        ("prune", not problem.holds_out, "'none', or ccp_alpha,"),
        ("max_leaf_nodes", problem.max_leaf_nodes is None, "max_depth or ccp_alpha"),
        ("trace", not model.trace, "False"),
    )
    for name, fits, instead in able:
        if not fits:
            refuse(name, getattr(model, name), instead)
    categorical = model.categorical_features
    if categorical is not None and not (isinstance(categorical, str) and categorical == "from_dtype"):
        raise InputError(
            "categorical_features names columns of categories, and trees of rows on a cluster are grown from "
            "columns of numbers alone. Pass one column of 0 and 1 for each category, or fit a sample."
        )


def refuse(name: str, value: Any, instead: str) -> NoReturn:
    """Raise an :class:`InputError` about a parameter that needs all rows in one process."""
    raise InputError(
        f"{name}={value!r} needs all rows in one process, and these are on a cluster. Use {instead} here, or "
        "fit a sample, for instance X.sample(frac=0.1).compute()."
    )


def require_no_truth(X: Any) -> None:
    """Raise an :class:`InputError` about a column of a data frame that in memory is one of categories."""
    for name, kind in zip(getattr(X, "columns", ()), getattr(X, "dtypes", ()), strict=True):
        if getattr(kind, "kind", "O") == "b":
            raise InputError(
                f"Column {name!r} is of type {kind}, which a tree takes for categories, and trees of rows on "
                "a cluster are grown from columns of numbers alone. Pass "
                f"X.astype({{{name!r}: 'int8'}})."
            )


def _of_large_types(X: Any) -> bool:
    """Return whether some column is of whole numbers that float64 may not hold."""
    kinds = [X.dtype] if hasattr(X, "chunks") else list(X.dtypes)
    return any(getattr(kind, "kind", "O") in "iu" and kind.itemsize > 4 for kind in kinds)


def largest(block: Block) -> float:
    """Return the largest absolute value of one block."""
    return float(np.abs(block.X).max(initial=0.0))
