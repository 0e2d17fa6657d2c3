"""Both searches against scikit-learn's, over the same learners and splits."""

from __future__ import annotations

import signal
import threading
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn import model_selection as theirs
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from sixfold import (
    SVC,
    DecisionTreeClassifier,
    ERMClassifier,
    ERMRegressor,
    GridSearchCV,
    KNeighborsClassifier,
    KNeighborsRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Perceptron,
    RandomizedSearchCV,
)
from sixfold.errors import InputError, SixfoldWarning, StoppedEarly, TimeLimitReached
from sixfold.selection.plans import kernel
from sixfold.selection.plans.neighbors import NeighborsPlan
from sixfold.selection.rules import simplest_within_one_error
from sixfold.selection.search import Evaluation, Outcome, Search

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
WINE = load_wine(return_X_y=True)

# Learner, grid, data, how far mean scores may differ; 0 where the plan is exact.
EXACT = {
    "neighbours": (
        KNeighborsClassifier(),
        {"n_neighbors": range(1, 20), "weights": ["uniform", "distance"], "p": [1, 2]},
        IRIS,
    ),
    "neighbours regression": (
        KNeighborsRegressor(),
        {"n_neighbors": [1, 5, 20], "weights": ["uniform", "distance"]},
        DIABETES,
    ),
    "perceptron": (Perceptron(max_iter=20), {"average": [False, True]}, CANCER),
    "tree": (
        DecisionTreeClassifier(),
        [
            {"max_depth": [0, 1, 2, 3, 5, None], "min_samples_leaf": [1, 5]},
            {"max_leaf_nodes": [2, 5, 9], "ccp_alpha": [0.0, 0.02]},
            {"min_impurity_decrease": [0.0, 0.01, 0.1], "criterion": ["gini", "entropy"]},
        ],
        CANCER,
    ),
}
# Learner, grid, data, metric, and how far scores may differ where fits are as exact as asked.
CLOSE = {
    "ridge": (
        LinearRegression(penalty="l2"),
        {"alpha": np.logspace(-6, 3, 10), "fit_intercept": [True, False]},
        DIABETES,
        None,
        1e-9,
    ),
    "lasso": (
        LinearRegression(penalty="l1", tol=1e-10),
        {"alpha": np.logspace(-3, 1, 9)},
        DIABETES,
        None,
        1e-5,
    ),
    "elastic net": (
        LinearRegression(penalty="elasticnet", tol=1e-10),
        {"alpha": [0.01, 0.1, 1.0], "l1_ratio": [0.2, 0.9]},
        DIABETES,
        None,
        1e-5,
    ),
    "absolute loss": (
        ERMRegressor(loss="absolute", penalty="l2", tol=1e-10),
        {"alpha": [1e-4, 1e-2, 1.0]},
        DIABETES,
        None,
        1e-4,
    ),
    "logistic": (LogisticRegression(), {"C": np.logspace(-4, 3, 8)}, WINE, "neg_log_loss", 1e-3),
    "logistic l1": (
        LogisticRegression(penalty="l1", tol=1e-10),
        {"C": np.logspace(-2, 2, 5)},
        WINE,
        "neg_log_loss",
        1e-3,
    ),
    "squared hinge": (LinearSVC(tol=1e-8), {"C": np.logspace(-3, 2, 6)}, CANCER, "roc_auc", 1e-3),
    "hinge": (LinearSVC(loss="hinge", tol=1e-8), {"C": np.logspace(-3, 1, 5)}, CANCER, "roc_auc", 1e-3),
    "any loss": (ERMClassifier(tol=1e-10), {"alpha": [1e-3, 1e-1]}, CANCER, "neg_log_loss", 1e-4),
    "kernel": (
        SVC(tol=1e-6),
        {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1, "scale"], "kernel": ["rbf", "poly"]},
        WINE,
        None,
        0.0,
    ),
}


def both(model, grid, X, y, fit_parameters=None, **options):
    """Return our search and scikit-learn's, fitted."""
    fit_parameters = fit_parameters or {}
    ours = GridSearchCV(model, grid, **options).fit(X, y, **fit_parameters)
    known = {name: value for name, value in options.items() if name not in ("rule", "time_limit", "nested")}
    return ours, theirs.GridSearchCV(model, grid, **known).fit(X, y, **fit_parameters)


