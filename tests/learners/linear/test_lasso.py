"""Lasso and ElasticNet against scikit-learn's, and against the closed form of orthogonal columns."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import linear_model as theirs
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV as TheirSearch

from sixfold import ElasticNet, GridSearchCV, Lasso, LassoCV, Ridge
from sixfold.errors import CertificateError, InputError, RankWarning, StoppedEarly

RNG = np.random.default_rng(0)
TIGHT = {"tol": 1e-14, "max_iter": 100_000}
CLOSE = {"rtol": 1e-5, "atol": 1e-6}
KINDS = [(Lasso, theirs.Lasso), (ElasticNet, theirs.ElasticNet)]
both = pytest.mark.parametrize(("ours", "peer"), KINDS, ids=["Lasso", "ElasticNet"])


def table(rows=60, columns=8, targets=None):
    X = RNG.normal(size=(rows, columns)) + 1.0
    W = RNG.normal(size=(columns, targets or 1)) * (np.arange(columns) < 4)[:, None]
    Y = X @ W + 0.3 * RNG.normal(size=(rows, targets or 1))
    return X, Y if targets else Y[:, 0]


def same(ours, peer, X):
    np.testing.assert_allclose(ours.coef_, peer.coef_, **CLOSE)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, **CLOSE)
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), **CLOSE)
    assert ours.coef_.shape == peer.coef_.shape
    assert np.shape(ours.intercept_) == np.shape(peer.intercept_)
    assert np.shape(ours.dual_gap_) == np.shape(peer.dual_gap_)
    assert np.shape(ours.n_iter_) == np.shape(peer.n_iter_)


@both
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("targets", [None, 1, 3])
@pytest.mark.parametrize("parameters", [{}, {"fit_intercept": False}, {"positive": True}], ids=str)
def test_coefficients_are_those_of_scikit_learn(ours, peer, kind, weighted, targets, parameters):
    X, y = table(targets=targets)
    weight = RNG.uniform(0.1, 3.0, size=len(y)) if weighted else None
    for alpha in (0.01, 0.2, 50.0):
        model = ours(alpha, **parameters, **TIGHT).fit(kind(X), y, weight)
        same(model, peer(alpha, **parameters, **TIGHT).fit(X, y, weight), X)
        assert model.certificate_.verify(kind(X), y, weight).converged


@pytest.mark.parametrize("l1_ratio", [0.0, 0.1, 0.9, 1.0])
def test_the_mixture_counts(l1_ratio):
    X, y = table()
    model = ElasticNet(0.3, l1_ratio=l1_ratio, **TIGHT).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not like l1_ratio=0
        same(model, theirs.ElasticNet(0.3, l1_ratio=l1_ratio, **TIGHT).fit(X, y), X)
    if l1_ratio == 0:
        np.testing.assert_allclose(model.coef_, Ridge(0.3 * 60).fit(X, y).coef_, rtol=1e-9)
    if l1_ratio == 1:
        np.testing.assert_allclose(model.coef_, Lasso(0.3, **TIGHT).fit(X, y).coef_, rtol=1e-9)


@settings(max_examples=60)
@given(st.data())
def test_any_shape(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n, d, targets = data.draw(st.integers(2, 12)), data.draw(st.integers(1, 12)), data.draw(st.integers(1, 3))
    X, y = np.round(rng.normal(size=(n, d)), 1), np.round(rng.normal(size=(n, targets)), 1)
    X[:, data.draw(st.integers(0, d - 1))] = 3.0  # a constant column, and ties
    weight = rng.integers(1, 4, size=n).astype(float) if data.draw(st.booleans()) else None
    alpha = data.draw(st.sampled_from([0.03, 0.3]))
    model = ElasticNet(alpha, tol=1e-11).fit(X, y, weight)
    peer = theirs.ElasticNet(alpha, tol=1e-13, max_iter=10**6).fit(X, y, weight)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-4, atol=1e-4)
    lasso = Lasso(alpha).fit(X, y, weight)  # whose coefficients need not be unique
    lasso.certificate_.verify(X, y, weight)
    assert np.all(np.atleast_1d(lasso.dual_gap_) <= 1e-4 * np.square(y).mean(axis=0) * 3.01 + 1e-12)


def test_orthogonal_columns_are_moved_towards_zero_by_alpha():
    X = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])
    y = X @ [3.0, -0.2, -1.0]
    np.testing.assert_allclose(Lasso(0.5, tol=1e-12).fit(X, y).coef_, [2.5, 0.0, -0.5], atol=1e-12)
    net = ElasticNet(0.5, l1_ratio=0.4, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(net.coef_, np.array([2.8, 0.0, -0.8]) / 1.3, atol=1e-12)


def test_single_precision_stays_and_names_are_kept():
    X, y = table()
    single = Lasso(0.1).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == single.predict(X.astype(np.float32)).dtype == np.float32
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    assert Lasso(0.1).fit(frame, y).feature_names_in_.tolist() == list("abcdefgh")


def test_one_row_predicts_its_target():
    with pytest.warns(RankWarning, match="Only one row counts"):
        model = Lasso().fit([[1.0, 2.0]], [3.0])
    assert model.coef_.tolist() == [0.0, 0.0]
    assert model.predict([[5.0, 5.0]]) == [3.0]


def test_no_penalty_is_least_squares_and_dependent_columns_are_named():
    X, y = table()
    model = Lasso(0.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.LinearRegression().fit(X, y).coef_, rtol=1e-8)
    with pytest.warns(RankWarning, match="alpha > 0"):
        Lasso(0.0).fit(np.column_stack([X, X[:, 0]]), y)


def test_sparse_coefficients_are_the_others_without_zeros():
    X, Y = table(targets=2)
    one, two = Lasso(0.2).fit(X, Y[:, 0]), Lasso(0.2).fit(X, Y)
    assert sp.issparse(one.sparse_coef_)
    assert one.sparse_coef_.shape == (1, 8)
    np.testing.assert_array_equal(one.sparse_coef_.toarray()[0], one.coef_)
    np.testing.assert_array_equal(two.sparse_coef_.toarray(), two.coef_)
    assert 0 < two.sparse_coef_.nnz < 16


# -- several targets -----------------------------------------------------------------------------------------


def test_each_target_is_a_fit_of_its_own():
    X, Y = table(targets=3)
    Y *= [1.0, 1e6, 1e-6]  # so that a tolerance for all together would be none for the last
    model = ElasticNet(0.1, l1_ratio=0.9).fit(X, Y)
    for k, y in enumerate(Y.T):
        alone = ElasticNet(0.1, l1_ratio=0.9).fit(X, y)
        np.testing.assert_array_equal(model.coef_[k], alone.coef_)
        assert model.dual_gap_[k] == alone.dual_gap_ <= 1e-4 * y.var()
        assert model.n_iter_[k] == alone.n_iter_
    assert model.certificate_.gap == pytest.approx(model.dual_gap_.sum())
    assert len(model.history_) == sum(model.n_iter_)


def test_a_changed_coefficient_of_any_target_is_told():
    X, Y = table(targets=3)
    model = Lasso(0.1).fit(X, Y)
    model.certificate_.verify(X, Y)
    for target in range(3):
        other = copy.deepcopy(model)
        other.coef_[target, np.abs(model.coef_[target]).argmax()] *= 1.001
        with pytest.raises(CertificateError):
            other.certificate_.verify(X, Y)


# -- parameters ----------------------------------------------------------------------------------------------


def test_tol_is_a_certified_part_of_the_mean_square():
    X, y = table(200, 260)  # few columns are always minimised over to the end
    loose, tight = Lasso(0.01, tol=0.3).fit(X, y), Lasso(0.01, tol=1e-10).fit(X, y)
    for model in (loose, tight):
        assert model.dual_gap_ == model.certificate_.gap <= model.tol * y.var()
        assert model.certificate_.converged
    assert tight.dual_gap_ < loose.dual_gap_


def test_a_warm_start_goes_on_from_the_last_fit():
    X, y = table(100, 400)
    cold = Lasso(0.01, tol=1e-9).fit(X, y)
    warm = Lasso(0.011, tol=1e-9, warm_start=True).fit(X, y).set_params(alpha=0.01).fit(X, y)
    assert 1 <= warm.n_iter_ < cold.n_iter_
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=1e-4)
    assert warm.fit(X, y).n_iter_ == 1
    same_table = Lasso(0.01, warm_start=True).fit(X, np.column_stack([y, -y]))
    assert same_table.fit(X, y).coef_.shape == (400,)  # of another shape there is nothing to start from


def test_limits_end_a_fit_with_a_word_and_an_honest_gap():
    X, y = table(100, 400)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 ") as caught:
        model = Lasso(1e-3, max_iter=1, tol=1e-10).fit(X, y)
    assert isinstance(caught[0].message, StoppedEarly)
    assert not model.certificate_.verify(X, y).converged
    assert Lasso(1e-3, max_iter=None, tol=1e-10).fit(X, y).certificate_.converged
    heard = []
    Lasso(1e-3, callbacks=[heard.append]).fit(X, y)
    assert heard


def test_what_is_accepted_for_scikit_learns_sake_changes_nothing():
    X, y = table()
    plain = ElasticNet(0.1).fit(X, y)
    accepted = (
        {"copy_X": False},
        {"precompute": True},
        {"precompute": X.T @ X},
        {"selection": "random", "random_state": 3},
        {"n_jobs": 1},
    )
    for parameters in accepted:
        np.testing.assert_array_equal(ElasticNet(0.1, **parameters).fit(X, y).coef_, plain.coef_)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"l1_ratio": 1.5}, "l1_ratio=1.5 is outside 0 to 1"),
        ({"selection": "cycle"}, "selection='cycle' is not an option; did you mean 'cyclic'"),
        ({"precompute": "auto"}, "precompute='auto' is neither True or False"),
        ({"warm_start": 1}, "warm_start=1 is of type int"),
        ({"positive": "yes"}, "positive='yes' is of type str"),
        ({"tol": None}, "tol=None is of type NoneType"),
    ],
    ids=str,
)
def test_a_parameter_out_of_range_is_named(parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        ElasticNet(**parameters).fit(*table())


# -- searches ------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("targets", [None, 2])
def test_a_search_finds_what_scikit_learns_finds(ours, peer, targets):
    X, y = table(targets=targets)
    grid = {"alpha": [1.0, 0.1, 0.01], "positive": [False, True]}
    if ours is ElasticNet:
        grid["l1_ratio"] = [0.3, 0.9]
    found = GridSearchCV(ours(tol=1e-10), grid, cv=4).fit(X, y)
    expected = TheirSearch(peer(**TIGHT), grid, cv=4).fit(X, y)
    for name in ("mean_test_score", "std_test_score"):
        np.testing.assert_allclose(found.cv_results_[name], expected.cv_results_[name], rtol=1e-5, atol=1e-7)
    assert found.best_params_ == expected.best_params_
    best = found.best_estimator_
    np.testing.assert_allclose(best.coef_, expected.best_estimator_.coef_, rtol=1e-4, atol=1e-5)
    assert np.shape(best.dual_gap_) == np.shape(expected.best_estimator_.dual_gap_)
    best.certificate_.verify(X, y)


def test_the_model_that_lasso_cv_chooses_is_the_lasso_of_its_penalty():
    X, y = table()
    chosen = LassoCV(cv=4, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(chosen.coef_, Lasso(chosen.alpha_, tol=1e-10).fit(X, y).coef_, atol=1e-5)
