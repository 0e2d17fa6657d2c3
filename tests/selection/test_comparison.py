"""compare: who takes part, the same folds for all, a test that is looked at once, and the t-test."""

from __future__ import annotations

import json
import time
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

from sixfold import GridSearchCV, KNeighborsClassifier, compare
from sixfold.errors import InputError
from sixfold.selection.choice import choose
from sixfold.selection.comparison import ComparisonRun, _ranked
from sixfold.selection.contenders import CLASSIFIERS, GOWER, REGRESSORS, contenders
from sixfold.selection.leaderboard import Comparison, Entry
from sixfold.selection.paired_test import corrected_p_value
from sixfold.selection.scoring import default_scoring, metric_in_words
from sixfold.selection.trial import noted

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


# -- a comparison in the making ------------------------------------------------------------------------------


class Watch:
    """Keeps what it hears, and presses Ctrl-C when a learner says so."""

    def __init__(self, stop_at=None, when="update"):
        self.heard, self.stop_at, self.when = [], stop_at, when

    def _stop(self, name, what):
        if name == self.stop_at and what == self.when:
            self.stop_at = None
            raise KeyboardInterrupt

    def start(self, name, fits):
        self.heard.append(("start", name, fits))
        self._stop(name, "start")

    def update(self, name, done, fits, best):
        self.heard.append(("update", name, done, fits, best))
        self._stop(name, "update")

    def finish(self, entry):
        self.heard.append(("finish", entry.name, entry.left_out))


def test_a_watcher_hears_everything():
    watch = Watch()
    run = ComparisonRun(*IRIS, QUICK, watcher=watch)
    assert run.names == ["baseline", *QUICK]
    assert sorted([*run.train, *run.test]) == list(range(150))
    seen = [entry.name for entry in run]
    assert seen == run.names
    assert [one[:2] for one in watch.heard if one[0] != "update"] == [
        (what, name) for name in run.names for what in ("start", "finish")
    ]
    for name in QUICK:
        fits = next(one[2] for one in watch.heard if one[:2] == ("start", name))
        last = [one for one in watch.heard if one[:2] == ("update", name)][-1]
        assert last[2:4] == (fits, fits)
        assert last[4] == pytest.approx(run.comparison()[name].mean)
    assert len(watch.heard) < 6 + 3 * 20  # not of every one of 155 fits
    assert [one.name for one in run] == []  # nothing is left to do


def test_ctrl_c_keeps_what_is_finished():
    run = ComparisonRun(*IRIS, [*QUICK, "perceptron"], watcher=Watch("nearest neighbours", "start"))
    with pytest.raises(KeyboardInterrupt):
        list(run)
    result = run.comparison()
    assert [one.name for one in result.entries if not one.left_out] == ["tree", "baseline"]
    assert result["nearest neighbours"].left_out == "interrupted"
    assert result["perceptron"].left_out == "not tried"
    assert ("finish", "nearest neighbours", "interrupted") in run._watcher.heard
    assert [one.name for one in run] == ["perceptron"]  # and may go on


def test_ctrl_c_in_a_search_keeps_its_finished_folds():
    run = ComparisonRun(*IRIS, ["tree"], watcher=Watch("tree", "update"))
    with pytest.raises(KeyboardInterrupt):
        list(run)
    entry = run.comparison()["tree"]
    assert 0 < entry.scores.size <= 5
    assert "interrupted after" in entry.notes[0]
    assert entry.model.predict(IRIS[0]).shape == (150,)


@pytest.mark.parametrize(("presses", "left_out"), [(1, ""), (2, "interrupted")])
def test_ctrl_c_in_the_final_fit(presses, left_out, monkeypatch):
    pressed, fit = [], GridSearchCV._fit_best

    def press(self, *given):
        pressed.append(given[-1])
        if len(pressed) in range(2, 2 + presses):  # the first is the baseline's
            raise KeyboardInterrupt
        fit(self, *given)

    monkeypatch.setattr(GridSearchCV, "_fit_best", press)
    run = ComparisonRun(*IRIS, ["tree"])
    with pytest.raises(KeyboardInterrupt):
        list(run)
    assert run.comparison()["tree"].left_out == left_out
    assert pressed[:3] == [None, None, 5.0]


