"""Samples of large tables, the fit of the chosen learner to all rows, and the memory that goes back."""

from __future__ import annotations

import gc
import time

import numpy as np
import polars as pl
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from sixfold import GridSearchCV, LinearRegression, LogisticRegression, compare
from sixfold.errors import InputError, TimeLimitReached
from sixfold.selection import refit as whole
from sixfold.selection.choice import choose
from sixfold.selection.comparison import ComparisonRun, _most_rows
from sixfold.selection.memory import give_back_memory
from sixfold.selection.parts import class_codes, class_counts, draw_sample, make_folds, split_off_test
from sixfold.selection.plans.base import Answered

ROWS = 3000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 4))
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=ROWS) > 1.5, "yes", "no").astype(object)
    frame = pl.DataFrame({f"c{j}": X[:, j] for j in range(4)})
    return frame.with_columns(town=pl.Series(rng.choice(["Oslo", "Rome"], ROWS))), y


def run_of(table, learners=("logistic regression", "tree"), **options):
    run = ComparisonRun(*table, list(learners), **{"max_rows": 500, "rule": "1se", **options})
    for _ in run:
        pass
    return run


def test_tuned_on_a_sample_and_fitted_to_all(table):
    run = run_of(table)
    assert 495 <= run.sample_rows <= 500
    found = run.comparison()
    assert (found.train_rows, found.test_rows, found.sample_rows) == (2400, 600, run.sample_rows)
    assert all(one.fitted_rows == run.sample_rows for one in found.entries)
    assert found.test_sample_rows == pytest.approx(125, abs=2)
    assert "tuned on a sample of" in str(found)
    entry = run.refit(choose(found, "1se").entry)
    assert entry.fitted_rows == 2400
    X, y = table
    again = GridSearchCV(entry.search.estimator, {}).estimator.set_params(**entry.search.best_params_)
    again.fit(X[run.train], y[run.train])
    np.testing.assert_array_equal(entry.model.predict(X), again.predict(X))
    assert entry.test == again.score(X[run.test], y[run.test])
    assert run.comparison()[entry.name].test == entry.test
    assert f"then {entry.name} on all of them" in " ".join(str(run.comparison()).split())


def test_without_a_sample_all_is_fitted_already(table):
    run = run_of(table, max_rows=None)
    assert run.sample_rows is None
    best = run.comparison().best
    assert run.refit(best) is best
    assert best.fitted_rows == 2400
    assert run_of(table, max_rows=2400).sample_rows is None


def test_compare_refits_the_best(table):
    found = compare(*table, ["tree"], max_rows=400)
    assert found.best.fitted_rows == 2400
    assert found["baseline"].fitted_rows < 500


def test_the_sample_is_the_seeds(table):
    def rows(seed):
        run = ComparisonRun(*table, "tree", max_rows=300, random_state=seed)
        return run._train.X["c0"].to_list()

    assert rows(3) == rows(3)
    assert rows(3) != rows(4)


def test_too_little_memory_means_fewer_rows(table, monkeypatch):
    run = run_of(table)
    before = run.comparison()["logistic regression"]
    row = 8 * before.model[-1].n_features_in_
    monkeypatch.setattr(whole, "MOST_TIMES", 0)
    monkeypatch.setattr(whole, "MOST_BYTES", row * 1200)
    entry = run.refit(before)
    assert 1190 < entry.fitted_rows <= 1200
    assert entry.notes[0].startswith(
        f"fitted to {entry.fitted_rows:,} of 2,400 training rows: all of them wo"
    )
    assert "MB as" in entry.notes[0]
    monkeypatch.setattr(whole, "MOST_BYTES", row * 600)
    kept = run.refit(before)
    assert kept.model is before.model  # 600 are hardly more than there are
    assert kept.notes[0].startswith(f"fitted to {run.sample_rows:,} of 2,400")


def test_too_little_time_keeps_the_model_of_the_sample(table):
    run = run_of(table)
    before = run.comparison()["tree"]
    object.__setattr__(run._whole, "end", time.perf_counter() + 1e-4)
    entry = run.refit(before)
    assert entry.model is before.model
    assert entry.test == before.test
    assert "longer than there is" in entry.notes[0]


@pytest.mark.parametrize("error", [TimeLimitReached("late"), MemoryError(), InputError("The sky is low.")])
def test_a_refit_that_fails_keeps_the_model_of_the_sample(table, error, monkeypatch):
    run = run_of(table)
    before = run.comparison()["tree"]

    def fails(*_):
        raise error

    monkeypatch.setattr(whole.WholeTable, "_fitted", fails)
    entry = run.refit(before)
    assert entry.model is before.model
    assert "sky is low" in entry.notes[0] or "did not suffice" in entry.notes[0]


def test_a_refit_cut_off_keeps_the_model_of_the_sample(table, monkeypatch):
    run = run_of(table)
    before = run.comparison()["logistic regression"]
    monkeypatch.setattr(whole, "converged", lambda model: model is before.model)
    entry = run.refit(before)
    assert entry.model is before.model
    assert "before the fit to more rows reached its optimum" in entry.notes[0]