def require_equal(ours, reference, atol=0.0):
    """Compare everything in ``cv_results_`` but times, and the choice."""
    assert ours.cv_results_.keys() == reference.cv_results_.keys()
    for key, value in reference.cv_results_.items():
        if key.endswith("_time"):
            continue
        if key == "params" or key.startswith("param_"):
            assert list(ours.cv_results_[key]) == list(value), key
        elif key.startswith("rank") and atol:
            continue
        else:
            np.testing.assert_allclose(ours.cv_results_[key], value, rtol=0, atol=atol, err_msg=key)
    assert ours.n_splits_ == reference.n_splits_
    if not atol and hasattr(reference, "best_index_"):
        assert ours.best_index_ == reference.best_index_
        assert ours.best_params_ == reference.best_params_


@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly", "ignore::sixfold.errors.SixfoldWarning")
@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(
    "options",
    [{}, {"return_train_score": True}, {"n_jobs": 2}, {"cv": theirs.ShuffleSplit(3, random_state=0)}],
)
def test_equals_scikit_learn(name, options):
    model, grid, (X, y) = EXACT[name]
    ours, reference = both(model, grid, X, y, **options)
    require_equal(ours, reference)
    assert ours.certificate_.separate == 0, ours.certificate_


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CLOSE)
def test_equals_scikit_learn_to_the_tolerance(name, weighted):
    model, grid, (X, y), scoring, atol = CLOSE[name]
    pipeline = Pipeline([("scale", StandardScaler()), ("model", model)])
    grid = {f"model__{parameter}": values for parameter, values in grid.items()}
    weight = np.random.default_rng(0).integers(0, 3, len(y)) + 0.5
    given = {"model__sample_weight": weight} if weighted else {}
    options = {"scoring": scoring, "cv": 3, "refit": False}
    ours, reference = both(pipeline, grid, X, y, given, **options)
    require_equal(ours, reference, atol)
    means = reference.cv_results_["mean_test_score"]
    assert means[ours.best_index_] >= means.max() - atol
    assert ours.certificate_.failed == 0
    assert ours.certificate_.separate == 0, ours.certificate_
    assert ours.certificate_.largest_gap < 1e-3


def test_weights_and_groups():
    X, y = IRIS
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(y)).astype(float)
    groups = rng.integers(0, 12, len(y))
    given = {"sample_weight": weight, "groups": groups}
    model, grid = KNeighborsClassifier(), {"n_neighbors": [1, 4, 9, 12], "weights": ["uniform", "distance"]}
    ours, reference = both(model, grid, X, y, given, cv=theirs.GroupKFold(4))
    require_equal(ours, reference)
    assert ours.certificate_.done == 4
    rows = np.arange(20)
    assert np.array_equal(ours.predict(X[rows]), reference.predict(X[rows]))
    other = theirs.GridSearchCV(model, grid, cv=theirs.GroupKFold(4)).fit(X, y, groups=groups)
    assert not np.array_equal(other.cv_results_["mean_test_score"], ours.cv_results_["mean_test_score"])


def test_pipeline_transforms_once_for_each_setting_of_its_own():
    X, y = CANCER
    counts = []

    class Counting(StandardScaler):
        def fit(self, X, y=None, sample_weight=None):
            counts.append(self.with_mean)
            return super().fit(X, y, sample_weight)

    model = Pipeline([("scale", Counting()), ("best", SelectKBest(k=5)), ("knn", KNeighborsClassifier())])
    grid = {
        "scale__with_mean": [True, False],
        "knn__n_neighbors": [1, 5, 9],
        "knn__metric": ["euclidean", "manhattan"],
    }
    ours = GridSearchCV(model, grid, refit=False).fit(X, y)
    assert len(counts) == 2 * 5
    require_equal(ours, theirs.GridSearchCV(model, grid, refit=False).fit(X, y))
    assert (ours.certificate_.asked, ours.certificate_.done) == (60, 20)


def test_pipeline_with_weights_and_exchanged_steps():
    X, y = IRIS
    model = Pipeline([("scale", StandardScaler()), ("learner", KNeighborsClassifier())])
    grid = [
        {"scale": ["passthrough", MinMaxScaler()], "learner__n_neighbors": [1, 6]},
        {"learner": [KNeighborsClassifier(weights="distance"), Perceptron(max_iter=5)]},
    ]
    weight = {"learner__sample_weight": np.random.default_rng(0).random(len(y))}
    ours, reference = both(model, grid, X, y, weight, scoring="accuracy")
    for key in ("split0_test_score", "mean_test_score", "rank_test_score"):
        np.testing.assert_array_equal(ours.cv_results_[key], reference.cv_results_[key])
    assert ours.best_index_ == reference.best_index_
    assert type(ours.best_estimator_) is Pipeline


