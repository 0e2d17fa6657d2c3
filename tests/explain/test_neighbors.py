"""An explanation is checked by asking the model again; local coefficients by the vote they stand for."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold import KNeighborsClassifier, KNeighborsRegressor
from sixfold.errors import InputError

LINE = np.array([[0.0], [1.0], [2.0], [4.0], [8.0]])


# -- classes -----------------------------------------------------------------------------------------------


def test_a_vote_is_explained_by_its_neighbours():
    model = KNeighborsClassifier(3).fit(LINE, ["a", "b", "b", "b", "a"])
    found = model.explain([0.25])
    assert found.answer == "b"
    assert found.rows == [0, 1, 2]
    assert found.distances == [0.25, 0.75, 1.75]
    assert found.weights == [1.0, 1.0, 1.0]
    assert found.targets == ["a", "b", "b"]
    assert found.votes == {"a": pytest.approx(1 / 3), "b": pytest.approx(2 / 3)}
    assert found.runner_up == "a"
    assert found.margin == pytest.approx(1 / 3)
    assert found.changes_at == (2, "a")  # a tie, and row 0 is nearer


def dudani(distances):
    """Weights that depend on the farthest neighbour."""
    far = distances.max(axis=1, keepdims=True)
    return np.where(far > 0, (far - distances) / np.where(far > 0, far, 1.0), 1.0)


@pytest.mark.parametrize("weights", ["uniform", "distance", dudani])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_would_change_the_answer_does(weights, data):
    n = data.draw(st.integers(2, 15))
    X = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=n, max_size=n)), dtype=float)[:, None]
    y = np.array(data.draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n)))
    weight = data.draw(st.none() | st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=n, max_size=n))
    k = data.draw(st.integers(2, n))
    x = np.array([data.draw(st.integers(-9, 9)) + 0.25])

    def answers(m):
        try:
            return KNeighborsClassifier(m, weights=weights).fit(X, y, weight).predict(x[None])[0]
        except InputError:  # no weight for so few neighbours
            return None

    if answers(k) is None:
        return
    model = KNeighborsClassifier(k, weights=weights).fit(X, y, weight)
    found = model.explain(x)
    shares = model.predict_proba(x[None])[0]
    assert found.answer == model.predict(x[None])[0]
    assert found.rows == model.kneighbors(x[None], return_distance=False)[0].tolist()
    np.testing.assert_allclose([found.votes[label] for label in model.classes_.tolist()], shares, rtol=1e-12)
    ordered = np.sort(shares)[::-1]
    second = ordered[1] if len(ordered) > 1 else 0.0
    assert found.margin == pytest.approx(ordered[0] - second, abs=1e-12)
    by_k = {m: answers(m) for m in range(1, min(3 * k, n) + 1)}
    others = [m for m, answer in by_k.items() if answer not in (None, found.answer)]
    if found.changes_at is None:
        assert not others
    else:
        m, answer = found.changes_at
        assert by_k[m] == answer != found.answer
        assert abs(m - k) == min(abs(other - k) for other in others)


@pytest.mark.parametrize(
    "labels", [list("abbba"), [3, 1, 1, 1, 3], np.array([True, False, False, False, True])]
)
def test_explanations_are_plain_data(labels):
    found = (
        KNeighborsClassifier(3, weights="distance").fit(LINE, labels, [1, 2, 1, 1, 1]).explain(LINE[0] + 0.5)
    )
    again = json.loads(json.dumps(found.to_dict()))
    assert again["rows"] == [0, 1, 2]
    assert again["answer"] == np.asarray(labels)[1].item()
    assert again["targets"] == np.asarray(labels)[[0, 1, 2]].tolist()


def test_explanations_can_be_read():
    model = KNeighborsClassifier(3).fit(LINE, ["a", "b", "b", "b", "a"])
    text = str(model.explain([0.25]))
    for part in (
        "answer: b",
        "row 0",
        "0.25",
        "67% of the votes: b",
        "ahead of a",
        "with 2 neighbours",
        "would be a",
    ):
        assert part in text
    assert "every neighbour says so" in str(model.explain([2.5]))
    tie = KNeighborsClassifier(2).fit([[1.0], [-2.0]], ["a", "b"]).explain([0.0])
    assert (tie.margin, tie.answer, tie.runner_up) == (0.0, "a", "b")
    assert "a tie with b" in str(tie)


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda x: np.array([x]), sp.csr_array])
def test_the_row_may_be_given_in_many_ways(kind):
    X = np.array([[0.0, 1.0], [3.0, 4.0], [9.0, 9.0]])
    x = [2.0, 3.0] if kind is not sp.csr_array else [[2.0, 3.0]]
    assert KNeighborsClassifier(1).fit(X, list("abc")).explain(kind(x)).rows == [1]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_table_with_one_row_is_a_row(kind):
    table = kind({"size": [0.0, 3.0, 9.0], "height": [1.0, 4.0, 9.0]})
    model = KNeighborsClassifier(1).fit(table, list("abc"))
    assert model.explain(table[1:2]).rows == [1]
    with pytest.raises(InputError, match=r"explain takes one row, and x has 3. Pass them one by one"):
        model.explain(table)


def test_a_row_of_a_pandas_table_keeps_its_names():
    table = pd.DataFrame({"size": [0.0, 3.0, 9.0], "colour": ["red", "blue", "red"]})
    assert KNeighborsClassifier(1, metric="gower").fit(table, list("abc")).explain(table.iloc[1]).rows == [1]
    numbers = table[["size"]]
    assert KNeighborsClassifier(1).fit(numbers, list("abc")).explain(numbers.iloc[2]).rows == [2]


def test_an_unnamed_row_of_numbers_and_text_can_be_explained():
    model = KNeighborsClassifier(1, metric="gower").fit([[1.0, "red"], [5.0, "blue"]], ["a", "b"])
    assert model.explain([4.0, "blue"]).answer == "b"


def test_several_columns_are_not_explained():
    y = np.arange(10).reshape(5, 2)
    with pytest.raises(InputError, match="explain speaks of one column of labels"):
        KNeighborsClassifier(2).fit(LINE, y).explain([0.0])
    with pytest.raises(InputError, match="explain speaks of one target"):
        KNeighborsRegressor(2).fit(LINE, y).explain([0.0])


# -- numbers -----------------------------------------------------------------------------------------------


def test_an_average_is_explained_by_what_each_neighbour_moves():
    model = KNeighborsRegressor(3).fit(LINE, [1.0, 2.0, 6.0, 7.0, 8.0])
    found = model.explain([1.0])
    assert found.answer == 3.0
    assert found.rows == [1, 0, 2]
    assert found.targets == [2.0, 1.0, 6.0]
    assert found.margin == pytest.approx(1.5)  # without 6, the mean is 1.5
    assert (found.votes, found.runner_up, found.changes_at) == ({}, None, None)
    assert "leaving out one neighbour moves the answer by 1.5 at most" in str(found)
    json.dumps(found.to_dict())
    assert model.set_params(n_neighbors=1).explain([1.0]).margin == 0.0


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_the_explained_average_is_the_prediction(weights):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 3)), random.normal(size=60)
    model = KNeighborsRegressor(5, weights=weights).fit(X, y, random.uniform(size=60))
    for x in random.normal(size=(10, 3)):
        assert model.explain(x).answer == pytest.approx(model.predict(x[None])[0], rel=1e-12)


# -- plots -------------------------------------------------------------------------------------------------


def test_explanations_can_be_drawn():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = KNeighborsClassifier(3).fit(LINE, ["a", "b", "b", "b", "a"]).explain([0.25])
    axes = found.plot()
    drawn = np.concatenate([points.get_offsets() for points in axes.collections])
    np.testing.assert_allclose(sorted(drawn[:, 0]), found.distances)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["row 0", "row 1", "row 2"]
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"a", "b"}
    _, own = pyplot.subplots()
    found = KNeighborsRegressor(2).fit(LINE, [1.0, 2.0, 6.0, 7.0, 8.0]).explain([0.25])
    assert found.plot(own) is own
    assert [label.get_text() for label in own.get_yticklabels()] == ["row 0: 1", "row 1: 2"]
    pyplot.close("all")


# -- local coefficients --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_local_coefficients_give_the_similarity_weighted_positive_vote(kind):
    random = np.random.default_rng(1)
    X = random.normal(size=(80, 6)) * (random.uniform(size=(80, 6)) < 0.6)
    X[3] = 0
    Q = random.normal(size=(12, 6)) * random.uniform(0.1, 9.0, size=(12, 1))
    y = np.array(["no", "yes"])[random.integers(0, 2, size=80)]
    model = KNeighborsClassifier(7, metric="cosine").fit(kind(X), y)
    w = model.local_coefficients(kind(Q))
    assert sp.issparse(w) == (kind is sp.csr_array)
    w = w.toarray() if sp.issparse(w) else w
    similarity = Q @ X.T / np.linalg.norm(Q, axis=1)[:, None] / np.maximum(np.linalg.norm(X, axis=1), 1e-300)
    rows = np.argsort(-similarity, axis=1)[:, :7]
    expected = [sum(similarity[i, row] for row in rows[i] if y[row] == "yes") for i in range(12)]
    np.testing.assert_allclose(
        (w * Q).sum(axis=1) / np.linalg.norm(Q, axis=1), expected, rtol=1e-12, atol=1e-12
    )
    units = X / np.maximum(np.linalg.norm(X, axis=1), 1e-300)[:, None]
    direct = [sum((units[row] for row in rows[i] if y[row] == "yes"), np.zeros(6)) for i in range(12)]
    np.testing.assert_allclose(w, direct, rtol=1e-12, atol=1e-14)


def test_local_coefficients_need_cosine_and_two_classes():
    X = np.eye(4)
    with pytest.raises(InputError, match=r"metric='minkowski'. Fit with metric='cosine'"):
        KNeighborsClassifier(2).fit(X, list("aabb")).local_coefficients(X)
    for y in (list("abca"), np.eye(4)[:, :2].astype(int), list("aaaa")):
        with pytest.raises(InputError, match="two classes: fit on one column with two labels"):
            KNeighborsClassifier(2, metric="cosine").fit(X, y).local_coefficients(X)
