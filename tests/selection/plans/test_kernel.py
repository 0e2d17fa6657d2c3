"""SVMs of all C and gamma of a fold are those of separate fits, to the tolerance of the solver."""

import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.model_selection import ParameterGrid, StratifiedKFold

from sixfold import SVC
from sixfold.errors import InputError
from sixfold.geometry.kernels import RBF, quadratic
from sixfold.learners.svm.support_vectors import SupportVectors
from sixfold.selection.plans.base import Answered, Fold, Table
from sixfold.selection.plans.kernel import KernelPlan
from sixfold.selection.plans.registry import plan_of
from sixfold.solvers.kernel import one_vs_one
from sixfold.solvers.kernel.kernel_rows import CrossRows, NativePairs

TOL = 1e-7  # of the fits that are compared
APART = 1e-4  # decisions of two such fits


def rows_of(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def folds_of(X, y, splits, weight=None, pairwise=False):
    def part(rows, columns):
        return X[np.ix_(rows, columns)] if pairwise else rows_of(X, rows)

    return [
        Fold(k, a, b, part(a, a), y[a], part(b, a), y[b], None if weight is None else weight[a])
        for k, (a, b) in enumerate(splits)
    ]


def assert_same_model(found, alone, X, exact=False):
    decisions = alone.decision_function(X)
    near = {"rtol": 0.0, "atol": 0.0} if exact else {"rtol": APART, "atol": APART}
    if decisions.ndim == 2 and alone._pairwise and alone.decision_function_shape == "ovr":
        # Votes jump where a decision is 0.
        pairs = clone(alone).set_params(decision_function_shape="ovo", break_ties=False)
        pairs.__dict__.update({name: value for name, value in vars(alone).items() if name.endswith("_")})
        pairs._pairwise, pairs._objects = True, alone._objects
        certain = (np.abs(pairs.decision_function(X)) > 10 * APART).all(axis=1)
    else:
        certain = (np.abs(decisions) > 10 * APART).reshape(len(decisions), -1).all(axis=1)
        if decisions.ndim == 2 and not alone._pairwise:  # the largest wins
            certain &= np.diff(np.sort(decisions, axis=1)[:, -2:])[:, 0] > 10 * APART
    np.testing.assert_allclose(found.decision_function(X)[certain], decisions[certain], **near)
    np.testing.assert_array_equal(found.predict(X)[certain], alone.predict(X)[certain])


def check_plan(model, grid, X, y, weight=None, splits=None, pairwise=False, exact=False, missing=()):
    """Compare what the plan yields with separate fits; return how many problems were solved."""
    candidates = list(ParameterGrid(grid))
    splits = list(StratifiedKFold(3).split(np.zeros(len(y)), y)) if splits is None else splits
    model = clone(model).set_params(tol=TOL)
    plan = KernelPlan(model, candidates, Table(X, y, weight, splits))
    assert KernelPlan.objection(model) is None
    solved = 0
    for fold in folds_of(X, y, splits, weight, pairwise):
        found = list(plan.fit(fold))
        assert sorted(one.setting for one in found) == [k for k in range(len(candidates)) if k not in missing]
        solved += sum(one.solved for one in found)
        for one in found:
            alone = clone(model).set_params(**candidates[one.setting])
            alone.fit(fold.X_train, fold.y_train, fold.sample_weight)
            assert isinstance(one.model, Answered)
            assert_same_model(one.model, alone, fold.X_test, exact)
            np.testing.assert_array_equal(one.model.classes_, alone.classes_)
            assert one.model._model is None  # nothing more was needed
            claimed = one.model.certificate_
            assert claimed.converged
            if claimed.kind == "duality gap":
                assert one.gap == claimed.relative_gap <= TOL
            else:
                assert np.isnan(one.gap)
            assert one.model.get_params() == alone.get_params()
            assert_same_model(one.model.model, alone, fold.X_test)
            np.testing.assert_allclose(claimed.objective, alone.certificate_.objective, rtol=1e-5, atol=1e-9)
            one.model.certificate_.verify(fold.X_train, fold.y_train, fold.sample_weight)
    return solved


def overlapping(rows=150, columns=5, classes=2, seed=0):
    X, y = make_classification(
        rows, columns, n_informative=4, n_redundant=0, n_classes=classes, flip_y=0.1, class_sep=0.8,
        random_state=seed,
    )  # fmt: skip
    return X, y


GRID = {"C": [10.0, 0.1, 1.0], "gamma": [0.05, "scale", "auto"]}


def test_registry_knows_the_plan():
    assert plan_of(SVC()) is KernelPlan


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_rbf(classes, multi_class):
    X, y = overlapping(classes=classes, rows=240)
    check_plan(SVC(multi_class=multi_class), GRID, X, y)


@pytest.mark.parametrize("shape", ["ovo", "ovr"])
def test_shapes_of_decisions(shape):
    X, y = overlapping(classes=3)
    check_plan(SVC(decision_function_shape=shape), GRID, X, y)


def test_ties_are_broken():
    X, y = overlapping(classes=4, rows=200)
    check_plan(SVC(break_ties=True), GRID, X, y)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 4.0, 1: 0.5}])
