"""Linear regression against scikit-learn, scikit-learn-intelex, skglm and NumPy.

Peers get their best: all threads, Fortran order for coordinate descent, the fastest solver and the loosest
tolerance that reach the accuracy demanded of all.

Accuracy is a bound on the distance to the optimum, worked out from the data alone, relative to the constant
model; for condition 1e8 it is the relative error of the worst coefficient.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.linear.regression_tasks import (
    SMALL_TABLE,
    SMALL_TARGET,
    Answer,
    Array,
    RegressionTask,
    fresh,
    ill_conditioned,
    lasso_gap,
    least_squares_excess,
    ridge_excess,
    sparse_truth,
    tall,
    wide,
    worst_weight,
)
from benchmarks.peers import chosen, fallback, fastest_accurate, fit
from benchmarks.runner import Case, Contender

EXACT = 1e-10
LASSO_ACCURACY = 1e-8


def coefficients(model: Any) -> Answer:
    return model.coef_, float(model.intercept_)


def least_squares(module: str, task: RegressionTask) -> Any:
    return import_module(module).LinearRegression()


def sixfold(penalty: str, task: RegressionTask, **options: Any) -> Any:
    from sixfold import LinearRegression

    return LinearRegression(penalty=penalty, alpha=task.alpha, **options)


def lasso(module: str, task: RegressionTask, **options: Any) -> Any:
    make = partial(import_module(module).Lasso, task.alpha, **options)
    return fastest_accurate(
        [lambda tol: make(tol=tol)],
        task,
        lambda model: lasso_gap(task, coefficients(model)) <= LASSO_ACCURACY,
    )


def sixfold_ridge(task: RegressionTask) -> Any:
    return accurate_ridge([lambda tol: sixfold("l2", task, tol=tol)], task)


def sklearn_ridge(task: RegressionTask) -> Any:
    from sklearn.linear_model import Ridge

    def maker(solver: str) -> Callable[[float], Any]:
        return lambda tol: Ridge(task.alpha * len(task.y), solver=solver, tol=tol)

    return accurate_ridge(map(maker, ("auto", "cholesky", "svd", "lsqr", "sparse_cg")), task)


def accurate_ridge(makers: Iterable[Callable[[float], Any]], task: RegressionTask) -> Any:
    return fastest_accurate(makers, task, lambda model: ridge_excess(task, coefficients(model)) <= EXACT)


def run_lstsq(job: None, task: RegressionTask) -> Array:
    with_ones = np.column_stack([task.X, np.ones(len(task.y))])
    return np.linalg.lstsq(with_ones, task.y, rcond=None)[0]


def run_fresh(code: str, task: RegressionTask) -> Array:
    """Run the code in a new interpreter; return the numbers it prints.

    Modules are kept compiled, as pip leaves them: where Python may not write bytecode, a package that is
    installed in place would be compiled anew by every process, in 100 ms, and its peers would not.
    """
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=compiled
    )
    return np.array(done.stdout.split(), dtype=float)


def prepare_fresh(module: str, task: RegressionTask) -> str:
    import_module(module)
    return (
        f"import numpy as np; X = {SMALL_TABLE}; y = {SMALL_TARGET}; "
        f"from {module} import LinearRegression; model = LinearRegression().fit(X, y); "
        "print(*model.coef_, model.intercept_)"
    )


def last_is_intercept(parameters: Array) -> Answer:
    return parameters[:-1], float(parameters[-1])


contender = partial(Contender, run=fit, answer=coefficients)
in_fresh_process = partial(Contender, run=run_fresh, answer=last_is_intercept)
SIXFOLD = contender("sixfold", partial(least_squares, "sixfold"))
SKLEARN = contender("scikit-learn", partial(least_squares, "sklearn.linear_model"))
SKLEARNEX = contender(
    "scikit-learn-intelex", partial(least_squares, "sklearnex.linear_model"), remark=fallback
)
LSTSQ = Contender("numpy lstsq", lambda task: None, run_lstsq, last_is_intercept)

case = partial(Case, error=least_squares_excess, accuracy=EXACT)

CASES = (
    case(
        "ols",
        "least squares, 200,000 x 200",
        partial(tall, 200_000, 200),
        (SIXFOLD, SKLEARN, SKLEARNEX, LSTSQ),
        bars={"scikit-learn": 20, "scikit-learn-intelex": 1.5},
        memory_bar=0.10,
    ),
    case(
        "lasso",
        "lasso, 1,000 x 10,000, lambda_max / 100, gap 1e-8",
        sparse_truth,
        (
            contender("sixfold", partial(sixfold, "l1", tol=LASSO_ACCURACY), remark=chosen),
            contender("skglm", partial(lasso, "skglm"), remark=chosen),
            contender(
                "scikit-learn", partial(lasso, "sklearn.linear_model", max_iter=100_000), remark=chosen
            ),
        ),
        error=lasso_gap,
        accuracy=LASSO_ACCURACY,
        bars={"skglm": 1.5, "scikit-learn": 3},
    ),
    case(
        "ridge",
        "ridge, 500 x 20,000",
        wide,
        (
            contender("sixfold", sixfold_ridge, remark=chosen),
            contender("scikit-learn", sklearn_ridge, remark=chosen),
            # scikit-learn-intelex forms 20,000 x 20,000 products: 121 times the memory, 180 times the time.
        ),
        error=ridge_excess,
        bars={"scikit-learn": 2.5},
    ),
    case(
        "fresh",
        "fresh process: import and fit 100 x 5",
        fresh,
        (
            in_fresh_process("sixfold", partial(prepare_fresh, "sixfold")),
            in_fresh_process("scikit-learn", partial(prepare_fresh, "sklearn.linear_model")),
        ),
        bars={"scikit-learn": 1},
        with_memory=False,
    ),
    case(
        "small",
        "warm process: least squares, 200 x 10",
        partial(tall, 200, 10),
        (SIXFOLD, SKLEARN, SKLEARNEX),
        bars={"scikit-learn": 1},
        with_memory=False,
    ),
    case(
        "ill_conditioned",
        "condition 1e8, 20,000 x 50, error of the worst weight",
        ill_conditioned,
        (SIXFOLD, SKLEARN, SKLEARNEX, LSTSQ),
        error=worst_weight,
        accuracy=1e-7,
        with_memory=False,
        long=True,
    ),
)
