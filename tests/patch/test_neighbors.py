"""Neighbours under scikit-learn's names: its rules, our search."""

import copy
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.neighbors as sk
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import estimator_checks_generator

import sixfold
from sixfold.patch import neighbors as ours
from sixfold.patch.replace import DROP_INS

NAMES = next(names for home, _, names in DROP_INS if home == "sklearn.neighbors")
THEIRS = {name: getattr(sk, name) for name in NAMES}
OURS = {name: getattr(ours, name) for name in NAMES}
METHODS = (
    "predict",
    "predict_proba",
    "kneighbors",
    "kneighbors_graph",
    "radius_neighbors",
    "radius_neighbors_graph",
    "transform",
)
FITTED = (
    "classes_", "outputs_2d_", "effective_metric_", "effective_metric_params_", "n_samples_fit_",
    "n_features_in_", "_fit_method", "_fit_X", "_y", "_n_features_out",
)  # fmt: skip


def make(name, **parameters):
    """Return the drop-in and scikit-learn's own, with a radius within which every row has neighbours."""
    if name.startswith("Radius"):
        parameters = {"radius": 4.0} | parameters
    return OURS[name](**parameters), THEIRS[name](**parameters)


@cache
def table(kind):
    """Return rows and labels, which are numbers that can be averaged."""
    random = np.random.default_rng(3)
    X, y = random.normal(size=(120, 4)), random.integers(0, 3, 120).astype(float)
    if kind == "wide":
        X = 0.4 * random.normal(size=(120, 20))
    elif kind == "float32":
        X, y = X.astype(np.float32), y.astype(np.float32)
    elif kind == "sparse":
        X = sp.csr_matrix(np.where(random.random((120, 30)) < 0.3, random.normal(size=(120, 30)), 0.0))
        X /= 2
    elif kind == "frame":
        X, y = pd.DataFrame(X, columns=list("abcd")), pd.Series(y)
    elif kind == "two columns":
        y = random.integers(0, 3, (120, 2)).astype(float)
    elif kind == "many classes":
        y = random.integers(0, 40, 120).astype(float)
    elif kind == "text":
        y = np.array(["no", "yes", "maybe"])[y.astype(int)]
    elif kind == "objects":
        y = np.array(["no", "yes", "maybe"], dtype=object)[y.astype(int)]
    return X, y


KINDS = (
    "plain",
    "wide",
    "float32",
    "sparse",
    "frame",
    "two columns",
    "many classes",
    "text",
    "objects",
)


def require_same(found, expected):
    """Raise unless both are of the same type and shape, and equal but for rounding."""
    assert type(found) is type(expected)
    if isinstance(expected, tuple | list):
        for one, other in zip(found, expected, strict=True):
            require_same(one, other)
    elif sp.issparse(expected):
        require_same(found.toarray(), expected.toarray())
    elif isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        if expected.dtype == object and isinstance(expected[0], np.ndarray):
            for one, other in zip(found, expected, strict=True):
                require_same(np.sort(one), np.sort(other))  # scikit-learn's order is any
        elif expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(found, expected)
    else:
        assert found == expected


def require_agreement(model, theirs, queries):
    assert model._ours is not None
    for name in FITTED:
        if hasattr(theirs, name):
            require_same(getattr(model, name), getattr(theirs, name))
    for name in METHODS:
        if hasattr(theirs, name):
            require_same(getattr(model, name)(queries), getattr(theirs, name)(queries))
            if name != "transform":
                require_same(getattr(model, name)(None), getattr(theirs, name)(None))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_answers_and_attributes_are_those_of_scikit_learn(name, kind):
    X, y = table(kind)
    if "Regressor" in name and kind in ("text", "objects"):
        return
    for weights in ("uniform", "distance") if hasattr(THEIRS[name], "predict") else (None,):
        given = {} if weights is None else {"weights": weights}
        model, theirs = (one.fit(X, y) for one in make(name, **given))
        require_agreement(model, theirs, X[:30] * 1.01)


