"""Logistic regression, linear SVM, perceptron and SGD against scikit-learn, its intelex, LIBLINEAR and skglm.

Peers get their best: all threads, every solver they have for the task, and of each the loosest tolerance that
reaches the accuracy demanded of all. LIBLINEAR is called through scikit-learn; its hinge solver is measured
as it comes on dense data, since it does not reach the accuracy there in any reasonable time.

Accuracy is the distance of the objective from a certified lower bound, relative to the zero model; for the
perceptron it is the share of wrong rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.linear.classifier_tasks import (
    DENSE_HINGE,
    DENSE_LOGISTIC,
    Answer,
    ClassificationTask,
    excess,
    few_relevant,
    share_wrong,
    ten_classes,
    text_like,
)
from benchmarks.peers import chosen, fallback, fastest_accurate, fit, joined
from benchmarks.runner import Case, Contender

ACCURACY = 1e-6
EPOCHS = 10
TOLERANCES = tuple(10.0**-k for k in range(3, 11))
SEARCH_SECONDS = 20.0  # that the search for a tolerance may spend on one solver


def fit_quietly(estimator: Any, task: ClassificationTask) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(estimator, task)


def coefficients(model: Any) -> Answer:
    intercept = model.intercept_ if np.size(model.intercept_) else 0.0
    return model.coef_, np.asarray(intercept, dtype=float)


def best_of(makers: Iterable[Callable[[float], Any]], task: ClassificationTask) -> Any:
    """Return the fastest estimator, each with the loosest tolerance that reaches the accuracy."""
    return fastest_accurate(
        makers, task, lambda model: excess(task, coefficients(model)) <= ACCURACY, TOLERANCES, SEARCH_SECONDS
    )


def parameters_of(task: ClassificationTask) -> dict[str, Any]:
    """Return the parameters of LogisticRegression that state the task."""
    penalty = {"l1_ratio": 1.0} if task.penalty == "l1" else {}
    return {"C": task.C, "fit_intercept": task.fit_intercept, **penalty}


def sixfold_logistic(task: ClassificationTask) -> Any:
    from sixfold import LogisticRegression

    return LogisticRegression(**parameters_of(task), tol=ACCURACY)


def sixfold_hinge(task: ClassificationTask) -> Any:
    from sixfold import LinearSVC

    return LinearSVC(C=task.C, loss="hinge", fit_intercept=task.fit_intercept, tol=ACCURACY)


def logistic(library: str, settings: Iterable[dict[str, Any]], task: ClassificationTask) -> Any:
    """Return the fastest of a library's solvers, each given by its parameters."""
    make = partial(
        import_module(f"{library}.linear_model").LogisticRegression, **parameters_of(task), max_iter=10_000
    )
    return best_of([lambda tol, own=own: make(tol=tol, **own) for own in settings], task)


def solvers(*names: str) -> list[dict[str, Any]]:
    return [{"solver": name} for name in names]


def liblinear_hinge(task: ClassificationTask, **options: Any) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(C=task.C, loss="hinge", dual=True, fit_intercept=False, **options)


def liblinear_hinge_to_accuracy(task: ClassificationTask) -> Any:
    return best_of([lambda tol: liblinear_hinge(task, tol=tol, max_iter=10_000)], task)


def skglm_l1(task: ClassificationTask) -> Any:
    from skglm import SparseLogisticRegression

    make = partial(SparseLogisticRegression, alpha=1.0 / (task.C * len(task.y)), fit_intercept=False)
    return best_of([lambda tol: make(tol=tol)], task)


def perceptron(module: str, task: ClassificationTask) -> Any:
    return import_module(module).Perceptron(max_iter=EPOCHS, tol=None)


def sixfold_sgd(task: ClassificationTask) -> Any:
    from sixfold import ERMClassifier

    return ERMClassifier(
        "logistic", alpha=1.0 / (task.C * len(task.y)), solver="sgd", max_iter=EPOCHS, tol=0.0
    )


def sklearn_sgd(task: ClassificationTask) -> Any:
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier("log_loss", alpha=1.0 / (task.C * len(task.y)), max_iter=EPOCHS, tol=None)


