"""RidgeCV chooses what scikit-learn's chooses, and leaves each row out as a fit to all others would."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.linear_model import RidgeCV as TheirRidgeCV
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, ShuffleSplit
from sklearn.utils.estimator_checks import estimator_checks_generator

from sixfold.errors import CertificateError, InputError
from sixfold.selection import ridge_cv
from sixfold.selection.ridge_cv import RidgeCV

RNG = np.random.default_rng(0)
ALPHAS = np.logspace(-3, 3, 9)


def table(n=40, d=6, targets=None, sparse=False):
    X = RNG.normal(size=(n, d)) + 2.0
    if sparse:
        X = np.where(RNG.random(X.shape) < 0.5, X, 0.0)
    shape = (n,) if targets is None else (n, targets)
    y = X @ RNG.normal(size=(d, *shape[1:])) + 3.0 * RNG.normal(size=shape)
    return (sp.csr_array(X) if sparse else X), y


def assert_same(ours, theirs, X):
    assert type(ours.alpha_) in (float, np.ndarray)
    np.testing.assert_allclose(ours.alpha_, theirs.alpha_)
    np.testing.assert_allclose(ours.best_score_, theirs.best_score_, rtol=1e-8)
    for name in ("coef_", "intercept_", "cv_results_"):
        assert hasattr(ours, name) == hasattr(theirs, name)
        if hasattr(ours, name):
            assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name))
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-8)
    assert ours.predict(X).shape == theirs.predict(X).shape


# -- as scikit-learn -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(40, 6), (12, 30), (20, 20)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("targets", [None, 1, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scoring", [None, "r2", "neg_mean_absolute_error"])
@pytest.mark.parametrize("alpha_per_target", [False, True])
def test_leaving_out_each_row_in_turn(shape, fit_intercept, targets, weighted, scoring, alpha_per_target):
    if targets is None and scoring and alpha_per_target:
        return  # scikit-learn expects a second axis there
    X, y = table(*shape, targets)
    weight = RNG.uniform(0.1, 3.0, size=len(y)) if weighted else None
    parameters = {
        "alphas": ALPHAS, "fit_intercept": fit_intercept, "scoring": scoring, "store_cv_results": True,
        "alpha_per_target": alpha_per_target,
    }  # fmt: skip
    ours, theirs = RidgeCV(**parameters).fit(X, y, weight), TheirRidgeCV(**parameters).fit(X, y, weight)
    assert_same(ours, theirs, X)


def test_folds_may_be_masks():
    X, y = table()
    masks = [(fold != np.arange(40) % 3, fold == np.arange(40) % 3) for fold in range(3)]
    numbers = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in masks]
    assert_same(RidgeCV(ALPHAS, cv=masks).fit(X, y), TheirRidgeCV(ALPHAS, cv=numbers).fit(X, y), X)


@pytest.mark.parametrize("shape", [(40, 6), (12, 30)])
@pytest.mark.parametrize("mode", [None, "auto", "svd", "eigen"])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_mode_gives_the_same(shape, mode, sparse):
    X, y = table(*shape, sparse=sparse)
    theirs = TheirRidgeCV(ALPHAS, store_cv_results=True).fit(X, y)
    assert_same(RidgeCV(ALPHAS, gcv_mode=mode, store_cv_results=True).fit(X, y), theirs, X)


@pytest.mark.parametrize("shape", [(40, 6), (12, 30)])
@pytest.mark.parametrize(
    "cv",
    [2, 5, KFold(4, shuffle=True, random_state=0), LeaveOneOut(), ShuffleSplit(3, random_state=0)],
    ids=repr,
)
@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error", "neg_max_error"])
@pytest.mark.parametrize("weighted", [False, True])
def test_folds(shape, cv, scoring, weighted):
    if isinstance(cv, LeaveOneOut) and scoring is None:
        return  # R-squared of one row is no number
    if weighted and scoring == "neg_max_error":
        return  # of which scikit-learn warns, and ours does not
    X, y = table(*shape)
    weight = RNG.uniform(0.1, 3.0, size=len(y)) if weighted else None
    given = {"alphas": ALPHAS, "cv": cv, "scoring": scoring}
    ours, theirs = RidgeCV(**given).fit(X, y, weight), TheirRidgeCV(**given).fit(X, y, weight)
    assert_same(ours, theirs, X)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("targets", [1, 3])
def test_folds_of_several_targets_and_sparse_tables(sparse, targets):
    X, y = table(40, 6, targets, sparse)
    ours, theirs = RidgeCV(ALPHAS, cv=4).fit(X, y), TheirRidgeCV(ALPHAS, cv=4).fit(X, y)
    np.testing.assert_allclose(ours.alpha_, theirs.alpha_)
    np.testing.assert_allclose(ours.best_score_, theirs.best_score_, rtol=1e-4)  # theirs iterates
    np.testing.assert_allclose(ours.coef_, theirs.coef_.reshape(ours.coef_.shape), rtol=1e-3, atol=1e-4)


def test_splits_may_be_given():
    X, y = table()
    splits = list(KFold(4).split(X))
    assert_same(RidgeCV(ALPHAS, cv=splits).fit(X, y), TheirRidgeCV(ALPHAS, cv=splits).fit(X, y), X)


@pytest.mark.filterwarnings("ignore::sixfold.errors.RankWarning")
def test_no_penalty_may_be_among_those_of_folds():
    X, y = table()
    alphas = [0.0, 1.0, 100.0]
    ours, theirs = RidgeCV(alphas, cv=4).fit(X, y), TheirRidgeCV(alphas, cv=4).fit(X, y)
    assert_same(ours, theirs, X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, int])
def test_types(dtype):
    X, y = table()
    X, y = (10 * X).astype(dtype), (10 * y).astype(dtype)
    ours, theirs = (kind(ALPHAS, store_cv_results=True).fit(X, y) for kind in (RidgeCV, TheirRidgeCV))
    assert ours.coef_.dtype == theirs.coef_.dtype
    assert ours.cv_results_.dtype == theirs.cv_results_.dtype
    assert ours.alpha_ == theirs.alpha_
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4)


def test_frames_and_a_single_penalty():
    X, y = table(40, 3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = RidgeCV(alphas=2.0).fit(frame, pd.Series(y))
    assert model.alpha_ == 2.0
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    np.testing.assert_allclose(model.coef_, Ridge(2.0).fit(X, y).coef_)
    folds = RidgeCV(cv=3).fit(frame, pd.Series(y))
    np.testing.assert_allclose(folds.predict(frame), TheirRidgeCV(cv=3).fit(X, y).predict(X))


# -- by fitting again ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(15, 4), (8, 20)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("zeros", [False, True])
def test_the_closed_form_is_what_fits_to_all_other_rows_predict(shape, fit_intercept, zeros):
    X, y = table(*shape)
    weight = RNG.uniform(0.5, 2.0, size=len(y))
    if zeros:
        weight[[2, 5]] = 0.0
    alphas = [1e-3, 1.0, 30.0]
    model = RidgeCV(alphas, fit_intercept=fit_intercept, scoring="r2", store_cv_results=True)
    if zeros:
        model.set_params(scoring="neg_mean_squared_error")
    model.fit(X, y, weight)
    for place, alpha in enumerate(alphas):
        for i in range(len(y)):
            others = np.arange(len(y)) != i
            one = Ridge(alpha, fit_intercept=fit_intercept).fit(X[others], y[others], weight[others])
            np.testing.assert_allclose(model.cv_results_[i, place], one.predict(X[i : i + 1])[0], rtol=1e-7)


@pytest.mark.parametrize("shape", [(15, 4), (8, 20)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scoring", [None, "r2"])
def test_generalised_cross_validation_by_its_definition(shape, fit_intercept, scoring):
    X, y = table(*shape, targets=2)
    weight = RNG.uniform(0.5, 2.0, size=len(y))
    model = RidgeCV(ALPHAS, fit_intercept=fit_intercept, scoring=scoring).fit(X, y, weight)
    n = len(y)
    for place, alpha in enumerate(ALPHAS):
        fits = [Ridge(alpha, fit_intercept=fit_intercept, tol=1e-12) for _ in range(n)]
        H = np.column_stack([fit.fit(X, np.eye(n)[i], weight).predict(X) for i, fit in enumerate(fits)])
        residual = y - H @ y
        expected = (weight[:, None] * residual**2).mean(axis=0) / (1 - np.trace(H) / n) ** 2
        np.testing.assert_allclose(model.gcv_values_[:, place], expected, rtol=1e-7)
    assert RidgeCV(ALPHAS).fit(X, y[:, 0]).gcv_values_.shape == ALPHAS.shape


# -- hard tables ---------------------------------------------------------------------------------------------


def left_out(X, y, alpha):
    """Return the squared errors of rows that are left out, by QR of the rows in turn."""
    found = []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        mean, mean_y = X[others].mean(axis=0), y[others].mean()
        stacked = np.vstack([X[others] - mean, np.sqrt(alpha) * np.eye(X.shape[1])])
        w = np.linalg.lstsq(stacked, np.r_[y[others] - mean_y, np.zeros(X.shape[1])], rcond=None)[0]
        found.append((y[i] - mean_y - (X[i] - mean) @ w) ** 2)
    return np.array(found)


@pytest.mark.parametrize("kind", ["offset", "collinear", "scales", "constant"])
@pytest.mark.parametrize("shape", [(25, 5), (10, 20)])
def test_hard_tables_keep_their_digits(kind, shape):
    X, y = table(*shape)
    if kind == "offset":
        X += 2.0**20
    elif kind == "collinear":
        X[:, 1] = X[:, 0] + 1e-6 * X[:, 2]
    elif kind == "scales":
        X *= 10.0 ** np.linspace(-3, 4, X.shape[1])
    else:
        X[:, 1] = 0.1
    alphas = [1e-6, 1e-2, 1.0]
    model = RidgeCV(alphas, store_cv_results=True).fit(X, y)
    for place, alpha in enumerate(alphas):
        expected = left_out(X, y, alpha)
        np.testing.assert_allclose(
            model.cv_results_[:, place], expected, rtol=1e-5, atol=1e-7 * expected.max()
        )


def test_many_predictions_for_a_scorer_are_made_some_at_a_time(monkeypatch):
    X, y = table()
    expected = RidgeCV(ALPHAS, scoring="r2", store_cv_results=True).fit(X, y)
    monkeypatch.setattr(ridge_cv, "KEPT_PREDICTIONS", 100)
    found = RidgeCV(ALPHAS, scoring="r2", store_cv_results=True).fit(X, y)
    np.testing.assert_allclose(found.cv_results_, expected.cv_results_)
    np.testing.assert_allclose(found.gcv_values_, expected.gcv_values_)


# -- the certificate -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [None, 4])
def test_the_certificate_is_that_of_the_final_fit(cv):
    X, y = table()
    weight = RNG.uniform(0.1, 3.0, size=len(y))
    model = RidgeCV(ALPHAS, cv=cv).fit(X, y, weight)
    assert model.certificate_.converged
    assert model.certificate_.verify(X, y, weight).converged
    with pytest.raises(CertificateError):
        model.certificate_.verify(X, 2 * y, weight)


def test_targets_with_penalties_of_their_own_are_certified_together():
    X, y = table(60, 5, 4)
    y[:, 1] = RNG.normal(size=60)
    model = RidgeCV(ALPHAS, alpha_per_target=True).fit(X, y)
    assert len(set(model.alpha_)) > 1
    assert model.certificate_.converged
    assert model.certificate_.subject.parameters["alpha"] == model.alpha_.tolist()
    assert model.certificate_.verify(X, y).converged
    with pytest.raises(CertificateError):
        model.certificate_.verify(X, y + RNG.normal(size=y.shape))


# -- what cannot be used -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alphas": []}, "alphas is empty"),
        ({"alphas": [1.0, -1.0]}, "alphas[1] == -1.0, must be > 0.0"),
        ({"alphas": [0.0, 1.0]}, "0 needs cv"),
        ({"alphas": [-1.0], "cv": 3}, "alphas == -1.0, must be >= 0.0"),
        ({"alphas": [np.nan]}, "alphas == nan"),
        ({"alphas": [np.inf]}, "alphas == inf"),
        ({"gcv_mode": "cholesky"}, "gcv_mode"),
        ({"fit_intercept": "yes"}, "fit_intercept"),
        ({"cv": 3, "store_cv_results": True}, "cv!=None and store_cv_results=True are incompatible"),
        ({"cv": 3, "alpha_per_target": True}, "cv!=None and alpha_per_target=True are incompatible"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(InputError, match=re.escape(message)):
        RidgeCV(**parameters).fit(*table())


def test_a_penalty_that_is_no_number_is_refused_by_its_type():
    with pytest.raises(TypeError, match=r"alphas\[0\] must be an instance of float, not str"):
        RidgeCV(alphas=["1", 2.0]).fit(*table())


def test_leaving_out_the_only_row_leaves_nothing():
    with pytest.raises(InputError, match="leaving it out leaves nothing to learn from"):
        RidgeCV().fit([[1.0, 2.0]], [1.0])
    with pytest.raises(InputError, match="leaving it out leaves nothing to learn from"):
        RidgeCV().fit(np.eye(3), np.arange(3.0), sample_weight=[0, 1, 0])


def test_a_second_fit_forgets_the_first():
    X, y = table()
    model = RidgeCV(ALPHAS, store_cv_results=True).fit(X, y)
    model.set_params(store_cv_results=False, cv=3).fit(X, y)
    assert not hasattr(model, "cv_results_")
    assert not hasattr(model, "gcv_values_")


def test_groups_are_routed():
    from sklearn import config_context

    X, y = table()
    groups = np.arange(len(y)) % 4
    with config_context(enable_metadata_routing=True):
        ours = RidgeCV(ALPHAS, cv=GroupKFold(4)).fit(X, y, groups=groups)
        theirs = TheirRidgeCV(ALPHAS, cv=GroupKFold(4)).fit(X, y, groups=groups)
    assert_same(ours, theirs, X)
    with pytest.raises(ValueError, match="groups"):
        RidgeCV(ALPHAS, cv=GroupKFold(4)).fit(X, y, groups=groups)


# -- scikit-learn's checks -----------------------------------------------------------------------------------

TWICE = "leaving out one of two equal rows is not leaving out a row of weight 2; scikit-learn's fails as well"
EXCUSED = {
    "check_sample_weight_equivalence_on_dense_data": TWICE,
    "check_sample_weight_equivalence_on_sparse_data": TWICE,
}


@pytest.mark.filterwarnings("ignore::sixfold.errors.RankWarning")
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        (one, check)
        for model in (RidgeCV(), RidgeCV(cv=3))
        for one, check in estimator_checks_generator(model)
        if check.func.__name__ not in EXCUSED
    ],
    ids=lambda value: getattr(getattr(value, "func", None), "__name__", None) or repr(value),
)
def test_scikit_learns_checks_pass(estimator, check):
    check(clone(estimator))
