"""The plan of linear regression predicts, for every penalty and fold, what a fit of its own would."""

import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, LeaveOneOut, RepeatedKFold, ShuffleSplit, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sixfold import GridSearchCV, LinearRegression
from sixfold.errors import InputError
from sixfold.selection.plans import least_squares
from sixfold.selection.plans.base import Answered, Fold, Later, Table
from sixfold.selection.plans.least_squares import LeastSquaresPlan

RNG = np.random.default_rng(0)
RIDGE = LinearRegression(penalty="l2")
ALPHAS = [1e-6, 1e-3, 0.1, 1.0, 50.0]


def take(values, rows):
    """Return some rows of an array, a frame or a sparse table."""
    return values.iloc[rows] if hasattr(values, "iloc") else values[rows]


def folds_of(X, y, cv, sample_weight=None):
    n = X.shape[0]
    splits = list(cv.split(np.zeros(n)))
    folds = [
        Fold(
            number, train, test, take(X, train), take(y, train), take(X, test), take(y, test),
            None if sample_weight is None else sample_weight[train],
        )
        for number, (train, test) in enumerate(splits)
    ]  # fmt: skip
    return Table(X, y, sample_weight, splits), folds


def separate(model, alpha, fold):
    weights = {} if fold.sample_weight is None else {"sample_weight": fold.sample_weight}
    return clone(model).set_params(alpha=alpha).fit(fold.X_train, fold.y_train, **weights)


def check(X, y, cv=None, sample_weight=None, model=RIDGE, alphas=ALPHAS, rtol=1e-9, without_table=False):
    """Compare all predictions with those of separate fits; return how many came from the factorisation."""
    table, folds = folds_of(X, y, cv or KFold(4, shuffle=True, random_state=0), sample_weight)
    if without_table:
        table = Table(None, y, sample_weight, table.splits)
    plan = LeastSquaresPlan(model, [{"alpha": alpha} for alpha in alphas], table)
    answered = 0
    for fold in folds:
        found = {fitted.setting: fitted for fitted in plan.fit(fold)}
        assert sorted(found) == list(range(len(alphas)))
        for number, fitted in found.items():
            one = separate(model, alphas[number], fold)
            expected, got = one.predict(fold.X_test), fitted.model.predict(fold.X_test)
            assert got.shape == expected.shape
            assert got.dtype == expected.dtype
            size = max(float(np.abs(np.asarray(fold.y_train, dtype=float)).max(initial=0.0)), 1e-300)
            np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol * size)
            assert 0 <= fitted.gap <= max(one.certificate_.relative_gap, 1e-10)
            answered += isinstance(fitted.model, Answered)
        assert sum(fitted.solved for fitted in found.values()) >= 1
    return answered


def tall(n=80, d=6, targets=None):
    X = RNG.normal(size=(n, d)) + 2.0
    shape = (n,) if targets is None else (n, targets)
    return X, X @ RNG.normal(size=(d, *shape[1:])) + RNG.normal(size=shape)


# -- what a separate fit would predict ----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(80, 6), (30, 30), (20, 60), (60, 40)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("targets", [None, 1, 3])
def test_tall_and_wide_tables_with_any_number_of_targets(shape, fit_intercept, targets):
    X, y = tall(*shape, targets)
    model = LinearRegression(penalty="l2", fit_intercept=fit_intercept)
    assert check(X, y, model=model) == 4 * len(ALPHAS)


