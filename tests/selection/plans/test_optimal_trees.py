"""Trees of all leaf penalties from a few searches are those of separate fits."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import ParameterGrid, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sixfold import DecisionTreeClassifier, GridSearchCV
from sixfold.selection.plans.base import Answered, Fold, Table
from sixfold.selection.plans.groups import SeparateFits, make_plans
from sixfold.selection.plans.optimal_trees import PenaltyPlan
from sixfold.selection.plans.trees import TreePlan
from sixfold.solvers.trees.rashomon import objective_of

PENALTIES = [0.0, 1e-4, 3e-4, 1e-3, 2e-3, 3e-3, 5e-3, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5]


def best(**options):
    return DecisionTreeClassifier(search="optimal", **{"max_depth": 2, **options})


def continuous(rows=150, seed=0):
    return make_classification(
        rows, 4, n_informative=3, n_redundant=0, n_classes=3, n_clusters_per_class=1, flip_y=0.2,
        random_state=seed,
    )  # fmt: skip


def rows_of(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def folds_of(X, y, splits, weight=None):
    return [
        Fold(k, a, b, rows_of(X, a), y[a], rows_of(X, b), y[b], None if weight is None else weight[a])
        for k, (a, b) in enumerate(splits)
    ]


def check(model, grid, X, y, weight=None, splits=None, same=False):
    """Compare what the plans yield with separate fits; return how many searches they took, and fits."""
    candidates = list(ParameterGrid(grid))
    splits = list(StratifiedKFold(3).split(np.zeros(len(y)), y)) if splits is None else splits
    searches = fits = 0
    for fold in folds_of(X, y, splits, weight):
        met = []
        for members, plan in make_plans(model, candidates, Table(X, y, weight, splits)):
            assert isinstance(plan, PenaltyPlan)
            for one in plan.fit(fold):
                met.append(members[one.setting])
                searches += one.solved
                alone = clone(model).set_params(**candidates[met[-1]])
                alone.fit(fold.X_train, fold.y_train, fold.sample_weight)
                search, tree = alone._grown.search, one.model.tree_
                cost = objective_of(tree, search.objective, search.leaf_penalty)
                assert cost == pytest.approx(alone.certificate_.objective, abs=1e-11)
                assert tree.limits == alone.tree_.limits
                assert tree.leaf_count == alone.get_n_leaves() or weight is not None
                assert one.gap == 0.0
                np.testing.assert_array_equal(one.model.classes_, alone.classes_)
                for name in ("predict", "predict_proba", "predict_log_proba"):
                    found = getattr(one.model, name)
                    if same:
                        np.testing.assert_array_equal(found(fold.X_test), getattr(alone, name)(fold.X_test))
                        np.testing.assert_array_equal(found(fold.X_train), getattr(alone, name)(fold.X_train))
                    assert len(found(fold.X_test)) == len(fold.test)
                if isinstance(one.model, Answered):
                    assert one.model.solved == 0
        assert sorted(met) == list(range(len(candidates)))
        fits += len(met)
    return searches, fits


@pytest.mark.parametrize("objective", ["error", "entropy"])
def test_penalties(objective):
    X, y = continuous()
    searches, fits = check(
        best(objective=objective), {"leaf_penalty": PENALTIES}, X, y, same=objective == "entropy"
    )
    assert fits == 42
    assert searches < 0.8 * fits


def test_two_searches_where_nothing_changes():
    X, y = continuous()
    model = best(objective="entropy")
    assert check(model, {"leaf_penalty": np.linspace(1.0, 2.0, 20)}, X, y, same=True) == (6, 60)
    assert check(model, {"leaf_penalty": [0.01]}, X, y, same=True) == (3, 3)
    assert check(model, {"leaf_penalty": [0.01, 0.01, 0.01]}, X, y, same=True) == (6, 9)


def test_depths_and_leaves_are_apart():
    X, y = continuous(90)
    grid = {"max_depth": [1, 2, None], "leaf_penalty": PENALTIES[::3], "max_leaf_nodes": [3, None]}
    searches, fits = check(best(), grid, X, y, splits=[(np.arange(60), np.arange(60, 90))], same=True)
    assert fits == 30
    assert searches < fits


def test_weights_categories_and_unknown_values():
    rng = np.random.default_rng(2)
    n = 120
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue", "white"], n),
            "size": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )
    y = np.where(rng.random(n) < 0.3, "maybe", np.where(frame["colour"] == "red", "yes", "no"))
    for options in ({"categories": "binary", "unknown": "best"}, {"class_weight": "balanced", "base": "e"}):
        for weight in (None, rng.random(n)):
            check(best(**options), {"leaf_penalty": PENALTIES[::2]}, frame, y, weight)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["error", "entropy"]),
    st.lists(st.floats(0.0, 0.3), min_size=1, max_size=9),
    st.sampled_from([None, 3]),
)
def test_small_tables(seed, objective, penalties, leaves):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, (25, 3)).astype(float), rng.integers(0, 2, 25)
    everything = [(np.arange(25), np.arange(25))]
    model = best(objective=objective, max_leaf_nodes=leaves)
    candidates = [{"leaf_penalty": one} for one in penalties]
    fold = folds_of(X, y, everything)[0]
    for members, plan in make_plans(model, candidates, Table(X, y, None, everything)):
        for one in plan.fit(fold):
            alone = clone(model).set_params(**candidates[members[one.setting]]).fit(X, y)
            tree, search = one.model.tree_, alone._grown.search
            cost = objective_of(tree, objective, search.leaf_penalty)
            assert cost == pytest.approx(alone.certificate_.objective, abs=1e-11)


def test_what_is_between_is_fitted_where_more_is_asked():
    X, y = continuous()
    fold = folds_of(X, y, [(np.arange(100), np.arange(100, 150))])[0]
    plan = next(make_plans(best(), [{"leaf_penalty": p} for p in (1.0, 1.1, 1.2)], Table(X, y, None, ())))[1]
    between = list(plan.fit(fold))[2]
    assert between.setting == 1
    assert between.solved == between.model.solved == 0
    assert between.model.get_params()["leaf_penalty"] == 1.1
    assert between.model.solved == 1
    between.model.certificate_.verify(fold.X_train, fold.y_train)


def test_trees_that_are_cut_are_searched_each():
    X, y = continuous()
    candidates = [{"leaf_penalty": p} for p in (0.001, 0.0011, 0.0012)]
    plan = next(make_plans(best(ccp_alpha=0.01), candidates, Table(X, y, None, ())))[1]
    assert [one.solved for one in plan.fit(folds_of(X, y, [(np.arange(100), np.arange(100, 150))])[0])] == [
        1,
        1,
        1,
    ]


def test_settings_that_make_no_sense_are_left_to_separate_fits():
    X, y = continuous()
    candidates = [{"leaf_penalty": p} for p in (0.1, -1.0, "much", np.nan, 0.2)]
    plan = next(make_plans(best(), candidates, Table(X, y, None, ())))[1]
    fold = folds_of(X, y, [(np.arange(100), np.arange(100, 150))])[0]
    assert [one.setting for one in plan.fit(fold)] == [0, 4]
    only = next(make_plans(best(), candidates[1:2], Table(X, y, None, ())))[1]
    assert list(only.fit(fold)) == []


def test_which_plan():
    table = Table(None, None, None, ())
    for options in ({"time_limit": 1.0}, {"prune": "reduced_error"}, {"verbose": 1}, {"search": "lookahead"}):
        model = best().set_params(**options)
        assert isinstance(next(make_plans(model, [{"leaf_penalty": 0.1}], table))[1], SeparateFits)
    assert "lookahead" in TreePlan.objection(DecisionTreeClassifier(search="lookahead"))
    greedy = list(make_plans(DecisionTreeClassifier(), [{"leaf_penalty": 0.0}, {"max_depth": 2}], table))
    assert [type(plan) for _, plan in greedy] == [TreePlan]


def test_a_grid():
    X, y = continuous()
    grid = {"leaf_penalty": PENALTIES, "max_depth": [1, 2]}
    search = GridSearchCV(best(), grid, cv=3, return_train_score=True).fit(X, y)
    assert search.certificate_.asked == 84
    assert search.certificate_.done < 70
    assert search.certificate_.largest_gap == 0.0
    assert search.certificate_.separate == 0
    for number, setting in enumerate(search.cv_results_["params"]):
        alone = cross_validate(best(**setting), X, y, cv=3, return_train_score=True)
        for kind in ("test", "train"):
            assert search.cv_results_[f"mean_{kind}_score"][number] == alone[f"{kind}_score"].mean()
    chosen = search.best_estimator_
    chosen.certificate_.verify(X, y)
    assert chosen.leaf_penalty == search.best_params_["leaf_penalty"]
    simplest = GridSearchCV(best(), {"leaf_penalty": PENALTIES}, cv=3, rule="1se").fit(X, y)
    plain = GridSearchCV(best(), {"leaf_penalty": PENALTIES}, cv=3).fit(X, y)
    assert simplest.best_params_["leaf_penalty"] >= plain.best_params_["leaf_penalty"]
    piped = {f"decisiontreeclassifier__{name}": values for name, values in grid.items()}
    whole = GridSearchCV(make_pipeline(StandardScaler(), best()), piped, cv=3).fit(X, y)
    np.testing.assert_allclose(
        whole.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], rtol=1e-12
    )
    assert whole.certificate_.done == search.certificate_.done


def test_searches_of_several_kinds_in_one_grid():
    X, y = continuous()
    grid = {"search": ["greedy", "optimal", "lookahead"], "leaf_penalty": [0.0, 0.1], "max_depth": [2]}
    search = GridSearchCV(DecisionTreeClassifier(), grid, cv=3, error_score=-1.0)
    with pytest.warns(Warning, match="leaf_penalty"):
        search.fit(X, y)
    for setting, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        makes_sense = setting["search"] != "greedy" or setting["leaf_penalty"] == 0.0
        assert (score > 0) == makes_sense
