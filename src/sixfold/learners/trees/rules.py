"""The parameters of a decision tree: checked, and as the rules by which it grows.

Shares of rows, columns and weight become counts of the table at hand; thresholds on entropies, which the user
gives in the unit of ``base``, become bits.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from sixfold.errors import InputError, check_flag, check_number, check_option
from sixfold.solvers.trees.growth import CRITERIA, GrowthRules

PRUNING = ("none", "reduced_error", "cost_complexity")
ENTROPIES = ("entropy", "log_loss", "gain_ratio")
_COUNT = "a whole number that is at least {}, or a share above 0 and at most 1.0"


def check_parameters(model: Any) -> None:
    """Raise an :class:`InputError` about the first parameter that makes no sense."""
    check_option("criterion", model.criterion, (*CRITERIA, "log_loss"))
    if model.splitter != "best":
        raise InputError(
            f"splitter={model.splitter!r} is not an option: every split is the best of its node. For trees "
            "that differ from each other, set max_features and random_state."
        )
    check_number("max_depth", model.max_depth, at_least=0, whole=True, optional=True)
    _check_count("min_samples_split", model.min_samples_split, 2)
    _check_count("min_samples_leaf", model.min_samples_leaf, 1)
    check_number("min_weight_fraction_leaf", model.min_weight_fraction_leaf, at_least=0)
    if model.min_weight_fraction_leaf > 0.5:
        raise InputError(
            f"min_weight_fraction_leaf={model.min_weight_fraction_leaf!r} is out of range: no split leaves "
            "more than half of the weight on both sides. Use at most 0.5."
        )
    if isinstance(model.max_features, str):
        check_option("max_features", model.max_features, ("sqrt", "log2", None), also=_COUNT.format(1))
    elif model.max_features is not None:
        _check_count("max_features", model.max_features, 1)
    check_number("max_leaf_nodes", model.max_leaf_nodes, at_least=2, whole=True, optional=True)
    check_number("min_impurity_decrease", model.min_impurity_decrease, at_least=0)
    check_number("ccp_alpha", model.ccp_alpha, at_least=0)
    if not isinstance(model.base, Real | str) or model.base not in (2, "e", math.e):
        raise InputError(f"base={model.base!r} is not an option: entropies are in bits (2) or nats ('e').")
    check_option("categories", model.categories, ("multiway", "binary"))
    check_option("unknown", model.unknown, ("branch", "best"))
    check_option("prune", model.prune, PRUNING)
    check_number("validation_fraction", model.validation_fraction, above=0)
    if model.validation_fraction >= 1:
        raise InputError(
            f"validation_fraction={model.validation_fraction!r} is out of range: rows to grow from have to "
            "be left. Use a share below 1."
        )
    if not isinstance(model.random_state, Integral | np.random.RandomState | None):
        raise InputError(
            f"random_state={model.random_state!r} cannot be used to seed: pass a whole number, a RandomState "
            "or None."
        )
    if isinstance(model.random_state, Integral) and not 0 <= int(model.random_state) < 2**32:
        raise InputError(
            f"random_state={model.random_state!r} is out of range: a seed is a whole number from 0 to "
            "2**32 - 1."
        )
    check_flag("trace", model.trace)
    check_number("time_limit", model.time_limit, above=0, optional=True)


def _check_count(parameter: str, value: Any, least: int) -> None:
    """Raise unless the value is a whole number from ``least`` on, or a share."""
    right_kind = isinstance(value, Real) and not isinstance(value, bool)
    whole = isinstance(value, Integral)
    if right_kind and (value >= least if whole else 0 < value <= 1):
        return
    problem = "is out of range" if right_kind else f"is of type {type(value).__name__}"
    raise InputError(f"{parameter}={value!r} {problem}: {_COUNT.format(least)}, is needed.")


def unit_of(model: Any) -> float:
    """Return what a bit is in the unit of the model's impurities."""
    nats = model.base != 2 and model.criterion in ENTROPIES
    return math.log(2.0) if nats else 1.0


def columns_looked_at(max_features: Any, columns: int) -> int:
    """Return how many columns are looked at in a node, as scikit-learn counts them."""
    if max_features is None:
        return columns
    if max_features == "sqrt":
        return max(1, int(math.sqrt(columns)))
    if max_features == "log2":
        return max(1, int(math.log2(columns)))
    if isinstance(max_features, Integral):
        return int(max_features)
    return max(1, int(max_features * columns))


def growth_rules(model: Any, rows: int, columns: int, weight_sum: float, seed: int) -> GrowthRules:
    """Return the rules for a table of this size and weight."""
    looked_at = columns_looked_at(model.max_features, columns)
    return GrowthRules(
        criterion="entropy" if model.criterion == "log_loss" else model.criterion,
        binary=model.categories == "binary",
        unknown_best=model.unknown == "best",
        # What no tree of these rows can reach is the same, however far it lies beyond.
        max_depth=None if model.max_depth is None else min(int(model.max_depth), rows),
        min_samples_split=min(max(2, _count(model.min_samples_split, rows)), rows + 1),
        min_samples_leaf=min(max(1, _count(model.min_samples_leaf, rows)), rows),
        min_leaf_weight=float(model.min_weight_fraction_leaf) * weight_sum,
        min_impurity_decrease=float(model.min_impurity_decrease) / unit_of(model),
        max_columns=looked_at if looked_at < columns else None,
        seed=seed,
    )


def _count(value: Any, rows: int) -> int:
    return int(value) if isinstance(value, Integral) else math.ceil(value * rows)
