"""LogisticRegression: published coefficients, statsmodels' standard errors, scikit-learn's optimum."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression as Theirs

from sixfold import LogisticRegression
from sixfold.errors import InputError, RankWarning, StoppedEarly


def after_one(record):
    """Stop a fit after its first iteration."""
    return record.iteration == 1


@pytest.fixture(scope="module")
def spector():
    """Return the grades of 32 students after a new way of teaching economics (Spector and Mazzeo 1980)."""
    data = sm.datasets.spector.load_pandas()
    return data.exog, data.endog.astype(int)


@pytest.fixture(scope="module")
def voters():
    """Return 944 American voters of 1996, the seven shades of statsmodels from left to right as four.

    With three classes the sign of the part of the information that two of them share would not show.
    """
    data = sm.datasets.anes96.load_pandas()
    party = np.array(["a", "b", "c", "d"])[data.endog.astype(int) // 2]
    return data.exog, party


def overlapping(classes, rows=120, seed=3):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 4)) * [1.0, 30.0, 0.1, 2.0] + [0.0, 100.0, 0.0, -5.0]
    slopes = random.normal(size=(4, classes)) / [[1.0], [30.0], [0.1], [2.0]]
    y = (X @ slopes - (X @ slopes).mean(axis=0) + random.gumbel(size=(rows, classes))).argmax(axis=1)
    return X, y, random.integers(0, 4, size=rows).astype(float)


# -- published and statistical figures --------------------------------------------------------------------


def test_spector_coefficients_are_the_published_ones_to_ten_digits(spector):
    X, y = spector
    # They were computed from grades kept in single precision, 1.3e-7 away from those of the printed grades.
    kept = X.astype(np.float32).astype(np.float64)
    model = LogisticRegression(C=np.inf, tol=1e-16).fit(kept, y)
    expected = [2.82611297201, 0.0951576702557, 2.37868772835]
    np.testing.assert_allclose(model.coef_[0], expected, rtol=1e-10)
    assert model.intercept_[0] == pytest.approx(-13.0213483201, rel=1e-10)


def test_two_classes_have_the_summary_of_statsmodels(spector):
    X, y = spector
    found = LogisticRegression(C=np.inf, tol=1e-13).fit(X, y).summary(confidence=0.9)
    expected = sm.Logit(y, sm.add_constant(X)).fit(disp=0, method="newton", tol=1e-13)
    assert found.title == "1 against 0"
    assert found.names == ["intercept", "GPA", "TUCE", "PSI"]
    np.testing.assert_allclose(found.coefficient, expected.params, rtol=1e-6)
    np.testing.assert_allclose(found.standard_error, expected.bse, rtol=1e-6)
    np.testing.assert_allclose(found.z, expected.tvalues, rtol=1e-6)
    np.testing.assert_allclose(found.p, expected.pvalues, rtol=1e-5)
    np.testing.assert_allclose(np.column_stack([found.low, found.high]), expected.conf_int(0.1), rtol=1e-5)
    assert found.log_likelihood == pytest.approx(expected.llf, rel=1e-9)
    assert found.constant_log_likelihood == pytest.approx(expected.llnull, rel=1e-9)
    assert found.pseudo_r_squared == pytest.approx(expected.prsquared, rel=1e-8)
    assert found.rows == 32
    assert all(word in str(found) for word in ("GPA", "90% low", "pseudo R-squared"))
    assert found.to_dict()["names"] == found.names


def test_several_classes_have_the_summary_of_statsmodels(voters):
    X, y = voters
    found = LogisticRegression(C=np.inf, tol=1e-13).fit(X, y).summary()
    codes = np.unique(y, return_inverse=True)[1]
    expected = sm.MNLogit(codes, sm.add_constant(X)).fit(disp=0, method="newton", tol=1e-13)
    assert [one.title for one in found] == ["'b' against 'a'", "'c' against 'a'", "'d' against 'a'"]
    for k, one in enumerate(found):
        assert one.names == ["intercept", *X.columns]
        np.testing.assert_allclose(one.coefficient, expected.params.to_numpy()[:, k], rtol=1e-4)
        np.testing.assert_allclose(one.standard_error, expected.bse.to_numpy()[:, k], rtol=1e-4)
        np.testing.assert_allclose(one.p, expected.pvalues.to_numpy()[:, k], rtol=1e-2, atol=1e-12)
        assert one.log_likelihood == pytest.approx(expected.llf, rel=1e-8)
        assert one.constant_log_likelihood == pytest.approx(expected.llnull, rel=1e-8)


def test_weights_count_as_repetitions_in_the_summary(spector):
    X, y = spector
    times = np.resize([1, 2, 3], 32)
    weighted = LogisticRegression(C=np.inf, tol=1e-12).fit(X, y, times).summary()
    repeated = LogisticRegression(C=np.inf, tol=1e-12).fit(X.loc[X.index.repeat(times)], np.repeat(y, times))
    assert weighted.rows == times.sum()
    np.testing.assert_allclose(weighted.standard_error, repeated.summary().standard_error, rtol=1e-5)


def test_without_intercept_the_constant_model_guesses(spector):
    X, y = spector
    found = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12).fit(X, y).summary()
    expected = sm.Logit(y, X).fit(disp=0)
    assert found.names == ["GPA", "TUCE", "PSI"]
    np.testing.assert_allclose(found.standard_error, expected.bse, rtol=1e-5)
    assert found.constant_log_likelihood == pytest.approx(-32 * math.log(2), rel=1e-12)


def test_a_copy_of_a_column_shares_its_coefficient_and_standard_error(spector):
    X, y = spector
    alone = LogisticRegression(C=np.inf).fit(X, y).summary()
    with pytest.warns(RankWarning, match="'TWICE' = 2 'GPA'"):
        model = LogisticRegression(C=np.inf).fit(X.assign(TWICE=2.0 * X["GPA"]), y)
    found = model.summary()
    share = np.array([1.0, 0.2, 1.0, 1.0])  # a / 5 and 2 a / 5 are the shortest that predict as a does
    np.testing.assert_allclose(found.coefficient[:4], share * alone.coefficient, rtol=1e-5)
    np.testing.assert_allclose(found.standard_error[:4], share * alone.standard_error, rtol=1e-5)
    assert found.standard_error[4] == pytest.approx(0.4 * alone.standard_error[1])


def test_levels_that_add_up_to_one_are_named_and_measured_from_their_mean():
    random = np.random.default_rng(1)
    level = np.arange(90) % 3
    X = pd.DataFrame(np.eye(3)[level], columns=["red", "green", "blue"]).assign(x=random.normal(size=90))
    y = random.random(90) < 0.3 + 0.2 * level
    with pytest.warns(
        RankWarning, match="1 of 4 columns adds nothing to the others: 'blue' = - 'red' - 'green'"
    ):
        model = LogisticRegression(penalty=None).fit(X, y)
    found = model.summary()
    assert np.isfinite(found.standard_error).all()
    assert "have the shortest of all coefficients" in str(found)
    assert model.coef_[0, :3].sum() == pytest.approx(0.0, abs=1e-9)
    model.certificate_.verify(X, y)
    # The same with coding by deviations from the mean, whose table has full rank.
    coded = np.column_stack([X["red"] - X["blue"], X["green"] - X["blue"], X["x"]])
    full = LogisticRegression(penalty=None).fit(coded, y).summary()
    order = [0, 1, 2, 4]
    np.testing.assert_allclose(found.coefficient[order], full.coefficient, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.standard_error[order], full.standard_error, rtol=1e-4)


def test_three_classes_print_a_table_each():
    X, _ = load_iris(return_X_y=True)
    summary = LogisticRegression(C=np.inf).fit(X[50:, :2], np.digitize(X[50:, 2], [4.5, 5.2])).summary()
    text = str(summary)
    assert text.count("coefficient") == 2
    assert "1 against 0" in text
    assert repr(summary) == text


def test_a_summary_needs_a_fit_without_penalty(spector):
    with pytest.raises(InputError, match=r"Standard errors exist for fits without penalty \(C=inf\)"):
        LogisticRegression().fit(*spector).summary()
    with pytest.raises(InputError, match=r"confidence=1\.5 is outside 0 to 1"):
        LogisticRegression(C=np.inf).fit(*spector).summary(confidence=1.5)


# -- the same optimum as scikit-learn's ----------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 1: 0.5}], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_optimum_is_that_of_scikit_learn(classes, class_weight, C):
    X, y, weight = overlapping(classes)
    scale = X.std(axis=0)  # theirs needs columns of one scale to be exact
    options = {"C": C, "class_weight": class_weight}
    ours = LogisticRegression(**options, tol=1e-13).fit(X / scale, y, weight)
    theirs = Theirs(**options, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(X / scale, y, weight)
    largest = np.abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-6 * largest)
    # The intercepts of softmax are free up to a constant: what they say is what differs between classes.
    differences = [m.intercept_ - m.intercept_.mean() * (classes > 2) for m in (ours, theirs)]
    np.testing.assert_allclose(*differences, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X / scale), theirs.predict_proba(X / scale), atol=1e-6)
    assert ours.certificate_.converged


@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
@pytest.mark.parametrize("classes", [2, 3])
def test_absolute_values_reach_the_optimum_of_scikit_learn(classes, l1_ratio):
    X, y, _ = overlapping(classes)
    X = X / X.std(axis=0)
    options = {"C": 0.1, "l1_ratio": l1_ratio, "fit_intercept": False}
    ours = LogisticRegression(**options, tol=1e-10).fit(X, y)
    theirs = Theirs(**options, solver="saga", tol=1e-12, max_iter=100_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_array_equal(ours.coef_ == 0, theirs.coef_ == 0)
    assert ours.certificate_.converged


# -- probabilities -----------------------------------------------------------------------------------------


def with_coefficients(coef, intercept):
    """Return a model with these coefficients, fitted on whatever it takes."""
    classes = np.arange(max(len(coef), 2))
    model = LogisticRegression().fit(np.resize(classes, (12, 1)) * 1.0, np.resize(classes, 12))
    model.coef_, model.intercept_ = np.array(coef, dtype=float), np.array(intercept, dtype=float)
    return model


def test_probabilities_of_two_classes_worked_out_by_hand():
    model = with_coefficients([[2.0]], [-1.0])  # s = 2 x - 1
    rows = [[0.5], [1.0], [0.0], [-500.0]]
    expected = [0.5, 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1)), 0.0]
    np.testing.assert_allclose(model.predict_proba(rows)[:, 1], expected, rtol=1e-15)
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0, rtol=1e-15)
    assert model.predict(rows).tolist() == [0, 1, 0, 0]  # a tie goes to the first class
    assert model.decision_function(rows).tolist() == [0.0, 1.0, -1.0, -1001.0]
    # exp(-1001) is no float64, its logarithm is
    np.testing.assert_allclose(model.predict_log_proba(rows)[3], [0.0, -1001.0], atol=1e-300)


def test_probabilities_of_three_classes_worked_out_by_hand():
    model = with_coefficients([[0.0], [math.log(2)], [math.log(3)]], [0.0, 0.0, 0.0])
    np.testing.assert_allclose(model.predict_proba([[1.0], [0.0]]), [[1 / 6, 2 / 6, 3 / 6], [1 / 3] * 3])
    np.testing.assert_allclose(model.predict_log_proba([[1.0]]), np.log([[1 / 6, 2 / 6, 3 / 6]]))
    np.testing.assert_allclose(model.predict_log_proba([[2000.0]])[0, 0], -2000 * math.log(3), rtol=1e-15)
    assert model.predict([[1.0], [-1.0]]).tolist() == [2, 0]


def test_the_likelihood_is_the_sum_of_logarithms():
    model = with_coefficients([[2.0]], [-1.0])
    X, y = [[0.5], [1.0]], [1, 0]
    first, second = math.log(0.5), -math.log(1 + math.exp(1))
    assert model.log_likelihood(X, y) == pytest.approx(first + second, rel=1e-14)
    assert model.log_likelihood(X, y, [3.0, 0.5]) == pytest.approx(3 * first + 0.5 * second, rel=1e-14)


def test_the_likelihood_is_what_was_maximised(spector):
    X, y = spector
    model = LogisticRegression(C=np.inf).fit(X, y)
    assert model.log_likelihood(X, y) == pytest.approx(-32 * model.certificate_.objective, rel=1e-12)
    assert model.log_likelihood(X, y) == pytest.approx(model.summary().log_likelihood, rel=1e-12)


# -- kinds of tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_float32_stays_float32(classes):
    X, y, _ = overlapping(classes)
    model = LogisticRegression(C=0.1).fit(X.astype(np.float32), y)
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    assert model.predict_proba(X.astype(np.float32)).dtype == np.float32
    precise = LogisticRegression(C=0.1).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X.astype(np.float32)), precise.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, np.asfortranarray, pd.DataFrame, list])
def test_every_kind_of_table_has_the_same_model(kind):
    X, y, weight = overlapping(2)
    expected = LogisticRegression(tol=1e-12).fit(X, y, weight)
    model = LogisticRegression(tol=1e-12).fit(kind(X), y, weight)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.predict_proba(kind(X)), expected.predict_proba(X), atol=1e-8)


def test_shapes_are_those_of_scikit_learn():
    for classes, scores in ((2, 1), (3, 3)):
        X, y, _ = overlapping(classes)
        model = LogisticRegression().fit(X, y)
        assert model.coef_.shape == (scores, 4)
        assert model.intercept_.shape == (scores,)
        assert model.decision_function(X).shape == ((120,) if classes == 2 else (120, 3))
        assert model.n_iter_.shape == (1,)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("classes", [2, 3])
def test_sparse_coefficients_predict_and_verify_as_before(classes, kind):
    X, y, _ = overlapping(classes)
    X = kind(X)
    model = LogisticRegression().fit(X, y)
    dense, expected = model.coef_, model.predict_proba(X)
    assert sp.issparse(model.sparsify().coef_)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-12)
    model.certificate_.verify(X, y)
    np.testing.assert_array_equal(model.densify().densify().coef_, dense)


def test_elastic_net_needs_its_share():
    X, y, _ = overlapping(2)
    with pytest.raises(InputError, match="l1_ratio must be specified when penalty is elasticnet"):
        LogisticRegression(penalty="elasticnet", l1_ratio=None).fit(X, y)


def test_names_of_columns_are_kept(spector):
    model = LogisticRegression().fit(*spector)
    assert model.feature_names_in_.tolist() == ["GPA", "TUCE", "PSI"]


def test_columns_of_any_scale_converge_by_default():
    X, y = load_iris(return_X_y=True)
    scales = np.array([1e-6, 1.0, 1e4, 1e9])
    model = LogisticRegression(C=np.inf, max_iter=1000).fit(X[50:] * scales, y[50:])
    assert model.certificate_.converged
    np.testing.assert_allclose(
        model.predict_proba(X[50:] * scales),
        LogisticRegression(C=np.inf).fit(X[50:], y[50:]).predict_proba(X[50:]),
        atol=1e-2,
    )


# -- parameters -------------------------------------------------------------------------------------------

NO_EFFECT = {"dual": True, "intercept_scaling": 7.0, "verbose": 1}  # accepted for scikit-learn's sake


@pytest.mark.parametrize(
    ("base", "change"),
    [
        ({}, {"penalty": None}),
        ({}, {"penalty": "l1"}),
        ({"penalty": "elasticnet"}, {"l1_ratio": 0.7}),
        ({}, {"l1_ratio": 0.7}),
        ({}, {"C": 0.01}),
        ({"solver": "gd"}, {"tol": 0.1}),
        ({}, {"fit_intercept": False}),
        ({}, {"class_weight": "balanced"}),
        ({}, {"solver": "gd"}),
        ({"solver": "sgd", "max_iter": 2}, {"random_state": 7}),
        ({"solver": "gd", "max_iter": 2}, {"max_iter": 3}),
        ({"solver": "gd"}, {"time_limit": 1e-9}),
        ({}, {"callbacks": [after_one]}),
    ],
    ids=",".join,
)
@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
def test_every_parameter_changes_something(base, change):
    X, y, _ = overlapping(2)
    before, after = (LogisticRegression(**options).fit(X, y) for options in (base, base | change))
    assert not np.array_equal(before.coef_, after.coef_)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_warm_start_goes_on_from_the_last_fit(classes):
    X, y, _ = overlapping(classes)
    model = LogisticRegression(warm_start=True).fit(X, y)
    cold = model.n_iter_[0]
    assert model.fit(X, y).n_iter_[0] < cold
    assert LogisticRegression(warm_start=False).fit(X, y).fit(X, y).n_iter_[0] == cold


@pytest.mark.parametrize("name", NO_EFFECT)
def test_what_is_there_for_scikit_learns_sake_has_no_effect(name):
    X, y, _ = overlapping(2)
    model = LogisticRegression(**{name: NO_EFFECT[name]}).fit(X, y)
    np.testing.assert_array_equal(model.coef_, LogisticRegression().fit(X, y).coef_)


@pytest.mark.parametrize(
    ("parameters", "same"),
    [
        ({"penalty": "l2"}, {"l1_ratio": 0.0}),
        ({"penalty": "l1"}, {"l1_ratio": 1.0}),
        ({"penalty": "elasticnet", "l1_ratio": 0.3}, {"l1_ratio": 0.3}),
        ({"penalty": None}, {"C": np.inf}),
        ({"l1_ratio": None}, {}),
    ],
    ids=str,
)
def test_a_penalty_can_be_said_in_two_ways(parameters, same):
    X, y, _ = overlapping(2)
    one, two = (LogisticRegression(**{"C": 0.1, "tol": 1e-8} | p).fit(X, y) for p in (parameters, same))
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("solver", ["liblinear", "sag", "saga", "newton-cholesky", "lbfgs", "newton-cg"])
def test_names_of_scikit_learns_solvers_are_understood(solver, classes):
    X, y, _ = overlapping(classes)
    model = LogisticRegression(solver=solver).fit(X, y)
    assert model.certificate_.converged
    if solver == "newton-cholesky":
        assert model.solver_ == "Newton"


def test_a_limit_is_told_with_the_certificate():
    X, y, _ = overlapping(2)
    with pytest.warns(StoppedEarly, match="Stopped by max_iter=1 after 1 iteration") as caught:
        model = LogisticRegression(max_iter=1, tol=1e-12).fit(X, y)
    assert caught[0].filename == __file__
    assert caught[0].message.certificate == model.certificate_
    assert len(model.history_) == 1


def test_no_tolerance_at_all_means_as_good_as_it_gets():
    X, y, _ = overlapping(2)
    certificate = LogisticRegression(tol=0.0).fit(X, y).certificate_
    assert certificate.converged
    assert certificate.gap - certificate.rounding < 1e-14 * certificate.scale
    assert certificate.rounding < 1e-13 * certificate.scale


@pytest.mark.parametrize("classes", [2, 3])
def test_wide_tables_start_where_the_last_fit_ended(classes):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 50)), np.arange(20) % classes
    model = LogisticRegression(warm_start=True, tol=1e-10).fit(X, y)
    again = model.set_params(C=1.1).fit(X, y)
    alone = LogisticRegression(C=1.1, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(again.coef_, alone.coef_, atol=1e-4)
    assert again.certificate_.converged
