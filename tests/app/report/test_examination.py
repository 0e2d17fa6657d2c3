"""What is found out about a fit, against figures worked out elsewhere."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.inspection import permutation_importance as sklearn_importance
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

from sixfold.app.report.answers import Answers, score_interval, scorer_of
from sixfold.app.report.column_checks import find_dependence
from sixfold.app.report.column_codes import column_codes
from sixfold.app.report.examination import examine
from sixfold.app.report.importance import permutation_importance
from sixfold.app.report.row_checks import find_copies, find_drift
from sixfold.app.report.yardstick import SampledRows, measure_yardstick


class FrameModel(LinearRegression):
    """A regression that reads Polars frames."""

    def fit(self, X, y):
        return super().fit(X.to_numpy(), y)

    def predict(self, X):
        return super().predict(X.to_numpy())


def test_the_test_score_is_that_of_the_comparison(iris, diabetes):
    for result in (iris, diabetes):
        found = examine(result)
        assert found.score == pytest.approx(result.chosen.test, rel=1e-12)
        np.testing.assert_array_equal(found.asked, result.test)


def test_answers_are_those_of_the_model_row_by_row(breast_cancer):
    X = breast_cancer.X[breast_cancer.test]
    answers = Answers(breast_cancer.chosen.model, X)
    some = np.array([5, 2, 2])
    np.testing.assert_array_equal(answers.predict(some), breast_cancer.chosen.model.predict(X[some]))
    y = breast_cancer.y[breast_cancer.test]
    for name in ("accuracy", "roc_auc", "balanced_accuracy", "neg_log_loss"):
        scorer = scorer_of(breast_cancer.chosen.model, name)
        expected = scorer(breast_cancer.chosen.model, X, y)
        assert scorer(answers, answers.rows, y) == pytest.approx(expected, rel=1e-12)


def test_intervals_hold_the_score(breast_cancer, diabetes):
    found = examine(breast_cancer)
    assert found.interval == "Wilson"
    assert found.low < found.score < found.high
    found = examine(diabetes)
    assert found.interval == "bootstrap"
    assert found.low < found.score < found.high


def test_wilson_of_all_right_and_none():
    model = DummyClassifier(strategy="constant", constant="a").fit(np.zeros((2, 1)), ["a", "b"])
    answers = Answers(model, np.zeros((30, 1)))
    scorer = scorer_of(model, "accuracy")
    low, high, _ = score_interval(answers, np.full(30, "a"), scorer, "accuracy", 0)
    assert (round(low, 3), high) == (0.886, 1.0)
    low, high, _ = score_interval(answers, np.full(30, "b"), scorer, "accuracy", 0)
    assert (low, round(high, 3)) == (0.0, 0.114)


def test_importance_of_a_linear_model_is_as_in_scikit_learn_on_average():
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 3))
    y = 3.0 * X[:, 0] + X[:, 1]
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    model = FrameModel().fit(frame, y)
    found, rows = permutation_importance(model, frame, y, scorer_of(model, "r2"), 0)
    peer = sklearn_importance(LinearRegression().fit(X, y), X, y, n_repeats=50, random_state=0, scoring="r2")
    assert rows == 500
    assert [one.column for one in found] == ["a", "b", "c"]
    np.testing.assert_allclose([one.mean for one in found], peer.importances_mean, atol=0.08)
    assert abs(found[2].mean) < 1e-12


def test_importance_is_that_of_a_sample_of_many_rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(5000, 2))
    frame = pl.DataFrame(X, schema=["a", "b"])
    model = FrameModel().fit(frame, X[:, 0])
    found, rows = permutation_importance(model, frame, X[:, 0], scorer_of(model, "r2"), 0)
    assert rows == 2000
    assert found[0].mean == pytest.approx(2.0, abs=0.2)


def test_importance_of_hundreds_of_columns_takes_few_calls():
    random = np.random.default_rng(0)
    X = random.normal(size=(10, 300))
    frame = pl.DataFrame(X)
    model = FrameModel().fit(frame, X[:, 0])
    calls = []

    class Counting(FrameModel):
        def predict(self, X):
            calls.append(len(X))
            return super().predict(X)

    model.__class__ = Counting
    permutation_importance(model, frame, X[:, 0], scorer_of(model, "r2"), 0)
    assert len(calls) == 2  # the rows as they are, and 300 times 5 tables of 10 rows


def test_columns_near_the_largest_number_are_compared_without_a_warning():
    random = np.random.default_rng(0)
    a = random.normal(size=60)
    codes = column_codes(pl.DataFrame({"a": a, "b": a / abs(a).max() * 1.7e308, "c": random.normal(size=60)}))
    assert set(find_dependence(codes, np.arange(60), 0).equations) <= {"a", "b"}


def test_importance_is_left_out_where_each_row_is_compared_with_a_million():
    frame = pl.DataFrame(np.ones((50, 30)))
    model = SimpleNamespace(n_samples_fit_=1_000_000, n_features_in_=30)
    assert permutation_importance(model, frame, np.ones(50), None, 0) == ([], 0)


def test_the_yardstick_is_gradient_boosting_on_the_same_rows(breast_cancer):
    found = examine(breast_cancer)
    X = breast_cancer.X.to_numpy()
    peer = HistGradientBoostingClassifier(random_state=0)
    with threadpool_limits(1, user_api="openmp"):
        peer.fit(X[breast_cancer.train], breast_cancer.y[breast_cancer.train])
    expected = peer.score(X[breast_cancer.test], breast_cancer.y[breast_cancer.test])
    assert found.yardstick.score == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"time_limit": 1.0}, "time limit of 1 s"), ({"test": np.empty(0, int)}, "held out")],
)
def test_the_yardstick_says_why_it_was_skipped(change, words):
    codes = column_codes(pl.DataFrame({"a": np.arange(100.0)}))
    y = np.array(["x", "y"] * 50)
    given = SampledRows(codes, y, np.arange(80), change.get("test", np.arange(80, 100)))
    found = measure_yardstick(
        given, task="classification", scoring="accuracy", time_limit=change.get("time_limit"), seed=0
    )
    assert found.score is None
    assert words in found.skipped


def test_codes_of_mixed_columns():
    frame = pl.DataFrame(
        {"n": [1.0, None, float("inf")], "c": ["b", "b", None], "d": ["2020-01-01", "2020-01-02", None]}
    ).with_columns(pl.col("d").str.to_datetime(time_unit="ms"))
    codes = column_codes(frame)
    np.testing.assert_array_equal(codes.is_category, [False, True, False])
    np.testing.assert_array_equal(codes.values[:, 0], [1.0, np.nan, np.nan])
    np.testing.assert_array_equal(codes.values[:, 1], [0.0, 0.0, np.nan])
    assert codes.values[1, 2] - codes.values[0, 2] == 86_400_000


def test_more_categories_than_gradient_boosting_takes_share_a_code():
    codes = column_codes(pl.DataFrame({"c": [f"k{k}" for k in range(400)]}))
    assert codes.values.max() == 254


def test_drift_is_rarely_found_where_there_is_none():
    alarms = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        frame = pl.DataFrame(random.normal(size=(300, 10))).with_columns(
            pl.Series("c", random.integers(0, 4, 300).astype(str))
        )
        alarms += bool(find_drift(column_codes(frame), np.arange(200), np.arange(200, 300), seed))
    assert alarms <= 2  # one in a hundred is expected


def test_drift_in_what_is_missing():
    values = np.arange(200.0) % 7
    values[100:160] = np.nan
    codes = column_codes(pl.DataFrame({"a": values}, nan_to_null=True))
    found = find_drift(codes, np.arange(100), np.arange(100, 200), 0)
    assert [(one.column, one.what) for one in found] == [("a", "missing")]


def test_copies_are_counted_by_all_columns_and_missing_values_are_equal():
    frame = pl.DataFrame({"a": [1.0, 1.0, None, None, 2.0], "b": ["x", "x", "y", "y", "x"]})
    y = np.array(["p", "q", "p", "p", "p"])
    found = find_copies(frame, y, np.array([0, 2]), np.array([1, 3, 4]), "classification")
    np.testing.assert_array_equal(found.test_rows, [True, True, False])
    assert (found.rows, found.contradicting, found.best_accuracy) == (2, 2, 0.8)
