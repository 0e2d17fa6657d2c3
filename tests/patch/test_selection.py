"""Estimators and searches that choose by cross-validation: scikit-learn's choice, attributes and warnings."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.linear_model as sk
from scipy.stats import loguniform
from sklearn import model_selection
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine, make_regression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler, scale
from sklearn.utils.estimator_checks import estimator_checks_generator

import sixfold

# Modules: unpatch_sklearn gives the names of classes in users' modules back to scikit-learn.
from sixfold.patch import linear
from sixfold.patch import selection as patched

# All that scikit-learn wants to be stated.
STATED = {"l1_ratios": (0,), "scoring": "neg_log_loss", "use_legacy_attributes": False}
EXACT = {"tol": 1e-8, "max_iter": 10_000}


@pytest.fixture(autouse=True)
def every_path_is_ours(monkeypatch):
    monkeypatch.setattr(patched, "MOST_ROWS_A_COLUMN", np.inf)


def test_paths_of_tall_tables_are_left_to_scikit_learn(monkeypatch):
    monkeypatch.undo()
    X = np.random.default_rng(0).normal(size=(30, 40))
    y = X[:, 0] - X[:, 1]
    assert patched.LassoCV(alphas=5).fit(X, y)._ours is not None
    assert patched.ElasticNetCV(alphas=5).fit(X[:, :20], y)._ours is None


def diabetes(kind):
    X, y = load_diabetes(return_X_y=True)
    if kind == "sparse":
        X = sp.csr_matrix(X)
    elif kind == "names":
        X = load_diabetes(as_frame=True).data
    return (X.astype(np.float32) if kind == "float32" else X), y


def weights(y):
    return np.random.default_rng(0).uniform(0.5, 2.0, len(y))


def two_fits(ours, X, y, **fit):
    """Return scikit-learn's fit and that of the drop-in, which is ours."""
    theirs = type(ours).__mro__[
        [one.__module__.startswith("sklearn.") for one in type(ours).__mro__].index(True)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        expected = theirs(**ours.get_params(deep=False)).fit(X, y, **fit)
    model = ours.fit(X, y, **fit)
    assert model._ours is not None
    return expected, model


def require_same(expected, model, names, rtol=1e-6):
    for name in names:
        ours, theirs = getattr(model, name), getattr(expected, name)
        assert np.shape(ours) == np.shape(theirs), name
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype, name
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max(), err_msg=name)


# -- RidgeCV -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float64", "float32", "sparse", "names"])
@pytest.mark.parametrize("cv", [None, 4])
def test_ridge_cv_is_that_of_scikit_learn(kind, cv):
    X, y = diabetes(kind)
    own = {"store_cv_results": True} if cv is None else {}
    expected, model = two_fits(
        patched.RidgeCV(np.logspace(-3, 2, 11), cv=cv, **own), X, y, sample_weight=weights(y)
    )
    assert model.alpha_ == expected.alpha_
    # scikit-learn's own fits of folds are not exact for sparse tables and in float32.
    names = ["coef_", "intercept_", "best_score_", *(["cv_results_"] if cv is None else [])]
    require_same(expected, model, names, rtol=2e-5 if cv is None or kind in ("float64", "names") else 1e-3)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-3)
    assert vars(expected).keys() <= vars(model).keys()
    assert model.certificate_.converged


@pytest.mark.parametrize(
    "own", [{"alpha_per_target": True}, {"scoring": "neg_mean_absolute_error"}, {"cv": 3}]
)
def test_ridge_cv_of_several_targets(own):
    X, y = load_diabetes(return_X_y=True)
    expected, model = two_fits(patched.RidgeCV(np.logspace(-3, 2, 11), **own), X, np.c_[y, np.sqrt(y)])
    require_same(expected, model, ["alpha_", "coef_", "intercept_", "best_score_"])


def test_the_alpha_of_a_search_is_the_element_that_was_given():
    X, y = load_diabetes(return_X_y=True)
    assert type(patched.RidgeCV([1, 10], cv=3).fit(X, y).alpha_) is np.int64
    assert type(patched.RidgeCV([1, 10]).fit(X, y).alpha_) is float


