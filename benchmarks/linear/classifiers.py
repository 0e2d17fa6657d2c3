"""Logistic regression, linear SVM, perceptron and SGD against scikit-learn, its intelex, LIBLINEAR and skglm.

Peers get their best: all threads, every solver they have for the task, and of each the loosest tolerance that
reaches the accuracy demanded of all. LIBLINEAR is called through scikit-learn; its hinge solver is measured
as it comes, since it does not reach the accuracy in any reasonable time on dense data.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.linear.classifier_tasks import (
    DENSE_HINGE,
    DENSE_LOGISTIC,
    Answer,
    Labelled,
    excess,
    few_relevant,
    share_wrong,
    ten_classes,
    text_like,
)
from benchmarks.linear.regression import chosen, fallback
from benchmarks.runner import Case, Contender

ACCURACY = 1e-6
EPOCHS = 10
TOLERANCES = tuple(10.0**-k for k in range(3, 11))
PATIENCE = 20.0  # seconds that the search for a tolerance may spend on one solver


def fit(estimator: Any, task: Labelled) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(task.X, task.y)


def coefficients(model: Any) -> Answer:
    intercept = model.intercept_ if np.size(model.intercept_) else 0.0
    return model.coef_, np.asarray(intercept, dtype=float)


def best_of(makers: Iterable[Callable[[float], Any]], task: Labelled) -> Any:
    """Return the fastest estimator, each with the loosest tolerance that reaches the accuracy."""
    best, shortest = None, math.inf
    for make in makers:
        begun = time.perf_counter()
        for tol in TOLERANCES:
            start = time.perf_counter()
            model = fit(make(tol), task)
            seconds = time.perf_counter() - start
            if excess(task, coefficients(model)) <= ACCURACY:
                if seconds < shortest:
                    best, shortest = make(tol), seconds
                break
            if time.perf_counter() - begun > PATIENCE:
                break
    if best is None:
        raise RuntimeError(f"No setting of the peer reaches an error of {ACCURACY}.")
    return best


def sixfold_logistic(task: Labelled) -> Any:
    from sixfold import LogisticRegression

    l1_ratio = 1.0 if task.penalty == "l1" else 0.0
    return LogisticRegression(C=task.C, l1_ratio=l1_ratio, fit_intercept=task.fit_intercept, tol=ACCURACY)


def sixfold_hinge(task: Labelled) -> Any:
    from sixfold import LinearSVC

    return LinearSVC(C=task.C, loss="hinge", fit_intercept=task.fit_intercept, tol=ACCURACY)


def sklearn_logistic(solvers: tuple[str, ...], task: Labelled) -> Any:
    from sklearn.linear_model import LogisticRegression

    def make(solver: str, tol: float) -> Any:
        l1_ratio = 1.0 if task.penalty == "l1" else 0.0
        return LogisticRegression(
            C=task.C,
            l1_ratio=l1_ratio,
            fit_intercept=task.fit_intercept,
            solver=solver,
            tol=tol,
            max_iter=10_000,
        )

    return best_of([partial(make, solver) for solver in solvers], task)


def sklearnex_logistic(solvers: tuple[str, ...], task: Labelled) -> Any:
    from sklearnex.linear_model import LogisticRegression

    def make(solver: str, tol: float) -> Any:
        return LogisticRegression(
            C=task.C, fit_intercept=task.fit_intercept, solver=solver, tol=tol, max_iter=10_000
        )

    return best_of([partial(make, solver) for solver in solvers], task)


def liblinear_dual_logistic(task: Labelled) -> list[Callable[[float], Any]]:
    from sklearn.linear_model import LogisticRegression

    def make(dual: bool, tol: float) -> Any:
        return LogisticRegression(
            C=task.C, fit_intercept=False, solver="liblinear", dual=dual, tol=tol, max_iter=10_000
        )

    return [partial(make, dual) for dual in (True, False)]


def liblinear_logistic(task: Labelled) -> Any:
    return best_of(liblinear_dual_logistic(task), task)


def liblinear_l1(task: Labelled) -> Any:
    return sklearn_logistic(("liblinear",), task)


def liblinear_hinge(task: Labelled) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(C=task.C, loss="hinge", dual=True, fit_intercept=False)


def liblinear_hinge_to_accuracy(task: Labelled) -> Any:
    from sklearn.svm import LinearSVC

    def make(tol: float) -> Any:
        return LinearSVC(C=task.C, loss="hinge", dual=True, fit_intercept=False, tol=tol, max_iter=10_000)

    return best_of([make], task)


def skglm_l1(task: Labelled) -> Any:
    from skglm import SparseLogisticRegression

    def make(tol: float) -> Any:
        return SparseLogisticRegression(alpha=1.0 / (task.C * len(task.y)), tol=tol, fit_intercept=False)

    return best_of([make], task)


def sixfold_perceptron(task: Labelled) -> Any:
    from sixfold import Perceptron

    return Perceptron(max_iter=EPOCHS, tol=None)


def sklearn_perceptron(task: Labelled) -> Any:
    from sklearn.linear_model import Perceptron

    return Perceptron(max_iter=EPOCHS, tol=None)


def sixfold_sgd(task: Labelled) -> Any:
    from sixfold import ERMClassifier

    return ERMClassifier(
        "logistic", alpha=1.0 / (task.C * len(task.y)), solver="sgd", max_iter=EPOCHS, tol=0.0
    )


def sklearn_sgd(task: Labelled) -> Any:
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier("log_loss", alpha=1.0 / (task.C * len(task.y)), max_iter=EPOCHS, tol=None)


def contender(
    name: str, prepare: Callable[[Labelled], Any], remark: Callable[[Any], str] | None = None
) -> Contender:
    return Contender(name, prepare, fit, coefficients, *([remark] if remark else []))


def intelex_remark(model: Any) -> str:
    return "; ".join(filter(None, [chosen(model), fallback(model)]))


ALL = ("lbfgs", "newton-cholesky", "newton-cg")

CASES = (
    Case(
        name="logistic",
        title="logistic regression, 200,000 x 100",
        data=DENSE_LOGISTIC,
        contenders=(
            contender("sixfold", sixfold_logistic),
            contender("scikit-learn", partial(sklearn_logistic, (*ALL, "sag")), chosen),
            contender(
                "scikit-learn-intelex", partial(sklearnex_logistic, ("lbfgs", "newton-cg")), intelex_remark
            ),
        ),
        error=excess,
        accuracy=ACCURACY,
        bars={"scikit-learn": 4, "scikit-learn-intelex": 4},
        memory_bar=0.15,
    ),
    Case(
        name="softmax",
        title="softmax regression, 20,000 x 100, 10 classes",
        data=ten_classes,
        contenders=(
            contender("sixfold", sixfold_logistic),
            contender("scikit-learn", partial(sklearn_logistic, ALL), chosen),
            contender("scikit-learn-intelex", partial(sklearnex_logistic, ("lbfgs",)), intelex_remark),
        ),
        error=excess,
        accuracy=ACCURACY,
        bars={"scikit-learn": 25},
        memory_bar=0.15,
    ),
    Case(
        name="hinge",
        title="linear SVM (hinge), 200,000 x 100",
        data=DENSE_HINGE,
        contenders=(contender("sixfold", sixfold_hinge), contender("LIBLINEAR", liblinear_hinge, chosen)),
        error=excess,
        accuracy=ACCURACY,
        bars={"LIBLINEAR": 20},
        memory_bar=0.15,
    ),
    Case(
        name="sparse_logistic",
        title="logistic regression, sparse 50,000 x 100,000",
        data=partial(text_like, "logistic"),
        contenders=(
            contender("sixfold", sixfold_logistic),
            contender("LIBLINEAR", liblinear_logistic, chosen),
        ),
        error=excess,
        accuracy=ACCURACY,
        bars={"LIBLINEAR": 1.5},
        with_memory=False,
    ),
    Case(
        name="sparse_hinge",
        title="linear SVM (hinge), sparse 50,000 x 100,000",
        data=partial(text_like, "hinge"),
        contenders=(
            contender("sixfold", sixfold_hinge),
            contender("LIBLINEAR", liblinear_hinge_to_accuracy, chosen),
        ),
        error=excess,
        accuracy=ACCURACY,
        bars={"LIBLINEAR": 1.5},
        with_memory=False,
    ),
    Case(
        name="l1_logistic",
        title="L1 logistic regression, 2,000 x 20,000",
        data=few_relevant,
        contenders=(
            contender("sixfold", sixfold_logistic),
            contender("skglm", skglm_l1, chosen),
            contender("LIBLINEAR", liblinear_l1, chosen),
        ),
        error=excess,
        accuracy=ACCURACY,
        bars={"skglm": 1.5, "LIBLINEAR": 1.5},
    ),
    Case(
        name="perceptron",
        title=f"perceptron, {EPOCHS} epochs, 200,000 x 100, share of wrong rows",
        data=DENSE_LOGISTIC,
        contenders=(contender("sixfold", sixfold_perceptron), contender("scikit-learn", sklearn_perceptron)),
        error=share_wrong,
        accuracy=0.5,
        bars={"scikit-learn": 3},
        memory_bar=0.15,
    ),
    Case(
        name="sgd",
        title=f"stochastic gradients (logistic), {EPOCHS} epochs, 200,000 x 100",
        data=DENSE_LOGISTIC,
        contenders=(contender("sixfold", sixfold_sgd), contender("scikit-learn", sklearn_sgd)),
        error=excess,
        accuracy=0.05,
        bars={"scikit-learn": 3},
        memory_bar=0.15,
    ),
)
