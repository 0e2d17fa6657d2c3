"""Who takes part in a comparison: the order, how columns are read, and what is left out of large tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import cross_val_score

from sixfold import GridSearchCV, TableEncoder, compare
from sixfold.selection.contenders import CLASSIFIERS, GOWER, MANY_ROWS, REGRESSORS, contenders


@pytest.fixture
def table():
    """Return numbers with gaps, categories with gaps, dates, a name for each row, and labels."""
    rng = np.random.default_rng(0)
    columns = {"size": rng.normal(size=150), "colour": rng.choice(["red", "green", "blue"], 150)}
    columns |= {
        "when": pd.date_range("2020-01-01", periods=150, freq="61h"),
        "id": [f"n{k}" for k in range(150)],
    }
    frame = pd.DataFrame(columns)
    y = np.where((frame["size"] > 0) ^ (frame["colour"] == "red"), "yes", "no")
    frame.loc[::17, "size"] = None
    frame.loc[::13, "colour"] = None
    return frame, y


def named(who):
    return {one.name: one for one in who}


def test_cheap_learners_come_first():
    assert next(iter(CLASSIFIERS)) == "logistic regression"
    assert list(CLASSIFIERS)[-2:] == [GOWER, "SVM (rbf)"]
    assert next(iter(REGRESSORS)) == "ridge regression"
    names = [one.name for one in contenders("classification", np.eye(9), np.arange(9) % 2, "all")]
    assert names == ["baseline", *(name for name in CLASSIFIERS if name != GOWER)]


@pytest.mark.parametrize("kind", [lambda one: one, pl.from_pandas])
def test_every_learner_starts_with_the_table(table, kind):
    frame, y = kind(table[0]), table[1]
    for task, target in (("classification", y), ("regression", np.arange(150.0))):
        who = named(contenders(task, frame, target, "all"))
        assert GOWER in who  # there are categories
        for one in [one for name, one in who.items() if name != "baseline"]:
            assert [step for step, _ in one.model.steps] == ["table", "learner"]
            encoder = one.model["table"]
            assert isinstance(encoder, TableEncoder)
            assert encoder.categories == ("keep" if one.name in ("tree", GOWER) else "one-hot")
            assert encoder.leave_out == ("id",)
            assert one.notes[0].startswith("'id' not used")
            assert one.notes[1].startswith("'when' taken as numbers of days")


@pytest.mark.parametrize("kind", [lambda one: one, pl.from_pandas])
def test_all_learn_from_gaps_categories_and_dates(table, kind):
    frame, y = kind(table[0]), table[1]
    result = compare(frame, y, cv=3)
    assert {one.name for one in result.entries} == {"baseline", *CLASSIFIERS}
    assert not [one.left_out for one in result.entries if one.left_out]
    assert min(result[name].mean for name in ("tree", "SVM (rbf)")) > 0.6
    assert not [one.left_out for one in compare(frame, np.arange(150.0), cv=3).entries if one.left_out]


def test_scores_are_those_of_an_encoder_fitted_in_each_fold(table):
    frame, y = table
    who = named(contenders("classification", frame, y, "all"))
    for name in ("nearest neighbours", GOWER, "tree", "logistic regression"):
        one = who[name]
        grid = [{key: values[:2] for key, values in part.items()} for part in one.grid]
        search = GridSearchCV(one.model, grid, cv=3).fit(frame, y)
        assert search.certificate_.separate == 0  # the plans apply behind the encoder
        found = cross_val_score(search.best_estimator_, frame, y, cv=3)
        np.testing.assert_allclose(
            found, [search.cv_results_[f"split{k}_test_score"][search.best_index_] for k in range(3)]
        )


def test_gower_is_for_tables_with_categories_that_are_not_too_large():
    text = pd.DataFrame({"c": ["a", "b", "c"] * 10, "x": range(30)})
    y = np.arange(30) % 2
    assert GOWER in named(contenders("classification", text, y, "all"))
    assert GOWER not in named(contenders("classification", text[["x"]], y, "all"))
    assert GOWER not in named(contenders("classification", csr_array(np.eye(30)), y, "all"))
    assert not named(contenders("classification", text[["x"]], y, GOWER))[GOWER].left_out  # who asks gets it
    long = pd.concat([text] * 1000, ignore_index=True)
    found = named(contenders("regression", long, np.arange(30_000.0), "all"))[GOWER]
    assert found.left_out == "30,000 rows of 2 columns are more than can be compared one by one"


def test_grids_of_many_rows_are_thinner():
    X = np.zeros((MANY_ROWS + 1, 1))
    many = named(contenders("classification", X, np.arange(len(X)) % 2, "all"))
    few = named(contenders("classification", X[:100], np.arange(100) % 2, "all"))
    assert "more than a grid of kernel machines" in many["SVM (rbf)"].left_out
    for name in ("logistic regression", "logistic regression (l1)", "linear SVM"):
        assert max(many[name].grid[0]["learner__C"]) == pytest.approx(1.0)
        assert max(few[name].grid[0]["learner__C"]) >= 100.0


def test_weak_penalties_are_not_tried_with_many_classes():
    for classes, largest in ((5, 1e4), (6, 10.0)):
        y = np.arange(60) % classes
        found = named(contenders("classification", np.zeros((60, 1)), y, "logistic regression"))
        assert max(found["logistic regression"].grid[0]["learner__C"]) == pytest.approx(largest)


def test_arrays_of_objects_and_sparse_matrices():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=80).tolist()
    objects = np.array([[f"id{k}", "ab"[k % 2], numbers[k]] for k in range(80)], dtype=object)
    y = np.arange(80) % 2
    who = named(contenders("classification", objects, y, "all"))
    assert who["tree"].model["table"].leave_out == ("x0",)
    assert who[GOWER].model.fit(objects, y).score(objects, y) > 0.9
    sparse = csr_array(np.where(rng.random((80, 5)) < 0.5, rng.normal(size=(80, 5)), 0.0))
    for one in contenders("classification", sparse, y, "all"):
        one.model.fit(sparse, y)
