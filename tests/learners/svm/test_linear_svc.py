"""LinearSVC: the optimum of scikit-learn's LinearSVC and SVC where they state the same problem."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as Theirs

from sixfold import LinearSVC
from sixfold.errors import IncompatibleError


def after_one(record):
    """Stop a fit after its first iteration."""
    return record.iteration == 1


def overlapping(classes=2, rows=80, seed=1):
    random = np.random.default_rng(seed)
    X = random.normal(loc=[0.0, 1.0, -2.0], size=(rows, 3))
    slopes = np.array([[1.5, -1.0, 0.2], [-1.0, 0.3, 0.8], [0.3, 0.9, -1.2]])[:, :classes]
    y = (X @ slopes - (X @ slopes).mean(axis=0) + random.gumbel(size=(rows, classes))).argmax(axis=1)
    return X, np.array(["ash", "birch", "oak"])[y], random.uniform(0.2, 2.0, size=rows)


def objective(model, X, y, weight, C, loss, penalty="l2"):
    """Return penalty(w) + C sum_i weight_i loss_i from the definition, over all classes."""
    classes = np.unique(y)
    signs = np.where(y[:, None] == (classes[1:] if classes.size == 2 else classes), 1.0, -1.0)
    inside = np.maximum(0.0, 1.0 - signs * (X @ model.coef_.T + model.intercept_))
    size = np.abs(model.coef_).sum() if penalty == "l1" else 0.5 * np.square(model.coef_).sum()
    return size + C * (weight[:, None] * inside ** (1 if loss == "hinge" else 2)).sum()


# -- the same problems as scikit-learn's -----------------------------------------------------------------


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"ash": 3.0}], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_squared_hinge_without_intercept_is_the_problem_of_liblinear(classes, class_weight, C):
    X, y, weight = overlapping(classes)
    options = {"C": C, "fit_intercept": False}
    ours = LinearSVC(**options, class_weight=class_weight, tol=1e-13).fit(X, y, weight)
    # LIBLINEAR forgets the weights of the classes that are "the rest"; weights of rows it keeps.
    if class_weight == "balanced":
        totals = {label: weight[y == label].sum() for label in np.unique(y)}
        class_weight = {label: weight.sum() / (classes * total) for label, total in totals.items()}
    if class_weight is not None:
        weight = weight * [class_weight.get(label, 1.0) for label in y]
    theirs = Theirs(**options, dual=False, tol=1e-11, max_iter=100_000).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-6)
    assert ours.intercept_.tolist() == [0.0] * (1 if classes == 2 else 3)
    assert ours.certificate_.converged


@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_hinge_is_the_problem_of_svc(C, weighted):
    X, y, weight = overlapping()
    weight = weight if weighted else np.ones_like(weight)
    ours = LinearSVC(loss="hinge", C=C, tol=1e-9).fit(X, y, weight)
    theirs = SVC(kernel="linear", C=C, tol=1e-9).fit(X, y, weight)
    found, best = (objective(model, X, y, weight, C, "hinge") for model in (ours, theirs))
    assert best * (1 - 1e-5) <= found <= best * (1 + 1e-9)  # theirs stops at a slope
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    assert ours.margin_ == pytest.approx(1 / np.linalg.norm(theirs.coef_), rel=1e-3)
    assert set(ours.support_) == set(theirs.support_)


@pytest.mark.parametrize("classes", [2, 3])
def test_absolute_values_with_squared_hinge_are_the_problem_of_liblinear(classes):
    X, y, weight = overlapping(classes)
    options = {"C": 0.02, "penalty": "l1", "fit_intercept": False}
    ours = LinearSVC(**options, tol=1e-10).fit(X, y, weight)
    theirs = Theirs(**options, dual=False, tol=1e-10, max_iter=100_000).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert (ours.coef_ == 0).any()
    np.testing.assert_array_equal(ours.coef_ == 0, theirs.coef_ == 0)


# -- what the certificate and the attributes say -----------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "penalty", "classes"),
    [
        ("squared_hinge", "l2", 2),
        ("squared_hinge", "l2", 3),
        ("squared_hinge", "l1", 2),
        ("hinge", "l2", 2),
        ("hinge", "l2", 3),
    ],
)
def test_the_objective_is_the_documented_one_divided(loss, penalty, classes):
    X, y, weight = overlapping(classes)
    model = LinearSVC(loss=loss, penalty=penalty, C=0.7).fit(X, y, weight)
    documented = objective(model, X, y, weight, 0.7, loss, penalty)
    divided = documented / (0.7 * weight.sum() * (1 if loss == "hinge" else 2))
    assert model.certificate_.objective == pytest.approx(divided, rel=1e-9)
    assert model.certificate_.converged


def test_the_margin_is_the_distance_to_the_lines():
    X, y, _ = overlapping()
    model = LinearSVC().fit(X, y)
    assert isinstance(model.margin_, float)
    # One margin from the plane along w, the score is 1.
    normal = model.coef_[0] / np.linalg.norm(model.coef_)
    foot = X[0] - model.decision_function(X[:1])[0] * model.margin_ * normal
    np.testing.assert_allclose(
        model.decision_function([foot, foot + model.margin_ * normal]), [0, 1], atol=1e-12
    )
    X, y, _ = overlapping(3)
    model = LinearSVC().fit(X, y)
    np.testing.assert_allclose(model.margin_, 1 / np.linalg.norm(model.coef_, axis=1))


def test_the_widest_margin_of_two_points_worked_out_by_hand():
    # |w| = 2 / distance for two points at distance 2 sqrt(2), if C is large enough.
    model = LinearSVC(loss="hinge", C=100.0, tol=1e-10).fit([[0.0, 0.0], [2.0, 2.0]], [0, 1])
    np.testing.assert_allclose(model.coef_, [[0.5, 0.5]], atol=1e-6)
    assert model.intercept_[0] == pytest.approx(-1.0, abs=1e-6)
    assert model.margin_ == pytest.approx(np.sqrt(2.0), abs=1e-6)
    assert model.support_.tolist() == [0, 1]


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_rows_that_are_no_support_do_not_matter(loss):
    X, y, weight = overlapping()
    weight[5] = 0.0
    model = LinearSVC(loss=loss, C=5.0, tol=1e-10).fit(X, y, weight)
    kept = model.support_
    assert 5 not in kept
    assert 2 < kept.size < 80
    # C counts a sum over the rows, so that leaving rows out leaves the rest of the problem as it was.
    again = LinearSVC(loss=loss, C=5.0, tol=1e-10).fit(X[kept], y[kept], weight[kept])
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-3, atol=1e-4)


def test_there_is_one_list_of_support_a_class():
    X, y, _ = overlapping(3)
    model = LinearSVC().fit(X, y)
    signs = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    inside = signs * model.decision_function(X) < 1.0
    assert [rows.tolist() for rows in model.support_] == [np.flatnonzero(k).tolist() for k in inside.T]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_sparse_and_float32_tables_have_the_same_model(loss, classes):
    X, y, weight = overlapping(classes)
    expected = LinearSVC(loss=loss, tol=1e-9).fit(X, y, weight)
    sparse = LinearSVC(loss=loss, tol=1e-9).fit(sp.csr_array(X), y, weight)
    np.testing.assert_allclose(sparse.coef_, expected.coef_, rtol=1e-3, atol=1e-4)
    short = LinearSVC(loss=loss).fit(X.astype(np.float32), y, weight)
    assert short.coef_.dtype == np.float32
    np.testing.assert_allclose(short.coef_, expected.coef_, rtol=1e-2, atol=1e-2)


# -- parameters -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "change"),
    [
        ({}, {"loss": "hinge"}),
        ({}, {"penalty": "l1"}),
        ({}, {"C": 0.01}),
        ({"solver": "gd"}, {"tol": 0.3}),
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
    X, y, _ = overlapping()
    before, after = (LinearSVC(**options).fit(X, y) for options in (base, base | change))
    assert not np.array_equal(before.coef_, after.coef_)


@pytest.mark.parametrize("option", [{"dual": False}, {"intercept_scaling": 9.0}, {"verbose": 1}], ids=str)
def test_what_is_there_for_scikit_learns_sake_has_no_effect(option):
    X, y, _ = overlapping()
    np.testing.assert_array_equal(LinearSVC(**option).fit(X, y).coef_, LinearSVC().fit(X, y).coef_)


def test_hinge_with_absolute_values_says_what_to_use_instead():
    X, y, _ = overlapping()
    with pytest.raises(
        IncompatibleError, match="Use loss='squared_hinge', or one of the solvers 'gd', 'sgd'"
    ):
        LinearSVC(loss="hinge", penalty="l1").fit(X, y)


@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
def test_hinge_with_absolute_values_can_be_approached():
    X, y, _ = overlapping()
    model = LinearSVC(loss="hinge", penalty="l1", solver="gd", max_iter=200).fit(X, y)
    assert model.score(X, y) > 0.6