@pytest.mark.parametrize(
    "cv",
    [
        KFold(2), KFold(10), LeaveOneOut(), RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        ShuffleSplit(3, test_size=0.2, random_state=0), ShuffleSplit(3, test_size=0.9, random_state=0),
        ShuffleSplit(3, test_size=0.3, train_size=0.3, random_state=0), TimeSeriesSplit(4),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("shape", [(60, 5), (12, 25)])
def test_any_splitter_will_do(cv, shape):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of folds with a single row
        check(*tall(*shape), cv=cv)


@pytest.mark.parametrize("shape", [(80, 6), (20, 60)])
@pytest.mark.parametrize("zeros", [False, True])
def test_weights_count(shape, zeros):
    X, y = tall(*shape)
    weight = RNG.uniform(0.1, 5.0, size=len(y))
    if zeros:
        weight[::3] = 0.0
    assert check(X, y, sample_weight=weight) == 4 * len(ALPHAS)


@pytest.mark.parametrize("shape", [(80, 6), (20, 60)])
def test_float32_answers_in_float32(shape):
    X, y = tall(*shape)
    assert check(X.astype(np.float32), y.astype(np.float32), rtol=2e-5) == 4 * len(ALPHAS)


@pytest.mark.parametrize("shape", [(80, 6), (20, 60)])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_tables(shape, weighted):
    X, y = tall(*shape)
    X = sp.csr_array(np.where(RNG.random(X.shape) < 0.4, X, 0.0))
    weight = RNG.uniform(0.1, 5.0, size=len(y)) if weighted else None
    assert check(X, y, sample_weight=weight) == 4 * len(ALPHAS)


def test_frames_and_whole_numbers():
    X, y = tall()
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(g=np.arange(len(y)))
    assert check(frame, pd.Series(y)) == 4 * len(ALPHAS)
    assert check(np.round(3 * X).astype(int), np.round(y).astype(int)) == 4 * len(ALPHAS)


@pytest.mark.parametrize("order", ["C", "F"])
def test_order_in_memory_does_not_matter(order):
    X, y = tall()
    assert check(np.asarray(X, order=order), y, cv=KFold(4)) == 4 * len(ALPHAS)


@pytest.mark.parametrize("shape", [(80, 6), (20, 60)])
def test_the_last_step_of_a_pipeline_has_no_common_table(shape):
    assert check(*tall(*shape), without_table=True) == 4 * len(ALPHAS)


# -- tables that are hard -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(80, 6), (20, 60)])
def test_huge_offsets(shape):
    X, y = tall(*shape)
    assert check(X + 2.0**30, y + 2.0**20, rtol=1e-6) == 4 * len(ALPHAS)


@pytest.mark.parametrize("shape", [(80, 6), (20, 60)])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3])
def test_constant_columns_have_no_part_even_where_held_out_rows_differ(shape, value):
    X, y = tall(*shape)
    X[:, 2] = value
    X[0, 2] += 1e3 * max(value, 1.0)  # constant in all folds but one
    check(X, y, alphas=[1e-9, *ALPHAS], rtol=1e-7)


@pytest.mark.parametrize("n", [80, 20])
def test_collinear_columns(n):
    X, y = tall(n)
    X = np.column_stack([X, X[:, 0], X[:, 1] + X[:, 2], X[:, 3] * (1 + 1e-9)])
    check(X, y, rtol=1e-6)


def test_penalties_next_to_nothing_on_collinear_columns_are_fitted_by_the_learner():
    X, y = tall()
    X = np.column_stack([X, X[:, 0] + 1e-7 * RNG.normal(size=len(y))])
    answered = check(X, y, alphas=[1e-15, 1e-12, 1.0], rtol=1e-5)
    assert 4 <= answered < 12


@pytest.mark.parametrize("shape", [(80, 6), (20, 60)])
def test_columns_of_very_different_size(shape):
    X, y = tall(*shape)
    X *= 10.0 ** np.linspace(-4, 4, X.shape[1])
    answered = check(X, y, rtol=1e-6)
    assert answered == 4 * len(ALPHAS) or shape == (20, 60)


@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")  # what underflows is no longer certain
@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e100])
@pytest.mark.parametrize("shape", [(80, 6), (20, 60)])
def test_huge_and_tiny_values(scale, shape):
    X, y = tall(*shape)
    check(X, y * scale, rtol=1e-7)
    check(X * scale, y, rtol=1e-7)


@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
@pytest.mark.parametrize("shape", [(80, 6), (20, 60)])
@pytest.mark.parametrize("far", [1e5, 1e9])
def test_a_held_out_row_far_away_does_not_cost_the_others_their_digits(shape, far):
    X, y = tall(*shape)
    X[3] += far
    y[3] += far
    answered = check(X, y, rtol=1e-7)
    assert answered == 4 * len(ALPHAS) or far == 1e9


def test_repeated_rows_and_constant_targets():
    X, y = tall(20)
    check(np.repeat(X, 4, axis=0), np.repeat(y, 4))
    check(X, np.full(20, 3.0))
    check(X, np.zeros(20))


@pytest.mark.filterwarnings("ignore::sixfold.errors.RankWarning")
@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_rows(n):
    X, y = tall(n, 3)
    check(X, y, cv=LeaveOneOut())


