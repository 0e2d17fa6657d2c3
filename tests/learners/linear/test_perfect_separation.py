"""Without a penalty, separated classes have no fit: the direction is raised, and it separates the rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score

from sixfold import LinearSVC, LogisticRegression
from sixfold.data.blocks import MemoryBlocks
from sixfold.errors import InputError, NotSeparable, PerfectSeparation, SeparationWarning
from sixfold.solvers.margin.hard_margin import certify_margin


def setosa():
    X, y = load_iris(return_X_y=True)
    return X, y == 0


def one_column():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    return X, X[:, 1] > 0.3


def on_the_boundary():
    """Return rows of both classes at x0 = 0, all of one class above it and none below."""
    random = np.random.default_rng(1)
    X = np.column_stack([np.repeat([0.0, 1.0, 2.0], 20), random.normal(size=60)])
    y = random.random(60) < 0.5
    y[X[:, 0] > 0] = True
    return X, y


SEPARATED = {"setosa": (setosa, "complete"), "one column": (one_column, "complete"),
             "boundary": (on_the_boundary, "quasi-complete")}  # fmt: skip


@pytest.mark.parametrize("name", SEPARATED)
def test_the_direction_separates(name):
    make, kind = SEPARATED[name]
    X, y = make()
    with pytest.raises(PerfectSeparation) as caught:
        LogisticRegression(C=np.inf, on_separation="raise").fit(X, y)
    w, b = caught.value.direction
    margin = np.where(y, 1.0, -1.0) * (X @ w[:, 0] + b[0])
    scale = np.abs(X).max(axis=0) @ np.abs(w[:, 0]) + np.abs(b[0])
    assert caught.value.kind == kind
    assert (margin >= -1e-9 * scale).all()
    assert (margin > 1e-9 * scale).any() if kind == "quasi-complete" else (margin > 0).all()
    assert caught.value.columns


def test_the_columns_are_named():
    X, y = one_column()
    frame = pd.DataFrame(X, columns=["height", "dose", "age"])
    with pytest.raises(PerfectSeparation, match="'dose' alone separates: every row above 0"):
        LogisticRegression(C=np.inf, on_separation="raise").fit(frame, y)


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "newton-cg", "gd"])
def test_every_solver_finds_out(solver):
    X, y = setosa()
    with pytest.raises(PerfectSeparation):
        LogisticRegression(C=np.inf, solver=solver, max_iter=100, on_separation="raise").fit(X, y)


def test_one_class_of_three_is_enough():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(PerfectSeparation):
        LogisticRegression(C=np.inf, on_separation="raise").fit(X, y)


@pytest.mark.parametrize("name", SEPARATED)
def test_the_limit_is_kept_with_a_warning(name):
    X, y = SEPARATED[name][0]()
    with pytest.warns(SeparationWarning, match="likelihood has no maximum"):
        model = LogisticRegression(C=np.inf).fit(X, y)
    p = model.predict_proba(X)[np.arange(y.size), y.astype(int)]
    certain = X[:, 0] > 0 if name == "boundary" else np.ones(y.size, bool)
    assert (p[certain] > 1.0 - 1e-12).all()
    if name == "boundary":  # there the model is that of the rows on the boundary alone
        rest = LogisticRegression(C=np.inf).fit(X[~certain][:, 1:], y[~certain])
        np.testing.assert_allclose(
            model.predict_proba(X[~certain]), rest.predict_proba(X[~certain][:, 1:]), atol=1e-4
        )


@pytest.mark.parametrize("given", [{"penalty": None}, {"C": np.inf}, {"C": np.inf, "penalty": "l2"}], ids=str)
def test_the_advice_names_a_c_that_works(given):
    X, y = setosa()
    with pytest.warns(
        SeparationWarning, match=r"was kept.*penalty='l2' with a finite C, for instance C=1\.0"
    ):
        model = LogisticRegression(**given).fit(X, y)
    with pytest.raises(InputError, match="The classes are separated: the likelihood has no maximum"):
        model.summary()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(penalty="l2", C=1.0).fit(X, y)


def test_cross_validation_without_penalty_goes_on_where_a_fold_is_separated():
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeparationWarning)
        scores = cross_val_score(LogisticRegression(penalty=None), X, y, error_score="raise")
    assert scores.mean() > 0.9


def test_close_to_separable_is_not_accused():
    X, y = one_column()
    order = np.argsort(X[:, 1])
    y = y.copy()
    y[order[np.flatnonzero(y[order])[1]]] = False  # one row is behind the first of the other class
    X = X[:, 1:2]
    model = LogisticRegression(C=np.inf).fit(X, y)
    assert model.certificate_.converged
    assert np.isfinite(model.summary().standard_error).all()


def test_a_penalised_fit_notes_what_it_rests_on():
    X, y = setosa()
    assert "without the penalty the coefficients would have no limit" in str(
        LogisticRegression().fit(X, y).certificate_
    )
    y = y.copy()
    y[:3] = False
    assert "no limit" not in str(LogisticRegression().fit(X, y).certificate_)


def test_the_hard_margin_is_that_of_a_large_c_and_rests_on_few_rows():
    X, y = setosa()
    hard = LinearSVC(C=np.inf).fit(X, y)
    soft = LinearSVC(C=1e6, loss="hinge").fit(X, y)
    np.testing.assert_allclose(hard.coef_, soft.coef_, rtol=1e-5)
    assert hard.margin_ == pytest.approx(soft.margin_, rel=1e-6)
    margin = np.where(y, 1.0, -1.0) * hard.decision_function(X)
    assert margin.min() >= 1.0 - 1e-12
    np.testing.assert_allclose(margin[hard.support_], 1.0, rtol=1e-9)
    assert hard.certificate_.converged
    hard.certificate_.verify(X, y)


def test_a_hard_margin_that_does_not_exist_is_refused_with_the_proof():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(NotSeparable, match="No plane separates") as caught:
        LinearSVC(C=np.inf).fit(X, y == 1)
    signs = np.where(y[caught.value.rows] == 1, 1.0, -1.0) * caught.value.weights
    np.testing.assert_allclose(signs @ X[caught.value.rows], 0.0, atol=1e-9)
    assert signs.sum() == pytest.approx(0.0, abs=1e-12)
    assert (caught.value.weights > 0).all()


def test_no_bound_is_claimed_for_a_plane_with_rows_inside_its_margin():
    X, y = setosa()
    hard = LinearSVC(C=np.inf).fit(X, y)
    blocks = MemoryBlocks(X, np.where(y, 1.0, -1.0)[:, None])
    problem, dual = hard._problem(150.0), hard.dual_[:, None]
    w, b = hard.coef_.T, hard.intercept_
    assert certify_margin(problem, w, b, blocks, 1e-6, dual).converged
    assert certify_margin(problem, 0.99 * w, 0.99 * b, blocks, 1e-6, dual).gap == np.inf