def test_slow_predictions_are_tested_on_the_sample(table, monkeypatch):
    run = run_of(table, ["nearest neighbours"], time_limit=60.0)
    slow = whole.replace(run.comparison()["nearest neighbours"], predict_seconds=100.0)
    entry = run.refit(slow)
    assert entry.fitted_rows == 2400
    assert any("of 600 test rows, for the sake of time" in note for note in entry.notes)


def test_weights_go_along(table):
    X, y = table
    weight = np.where(y == "yes", 5.0, 1.0)
    heavy, plain = (
        run_of(table, ["logistic regression"], sample_weight=weight),
        run_of(table, ["logistic regression"]),
    )
    share = [
        np.mean(run.refit(run.comparison()["logistic regression"]).model.predict(X) == "yes")
        for run in (heavy, plain)
    ]
    assert share[0] > share[1] + 0.1


def test_little_time_means_a_smaller_sample():
    assert _most_rows(None, 10.0) is None
    assert _most_rows(50_000, None) == 50_000
    assert _most_rows(50_000, 1.0) == 5_000
    assert _most_rows(50_000, 33.3) == 16_000
    assert _most_rows(50_000, 300.0) == 50_000
    assert _most_rows(400, 1.0) == 400


# -- rows ----------------------------------------------------------------------------------------------------


def test_samples_keep_the_shares_of_classes():
    y = np.array(["a"] * 900 + ["b"] * 97 + ["c"] * 3, dtype=object)
    rows = draw_sample(np.arange(1000), y, None, 100, "classification", 0)
    assert class_counts(y[rows]) == {"a": 88, "b": 10, "c": 2}  # 90, 9.7 and 0.3, but two at least
    assert (np.diff(rows) > 0).all()
    assert draw_sample(np.arange(1000), y, None, 1000, "classification", 0).size == 1000
    assert draw_sample(np.arange(1000), np.arange(1000.0), None, 100, "regression", 0).size == 100


def test_samples_keep_groups_whole():
    groups = np.repeat(np.arange(100), 10).astype(object)
    y = np.arange(1000) % 2
    rows = draw_sample(np.arange(1000), y, groups, 205, "classification", 0)
    assert rows.size == 200
    assert set(np.unique(groups[rows].astype(int), return_counts=True)[1]) == {10}
    assert draw_sample(np.arange(1000), y, groups // 50, 5, "regression", 0).size == 1000  # two at least


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_sample_can_be_drawn_again_by_its_size(task, grouped):
    rng = np.random.default_rng(0)
    for _ in range(30):
        count = int(rng.integers(20, 900))
        y = rng.choice(9, count, p=rng.dirichlet(np.full(9, 0.3))).astype(str)
        groups = rng.integers(0, 20, count) if grouped else None
        rows = np.sort(rng.choice(count, int(count * 0.8), replace=False))
        drawn = draw_sample(rows, y, groups, int(rng.integers(2, count)), task, 0)
        np.testing.assert_array_equal(draw_sample(rows, y, groups, drawn.size, task, 0), drawn)


def test_labels_of_several_types():
    y = np.array([1, "a", True, 2.5, "a"], dtype=object)
    assert class_codes(y).tolist()[1] == class_codes(y).tolist()[4]
    assert sum(class_counts(y).values()) == 5
    assert class_codes(np.array([3, 1, 3])).tolist() == [1, 0, 1]


def test_a_single_row_of_a_class_is_learnt_from():
    y = np.array(["a"] * 20 + ["b"] * 20 + ["c"], dtype=object)
    for seed in range(10):
        train, test = split_off_test(y, None, 0.2, "classification", seed)
        assert 40 in train
        assert class_counts(y[test]) == {"a": 4, "b": 4}


def test_folds_of_one_class_are_left_out():
    y, groups = np.array([0] * 10 + [1] * 10), np.repeat([0, 1, 2, 3], [5, 5, 5, 5])
    assert len(make_folds(4, np.zeros((20, 1)), y, groups, "classification", 0)) == 4
    lonely = np.repeat([0, 1, 2], [5, 5, 10])
    assert len(make_folds(3, np.zeros((20, 1)), y, lonely, "classification", 0)) == 2
    with pytest.raises(InputError, match="of one class only"):
        make_folds(2, np.zeros((20, 1)), y, y, "classification", 0)


# -- memory --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LogisticRegression(), LinearRegression(penalty="l2")])
def test_fits_are_let_go_of_at_once(model):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60).astype(float)
    pipeline = Pipeline([("scale", StandardScaler()), ("learner", model)])
    grid = {"learner__C" if isinstance(model, LogisticRegression) else "learner__alpha": [0.1, 1.0]}
    gc.collect()
    gc.disable()
    try:
        GridSearchCV(pipeline, grid, refit=False).fit(X, y)
        assert not [one for one in gc.get_objects() if type(one) is Answered]
    finally:
        gc.enable()


def test_tuning_on_a_sample_gives_back_memory(table, monkeypatch):
    calls = []
    monkeypatch.setattr("sixfold.selection.comparison.give_back_memory", lambda: calls.append(1))
    run_of(table)
    assert len(calls) == 3
    run_of(table, max_rows=None)
    assert len(calls) == 3
    give_back_memory()  # wherever this runs
