"""compare: who takes part, the same folds for all, a test that is looked at once, and the t-test."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import ttest_rel
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score
from sklearn.preprocessing import StandardScaler

from sixfold import compare
from sixfold.errors import InputError
from sixfold.selection.contenders import CLASSIFIERS, REGRESSORS
from sixfold.selection.paired_test import corrected_p_value

IRIS = load_iris(return_X_y=True)
QUICK = ["tree", "nearest neighbours"]


@pytest.fixture(scope="module")
def iris():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return compare(*IRIS)


def test_all_learners_and_a_baseline(iris):
    assert {one.name for one in iris.entries} == {"baseline", *CLASSIFIERS}
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
    assert {one.name for one in result.entries} == {"baseline", *REGRESSORS}
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
    assert result.metric == "roc_auc"
    assert compare(X, y, "tree", test_size=0).test_rows == 0
    assert "test" not in str(compare(X, y, "tree", test_size=0))
    simple = compare(X, y, "nearest neighbours", rule="1se").best.parameters["n_neighbors"]
    assert simple >= compare(X, y, "nearest neighbours").best.parameters["n_neighbors"]


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
