"""Ridge and RidgeClassifier against scikit-learn's, and against least squares on more rows."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn import linear_model as theirs
from sklearn.model_selection import GridSearchCV as TheirSearch

from sixfold import GridSearchCV, LinearRegression, Ridge, RidgeClassifier, RidgeCV
from sixfold.errors import CertificateError, IncompatibleError, InputError, RankWarning, StoppedEarly
from sixfold.learners.linear.ridge import SKLEARN_RIDGE_SOLVERS

RNG = np.random.default_rng(0)
CLOSE = {"rtol": 1e-9, "atol": 1e-11}


def table(rows=60, columns=6, targets=None):
    X = RNG.normal(size=(rows, columns)) * np.geomspace(0.3, 5.0, columns) + 1.0
    Y = X @ RNG.normal(size=(columns, targets or 1)) + RNG.normal(size=(rows, targets or 1))
    return X, Y if targets else Y[:, 0]


def classes(X, count):
    score = X @ np.resize([1.0, -1.0, 0.5], X.shape[1]) + RNG.normal(size=X.shape[0])
    return np.array(["ash", "birch", "oak"])[
        np.digitize(score, np.quantile(score, np.arange(1, count) / count))
    ]


def same(ours, peer, X, **close):
    np.testing.assert_allclose(ours.coef_, np.reshape(peer.coef_, ours.coef_.shape), **(close or CLOSE))
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, **(close or CLOSE))
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), **(close or CLOSE))


# -- numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("targets", [None, 1, 3])
@pytest.mark.parametrize("shape", [(60, 6), (8, 20)])
def test_coefficients_are_those_of_scikit_learn(kind, weighted, fit_intercept, targets, shape):
    X, y = table(*shape, targets)
    weight = RNG.uniform(0.0, 3.0, size=len(y)) if weighted else None
    for alpha in (1.0, 30.0, np.geomspace(0.5, 50.0, targets or 1)):
        ours = Ridge(alpha, fit_intercept=fit_intercept).fit(kind(X), y, weight)
        peer = theirs.Ridge(alpha, fit_intercept=fit_intercept, solver="svd").fit(X, y, weight)
        same(ours, peer, X)
        assert ours.coef_.shape == peer.coef_.shape
        assert np.shape(ours.intercept_) == np.shape(peer.intercept_)
        assert ours.certificate_.verify(kind(X), y, weight).converged


@settings(max_examples=60)
@given(st.data())
def test_any_shape(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n, d, targets = data.draw(st.integers(2, 12)), data.draw(st.integers(1, 12)), data.draw(st.integers(1, 3))
    X, y = np.round(rng.normal(size=(n, d)), 1), np.round(rng.normal(size=(n, targets)), 1)
    X[:, data.draw(st.integers(0, d - 1))] = 3.0  # a constant column, and ties
    alpha = rng.choice([0.1, 1.0, 7.0], size=targets) if data.draw(st.booleans()) else 1.0
    weight = rng.integers(1, 4, size=n).astype(float) if data.draw(st.booleans()) else None
    ours = Ridge(alpha).fit(X, y, weight)
    same(ours, theirs.Ridge(alpha, solver="svd").fit(X, y, weight), X, rtol=1e-8, atol=1e-9)
    ours.certificate_.verify(X, y, weight)


def test_single_precision_stays_and_names_are_kept():
    X, y = table()
    single = Ridge().fit(X.astype(np.float32), y)
    assert single.coef_.dtype == single.predict(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.coef_, Ridge().fit(X, y).coef_, rtol=1e-4)
    assert Ridge().fit(pd.DataFrame(X, columns=list("abcdef")), y).feature_names_in_.tolist() == list(
        "abcdef"
    )


def test_one_row_predicts_its_target():
    with pytest.warns(RankWarning, match="Only one row counts"):
        model = Ridge().fit([[1.0, 2.0]], [3.0])
    assert model.coef_.tolist() == [0.0, 0.0]
    assert model.predict([[5.0, 5.0]]) == [3.0]


def test_alpha_is_that_of_linear_regression_times_the_weight_of_the_rows():
    X, y = table()
    weight = RNG.uniform(0.5, 2.0, size=60)
    ours = Ridge(3.0).fit(X, y, weight)
    plain = LinearRegression(penalty="l2", alpha=3.0 / weight.sum()).fit(X, y, weight)
    np.testing.assert_array_equal(ours.coef_, plain.coef_)
    assert ours.certificate_.objective == plain.certificate_.objective


def test_no_penalty_is_least_squares():
    X, y = table()
    same(Ridge(0.0).fit(X, y), LinearRegression().fit(X, y), X)
    with pytest.warns(RankWarning, match="use alpha > 0"):
        Ridge(0.0).fit(np.column_stack([X, X[:, 0]]), y)


def test_positive_coefficients_are_those_of_non_negative_least_squares():
    X, y = table(columns=8)
    longer = np.vstack([X, np.sqrt(2.0) * np.eye(8)])
    peer, _ = nnls(longer, np.append(y, np.zeros(8)))
    model = Ridge(2.0, positive=True, fit_intercept=False, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer, rtol=1e-7, atol=1e-9)
    assert (peer == 0).any()
    assert (model.coef_ >= 0).all()


# -- a penalty for each target -------------------------------------------------------------------------------


@pytest.mark.parametrize("positive", [False, True])
def test_each_target_with_its_penalty_is_a_fit_of_its_own(positive):
    X, Y = table(targets=4)
    alphas = [3.0, 0.1, 3.0, 20.0]
    model = Ridge(alphas, positive=positive, tol=1e-8).fit(X, Y)
    alone = [
        Ridge(alpha, positive=positive, tol=1e-8).fit(X, y) for alpha, y in zip(alphas, Y.T, strict=True)
    ]
    np.testing.assert_allclose(model.coef_, [one.coef_ for one in alone], **CLOSE)
    np.testing.assert_allclose(model.intercept_, [one.intercept_ for one in alone], **CLOSE)
    objective = sum(one.certificate_.objective for one in alone)
    assert model.certificate_.objective == pytest.approx(objective, rel=1e-12)


def test_the_certificate_of_several_penalties_tells_a_changed_coefficient_and_other_penalties():
    X, Y = table(targets=3)
    model = Ridge([1.0, 5.0, 1.0]).fit(X, Y)
    assert model.certificate_.verify(X, Y).converged
    for target in range(3):
        other = copy.deepcopy(model)
        other.coef_[target, 2] *= 1.001
        with pytest.raises(CertificateError):
            other.certificate_.verify(X, Y)
    swapped = copy.deepcopy(model)
    swapped._fit_parameters["alpha"] = [5.0, 1.0, 1.0]
    with pytest.raises(CertificateError):
        swapped.certificate_.verify(X, Y)


def test_as_many_penalties_as_targets_are_needed():
    X, Y = table(targets=3)
    with pytest.raises(InputError, match="number of penalties do not correspond: 2 != 3"):
        Ridge([1.0, 2.0]).fit(X, Y)
    with pytest.raises(InputError, match=r"alpha\[1\]=-1.0 is out of range"):
        Ridge(np.array([1.0, -1.0, 1.0])).fit(X, Y)


# -- parameters ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", *SKLEARN_RIDGE_SOLVERS, "newton", "coordinate", "gd"])
def test_every_solver_finds_the_same(solver):
    X, y = table()
    model = Ridge(2.0, solver=solver, tol=1e-6, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.Ridge(2.0).fit(X, y).coef_, rtol=1e-3, atol=1e-4)


def test_solver_says_what_was_used():
    X, y = table()
    assert Ridge(solver="sparse_cg").fit(X, y).solver_ == "conjugate gradients"
    assert Ridge(solver="cholesky").fit(X, y).solver_ == Ridge(solver="direct").fit(X, y).solver_
    with pytest.raises(IncompatibleError, match="positive=True: it cannot keep the coefficients"):
        Ridge(solver="svd", positive=True).fit(X, y)


def test_tol_bounds_the_distance_of_the_fitted_values():
    X, y = table(400, 30)
    best = Ridge(1.0).fit(X, y).predict(X)
    for tol in (1e-1, 1e-3, 1e-6):
        model = Ridge(1.0, solver="cg", tol=tol).fit(X, y)
        assert np.sqrt(np.mean((model.predict(X) - best) ** 2)) <= tol * y.std()
        assert model.certificate_.tolerance == tol**2
    few, many = (Ridge(1.0, solver="cg", tol=tol).fit(X, y).n_iter_ for tol in (1e-1, 1e-8))
    assert few < many


def test_limits_end_a_fit_with_a_word():
    X, y = table(200, 20)
    with pytest.warns(StoppedEarly, match="max_iter=1 "):
        Ridge(solver="gd", max_iter=1).fit(X, y)
    heard = []
    Ridge(solver="cg", callbacks=[heard.append]).fit(X, y)
    assert [one.iteration for one in heard] == list(range(1, len(heard) + 1))


def test_seeds_matter_to_stochastic_solvers_only():
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedEarly)
        first, again, other = (
            Ridge(solver="sgd", max_iter=3, random_state=seed).fit(X, y).coef_ for seed in (0, 0, 1)
        )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_what_is_accepted_for_scikit_learns_sake_changes_nothing():
    X, y = table()
    plain = Ridge().fit(X, y).coef_
    for parameters in ({"copy_X": False}, {"random_state": 3}, {"n_jobs": 1}):
        np.testing.assert_array_equal(Ridge(**parameters).fit(X, y).coef_, plain)


# -- classes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"ash": 3.0, "birch": 0.5}])
def test_scores_of_classes_are_those_of_scikit_learn(kind, count, fit_intercept, class_weight):
    X, _ = table()
    y = classes(X, count)
    parameters = {"alpha": 4.0, "fit_intercept": fit_intercept, "class_weight": class_weight}
    ours = RidgeClassifier(**parameters).fit(kind(X), y)
    peer = theirs.RidgeClassifier(**parameters, solver="svd").fit(X, y)
    np.testing.assert_allclose(ours.decision_function(kind(X)), peer.decision_function(X), **CLOSE)
    np.testing.assert_array_equal(ours.predict(kind(X)), peer.predict(X))
    assert ours.score(kind(X), y) == peer.score(X, y)
    assert ours.coef_.shape == (1 if count == 2 else 3, 6)
    assert ours.certificate_.verify(kind(X), y).converged
    assert not hasattr(ours, "predict_proba")


def test_weights_of_rows_of_classes_count():
    X, _ = table()
    y, weight = classes(X, 3), RNG.uniform(0.1, 3.0, size=60)
    ours, peer = RidgeClassifier().fit(X, y, weight), theirs.RidgeClassifier().fit(X, y, weight)
    same_scores = ours.decision_function(X), peer.decision_function(X)
    np.testing.assert_allclose(*same_scores, **CLOSE)
    ours.certificate_.verify(X, y, weight)
    with pytest.raises(CertificateError):
        ours.certificate_.verify(X, y)


def test_classes_may_have_a_penalty_each_and_positive_coefficients():
    X, _ = table()
    y = classes(X, 3)
    ours = RidgeClassifier([1.0, 5.0, 20.0]).fit(X, y)
    peer = theirs.RidgeClassifier([1.0, 5.0, 20.0]).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), **CLOSE)
    assert ours.certificate_.verify(X, y).converged
    assert (RidgeClassifier(positive=True).fit(X, y).coef_ >= 0).all()


def test_a_score_of_zero_is_the_first_class():
    X = np.array([[-1.0], [1.0]])
    model = RidgeClassifier().fit(X, ["no", "yes"])
    assert model.predict([[0.0]]).tolist() == ["no"]
    assert theirs.RidgeClassifier().fit(X, ["no", "yes"]).predict([[0.0]]).tolist() == ["no"]


def test_the_explanation_of_a_class_adds_up_to_its_score():
    X, _ = table()
    y = classes(X, 2)
    model = RidgeClassifier().fit(X, y)
    explained = model.explain(X[0], of=model.classes_[1])
    assert explained.score == pytest.approx(float(model.decision_function(X[:1])[0]))


# -- searches ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("targets", [None, 2])
def test_a_search_finds_what_scikit_learns_finds(weighted, targets):
    X, y = table(targets=targets)
    fit = {"sample_weight": RNG.uniform(0.5, 2.0, size=60)} if weighted else {}
    grid = {"alpha": [0.0, 0.1, 10.0, 1000.0], "fit_intercept": [True, False]}
    ours = GridSearchCV(Ridge(), grid, cv=4).fit(X, y, **fit)
    peer = TheirSearch(theirs.Ridge(), grid, cv=4, scoring="r2").fit(X, y, **fit)
    assert ours.best_params_ == peer.best_params_
    if not weighted:  # scikit-learn scores without the weights
        for name in ("mean_test_score", "std_test_score"):
            np.testing.assert_allclose(ours.cv_results_[name], peer.cv_results_[name], rtol=1e-7)
    same(ours.best_estimator_, peer.best_estimator_, X)


def test_a_search_over_classifiers_finds_what_scikit_learns_finds():
    X, _ = table(120)
    y = classes(X, 3)
    grid = {"alpha": [1e-3, 1.0, 1e3]}
    ours, peer = (
        GridSearchCV(RidgeClassifier(), grid).fit(X, y),
        TheirSearch(theirs.RidgeClassifier(), grid).fit(X, y),
    )
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"])
    assert ours.best_params_ == peer.best_params_


def test_a_search_over_penalties_and_ridge_cv_agree():
    X, y = table()
    alphas = [0.1, 1.0, 10.0, 100.0]
    search = GridSearchCV(Ridge(), {"alpha": alphas}, cv=5).fit(X, y)
    chosen = RidgeCV(alphas, cv=5).fit(X, y)
    assert search.best_params_ == {"alpha": chosen.alpha_}
    np.testing.assert_allclose(search.best_estimator_.coef_, chosen.coef_, rtol=1e-12)
