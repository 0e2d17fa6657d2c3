"""compare: who takes part, the same folds for all, a test that is looked at once, and the t-test."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from scipy.stats import ttest_rel
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score
from sklearn.preprocessing import StandardScaler

from sixfold import compare
from sixfold.errors import InputError
from sixfold.selection.comparison import _ranked
from sixfold.selection.contenders import CLASSIFIERS, GOWER, REGRESSORS, contenders
from sixfold.selection.leaderboard import Comparison, Entry
from sixfold.selection.paired_test import corrected_p_value

IRIS = load_iris(return_X_y=True)
QUICK = ["tree", "nearest neighbours"]


@pytest.fixture(scope="module")
def iris():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return compare(*IRIS)


def test_all_learners_and_a_baseline(iris):
    assert {one.name for one in iris.entries} == {"baseline", *CLASSIFIERS} - {GOWER}
    assert iris.entries[-1].name == "baseline"
    means = [one.mean for one in iris.entries]
    assert means == sorted(means, reverse=True)
    assert iris["baseline"].mean == pytest.approx(1 / 3)
    assert iris.best.mean > 0.94
    for one in iris.entries[:-1]:
        assert one.certificate
        assert one.scores.size == 5
        assert one.mean == one.scores.mean()
        assert min(one.search_seconds, one.fit_seconds, one.predict_seconds) > 0


def test_scores_are_those_of_cross_validation(iris):
    X, y = IRIS
    one = iris["nearest neighbours"]
    train, test = _split(iris)
    scores = cross_val_score(
        one.model, X[train], y[train], cv=StratifiedKFold(5, shuffle=True, random_state=0)
    )
    np.testing.assert_array_equal(one.scores, scores)
    assert one.test == one.model.score(X[test], y[test])
    assert (iris.train_rows, iris.test_rows) == (120, 30)


def _split(result):
    """Return training and test rows, found again by the rows that the neighbours keep."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(150), test_size=0.2, random_state=0, stratify=IRIS[1])
    rows = result["nearest neighbours"].model[:-1].transform(IRIS[0][np.sort(train)])
    np.testing.assert_allclose(rows, StandardScaler().fit_transform(IRIS[0][np.sort(train)]))
    return np.sort(train), np.sort(test)


def test_what_it_prints_and_gives(iris):
    text = str(iris)
    assert max(map(len, text.splitlines())) <= 80
    assert "accuracy on 5 folds" in text
    frame = iris.to_frame()
    assert frame["learner"].tolist()[0] == iris.best.name
    assert {"mean", "std", "test", "p_value", "split4_score", "fit_seconds", "certificate"} <= set(
        frame.columns
    )
    with pytest.raises(KeyError, match="is none of"):
        iris["boosting"]


def test_numbers():
    result = compare(*load_diabetes(return_X_y=True))
    assert {one.name for one in result.entries} == {"baseline", *REGRESSORS} - {GOWER}
    assert (result.task, result.metric) == ("regression", "R-squared")
    assert result.best.mean > 0.4
    assert result["baseline"].mean < 0.01


def test_tables_of_text_with_unknown_values():
    rng = np.random.default_rng(0)
    size, colour = rng.normal(size=200), rng.choice(["red", "green", "blue"], 200)
    y = np.where((size > 0) ^ (colour == "red"), "yes", "no")
    size[::17] = np.nan
    table = pd.DataFrame({"size": size, "colour": colour})
    result = compare(table, y, ["tree", "SVM (rbf)", "nearest neighbours"])
    assert result["tree"].mean > 0.85
    assert result["nearest neighbours"].mean > 0.8
    assert not [one for one in result.entries if one.left_out]


def test_other_inputs():
    X, y = load_breast_cancer(return_X_y=True)
    weight = np.where(y == 1, 1.0, 3.0)
    assert compare(csr_array(X), y, "nearest neighbours", sample_weight=weight).best.mean > 0.9
    groups = np.arange(y.size) // 7
    result = compare(X, y, "tree", cv=GroupKFold(3), groups=groups, test_size=0.3, scoring="roc_auc")
    assert result.best.scores.size == 3
    assert result.metric == "ROC AUC"
    assert compare(X, y, "tree", test_size=0).test_rows == 0
    assert "test" not in str(compare(X, y, "tree", test_size=0))
    simple = compare(X, y, "nearest neighbours", rule="1se").best.parameters["n_neighbors"]
    assert simple >= compare(X, y, "nearest neighbours").best.parameters["n_neighbors"]


