"""Paths of penalties of linear models: what they yield is what separate fits yield."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris

from sixfold import ERMClassifier, ERMRegressor, LinearSVC, LogisticRegression
from sixfold.selection.plans.base import Answered, Fold, Table
from sixfold.selection.plans.linear import PathPlan, strength

CS = np.logspace(-3, 2, 8)


def make_table(rows=120, columns=8, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) @ rng.standard_normal((columns, columns))
    score = X @ rng.standard_normal((columns, classes)) / columns + 0.7 * rng.standard_normal((rows, classes))
    return X, score.argmax(axis=1)


def make_fold(X, y, weight=None, held_out=30):
    n = X.shape[0]
    train, test = np.arange(held_out, n), np.arange(held_out)
    rows = (lambda part: X.iloc[part]) if hasattr(X, "iloc") else (lambda part: X[part])
    weight = None if weight is None else weight[train]
    return Fold(0, train, test, rows(train), y[train], rows(test), y[test], weight)


def walk(model, grid, fold):
    plan = PathPlan(model, grid, Table(None, None, None, []))
    found = sorted(plan.fit(fold), key=lambda one: one.setting)
    assert [one.setting for one in found] == list(range(len(grid)))
    return found


def compare(model, grid, fold, tol=1e-8, digits=1e-4):
    """Each model is within the tolerance of the optimum, as a separate fit is, and predicts the same."""
    model = clone(model).set_params(tol=tol)
    for one, setting in zip(walk(model, grid, fold), grid, strict=True):
        alone = clone(model).set_params(**setting).fit(fold.X_train, fold.y_train, fold.sample_weight)
        scale = alone.certificate_.scale
        assert one.gap <= max(tol, alone.certificate_.relative_gap * 1.01)
        response = "decision_function" if hasattr(alone, "classes_") else "predict"
        ours, theirs = (getattr(each, response)(fold.X_test) for each in (one.model, alone))
        size = 1.0 + np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, atol=digits * size)
        made = one.model.model if isinstance(one.model, Answered) else one.model
        assert made.certificate_.converged or not alone.certificate_.converged
        assert abs(made.certificate_.objective - alone.certificate_.objective) <= 2.0 * tol * scale
        assert made.get_params() == alone.get_params()
        np.testing.assert_allclose(getattr(made, response)(fold.X_test), theirs, atol=digits * size)
        sure = np.abs(theirs) > digits * size if response == "decision_function" and theirs.ndim == 1 else ...
        np.testing.assert_array_equal(
            np.asarray(one.model.predict(fold.X_test))[sure], alone.predict(fold.X_test)[sure]
        ) if hasattr(alone, "classes_") else None


@pytest.mark.parametrize("l1_ratio", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic_regression_along_c(l1_ratio, classes, fit_intercept):
    X, y = make_table(classes=classes)
    model = LogisticRegression(l1_ratio=l1_ratio, fit_intercept=fit_intercept)
    compare(model, [{"C": C} for C in CS], make_fold(X, y))


@pytest.mark.parametrize(
    ("penalty", "loss"), [("l2", "squared_hinge"), ("l2", "hinge"), ("l1", "squared_hinge")]
)
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_svc_along_c(penalty, loss, classes):
    X, y = make_table(classes=classes)
    compare(LinearSVC(penalty=penalty, loss=loss), [{"C": C} for C in CS[::2]], make_fold(X, y), digits=1e-3)


SMOOTH = ["logistic", "squared", "squared_hinge", "softmax"]


# Kinks of both the loss and the penalty would need a first-order solver, which has no path.
@pytest.mark.parametrize(
    ("loss", "penalty"),
    [*((loss, penalty) for loss in SMOOTH for penalty in ("l1", "l2", "elasticnet")), ("hinge", "l2")],
)
def test_any_classification_loss_along_alpha(loss, penalty):
    X, y = make_table(classes=3)
    grid = [{"alpha": alpha} for alpha in (1.0, 0.03, 1e-3)]
    compare(ERMClassifier(loss, penalty=penalty), grid, make_fold(X, y), digits=1e-3)


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [("squared", "l1"), ("squared", "l2"), ("cubed", "l1"), ("cubed", "l2"), ("absolute", "l2")],
)
def test_any_regression_loss_along_alpha(loss, penalty):
    X, y = make_table()
    fold = make_fold(X, X[:, 0] - 2.0 * X[:, 1] + y)
    compare(ERMRegressor(loss, penalty=penalty), [{"alpha": a} for a in (1.0, 0.1, 1e-3)], fold, digits=1e-3)


def test_mixtures_are_paths_of_their_own():
    X, y = make_table()
    grid = [{"C": C, "l1_ratio": ratio} for ratio in (1.0, 0.5) for C in (3.0, 0.1)]
    compare(LogisticRegression(), grid, make_fold(X, y))


@pytest.mark.parametrize("kind", ["weights", "zero weights", "balanced", "float32", "sparse", "text"])
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_rows_of_all_kinds(kind, l1_ratio):
    X, y = make_table()
    weight = None
    model, tol, digits = LogisticRegression(l1_ratio=l1_ratio), 1e-8, 1e-4
    if "weights" in kind:
        weight = np.random.default_rng(1).integers(0 if "zero" in kind else 1, 5, len(y)).astype(float)
    if kind == "balanced":
        model.set_params(class_weight="balanced")
    if kind == "float32":
        X, tol, digits = X.astype(np.float32), 1e-5, 1e-2
    if kind == "sparse":
        X = sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
    if kind == "text":
        y = np.array(["no", "yes"])[y]
    compare(model, [{"C": C} for C in (0.01, 0.1, 1.0, 10.0)], make_fold(X, y, weight), tol, digits)


def test_a_frame_keeps_its_names():
    pd = pytest.importorskip("pandas")
    X, y = make_table(columns=3)
    fold = make_fold(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    for ratio in (0.0, 1.0):
        for one in walk(LogisticRegression(l1_ratio=ratio), [{"C": 0.1}, {"C": 1.0}], fold):
            assert one.model.feature_names_in_.tolist() == ["a", "b", "c"]
            assert one.model.certificate_.verify(fold.X_train, fold.y_train).converged


def test_columns_as_they_come():
    """Raw columns of many sizes, constants and duplicates, and twelve decades of C."""
    X, y = load_breast_cancer(return_X_y=True)
    X = np.column_stack([X[:200], np.full(200, 7.0), X[:200, 3]])
    fold = make_fold(X, y[:200], held_out=50)
    grid = [{"C": C} for C in np.logspace(-8, 4, 13)]
    for one, setting in zip(walk(LogisticRegression(l1_ratio=1.0), grid, fold), grid, strict=True):
        alone = LogisticRegression(l1_ratio=1.0, **setting).fit(fold.X_train, fold.y_train)
        made = one.model.model if isinstance(one.model, Answered) else one.model
        assert made.certificate_.converged == alone.certificate_.converged
        scale = alone.certificate_.scale
        assert abs(made.certificate_.objective - alone.certificate_.objective) <= 2e-6 * scale
        made.certificate_.verify(fold.X_train, fold.y_train)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_rare_classes_and_wide_tables(classes, l1_ratio):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 200)), np.zeros(60, dtype=int)
    y[30:] = rng.integers(0, classes, 30)
    grid = [{"C": C} for C in (0.05, 0.3, 2.0)]
    compare(LogisticRegression(l1_ratio=l1_ratio), grid, make_fold(X, y), digits=1e-3)


def test_probabilities_and_what_else_is_asked_of_an_answer():
    X, y = make_table()
    fold = make_fold(X, y)
    (one,) = walk(LogisticRegression(l1_ratio=1.0, tol=1e-10), [{"C": 0.3}], fold)
    alone = LogisticRegression(l1_ratio=1.0, tol=1e-10, C=0.3).fit(fold.X_train, fold.y_train)
    assert isinstance(one.model, Answered)
    for response in ("predict_proba", "predict_log_proba", "decision_function"):
        for rows in (fold.X_test, fold.X_test[:5]):
            np.testing.assert_allclose(
                getattr(one.model, response)(rows), getattr(alone, response)(rows), atol=1e-4
            )
    assert one.model.score(fold.X_test, fold.y_test) == alone.score(fold.X_test, fold.y_test)
    assert one.model.n_iter_.shape == (1,)
    assert one.model.solver_ == "coordinate descent"


def test_no_penalty_and_hard_margins_are_settings_like_others():
    X, y = make_table(rows=200)
    compare(LogisticRegression(), [{"C": 1.0}, {"C": np.inf}], make_fold(X, y))
    X, y = load_iris(return_X_y=True)
    fold = make_fold(X[:100], y[:100], held_out=10)
    hard = walk(LinearSVC(loss="hinge"), [{"C": np.inf}, {"C": 0.1}], fold)[0].model
    assert (
        hard.certificate_.kind
        == LinearSVC(loss="hinge", C=np.inf).fit(X[10:100], y[10:100]).certificate_.kind
    )


def test_the_strongest_penalty_comes_first_and_bad_settings_last():
    X, y = make_table()
    grid, seen = [{"C": 10.0}, {"C": 0.1}, {"C": "a"}, {"C": 1.0}], []

    def collect():
        plan = PathPlan(LogisticRegression(l1_ratio=1.0), grid, Table(None, None, None, []))
        seen.extend(one.setting for one in plan.fit(make_fold(X, y)))

    with pytest.raises(ValueError, match="C="):
        collect()
    assert strength({"alpha": 2.0}) < strength({"alpha": 1.0})
    assert strength({"C": float("nan")}) > strength({"C": 1e9})
    plan = PathPlan(LogisticRegression(l1_ratio=1.0), grid, Table(None, None, None, []))
    assert plan.order == [1, 3, 0, 2]


def test_objections():
    assert PathPlan.objection(LogisticRegression()) is None
    assert "sgd" in PathPlan.objection(LogisticRegression(solver="sgd"))
    assert "callbacks" in PathPlan.objection(LogisticRegression(callbacks=[print]))
    assert "verbose" in PathPlan.objection(LinearSVC(verbose=1))


def test_a_parameter_that_is_not_there_is_refused():
    X, y = make_table()
    with pytest.raises(ValueError, match="alpha"):
        walk(LogisticRegression(), [{"alpha": 1.0}], make_fold(X, y))


def test_bad_rows_are_refused_by_the_plan_as_by_a_fit():
    X, y = make_table()
    X[40, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        walk(LogisticRegression(l1_ratio=1.0), [{"C": 1.0}], make_fold(X, y))


def test_a_limit_of_iterations_still_leaves_models():
    X, y = make_table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = walk(
            LogisticRegression(l1_ratio=0.5, max_iter=1), [{"C": 0.1}, {"C": 100.0}], make_fold(X, y)
        )
    assert all(np.isfinite(one.model.predict_proba(X[:30])).all() for one in found)


@settings(max_examples=15, deadline=None)
@given(
    rows=st.integers(4, 40),
    columns=st.integers(1, 12),
    seed=st.integers(0, 10_000),
    ratio=st.sampled_from([0.0, 0.3, 1.0]),
    power=st.integers(-6, 6),
)
def test_odd_shapes_and_sizes(rows, columns, seed, ratio, power):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((rows, columns)), 1) * 10.0**power
    y = rng.integers(0, 2, rows)
    y[:2] = [0, 1]
    fold = Fold(0, np.arange(rows), np.arange(rows), X, y, X, y)
    for one in walk(LogisticRegression(l1_ratio=ratio), [{"C": 0.1}, {"C": 1.0}, {"C": 30.0}], fold):
        made = one.model.model if isinstance(one.model, Answered) else one.model
        assert made.certificate_.converged
        made.certificate_.verify(X, y)