def test_penalties_that_differ_by_rounding_only_are_left_to_scikit_learn():
    X = np.zeros((20, 3))
    y = np.arange(20.0)
    model = patched.RidgeCV([1.0, 2.0, 3.0]).fit(X, y)
    assert model._ours is None
    assert model.alpha_ == sk.RidgeCV([1.0, 2.0, 3.0]).fit(X, y).alpha_
    assert sixfold.RidgeCV([1.0, 2.0, 3.0]).fit(X, y).alpha_ == 1.0


def test_svd_of_a_sparse_table_warns_as_in_scikit_learn():
    X, y = diabetes("sparse")
    with pytest.warns(FutureWarning, match="svd"):
        patched.RidgeCV(gcv_mode="svd").fit(X, y)


# -- LassoCV, ElasticNetCV ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float64", "float32", "sparse", "names"])
@pytest.mark.parametrize(
    "model",
    [
        patched.LassoCV(**EXACT),
        patched.ElasticNetCV(l1_ratio=[0.5, 0.9], **EXACT),
        patched.LassoCV(positive=True, **EXACT),
    ],
)
def test_l1_paths_are_those_of_scikit_learn(kind, model):
    X, y = diabetes(kind)
    expected, model = two_fits(clone(model), X, y, sample_weight=weights(y))
    require_same(expected, model, ["alphas_", "mse_path_"], 1e-3 if kind == "float32" else 1e-5)
    if kind == "float32":  # whose noise decides between neighbours on the path
        assert model.alpha_ == pytest.approx(expected.alpha_, rel=0.3)
        assert model.coef_.dtype == expected.coef_.dtype
    else:
        require_same(expected, model, ["alpha_", "intercept_"])
        require_same(expected, model, ["coef_"], 1e-3)
        assert getattr(model, "l1_ratio_", None) == getattr(expected, "l1_ratio_", None)
    assert type(model.alpha_) is np.float64
    assert type(model.dual_gap_) is type(expected.dual_gap_)
    assert vars(expected).keys() <= vars(model).keys()


def test_alphas_that_are_given_and_folds_that_are_drawn():
    X, y, _ = make_regression(80, 30, n_informative=5, noise=20.0, coef=True, random_state=0)
    cv = KFold(4, shuffle=True, random_state=1)
    expected, model = two_fits(patched.LassoCV(alphas=[10.0, 0.1, 1.0], cv=cv, **EXACT), X, y)
    require_same(expected, model, ["alpha_", "alphas_", "mse_path_", "coef_"])


def test_a_tenth_of_tol_finds_the_penalty_of_exact_fits():
    rng = np.random.default_rng(3)
    for _ in range(5):
        X = rng.standard_normal((100, 20)) @ rng.standard_normal((20, 20))
        y = X[:, :5].sum(axis=1) + 5.0 * rng.standard_normal(100)
        exact = sk.LassoCV(alphas=30, tol=1e-9, max_iter=100_000).fit(X, y)
        assert patched.LassoCV(alphas=30).fit(X, y).alpha_ == pytest.approx(exact.alpha_, rel=1e-9)


def test_a_column_of_targets_warns_as_in_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(sklearn.exceptions.DataConversionWarning, match="column-vector"):
        patched.LassoCV(alphas=5).fit(X, y[:, None])


def test_products_that_are_given_are_left_to_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    assert patched.LassoCV(alphas=5, precompute=True).fit(X, y)._ours is not None
    with pytest.raises(ValueError, match="Gram matrix passed in via 'precompute' parameter"):
        patched.LassoCV(alphas=5, precompute=X.T @ X, fit_intercept=False).fit(X, y)


# -- LogisticRegressionCV ----------------------------------------------------------------------------------


def classes(name):
    X, y = {"iris": load_iris, "cancer": load_breast_cancer, "wine": load_wine}[name](return_X_y=True)
    return scale(X), y


