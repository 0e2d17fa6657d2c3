"""Paths of alphas of L1-penalised least squares: what they yield is what separate fits yield."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes

from sixfold import LinearRegression
from sixfold.selection.plans.base import Answered, Fold, Table
from sixfold.selection.plans.l1_path import LassoPlan

ALPHAS = np.geomspace(3.0, 1e-3, 9)


def make_table(rows=100, columns=12, targets=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) @ rng.standard_normal((columns, columns)) + 3.0
    w = rng.standard_normal((columns, targets or 1)) * (rng.random((columns, targets or 1)) < 0.5)
    y = X @ w + rng.standard_normal((rows, targets or 1))
    return X, y if targets else y[:, 0]


def make_fold(X, y, weight=None, held_out=25):
    n = X.shape[0]
    train, test = np.arange(held_out, n), np.arange(held_out)
    weight = None if weight is None else weight[train]
    return Fold(0, train, test, X[train], y[train], X[test], y[test], weight)


def walk(model, grid, fold):
    found = sorted(LassoPlan(model, grid, Table(None, None, None, [])).fit(fold), key=lambda one: one.setting)
    assert [one.setting for one in found] == list(range(len(grid)))
    return found


def compare(model, grid, fold, tol=1e-9, digits=1e-3):
    model = clone(model).set_params(tol=tol)
    for one, setting in zip(walk(model, grid, fold), grid, strict=True):
        alone = clone(model).set_params(**setting).fit(fold.X_train, fold.y_train, fold.sample_weight)
        scale = alone.certificate_.scale
        assert one.gap <= max(tol, alone.certificate_.relative_gap * 1.01)
        theirs = alone.predict(fold.X_test)
        np.testing.assert_allclose(
            one.model.predict(fold.X_test), theirs, atol=digits * (1.0 + np.abs(theirs).max())
        )
        made = one.model.model if isinstance(one.model, Answered) else one.model
        assert made.certificate_.converged or not alone.certificate_.converged
        assert abs(made.certificate_.objective - alone.certificate_.objective) <= 2.0 * tol * scale
        assert made.get_params() == alone.get_params()
        assert made.coef_.shape == alone.coef_.shape
        assert np.shape(made.intercept_) == np.shape(alone.intercept_)
        made.certificate_.verify(fold.X_train, fold.y_train, fold.sample_weight)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("targets", [None, 1, 3])
def test_along_alpha(penalty, fit_intercept, positive, targets):
    model = LinearRegression(penalty=penalty, fit_intercept=fit_intercept, positive=positive)
    compare(model, [{"alpha": alpha} for alpha in ALPHAS], make_fold(*make_table(targets=targets)))


def test_mixtures_are_paths_of_their_own():
    grid = [{"alpha": alpha, "l1_ratio": ratio} for ratio in (0.2, 0.9, 0.0, 1.0) for alpha in (1.0, 0.01)]
    compare(LinearRegression(penalty="elasticnet"), grid, make_fold(*make_table()))


@pytest.mark.parametrize(
    "kind", ["weights", "zero weights", "float32", "sparse", "column order", "wide", "raw"]
)
def test_rows_of_all_kinds(kind):
    X, y = make_table()
    weight, tol, digits = None, 1e-9, 1e-3
    if "weights" in kind:
        weight = np.random.default_rng(1).integers(0 if "zero" in kind else 1, 5, len(y)).astype(float)
    if kind == "float32":
        X, y, tol, digits = X.astype(np.float32), y.astype(np.float32), 1e-5, 1e-2
    if kind == "sparse":
        X = sp.csr_array(np.where(np.abs(X) > 2.0, X, 0.0))
    if kind == "column order":
        X = np.asfortranarray(X)
    if kind == "wide":
        X, y = make_table(60, 150)
    if kind == "raw":
        X, y = load_diabetes(return_X_y=True, scaled=False)
        X = np.column_stack([X[:150], np.full(150, 5.0), X[:150, 2], 1e6 * X[:150, 0] + 1e9])
        y, tol, digits = y[:150], 1e-7, 1e-3
    compare(
        LinearRegression(penalty="l1"), [{"alpha": a} for a in ALPHAS], make_fold(X, y, weight), tol, digits
    )


def test_twelve_decades_of_alpha():
    X, y = make_table(80, 6)
    compare(
        LinearRegression(penalty="l1"),
        [{"alpha": alpha} for alpha in np.logspace(-8, 4, 13)],
        make_fold(X, y),
        tol=1e-8,
    )


def test_no_penalty_is_a_setting_like_others():
    compare(LinearRegression(penalty="l1"), [{"alpha": 0.1}, {"alpha": 0.0}], make_fold(*make_table()))


def test_constant_targets_and_single_rows():
    X, y = make_table(30, 4)
    for one in walk(LinearRegression(penalty="l1"), [{"alpha": 0.1}], make_fold(X, np.full(30, 2.5))):
        np.testing.assert_allclose(one.model.predict(X[:25]), 2.5)
        assert one.gap == 0.0
    fold = Fold(0, np.arange(1), np.arange(30), X[:1], y[:1], X, y)
    (one,) = walk(LinearRegression(penalty="l1"), [{"alpha": 0.1}], fold)
    with pytest.warns(UserWarning, match="one row"):
        made = one.model.model
    assert not made.coef_.any()


def test_a_path_is_of_the_alphas_that_were_given_in_any_order():
    fold = make_fold(*make_table())
    grid = [{"alpha": alpha} for alpha in (0.1, 3.0, 0.1, 0.5)]
    found = walk(LinearRegression(penalty="l1"), grid, fold)
    assert [bool(one.model.coef_.any()) for one in found]
    np.testing.assert_allclose(found[0].model.coef_, found[2].model.coef_, atol=1e-3)
    assert np.count_nonzero(found[1].model.coef_) <= np.count_nonzero(found[0].model.coef_)


def test_bad_rows_and_settings_are_refused_as_by_a_fit():
    X, y = make_table()
    with pytest.raises(ValueError, match="alpha="):
        walk(LinearRegression(penalty="l1"), [{"alpha": -1.0}], make_fold(X, y))
    X[40, 2] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        walk(LinearRegression(penalty="l1"), [{"alpha": 1.0}], make_fold(X, y))


def test_objections():
    assert LassoPlan.objection(LinearRegression(penalty="l1")) is None
    assert "sgd" in LassoPlan.objection(LinearRegression(penalty="l1", solver="sgd"))


@settings(max_examples=20, deadline=None)
@given(
    rows=st.integers(2, 30),
    columns=st.integers(1, 40),
    seed=st.integers(0, 10_000),
    ratio=st.sampled_from([0.3, 1.0]),
    power=st.integers(-6, 6),
    offset=st.sampled_from([0.0, 1e3]),
)
def test_odd_shapes_and_sizes(rows, columns, seed, ratio, power, offset):
    rng = np.random.default_rng(seed)
    X = (np.round(rng.standard_normal((rows, columns)), 1) + offset) * 10.0**power
    y = rng.standard_normal(rows)
    fold = Fold(0, np.arange(rows), np.arange(rows), X, y, X, y)
    model = LinearRegression(penalty="elasticnet", l1_ratio=ratio)
    top = np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / rows or 1.0
    for one in walk(model, [{"alpha": top * part} for part in (1.0, 0.3, 0.01)], fold):
        made = one.model.model if isinstance(one.model, Answered) else one.model
        assert made.certificate_.converged
        made.certificate_.verify(X, y)