def test_ctrl_c_before_anything_is_finished():
    run = ComparisonRun(*IRIS, ["tree"], watcher=Watch("baseline", "start"))
    with pytest.raises(InputError, match="No learner is finished yet"):
        run.comparison()
    with pytest.raises(KeyboardInterrupt):
        list(run)
    with pytest.raises(InputError, match="Interrupted before the first learner was finished"):
        run.comparison()


def test_ctrl_c_ends_compare(monkeypatch):
    monkeypatch.setattr("sixfold.selection.comparison._Printed", lambda: Watch("tree", "start"))
    with pytest.raises(KeyboardInterrupt):
        compare(*IRIS, ["tree"], verbose=1)


def test_the_time_limit_holds_for_everything():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 30))
    y = np.digitize(X[:, 0] + X[:, 1] ** 2 + rng.normal(size=6000), [-1, 0, 1, 2])
    start = time.perf_counter()
    run = ComparisonRun(X, y, time_limit=2.0)
    list(run)
    assert time.perf_counter() - start < 2.0 + 3.0
    assert any("time_limit" in note for one in run.entries for note in one.notes) or any(
        one.left_out for one in run.entries
    )


def test_notes_are_warnings_worth_reading():
    with noted() as notes:
        warnings.warn("y_pred contains classes not in y_true", UserWarning, stacklevel=1)
        for number in range(3):
            warnings.warn(f"Stopped after {number} rounds.", UserWarning, stacklevel=1)
    assert notes == ["Stopped after 2 rounds."]


def test_a_test_that_fails_is_no_reason_to_be_left_out():
    groups = np.r_[np.zeros(50), np.arange(1, 101)]
    run = ComparisonRun(*IRIS, ["tree"], groups=groups, scoring="neg_log_loss", random_state=2)
    assert set(IRIS[1][run.train]) == {1, 2}  # the group of class 0 is in the test
    entry = list(run)[-1]
    assert np.isfinite(entry.mean)
    assert np.isnan(entry.test)
    assert "no test score: " in entry.notes[0]


def test_limits_of_final_fits_do_not_stay():
    result = compare(*IRIS, "nearest neighbours", time_limit=60.0)
    assert result.best.model[-1].time_limit is None


def test_facts_are_plain():
    result = compare(*IRIS, ["tree", "linear SVM"], scoring="neg_log_loss", random_state=1)
    facts = result.to_facts()
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert [one["learner"] for one in facts] == [one.name for one in result.entries]
    tree, out = facts[0], facts[-1]
    assert tree["mean"] == result.best.mean
    assert tree["p_value"] is None
    assert tree["parameters"] == result.best.parameters
    assert "no probabilities" in out["left_out"]
    assert out["test"] is None
    assert "seconds" not in tree
    assert set(result.to_facts(seconds=True)[0]["seconds"]) == {"search", "fit", "predict"}
    assert (
        compare(*IRIS, ["tree"], random_state=1).to_facts()
        == compare(*IRIS, "tree", random_state=1).to_facts()
    )


def test_the_score_that_suits():
    assert default_scoring(np.r_[np.zeros(81), np.ones(19)], "classification") == "balanced_accuracy"
    assert default_scoring(["a"] * 80 + ["b"] * 20, "classification") == "accuracy"
    assert default_scoring(["a"] * 80, "classification") == "accuracy"
    assert default_scoring(np.zeros(3), "regression") == "r2"
    words = {None: "accuracy", "balanced_accuracy": "balanced accuracy", "r2": "R-squared"}
    words |= {"neg_log_loss": "minus log loss", len: "len", "f1_macro": "f1 macro"}
    for scoring, word in words.items():
        assert metric_in_words(scoring, "classification") == word