@pytest.mark.parametrize("name", ["iris", "cancer", "wine"])
@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss"])
def test_the_choice_of_c_is_that_of_scikit_learn_also_among_equal_scores(name, scoring):
    X, y = classes(name)
    asked = STATED | {"scoring": scoring, "Cs": 7}
    expected, model = two_fits(patched.LogisticRegressionCV(**asked), X, y)
    assert model.C_ == expected.C_
    if scoring == "accuracy":  # of exact fits
        exact = sk.LogisticRegressionCV(**asked | EXACT, solver="newton-cg").fit(X, y)
        np.testing.assert_array_equal(model.scores_, exact.scores_)


@pytest.mark.parametrize("name", ["iris", "cancer"])
@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("refit", [True, False])
def test_attributes_of_logistic_regression_cv(name, legacy, refit):
    X, y = classes(name)
    y = np.array(["a", "b", "c"])[y]
    asked = STATED | EXACT | {"use_legacy_attributes": legacy, "class_weight": "balanced"}
    expected, model = two_fits(
        patched.LogisticRegressionCV(**asked, Cs=[0.1, 1.0], refit=refit),
        X.astype(np.float32),
        y,
        sample_weight=weights(y),
    )
    names = ["coef_", "intercept_", "Cs_", "C_", "l1_ratios_"]
    require_same(expected, model, names, 1e-4)
    np.testing.assert_allclose(model.l1_ratio_, expected.l1_ratio_)
    assert np.shape(model.n_iter_) == np.shape(expected.n_iter_)
    for attribute in ("scores_", "coefs_paths_"):
        ours, theirs = getattr(model, attribute), getattr(expected, attribute)
        if legacy:
            assert list(map(repr, ours)) == list(map(repr, theirs))
            ours, theirs = np.array(list(ours.values())), np.array(list(theirs.values()))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    assert vars(expected).keys() <= vars(model).keys()
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-5)
    assert model.score(X, y) == pytest.approx(expected.score(X, y), abs=1e-5)


def test_the_chosen_mixture_is_that_of_scikit_learn():
    X, y = classes("cancer")
    asked = STATED | {"l1_ratios": (0.0, 0.5, 1.0), "solver": "saga", "tol": 1e-5, "max_iter": 3000}
    expected, model = two_fits(patched.LogisticRegressionCV(**asked, Cs=[0.01, 0.1]), X, y)
    assert (model.C_, model.l1_ratio_) == (expected.C_, expected.l1_ratio_)
    require_same(expected, model, ["scores_"], 1e-2)


@pytest.mark.parametrize("left_out", STATED)
def test_defaults_that_will_change_give_a_future_warning(left_out):
    X, y = classes("iris")
    asked = {name: value for name, value in STATED.items() if name != left_out}
    with pytest.warns(FutureWarning, match=left_out) as said:
        model = patched.LogisticRegressionCV(**asked, Cs=2, cv=2).fit(X, y)
    assert model._ours is not None
    assert len(said) == 1
    assert said[0].filename == __file__


@pytest.mark.parametrize(
    "asked",
    [{"solver": "liblinear"}, {"solver": "liblinear", "dual": True}, {"verbose": 1}, {"l1_ratios": None}],
)
def test_what_is_scikit_learns_own_is_left_to_it(asked, capfd):
    X, y = classes("cancer")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        assert patched.LogisticRegressionCV(**STATED | {"Cs": 2, "cv": 2} | asked).fit(X, y)._ours is None


def test_liblinear_without_an_intercept_is_ours():
    X, y = classes("cancer")
    asked = STATED | {"solver": "liblinear", "fit_intercept": False, "Cs": [0.1], "tol": 1e-8}
    expected, model = two_fits(patched.LogisticRegressionCV(**asked), X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-3, atol=1e-4)


def test_too_rare_classes_are_told_in_scikit_learns_words():
    X, y = classes("iris")
    rows = [*range(3), *range(50, 150)]
    with pytest.warns(UserWarning, match="The least populated class in y has only 3 members"):
        patched.LogisticRegressionCV(**STATED, Cs=2).fit(X[rows], y[rows])


