"""Whole searches against scikit-learn's GridSearchCV, which fits every candidate anew.

scikit-learn's learners are searched by its own GridSearchCV with two processes; a second row has *our*
learners in it, so that the gain of sharing work is seen apart from that of faster fits. Path estimators are
compared with scikit-learn's and with skglm's path.

Accuracy is how far the mean score (on the held-out rows) of the choice is below the best of the run; each row
says which parameters were chosen.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers import Job, unchanged
from benchmarks.runner import Case, Contender
from benchmarks.selection.tasks import SearchTask, depths, kernels, lasso, neighbours, ridge, sparse_logistic

JOBS = 2
OURS_IN_THEIRS = "sixfold in scikit-learn's search"


def search(job: Job, task: SearchTask) -> Any:
    """Fit the search."""
    return job.estimator.fit(job.task.X, job.task.y)


def shared(make: Callable[[], Any], translate: Callable[[Any], Any], task: SearchTask) -> Job:
    """Return our search over our learner."""
    from sixfold import GridSearchCV

    options = {"cv": task.folds, "n_jobs": JOBS, "scoring": task.scoring}
    return Job(GridSearchCV(make(), translate(task).grid, **options), task)


def separate(make: Callable[[], Any], translate: Callable[[Any], Any], task: SearchTask) -> Job:
    """Return scikit-learn's search over a learner."""
    from sklearn.model_selection import GridSearchCV

    options = {"cv": task.folds, "n_jobs": JOBS, "scoring": task.scoring}
    return Job(GridSearchCV(make(), translate(task).grid, **options), task)


def in_our_units(task: SearchTask) -> SearchTask:
    """Return a ridge grid with penalties as ours counts them: by the average of the rows, not their sum."""
    rows = len(task.y) * (task.folds - 1) // task.folds
    return task._replace(grid={"alpha": task.grid["alpha"] / rows})


def score_lost(task: SearchTask, search: Any) -> float:
    return -float(search.best_score_)


def parameters(search: Any) -> str:
    """Say what was chosen; penalties of ridge regression as scikit-learn counts them."""
    chosen = dict(search.best_params_)
    if "alpha" in chosen and type(search.best_estimator_).__module__.startswith("sixfold"):
        rows = search.best_estimator_.certificate_.subject.rows
        chosen["alpha"] *= rows * (search.n_splits_ - 1) // search.n_splits_
    return ", ".join(f"{name}={value:.4g}" for name, value in chosen.items())


def searches(
    name: str,
    title: str,
    data: Callable[[bool], SearchTask],
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    bar: float,
    slack: float,
    translate: Callable[[Any], Any] = unchanged,
    long: bool = False,
) -> Case:
    """Return a case of one grid: our search, our learners in scikit-learn's, its own learners in its own."""
    contenders = (
        Contender("sixfold", partial(shared, ours, translate), search, unchanged, parameters),
        Contender(OURS_IN_THEIRS, partial(separate, ours, translate), search, unchanged, parameters),
        Contender("scikit-learn", partial(separate, theirs, unchanged), search, unchanged, parameters),
    )
    bars = {"scikit-learn": bar}
    options = {"with_memory": False, "slack": slack, "long": long}
    return Case(name, title, data, contenders, score_lost, slack, bars, **options)


# -- learners, imported when it is their turn ----------------------------------------------------------------


def our(name: str, **options: Any) -> Any:
    import sixfold

    return getattr(sixfold, name)(**options)


def their(module: str, name: str, **options: Any) -> Any:
    from importlib import import_module

    return getattr(import_module(f"sklearn.{module}"), name)(**options)


# -- paths -------------------------------------------------------------------------------------------------


def ridge_path(library: Callable[[], Any], task: SearchTask) -> Job:
    return Job(library().set_params(alphas=task.grid["alpha"]), task)


def chosen_alpha(model: Any) -> str:
    return f"alpha={model.alpha_:.4g}"


def ridge_score_lost(task: SearchTask, model: Any) -> float:
    return -float(model.best_score_)