def test_several_metrics_and_ties():
    X, y = CANCER
    scoring = {"right": "accuracy", "f1": make_scorer(f1_score), "area": "roc_auc", "loss": "neg_log_loss"}
    grid = {"n_neighbors": [3, 4, 5, 5, 3, 3]}  # settings that are there again tie
    ours, reference = both(KNeighborsClassifier(), grid, X, y, scoring=scoring, refit="f1")
    require_equal(ours, reference)
    assert ours.certificate_.done == 5
    assert (ours.cv_results_["rank_test_f1"] == ours.cv_results_["rank_test_f1"][0]).sum() == 3
    assert ours.score(X, y) == reference.score(X, y)


@pytest.mark.parametrize(
    "scoring",
    [
        "balanced_accuracy",
        "neg_mean_absolute_error",
        "r2",
        "neg_root_mean_squared_error",
        "neg_median_absolute_error",
    ],
)
def test_every_way_to_a_score_gives_the_same(scoring):
    X, y = IRIS
    classes = scoring in ("balanced_accuracy", "neg_log_loss")
    model = KNeighborsClassifier() if classes else KNeighborsRegressor()
    grid = {"n_neighbors": [1, 3, 30], "weights": ["uniform", "distance"]}
    for target in (y, y == 1) if classes else (X[:, 3] * 1e3 + 1e6,):
        require_equal(*both(model, grid, X, target, scoring=scoring))


def test_a_callable_that_returns_several_metrics():
    def score(model, X, y):
        right = float((model.predict(X) == y).mean())
        return {"right": right, "wrong": 1 - right}

    X, y = IRIS
    require_equal(*both(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, X, y, scoring=score, refit="right"))


@pytest.mark.parametrize("make", [pd.DataFrame, csr_array, np.float32])
def test_tables_of_other_kinds(make):
    X, y = IRIS
    X, labels = make(X), np.array(["a", "b", "c"])[y]
    ours, reference = both(KNeighborsClassifier(), {"n_neighbors": [1, 5, 10]}, X, labels)
    require_equal(ours, reference)
    assert ours.best_estimator_.predict(X[:3]).tolist() == ["a"] * 3
    if make is pd.DataFrame:
        ours = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]}).fit(X.add_prefix("x"), labels)
        assert ours.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]


def test_randomized_search_draws_the_same():
    X, y = IRIS
    space, options = (
        {"n_neighbors": list(range(1, 50)), "weights": ["uniform", "distance"]},
        {"random_state": 3},
    )
    ours = RandomizedSearchCV(KNeighborsClassifier(), space, n_iter=12, **options).fit(X, y)
    require_equal(
        ours, theirs.RandomizedSearchCV(KNeighborsClassifier(), space, n_iter=12, **options).fit(X, y)
    )
    assert ours.certificate_.done == 5


def test_leave_one_out_is_one_search():
    X, y = IRIS
    X = X[::2].round()  # many equal distances
    for model, target in ((KNeighborsClassifier(), y[::2]), (KNeighborsRegressor(), X[:, 0] ** 2)):
        grid = {"n_neighbors": [1, 2, 7], "weights": ["uniform", "distance"]}
        ours, reference = both(
            model, grid, X, target, cv=theirs.LeaveOneOut(), scoring="neg_mean_squared_error"
        )
        require_equal(ours, reference)
        assert ours.certificate_.done == 1


# -- the choice ----------------------------------------------------------------------------------------------


def test_one_standard_error_takes_the_simplest():
    X, y = IRIS
    grid = {"n_neighbors": list(range(1, 60))}
    best = GridSearchCV(KNeighborsClassifier(), grid).fit(X, y)
    simple = GridSearchCV(KNeighborsClassifier(), grid, rule="1se").fit(X, y)
    scores = np.array([best.cv_results_[f"split{fold}_test_score"] for fold in range(5)])
    error = scores[:, best.best_index_].std(ddof=1) / np.sqrt(5)
    able = [k for k, mean in zip(grid["n_neighbors"], scores.mean(axis=0), strict=True)
            if mean >= best.best_score_ - error]  # fmt: skip
    assert simple.best_params_ == {"n_neighbors": max(able)}
    assert max(able) > best.best_params_["n_neighbors"]
    assert simple.best_score_ == scores.mean(axis=0)[max(able) - 1]
    piped = make_pipeline(StandardScaler(), KNeighborsClassifier())
    scaled = {"kneighborsclassifier__n_neighbors": [1, 5, 20, 40]}
    assert GridSearchCV(piped, scaled, rule="1se").fit(X, y).best_index_ > 0