@pytest.mark.parametrize(
    "given",
    [
        {"algorithm": "brute"},
        {"algorithm": "kd_tree", "leaf_size": 3},
        {"algorithm": "ball_tree"},
        {"p": 1},
        {"p": 3},
        {"metric": "chebyshev"},
        {"metric": "cosine"},
        {"metric": "seuclidean", "metric_params": {"V": np.array([1.0, 2.0, 3.0, 4.0])}},
        {"metric": "mahalanobis", "metric_params": {"VI": np.diag([1.0, 2.0, 3.0, 4.0])}},
        {"metric": "minkowski", "metric_params": {"w": np.array([1.0, 2.0, 3.0, 4.0])}},
        {"metric": lambda a, b: np.abs(a - b).sum()},
        {"weights": None},
    ],
    ids=lambda given: "-".join(
        f"{name}={getattr(value, '__name__', type(value).__name__ if isinstance(value, dict) else value)}"
        for name, value in given.items()
    ),
)
@pytest.mark.parametrize("name", ["KNeighborsClassifier", "RadiusNeighborsRegressor"])
def test_every_search_that_both_have_gives_the_same_answers(name, given):
    X, y = table("plain")
    with warnings.catch_warnings():
        # scikit-learn compares arrays among the parameters, of which NumPy may warn.
        warnings.simplefilter("ignore")
        model, theirs = (one.fit(X, y) for one in make(name, **given))
    assert model._ours is not None
    assert model._fit_method == theirs._fit_method
    assert model.effective_metric_ == theirs.effective_metric_
    assert model.effective_metric_params_.keys() == theirs.effective_metric_params_.keys()
    queries = X[:30] * 1.01
    require_same(model.predict(queries), theirs.predict(queries))


def test_distances_may_be_precomputed():
    X, y = table("plain")
    D = np.linalg.norm(X[:, None] - X, axis=2)
    for name in ("KNeighborsClassifier", "RadiusNeighborsClassifier", "NearestNeighbors"):
        model, theirs = (one.fit(D, y) for one in make(name, metric="precomputed"))
        require_agreement(model, theirs, D[:20])


def test_digits_get_scikit_learns_labels_and_shares():
    X, y = load_digits(return_X_y=True)
    model, theirs = (one.fit(X[:1200], y[:1200]) for one in make("KNeighborsClassifier"))
    assert model._ours is not None
    assert np.mean(model.predict(X[1200:]) == theirs.predict(X[1200:])) > 0.995  # but for equal distances
    np.testing.assert_allclose(model.score(X[1200:], y[1200:]), theirs.score(X[1200:], y[1200:]), atol=0.004)


# -- where scikit-learn's rule is another than ours --------------------------------------------------------


def test_a_tied_vote_goes_to_the_first_class_under_the_patch_and_to_the_nearer_one_without():
    X, y, query = [[0.0], [1.0], [9.0]], ["a", "b", "b"], [[0.7]]
    for name, given in (
        ("KNeighborsClassifier", {"n_neighbors": 2}),
        ("RadiusNeighborsClassifier", {"radius": 1.0}),
    ):
        direct, (model, theirs) = getattr(sixfold, name)(**given), make(name, **given)
        answers = [one.fit(X, y).predict(query)[0] for one in (direct, model, theirs)]
        assert answers == ["b", "a", "a"]
        assert [one.explain([0.7]).answer for one in (direct, model)] == ["b", "a"]


def test_shares_of_a_tied_vote_are_equal_under_the_patch():
    X, y, query = [[0.0], [1.0], [9.0]], ["a", "b", "b"], [[0.7]]
    assert ours.KNeighborsClassifier(2).fit(X, y).predict_proba(query).tolist() == [[0.5, 0.5]]
    assert sixfold.KNeighborsClassifier(2).fit(X, y).predict_proba(query)[0, 1] > 0.5


def test_equal_distances_are_ordered_by_row_number_under_the_patch_too():
    X = np.zeros((50, 20))
    for algorithm in ("brute", "kd_tree"):
        model = ours.NearestNeighbors(n_neighbors=4, algorithm=algorithm).fit(X)
        assert model.kneighbors(X[:1], return_distance=False).tolist() == [[0, 1, 2, 3]]


def test_weights_by_a_function_see_all_distances_at_once_and_may_be_negative():
    X, y = table("plain")

    def by_rank(distances):
        assert distances.shape == (120, 5)
        return distances.max() - 2 * distances

    for name in ("KNeighborsClassifier", "KNeighborsRegressor"):
        model, theirs = (one.fit(X, y) for one in make(name, weights=by_rank))
        assert model._ours is not None
        require_same(model.predict(X), theirs.predict(X))


def test_parameters_of_a_query_may_be_set_after_the_fit():
    X, y = table("plain")
    model, theirs = (one.fit(X, y) for one in make("KNeighborsClassifier"))
    for given in ({"n_neighbors": 1}, {"n_neighbors": 9, "weights": "distance"}):
        require_same(model.set_params(**given).predict_proba(X), theirs.set_params(**given).predict_proba(X))
    model, theirs = (one.fit(X, y) for one in make("RadiusNeighborsRegressor"))
    require_same(model.set_params(radius=2.5).predict(X), theirs.set_params(radius=2.5).predict(X))


