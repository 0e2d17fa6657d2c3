"""Trees of all settings from one growth a fold are those of separate fits, bit by bit."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.model_selection import KFold, ParameterGrid, StratifiedKFold

from sixfold import DecisionTreeClassifier
from sixfold.errors import SixfoldWarning
from sixfold.selection.plans import trees
from sixfold.selection.plans.base import Answered, Fold, Table
from sixfold.selection.plans.registry import plan_of
from sixfold.selection.plans.trees import TreePlan
from sixfold.solvers.trees.fitted_tree import Reason

RESPONSES = ("predict", "predict_proba", "predict_log_proba")
ARRAYS = ("kinds", "column", "threshold", "first", "code", "child", "unknown", "rows", "totals")


def rows_of(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def folds_of(X, y, splits, weight=None):
    return [
        Fold(k, a, b, rows_of(X, a), y[a], rows_of(X, b), y[b], None if weight is None else weight[a])
        for k, (a, b) in enumerate(splits)
    ]


def assert_same_tree(tree, other):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(tree, name), getattr(other, name), err_msg=name)
    assert tree.limits == other.limits
    assert tree.unit == other.unit
    # Deeper growth may know that no tree could split a leaf, where a fit ended at its limit.
    differ = tree.reason != other.reason
    assert (other.reason[differ] == Reason.LIMIT).all()
    assert (tree.reason[differ] == Reason.EXHAUSTED).all()


def check_plan(model, grid, X, y, weight=None, splits=None, made=True):
    """Compare what the plan yields with separate fits; return how many trees were grown."""
    candidates = list(ParameterGrid(grid))
    splits = list(StratifiedKFold(3).split(np.zeros(len(y)), y)) if splits is None else splits
    plan = TreePlan(model, candidates, Table(X, y, weight, splits))
    assert TreePlan.objection(model) is None
    grown = 0
    for fold in folds_of(X, y, splits, weight):
        found = list(plan.fit(fold))
        assert sorted(one.setting for one in found) == list(range(len(candidates)))
        grown += sum(one.solved for one in found)
        for one in found:
            alone = clone(model).set_params(**candidates[one.setting])
            alone.fit(fold.X_train, fold.y_train, fold.sample_weight)
            assert isinstance(one.model, Answered)
            for name in RESPONSES:
                expected = getattr(alone, name)(fold.X_test)
                np.testing.assert_array_equal(getattr(one.model, name)(fold.X_test), expected, err_msg=name)
            np.testing.assert_array_equal(one.model.classes_, alone.classes_)
            assert one.model._model is None  # nothing more was needed
            if made:
                assert_same_tree(one.model.tree_, alone.tree_)
                np.testing.assert_array_equal(one.model.predict(fold.X_train), alone.predict(fold.X_train))
                assert one.model.get_params() == alone.get_params()
                assert one.model.ccp_alpha_ == alone.ccp_alpha_
                assert one.model._size == alone._size
                assert one.model._grown.rules == alone._grown.rules
                assert one.model.certificate_.objective == alone.certificate_.objective
    return grown


def overlapping(rows=240, columns=6, classes=3, seed=0):
    return make_classification(
        rows, columns, n_informative=4, n_classes=classes, flip_y=0.2, class_sep=0.7, random_state=seed
    )


def test_registry_knows_the_plan():
    assert plan_of(DecisionTreeClassifier()) is TreePlan


@pytest.mark.parametrize("criterion", ["entropy", "gini", "gain_ratio", "homogeneous"])
@pytest.mark.parametrize(
    "grid",
    [
        {"max_depth": [0, 1, 2, 3, 5, 30, None]},
        {"max_leaf_nodes": [2, 3, 7, 20, 1000, None]},
        {"min_impurity_decrease": [0.0, 1e-3, 0.01, 0.03, 0.5]},
        {"ccp_alpha": [0.0, 1e-6, 0.002, 0.01, 0.05, 1.0]},
        {"min_samples_split": [2, 5, 0.1, 0.5, 1000]},
    ],
)
def test_one_parameter(criterion, grid):
    X, y = overlapping()
    assert check_plan(DecisionTreeClassifier(criterion=criterion), grid, X, y) == 3


@pytest.mark.parametrize("criterion", ["entropy", "gini", "gain_ratio"])
@pytest.mark.parametrize("base", [2, "e"])
def test_all_parameters_together(criterion, base):
    X, y = overlapping(150)
    grid = {
        "max_depth": [2, 4, None],
        "max_leaf_nodes": [3, 9, None],
        "min_impurity_decrease": [0.0, 0.02],
        "ccp_alpha": [0.0, 0.01, 0.03],
        "min_samples_split": [2, 20],
    }
    model = DecisionTreeClassifier(criterion=criterion, base=base)
    assert check_plan(model, grid, X, y, splits=[*KFold(3).split(X)][:1]) == 1


def test_lists_of_grids_with_different_parameters():
    X, y = overlapping()
    model = DecisionTreeClassifier(max_leaf_nodes=9, min_samples_split=5)
    grid = [{"max_depth": [1, 4]}, {"ccp_alpha": [0.01]}, {"max_leaf_nodes": [4], "min_samples_split": [2]}]
    assert check_plan(model, grid, X, y) == 3


GRID = {
    "max_depth": [1, 3, None], "max_leaf_nodes": [4, 12, None], "ccp_alpha": [0.0, 0.01],
    "min_impurity_decrease": [0.0, 0.005],
}  # fmt: skip


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 1: 0.5}])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_weights(class_weight, scale):
    X, y = overlapping(classes=2)
    weight = scale * np.random.default_rng(0).exponential(size=y.size)
    weight[::7] = 0.0
    check_plan(DecisionTreeClassifier(class_weight=class_weight), GRID, X, y, weight)


def test_columns_drawn_at_random_are_those_of_separate_fits():
    X, y = overlapping(columns=10)
    for state in (3, np.random.RandomState(5)):
        check_plan(DecisionTreeClassifier(max_features="sqrt", random_state=state), GRID, X, y, made=False)


@pytest.mark.parametrize("categories", ["multiway", "binary"])
@pytest.mark.parametrize("unknown", ["branch", "best"])
@pytest.mark.filterwarnings("ignore::sixfold.errors.SixfoldWarning")  # leaves that no split allows for
def test_categories_and_unknown_values_of_a_frame(categories, unknown):
    random = np.random.default_rng(2)
    n = 200
    frame = pd.DataFrame(
        {
            "colour": random.choice(["red", "green", "blue", "white"], n),
            "size": np.where(random.random(n) < 0.2, np.nan, random.normal(size=n)),
            "kind": pd.Categorical(random.choice(["a", "b", "c"], n)),
            "length": random.integers(0, 5, n).astype(float),
        }
    )
    frame.loc[random.random(n) < 0.1, "colour"] = None
    y = np.where(
        random.random(n) < 0.3, "maybe", np.where(frame["length"] + (frame["kind"] == "a") > 2, "yes", "no")
    )
    model = DecisionTreeClassifier(categories=categories, unknown=unknown)
    check_plan(model, GRID, frame, y)


def test_sparse_tables():
    X, y = overlapping()
    X[np.abs(X) < 0.8] = 0.0
    check_plan(DecisionTreeClassifier(), GRID, sp.csr_matrix(X), y)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int64])
def test_other_numbers(dtype):
    X, y = overlapping()
    check_plan(DecisionTreeClassifier(), GRID, (20 * X + 100).clip(0, 255).astype(dtype), y)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_real_tables(load):
    X, y = load(return_X_y=True)
    check_plan(DecisionTreeClassifier(), GRID, X, load().target_names[y])


def test_small_leaves_are_looped_over_outside():
    X, y = overlapping()
    check_plan(DecisionTreeClassifier(min_samples_leaf=5, min_weight_fraction_leaf=0.03), GRID, X, y)


def test_folds_without_some_class_and_of_one_class():
    X, y = overlapping(60)
    y = np.sort(y)
    check_plan(DecisionTreeClassifier(), GRID, X, y, splits=list(KFold(3).split(X)))
    check_plan(DecisionTreeClassifier(), GRID, X, y, splits=[(np.arange(5), np.arange(60))])
    check_plan(DecisionTreeClassifier(), GRID, X, y, splits=[(np.array([59]), np.arange(60))])


def test_equal_rows_and_constant_columns():
    X = np.repeat(np.array([[1.0, 0.0, 7.0], [1.0, 1.0, 7.0]]), 10, axis=0)
    y = np.tile([0, 1, 1], 7)[:20]
    check_plan(DecisionTreeClassifier(), GRID, X, y)
    check_plan(DecisionTreeClassifier(), GRID, np.ones((20, 3)), y)


def test_a_gain_next_to_the_limit_has_a_growth_of_its_own():
    X, y = overlapping()
    first = DecisionTreeClassifier(max_depth=1).fit(X, y)
    gain = float(trees.node_gains(first.tree_)[0])
    splits = [(np.arange(y.size), np.arange(y.size))]
    near = [gain + shift for shift in (-1e-12, 0.0, 1e-12, 1e-12 + 1e-14, 1e-12 - 1e-14, 2e-12)]
    grown = check_plan(DecisionTreeClassifier(), {"min_impurity_decrease": [0.0, *near]}, X, y, splits=splits)
    assert grown == 4  # of 1e-12, and a little beside it


def test_too_few_leaves_for_the_first_split_are_warned_of():
    frame = pd.DataFrame({"colour": ["red", "green", "blue", "white"] * 5})
    y = np.array([0, 1, 0, 1] * 5)
    plan = TreePlan(DecisionTreeClassifier(), [{"max_leaf_nodes": 3}], Table(frame, y, None, []))
    with pytest.warns(SixfoldWarning, match="leaves the constant model"):
        list(plan.fit(folds_of(frame, y, [(np.arange(20), np.arange(20))])[0]))


def test_settings_that_make_no_sense_are_left_to_separate_fits():
    X, y = overlapping()
    wrong = [{"max_depth": -1}, {"ccp_alpha": "much"}, {"max_leaf_nodes": 1}]
    some = [{"max_depth": 2}, *wrong, {"max_depth": 3}]
    plan = TreePlan(DecisionTreeClassifier(), some, Table(X, y, None, []))
    fold = folds_of(X, y, [(np.arange(100), np.arange(100, 240))])[0]
    assert [one.setting for one in plan.fit(fold)] == [0, 4]
    assert list(TreePlan(DecisionTreeClassifier(), wrong, Table(X, y, None, [])).fit(fold)) == []


def test_the_model_of_the_search_is_left_alone():
    X, y = overlapping()
    model = DecisionTreeClassifier(max_features=2, random_state=np.random.RandomState(0))
    before = model.random_state.get_state()[1].copy()
    plan = TreePlan(model, [{"max_depth": 2}], Table(X, y, None, []))
    list(plan.fit(folds_of(X, y, [(np.arange(100), np.arange(100, 240))])[0]))
    np.testing.assert_array_equal(model.random_state.get_state()[1], before)
    assert not hasattr(model, "tree_")


def test_many_settings_are_compared_in_portions(monkeypatch):
    monkeypatch.setattr(trees, "MOST_ENTRIES", 100)
    X, y = overlapping()
    assert check_plan(DecisionTreeClassifier(), GRID, X, y, made=False) == 3


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"prune": "reduced_error"}, "prune"),
        ({"prune": "cost_complexity"}, "prune"),
        ({"max_features": 2}, "max_features"),
        ({"time_limit": 1.0}, "time_limit"),
        ({"callbacks": [print]}, "callbacks"),
        ({"trace": True}, "trace"),
        ({"verbose": 1}, "verbose"),
        ({"search": "lookahead"}, "search='lookahead'"),
    ],
)
def test_objections(parameters, word):
    assert word in TreePlan.objection(DecisionTreeClassifier(**parameters))
    assert TreePlan.objection(DecisionTreeClassifier(max_features=2, random_state=0)) is None


def test_made_models_verify_their_certificates():
    X, y = overlapping()
    fold = folds_of(X, y, [(np.arange(160), np.arange(160, 240))])[0]
    plan = TreePlan(DecisionTreeClassifier(), list(ParameterGrid(GRID)), Table(X, y, None, []))
    for one in plan.fit(fold):
        one.model.certificate_.verify(fold.X_train, fold.y_train)


@st.composite
def odd_tables(draw):
    n, columns = draw(st.integers(1, 40)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = random.integers(0, draw(st.integers(1, 6)), (n, columns)) * draw(
        st.sampled_from([1e-300, 1.0, 1e300])
    )
    if draw(st.booleans()):
        X[random.random(X.shape) < 0.2] = np.nan
    y = random.integers(0, draw(st.integers(1, 4)), n)
    weight = random.integers(0, 3, n).astype(float) if draw(st.booleans()) else None
    if weight is not None and not weight.any():
        weight[0] = 1.0
    categorical = draw(st.sampled_from([None, [0]]))
    model = DecisionTreeClassifier(
        criterion=draw(st.sampled_from(["entropy", "gini", "gain_ratio", "homogeneous"])),
        unknown=draw(st.sampled_from(["branch", "best"])),
        categories=draw(st.sampled_from(["multiway", "binary"])),
        categorical_features=categorical,
    )
    grid = {
        "max_depth": draw(st.lists(st.integers(0, 6) | st.none(), min_size=1, max_size=3)),
        "max_leaf_nodes": draw(st.lists(st.integers(2, 9) | st.none(), min_size=1, max_size=3)),
        "ccp_alpha": draw(st.lists(st.floats(0.0, 0.2), min_size=1, max_size=2)),
        "min_impurity_decrease": draw(st.lists(st.floats(0.0, 0.2), min_size=1, max_size=2)),
        "min_samples_split": draw(st.lists(st.integers(2, 9) | st.floats(0.05, 1.0), min_size=1, max_size=2)),
    }
    return model, grid, X, y, weight


@settings(max_examples=60)
@given(odd_tables())
def test_odd_tables(case):
    model, grid, X, y, weight = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SixfoldWarning)
        check_plan(model, grid, X, y, weight, splits=[(np.arange(y.size), np.arange(y.size))])