def test_one_standard_error_has_to_know_what_is_simple():
    with pytest.raises(InputError, match=r"rule='1se'.*n_neighbors.*rule='best'"):
        GridSearchCV(KNeighborsClassifier(), {"p": [1, 2]}, rule="1se").fit(*IRIS)
    with pytest.raises(InputError, match="both choose"):
        GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]}, rule="1se", refit=len).fit(*IRIS)


def test_parameters_left_out_have_the_value_of_the_estimator():
    params = [{"max_depth": 3}, {"ccp_alpha": 0.5}, {"max_depth": 2}]
    results = {"params": params, "split0_test_score": np.ones(3), "split1_test_score": np.ones(3)}
    choose = partial(simplest_within_one_error, results=results, metric="score", folds=2)
    assert choose(DecisionTreeClassifier(max_depth=7)) == 2  # a depth of 2 against 3 and 7
    assert choose(DecisionTreeClassifier(max_depth=1)) == 1


def test_names_have_no_place_among_numbers():
    params = [{"gamma": "scale"}, {"gamma": 1e-3}, {"gamma": 1e-1}]
    for first, chosen in ((1.0, 0), (0.9, 1)):
        scores = np.array([first, 0.95, 0.96])
        results = {"params": params, "split0_test_score": scores + 0.1, "split1_test_score": scores - 0.1}
        assert simplest_within_one_error(SVC(), results, "score", 2) == chosen
    pipeline = make_pipeline(SVC())
    results["params"] = [{"svc": KNeighborsClassifier()}, {"svc": SVC(C=3.0)}, {"svc": SVC(C=2.0)}]
    assert simplest_within_one_error(pipeline, results, "score", 2) == 2


def test_nested():
    X, y = IRIS
    outer = theirs.KFold(3, shuffle=True, random_state=1)
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5, 15]}, nested=outer).fit(X, y)
    plain = theirs.GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5, 15]})
    np.testing.assert_array_equal(search.nested_scores_, theirs.cross_val_score(plain, X, y, cv=outer))
    assert len(search.nested_params_) == 3


def test_nested_splits_kernels_on_both_sides():
    X, y = IRIS
    outer = theirs.StratifiedKFold(3)
    grid = {"C": [0.1, 1.0]}
    search = GridSearchCV(SVC(kernel="precomputed"), grid, cv=2, nested=outer).fit(X @ X.T, y)
    plain = GridSearchCV(SVC(kernel="linear"), grid, cv=2, nested=outer).fit(X, y)
    np.testing.assert_array_equal(search.nested_scores_, plain.nested_scores_)


def test_nested_scores_are_weighted_where_those_of_the_search_are():
    X, y = WINE
    weight = np.random.default_rng(0).random(len(y)) ** 4
    outer = theirs.StratifiedKFold(3)
    with config_context(enable_metadata_routing=True):
        model = KNeighborsClassifier().set_fit_request(sample_weight=False)
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"n_neighbors": [5]}, scoring=scorer, cv=2, nested=outer)
        search.fit(X, y, sample_weight=weight)
    train, test = next(iter(outer.split(X, y)))
    predicted = KNeighborsClassifier().fit(X[train], y[train]).predict(X[test])
    assert search.nested_scores_[0] == accuracy_score(y[test], predicted, sample_weight=weight[test])
    assert search.nested_scores_[0] != accuracy_score(y[test], predicted)


def test_nested_by_one_of_several_metrics():
    def several(model, X, y):
        right = accuracy_score(y, model.predict(X))
        return {"right": right, "wrong": 1 - right}

    options = {"cv": 3, "nested": 3}
    grid = {"n_neighbors": [1, 5]}
    plain = GridSearchCV(KNeighborsClassifier(), grid, **options).fit(*IRIS)
    for scoring, metric in ((several, "right"), (["accuracy", "f1_macro"], "accuracy")):
        search = GridSearchCV(KNeighborsClassifier(), grid, scoring=scoring, refit=metric, **options)
        np.testing.assert_array_equal(search.fit(*IRIS).nested_scores_, plain.nested_scores_)
        search.set_params(refit=False)
        with pytest.raises(InputError, match="Name one of them as refit"):
            search.fit(*IRIS)