def test_weights(class_weight):
    X, y = overlapping()
    weight = np.random.default_rng(0).exponential(size=y.size)
    weight[::9] = 0.0
    check_plan(SVC(class_weight=class_weight), GRID, X, y, weight)


def test_width_of_the_kernel():
    X, y = overlapping()
    check_plan(SVC(), {"C": [0.3, 30.0], "sigma": [0.7, 2.0]}, X, y)


def test_the_same_kernel_under_two_names_is_solved_once():
    X, y = overlapping()
    sigma = 2.0
    grid = [{"sigma": [sigma]}, {"gamma": [1.0 / (2.0 * sigma**2)]}]
    assert check_plan(SVC(), grid, X, y) == 3
    assert check_plan(SVC(kernel="linear"), {"gamma": [0.1, 1.0, 2.0]}, X, y) == 3


@pytest.mark.parametrize("kernel", ["linear", "poly", "quadratic", quadratic, RBF(0.2)])
def test_other_kernels(kernel):
    X, y = overlapping()
    grid = {"C": [0.01, 0.1, 1.0]}
    if kernel == "poly":
        grid |= {"degree": [2, 3], "coef0": [0.0, 1.0], "gamma": [0.1]}
    check_plan(SVC(kernel=kernel), grid, X, y)


def test_linear_far_from_zero():
    X, y = overlapping(classes=3)
    check_plan(SVC(kernel="linear"), {"C": [0.1, 1.0]}, X + 1e4, y)


def test_indefinite_kernels_take_the_path_of_separate_fits():
    X, y = overlapping()
    model = SVC(kernel="sigmoid", coef0=-1.0)
    check_plan(model, {"C": [0.1, 1.0, 10.0], "gamma": [0.2, 0.5]}, X, y, exact=False)
    K = np.tanh(0.3 * X @ X.T - 1.0)
    check_plan(SVC(kernel="precomputed"), {"C": [0.1, 10.0]}, K, y, pairwise=True, exact=True)


@pytest.mark.parametrize("classes", [2, 3])
def test_precomputed(classes):
    X, y = overlapping(classes=classes)
    check_plan(SVC(kernel="precomputed"), {"C": [0.1, 1.0, 10.0]}, RBF(0.3)(X), y, pairwise=True)


def test_a_function():
    X, y = overlapping(classes=3)
    check_plan(SVC(kernel=lambda A, B: (1.0 + A @ B.T) ** 2), {"C": [0.01, 0.1]}, X, y)


def test_a_function_of_objects():
    words = np.array(["tic", "tac", "toe", "cat", "coat", "oat", "tea", "eat"] * 4, dtype=object)
    y = np.array([0, 0, 0, 1, 1, 1, 0, 1] * 4)

    def shared_letters(A, B):
        return np.array([[float(len(set(a) & set(b))) for b in B] for a in A])

    check_plan(SVC(kernel=shared_letters), {"C": [0.1, 1.0]}, words, y)


def test_sparse_tables():
    X, y = overlapping(classes=3)
    X[np.abs(X) < 0.5] = 0.0
    check_plan(SVC(), GRID, sp.csr_matrix(X), y)
    wide = sp.random_array((90, 60_000), density=0.001, rng=np.random.default_rng(0), format="csr")
    check_plan(SVC(), {"C": [1.0, 10.0], "gamma": [0.1, 1.0]}, wide, np.arange(90) % 3)


