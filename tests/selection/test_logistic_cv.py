"""LogisticRegressionCV against scikit-learn's, and what it adds."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegressionCV as TheirLogisticRegressionCV
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import estimator_checks_generator

from sixfold import LogisticRegression
from sixfold.selection.logistic_cv import LogisticRegressionCV

CS = [0.01, 0.1, 1.0]
HAS_NEW_FORM = "use_legacy_attributes" in TheirLogisticRegressionCV().get_params()


def theirs(X, y, weight=None, **parameters):
    options = {"Cs": CS, "cv": 3, "tol": 1e-9, "max_iter": 10_000, **parameters}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TheirLogisticRegressionCV(**options).fit(X, y, sample_weight=weight)


def ours(X, y, weight=None, **parameters):
    return LogisticRegressionCV(**{"Cs": CS, "cv": 3, "tol": 1e-10, **parameters}).fit(X, y, weight)


def make_table(classes=2, rows=150):
    X, y = load_iris(return_X_y=True)
    X = scale(X)[:, :3] + 0.5 * np.random.default_rng(0).standard_normal((150, 3))
    kept = np.flatnonzero(y >= 3 - classes)
    return X[kept][:rows], y[kept][:rows]


def same_form(own, other):
    if isinstance(other, dict):
        assert list(own) == list(other)
        for name in own:
            assert own[name].shape == other[name].shape
    else:
        assert np.shape(own) == np.shape(other)


def compare(own, other, digits=1e-3):
    for name in ("Cs_", "C_", "l1_ratio_", "l1_ratios_", "scores_", "coefs_paths_", "n_iter_", "coef_"):
        same_form(getattr(own, name), getattr(other, name))
    flat = lambda paths: np.array(list(paths.values())) if isinstance(paths, dict) else paths  # noqa: E731
    np.testing.assert_allclose(own.Cs_, other.Cs_)
    np.testing.assert_allclose(flat(own.scores_), flat(other.scores_), atol=digits)
    np.testing.assert_allclose(flat(own.coefs_paths_), flat(other.coefs_paths_), atol=digits)
    np.testing.assert_allclose(own.C_, other.C_)
    np.testing.assert_allclose(own.coef_, other.coef_, atol=digits)
    np.testing.assert_allclose(own.intercept_, other.intercept_, atol=digits)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("refit", [True, False])
def test_squares_are_scikit_learns(classes, fit_intercept, refit):
    X, y = make_table(classes)
    options = {"fit_intercept": fit_intercept, "refit": refit}
    compare(ours(X, y, **options), theirs(X, y, **options))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("refit", [True, False])
def test_mixtures_are_scikit_learns(classes, refit):
    X, y = make_table(classes)
    options = {"l1_ratios": np.array([0.2, 0.8]), "refit": refit, "Cs": [0.1, 1.0]}
    if not HAS_NEW_FORM:
        if not refit:
            pytest.skip("equal scores of a fold are taken in another order there")
        options["penalty"] = "elasticnet"
    own, other = ours(X, y, **options), theirs(X, y, solver="saga", **options)
    compare(own, other)
    np.testing.assert_allclose(own.l1_ratio_.astype(float), other.l1_ratio_.astype(float))


@pytest.mark.skipif(not HAS_NEW_FORM, reason="scikit-learn 1.9 has it")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("l1_ratios", [None, (0.0,), (0.2, 0.8)])
def test_the_new_form_is_scikit_learns(classes, l1_ratios):
    X, y = make_table(classes)
    options = {"use_legacy_attributes": False, "l1_ratios": l1_ratios, "Cs": [0.1, 1.0]}
    own, other = ours(X, y, **options), theirs(X, y, solver="saga", **options)
    compare(own, other)
    assert isinstance(own.C_, float)
    assert own.l1_ratio_ == other.l1_ratio_


@pytest.mark.parametrize("kind", ["weights", "balanced", "class weights", "sparse", "text", "log loss"])
@pytest.mark.parametrize("classes", [2, 3])
def test_rows_and_scores_of_all_kinds(kind, classes):
    X, y = make_table(classes)
    weight, options = None, {}
    if kind == "weights":
        weight = np.random.default_rng(1).uniform(0.2, 2.0, len(y))
        if sklearn.__version__.startswith(("1.6", "1.7")) and classes == 3:
            pytest.skip("scores are of rows without weights there")
    if kind == "balanced":
        options = {"class_weight": "balanced"}
        X, y = X[20:], y[20:]
    if kind == "class weights":
        options = {"class_weight": {label: 1.0 + label for label in np.unique(y).tolist()}}
    if kind == "sparse":
        X = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    if kind == "text":
        y = np.array(["a", "b", "c"])[y]
    if kind == "log loss":
        options = {"scoring": "neg_log_loss"}
    compare(ours(X, y, weight, **options), theirs(X, y, weight, **options))


def test_breast_cancer_with_defaults():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    own, other = LogisticRegressionCV().fit(X, y), theirs(X, y, Cs=10, cv=None)
    np.testing.assert_allclose(own.C_, other.C_)
    np.testing.assert_allclose(own.scores_[1], other.scores_[1], atol=1e-9)


def test_absolute_values_alone():
    X, y = make_table(2)
    own = ours(X, y, l1_ratios=(1.0,), cv=StratifiedKFold(4))
    for k, (train, test) in enumerate(StratifiedKFold(4).split(X, y)):
        for j, C in enumerate(CS):
            alone = LogisticRegression(l1_ratio=1.0, C=C, tol=1e-10).fit(X[train], y[train])
            path = own.coefs_paths_[own.classes_[1]][k, j, 0]
            np.testing.assert_allclose(path, [*alone.coef_[0], alone.intercept_[0]], atol=1e-3)
            assert own.scores_[own.classes_[1]][k, j, 0] == pytest.approx(alone.score(X[test], y[test]))
    l1 = LogisticRegressionCV(penalty="l1", Cs=CS, cv=StratifiedKFold(4), tol=1e-10).fit(X, y)
    np.testing.assert_allclose(l1.coef_, own.coef_, atol=1e-6)


def test_threads_change_nothing():
    X, y = make_table(3)
    alone, together = (LogisticRegressionCV(Cs=4, n_jobs=jobs).fit(X, y) for jobs in (None, 2))
    np.testing.assert_array_equal(alone.coefs_paths_[0], together.coefs_paths_[0])


def test_the_certificate_speaks_of_the_model_of_all_rows():
    X, y = make_table(2)
    model = LogisticRegressionCV(Cs=3).fit(X, y)
    assert model.certificate_.verify(X, y).converged
    assert model.certificate_.subject.parameters["C"] == model.C_[0]
    again = pickle.loads(pickle.dumps(model))
    assert again.certificate_.verify(X, y).converged
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    averaged = LogisticRegressionCV(Cs=3, refit=False).fit(X, y)
    with pytest.raises(AttributeError, match="refit=False"):
        _ = averaged.certificate_
    assert averaged.predict(X).shape == y.shape


def test_names_of_columns_and_scores():
    pd = pytest.importorskip("pandas")
    X, y = make_table(2)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = LogisticRegressionCV(Cs=3, scoring="roc_auc").fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.certificate_.verify(frame, y).converged
    assert 0.5 < model.score(frame, y) <= 1.0


@pytest.mark.skipif(not HAS_NEW_FORM, reason="folds without a class are another matter before 1.9")
@pytest.mark.parametrize("scoring", ["accuracy", "neg_brier_score"])
def test_folds_without_a_class_are_scikit_learns(scoring):
    X, y = make_table(3)
    own, other = (fit(X, y, cv=KFold(3), scoring=scoring) for fit in (ours, theirs))
    np.testing.assert_allclose(own.scores_[0], other.scores_[0], atol=1e-3)
    finite = np.array(list(own.coefs_paths_.values()))[..., :-1]
    np.testing.assert_allclose(finite, np.array(list(other.coefs_paths_.values()))[..., :-1], atol=1e-2)
    four = np.r_[y[:100], np.full(50, 7)]
    four[::7] = 9
    splits = [(np.flatnonzero(four < 9), np.arange(150)), (np.arange(150), np.arange(150))]
    own, other = (fit(X, four, cv=splits, scoring=scoring) for fit in (ours, theirs))
    np.testing.assert_allclose(own.scores_[9], other.scores_[9], atol=1e-3)


def test_folds_of_one_class_are_certain_of_it():
    X, y = make_table(2)
    model = ours(X, y, cv=[(np.arange(50), np.arange(100)), (np.arange(100), np.arange(100))])
    assert model.scores_[2][0].tolist() == [0.5, 0.5, 0.5]
    assert (model.coefs_paths_[2][0, :, -1] == -40.0).all()


def test_no_penalty():
    X, y = make_table(2)
    model = LogisticRegressionCV(Cs=[np.inf, 1.0]).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert LogisticRegressionCV(Cs=2, penalty=None).fit(X, y).C_[0] == np.inf


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LogisticRegressionCV(Cs="many"), "Cs='many' is text"),
        (LogisticRegressionCV(Cs=0), "Cs=0"),
        (LogisticRegressionCV(Cs=[1.0, -1.0]), r"Cs\[1\]=-1.0"),
        (LogisticRegressionCV(Cs=[]), "Cs has shape"),
        (LogisticRegressionCV(l1_ratios=[2.0]), "between 0 and 1"),
        (LogisticRegressionCV(l1_ratios=0.5), "between 0 and 1"),
        (LogisticRegressionCV(penalty="elasticnet"), "between 0 and 1"),
        (LogisticRegressionCV(penalty="l1", l1_ratios=[0.5]), "penalty='l1' was given"),
        (LogisticRegressionCV(penalty="l3"), "penalty='l3'"),
        (LogisticRegressionCV(class_weight={7: 1.0}), "class labels as keys"),
        (LogisticRegressionCV(cv=1000), "more folds than any class has rows"),
        (LogisticRegressionCV(scoring="best"), "best"),
        (LogisticRegressionCV(tol=-1.0), "tol=-1.0"),
    ],
)
def test_what_cannot_be_used_is_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*make_table(2))


def test_one_class_is_refused():
    X, _ = make_table(2)
    with pytest.raises(ValueError, match="class"):
        LogisticRegressionCV().fit(X, np.zeros(len(X), dtype=int))


def test_groups_need_routing():
    X, y = make_table(2)
    groups = np.arange(len(y)) % 5
    with pytest.raises(ValueError, match="groups"):
        LogisticRegressionCV(cv=GroupKFold(5)).fit(X, y, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegressionCV(Cs=CS, cv=GroupKFold(5)).fit(X, y, groups=groups)
    other = LogisticRegressionCV(Cs=CS, cv=list(GroupKFold(5).split(X, y, groups))).fit(X, y)
    np.testing.assert_array_equal(model.scores_[2], other.scores_[2])


@pytest.mark.filterwarnings("ignore::sixfold.errors.RankWarning")
@pytest.mark.filterwarnings("ignore:With 3 folds some hold out no row")
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        (one, check)
        for one, check in estimator_checks_generator(LogisticRegressionCV(Cs=3, cv=3))
        # Repeated rows fall into other folds than a row of twice the weight.
        if "check_sample_weight_equivalence" not in check.func.__name__
    ],
    ids=lambda value: getattr(getattr(value, "func", None), "__name__", type(value).__name__),
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