@settings(max_examples=60)
@given(st.data())
def test_odd_shapes(data):
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n, d = data.draw(st.integers(4, 25)), data.draw(st.integers(1, 12))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2, size=d) + rng.choice([0.0, 100.0])
    if data.draw(st.booleans()):
        X = np.round(X)
    y = np.round(rng.normal(size=n), 1)
    weight = rng.integers(0, 3, size=n).astype(float) if data.draw(st.booleans()) else None
    cv = KFold(data.draw(st.integers(2, min(n, 4))), shuffle=True, random_state=seed % 1000)
    if weight is not None and any(np.count_nonzero(weight[train]) < 2 for train, _ in cv.split(X)):
        return
    model = LinearRegression(penalty="l2", fit_intercept=data.draw(st.booleans()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(X, y, cv, weight, model, rtol=1e-6)


# -- what it does not take on -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sixfold.errors.RankWarning")
def test_alpha_zero_is_fitted_by_the_learner():
    assert check(*tall(), alphas=[0.0, 1.0, 0]) == 4


def test_bad_penalties_come_last_and_are_refused_by_the_learner():
    X, y = tall()
    table, folds = folds_of(X, y, KFold(4))
    plan = LeastSquaresPlan(RIDGE, [{"alpha": -1.0}, {"alpha": 2.0}, {"alpha": "much"}], table)
    fits = plan.fit(folds[0])
    assert next(fits).setting == 1
    with pytest.raises(InputError, match="alpha"):
        next(fits)


@pytest.mark.parametrize("where", ["X", "y"])
def test_a_fold_that_cannot_be_computed_with_is_refused_and_the_others_are_not(where):
    X, y = tall()
    X, y = X.copy(), y.copy()
    (X[5] if where == "X" else y[5:6])[0] = np.nan
    table, folds = folds_of(X, y, KFold(4))
    plan = LeastSquaresPlan(RIDGE, [{"alpha": 2.0}], table)
    with pytest.raises(InputError, match=f"Input {where} contains NaN"):
        list(plan.fit(folds[1]))
    (fitted,) = plan.fit(folds[0])  # the row is held out here
    if where == "X":
        with pytest.raises(InputError, match="contains NaN"):
            fitted.model.predict(folds[0].X_test)
    else:
        expected = separate(RIDGE, 2.0, folds[0]).predict(folds[0].X_test)
        np.testing.assert_allclose(fitted.model.predict(folds[0].X_test), expected)


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"penalty": None}, "penalty"),
        ({"positive": True}, "positive"),
        ({"solver": "cg"}, "cg"),
        ({"callbacks": [print]}, "callbacks"),
        ({"verbose": 1}, "progress"),
    ],
)
def test_objections_name_the_parameter(parameters, word):
    model = LinearRegression(**{"penalty": "l2", **parameters})
    assert word in LeastSquaresPlan.objection(model)
    assert LeastSquaresPlan.objection(RIDGE) is None
    assert LeastSquaresPlan.objection(LinearRegression(penalty="l2", solver="direct")) is None


# -- how the work is shared ---------------------------------------------------------------------------------


def test_every_row_is_read_once_for_its_moments(monkeypatch):
    X, y = tall(200, 5)
    read = []
    before = least_squares.block_moments
    monkeypatch.setattr(
        least_squares, "block_moments", lambda block, flag: read.append(len(block.y)) or before(block, flag)
    )
    check(X, y, cv=KFold(10))
    assert read == [20] * 10


def test_products_of_rows_are_computed_once(monkeypatch):
    X, y = tall(20, 60)
    calls = []
    before = least_squares.row_products
    monkeypatch.setattr(
        least_squares, "row_products", lambda *given: calls.append(len(given)) or before(*given)
    )
    check(X, y, cv=KFold(10))
    assert len(calls) == 1


def test_one_problem_is_solved_a_fold_and_the_others_come_with_it():
    X, y = tall()
    table, folds = folds_of(X, y, KFold(4))
    plan = LeastSquaresPlan(RIDGE, [{"alpha": alpha} for alpha in ALPHAS], table)
    assert [fitted.solved for fitted in plan.fit(folds[0])] == [1, 0, 0, 0, 0]


def test_scorers_need_no_fitted_learner(monkeypatch):
    X, y = tall()
    table, folds = folds_of(X, y, KFold(4))
    plan = LeastSquaresPlan(RIDGE, [{"alpha": alpha} for alpha in ALPHAS], table)
    found = list(plan.fit(folds[0]))
    expected = [
        get_scorer("r2")(separate(RIDGE, a, folds[0]), folds[0].X_test, folds[0].y_test) for a in ALPHAS
    ]
    monkeypatch.setattr(LinearRegression, "fit", None)
    scores = [get_scorer("r2")(fitted.model, folds[0].X_test, folds[0].y_test) for fitted in found]
    np.testing.assert_allclose(scores, expected, rtol=1e-10)
    own = [fitted.model.score(folds[0].X_test, folds[0].y_test) for fitted in found]
    np.testing.assert_allclose(own, expected, rtol=1e-10)


