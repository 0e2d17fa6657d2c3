"""Support vector machines with kernels: the model is scikit-learn's for any kernel, weights and table."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.svm import SVC as Peer  # noqa: N811

from sixfold import SVC, kernels
from sixfold.errors import CertificateError, NotSeparable
from sixfold.learners.svm import support_vectors
from sixfold.solvers.kernel import kernel_rows

RNG = np.random.default_rng(0)
IRIS = load_iris(return_X_y=True)
TIGHT = 1e-9


def table(rows=80, columns=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    scores = X @ rng.normal(size=(columns, classes)) + rng.normal(size=(rows, classes))
    return X, np.array(["ash", "birch", "oak", "yew"])[scores.argmax(axis=1)]


def same_model(ours, theirs, X, atol=1e-5):
    """Compare what both have learnt; dual coefficients are unique where the Gram matrix is regular."""
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_allclose(ours.class_weight_, theirs.class_weight_)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=atol)
    for shape in ("ovo", "ovr"):
        ours.decision_function_shape = theirs.decision_function_shape = shape
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=atol)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def same_support(ours, theirs, atol=1e-5):
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=atol)
    np.testing.assert_allclose(ours.support_vectors_, theirs.support_vectors_)


KERNELS = (
    {"kernel": "linear"},
    {"kernel": "poly", "coef0": 1.0},
    {"kernel": "poly", "degree": 2, "gamma": "auto"},
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "sigmoid", "gamma": 0.01, "coef0": 0.1},
)


@pytest.mark.parametrize("parameters", KERNELS, ids=str)
@pytest.mark.parametrize("classes", [2, 4])
def test_every_kernel_gives_scikit_learns_model(parameters, classes):
    X, y = table(classes=classes)
    ours = SVC(**parameters, tol=TIGHT).fit(X, y)
    theirs = Peer(**parameters, tol=TIGHT).fit(X, y)
    same_model(ours, theirs, X)
    if parameters["kernel"] == "rbf":
        same_support(ours, theirs)
    assert hasattr(ours, "coef_") == (parameters["kernel"] == "linear")
    assert ours.shape_fit_ == X.shape
    assert ours.fit_status_ == 0
    assert ours.n_iter_.shape == (classes * (classes - 1) // 2,)


@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 100.0])
def test_every_cost_gives_scikit_learns_model(C):
    X, y = table(classes=3)
    same_model(SVC(C=C, tol=TIGHT).fit(X, y), Peer(C=C, tol=TIGHT).fit(X, y), X, atol=1e-4)


@pytest.mark.parametrize("class_weight", [None, {"ash": 3.0}, {"ash": 0.2, "birch": 5.0}])
@pytest.mark.parametrize("classes", [2, 3])
def test_weights_of_rows_and_classes_count_as_in_scikit_learn(class_weight, classes):
    X, y = table(classes=classes)
    weight = RNG.uniform(0.1, 3.0, size=y.size)
    weight[::7] = 0.0
    parameters = {"gamma": 0.2, "tol": TIGHT, "class_weight": class_weight}
    ours = SVC(**parameters).fit(X, y, weight)
    theirs = Peer(**parameters).fit(X, y, weight)
    same_model(ours, theirs, X)
    # scikit-learn numbers the rows that are left, so that support_ points to others.
    theirs.support_ = np.flatnonzero(weight)[theirs.support_]
    same_support(ours, theirs)
    np.testing.assert_array_equal(X[ours.support_], ours.support_vectors_)


def test_balanced_classes_have_the_weights_of_scikit_learn():
    X, y = table(classes=3)
    same_model(
        SVC(class_weight="balanced", tol=TIGHT).fit(X, y),
        Peer(class_weight="balanced", tol=TIGHT).fit(X, y),
        X,
    )


def test_weights_are_repetitions():
    X, y = table(classes=3)
    times = RNG.integers(0, 4, size=y.size)
    weighted = SVC(gamma=0.2, tol=TIGHT).fit(X, y, times)
    repeated = SVC(gamma=0.2, tol=TIGHT).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)
    assert weighted.certificate_.objective == pytest.approx(repeated.certificate_.objective, rel=1e-9)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("small", [True, False])
def test_sparse_tables_give_the_model_of_dense_ones(kind, kernel, small, monkeypatch):
    X, y = table(classes=3)
    X[RNG.random(X.shape) < 0.6] = 0.0
    if not small:  # the way of large sparse tables
        monkeypatch.setattr(kernel_rows, "MOST_DENSIFIED", 0)
    dense, sparse = (SVC(kernel=kernel, tol=TIGHT).fit(part, y) for part in (X, kind(X)))
    assert sp.issparse(sparse.dual_coef_)
    assert sp.issparse(sparse.support_vectors_)
    np.testing.assert_allclose(sparse.decision_function(kind(X)), dense.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(kind(X)), atol=1e-6)
    np.testing.assert_array_equal(sparse.predict(kind(X)), dense.predict(X))
    if small:
        np.testing.assert_array_equal(sparse.dual_coef_.toarray(), dense.dual_coef_)
    if kernel == "linear":
        np.testing.assert_allclose(sparse.coef_.toarray(), dense.coef_, atol=1e-6)


def test_single_precision_stays_and_gives_the_same_classes():
    X, y = IRIS
    double, single = SVC().fit(X, y), SVC().fit(X.astype(np.float32), y)
    assert single.support_vectors_.dtype == np.float32
    assert single.dual_coef_.dtype == np.float64
    np.testing.assert_allclose(single.decision_function(X), double.decision_function(X), atol=5e-3)
    single.certificate_.verify(X.astype(np.float32), y)


def test_the_widths_of_the_texts_are_gamma():
    X, y = IRIS
    by_sigma = SVC(sigma=0.5).fit(X, y)
    assert by_sigma.kernel_.gamma == 2.0
    np.testing.assert_array_equal(by_sigma.dual_coef_, SVC(gamma=2.0).fit(X, y).dual_coef_)
    assert SVC().fit(X, y).kernel_.gamma == pytest.approx(1 / (4 * X.var()))


def called(A, B):
    return np.asarray(A @ B.T) ** 2


@pytest.mark.parametrize(
    "kernel",
    [kernels.quadratic, called, kernels.linear * kernels.linear, kernels.Polynomial(2, 1.0, 0.0)],
    ids=["kernel", "function", "product", "polynomial"],
)
def test_one_kernel_in_many_guises_is_one_model(kernel):
    X, y = table(classes=3)
    named = SVC(kernel="quadratic", tol=TIGHT).fit(X, y)
    other = SVC(kernel=kernel, tol=TIGHT).fit(X, y)
    np.testing.assert_allclose(other.decision_function(X), named.decision_function(X), atol=1e-5)
    given = SVC(kernel="precomputed", tol=TIGHT).fit(called(X, X), y)
    np.testing.assert_allclose(
        given.decision_function(called(X[:9], X)), named.decision_function(X[:9]), atol=1e-5
    )
    assert given.support_vectors_.shape == (0, 0)


def common_letters(A, B):
    return np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=float)


def test_a_function_may_compare_what_is_no_number():
    words = ["tree", "three", "reed", "moon", "soon", "noon", "teeth", "spoon"]
    sound = np.array(["e", "e", "e", "o", "o", "o", "e", "o"])
    model = SVC(kernel=common_letters, probability=True).fit(words, sound)
    given = SVC(kernel="precomputed").fit(common_letters(words, words), sound)
    np.testing.assert_array_equal(
        model.decision_function(["week", "loon"]),
        given.decision_function(common_letters(["week", "loon"], words)),
    )
    assert model.predict(np.array(["week", "loon"])).tolist() == ["e", "o"]
    assert model.predict_proba(words).shape == (8, 2)
    model.certificate_.verify(words, sound)
    with pytest.raises(CertificateError):
        model.certificate_.verify(["stone", *words[1:]], sound)
    model.set_params(kernel=called).fit(np.eye(8), sound)  # and numbers are numbers again
    assert model.support_vectors_.shape[1] == 8


def test_a_quadratic_kernel_is_a_plane_among_products_of_columns():
    X, y = table()
    mapped = kernels.quadratic.feature_map(X)
    curved = SVC(kernel="quadratic", tol=TIGHT).fit(X, y)
    flat = SVC(kernel="linear", tol=TIGHT).fit(mapped, y)
    np.testing.assert_allclose(curved.decision_function(X), flat.decision_function(mapped), atol=1e-5)
    assert curved.margin_ == pytest.approx(1 / np.linalg.norm(flat.coef_), rel=1e-5)


def test_one_against_the_rest_is_an_svm_for_each_class():
    X, y = table(classes=3)
    model = SVC(multi_class="ovr", tol=TIGHT).fit(X, y)
    scores = np.column_stack(
        [Peer(tol=TIGHT).fit(X, y == label).decision_function(X) for label in model.classes_]
    )
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    assert model.dual_coef_.shape == (3, model.support_.size)
    assert model.margin_.shape == (3,)
    model.certificate_.verify(X, y)


def test_the_linear_kernel_has_planes_that_are_read_only():
    X, y = table(classes=3)
    model = SVC(kernel="linear", tol=TIGHT, decision_function_shape="ovo").fit(X, y)
    np.testing.assert_allclose(model.coef_, Peer(kernel="linear", tol=TIGHT).fit(X, y).coef_, atol=1e-5)
    np.testing.assert_allclose(X @ model.coef_.T + model.intercept_, model.decision_function(X), atol=1e-12)
    np.testing.assert_allclose(model.margin_, 1 / np.linalg.norm(model.coef_, axis=1), rtol=1e-6)
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 1.0
    with pytest.raises(AttributeError, match="coef_ is only available when using a linear kernel"):
        SVC().fit(X, y).coef_  # noqa: B018


# -- prediction ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("classes", [2, 4])
def test_single_precision_never_changes_an_answer(classes, multi_class, monkeypatch):
    X, y = table(rows=400, classes=classes)
    model = SVC(C=100.0, multi_class=multi_class).fit(X, y)
    # Rows between which the answer changes: bisection puts them within rounding of the boundary.
    low, high = X[::2].copy(), X[1::2].copy()
    at_low = model.predict(low)
    for _ in range(60):
        middle = 0.5 * (low + high)
        same = (model.predict(middle) == at_low)[:, None]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    Z = np.vstack([X, low, high])
    exact = model.predict(Z)
    seen = []
    decisions = support_vectors.SupportVectors.decisions

    def noted(self, Z, budget, dtype=np.float64):
        seen.append((Z.shape[0], np.dtype(dtype)))
        return decisions(self, Z, budget, dtype)

    monkeypatch.setattr(support_vectors, "FEW_PRODUCTS", 0)
    monkeypatch.setattr(support_vectors.SupportVectors, "decisions", noted)
    np.testing.assert_array_equal(model.predict(Z), exact)
    (first, single), (again, double) = seen
    assert (first, single, double) == (Z.shape[0], np.float32, np.float64)
    assert 0 < again < Z.shape[0]


@pytest.mark.parametrize("classes", [2, 4])
def test_rows_in_portions_have_the_same_answers(classes, monkeypatch):
    X, y = table(classes=classes)
    model = SVC(probability=True).fit(X, y)
    whole = [answer(X) for answer in (model.predict, model.decision_function, model.predict_proba)]
    monkeypatch.setattr(support_vectors, "MOST_DECISIONS", 20)
    for answer, before in zip(
        (model.predict, model.decision_function, model.predict_proba), whole, strict=True
    ):
        np.testing.assert_array_equal(np.asarray(answer(X)), before)


def test_a_small_cache_gives_the_same_model():
    X, y = table(rows=400)
    plenty, little = (SVC(cache_size=size, tol=1e-6).fit(X, y) for size in (200, 0.01))
    np.testing.assert_allclose(little.decision_function(X), plenty.decision_function(X), atol=1e-4)
    little.certificate_.verify(X, y)


def test_ties_are_broken_by_decisions_where_asked():
    X, y = table(rows=300, classes=4)
    Z = 3 * RNG.normal(size=(4000, X.shape[1]))
    by_votes, by_scores = (SVC(break_ties=ties).fit(X, y).predict(Z) for ties in (False, True))
    scores = SVC().fit(X, y).decision_function(Z)
    np.testing.assert_array_equal(by_scores, np.unique(y)[scores.argmax(axis=1)])
    assert np.any(by_votes != by_scores)


def test_models_travel():
    X, y = IRIS
    model = SVC(kernel=kernels.RBF(sigma=1.0), probability=True).fit(X, y)
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


def test_threads_do_not_change_the_model():
    X, y = make_classification(n_samples=1500, n_features=20, n_classes=3, n_informative=8, random_state=0)
    one, two = (SVC(n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


# -- the hard margin -----------------------------------------------------------------------------------------


def test_the_hard_margin_is_the_widest():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0], [5.0, 3.0]])
    model = SVC(C=np.inf, kernel="linear", tol=1e-8).fit(X, [0, 0, 1, 1, 1])
    assert model.margin_ == pytest.approx(1.0, rel=1e-6)
    np.testing.assert_allclose(model.coef_, [[1.0, 0.0]], atol=1e-6)
    model.certificate_.verify(X, [0, 0, 1, 1, 1])


def test_the_hard_margin_is_the_limit_of_large_costs():
    X, y = IRIS
    hard, soft = (SVC(C=C, gamma=1.0, tol=1e-6).fit(X, y) for C in (np.inf, 1e9))
    np.testing.assert_allclose(hard.decision_function(X), soft.decision_function(X), atol=1e-2)
    assert hard.score(X, y) == 1.0


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_rows_that_no_surface_separates_are_named(multi_class):
    X = np.array([[0.0], [1.0], [2.0], [3.0], [1.0]])
    with pytest.raises(NotSeparable, match="in the space of the kernel separates") as caught:
        SVC(C=np.inf, gamma=1.0, multi_class=multi_class).fit(X, ["a", "a", "b", "c", "b"])
    assert caught.value.rows.tolist() == [1, 4]
    np.testing.assert_allclose(caught.value.weights, [0.5, 0.5])
    assert "use a finite C, or a kernel with more room" in str(caught.value)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("options", [{}, {"multi_class": "ovr"}, {"probability": True}], ids=str)
def test_a_far_away_zero_of_the_columns_costs_a_plane_no_digits(options, store):
    X, y = load_iris(return_X_y=True)
    near = SVC(kernel="linear", tol=1e-6, **options).fit(store(X), y)
    far = SVC(kernel="linear", tol=1e-6, max_iter=10_000, **options).fit(store(X + 1e8), y)
    np.testing.assert_allclose(
        far.decision_function(store(X + 1e8)), near.decision_function(store(X)), atol=1e-4
    )
    np.testing.assert_array_equal(far.predict(store(X + 1e8)), near.predict(store(X)))
    if options.get("probability"):
        np.testing.assert_allclose(far.predict_proba(store(X + 1e8)), near.predict_proba(store(X)), atol=1e-4)
    far.certificate_.verify(store(X + 1e8), y)


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_planes_are_made_of_the_dual_coefficients_whatever_they_sum_to(shift):
    X, y = load_iris(return_X_y=True)
    model = SVC(kernel="linear").fit(X[:100] + shift, y[:100])
    model.dual_coef_ = model.dual_coef_ + 0.1
    np.testing.assert_allclose(model.coef_, model.dual_coef_ @ model.support_vectors_)


def test_small_multipliers_beside_a_large_cost_are_kept():
    X, y = load_digits(return_X_y=True)
    some = np.isin(y, (3, 9))
    model = SVC(kernel="quadratic", C=1e6).fit(X[some], y[some])  # multipliers are about 1e-7
    assert model.certificate_.converged
    assert model.score(X[some], y[some]) == 1.0


@pytest.mark.parametrize(
    ("C", "relative_to"), [(1.0, "predicts a constant"), (np.inf, "the objective itself")]
)
def test_the_legend_says_what_the_gap_is_relative_to(C, relative_to):
    model = SVC(C=C, kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    assert relative_to in model.certificate_.legend