def test_rows_without_neighbours_are_answered_and_warned_of_in_scikit_learns_words():
    X, y = table("plain")
    far = np.vstack([X[:3], np.full((1, 4), 99.0)])
    for label in (1, 7, "most_frequent"):
        model, theirs = (one.fit(X, y) for one in make("RadiusNeighborsClassifier", outlier_label=label))
        assert list(model.outlier_label_) == list(theirs.outlier_label_)
        said = []
        for one in (model, theirs):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                answers = one.predict(far).tolist(), one.predict_proba(far).tolist()
            said.append((answers, [str(one.message) for one in caught]))
        assert said[0] == said[1]
    model, theirs = (one.fit(X, y) for one in make("RadiusNeighborsRegressor"))
    with pytest.warns(UserWarning, match="predicting NaN"):
        assert np.isnan(model.predict(far)).tolist() == [False, False, False, True]


# -- what is handed back -----------------------------------------------------------------------------------


def refused(model, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return model.fit(*arguments)._fit_method
        except Exception as error:
            return type(error), str(error)


@pytest.mark.parametrize(
    "given",
    [
        {"metric": "gower"},
        {"metric": "unheard of"},
        {"algorithm": "kd_tree", "metric": "cosine"},
        {"algorithm": "kd_tree", "metric": max},
        {"algorithm": "kd_tree", "metric_params": {"w": np.ones(4)}},
        {"algorithm": "fast"},
        {"p": 0.5},
        {"p": 0.5, "algorithm": "kd_tree"},
        {"p": -1},
        {"p": None},
        {"leaf_size": 0},
        {"n_jobs": "all"},
        {"metric": "seuclidean", "algorithm": "ball_tree"},
        {"metric": "manhattan", "metric_params": {"q": 1}},
        {"metric_params": {"p": 3}},
    ],
    ids=lambda given: "-".join(
        f"{name}={getattr(value, '__name__', type(value).__name__ if isinstance(value, dict) else value)}"
        for name, value in given.items()
    ),
)
def test_what_scikit_learn_refuses_or_warns_of_is_left_to_it(given):
    X, y = table("plain")
    for name in ("KNeighborsClassifier", "NearestNeighbors"):
        model, theirs = make(name, **given)
        assert refused(model, X, y) == refused(theirs, X, y)
        assert model._ours is None


def test_a_search_that_is_ready_is_taken_from_scikit_learn():
    X, y = table("plain")
    queries = X[:5] + 0.01
    expected = sk.KNeighborsClassifier().fit(X, y).predict(queries)
    for ready in (sk.KDTree(X), sk.BallTree(X), ours.NearestNeighbors().fit(X)):
        model = ours.KNeighborsClassifier().fit(ready, y)
        assert model._ours is None
        np.testing.assert_array_equal(model.predict(queries), expected)


def test_text_weights_and_sparse_graphs_are_no_rows_of_ours():
    X, y = table("plain")
    graph = sk.NearestNeighbors().fit(X).kneighbors_graph(mode="distance")
    for name in ("KNeighborsClassifier", "NearestNeighbors"):
        model, theirs = make(name)
        assert refused(model, X.astype(str), y) == refused(theirs, X.astype(str), y)
        with pytest.raises(TypeError, match=r"sample_weight|argument"):
            model.fit(X, y, sample_weight=np.ones(len(y)))
        model, theirs = (one.fit(graph, y) for one in make(name, metric="precomputed", n_neighbors=3))
        assert model._ours is None
        require_same(model.kneighbors(graph), theirs.kneighbors(graph))


def test_a_query_that_scikit_learn_refuses_is_refused_in_its_words():
    X, y = table("plain")
    model, theirs = (one.fit(X, y) for one in make("KNeighborsClassifier"))
    for queries, given in (
        (X[:, :2], {}),
        (sp.csr_matrix(X), {}),
        (X * np.nan, {}),
        (X, {"n_neighbors": 121}),
        (X, {"n_neighbors": 0}),
        (X, {"n_neighbors": 2.5}),
        (X.astype(str), {}),
    ):
        said = []
        for one in (model, theirs):
            with pytest.raises((TypeError, ValueError)) as error:
                one.kneighbors(queries, **given)
            said.append((error.type, str(error.value)))
        assert said[0] == said[1]
    search = ours.NearestNeighbors().fit(X)
    with pytest.raises(ValueError, match="return_distance must be True"):
        search.radius_neighbors(X, 1.0, False, True)


def test_rows_that_share_no_column_have_the_distance_nan():
    X = [[1.0, np.nan], [np.nan, 2.0], [1.5, 3.0]]
    model, theirs = (one.fit(X) for one in make("NearestNeighbors", n_neighbors=3, metric="nan_euclidean"))
    assert model._ours is not None
    require_same(model.kneighbors([[1.0, np.nan]]), theirs.kneighbors([[1.0, np.nan]]))
    assert np.isnan(model.kneighbors([[1.0, np.nan]])[0][0, 2])


def test_a_refit_forgets_who_has_learnt_before():
    X, y = table("plain")
    model, _ = make("KNeighborsClassifier")
    first = model.fit(X, y).predict(X)
    tree = model._tree
    assert model.set_params(p=0.5, algorithm="auto") is model
    with pytest.warns(UserWarning, match="0 < p < 1"):
        model.fit(X, y)
    assert (model._ours, model._tree) == (None, None)
    model.set_params(p=2).fit(X, y)
    assert model._ours is not None
    assert model._tree is not tree
    np.testing.assert_array_equal(model.predict(X), first)


# -- tools and users ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_pickles_of_equal_fits_are_equal_and_copies_answer_alike(name):
    X, y = table("plain")
    model, _ = make(name)
    again = clone(model).fit(X, y)
    stored = pickle.dumps(model.fit(X, y))
    assert stored == pickle.dumps(again)
    method = next(one for one in ("predict", "transform", "kneighbors") if hasattr(model, one))
    for other in (pickle.loads(stored), copy.deepcopy(model)):
        require_same(getattr(other, method)(X), getattr(model, method)(X))
        assert other.certificate_.verify(X, y).gap == 0.0


def test_scikit_learns_tree_is_made_when_it_is_asked_for():
    X, y = table("plain")
    for given, kind in (({}, sk.KDTree), ({"algorithm": "brute"}, type(None))):
        model, theirs = (one.fit(X, y) for one in make("KNeighborsClassifier", **given))
        assert "_tree" not in vars(model)
        assert type(model._tree) is type(theirs._tree) is kind
        require_same(sk.KNeighborsClassifier.predict(model, X), theirs.predict(X))


def test_a_search_that_a_users_subclass_replaces_is_asked():
    class Lowest(ours.KNeighborsClassifier):
        def kneighbors(self, X=None, n_neighbors=None, return_distance=True):
            rows = np.tile(np.arange(self.n_neighbors), (len(X), 1))
            return (np.ones(rows.shape), rows) if return_distance else rows

    X, y = table("plain")
    model = Lowest(1).fit(X, y)
    assert set(model.predict(X)) == {y[0]}


def test_read_only_and_memory_mapped_rows_are_not_written_to(tmp_path):
    X, y = table("plain")
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    locked = X.copy()
    locked.flags.writeable = False
    for rows in (mapped, locked):
        for name in NAMES:
            model, _ = make(name)
            assert model.fit(rows, y)._ours is not None
            method = "radius_neighbors" if name.startswith("Radius") else "kneighbors"
            getattr(model, method)(rows)


def test_threads_may_ask_one_model():
    X, y = table("plain")
    model = ours.KNeighborsClassifier().fit(X, y)
    expected = model.predict(X)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: model.predict(X), range(20)):
            np.testing.assert_array_equal(found, expected)