@pytest.mark.parametrize("kind", [object, str, int])
def test_balanced_accuracy_is_that_of_scikit_learn(kind):
    X, y = load_breast_cancer(return_X_y=True)
    y = np.where(np.arange(y.size) < 9, 2, y).astype(str).astype(kind)
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5, 40]}, scoring="balanced_accuracy")
    theirs = [
        cross_val_score(KNeighborsClassifier(n_neighbors=k), X, y, scoring="balanced_accuracy")
        for k in (1, 5, 40)
    ]
    found = search.set_params(cv=5).fit(X, y).cv_results_
    np.testing.assert_array_equal(
        np.array([found[f"split{fold}_test_score"] for fold in range(5)]).T, np.array(theirs)
    )


def _odd_tables():
    rng = np.random.default_rng(0)
    X = pl.DataFrame({"a": rng.normal(size=40), "b": rng.choice(["u", "v"], 40)})
    y = np.array(["p", "q"] * 20, dtype=object)
    one = y.copy()
    one[7] = "rare"
    groups = np.array([0, 1, 2, 3] * 10) % 2 * 2 + (np.arange(40) > 25)
    return {
        "one row of a class": (X, one, {}),
        "more classes than folds": (X, np.array([f"k{k // 4}" for k in range(40)], dtype=object), {}),
        "two rows of each class": (X, np.array([f"k{k // 2}" for k in range(40)], dtype=object), {}),
        "groups with one class each": (X, y, {"groups": groups}),
        "constant columns": (pl.DataFrame({"a": np.ones(40), "b": np.ones(40)}), y, {}),
        "six rows": (X[:6], y[:6], {}),
        "nothing known of a column": (X.with_columns(a=pl.lit(None, dtype=pl.Float64)), y, {}),
        "other alphabets": (
            X.rename({"a": "größe", "b": "名"}),
            np.where(y == "p", "日本", "é").astype(object),
            {},
        ),
        "a sample of 12": (X, one, {"max_rows": 12}),
    }


@pytest.mark.parametrize("name", _odd_tables())
def test_odd_tables_give_a_model(name):
    X, y, options = _odd_tables()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = ComparisonRun(X, y, rule="1se", **options)
        entries = list(run)
    assert not [one.left_out for one in entries if one.left_out]
    assert choose(run.comparison(), "1se").reason
    json.dumps(run.comparison().to_facts(), allow_nan=False)


@pytest.mark.parametrize(
    ("rows", "y", "options", "sentence"),
    [
        (40, [f"k{k}" for k in range(40)], {}, "is different in each of the 40 rows"),
        (40, ["p"] * 40, {}, "y is 'p' in every row, so that there is nothing to predict"),
        (
            40,
            ["p", "q"] * 20,
            {"groups": [0, 1] * 20},
            "the training part of y is .* groups are kept together",
        ),
        (40, np.ones(40), {"task": "regression"}, "y is 1.0 in every row"),
        (40, ["p", "q"] * 20, {"test_size": 0.99}, "test_size=0.99 of 40 rows leaves none to learn from"),
        (1, ["p"], {}, "y is 'p' in every row"),
        (0, [], {}, "y is empty"),
        (7, ["p", "q"] * 4, {}, "X has 7 rows and y 8"),
        (40, ["p", "q"] * 20, {"max_rows": 1}, "max_rows=1"),
        (
            40,
            ["p"] * 20 + ["q"] * 19 + ["rare"],
            {"scoring": "neg_log_loss"},
            "'rare' has 1 row to learn from",
        ),
    ],
)
def test_targets_that_cannot_be_learnt(rows, y, options, sentence):
    y = np.array(y, dtype=None if options.get("task") else object)
    with pytest.raises(InputError, match=sentence):
        compare(np.arange(2.0 * rows).reshape(rows, 2), y, ["tree"], **options)


def test_a_table_without_columns():
    with pytest.raises(InputError, match="X has no columns"):
        compare(pl.DataFrame(), np.array(["a", "b"]))
