"""What columns add to a score: sums, odds, probabilities, text and drawing."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from sixfold import (
    ElasticNetCV,
    ERMClassifier,
    ERMRegressor,
    LassoCV,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeCV,
)
from sixfold.data.column_means import MOST_AVERAGED
from sixfold.errors import InputError
from sixfold.plain_words import width_of

REGRESSORS = [
    LinearRegression(),
    LinearRegression(penalty="l1", alpha=0.5),
    LinearRegression(fit_intercept=False),
    ERMRegressor("absolute"),
    ERMRegressor(solver="cg"),
    RidgeCV(),
    LassoCV(cv=3),
    ElasticNetCV(cv=3),
]
CLASSIFIERS = [
    LogisticRegression(),
    LogisticRegression(l1_ratio=1.0, C=0.5),
    LogisticRegression(class_weight="balanced"),
    LogisticRegressionCV(Cs=3, cv=3, use_legacy_attributes=False, l1_ratios=(0.0,)),
    LogisticRegressionCV(Cs=3, cv=3, refit=False, use_legacy_attributes=False, l1_ratios=(0.0,)),
    Perceptron(),
    LinearSVC(),
    ERMClassifier("logistic"),
    ERMClassifier("softmax"),
    ERMClassifier("hinge"),
    ERMClassifier("squared"),
]


def scaled(load):
    data = load()
    X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0) + 3.0  # the means are not zero
    return X, data.target


def name(model):
    return str(model).replace("\n", "")


def adds_up(found):
    size = 1.0 + abs(found.start) + sum(map(abs, found.contributions))
    return abs(found.start + math.fsum(found.contributions) - found.score) <= 1e-13 * size


# -- sums ----------------------------------------------------------------------------------------------------


def test_by_hand():
    X = np.array([[1.0, 10.0], [3.0, 10.0], [5.0, 40.0], [3.0, 20.0]])
    model = LinearRegression().fit(X, 3.0 + X @ [2.0, -1.0])
    found = model.explain([5.0, 10.0])
    np.testing.assert_allclose(model.feature_means_, [3.0, 20.0])
    assert found.columns == ["x1", "x0"]
    np.testing.assert_allclose(found.contributions, [10.0, 4.0])
    assert (found.score, found.start) == (pytest.approx(3.0), pytest.approx(-11.0))
    assert found.background == "mean of 4 rows"
    assert found.values == [10.0, 5.0]
    assert (found.of, found.against, found.odds, found.probability) == (None, None, [], None)


@pytest.mark.parametrize("model", REGRESSORS, ids=name)
def test_regressors_add_up_to_the_prediction(model):
    X, y = scaled(load_diabetes)
    model = clone(model).fit(X, y)
    np.testing.assert_allclose(model.feature_means_, X.mean(axis=0))
    assert model.mean_rows_ == len(X)
    for row in (X[0], 5.0 * X[7], X.mean(axis=0)):
        found = model.explain(row)
        assert adds_up(found)
        assert found.score == pytest.approx(model.predict(row[None])[0])
        assert found.start == pytest.approx(model.predict(X.mean(axis=0)[None])[0])


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris], ids=["two", "three"])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=name)
@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly", "ignore::sixfold.errors.RankWarning")
def test_classifiers_add_up_to_the_decision(model, load):
    X, y = scaled(load)
    model = clone(model).fit(X, y)
    for row in X[[0, 60, 149]]:
        found = model.explain(row)
        assert adds_up(found)
        assert found.of == found.answer == model.predict(row[None])[0]
        decision = model.decision_function(row[None])[0]
        if np.ndim(decision) == 0:
            decision = np.array([0.0, decision])
        of, against = np.searchsorted(model.classes_, [found.of, found.against])
        assert found.score == pytest.approx(decision[of] - decision[against])
        assert decision[against] == np.delete(decision, of).max()
        if hasattr(model, "predict_proba"):
            chances = model.predict_proba(np.vstack([row, model.feature_means_]))[:, of]
            assert found.probability == pytest.approx(chances[0])
            assert found.start_probability == pytest.approx(chances[1])
        else:
            assert found.probability is None
            assert found.probabilities == []


def test_factors_on_the_odds():
    X, y = scaled(load_wine)
    model = LogisticRegression().fit(X, y)
    found = model.explain(X[70])
    chances = model.predict_proba(X[[70]])[0]
    odds = chances[found.of] / chances[found.against]
    assert math.exp(found.start) * math.prod(found.odds) == pytest.approx(odds, rel=1e-9)
    np.testing.assert_allclose(found.odds, np.exp(found.contributions))


def test_the_way_in_probability_is_that_of_rows_that_change_column_by_column():
    X, y = scaled(load_wine)
    model = LogisticRegression().fit(X, y)
    found = model.explain(X[70])
    rows, row = [], model.feature_means_.copy()
    for j in found.index:
        row[j] = X[70, j]
        rows.append(row.copy())
    np.testing.assert_allclose(found.probabilities, model.predict_proba(rows)[:, found.of])


def test_of_another_class_it_is_against_the_best_of_the_others():
    X, y = scaled(load_breast_cancer)
    labels = np.array(["malignant", "benign"])[y]
    model = LogisticRegression().fit(X, labels)
    one, other = model.explain(X[0]), model.explain(X[0], of="benign")
    assert (one.answer, one.of, one.against) == ("malignant", "malignant", "benign")
    assert (other.answer, other.of, other.against) == ("malignant", "benign", "malignant")
    np.testing.assert_allclose(other.contributions, -np.array(one.contributions))
    assert other.probability == pytest.approx(1.0 - one.probability)
    assert other.score == pytest.approx(-model.decision_function(X[[0]])[0])
    with pytest.raises(InputError, match="of='unknown' is none of the classes: 'benign', 'malignant'"):
        model.explain(X[0], of="unknown")


@pytest.mark.parametrize(
    "labels", [[False, True], [-1, 1], [1.0, 2.0], ["ja", "nein"], np.array(["ja", "nein"], dtype=object)]
)
def test_labels_of_any_kind(labels):
    X, y = scaled(load_breast_cancer)
    model = LogisticRegression().fit(X, np.asarray(labels)[y])
    found = model.explain(X[0], of=labels[1])
    assert (found.answer, found.of, found.against) == (labels[0], labels[1], labels[0])
    json.dumps(found.to_dict(), allow_nan=False)
    assert "answer: " in str(found)


def test_several_targets():
    X, y = scaled(load_diabetes)
    model = LinearRegression().fit(X, np.column_stack([y, -2.0 * y]))
    both = model.explain(X[0])
    assert [one.of for one in both] == [0, 1]
    assert all(map(adds_up, both))
    np.testing.assert_allclose([one.score for one in both], model.predict(X[[0]])[0])
    assert model.explain(X[0], of=1) == both[1]
    assert "of target 1" in str(both)
    assert [one["of"] for one in both.to_dict()] == [0, 1]
    with pytest.raises(InputError, match="of=2 is out of range: the targets are 0 to 1"):
        model.explain(X[0], of=2)


# -- means ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LinearRegression(), ERMRegressor("absolute"), RidgeCV()], ids=name)
def test_means_are_weighted(model):
    X, y = scaled(load_diabetes)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = clone(model).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.feature_means_, np.average(X, axis=0, weights=weight))


def test_large_tables_are_drawn_from_unless_the_solver_knows_the_means():
    random = np.random.default_rng(0)
    X = random.standard_normal((20_000, 3))
    y = X @ [1.0, 2.0, 3.0] + random.standard_normal(20_000)
    exact, drawn = LinearRegression().fit(X, y), LogisticRegression(solver="lbfgs").fit(X, y > 0)
    np.testing.assert_allclose(exact.feature_means_, X.mean(axis=0), atol=1e-15)
    assert exact.mean_rows_ == 20_000
    assert drawn.mean_rows_ == MOST_AVERAGED
    assert drawn.explain(X[0]).background == "mean of 4,096 rows"
    assert adds_up(drawn.explain(X[0]))


@pytest.mark.parametrize("model", [LinearRegression(), ERMClassifier(), Perceptron()], ids=name)
def test_means_of_batches_are_those_of_all_rows(model):
    X, y = scaled(load_breast_cancer)
    weight = np.random.default_rng(0).random(len(y))
    model = clone(model)
    classes = {} if isinstance(model, LinearRegression) else {"classes": [0, 1]}
    for rows in np.array_split(np.arange(len(y)), 5):
        model.partial_fit(X[rows], y[rows], sample_weight=weight[rows], **classes)
    np.testing.assert_allclose(model.feature_means_, np.average(X, axis=0, weights=weight))
    assert model.mean_rows_ == len(y)
    assert adds_up(model.explain(X[0]))


def test_a_batch_after_a_fit_adds_to_its_means():
    X, y = scaled(load_breast_cancer)
    model = ERMClassifier().fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    np.testing.assert_allclose(model.feature_means_, X.mean(axis=0))
    model.fit(X[:10], [0, 1] * 5)
    np.testing.assert_allclose(model.feature_means_, X[:10].mean(axis=0))


def test_a_batch_that_fails_leaves_the_means():
    X, y = scaled(load_breast_cancer)
    model = ERMClassifier().fit(X, y)
    before = model.feature_means_.copy()
    with pytest.raises(InputError):
        model.partial_fit(np.full_like(X, np.nan), y)
    np.testing.assert_array_equal(model.feature_means_, before)


def test_another_background():
    X, y = scaled(load_breast_cancer)
    model = LogisticRegression().fit(X, y)
    of_row = model.explain(X[0], background=X[1])
    assert of_row.background == "the row given"
    assert of_row.start == pytest.approx(-model.decision_function(X[[1]])[0])
    of_table = model.explain(X[0], background=X[:50])
    assert of_table.background == "mean of the 50 rows given"
    assert of_table.start == pytest.approx(-model.decision_function(X[:50].mean(axis=0)[None])[0])
    assert model.explain(X[0], background=X[[1]]) == of_row
    sparse = model.explain(X[0], background=sp.csr_matrix(X[:50]))
    np.testing.assert_allclose(sparse.contributions, of_table.contributions)
    assert adds_up(of_row)
    assert set(model.explain(X[0], background=X[0]).contributions) == {0.0}
    with pytest.raises(InputError, match="30 features"):
        model.explain(X[0], background=X[:, :3])


def test_a_model_without_means_asks_for_rows():
    X, y = scaled(load_diabetes)
    model = LinearRegression().fit(X, y)
    del model.feature_means_
    with pytest.raises(InputError, match=r"does not know the means of its columns.*background=X"):
        model.explain(X[0])
    assert adds_up(model.explain(X[0], background=X))


def test_a_constant_column_adds_nothing():
    random = np.random.default_rng(0)
    X = np.column_stack([random.standard_normal(3000), np.full(3000, 0.1), np.full(3000, 1e9 / 7)])
    model = LogisticRegression().fit(X, X[:, 0] > random.standard_normal(3000))
    model.coef_ = np.array([[1.0, 5.0, 5.0]])
    found = model.explain(X[0])
    assert found.contributions[1:] == [0.0, 0.0]
    assert "2 other columns" in str(found)


# -- ways to write a row -------------------------------------------------------------------------------------


def test_rows_of_any_kind():
    X, y = load_iris(as_frame=True, return_X_y=True)
    model = LogisticRegression().fit(X, y)
    expected = model.explain(X.iloc[[100]])
    assert set(expected.columns) == set(X.columns)
    row = X.iloc[100]
    rows = [row, dict(row), row.to_numpy(), row.tolist(), X.to_numpy()[[100]], pl.from_pandas(X)[100]]
    for given in rows:
        assert model.explain(given) == expected
    plain = LogisticRegression().fit(X.to_numpy(), y)
    for given in (sp.csr_matrix(X.to_numpy()[[100]]), sp.csc_array(X.to_numpy()[[100]])):
        found = plain.explain(given)
        assert found.columns[0].startswith("x")
        assert found.contributions == expected.contributions


def test_sparse_and_float32_fits():
    X, y = scaled(load_iris)
    sparse = LogisticRegression().fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.feature_means_, X.mean(axis=0))
    assert adds_up(sparse.explain(sp.csr_matrix(X[[3]])))
    single = LogisticRegression().fit(X.astype(np.float32), y)
    assert single.feature_means_.dtype == np.float64
    found = single.explain(X[3].astype(np.float32))
    scores = single.decision_function(X[[3]].astype(np.float32))[0]
    assert found.score == pytest.approx(scores[found.of] - scores[found.against], rel=1e-5)
    assert adds_up(found)
    few = LinearSVC(penalty="l1").fit(X, y)
    assert few.explain(X[0]) == few.sparsify().explain(X[0])


def test_rows_that_cannot_be_explained():
    X, y = load_iris(as_frame=True, return_X_y=True)
    model = LogisticRegression().fit(X, y)
    with pytest.raises(InputError, match="explain takes one row, and x has 2"):
        model.explain(X.iloc[:2])
    with pytest.raises(InputError, match="3 features"):
        model.explain([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="contains NaN"):
        model.explain([1.0, 2.0, np.nan, 3.0])
    with pytest.raises(InputError, match="feature names should match"):
        model.explain(X.iloc[[0]][X.columns[::-1]])
    with pytest.raises(ValueError, match="not fitted"):
        LogisticRegression().explain(X.iloc[0])


def test_means_survive_pickle_and_clone_forgets_them():
    X, y = scaled(load_diabetes)
    model = LinearRegression().fit(X, y)
    assert pickle.loads(pickle.dumps(model)).explain(X[0]) == model.explain(X[0])
    assert not hasattr(clone(model), "feature_means_")
    found = model.explain(X[0])
    assert pickle.loads(pickle.dumps(found)) == found


# -- by the columns of another table -------------------------------------------------------------------------


def test_columns_made_of_one_are_added_up():
    random = np.random.default_rng(0)
    city = random.integers(0, 3, 90)
    age = random.uniform(20, 70, 90)
    X = np.column_stack([age / 10.0, np.eye(3)[city]])
    y = (age + 20 * city + 10 * random.standard_normal(90)) // 40
    model = LogisticRegression().fit(X, y.astype(int))
    found = model.explain(X[0])
    grouped = found.by_column([1, 0, 0, 0], ["city", "age"], ["Paris", 37.0], [None, age.mean()])
    assert set(grouped.columns) == {"city", "age"}
    by_name = dict(zip(grouped.columns, grouped.contributions, strict=True))
    own = dict(zip(found.columns, found.contributions, strict=True))
    assert by_name["age"] == pytest.approx(own["x0"])
    assert by_name["city"] == pytest.approx(own["x1"] + own["x2"] + own["x3"])
    assert adds_up(grouped)
    assert (grouped.score, grouped.probability) == (found.score, pytest.approx(found.probability))
    assert grouped.probabilities[-1] == pytest.approx(found.probability)
    assert math.prod(grouped.odds) == pytest.approx(math.prod(found.odds))
    assert grouped.values[grouped.columns.index("city")] == "Paris"
    assert "Paris" in str(grouped)


# -- as data, text and drawing -------------------------------------------------------------------------------


def test_to_dict_is_json():
    X, y = scaled(load_iris)
    found = LogisticRegression().fit(X, y).explain(X[0])
    back = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert back["contributions"] == found.contributions
    assert back["answer"] == 0
    assert "steps" not in back
    far = LogisticRegression().fit(X, y).explain(1e6 * X[0])
    json.dumps(far.to_dict(), allow_nan=False)


def test_text():
    X = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0], "children": [0, 2, 1, 3]})
    model = LogisticRegression().fit(X, ["no", "no", "yes", "yes"])
    model.coef_, model.intercept_ = np.array([[0.1, -0.5]]), np.array([-3.0])
    assert str(model.explain({"age": 60, "children": 1})) == (
        "answer: yes, probability 92.4%\n"
        "what each column adds to the score of yes against no\n"
        "                  value  mean    adds    odds  probability\n"
        "  mean of 4 rows               -0.250   0.779        43.8%\n"
        "  age                60    35  +2.500  x 12.2        90.5%\n"
        "  children            1   1.5  +0.250  x 1.28        92.4%\n"
        "  score                         2.500    12.2        92.4%"
    )


@pytest.mark.parametrize("columns", [1, 11, 12, 40])
def test_other_columns_are_summed_and_lines_have_80_letters(columns):
    random = np.random.default_rng(columns)
    names = [f"a rather long name of a column {j} 温度の平均値 that goes on and on" for j in range(columns)]
    X = pd.DataFrame(10.0 ** random.uniform(-5, 8, (60, columns)), columns=names)
    y = np.array(["a class with quite a long name, really so", "the other class, no shorter than that"])
    model = LogisticRegression().fit(X / X.max(), y[random.integers(0, 2, 60)])
    for row in (X.iloc[0], 1e9 * X.iloc[1]):
        text = str(model.explain(row))
        assert max(map(width_of, text.splitlines())) <= 80
        assert ("other columns" in text) == (columns > 11)


def test_drawing():
    X, y = scaled(load_breast_cancer)
    found = LogisticRegression().fit(X, y).explain(X[0])
    axes = found.plot()
    assert len(axes.patches) == 11
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
    assert ends[-1] == pytest.approx(found.score)
    low, high = axes.get_xlim()
    assert low < min(ends)
    assert high > max(ends)
    assert found.plot(dark=True).get_facecolor() != axes.get_facecolor()
    X, y = scaled(load_wine)
    assert LinearSVC().fit(X, y).explain(X[0]).plot() is not None
    model = LinearRegression().fit(X[:, :1], y)
    flat = model.explain(X[0, :1], background=X[0, :1])
    assert len(flat.plot().patches) == 1