def test_scikit_learns_search_over_numbers_of_neighbours_chooses_the_same():
    X, y = table("plain")
    found = [
        GridSearchCV(one, {"n_neighbors": [1, 3, 7], "weights": ["uniform", "distance"]}, cv=3).fit(X, y)
        for one in make("KNeighborsClassifier")
    ]
    np.testing.assert_allclose(*(one.cv_results_["mean_test_score"] for one in found))
    assert found[0].best_estimator_._ours is not None


def test_names_of_scikit_learn_are_ours_inside_the_patch_alone():
    with sixfold.patch_sklearn(NAMES):
        for name in NAMES:
            assert getattr(sk, name) is OURS[name]
            assert issubclass(OURS[name], THEIRS[name])
        assert sk.NearestNeighbors(n_neighbors=1).fit([[0.0], [1.0]]).certificate_.converged
    assert all(getattr(sk, name) is THEIRS[name] for name in NAMES)


def failures(model):
    failed = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for tested, check in estimator_checks_generator(model):
            try:
                check(tested)
            except Exception as error:
                failed.add((check.func.__name__, type(error).__name__))
    return failed


@pytest.mark.parametrize("name", NAMES)
def test_scikit_learns_checks_end_as_they_do_for_its_own_class(name):
    assert failures(OURS[name]()) == failures(THEIRS[name]())