contender = partial(Contender, run=fit_quietly, answer=coefficients)
tuned = partial(contender, remark=chosen)
case = partial(Case, error=excess, accuracy=ACCURACY)
SIXFOLD_LOGISTIC = contender("sixfold", sixfold_logistic)
SIXFOLD_HINGE = contender("sixfold", sixfold_hinge)
LIBLINEAR = [{"solver": "liblinear", "dual": dual} for dual in (True, False)]


def sklearn(*names: str) -> Contender:
    return tuned("scikit-learn", partial(logistic, "sklearn", solvers(*names)))


def sklearn_by(solver: str) -> Contender:
    return tuned(f"scikit-learn, {solver}", partial(logistic, "sklearn", solvers(solver)))


def sklearnex(*names: str) -> Contender:
    prepare = partial(logistic, "sklearnex", solvers(*names))
    return contender("scikit-learn-intelex", prepare, remark=joined(chosen, fallback))


CASES = (
    case(
        "logistic",
        "logistic regression, 200,000 x 100",
        DENSE_LOGISTIC,
        (
            SIXFOLD_LOGISTIC,
            sklearn("lbfgs", "newton-cholesky", "newton-cg", "sag"),
            sklearnex("lbfgs", "newton-cg"),
        ),
        bars={"scikit-learn": 6, "scikit-learn-intelex": 6},
        memory_bar=0.15,
    ),
    case(
        "softmax",
        "softmax regression, 20,000 x 100, 10 classes",
        ten_classes,
        (SIXFOLD_LOGISTIC, sklearn_by("lbfgs"), sklearn_by("newton-cg"), sklearnex("lbfgs")),
        bars={"scikit-learn, lbfgs": 40, "scikit-learn, newton-cg": 25},
        memory_bar=0.15,
    ),
    case(
        "hinge",
        "linear SVM (hinge), 200,000 x 100",
        DENSE_HINGE,
        (SIXFOLD_HINGE, tuned("LIBLINEAR", liblinear_hinge)),
        bars={"LIBLINEAR": 20},
        memory_bar=0.15,
    ),
    case(
        "sparse_logistic",
        "logistic regression, sparse 50,000 x 100,000",
        partial(text_like, "logistic"),
        (SIXFOLD_LOGISTIC, tuned("LIBLINEAR", partial(logistic, "sklearn", LIBLINEAR))),
        bars={"LIBLINEAR": 1.5},
        with_memory=False,
    ),
    case(
        "sparse_hinge",
        "linear SVM (hinge), sparse 50,000 x 100,000",
        partial(text_like, "hinge"),
        (SIXFOLD_HINGE, tuned("LIBLINEAR", liblinear_hinge_to_accuracy)),
        bars={"LIBLINEAR": 1.5},
        with_memory=False,
        long=True,
    ),
    case(
        "l1_logistic",
        "L1 logistic regression, 2,000 x 20,000",
        few_relevant,
        (
            SIXFOLD_LOGISTIC,
            tuned("skglm", skglm_l1),
            tuned("LIBLINEAR", partial(logistic, "sklearn", solvers("liblinear"))),
        ),
        bars={"skglm": 2, "LIBLINEAR": 1.5},
    ),
    Case(
        "perceptron",
        f"perceptron, {EPOCHS} epochs, 200,000 x 100, share of wrong rows",
        DENSE_LOGISTIC,
        (
            contender("sixfold", partial(perceptron, "sixfold")),
            contender("scikit-learn", partial(perceptron, "sklearn.linear_model")),
        ),
        error=share_wrong,
        accuracy=0.5,
        bars={"scikit-learn": 3.5},
        memory_bar=0.15,
    ),
    Case(
        "sgd",
        f"stochastic gradients (logistic), {EPOCHS} epochs, 200,000 x 100",
        DENSE_LOGISTIC,
        (contender("sixfold", sixfold_sgd), contender("scikit-learn", sklearn_sgd)),
        error=excess,
        accuracy=0.05,
        bars={"scikit-learn": 3.5},
        memory_bar=0.15,
    ),
)
