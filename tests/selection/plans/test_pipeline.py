"""The plan of pipelines against pipelines fitted one by one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from sixfold import SVC, DecisionTreeClassifier, KNeighborsClassifier, LogisticRegression, Perceptron
from sixfold.selection.plans.base import Answered, Fold, Table
from sixfold.selection.plans.pipeline import PipelinePlan

X, Y = load_iris(return_X_y=True)
TRAIN, TEST = np.arange(0, 150, 2), np.arange(1, 150, 2)
WEIGHT = np.random.default_rng(0).random(len(TRAIN)) + 0.5


def run(learner, settings, weight=None):
    """Return the plan's pipelines by setting, how many problems each took, and the error at the end."""
    model = Pipeline([("scale", StandardScaler()), ("pca", PCA()), ("learner", learner)])
    plan = PipelinePlan(model, settings, Table(X, Y, None, [(TRAIN, TEST)]))
    fold = Fold(0, TRAIN, TEST, X[TRAIN], Y[TRAIN], X[TEST], Y[TEST], weight)
    found, error = {}, None
    try:
        for one in plan.fit(fold):
            found[one.setting] = one
    except ValueError as raised:
        error = raised
    return model, fold, found, error


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize(
    ("learner", "grid"),
    [
        (KNeighborsClassifier(), {"n_neighbors": [1, 5]}),
        (LogisticRegression(tol=1e-8), {"C": [0.1, 1.0]}),
        (SVC(), {"C": [0.1, 1.0]}),
        (DecisionTreeClassifier(), {"max_depth": [1, 3]}),
    ],
)
def test_equals_separate_fits(learner, grid, weight):
    ((name, values),) = grid.items()
    settings = [{"pca__n_components": n, f"learner__{name}": v} for n in (2, 3) for v in values]
    model, fold, found, error = run(learner, settings, weight)
    assert error is None
    assert sorted(found) == [0, 1, 2, 3]
    given = {} if weight is None else {"learner__sample_weight": weight}
    for number, setting in enumerate(settings):
        alone = clone(model).set_params(**setting).fit(fold.X_train, fold.y_train, **given)
        np.testing.assert_array_equal(found[number].model.predict(fold.X_test), alone.predict(fold.X_test))
        assert found[number].model.score(fold.X_train, fold.y_train) == alone.score(
            fold.X_train, fold.y_train
        )


def test_transformers_that_fail_are_no_end_for_the_others():
    settings = [{"pca__n_components": n, "learner__n_neighbors": k} for n in (9, 2, 3) for k in (1, 5)]
    _, _, found, error = run(KNeighborsClassifier(), settings)
    assert sorted(found) == [2, 3, 4, 5]
    assert [found[number].solved for number in sorted(found)] == [1, 0, 1, 0]
    assert "n_components=9" in str(error)


def test_settings_of_the_last_step_that_fail_are_no_end_for_the_others():
    settings = [{"learner__metric": m, "learner__n_neighbors": k} for m in ("no", "cosine") for k in (1, 5)]
    _, _, found, error = run(KNeighborsClassifier(), settings)
    assert sorted(found) == [2, 3]
    assert "metric='no'" in str(error)
    _, _, found, error = run(Perceptron(max_iter=50), [{"learner__eta0": -1.0}, {"learner__eta0": 1.0}])
    assert sorted(found) == [1]
    assert error is not None


def test_problems_solved_for_a_learner_that_is_asked_for():
    _, fold, found, _ = run(
        KNeighborsClassifier(), [{"learner__n_neighbors": 1}, {"learner__n_neighbors": 5}]
    )
    first, second = found[0].model, found[1].model
    assert isinstance(first, Answered)
    first.predict(fold.X_test)
    assert is_classifier(first)
    assert not hasattr(first, "decision_function")
    assert first.solved == 0
    assert type(first.model) is Pipeline
    assert (first.solved, second.solved) == (1, 0)