@pytest.mark.parametrize("make", [list, iter])
def test_splits_of_all_rows_are_none_of_some(make):
    X, y = IRIS
    splits = make(list(theirs.KFold(3).split(X)))
    with pytest.raises(InputError, match="Pass a number of folds or a splitter as cv"):
        GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]}, cv=splits, nested=3).fit(X, y)
    splits = make(list(theirs.KFold(3).split(X)))
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]}, nested=splits).fit(X, y)
    assert len(search.nested_scores_) == 3


# -- limits --------------------------------------------------------------------------------------------------


class Slow(KNeighborsClassifier):
    """Takes its time; not one of ours to the registry, being a subclass."""

    def fit(self, X, y, sample_weight=None):
        time.sleep(0.05)
        return super().fit(X, y, sample_weight)


def test_time_limit_keeps_what_is_finished():
    X, y = IRIS
    search = GridSearchCV(Slow(), {"n_neighbors": list(range(1, 40))}, time_limit=0.6)
    with pytest.warns(StoppedEarly, match=r"Stopped by time_limit=0.6 s after \d+ of 195 fits"):
        search.fit(X, y)
    assert 0 < search.certificate_.unfinished < 195
    assert search.best_estimator_.score(X, y) > 0.9
    done = ~np.isnan(search.cv_results_["mean_test_score"])
    assert 0 < done.sum() < 39
    assert done[search.best_index_]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_ctrl_c_keeps_what_is_finished(n_jobs):
    X, y = IRIS
    search = GridSearchCV(Slow(), {"n_neighbors": list(range(1, 40))}, time_limit=60.0, n_jobs=n_jobs)
    timer = threading.Timer(0.7, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    timer.join()
    assert 0 < search.certificate_.unfinished < 195
    assert search.best_estimator_.score(X, y) > 0.9


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_ends_the_fits_that_are_under_way(n_jobs):
    endless = ERMClassifier(solver="sgd", tol=0.0, max_iter=10**8, time_limit=30.0)
    search = GridSearchCV(endless, {"alpha": [0.1, 1.0]}, n_jobs=n_jobs, cv=2)
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        search.fit(*CANCER)
    timer.join()
    assert time.perf_counter() - start < 15.0
    assert not hasattr(search, "best_estimator_")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_time_limit_ends_the_fits_that_are_under_way(n_jobs):
    endless = ERMClassifier(solver="sgd", tol=0.0, max_iter=10**8, time_limit=30.0)
    search = GridSearchCV(endless, {"alpha": [0.1, 1.0]}, n_jobs=n_jobs, cv=2, time_limit=0.5)
    start = time.perf_counter()
    with pytest.raises(TimeLimitReached, match=r"time_limit=0.5 s before the first fit was done"):
        search.fit(*CANCER)
    assert time.perf_counter() - start < 15.0


def test_ctrl_c_during_the_last_fit_keeps_the_search():
    class Interrupted(KNeighborsClassifier):
        def fit(self, X, y, sample_weight=None):
            if len(y) == 150:
                raise KeyboardInterrupt
            return super().fit(X, y, sample_weight)

    search = GridSearchCV(Interrupted(), {"n_neighbors": [1, 5]}, time_limit=60.0)
    with pytest.raises(KeyboardInterrupt):
        search.fit(*IRIS)
    assert search.best_params_ == {"n_neighbors": 5}
    assert search.cv_results_["mean_test_score"][1] == search.best_score_
    assert search.certificate_.asked == 10


def test_progress(capsys):
    GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, verbose=1).fit(*IRIS)
    assert "10" in capsys.readouterr().out
    several = GridSearchCV(
        KNeighborsClassifier(), {"n_neighbors": [5]}, scoring=["accuracy", "f1_macro"], refit="f1_macro"
    )
    several.set_params(verbose=1).fit(*IRIS)
    assert f"best {several.best_score_:.4g}" in capsys.readouterr().out