def test_float32_and_frames():
    X, y = overlapping()
    check_plan(SVC(), {"C": [0.1, 1.0], "gamma": [0.1]}, X.astype(np.float32), y)
    frame = pd.DataFrame(X, columns=list("abcde"))
    check_plan(SVC(), {"C": [0.1, 1.0], "gamma": [0.1]}, frame, np.array(["no", "yes"])[y])


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_real_tables(load):
    X, y = load(return_X_y=True)
    check_plan(SVC(), {"C": [0.1, 1.0, 10.0], "gamma": ["scale", 0.01]}, X, load().target_names[y])


def test_hard_margin():
    X, y = overlapping()
    check_plan(SVC(), {"C": [1.0, np.inf], "gamma": [2.0]}, X, y)
    # No plane separates these: a fit of its own says so.
    check_plan(SVC(kernel="linear"), {"C": [0.1, np.inf]}, X, y, missing=[1])


def test_a_solution_without_bounded_rows_holds_for_larger_costs():
    X, y = overlapping()
    grid = {"C": [1e3, 1e4, 1e5, 1e6], "gamma": [3.0]}
    assert check_plan(SVC(), grid, X, y) == 3  # one a fold


def test_many_rows_on_active_sets(monkeypatch):
    monkeypatch.setattr("sixfold.solvers.kernel.decomposition.DIRECT_ROWS", 50)
    monkeypatch.setattr("sixfold.solvers.kernel.decomposition.FIRST_ACTIVE_ROWS", 30)
    monkeypatch.setattr(one_vs_one, "DIRECT_ROWS", 50)
    monkeypatch.setattr(one_vs_one, "ROWS_AT_ONCE", 50)
    X, y = overlapping(200)
    check_plan(SVC(), GRID, X, y)
    check_plan(SVC(kernel="sigmoid", coef0=-1.0), {"C": [0.1, 1.0], "gamma": [0.2]}, X, y)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("double_rows", [20, 1500])
def test_wide_tables_share_the_products_of_rows(kernel, classes, double_rows, monkeypatch):
    monkeypatch.setattr("sixfold.solvers.kernel.decomposition.DOUBLE_ROWS", double_rows)
    monkeypatch.setattr("sixfold.selection.plans.kernel.DOUBLE_ROWS", double_rows)
    monkeypatch.setattr(one_vs_one, "ROWS_AT_ONCE", double_rows)
    X, y = overlapping(330, columns=120, classes=classes)
    computed = []
    whole = NativePairs._block

    def block(pairs, rows, others, same, out, *rest):
        if rows.size > 64:  # others are a sample that tells how entries are rounded
            computed.append(rows.size)
        return whole(pairs, rows, others, same, out, *rest)

    monkeypatch.setattr(NativePairs, "_block", block)
    candidates = list(ParameterGrid({"C": [0.1, 10.0], "gamma": [0.002, 0.01, "scale"]}))
    model = SVC(kernel=kernel, tol=TOL)
    plan = KernelPlan(model, candidates, Table(X, y, None, []))
    assert [numbers for numbers, _ in plan.parts()] == [list(range(6))]
    fold = folds_of(X, y, [(np.arange(240), np.arange(240, 330))])[0]
    found = list(plan.fit(fold))
    assert computed == []
    for one in found:
        alone = clone(model).set_params(**candidates[one.setting]).fit(fold.X_train, fold.y_train)
        if alone.C == 0.1:  # the first of its kernel
            np.testing.assert_allclose(one.model.model.dual_coef_, alone.dual_coef_, rtol=0, atol=1e-12)
        assert_same_model(one.model, alone, fold.X_test)
    assert computed != []
    assert len(found) == 6