def lasso_path(library: Callable[[], Any], task: SearchTask) -> Job:
    return Job(library().set_params(cv=task.folds), task)


def least_error(task: SearchTask, model: Any) -> float:
    """Return the least mean squared error over the path, relative to the variance."""
    return float(np.min(model.mse_path_.mean(axis=-1)) / np.var(task.y))


class SkglmLassoCV:
    """The lasso path of skglm on every fold, and the penalty with the least error."""

    def __init__(self, cv: int = 5, tol: float = 1e-4) -> None:
        self.cv, self.tol = cv, tol

    def set_params(self, cv: int) -> SkglmLassoCV:
        """Set the number of folds."""
        self.cv = cv
        return self

    def fit(self, X: Any, y: Any) -> SkglmLassoCV:
        """Run the path on every fold."""
        from skglm import Lasso
        from sklearn.model_selection import KFold

        centred, target = X - X.mean(axis=0), y - y.mean()
        largest = np.abs(centred.T @ target).max() / len(y)
        alphas = largest * np.logspace(0, -3, 100)
        errors = np.empty((100, self.cv))
        for fold, (train, test) in enumerate(KFold(self.cv).split(X)):
            mean, level = X[train].mean(axis=0), y[train].mean()
            rows = np.asfortranarray(X[train] - mean)
            _, coefs, *_ = Lasso(fit_intercept=False, tol=self.tol).path(rows, y[train] - level, alphas)
            predicted = (X[test] - mean) @ coefs + level
            errors[:, fold] = np.mean((predicted - y[test, None]) ** 2, axis=0)
        self.mse_path_ = errors
        self.alpha_ = alphas[errors.mean(axis=1).argmin()]
        self.model_ = Lasso(alpha=self.alpha_, fit_intercept=False, tol=self.tol).fit(centred, target)
        return self


def prepare_skglm(task: SearchTask) -> Job:
    import skglm  # noqa: F401 - an ImportError here means that it is not installed

    return Job(SkglmLassoCV(task.folds), task)


# -- all learners ------------------------------------------------------------------------------------------


def breast_cancer(quick: bool) -> SearchTask:
    """Return the table of breast cancer."""
    from sklearn.datasets import load_breast_cancer

    return SearchTask(*load_breast_cancer(return_X_y=True), {}, 5)


def prepare_nothing(task: SearchTask) -> SearchTask:
    return task


def compare_ours(job: Any, task: SearchTask) -> dict[str, float]:
    """Return the mean score of every learner."""
    from sixfold import compare

    return {one.name: one.mean for one in compare(task.X, task.y).entries}