def test_the_best_so_far_never_falls_without_saying_why():
    def after(*scores, **options):
        evaluation = Evaluation(None, np.nan, False, {}, {}, **options)
        search = Search(None, [{}, {}], None, None, [(), ()], evaluation)
        search.outcomes = {place: Outcome(score) for place, score in scores}
        return str(search.best_so_far())

    assert after(((0, 0), 0.9), ((1, 0), 0.7)) == "0.9 (1 of 2 folds)"
    assert after(((0, 0), 0.9), ((1, 0), 0.7), ((1, 1), 0.7)) == "0.7"  # the first one that is complete
    assert after(((0, 0), 0.9), ((0, 1), 0.8), ((1, 0), 0.99)) == "0.85"
    assert after(((0, 0), np.nan), ((0, 1), np.nan)) == "-"
    assert after(((0, 0), {"a": 0.1, "b": 0.2}), ((0, 1), {"a": 0.1, "b": 0.4})) == "-"
    assert after(((0, 0), {"a": 0.1, "b": 0.2}), ((0, 1), {"a": 0.1, "b": 0.4}), chosen_by="b") == "0.3"


@pytest.mark.parametrize("piped", [False, True])
def test_learners_that_a_function_asks_for_are_counted(piped, monkeypatch):
    def score(model, X, y):
        return model.score(X, y)

    fits = []
    fit = KNeighborsClassifier.fit
    monkeypatch.setattr(KNeighborsClassifier, "fit", lambda self, *rows: fits.append(1) or fit(self, *rows))
    model, grid = KNeighborsClassifier(), {"n_neighbors": [1, 5, 9]}
    if piped:
        model, grid = Pipeline([("scale", StandardScaler()), ("k", model)]), {"k__n_neighbors": [1, 5, 9]}
    search = GridSearchCV(model, grid, scoring=score, refit=False).fit(*IRIS)
    assert search.certificate_.done == len(fits) == 5 + 15
    fits.clear()
    assert search.set_params(scoring="accuracy").fit(*IRIS).certificate_.done == len(fits) == 5
    tree = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2, 3]}, scoring=score).fit(*IRIS)
    assert tree.certificate_.done == 5  # they are cut from one


def test_a_plan_that_fails_is_told_of(monkeypatch):
    def broken(self, fold):
        raise ArithmeticError("of no use")
        yield

    monkeypatch.setattr(NeighborsPlan, "fit", broken)
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5]}).fit(*IRIS)
    assert search.certificate_.separate == 10
    assert "10 were fitted separately (ArithmeticError: of no use)" in str(search.certificate_)


@pytest.mark.parametrize(
    "model", [LogisticRegression(), LogisticRegression(penalty="l1"), LinearSVC(), SVC()]
)
def test_one_bad_setting_leaves_the_others_together(model):
    search = GridSearchCV(model, {"C": [-1.0, 0.0, 0.1, 1.0]}, cv=3)
    with pytest.warns(FitFailedWarning, match="6 fits failed out of a total of 12"):
        search.fit(*IRIS)
    assert search.certificate_.separate == 0, search.certificate_


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grid", "sentence"),
    [
        ({}, None),
        ([], "names nothing to try"),
        ({"n_neighbors": []}, "empty list for 'n_neighbors'"),
        ({"n_neigbors": [1]}, "no parameter 'n_neigbors'; did you mean 'n_neighbors'"),
        ([{"n_neighbors": [1]}, {"wieghts": ["uniform"]}], "did you mean 'weights'"),
        ("n_neighbors", "names nothing to try|dict"),
        ([1], "no dictionary|dict"),
    ],
)
def test_grids_that_cannot_be_tried(grid, sentence):
    search = GridSearchCV(KNeighborsClassifier(), grid)
    if sentence is None:
        assert search.fit(*IRIS).best_params_ == {}
        return
    with pytest.raises(ValueError, match=sentence):
        search.fit(*IRIS)


def test_the_step_of_a_pipeline_is_named():
    model = make_pipeline(StandardScaler(), KNeighborsClassifier())
    with pytest.raises(InputError, match="did you mean 'kneighborsclassifier__n_neighbors'"):
        GridSearchCV(model, {"n_neighbors": [1]}).fit(*IRIS)


def test_more_folds_than_rows_of_a_class():
    X, y = IRIS
    rare = np.r_[0:20, 50:53, 100:120]
    with pytest.warns(
        SixfoldWarning, match=r"least populated classes \(rows\): 1 \(3\). Use at most 3 folds"
    ):
        GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]}).fit(X[rare], y[rare])
    few = np.r_[0:2, 50:53]
    with pytest.raises(InputError, match=r"cv=5 asks for more folds than any class has rows.*1, has 3"):
        GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]}).fit(X[few], y[few])


