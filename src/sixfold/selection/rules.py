"""Which candidate is chosen.

    best    the highest mean score, the first of equal ones
    1se     the simplest whose mean score is at most one standard error below the best

The standard error is that of the best candidate's mean: the standard deviation of its scores on the K folds,
divided by sqrt(K). What is simpler is said by the plan of each learner (more neighbours, a stronger penalty,
a smaller tree); of equally simple candidates the one with the higher score is taken. Parameters that a
candidate leaves out have the estimator's own value. Only numbers have an order: where the best candidate has
gamma="scale", others with that name are compared with it, and those with a number are not.

Source: Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984, section 3.4.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError
from sixfold.explain.last_step import last_step
from sixfold.selection.plans.groups import simpler_parameters, with_setting

Array = NDArray[Any]
RULES = ("best", "1se")


def within_one_error(scores: Array) -> NDArray[np.bool_]:
    """Return which candidates (rows) are within one standard error of the best, by scores on folds (columns).

    >>> within_one_error(np.array([[0.9, 0.7], [0.75, 0.75], [0.5, 0.5]]))
    array([ True,  True, False])
    """
    means = scores.mean(axis=1)
    if np.isnan(means).all():
        return np.ones(means.size, dtype=bool)
    best = int(np.nanargmax(means))
    folds = scores.shape[1]
    error = scores[best].std(ddof=1) / math.sqrt(folds) if folds > 1 else 0.0
    within: NDArray[np.bool_] = means >= means[best] - error
    return within


def simplest_within_one_error(model: Any, results: Mapping[str, Any], metric: str, folds: int) -> int:
    """Return the number of the simplest candidate within one standard error of the best."""
    scores = np.column_stack([results[f"split{fold}_test_{metric}"] for fold in range(folds)])
    means, params = scores.mean(axis=1), results["params"]
    able = np.flatnonzero(within_one_error(scores)).tolist()
    known = {one: complexity(model, params[one]) for one in able}
    best = max(able, key=means.__getitem__)
    alike = [one for one in able if known[one][0] == known[best][0]]
    return min(alike, key=lambda one: (known[one][1], -means[one], one))


def complexity(model: Any, setting: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[float, ...]]:
    """Return what has no order, and numbers that are smaller for a simpler model, the most important first.

    >>> from sixfold import SVC
    >>> kind, numbers = complexity(SVC(), {"C": 10.0})
    >>> kind["gamma"], numbers[0]
    ("'scale'", 10.0)
    """
    candidate = with_setting(model, setting)
    kind: dict[str, Any] = {"learner": type(last_step(candidate))}
    numbers, values = [], candidate.get_params()
    for name, sign in simpler_parameters(candidate).items():
        value = values.get(name)
        if value is None:  # no limit
            numbers.append(-sign * math.inf)
        elif isinstance(value, int | float | np.number):
            numbers.append(-sign * float(value))
        else:
            kind[name] = repr(value)
    return kind, tuple(numbers)


def require_order(model: Any, parameters: Iterable[str]) -> None:
    """Raise an :class:`InputError` where none of the parameters says which model is simpler."""
    order = simpler_parameters(model)
    if not set(order) & set(parameters):
        known = ", ".join(order) or "none"
        raise InputError(
            f"rule='1se' takes the simplest model, and no parameter of the search says which of "
            f"{type(model).__name__} that is (known: {known}). Search over one of them, or use rule='best'."
        )