@pytest.mark.parametrize("classes", [2, 4])
def test_answers_from_single_precision_are_those_of_double_precision(classes, monkeypatch):
    monkeypatch.setattr("sixfold.selection.plans.kernel.FEW_PRODUCTS", 0)
    # Decisions of many rows are next to 0.
    X = np.random.default_rng(0).normal(size=(160, 3))
    y = np.arange(160) % classes
    plan = KernelPlan(SVC(), [{"C": C} for C in (0.1, 1.0, 1e4)], Table(X, y, None, []))
    Z = np.vstack([X[:80], 0.5 * (X[:80] + X[80:])])
    fold = Fold(0, np.arange(160), np.arange(160), X, y, Z, np.arange(160) % classes)
    for one in plan.fit(fold):
        labels = one.model.predict(Z).copy()
        expected = one.model.model.predict(Z)
        np.testing.assert_array_equal(labels, expected)
        if classes == 2:
            np.testing.assert_array_equal(labels, (one.model.decision_function(Z) > 0).astype(int))


def test_doubtful_answers_and_no_others_are_computed_again(monkeypatch):
    monkeypatch.setattr("sixfold.selection.plans.kernel.FEW_PRODUCTS", 0)
    whole = CrossRows.scores

    def wrong_in_single(rows, others, coefficients, dtype, budget):
        return whole(rows, others, coefficients, dtype, budget) * (-1.0 if dtype == np.float32 else 1.0)

    monkeypatch.setattr(CrossRows, "scores", wrong_in_single)
    monkeypatch.setattr(SupportVectors, "certain", lambda support, decisions, error: np.arange(50) < 20)
    X, y = overlapping()
    model = SVC(gamma=0.1)
    fold = folds_of(X, y, [(np.arange(100), np.arange(100, 150))])[0]
    for one in KernelPlan(model, [{"C": 0.1}, {"C": 1.0}], Table(X, y, None, [])).fit(fold):
        labels, decisions = one.model.predict(fold.X_test), one.model.decision_function(fold.X_test)
        clear = np.abs(decisions) > 1.0 / 3.0  # the intercept keeps its sign
        right = (decisions > 0) == labels
        assert right[20:].all()
        assert not right[:20][clear[:20]].any()


def test_kernels_are_parts_that_may_run_at_the_same_time():
    X, y = overlapping()
    candidates = list(ParameterGrid({"C": [0.1, 1.0], "gamma": [0.1, "scale"]}))
    parts = KernelPlan(SVC(), candidates, Table(X, y, None, [])).parts()
    assert [numbers for numbers, _ in parts] == [[0, 2], [1, 3]]
    assert parts[1][1].settings == [candidates[1], candidates[3]]
    for model, table in ((SVC(kernel="linear"), X), (SVC(kernel=RBF(1.0)), X), (SVC(), None)):
        plan = KernelPlan(model, candidates, Table(table, y, None, []))
        assert plan.parts() == [([0, 1, 2, 3], plan)]


def test_little_memory_and_many_pairs_on_threads(monkeypatch):
    monkeypatch.setattr(one_vs_one, "FEW_ENTRIES", 0)
    monkeypatch.setattr(one_vs_one, "LEAST_MEMORY", 1 << 12)
    X, y = overlapping(240, classes=4)
    check_plan(SVC(cache_size=0.01, n_jobs=2), GRID, X, y)


def test_duplicates_constant_columns_and_few_rows():
    X = np.repeat([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], 6, axis=0)
    y = np.tile([0, 1, 1], 6)
    check_plan(SVC(), {"C": [0.1, 1.0], "gamma": [0.5, "scale"]}, X, y)
    check_plan(SVC(), {"C": [0.1, 1.0]}, np.ones((18, 2)), y)
    two = [(np.array([0, 1]), np.arange(18))]
    check_plan(SVC(), {"C": [0.1, 1.0, 100.0], "gamma": [0.5]}, X, y, splits=two)


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_huge_and_tiny_numbers(scale):
    X, y = overlapping()
    check_plan(SVC(), {"C": [0.1, 1.0]}, scale * X, y)


def test_settings_that_make_no_sense_are_left_to_separate_fits():
    X, y = overlapping()
    some = [
        {"C": 1.0},
        {"C": -1.0},
        {"gamma": "wide"},
        {"C": "much"},
        {"sigma": 0.0},
        {"gamma": [1]},
        {"C": 2.0},
    ]
    plan = KernelPlan(SVC(), some, Table(X, y, None, []))
    fold = folds_of(X, y, [(np.arange(100), np.arange(100, 150))])[0]
    assert sorted(one.setting for one in plan.fit(fold)) == [0, 6]


