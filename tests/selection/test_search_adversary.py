"""Searches on odd input: ours make of it what scikit-learn's make of it with the same learners."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn import model_selection as theirs
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.metrics import f1_score, make_scorer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from sixfold import (
    SVC,
    DecisionTreeClassifier,
    GridSearchCV,
    KNeighborsClassifier,
    KNeighborsRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    RandomizedSearchCV,
)
from sixfold.selection.plans.base import Answered

pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # what is compared is results; warnings have their own tests

RNG = np.random.default_rng(0)
ROWS = np.random.default_rng(1).permutation(150)[:72]
X, LABELS = (part[ROWS] for part in load_iris(return_X_y=True))
X = X + np.random.default_rng(2).normal(0, 0.3, X.shape)  # so that scores differ
X_REAL, REAL = (part[:72] for part in load_diabetes(return_X_y=True))
NAMES = np.array(["zeta", "alpha", "middle"])[LABELS]
TWO = LABELS > 0
WEIGHT = np.random.default_rng(3).integers(0, 3, 72).astype(float)
SORTED = np.argsort(LABELS, kind="stable")
HALVES = [(np.arange(0, 72, 2), np.arange(1, 72, 2)), (np.arange(1, 72, 2), np.arange(0, 72, 2))]

# Learner, grid, and how far scores may be from those of separate fits.
CLASSIFIERS = {
    "neighbours": (KNeighborsClassifier(), {"n_neighbors": [1, 4, 7], "weights": ["uniform", "distance"]}, 0),
    "tree": (DecisionTreeClassifier(), {"max_depth": [1, 2, None], "ccp_alpha": [0.0, 0.02]}, 0),
    "logistic": (LogisticRegression(tol=1e-10), {"C": [0.1, 10.0, 1.0]}, 1e-6),
    "linear machine": (LinearSVC(tol=1e-10), {"C": [0.1, 10.0, 1.0]}, 1e-6),
    "machine": (SVC(tol=1e-8), {"C": [0.1, 10.0, 1.0], "gamma": [0.1, 1.0]}, 1e-6),
}
REGRESSORS = {
    "neighbours": (KNeighborsRegressor(), {"n_neighbors": [1, 4, 7], "weights": ["uniform", "distance"]}, 0),
    "ridge": (LinearRegression(penalty="l2"), {"alpha": [0.01, 1.0, 0.1]}, 1e-8),
    "lasso": (LinearRegression(penalty="l1", tol=1e-10), {"alpha": [0.01, 1.0, 0.1]}, 1e-6),
}


def searched(search, X, y, parameters):
    """Return the fitted search, or the error that it ended with."""
    try:
        return search.fit(X, y, **parameters)
    except Exception as error:
        return error


def called(options):
    """Return the options with splits of their own: a generator serves one search."""
    return {name: value() if name == "cv" and callable(value) else value for name, value in options.items()}


def require_same(model, grid, X, y, parameters=None, atol=0.0, **options):
    """Fit both searches and compare all that they say but times; return ours."""
    options = {"cv": 3} | options
    ours = searched(GridSearchCV(model, grid, **called(options)), X, y, parameters or {})
    options.pop("n_jobs", None)  # processes take long to start
    reference = searched(theirs.GridSearchCV(model, grid, **called(options)), X, y, parameters or {})
    if isinstance(reference, Exception):
        assert isinstance(ours, Exception), f"scikit-learn says {reference!r}"
        return None
    if isinstance(ours, Exception):
        raise ours
    assert ours.cv_results_.keys() == reference.cv_results_.keys()
    for key, value in reference.cv_results_.items():
        own = ours.cv_results_[key]
        if key == "params" or key.startswith("param_"):
            assert repr(own) == repr(value), key  # also which are masked, and their type
        elif not key.endswith("_time") and not (atol and key.startswith("rank")):
            assert own.dtype == value.dtype
            np.testing.assert_allclose(own, value, rtol=atol, atol=atol, err_msg=key)
    for name in (
        "best_index_",
        "best_score_",
        "best_estimator_",
        "classes_",
        "feature_names_in_",
        "n_splits_",
    ):
        assert hasattr(ours, name) == hasattr(reference, name), name
    if not atol:
        assert getattr(ours, "best_index_", None) == getattr(reference, "best_index_", None)
    return ours


def odd_index(values):
    index = RNG.permutation(1000)[:72]
    if isinstance(values, np.ndarray) and values.ndim == 2:
        return pd.DataFrame(values, index=index).rename(columns=str)
    return pd.Series(values, index=index)


def split(train, test):
    return {"cv": [(np.asarray(train), np.asarray(test)), HALVES[0]]}


# What is odd: rows, labels, options.
CLASSIFICATION = {
    "lists": (X.tolist(), LABELS.tolist(), {}),
    "frames whose rows are numbered otherwise": (odd_index(X), odd_index(LABELS), {}),
    "strings": (X, NAMES, {}),
    "categories": (X, pd.Series(NAMES, dtype="category"), {"scoring": "f1_macro"}),
    "objects": (X, NAMES.astype(object), {}),
    "booleans": (X, TWO, {"scoring": "roc_auc"}),
    "numbers that are not whole as a type": (X, LABELS.astype(np.float32) * 2, {}),
    "a column of labels": (X, LABELS[:, None], {}),
    "two labels a row": (X, np.c_[TWO, LABELS > 1].astype(int), {}),
    "float32": (X.astype(np.float32), LABELS, {"return_train_score": True}),
    "sparse": (sparse.csr_array(X * (X > 1)), NAMES, {}),
    "sparse columns": (sparse.csc_matrix(X * (X > 1)), LABELS, {"n_jobs": -1}),
    "unknown values": (np.where(X > 6, np.nan, X), LABELS, {}),
    "constant rows": (np.ones((72, 2)), LABELS, {}),
    "a generator of splits": (X, LABELS, {"cv": lambda: theirs.KFold(3).split(X)}),
    "one split": (X, LABELS, {"cv": HALVES[:1]}),
    "masks as splits": (X, LABELS, split(np.arange(72) < 50, np.arange(72) >= 40)),
    "rows counted from the end": (X, LABELS, split(np.arange(50), -np.arange(1, 20))),
    "rows that are there twice": (X, LABELS, split(np.r_[0:50, 0:50], np.r_[45:60, 45:60])),
    "one row held out": (X, LABELS, split(np.arange(50), [60])),
    "a class that is not learnt": (X[SORTED], NAMES[SORTED], {"cv": theirs.KFold(3)}),
    "one class alone in a fold": (X[SORTED], LABELS[SORTED], split(np.arange(15), np.arange(15, 72))),
    "the same with a score for errors": (
        X[SORTED], LABELS[SORTED], split(np.arange(15), np.arange(15, 72)) | {"error_score": 0}
    ),
    "leave one out": (X[:16], LABELS[:16], {"cv": theirs.LeaveOneOut()}),
    "a scorer that fails on some folds": (
        X[SORTED], TWO[SORTED], split(np.arange(72), np.arange(10)) | {"scoring": "roc_auc"}
    ),
    "probabilities": (X, NAMES, {"scoring": "neg_log_loss"}),
    "decisions": (X, NAMES, {"scoring": "roc_auc_ovr"}),
    "a label that counts": (X, np.where(TWO, "b", "a"), {"scoring": make_scorer(f1_score, pos_label="b")}),
    "no refit": (X, LABELS, {"refit": False}),
    "several metrics without refit": (X, LABELS, {"scoring": ["accuracy", "f1_macro"], "refit": False}),
    "a function that chooses": (X, LABELS, {"refit": lambda results: len(results["params"]) - 1}),
}  # fmt: skip
REGRESSION = {
    "lists": (X_REAL.tolist(), REAL.tolist(), {}),
    "frames whose rows are numbered otherwise": (odd_index(X_REAL), odd_index(REAL), {}),
    "whole numbers": (X_REAL, REAL.astype(int), {"return_train_score": True}),
    "a column": (X_REAL, REAL[:, None], {}),
    "two columns": (X_REAL, np.c_[REAL, REAL**2], {}),
    "constant": (X_REAL, np.ones(72), {}),
    "sparse": (sparse.csr_array(X_REAL * (X_REAL > 0)), REAL, {"n_jobs": 2}),
    "masks as splits": (X_REAL, REAL, split(np.arange(72) < 50, np.arange(72) >= 40)),
    "rows counted from the end": (X_REAL, REAL, split(np.arange(50), -np.arange(1, 20))),
    "rows that are there twice": (X_REAL, REAL, split(np.r_[0:50, 0:50], np.r_[45:60, 45:60])),
    "one row held out": (X_REAL, REAL, split(np.arange(50), [60])),
    "leave one out": (
        X_REAL[:16], REAL[:16], {"cv": theirs.LeaveOneOut(), "scoring": "neg_mean_squared_error"}
    ),
    "the largest error": (X_REAL, REAL, {"scoring": ["max_error", "r2"], "refit": "max_error"}),
}  # fmt: skip


def require_each_same(learners, X, y, options, parameters=None):
    for model, grid, atol in learners.values():
        require_same(model, grid, X, y, parameters, atol, **options)


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_classification(name):
    require_each_same(CLASSIFIERS, *CLASSIFICATION[name])


@pytest.mark.parametrize("name", REGRESSION)
def test_regression(name):
    require_each_same(REGRESSORS, *REGRESSION[name])


@pytest.mark.parametrize(
    ("weight", "options"),
    [
        (None, {}),
        (WEIGHT, {}),
        (WEIGHT.tolist(), {"scoring": ["accuracy", "balanced_accuracy"], "refit": "accuracy"}),
        (pd.Series(WEIGHT, index=np.arange(72)[::-1]), {"scoring": "f1_macro", "return_train_score": True}),
    ],
    ids=["none", "array", "list", "series"],
)
def test_weights(weight, options):
    require_each_same(CLASSIFIERS, X, LABELS, options, {"sample_weight": weight})
    given = None if weight is None else np.asarray(weight) + 1
    require_each_same(REGRESSORS, X_REAL, REAL, {}, {"sample_weight": given})


def test_categorical_columns():
    columns = {
        "a": X[:, 0],
        "b": pd.Categorical(np.array(["u", "v", "w"])[RNG.integers(0, 3, 72)]),
        "c": NAMES,
    }
    model, grid, _ = CLASSIFIERS["tree"]
    assert require_same(model, grid, pd.DataFrame(columns), TWO, cv=theirs.KFold(4)) is not None


# -- grids ---------------------------------------------------------------------------------------------------

GRIDS = {
    "tree": [
        {"max_depth": [None, 2, np.int64(3), 2], "max_leaf_nodes": [None, 3]},
        {"ccp_alpha": np.float32([0, 0.01])},
        {"min_samples_split": [2, 0.3, 10], "criterion": ["entropy", "gini"]},
        {"max_depth": [0, -1, 2.5, np.nan, "a", 2]},
    ],
    "neighbours": [
        {"n_neighbors": np.array([1, 3, 1000], dtype=np.int16)},
        {"weights": ["distance", None, np.reciprocal], "p": [1, 2]},
        {},
        {"n_neighbors": [0, 2.5, None, "a", 2]},
    ],
    "logistic": [
        {"C": [0.1, 1, 1, np.inf]},
        {"class_weight": [None, "balanced", {0: 2, 1: 1, 2: 1}]},
        {"C": np.float32([0.1, 1.0]), "fit_intercept": [False, True]},
        {"C": [-1, np.nan, None, "a", 0, 1]},
    ],
    "machine": [
        {"kernel": ["linear"], "C": [1, 0.1, 1]},
        {"kernel": ["rbf", "poly"], "gamma": ["scale", "auto", np.float32(0.1)]},
        {"C": [-1, np.nan, None, 1], "gamma": [-1, "a", 0.1]},
    ],
}


@pytest.mark.parametrize("name", GRIDS)
def test_grids_with_different_keys_and_odd_values(name):
    model, _, atol = CLASSIFIERS[name]
    ours = require_same(model, GRIDS[name], X, LABELS, atol=atol, cv=3)
    assert any(
        key.startswith("param_") and np.ma.getmaskarray(ours.cv_results_[key]).any()
        for key in ours.cv_results_
    )


@pytest.mark.parametrize("model", [KNeighborsClassifier(), KNeighborsRegressor()], ids=["classes", "numbers"])
def test_values_that_a_fit_of_neighbours_refuses(model):
    grid = {"n_neighbors": [True, 2], "weights": ["a", "uniform"]}
    require_same(model, grid, X_REAL, LABELS)


@pytest.mark.parametrize("kind", ["drawn", "some", "reversed"])
def test_splits_that_look_like_leave_one_out(kind):
    count, held_out = {"drawn": (40, 40), "some": (40, 20), "reversed": (40, 40)}[kind]
    splits = [(np.delete(np.arange(held_out), row), np.array([row])) for row in range(held_out)]
    if kind == "drawn":
        splits = [(RNG.integers(0, count, count - 1), test) for _, test in splits]
    if kind == "reversed":  # among equally distant rows the first is taken
        splits = [(train[::-1], test) for train, test in splits]
    coarse = np.round(X[:count])
    for y, model in ((LABELS[:count], KNeighborsClassifier()), (REAL[:count], KNeighborsRegressor())):
        require_same(
            model, {"n_neighbors": [1, 4, 7]}, coarse, y, cv=splits, scoring="neg_mean_squared_error"
        )


def test_penalties_that_are_none():
    grid = {"alpha": [-1, np.nan, None, "a", 0.1, 1, 0.1], "penalty": ["l2", None]}
    require_same(LinearRegression(), grid, X_REAL, REAL, atol=1e-8)


def test_one_grid_with_a_precomputed_kernel_and_others():
    grid = {"kernel": ["precomputed", "linear"], "C": [0.1, 1.0]}
    require_same(SVC(tol=1e-8), grid, X @ X.T / 100, LABELS, atol=1e-6)
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    grid = {"metric": ["euclidean", "precomputed"], "n_neighbors": [1, 3]}
    require_same(KNeighborsClassifier(), grid, distances, LABELS)
    require_same(KNeighborsClassifier(metric="precomputed"), {"n_neighbors": [1, 3]}, distances, LABELS,
                 cv=theirs.LeaveOneOut())  # fmt: skip


# -- scorers that are functions ------------------------------------------------------------------------------


def looks_at_the_learner(model, X, y):
    assert not isinstance(model, Answered)
    check_is_fitted(model)
    own = clone(model).get_params()
    named = type(model).__name__ in repr(model)
    return (
        is_classifier(model)
        + named
        + len(own)
        + len(pickle.dumps(model.classes_))
        + model.score(X[:9], y[:9])
    )


def several(model, X, y):
    return {"right": model.score(X, y), "one": 1.0}


def fails_at_first(model, X, y):
    if len(np.unique(model.predict(X))) < 3:
        raise ArithmeticError
    return several(model, X, y)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_functions_that_score(name):
    model, grid, atol = CLASSIFIERS[name]
    require_same(model, grid, X, NAMES, atol=atol, scoring=looks_at_the_learner)
    require_same(model, grid, X, NAMES, atol=atol, scoring=several, refit="right", return_train_score=True)
    require_same(
        model, grid, X, NAMES, atol=atol, scoring={"a": looks_at_the_learner, "b": "accuracy"}, refit="b"
    )


def test_a_function_for_several_metrics_may_fail_on_the_first_fold():
    cv = [(SORTED[:40], SORTED[40:]), *HALVES]
    search = GridSearchCV(
        KNeighborsClassifier(), {"n_neighbors": [1, 3]}, cv=cv, scoring=fails_at_first, refit="right"
    )
    search.fit(X, LABELS)
    assert search.multimetric_
    assert np.isnan(search.cv_results_["split0_test_right"]).all()
    assert (search.cv_results_["split1_test_one"] == 1).all()


def test_a_scorer_that_always_fails_is_no_failed_fit():
    def fails(model, X, y):
        raise ArithmeticError("no score")

    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 3]}, scoring=fails)
    with pytest.warns(UserWarning, match=r"Scoring failed for 10 of 10 fits.*no score"):
        search.fit(X, LABELS)
    assert search.cv_results_["rank_test_score"].tolist() == [1, 1]
    with pytest.raises(ArithmeticError):
        search.set_params(error_score="raise").fit(X, LABELS)


# -- pipelines, searches in searches -------------------------------------------------------------------------


def fails_on_few(X):
    if len(X) < 30:
        raise ArithmeticError
    return X


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_pipelines(name):
    model, grid, atol = CLASSIFIERS[name]
    grid = {f"learner__{parameter}": values for parameter, values in grid.items()}
    steps = [("scale", StandardScaler()), ("learner", model)]
    both = [grid | {"scale": ["passthrough", PCA(2)]}, grid | {"scale__with_mean": [False]}]
    require_same(Pipeline(steps), both, odd_index(X), NAMES, atol=atol, return_train_score=True, cv=3)
    weight = {"learner__sample_weight": WEIGHT}
    require_same(Pipeline(steps), grid, X, NAMES, weight, atol=atol, scoring=looks_at_the_learner_of_pipeline)
    require_same(make_pipeline(FunctionTransformer(fails_on_few), *[model]), {}, X, NAMES, atol=atol,
                 cv=[(np.arange(20), np.arange(20, 72)), *HALVES])  # fmt: skip
    assert isinstance(require_same_error(Pipeline(steps), grid, {"sample_weight": WEIGHT}), ValueError)


def looks_at_the_learner_of_pipeline(model, X, y):
    return (
        len(model.named_steps) + model[:-1].transform(X).sum() + model[-1].n_features_in_ + model.score(X, y)
    )


def require_same_error(model, grid, parameters):
    for kind in (theirs.GridSearchCV, GridSearchCV):
        error = searched(kind(model, grid, refit=False), X, NAMES, parameters)
        assert isinstance(error, Exception)
    return error


def test_other_learners_in_the_last_step():
    model = Pipeline([("learner", KNeighborsRegressor())])
    grid = {"learner": [KNeighborsClassifier(), KNeighborsRegressor(), Ridge(), LogisticRegression()]}
    require_same(model, grid, X, LABELS, atol=1e-8)
    require_same(Pipeline([("learner", KNeighborsClassifier())]), grid, X, LABELS, atol=1e-8)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_searches_in_searches(name):
    model, grid, atol = CLASSIFIERS[name]
    parameter = next(iter(grid))
    inner = [
        kind(model, {parameter: grid[parameter][:2]}, cv=2) for kind in (GridSearchCV, theirs.GridSearchCV)
    ]
    scores = [theirs.cross_val_score(make_pipeline(StandardScaler(), one), X, NAMES, cv=3) for one in inner]
    np.testing.assert_allclose(*scores, rtol=0, atol=atol)
    outer = [
        kind(one, {f"estimator__{parameter}": grid[parameter][1:], "cv": [2, 3]}, cv=2).fit(X, NAMES)
        for kind, one in zip((GridSearchCV, theirs.GridSearchCV), inner, strict=True)
    ]
    np.testing.assert_allclose(*(one.cv_results_["mean_test_score"] for one in outer), rtol=0, atol=atol)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_copies(name):
    model, grid, _ = CLASSIFIERS[name]
    search = GridSearchCV(model, grid, rule="best", time_limit=60.0, cv=3)
    fitted = pickle.loads(pickle.dumps(search)).fit(X, NAMES)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.certificate_.asked == fitted.certificate_.asked
    assert not hasattr(clone(fitted), "cv_results_")
    assert clone(fitted).fit(X, NAMES).best_params_ == fitted.best_params_
    assert not hasattr(model, "classes_")  # what was given is not touched


def test_drawn_settings_are_the_same():
    space = {"n_neighbors": range(1, 9), "weights": ["uniform", "distance"]}
    ours, reference = (
        kind(KNeighborsClassifier(), space, n_iter=5, random_state=np.random.RandomState(0), cv=3).fit(
            X, LABELS
        )
        for kind in (RandomizedSearchCV, theirs.RandomizedSearchCV)
    )
    assert ours.cv_results_["params"] == reference.cv_results_["params"]
    np.testing.assert_array_equal(
        ours.cv_results_["mean_test_score"], reference.cv_results_["mean_test_score"]
    )


# -- routing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to_fit", [True, False])
@pytest.mark.parametrize("to_score", [True, False])
def test_routed_weights(to_fit, to_score):
    with config_context(enable_metadata_routing=True):
        for model, grid, atol in CLASSIFIERS.values():
            routed = clone(model).set_fit_request(sample_weight=to_fit)
            scorer = theirs_scorer().set_score_request(sample_weight=to_score)
            given = {"sample_weight": WEIGHT, "groups": np.arange(72) // 6} if to_fit or to_score else {}
            cv = theirs.GroupKFold(3) if given else 3
            require_same(routed, grid, X, LABELS, given, atol, scoring=scorer, cv=cv)
            piped = Pipeline(
                [("scale", StandardScaler().set_fit_request(sample_weight=True)), ("it", routed)]
            )
            named = {f"it__{parameter}": values for parameter, values in grid.items()}
            given.pop("groups", None)
            require_same(piped, named, X, LABELS, given, atol, scoring=scorer, cv=3)


def theirs_scorer():
    return make_scorer(f1_score, average="macro")


def test_weights_that_were_not_asked_for_are_refused_as_they_are_there():
    with config_context(enable_metadata_routing=True):
        error = require_same_error(KNeighborsClassifier(), {"n_neighbors": [1]}, {"sample_weight": WEIGHT})
    assert "sample_weight" in str(error)