@pytest.mark.parametrize("shape", [(80, 6), (20, 60)])
@pytest.mark.parametrize("targets", [None, 2])
@pytest.mark.parametrize("without_table", [False, True])
def test_scores_of_training_rows_need_no_fitted_learner_either(monkeypatch, shape, targets, without_table):
    X, y = tall(*shape, targets)
    table, folds = folds_of(X, y, KFold(4))
    if without_table:
        table = Table(None, y, None, table.splits)
    fold = folds[1]
    expected = [separate(RIDGE, alpha, fold).predict(fold.X_train) for alpha in ALPHAS]
    monkeypatch.setattr(LinearRegression, "fit", None)
    monkeypatch.setattr(least_squares, "PREDICTIONS", 2 * y.size)
    plan = LeastSquaresPlan(RIDGE, [{"alpha": alpha} for alpha in ALPHAS], table)
    found = [fitted.model.predict(fold.X_train) for fitted in plan.fit(fold)]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_whatever_else_is_asked_comes_from_a_real_fit():
    X, y = tall()
    table, folds = folds_of(X, y, KFold(4))
    plan = LeastSquaresPlan(RIDGE, [{"alpha": alpha} for alpha in ALPHAS], table)
    for fitted in plan.fit(folds[2]):
        one = separate(RIDGE, ALPHAS[fitted.setting], folds[2])
        np.testing.assert_array_equal(fitted.model.coef_, one.coef_)
        assert fitted.model.certificate_.converged
        assert fitted.model.alpha == ALPHAS[fitted.setting]
        np.testing.assert_allclose(fitted.model.predict(X[:3]), one.predict(X[:3]))


def test_many_predictions_are_made_some_at_a_time(monkeypatch):
    monkeypatch.setattr(least_squares, "PREDICTIONS", 30)
    assert check(*tall()) == 4 * len(ALPHAS)
    monkeypatch.setattr(least_squares, "KEPT_MOMENTS", 10)
    assert check(*tall()) == 4 * len(ALPHAS)


def test_folds_may_be_asked_for_at_the_same_time():
    X, y = tall(200, 10)
    table, folds = folds_of(X, y, KFold(8))
    plan = LeastSquaresPlan(RIDGE, [{"alpha": alpha} for alpha in ALPHAS], table)
    results = {}

    def run(fold):
        results[fold.number] = [fitted.model.predict(fold.X_test) for fitted in plan.fit(fold)]

    threads = [threading.Thread(target=run, args=(fold,)) for fold in folds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = LeastSquaresPlan(RIDGE, [{"alpha": alpha} for alpha in ALPHAS], table)
    for fold in folds:
        expected = [fitted.model.predict(fold.X_test) for fitted in again.fit(fold)]
        np.testing.assert_array_equal(results[fold.number], expected)


# -- in a search -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", [None, "neg_median_absolute_error", ["r2", "neg_mean_squared_error"]])
@pytest.mark.parametrize("targets", [None, 2])
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_a_search_fits_the_learner_once_for_its_choice(monkeypatch, scoring, targets, in_pipeline):
    fits, before = [], LinearRegression.fit
    monkeypatch.setattr(LinearRegression, "fit", lambda self, *given: fits.append(1) or before(self, *given))
    model = make_pipeline(StandardScaler(), RIDGE) if in_pipeline else RIDGE
    grid = {"linearregression__alpha" if in_pipeline else "alpha": ALPHAS}
    refit = "r2" if isinstance(scoring, list) else True
    search = GridSearchCV(model, grid, cv=4, scoring=scoring, refit=refit).fit(*tall(targets=targets))
    assert len(fits) == 1
    assert search.certificate_.done == 4


def test_rows_to_learn_from_are_taken_when_they_are_asked_for():
    taken = []
    later = Later(lambda: taken.append(1) or [[1.0], [2.0]])
    fold = Fold(0, np.arange(2), np.arange(1), later, None, None, None)
    assert not taken
    assert fold.X_train is fold.X_train
    assert taken == [1]
    with pytest.raises(AttributeError, match="X_more"):
        fold.X_more  # noqa: B018