def test_rows_that_cannot_be_fitted_are_refused_as_a_fit_refuses_them():
    X, y = overlapping()
    plan = KernelPlan(SVC(), [{"C": 1.0}], Table(X, y, None, []))
    with pytest.raises(InputError, match="class"):
        list(plan.fit(folds_of(X, np.zeros(150, int), [(np.arange(100), np.arange(100, 150))])[0]))


def test_fits_that_do_not_converge_are_left_to_separate_fits(monkeypatch):
    monkeypatch.setattr("sixfold.solvers.kernel.decomposition.MOST_ITERATIONS", 0)
    X, y = overlapping()
    plan = KernelPlan(SVC(tol=1e-9), [{"C": 1e-3}, {"C": 1e9, "gamma": 1e-3}], Table(X, y, None, []))
    monkeypatch.setattr("sixfold.solvers.kernel.decomposition.PAIRS_BEFORE_FREE_STEP", 1 << 40)
    found = list(plan.fit(folds_of(X, y, [(np.arange(100), np.arange(100, 150))])[0]))
    assert [one.setting for one in found] == [0]


def test_folds_on_threads():
    X, y = overlapping(classes=3)
    candidates = list(ParameterGrid(GRID))
    plan = KernelPlan(SVC(), candidates, Table(X, y, None, []))
    folds = folds_of(X, y, StratifiedKFold(4).split(X, y))
    alone = [{one.setting: one.model.decision_function(f.X_test) for one in plan.fit(f)} for f in folds]
    together = {}

    def work(fold):
        together[fold.number] = {
            one.setting: one.model.decision_function(fold.X_test) for one in plan.fit(fold)
        }

    threads = [threading.Thread(target=work, args=(fold,)) for fold in folds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for fold, expected in enumerate(alone):
        for setting, decisions in expected.items():
            np.testing.assert_array_equal(together[fold][setting], decisions)


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"probability": True}, "probability"),
        ({"time_limit": 1.0}, "time_limit"),
        ({"max_iter": 10}, "max_iter"),
        ({"callbacks": [print]}, "callbacks"),
        ({"verbose": True}, "verbose"),
    ],
)
def test_objections(parameters, word):
    assert word in KernelPlan.objection(SVC(**parameters))
    assert KernelPlan.objection(SVC(max_iter=None)) is None


def test_the_model_of_the_search_is_left_alone():
    X, y = overlapping()
    model = SVC()
    before = dict(vars(model))
    list(
        KernelPlan(model, [{"C": 1.0}], Table(X, y, None, [])).fit(
            folds_of(X, y, [(np.arange(100), np.arange(100, 150))])[0]
        )
    )
    assert vars(model) == before


@st.composite
def odd_tables(draw):
    classes = draw(st.integers(2, 4))
    n, columns = draw(st.integers(classes, 30)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = random.integers(0, draw(st.integers(1, 6)), (n, columns)).astype(
        draw(st.sampled_from([np.float32, float]))
    )
    y = np.concatenate([np.arange(classes), random.integers(0, classes, n - classes)])
    weight = random.integers(1, 4, n).astype(float) if draw(st.booleans()) else None
    model = SVC(
        kernel=draw(st.sampled_from(["rbf", "linear", "poly"])),
        degree=2,
        multi_class=draw(st.sampled_from(["ovo", "ovr"])),
        class_weight=draw(st.sampled_from([None, "balanced"])),
    )
    grid = {
        "C": draw(st.lists(st.sampled_from([1e-3, 0.1, 1.0, 7.0, 50.0]), min_size=1, max_size=3)),
        "gamma": draw(st.lists(st.sampled_from([0.01, 0.3, "auto"]), min_size=1, max_size=2)),
    }
    return model, grid, X, y, weight


@settings(max_examples=40)
@given(odd_tables())
def test_odd_tables(case):
    model, grid, X, y, weight = case
    check_plan(model, grid, X, y, weight, splits=[(np.arange(y.size), np.arange(y.size))])
