"""LassoCV and ElasticNetCV against scikit-learn's, and what they add."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import ElasticNetCV as TheirElasticNetCV
from sklearn.linear_model import LassoCV as TheirLassoCV
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.utils.estimator_checks import estimator_checks_generator

from sixfold.errors import CertificateError
from sixfold.selection.lasso_cv import ElasticNetCV, LassoCV

NEW_NAMES = "n_alphas" not in TheirLassoCV().get_params() or TheirLassoCV().n_alphas == "deprecated"


def theirs(kind, alphas=20, **parameters):
    """Return scikit-learn's class, fitted tightly, with the name that it has for the number of alphas."""
    number = isinstance(alphas, int)
    given = {"n_alphas": alphas} if number and not NEW_NAMES else {"alphas": alphas}
    return kind(tol=1e-10, max_iter=100_000, **given, **parameters)


def make_table(rows=80, columns=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) @ rng.standard_normal((columns, columns)) + 2.0
    return X, X[:, 0] - 2.0 * X[:, -1] + 2.0 * rng.standard_normal(rows)


def compare(own, other, digits=1e-4):
    np.testing.assert_allclose(own.alphas_, other.alphas_, rtol=1e-9)
    assert own.mse_path_.shape == other.mse_path_.shape
    np.testing.assert_allclose(own.mse_path_, other.mse_path_, rtol=digits)
    np.testing.assert_allclose(own.alpha_, other.alpha_, rtol=1e-9)
    np.testing.assert_allclose(own.coef_, other.coef_, atol=digits * (1.0 + np.abs(other.coef_).max()))
    np.testing.assert_allclose(own.intercept_, other.intercept_, atol=digits * (10.0 + abs(other.intercept_)))
    assert own.certificate_.converged


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("positive", [True, False])
def test_lasso_is_scikit_learns(fit_intercept, positive):
    X, y = make_table()
    options = {"fit_intercept": fit_intercept, "positive": positive, "cv": 4}
    own = LassoCV(alphas=20, tol=1e-10, **options).fit(X, y)
    if positive and not NEW_NAMES:
        options["alphas"] = own.alphas_  # older versions begin where a negative weight would leave zero
    compare(own, theirs(TheirLassoCV, **{"alphas": 20, **options}).fit(X, y))


@pytest.mark.parametrize("l1_ratio", [0.3, [0.2, 0.9], np.array([1.0])])
def test_elastic_net_is_scikit_learns(l1_ratio):
    X, y = make_table()
    own = ElasticNetCV(l1_ratio=l1_ratio, alphas=15, tol=1e-10).fit(X, y)
    other = theirs(TheirElasticNetCV, 15, l1_ratio=l1_ratio).fit(X, y)
    compare(own, other)
    assert own.l1_ratio_ == other.l1_ratio_


@pytest.mark.parametrize(
    "kind", ["weights", "sparse", "float32", "given alphas", "a splitter", "a list of splits"]
)
def test_rows_and_folds_of_all_kinds(kind):
    X, y = make_table()
    weight, alphas, cv, digits = None, 15, 3, 1e-4
    if kind == "weights":
        weight = np.random.default_rng(1).uniform(0.2, 2.0, len(y))
    if kind == "sparse":
        X = sp.csr_array(np.where(np.abs(X) > 1.5, X, 0.0))
    if kind == "float32":
        X, y, digits = X.astype(np.float32), y.astype(np.float32), 1e-2
    if kind == "given alphas":
        alphas = [0.01, 1.0, 0.1]
    if kind == "a splitter":
        cv = ShuffleSplit(4, random_state=0)
    if kind == "a list of splits":
        cv = list(KFold(3).split(X))
    own = LassoCV(alphas=alphas, cv=cv, tol=1e-6 if kind == "float32" else 1e-10).fit(X, y, weight)
    other = theirs(TheirLassoCV, alphas, cv=cv)
    if kind == "float32":
        other.set_params(tol=1e-6)
    other.fit(X, y, sample_weight=weight)
    if kind == "float32":
        np.testing.assert_allclose(own.mse_path_, other.mse_path_, rtol=digits)
        assert own.coef_.dtype == np.float32
    else:
        compare(own, other, digits)


def test_default_tolerances_choose_the_same():
    X, y = load_diabetes(return_X_y=True)
    own, other = LassoCV().fit(X, y), TheirLassoCV().fit(X, y)
    np.testing.assert_allclose(own.alpha_, other.alpha_)
    np.testing.assert_allclose(own.mse_path_, other.mse_path_, rtol=1e-2)
    square = np.mean((y - y.mean()) ** 2)
    assert own.dual_gap_ <= 1e-4 * square
    assert own.dual_gap_ == own.certificate_.gap


