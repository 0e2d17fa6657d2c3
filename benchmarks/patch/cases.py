"""One line added to your script: five typical scripts before and after ``sixfold.patch_sklearn()``.

The same code runs twice, once as it is and once patched; what it costs to patch and to undo it counts for
sixfold. Nothing is tuned for either: these are the lines that people write, with scikit-learn's defaults and
``n_jobs`` where it takes one.

Accuracy is the difference of the score that the script prints from that of scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers import unchanged
from benchmarks.runner import Case, Contender

Script = Callable[[Any, Any], float]


class ScriptTask(NamedTuple):
    """What a script is run on, and what it prints as it is."""

    X: Any
    y: Any
    printed: float


def logistic(X: Any, y: Any) -> float:
    """Scale, cross-validate a logistic regression."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return float(cross_val_score(model, X, y, cv=5).mean())


def support_vectors(X: Any, y: Any) -> float:
    """Train a support vector machine and test it."""
    from sklearn.model_selection import train_test_split
    from sklearn.svm import SVC

    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    return float(SVC(C=10.0).fit(X_train, y_train).score(X_test, y_test))


def tree(X: Any, y: Any) -> float:
    """Choose the depth of a tree."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.tree import DecisionTreeClassifier

    search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [3, 6, 9, 12]}, n_jobs=2)
    return float(search.fit(X, y).best_score_)


def neighbors(X: Any, y: Any) -> float:
    """Ask neighbours."""
    from sklearn.model_selection import train_test_split
    from sklearn.neighbors import KNeighborsClassifier

    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    return float(KNeighborsClassifier(10, n_jobs=-1).fit(X_train, y_train).score(X_test, y_test))


def penalties(X: Any, y: Any) -> float:
    """Choose the penalty of a lasso, and refit ridge regression with several."""
    from sklearn.linear_model import LassoCV, Ridge
    from sklearn.model_selection import cross_val_score

    target = X @ np.linspace(1.0, 0.0, X.shape[1]) + y
    best = LassoCV(cv=5, n_jobs=2).fit(X, target).score(X, target)
    ridge = [cross_val_score(Ridge(alpha), X, target, cv=5).mean() for alpha in (0.1, 1.0, 10.0, 100.0)]
    return float(best + np.mean(ridge))


def classes(script: Script, rows: int, columns: int, count: int, quick: bool) -> ScriptTask:
    """Return a made table and what the script prints as it is."""
    from sklearn.datasets import make_classification

    X, y = make_classification(
        500 if quick else rows,
        columns,
        n_informative=columns // 2,
        n_classes=count,
        flip_y=0.05,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ScriptTask(X, y, script(X, y))


def as_it_is(script: Script, task: ScriptTask) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return script(task.X, task.y)


def with_one_line(script: Script, task: ScriptTask) -> float:
    import sixfold

    with sixfold.patch_sklearn():
        return as_it_is(script, task)


def the_script(script: Script, task: ScriptTask) -> Script:
    return script


def difference(task: ScriptTask, printed: float) -> float:
    return abs(printed - task.printed)


def case(name: str, title: str, script: Script, rows: int, columns: int, count: int, accuracy: float) -> Case:
    return Case(
        f"patched_{name}",
        title,
        partial(classes, script, rows, columns, count),
        (
            Contender("sixfold", partial(the_script, script), with_one_line, unchanged),
            Contender("scikit-learn", partial(the_script, script), as_it_is, unchanged),
        ),
        difference,
        accuracy=accuracy,
        with_memory=False,
    )


CASES = (
    case("logistic", "script: logistic regression, 5 folds, 100,000 x 50", logistic, 100_000, 50, 3, 1e-4),
    case("svc", "script: support vector machine, 8,000 x 30", support_vectors, 8_000, 30, 4, 1e-3),
    case("tree", "script: depth of a tree, 4 values, 5 folds, 20,000 x 40", tree, 20_000, 40, 3, 5e-3),
    case("neighbors", "script: 10 neighbours, 20,000 x 30", neighbors, 20_000, 30, 5, 0.0),
    case("penalties", "script: LassoCV and ridge, 20,000 x 200", penalties, 20_000, 200, 2, 1e-4),
)
