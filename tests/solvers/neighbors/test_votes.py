"""What neighbours say together: shares in exact fractions, ties, weights of rows and of classes, averages."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier as PeerClassifier
from sklearn.neighbors import KNeighborsRegressor as PeerRegressor

from sixfold import KNeighborsClassifier, KNeighborsRegressor

LINE = np.array([[0.0], [1.0], [2.0], [4.0], [8.0]])


def nearest(D, k):
    """Return the k smallest of each row of distances, equal ones by column."""
    rows = np.argsort(D, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(D, rows, axis=1), rows


def voted(labels, weights):
    """Return the exact share of each of three labels."""
    total = sum(map(Fraction, weights))
    return [
        float(sum(Fraction(w) for label, w in zip(labels, weights, strict=True) if label == c) / total)
        for c in range(3)
    ]


@pytest.mark.parametrize("weights", ["uniform", "distance", "function", None])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_votes_are_counted_by_definition(weights, data):
    n = data.draw(st.integers(1, 12))
    k = data.draw(st.integers(1, n))
    X = np.array(data.draw(st.lists(st.integers(-4, 4), min_size=n, max_size=n)), dtype=float)[:, None]
    y = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    sample_weight = data.draw(
        st.none() | st.lists(st.sampled_from([1.0, 2.0, 0.25, 3.0]), min_size=n, max_size=n)
    )
    Q = np.array([[0.0], [1.5], [9.0]])
    function = lambda d: 1.0 / (1.0 + d)  # noqa: E731
    model = KNeighborsClassifier(k, weights=function if weights == "function" else weights)
    model.fit(X, y, sample_weight)
    shares, answers = model.predict_proba(Q), model.predict(Q)
    found, rows = nearest(np.abs(Q - X.T), k)
    for i in range(len(Q)):
        near, labels = found[i], y[rows[i]]
        counts = {
            "distance": [float(d == 0) for d in near] if 0 in near else [1.0 / d for d in near],
            "function": [1.0 / (1.0 + d) for d in near],
        }.get(weights, [1.0] * k)
        if sample_weight is not None:
            counts = [c * sample_weight[row] for c, row in zip(counts, rows[i], strict=True)]
        expected = voted(labels, counts)
        present = [float(expected[c]) for c in model.classes_]
        np.testing.assert_allclose(shares[i], present, rtol=1e-12)
        assert answers[i] == model.classes_[shares[i].argmax()]
        assert expected[answers[i]] >= max(expected) * (1 - 1e-12)


def test_a_tied_vote_goes_to_the_smaller_total_distance_and_then_to_the_first_class():
    model = KNeighborsClassifier(4).fit([[1.0], [-2.0], [-3.0], [5.0]], ["z", "m", "m", "z"])
    assert model.predict([[0.0]]) == ["m"]  # 2 + 3 < 1 + 5
    assert model.predict_proba([[0.0]])[0].argmax() == 0
    model.fit([[1.0], [-2.0], [-3.0], [4.0]], ["z", "m", "m", "z"])
    assert model.predict([[0.0]]) == ["m"]  # 5 = 5
    model.fit([[1.0], [-2.0], [-3.0], [3.0]], ["z", "m", "m", "z"])
    assert model.predict([[0.0]]) == ["z"]
    shares = model.predict_proba([[0.0]])[0]
    assert shares.argmax() == 1
    np.testing.assert_allclose(shares, 0.5, rtol=1e-15)


def test_a_tie_of_rows_that_share_no_column_is_between_those_that_vote():
    X = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, np.nan]])
    model = KNeighborsClassifier(2, metric="nan_euclidean").fit(X, [1, 2, 0])
    np.testing.assert_array_equal(model.kneighbors([[np.nan, 5.0]]), ([[np.inf, np.inf]], [[0, 1]]))
    assert model.predict([[np.nan, 5.0]]) == [1]
    assert model.set_params(weights="distance").predict([[np.nan, 5.0]]) == [1]


def test_distances_too_small_to_divide_by_count_as_zero():
    model = KNeighborsClassifier(3, weights="distance", metric="manhattan")
    model.fit(np.array([[1.0], [2.0], [3.0]]) * 1e-307, ["a", "b", "b"])
    np.testing.assert_allclose(model.predict_proba([[0.0]]), [[1 / 3, 2 / 3]])
    model.fit([[1e-309], [1.0], [1.0]], ["a", "b", "b"])
    np.testing.assert_array_equal(model.predict_proba([[0.0]]), [[1.0, 0.0]])


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_shares_and_averages_are_those_of_scikit_learn(weights):
    random = np.random.default_rng(7)
    X, Q = random.normal(size=(200, 3)), random.normal(size=(50, 3))
    labels, targets = random.integers(0, 4, size=(200, 2)), random.normal(size=(200, 2))
    ours, peer = (
        KNeighborsClassifier(7, weights=weights).fit(X, labels),
        PeerClassifier(7, weights=weights).fit(X, labels),
    )
    for share, expected in zip(ours.predict_proba(Q), peer.predict_proba(Q), strict=True):
        np.testing.assert_allclose(share, expected, rtol=1e-12)
    assert [classes.tolist() for classes in ours.classes_] == [[0, 1, 2, 3]] * 2
    assert ours.predict(Q).shape == (50, 2)
    for j in range(2):
        one = KNeighborsClassifier(7, weights=weights).fit(X, labels[:, j])
        np.testing.assert_array_equal(ours.predict(Q)[:, j], one.predict(Q))
    ours, peer = (
        KNeighborsRegressor(7, weights=weights).fit(X, targets),
        PeerRegressor(7, weights=weights).fit(X, targets),
    )
    np.testing.assert_allclose(ours.predict(Q), peer.predict(Q), rtol=1e-12)
    together = ours.predict(Q)
    np.testing.assert_allclose(ours.fit(X, targets[:, 0]).predict(Q), together[:, 0], rtol=1e-12)


def test_averages_are_weighted():
    model = KNeighborsRegressor(3).fit(
        LINE, [1.0, 2.0, 3.0, 4.0, 5.0], sample_weight=[1.0, 2.0, 3.0, 4.0, 5.0]
    )
    np.testing.assert_allclose(model.predict([[1.0]]), [(1 * 1 + 2 * 2 + 3 * 3) / 6])
    model.set_params(weights="distance")
    np.testing.assert_allclose(
        model.predict([[0.5]]), [(1 / 0.5 + 2 * 2 / 0.5 + 3 * 3 / 1.5) / (1 / 0.5 + 2 / 0.5 + 3 / 1.5)]
    )
    np.testing.assert_array_equal(model.predict(LINE), [1.0, 2.0, 3.0, 4.0, 5.0])
    model.set_params(weights=lambda d: np.where(d > 1, 0.0, 1.0))
    np.testing.assert_allclose(model.predict([[4.5]]), [4.0])


def test_rows_of_weight_zero_are_no_neighbours_and_keep_their_numbers():
    weight = [0.0, 1.0, 0.0, 1.0, 1.0]
    for options in ({}, {"metric": "manhattan"}, {"metric": "gower"}, {"algorithm": "kd_tree"}):
        model = KNeighborsClassifier(2, **options).fit(LINE, list("abaab"), weight)
        np.testing.assert_array_equal(
            model.kneighbors([[0.0], [8.0]], return_distance=False), [[1, 3], [4, 3]]
        )
        np.testing.assert_array_equal(model.kneighbors(return_distance=False)[[0, 1]], [[1, 3], [3, 4]])
        assert model.n_samples_fit_ == 5
    D = np.abs(LINE - LINE.T)
    model = KNeighborsClassifier(2, metric="precomputed").fit(D, list("abaab"), weight)
    np.testing.assert_array_equal(model.kneighbors(D[:1], return_distance=False), [[1, 3]])


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_the_unit_of_weights_does_not_matter(scale):
    weight = np.array([3.0, 1.0, 2.0, 1.0, 1.0])
    plain = KNeighborsClassifier(3, weights="distance").fit(LINE, list("abbba"), weight)
    model = KNeighborsClassifier(3, weights="distance").fit(LINE, list("abbba"), weight * scale)
    np.testing.assert_allclose(
        model.predict_proba([[0.25], [3.0]]), plain.predict_proba([[0.25], [3.0]]), rtol=1e-14
    )


def test_classes_may_have_weights():
    y = ["a", "b", "b", "b", "a"]
    share = KNeighborsClassifier(3, class_weight={"a": 5}).fit(LINE, y).predict_proba([[1.0]])
    np.testing.assert_allclose(share, [[5 / 7, 2 / 7]])
    share = KNeighborsClassifier(3, class_weight="balanced").fit(LINE, y).predict_proba([[1.0]])
    np.testing.assert_allclose(share, [[(1 / 2) / (1 / 2 + 2 / 3), (2 / 3) / (1 / 2 + 2 / 3)]])
    both = KNeighborsClassifier(3, class_weight={"a": 5}).fit(LINE, y, [2.0, 1.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(both.predict_proba([[1.0]]), [[10 / 12, 2 / 12]])