def test_threads_change_nothing():
    X, y = make_table(200, 40)
    alone, together = (LassoCV(n_jobs=jobs, alphas=20).fit(X, y) for jobs in (None, 2))
    np.testing.assert_array_equal(alone.mse_path_, together.mse_path_)


def test_the_certificate_speaks_of_the_model_of_all_rows():
    X, y = make_table()
    model = LassoCV(alphas=10).fit(X, y)
    assert model.certificate_.verify(X, y).converged
    assert model.certificate_.subject.parameters["alpha"] == model.alpha_
    with pytest.raises(CertificateError):
        model.certificate_.verify(X, y + 1e-3 * X[:, 1] ** 2)
    again = pickle.loads(pickle.dumps(model))
    assert again.certificate_.verify(X, y).converged
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_names_of_columns():
    pd = pytest.importorskip("pandas")
    X, y = make_table(columns=3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = LassoCV(alphas=5).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.certificate_.verify(frame, y).converged
    assert model.predict(frame).shape == (80,)


def test_a_wide_table_and_constant_columns():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 120))
    X[:, 3], X[:, 7] = 4.0, X[:, 8]
    y = X[:, 0] - X[:, 8] + 0.1 * rng.standard_normal(40)
    own, other = LassoCV(alphas=12, tol=1e-8).fit(X, y), theirs(TheirLassoCV, 12).fit(X, y)
    np.testing.assert_allclose(own.mse_path_, other.mse_path_, rtol=1e-2)
    assert own.coef_[3] == 0.0
    constant = LassoCV(alphas=3).fit(X, np.full(40, 2.0))
    assert not constant.coef_.any()
    np.testing.assert_allclose(constant.predict(X), 2.0)


def test_zero_is_an_alpha_like_others():
    X, y = make_table(60, 4)
    own = LassoCV(alphas=[0.0, 0.1], tol=1e-10).fit(X, y)
    assert own.alphas_.tolist() == [0.1, 0.0]
    assert np.isfinite(own.mse_path_).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LassoCV(alphas="many"), "alphas='many' is text"),
        (LassoCV(alphas=0), "alphas=0"),
        (LassoCV(alphas=[1.0, -1.0]), r"alphas\[1\]=-1.0"),
        (LassoCV(alphas=[]), "alphas has shape"),
        (LassoCV(eps=0.0), "eps=0.0"),
        (LassoCV(tol=-1.0), "tol=-1.0"),
        (LassoCV(selection="best"), "selection='best'"),
        (LassoCV(cv=1000), "n_splits=1000"),
        (ElasticNetCV(l1_ratio=1.5), "l1_ratio=1.5 is out of range"),
        (ElasticNetCV(l1_ratio=[]), "l1_ratio"),
        (ElasticNetCV(l1_ratio=0.0), "not supported for l1_ratio=0"),
    ],
)
def test_what_cannot_be_used_is_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*make_table())


def test_several_targets_are_refused():
    X, y = make_table()
    with pytest.raises(ValueError, match="2 columns"):
        LassoCV().fit(X, np.column_stack([y, y]))


def test_groups_need_routing():
    X, y = make_table()
    groups = np.arange(80) % 5
    with pytest.raises(ValueError, match="groups"):
        LassoCV(cv=GroupKFold(5)).fit(X, y, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        model = LassoCV(cv=GroupKFold(5), alphas=5).fit(X, y, groups=groups)
    other = LassoCV(cv=list(GroupKFold(5).split(X, y, groups)), alphas=5).fit(X, y)
    np.testing.assert_array_equal(model.mse_path_, other.mse_path_)


def test_old_names_of_parameters_still_work():
    X, y = make_table()
    assert LassoCV(n_alphas=7).fit(X, y).alphas_.shape == (7,)
    assert LassoCV(alphas=None).fit(X, y).alphas_.shape == (100,)


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, y = make_table()
    model = LassoCV(alphas=5).fit(X, y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 3.0, np.nan, X), y)
    np.testing.assert_array_equal(model.coef_, before)
    assert clone(model).get_params()["alphas"] == 5


@pytest.mark.filterwarnings("ignore::sixfold.errors.RankWarning")
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        (one, check)
        for estimator in (LassoCV(alphas=5, cv=3), ElasticNetCV(alphas=5, cv=3))
        for one, check in estimator_checks_generator(estimator)
        # Repeated rows fall into other folds than a row of twice the weight.
        if "check_sample_weight_equivalence" not in check.func.__name__
    ],
    ids=lambda value: getattr(getattr(value, "func", None), "__name__", type(value).__name__),
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