def test_a_scorer_that_returns_nan():
    def nan_for_many(model, X, y):
        return np.nan if model.n_neighbors > 3 else 0.5

    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [5, 1]}, scoring=nan_for_many)
    with pytest.warns(SixfoldWarning, match=r"'n_neighbors': 5\} on fold 0 .* is nan"):
        search.fit(*IRIS)
    nothing = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [5]}, scoring=nan_for_many, verbose=1)
    with pytest.warns(SixfoldWarning, match="on fold 0 .* is nan") as warned:
        nothing.fit(*IRIS)
    assert len(warned) == 1  # none by the bar, which has no score to show
    assert search.best_params_ == {"n_neighbors": 1}


def test_a_fit_that_fails_on_one_fold_is_reported_and_the_others_go_on():
    X, y = IRIS
    grid = {"n_neighbors": [1, 115]}
    cv = [(np.arange(0, 150, 2), np.arange(1, 150, 2)), (np.arange(30, 150), np.arange(30))]
    search = GridSearchCV(KNeighborsClassifier(), grid, cv=cv)
    with pytest.warns(SixfoldWarning, match=r"Scoring failed .* n_neighbors = 115, n_samples_fit = 75"):
        search.fit(X, y)
    assert np.isnan(search.cv_results_["split0_test_score"][1])
    assert search.cv_results_["split1_test_score"][1] >= 0
    assert search.best_params_ == {"n_neighbors": 1}
    wrong = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, -1]}, cv=3)
    with pytest.warns(
        FitFailedWarning, match=r"3 fits failed out of a total of 6, in folds 0, 1, 2.*fold 0 with"
    ):
        wrong.fit(X, y)
    assert wrong.certificate_.failed == 3
    with pytest.raises(InputError, match="n_neighbors=-1"):
        wrong.set_params(error_score="raise").fit(X, y)
    with pytest.raises(ValueError, match="All the 3 fits failed"):
        GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [-1]}, cv=3).fit(X, y)
    with pytest.warns(FitFailedWarning):
        assert (
            GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, -1]}, error_score=-7.0)
            .fit(X, y)
            .cv_results_["mean_test_score"][1]
            == -7.0
        )


@pytest.mark.parametrize(
    ("option", "value"), [("rule", "2se"), ("time_limit", -1), ("verbose", "a"), ("error_score", "loud")]
)
def test_options_are_checked(option, value):
    with pytest.raises(ValueError, match=option):
        GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]}, **{option: value}).fit(*IRIS)


# -- what is not ours ----------------------------------------------------------------------------------------


def test_other_learners_are_handed_over():
    X, y = DIABETES
    ours, reference = both(Ridge(), {"alpha": [0.1, 1.0, 10.0]}, X, y)
    require_equal(ours, reference)
    assert ours.certificate_.asked == ours.certificate_.done == 15


def test_is_a_search_of_scikit_learn():
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, rule="1se", time_limit=5.0)
    assert isinstance(search, theirs.GridSearchCV)
    assert clone(search).get_params()["time_limit"] == 5.0
    fitted = search.fit(*IRIS)
    assert theirs.cross_val_score(fitted, *IRIS).min() > 0.9
    assert fitted.predict_proba(IRIS[0]).shape == (150, 3)
    assert fitted.classes_.tolist() == [0, 1, 2]


def test_a_search_that_was_stopped_begins_nothing():
    fits = []

    class Fails:
        settings, model = ({},), KNeighborsClassifier()

        def fit(self, fold):
            fits.append(fold)
            raise ValueError

    search = Search(KNeighborsClassifier(), [{}], *IRIS, [], Evaluation(None, np.nan, False, {}, {}))
    search._stop.set()
    assert list(search._models(Fails(), None)) == []
    assert fits == [None]


def test_kernel_machines_end_when_they_are_told(monkeypatch):
    solve = kernel.fit_svm_paths

    def pressed(*given):
        given[-1][0] = 1
        return solve(*given)

    monkeypatch.setattr(kernel, "fit_svm_paths", pressed)
    with pytest.raises(KeyboardInterrupt):
        GridSearchCV(SVC(), {"C": [1.0, 10.0]}, n_jobs=1).fit(*IRIS)