# -- what all of them share --------------------------------------------------------------------------------


MODELS = {
    "RidgeCV": patched.RidgeCV(),
    "LassoCV": patched.LassoCV(alphas=10),
    "ElasticNetCV": patched.ElasticNetCV(alphas=10),
    "LogisticRegressionCV": patched.LogisticRegressionCV(**STATED, Cs=3),
}


def table_for(model):
    return (
        classes("iris") if isinstance(model, patched.LogisticRegressionCV) else load_diabetes(return_X_y=True)
    )


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_clone_pickle_refit_and_subclasses(model):
    X, y = table_for(model)
    first = clone(model).fit(X, y)
    assert isinstance(first, getattr(sk, type(model).__name__))
    again = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(again.predict(X), first.predict(X))
    own = type("Own", (type(model),), {"predict": lambda self, X: super(type(self), self).predict(X)})
    np.testing.assert_array_equal(own(**model.get_params()).fit(X, y).predict(X), first.predict(X))
    theirs = clone(first).set_params(cv=iter(list(KFold(3, shuffle=True, random_state=0).split(X))))
    first.set_params(cv=theirs.cv).fit(X, y)
    assert first._ours is None
    assert not hasattr(first, "certificate_")
    assert first.set_params(cv=None).fit(X, y)._ours is not None


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_errors_are_scikit_learns(model):
    X, y = table_for(model)
    theirs = getattr(sk, type(model).__name__)(**model.get_params())
    for bad in ({"X": X[:, 0]}, {"y": y[:-1]}, {"X": np.full_like(X, np.nan)}, {"sample_weight": np.ones(3)}):
        with pytest.raises(ValueError, match=r".") as expected:
            clone(theirs).fit(**{"X": X, "y": y} | bad)
        with pytest.raises(type(expected.value)) as found:
            clone(model).fit(**{"X": X, "y": y} | bad)
        assert str(found.value) == str(expected.value)
    with pytest.raises(ValueError, match="groups"):
        clone(model).fit(X, y, groups=np.arange(len(y)))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_routed_metadata_is_left_to_scikit_learn(model):
    X, y = table_for(model)
    groups = np.arange(len(y)) % 7
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(model).set_params(cv=GroupKFold(3)).fit(X, y, groups=groups)
        assert routed._ours is None
    folds = list(GroupKFold(3).split(X, y, groups))
    direct = clone(model).set_params(cv=folds).fit(X, y)
    np.testing.assert_allclose(routed.predict(X), direct.predict(X), rtol=1e-2)


def check_outcomes(model):
    """Return how each of scikit-learn's checks ends."""
    found = {}
    for estimator, check in estimator_checks_generator(model):
        what = getattr(check, "func", check).__name__
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                check(estimator)
                found[what] = "passed"
            except Exception as error:
                found[what] = type(error).__name__
    return found


@pytest.mark.parametrize("name", MODELS)
def test_scikit_learns_checks_end_as_they_do_for_its_class(name):
    asked = STATED | {"Cs": 2} if name == "LogisticRegressionCV" else {"alphas": [0.1, 1.0]}
    if name != "RidgeCV":
        asked["cv"] = 3  # five are too many for the tables of the checks
    assert check_outcomes(type(MODELS[name])(**asked)) == check_outcomes(getattr(sk, name)(**asked))


# -- searches ----------------------------------------------------------------------------------------------


def around(search):
    """Return scikit-learn's search around the same drop-ins."""
    kind = {
        patched.GridSearchCV: model_selection.GridSearchCV,
        patched.RandomizedSearchCV: model_selection.RandomizedSearchCV,
    }
    return kind[type(search)](**search.get_params(deep=False))


