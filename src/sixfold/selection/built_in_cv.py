"""What estimators with built-in cross-validation share.

Who gets which parameter of ``fit``, folds on threads, lines of progress, and taking over the model of all
rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

import sklearn
from sklearn.utils.metadata_routing import process_routing

from sixfold.errors import InputError
from sixfold.learners.base import PROGRESS_INTERVAL
from sixfold.solvers.threads import divide_threads, thread_limit

Result = TypeVar("Result")


def route(model: Any, method: str, sample_weight: Any, params: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the parameters of the splitter and those of the scorer.

    Without scikit-learn's metadata routing a scorer gets the weights, and a splitter nothing.
    """
    if sklearn.get_config()["enable_metadata_routing"]:
        given = params if sample_weight is None else {**params, "sample_weight": sample_weight}
        routed = process_routing(model, method, **given)
        return routed.splitter.get("split", {}), routed.get("scorer", {}).get("score", {})
    if params:
        names = ", ".join(sorted(params))
        raise InputError(
            f"[{names}] are passed to {type(model).__name__}.{method}, which is only supported if "
            "enable_metadata_routing=True. Call sklearn.set_config(enable_metadata_routing=True), or pass "
            "cv=list(splitter.split(X, y, groups))."
        )
    return {}, {} if sample_weight is None else {"sample_weight": sample_weight}


def on_threads(work: Callable[[Any], Result], parts: Sequence[Any], n_jobs: int | None) -> list[Result]:
    """Return what the work makes of each part, on as many threads at the same time; None for all."""
    jobs, threads = divide_threads(n_jobs, len(parts))
    if jobs <= 1:
        return [work(part) for part in parts]

    def limited(part: Any) -> Result:
        with thread_limit(threads):
            return work(part)

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(limited, parts))


def with_progress(model: Any, work: Callable[[Any], Result], folds: int) -> Callable[[Any], Result]:
    """Return the work on a fold; where ``verbose`` asks for it, it prints how many are done."""
    if not model.verbose:
        return work
    begun, lock, done, printed = time.perf_counter(), Lock(), 0, -math.inf

    def work_and_print(fold: Any) -> Result:
        nonlocal done, printed
        result = work(fold)
        with lock:
            done, now = done + 1, time.perf_counter()
            if done == folds or now - printed >= PROGRESS_INTERVAL:
                print(f"{type(model).__name__}: fold {done} of {folds}, {now - begun:.2f} s", flush=True)
                printed = now
        return result

    return work_and_print


def adopt(model: Any, fitted: Any) -> None:
    """Give a model what a fit has left in another one, but for the parameters of either."""
    own, others = model.get_params(deep=False), fitted.get_params(deep=False)
    left = {name: value for name, value in vars(fitted).items() if name not in own and name not in others}
    vars(model).pop("feature_names_in_", None)  # of an earlier fit
    vars(model).update(left)