def compare_theirs(job: Any, task: SearchTask) -> dict[str, float]:
    """Tune scikit-learn's learners on the grids, folds and rows of ``compare``."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
    from sklearn.pipeline import Pipeline

    from sixfold.selection.contenders import LEARNER, contenders

    X, X_test, y, y_test = train_test_split(task.X, task.y, test_size=0.2, random_state=0, stratify=task.y)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    means = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in contenders("classification", X, y, "all"):
            model = one.model
            if one.name in THEIRS:
                model = Pipeline([*model.steps[:-1], (LEARNER, THEIRS[one.name]())])
            search = GridSearchCV(model, one.grid, cv=folds, n_jobs=JOBS).fit(X, y)
            search.score(X_test, y_test)
            means[one.name] = float(search.best_score_)
    return means


THEIRS = {
    "logistic regression": partial(their, "linear_model", "LogisticRegression", max_iter=10_000),
    "logistic regression (l1)": partial(
        their, "linear_model", "LogisticRegression", l1_ratio=1.0, solver="liblinear"
    ),
    "perceptron": partial(
        their,
        "linear_model",
        "SGDClassifier",  # Perceptron, which cannot average
        loss="perceptron",
        learning_rate="constant",
        eta0=1.0,
        penalty=None,
        max_iter=50,
    ),
    "linear SVM": partial(their, "svm", "LinearSVC", loss="hinge", max_iter=10_000),
    "SVM (rbf)": partial(their, "svm", "SVC"),
    "tree": partial(their, "tree", "DecisionTreeClassifier", criterion="entropy", random_state=0),
    "nearest neighbours": partial(their, "neighbors", "KNeighborsClassifier"),
}


def best_mean(means: dict[str, float]) -> str:
    """Say who is the best, and by how much better than its baseline."""
    best = max(means, key=lambda name: means[name])
    return f"{best} {means[best]:.3f}"


def mean_lost(task: SearchTask, means: dict[str, float]) -> float:
    return -max(means.values())


CASES = (
    Case(
        "compare",
        "all learners tuned, breast cancer",
        breast_cancer,
        (
            Contender("sixfold", prepare_nothing, compare_ours, unchanged, best_mean),
            Contender("scikit-learn", prepare_nothing, compare_theirs, unchanged, best_mean),
        ),
        mean_lost,
        5e-3,
        {"scikit-learn": 10.0},
        with_memory=False,
        slack=5e-3,
    ),
    searches(
        "search-neighbours",
        "grid search: k = 1..50, 5 folds, 5,000 x 50",
        neighbours,
        partial(our, "KNeighborsClassifier"),
        partial(their, "neighbors", "KNeighborsClassifier"),
        50.0,
        2e-3,
    ),
    searches(
        "search-depths",
        "grid search: tree depth 1..20, 5 folds, 5,000 x 50",
        depths,
        partial(our, "DecisionTreeClassifier"),
        partial(their, "tree", "DecisionTreeClassifier", criterion="entropy", random_state=0),
        100.0,
        1e-2,
        long=True,
    ),
    searches(
        "search-kernels",
        "grid search: SVC, 5 C x 5 gamma, 3 folds, 3,000 x 30",
        kernels,
        partial(our, "SVC"),
        partial(their, "svm", "SVC", cache_size=1000),
        20.0,
        2e-3,
    ),
    searches(
        "search-ridge",
        "grid search: ridge, 100 penalties, 10 folds, 20,000 x 100",
        ridge,
        partial(our, "LinearRegression", penalty="l2"),
        partial(their, "linear_model", "Ridge", solver="cholesky"),
        50.0,
        1e-8,
        in_our_units,
        long=True,
    ),
    Case(
        "ridge-path",
        "RidgeCV, 100 penalties, leave-one-out, 20,000 x 100",
        ridge,
        (
            Contender(
                "sixfold", partial(ridge_path, partial(our, "RidgeCV")), search, unchanged, chosen_alpha
            ),
            Contender(
                "scikit-learn",
                partial(ridge_path, partial(their, "linear_model", "RidgeCV")),
                search,
                unchanged,
                chosen_alpha,
            ),
        ),
        ridge_score_lost,
        1e-6,
        {"scikit-learn": 5.0},
        with_memory=False,
        slack=1e-6,
    ),
    searches(
        "search-logistic-l1",
        "grid search: logistic regression with L1, 50 C, 5 folds, 5,000 x 100",
        sparse_logistic,
        partial(our, "LogisticRegression", penalty="l1"),
        partial(their, "linear_model", "LogisticRegression", l1_ratio=1.0, solver="liblinear"),
        10.0,
        2e-3,
        long=True,
    ),
    Case(
        "lasso-path",
        "LassoCV, 100 penalties, 5 folds, 1,000 x 5,000",
        lasso,
        (
            Contender(
                "sixfold",
                partial(lasso_path, partial(our, "LassoCV", n_jobs=JOBS)),
                search,
                unchanged,
                chosen_alpha,
            ),
            Contender(
                "scikit-learn",
                partial(lasso_path, partial(their, "linear_model", "LassoCV", n_jobs=JOBS)),
                search,
                unchanged,
                chosen_alpha,
            ),
            Contender("skglm", prepare_skglm, search, unchanged, chosen_alpha),
        ),
        least_error,
        1e-3,
        {"scikit-learn": 3.0, "skglm": 3.0},
        with_memory=False,
        slack=1e-3,
        long=True,
    ),
)