def require_same_search(ours, X, y, **fit):
    expected, search = around(ours).fit(X, y, **fit), ours.fit(X, y, **fit)
    assert search._ours is not None
    assert list(search.cv_results_) == list(expected.cv_results_)
    for name, column in expected.cv_results_.items():
        if name == "params":
            assert search.cv_results_[name] == column
        elif name.startswith("param_"):
            assert search.cv_results_[name].dtype == column.dtype
            assert search.cv_results_[name].tolist() == column.tolist()
        elif not name.endswith("_time"):
            np.testing.assert_allclose(search.cv_results_[name], column, rtol=1e-5, atol=1e-9, err_msg=name)
    assert {one for one in vars(expected) if one.endswith("_")} == {
        one for one in vars(search) if one.endswith("_")
    }
    if search.refit:
        assert search.best_params_ == expected.best_params_
        assert search.best_index_ == expected.best_index_
        assert type(search.best_estimator_) is type(expected.best_estimator_)
        np.testing.assert_array_equal(search.predict(X), expected.predict(X))
    return search


def test_a_grid_of_drop_ins_shares_its_work():
    X, y = classes("cancer")
    search = require_same_search(
        patched.GridSearchCV(linear.LogisticRegression(), {"C": np.logspace(-3, 3, 7)}), X, y
    )
    assert search.best_estimator_._ours is not None
    assert search.certificate_.asked == 35
    assert isinstance(search, model_selection.GridSearchCV)


@pytest.mark.parametrize(
    "asked",
    [
        {"scoring": "neg_log_loss", "return_train_score": True},
        {"scoring": ["accuracy", "roc_auc"], "refit": "roc_auc"},
        {"scoring": ["accuracy", "roc_auc"], "refit": False},
        {"scoring": make_scorer(accuracy_score), "refit": lambda results: 2},
        {"cv": StratifiedKFold(3, shuffle=True, random_state=0), "n_jobs": 2},
        {"refit": False},
    ],
)
def test_scores_and_choice_are_those_of_scikit_learns_search(asked):
    X, y = classes("cancer")
    grid = {"C": [0.01, 1.0, 100.0], "fit_intercept": [True, False]}
    require_same_search(patched.GridSearchCV(linear.LogisticRegression(tol=1e-8), grid, **asked), X, y)


def test_pipelines_with_settings_of_their_steps():
    X, y = load_diabetes(as_frame=True, return_X_y=True)
    model = make_pipeline(PolynomialFeatures(), StandardScaler(), linear.LinearRegression())
    grid = [
        {"polynomialfeatures__degree": [1, 2], "linearregression__fit_intercept": [True, False]},
        {"standardscaler": ["passthrough"]},
    ]
    search = require_same_search(patched.GridSearchCV(model, grid), X, y)
    assert list(search.feature_names_in_) == list(X.columns)


def test_a_penalty_that_is_stated_otherwise_in_ours():
    X, y = classes("cancer")
    grid = {"l1_ratio": [0.0, 0.5, 1.0], "C": [0.1, 1.0]}
    model = linear.LogisticRegression(solver="saga", tol=1e-6, class_weight={0: 1.0, 1: 2.0})
    search = require_same_search(patched.GridSearchCV(model, grid, cv=3), X, y, sample_weight=weights(y))
    assert search.certificate_.separate == 0


@pytest.mark.parametrize("seed", [0, np.random.RandomState(5), None], ids=["number", "generator", "global"])
def test_settings_are_drawn_as_in_scikit_learn(seed):
    X, y = classes("iris")
    search = patched.RandomizedSearchCV(
        linear.LogisticRegression(), {"C": loguniform(1e-3, 1e3)}, n_iter=5, cv=3, random_state=seed
    )
    numbers = np.random.mtrand._rand if seed is None else seed
    state = None if isinstance(seed, int) else numbers.get_state()
    drawn = []
    for one in (around(search), search, search.set_params(error_score="raise", verbose=1)):
        if state is not None:
            numbers.set_state(state)
        drawn.append(one.fit(X, y).cv_results_["params"])
    assert drawn[0] == drawn[1] == drawn[2]


