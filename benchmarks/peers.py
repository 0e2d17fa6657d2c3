"""What contenders of all families share: a job, the search for a peer's best settings, remarks."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(6, 29))  # 1e-3 to 1e-14 in half decades


class Job(NamedTuple):
    """An estimator with scikit-learn's ``fit``, and the data as it likes them."""

    estimator: Any
    task: Any


class Predicted(NamedTuple):
    """What a fitted model answered, and the model."""

    model: Any
    values: Any


def unchanged(result: Any) -> Any:
    """Return the result, where all of it is judged."""
    return result


def fit(estimator: Any, task: Any) -> Any:
    """Return the estimator, fitted to the rows and labels of a task."""
    return estimator.fit(task.X, task.y)


def chosen(model: Any) -> str:
    """Say which options were found to be best."""
    solver = getattr(model, "solver", None)
    return f"tol={model.tol:.0e}" if solver is None else f"solver={solver}, tol={model.tol:.0e}"


def fallback(model: Any) -> str:
    """Say so where scikit-learn-intelex silently left the work to scikit-learn."""
    return "" if hasattr(model, "_onedal_estimator") else "fell back to scikit-learn"


def joined(*remarks: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a remark that says what all of these say."""
    return lambda model: "; ".join(filter(None, (remark(model) for remark in remarks)))


def fastest_accurate(
    makers: Iterable[Callable[[float], Any]],
    task: Any,
    is_accurate: Callable[[Any], bool],
    tolerances: Iterable[float] = TOLERANCES,
    patience: float = math.inf,
) -> Any:
    """Return the fastest estimator ``make(tol)``, each maker with the loosest tolerance that is accurate.

    The time of an estimator is the shorter of two fits. A maker whose failed fits have taken ``patience``
    seconds is given up.
    """
    best, shortest = None, math.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for make in makers:
            begun = time.perf_counter()
            for tol in tolerances:
                seconds, model = _timed_fit(make(tol), task)
                if is_accurate(model):
                    seconds = min(seconds, _timed_fit(make(tol), task)[0])
                    if seconds < shortest:
                        best, shortest = make(tol), seconds
                    break
                if time.perf_counter() - begun > patience:
                    break
    if best is None:
        raise RuntimeError("No setting of the peer reaches the accuracy that the case demands.")
    return best


def _timed_fit(estimator: Any, task: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    model = fit(estimator, task)
    return time.perf_counter() - start, model