@pytest.fixture
def customers():
    """Return a table as it comes from a file, and labels that age and city decide."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", periods=240, freq="7h")
    columns = {"id": [f"c{k}" for k in rng.permutation(240)], "when": days.strftime("%Y-%m-%d %H:%M")}
    columns |= {"day": days, "age": rng.integers(18, 80, 240), "city": rng.choice(["Oslo", "Rome"], 240)}
    table = pd.DataFrame(columns)
    y = np.where((table["age"] > 45) ^ (table["city"] == "Rome"), "left", "stayed")
    table.loc[::11, "age"] = None
    table.loc[::13, ["city", "day"]] = None
    return table.sample(frac=1, random_state=0), pd.Series(y).sample(frac=1, random_state=0)


@pytest.mark.parametrize("kind", [lambda one: one, pd.DataFrame.convert_dtypes, pl.from_pandas])
def test_identifiers_and_dates(customers, kind):
    table, y = kind(customers[0]), customers[1]
    result = compare(table, y, ["tree", "logistic regression", "nearest neighbours"])
    assert not [one for one in result.entries if one.left_out]
    assert result["tree"].mean > 0.7
    for name in ("tree", "nearest neighbours"):
        said = " ".join(result[name].notes)
        assert "'id', 'when' not used" in said
        assert "'day' taken as numbers of days" in said
        assert result[name].model.predict(table[:3]).shape == (3,)  # of the table as it was given
    assert str(result).count("note: 'id', 'when' not used") == 1
    frame = result.to_frame()
    assert "'id'" in frame["notes"][frame["learner"].tolist().index("tree")]


def test_identifiers_in_arrays():
    rng = np.random.default_rng(0)
    X = np.array([[one, f"c{k}"] for k, one in enumerate(rng.normal(size=100))], dtype=object)
    result = compare(X, X[:, 0] > 0, "tree")
    assert result.best.mean > 0.9
    assert result.best.notes[0].startswith("'x1' not used")


def test_columns_whose_names_are_numbers(customers):
    table, y = customers
    table = table.set_axis([3, 2, 1, 0, 7], axis=1)
    result = compare(table, y, ["tree", "nearest neighbours"])
    assert "3, 2 not used" in result["tree"].notes[0]
    assert min(result["tree"].mean, result["nearest neighbours"].mean) > 0.7


def test_warnings_of_fits_are_printed_once():
    rng = np.random.default_rng(0)
    text = pd.DataFrame({"size": rng.normal(size=200), "code": rng.integers(0, 9, 200).astype(str)})
    result = compare(text, text["size"] > 0, QUICK)
    assert len([note for note in result["tree"].notes if "written as text" in note]) == 1
    assert str(result).replace("\n   ", "").count("numbers written as text") == 1
    assert "note on tree" in str(result)


def test_widths_of_kernels_count_encoded_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=200), "colour": rng.choice(list("abcd"), 200)})
    [_, one] = contenders("classification", X, np.arange(200) % 2, "SVM (rbf)")
    encoded = one.model[:-1].fit_transform(X)
    assert encoded.shape == (200, 5)
    assert one.grid[0]["learner__gamma"][2] == pytest.approx(1 / encoded.var(axis=0).sum())


def test_scores_that_need_probabilities():
    for size in (0.2, 0):
        result = compare(*IRIS, ["linear SVM", "tree"], scoring="neg_log_loss", test_size=size)
        assert result["linear SVM"].left_out == "it gives no probabilities, which this score needs"
        assert result.best.name == "tree"
        assert not np.isnan(result.best.mean)
        assert "linear SVM" not in result.to_dict()["learner"]


def test_all_in_a_list():
    names = [one.name for one in contenders("regression", IRIS[0], IRIS[0][:, 0], ["all"])]
    assert names == ["baseline", *(name for name in REGRESSORS if name != GOWER)]


def test_groups():
    X, y = IRIS
    groups = np.arange(150) % 10
    for given in (groups.tolist(), pd.Series(groups, index=np.arange(150)[::-1])):
        result = compare(X, y, QUICK, groups=given)
        assert (result.test_rows, result.folds) == (30, 5)
        for kept, held in result.best.search.cv:
            train = groups[np.isin(groups, _test_groups(groups), invert=True)]
            assert not set(train[kept]) & set(train[held])
    assert compare(X, X[:, 0] + 0.01, "lasso", groups=groups % 4).folds == 3


def _test_groups(groups):
    from sklearn.model_selection import GroupShuffleSplit

    split = GroupShuffleSplit(1, test_size=0.2, random_state=0).split(groups, groups=groups)
    return np.unique(groups[next(split)[1]])


def test_learners_with_fewer_folds_come_later():
    scores = {"baseline": [0.3] * 5, "a": [0.9, 0.9], "b": [0.5] * 5, "c": [0.8, 0.7, 0.8, 0.9, 0.8]}
    entries = [Entry(name, np.mean(one), np.std(one), np.array(one)) for name, one in scores.items()]
    ranked = _ranked(entries, 0.25, 5)
    assert [one.name for one in ranked] == ["c", "b", "baseline", "a"]
    assert [np.isnan(one.p_value) for one in ranked] == [True, False, False, True]
    text = str(Comparison(ranked, "classification", "accuracy", 100, 1, 5))
    assert "2 of 5" in text
    assert "1 test row\n" in text
    assert [one.name for one in _ranked(entries[:2], 0.25, 5)] == ["a", "baseline"]
    assert "p:" not in str(Comparison(_ranked(entries[:2], 0.25, 5), "regression", "r2", 100, 0, 5))


def test_the_print_stays_narrow():
    long = {"search_seconds": 1234.5, "fit_seconds": 123.4, "predict_seconds": 0.999}
    one = Entry("logistic regression (l1)", -1e9, 1e7, np.ones(3), -1e9, p_value=0.5, **long)
    one = replace(one, certificate="proof " * 100, notes=("warned " * 100, f"kept ({'proof ' * 9}). Do so."))
    text = str(Comparison([one], "regression", "neg_mean_absolute_percentage_error", 10, 5, 5))
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) < 20
    assert text.endswith(": kept.")


def test_rare_classes_lower_the_number_of_folds():
    X, y = IRIS
    rare = np.r_[0:30, 50:80, 100:104]
    assert compare(X[rare], y[rare], QUICK).best.scores.size == 3
    alone = np.r_[0:30, 50:80, 100]
    assert compare(X[alone], y[alone], QUICK).best.scores.size == 5


def test_time_limit_leaves_learners_out():
    X, y = IRIS
    result = compare(np.tile(X, (20, 1)), np.tile(y, 20), ["SVM (rbf)", *QUICK], time_limit=0.05)
    assert [one.left_out for one in result.entries if one.left_out]
    assert "left out" in str(result)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"learners": "forest"}, "learners='forest' is not an option"),
        ({"task": "ranking"}, "task='ranking' is not an option"),
        ({"test_size": 1.0}, "leaves no row to learn from"),
        ({"cv": 1}, "cv=1 is out of range"),
        ({"time_limit": 0}, "time_limit=0"),
        ({"y": np.zeros((150, 2))}, "one target for each row"),
        ({"y": np.r_[np.nan, np.zeros(149)]}, "row 0"),
        ({"y": np.array([*"ab" * 74, None, "a"], dtype=object)}, "missing in row 148"),
        ({"y": pd.Series([*[True, False] * 74, pd.NA, True], dtype="boolean")}, "missing in row 148"),
        ({"y": np.arange(150).astype("datetime64[D]")}, "dates"),
        ({"scoring": "acuracy"}, "did you mean 'accuracy'"),
        ({"scoring": "roc_auc"}, "No learner could be fitted and scored.*multi_class"),
        ({"rule": "2se"}, "rule='2se' is not an option"),
        ({"groups": [1] * 150}, "two groups are needed"),
    ],
)
def test_what_cannot_be_used(options, sentence):
    with pytest.raises(InputError, match=sentence):
        compare(IRIS[0], options.pop("y", IRIS[1]), **options)


def test_the_correction():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=10), rng.normal(0.3, size=10)
    assert corrected_p_value(one, other, 0.0) == pytest.approx(ttest_rel(one, other).pvalue)
    assert corrected_p_value(one, other, 0.25) > corrected_p_value(one, other, 0.0)
    assert corrected_p_value(one, one, 0.25) == 1.0
    assert corrected_p_value(one + 1, one + 0.5, 0.25) < 1e-6