def test_learners_of_ours_share_their_work_too():
    X, y = classes("iris")
    grid = {"n_neighbors": range(1, 11)}
    search = require_same_search(patched.GridSearchCV(sixfold.KNeighborsClassifier(), grid), X, y)
    assert search.certificate_.done == 5


def plain_scorer(model, X, y):
    assert isinstance(model, linear.LogisticRegression)
    return model.score(X, y)


@pytest.mark.parametrize(
    ("model", "grid", "asked"),
    [
        (sk.Ridge(), {"alpha": [1.0, 2.0]}, {}),
        (linear.LogisticRegression(solver="liblinear"), {"C": [1.0, 2.0]}, {}),
        (linear.LogisticRegression(), {"C": [1.0, 2.0]}, {"scoring": plain_scorer}),
        (linear.LogisticRegression(), {"C": [1.0, 2.0]}, {"verbose": 1}),
        (
            linear.LogisticRegression(),
            {"C": [1.0, 2.0]},
            {"cv": iter(list(KFold(3, shuffle=True).split(range(150))))},
        ),
        (
            make_pipeline(linear.LogisticRegression()),
            {"logisticregression": [linear.LogisticRegression()]},
            {},
        ),
        (type("Own", (linear.LogisticRegression,), {})(), {"C": [1.0, 2.0]}, {}),
    ],
)
def test_other_searches_are_scikit_learns(model, grid, asked):
    X, y = classes("iris")
    if isinstance(model, linear.LogisticRegression) and model.solver == "liblinear":
        X, y = classes("cancer")
    search = patched.GridSearchCV(model, grid, **asked).fit(X, y)
    assert search._ours is None
    assert not hasattr(search, "certificate_")
    assert search.best_params_["C" if "C" in search.best_params_ else next(iter(grid))] is not None


def test_fits_that_fail_are_told_in_scikit_learns_words():
    X, y = classes("iris")
    grid = {"C": [1.0, -1.0]}
    with (
        pytest.warns(sklearn.exceptions.FitFailedWarning, match="5 fits failed out of a total of 10"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search = patched.GridSearchCV(linear.LogisticRegression(), grid).fit(X, y)
    assert np.isnan(search.cv_results_["mean_test_score"][1])
    with pytest.raises(ValueError, match="Invalid parameter 'penalties' for estimator"):
        patched.GridSearchCV(linear.LogisticRegression(), {"penalties": [1]}).fit(X, y)
    with pytest.raises(AttributeError, match="This 'GridSearchCV' has no attribute 'transform'"):
        _ = search.transform


def test_scikit_learns_checks_of_a_search_end_as_they_do_for_its_class():
    grid = {"fit_intercept": [True, False]}
    search = patched.GridSearchCV(linear.LinearRegression(), grid, cv=3)
    assert check_outcomes(search) == check_outcomes(
        model_selection.GridSearchCV(sk.LinearRegression(), grid, cv=3)
    )


def test_a_search_is_cloned_pickled_and_grouped():
    X, y = classes("iris")
    search = patched.GridSearchCV(linear.LogisticRegression(), {"C": [0.1, 1.0]}, cv=GroupKFold(3))
    groups = np.arange(len(y)) % 5
    found = require_same_search(search, X, y, groups=groups)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
    assert again.certificate_ == found.certificate_
    assert clone(search).get_params().keys() == around(search).get_params().keys()


def test_leaving_out_one_row_after_the_other():
    X, y = classes("iris")
    rows = slice(None, None, 10)
    model, grid = linear.LogisticRegression(), {"C": [0.1, 1.0]}
    require_same_search(
        patched.GridSearchCV(model, grid, cv=LeaveOneOut(), scoring="accuracy"), X[rows], y[rows]
    )


def test_patched_names_are_found_where_users_import_them_from():
    with sixfold.patch_sklearn():
        assert model_selection.GridSearchCV is patched.GridSearchCV
        assert sk.RidgeCV is patched.RidgeCV
        assert sklearn.linear_model._ridge.GridSearchCV is not patched.GridSearchCV
    assert model_selection.GridSearchCV is not patched.GridSearchCV
