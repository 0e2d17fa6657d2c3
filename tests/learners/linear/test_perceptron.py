"""The perceptron: both forms by hand, why it ends or does not, and every parameter changes something."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.linear_model import Perceptron as Theirs

from sixfold import Perceptron
from sixfold.errors import CertificateError, InputError, StoppedEarly

CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
AND = np.array([0, 0, 0, 1])
XOR = np.array([0, 1, 1, 0])


def clouds(gap, rows=80, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    return rng.normal(size=(rows, columns)) + gap * y[:, None], y


def textbook(X, signs, epochs, eta=1.0, form="signed"):
    """Return w, b and the number of mistakes, row after row as the texts write it."""
    w, b, mistakes = np.zeros(X.shape[1]), 0.0, 0
    for _ in range(epochs):
        for x, y in zip(X, signs, strict=True):
            score = w @ x + b
            error = y * (y * score <= 0) if form == "signed" else (y > 0) * 1.0 - (score > 0) * 1.0
            mistakes += error != 0
            w, b = w + eta * error * x, b + eta * error
    return w, b, mistakes


@pytest.mark.parametrize("form", ["signed", "binary"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_epochs_are_the_textbooks(form, kind):
    X, y = clouds(1.0)
    w, b, mistakes = textbook(X, 2.0 * y - 1.0, 3, 0.5, form)
    model = Perceptron(form=form, shuffle=False, max_iter=3, tol=None, eta0=0.5).fit(kind(X), y)
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-12)
    np.testing.assert_allclose(model.intercept_[0], b, rtol=1e-12)
    assert model.mistakes_ == mistakes
    assert model.n_iter_ == 3


@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
def test_the_forms_differ_for_a_row_on_the_plane():
    # The first row scores 0 at the start: wrong in the signed form, of class 0 in the binary one.
    X, y = np.array([[1.0], [-1.0]]), np.array([0, 1])
    signed, binary = (
        Perceptron(form=form, shuffle=False, max_iter=1).fit(X, y) for form in ("signed", "binary")
    )
    assert (signed.coef_[0, 0], signed.intercept_[0]) == (-2.0, 0.0)
    assert signed.mistakes_ == 2
    assert (binary.coef_[0, 0], binary.intercept_[0]) == (-1.0, 1.0)
    assert binary.mistakes_ == 1


def test_separable_classes_are_separated_within_the_bound_on_mistakes():
    X, y = clouds(6.0)
    model = Perceptron().fit(X, y)
    certificate = model.certificate_
    assert certificate.kind == "separating plane"
    assert certificate.converged
    assert (model.predict(X) == y).all()
    plane = np.append(model.coef_[0], model.intercept_[0])
    rows = np.column_stack([X, np.ones(len(y))])
    margin = ((2 * y - 1) * (rows @ plane)).min() / np.linalg.norm(plane)
    assert certificate.details["margin"] == pytest.approx([margin])
    assert model.mistakes_ <= np.square(rows).sum(axis=1).max() / margin**2
    assert model.history_[-1].objective == 0.0
    assert model.proof_ is None
    assert "mistakes from a zero start" in str(certificate)
    certificate.verify(X, y)


def test_exclusive_or_ends_with_the_proof():
    model = Perceptron().fit(CORNERS, XOR)
    proof = model.proof_
    assert model.certificate_.kind == "not separable"
    signs = 2.0 * XOR[proof.rows] - 1.0
    assert proof.weights.sum() == pytest.approx(1.0)
    assert (proof.weights > 0).all()
    # The same mixture on both sides: it is in the hulls of both classes.
    np.testing.assert_allclose((proof.weights * signs) @ CORNERS[proof.rows], 0.0, atol=1e-12)
    assert (proof.weights * signs).sum() == pytest.approx(0.0, abs=1e-12)
    assert "no plane separates the classes" in str(model.certificate_)
    model.certificate_.verify(CORNERS, XOR)


def test_a_forged_proof_is_refused():
    model = Perceptron().fit(CORNERS, XOR)
    model.proof_.weights[:] = [0.4, 0.2, 0.2, 0.2]
    with pytest.raises(CertificateError, match="do not span a point"):
        model.certificate_.verify(CORNERS, XOR)


def test_a_changed_model_is_refused():
    X, y = clouds(6.0)
    model = Perceptron().fit(X, y)
    model.coef_ = model.coef_ * [[1.0, 1.01, 1.0]]
    with pytest.raises(CertificateError, match="the margin is"):
        model.certificate_.verify(X, y)


def test_separable_but_not_found_is_told_apart_from_not_separable():
    X, y = clouds(5.0, rows=400, seed=3)
    with pytest.warns(StoppedEarly, match="a plane separates the classes, but these epochs did not find it"):
        model = Perceptron(max_iter=1, shuffle=False, tol=None).fit(X[np.argsort(y)], np.sort(y))
    assert model.certificate_.kind == "unfinished plane"  # it has rows on its wrong side
    assert not model.certificate_.converged
    model.certificate_.verify(X[np.argsort(y)], np.sort(y))
    with pytest.raises(CertificateError, match="kind"):
        replace(model.certificate_, kind="separating plane").verify(X[np.argsort(y)], np.sort(y))


def test_each_class_of_three_has_its_own_plane_or_proof():
    X, y = load_iris(return_X_y=True)
    model = Perceptron(max_iter=30).fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.proof_[0] is None  # setosa
    assert model.proof_[1] is not None  # versicolor is between the others
    model.certificate_.verify(X, y)
    assert model.score(X, y) > 0.6


def test_average_error_ends_the_epochs():
    X, y = clouds(1.0, rows=500)
    model = Perceptron(max_error=0.45).fit(X, y)
    assert model.n_iter_ == 1
    assert model.history_[-1].objective <= 0.45


def test_no_gain_ends_the_epochs_where_no_plane_separates():
    X, y = clouds(0.2, rows=300)
    model = Perceptron(tol=0.5, n_iter_no_change=3, max_iter=100).fit(X, y)
    assert model.n_iter_ == 4


def test_no_gain_does_not_end_the_epochs_where_a_plane_is_there_to_be_found():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    model = Perceptron(tol=10.0, n_iter_no_change=1).fit(X, [0, 0, 0, 1])
    assert model.n_iter_ > 2
    assert model.certificate_.converged


def test_a_few_rows_of_many_prove_that_no_plane_separates():
    X, y = clouds(0.2, rows=3000)
    model = Perceptron(max_iter=2, tol=None).fit(X, y)
    assert model.certificate_.kind == "not separable"
    signs = 2.0 * y[model.proof_.rows] - 1.0
    np.testing.assert_allclose((model.proof_.weights * signs) @ X[model.proof_.rows], 0.0, atol=1e-12)
    model.certificate_.verify(X, y)


def test_rows_that_are_held_out_decide_with_early_stopping():
    X, y = clouds(1.5, rows=400)
    model = Perceptron(early_stopping=True, validation_fraction=0.25, n_iter_no_change=2).fit(X, y)
    assert 2 < model.n_iter_ < 200
    with pytest.raises(InputError, match="holds out none"):
        Perceptron(early_stopping=True, validation_fraction=0.01).fit(CORNERS, XOR)


@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
def test_averaged_weights_are_the_mean_over_all_updates():
    X, y = clouds(1.0, rows=30)
    signs, w, b, total = 2.0 * y - 1.0, np.zeros(3), 0.0, np.zeros(4)
    for x, sign in zip(X, signs, strict=True):
        if sign * (w @ x + b) <= 0:
            w, b = w + sign * x, b + sign
        total += np.append(w, b)
    model = Perceptron(average=True, shuffle=False, max_iter=1, tol=None).fit(X, y)
    np.testing.assert_allclose(np.append(model.coef_[0], model.intercept_[0]), total / 30, rtol=1e-12)


def test_partial_fit_goes_on_where_the_last_call_ended():
    X, y = clouds(1.0)
    w, b, mistakes = textbook(X, 2.0 * y - 1.0, 2)
    model = Perceptron(shuffle=False)
    for rows in (slice(0, 30), slice(30, None), slice(0, 30), slice(30, None)):
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-12)
    np.testing.assert_allclose(model.intercept_[0], b, rtol=1e-12)
    assert model.mistakes_ == mistakes
    model.certificate_.verify(X[30:], y[30:])


def test_partial_fit_wants_all_classes_first():
    with pytest.raises(InputError, match="classes must be passed on the first call"):
        Perceptron().partial_fit(CORNERS, AND)
    model = Perceptron().partial_fit(CORNERS, AND, classes=[0, 1, 2])
    with pytest.raises(InputError, match="none of the classes"):
        model.partial_fit(CORNERS, [0, 1, 2, 3])
    with pytest.raises(InputError, match="differ from those of the first call"):
        model.partial_fit(CORNERS, AND, classes=[0, 1])


def test_two_epochs_are_those_of_scikit_learn():
    X, y = clouds(1.0)
    ours, theirs = (kind(shuffle=False, max_iter=2, tol=None).fit(X, y) for kind in (Perceptron, Theirs))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-12)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-12)


def test_a_start_may_be_given_kept_or_random():
    X, y = clouds(1.0)
    once = Perceptron(shuffle=False, max_iter=2, tol=None).fit(X, y)
    given = Perceptron(shuffle=False, max_iter=2, tol=None).fit(
        X, y, coef_init=once.coef_, intercept_init=once.intercept_
    )
    kept = Perceptron(shuffle=False, max_iter=2, tol=None, warm_start=True).fit(X, y).fit(X, y)
    np.testing.assert_allclose(kept.coef_, given.coef_, rtol=1e-12)
    assert not np.allclose(given.coef_, once.coef_)
    scattered = Perceptron(start="random", shuffle=False, max_iter=2, tol=None).fit(X, y)
    assert not np.array_equal(scattered.coef_, once.coef_)
    with pytest.raises(InputError, match="coef_init has shape"):
        Perceptron().fit(X, y, coef_init=[1.0])


@pytest.mark.parametrize(
    "changes",
    [
        {"penalty": "l2", "alpha": 0.1},
        {"penalty": "l1", "alpha": 0.1},
        {"penalty": "elasticnet", "alpha": 0.1, "l1_ratio": 0.5},
        {"fit_intercept": False},
        {"max_iter": 1},
        {"shuffle": False},
        {"eta0": 0.1, "penalty": "l2", "alpha": 0.1},
        {"random_state": 1},
        {"class_weight": {0: 3.0}},
        {"learning_rate": "decay", "decay": 0.1},
        {"learning_rate": "invscaling", "power_t": 0.9},
        {"average": True},
    ],
)
def test_every_parameter_changes_the_model(changes):
    X, y = clouds(0.5)
    plain = Perceptron(max_iter=5, tol=None).fit(X, y)
    assert not np.array_equal(
        Perceptron(**{"max_iter": 5, "tol": None, **changes}).fit(X, y).coef_, plain.coef_
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"form": "sined"}, "did you mean 'signed'"),
        ({"start": "one"}, "start='one' is not an option"),
        ({"eta0": 0.0}, "eta0=0.0 is out of range"),
        ({"max_error": -1}, "max_error=-1 is out of range"),
        ({"validation_fraction": 1.5}, "a share between 0 and 1 is needed"),
        ({"tol": "small"}, "tol='small' is of type str"),
        ({"learning_rate": "fast"}, "learning_rate='fast' is not an option"),
    ],
)
def test_bad_parameters_are_refused(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        Perceptron(**changes).fit(CORNERS, AND)


@pytest.mark.parametrize(("eta0", "dtype"), [(1e308, np.float64), (1e200, np.float32)])
def test_steps_that_overflow_are_refused(eta0, dtype):
    # The weights were infinite, and the plane "optimal to machine precision".
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)).astype(dtype)
    y = (X[:, 0] + rng.normal(size=50) > 0).astype(int)
    with pytest.raises(InputError, match="makes weights larger than the numbers of type float"):
        Perceptron(eta0=eta0).fit(X, y)


def test_whether_a_plane_separates_is_found_out_once(monkeypatch):
    from sklearn.datasets import load_breast_cancer

    from sixfold.learners.linear import separability

    asked = []
    found = separability.settle
    monkeypatch.setattr(separability, "settle", lambda *given: asked.append(given[-1]) or found(*given))
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    with pytest.warns(StoppedEarly):
        model = Perceptron(max_iter=50).fit(X[:364], y[:364])
    assert model.certificate_.kind == "unfinished plane"
    assert asked == [[0]]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_plane_that_is_near_is_found_by_going_on_with_the_epochs(kind, classes, monkeypatch):
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(100, 150))
    y = np.argmax(X[:, :classes] + rng.gumbel(size=(100, classes)), axis=1)
    whole = Perceptron(max_iter=1000, tol=None).fit(kind(X), y)
    assert whole.certificate_.kind == "separating plane"
    epochs = whole.n_iter_ - 2  # the last epoch makes no mistake, and the one before makes some
    monkeypatch.setattr("sixfold.learners.linear.separability.separate", None)  # the long search
    monkeypatch.setattr("sixfold.learners.linear.separability.settle", lambda *arguments: {})
    with pytest.warns(StoppedEarly):
        model = Perceptron(max_iter=epochs, tol=None).fit(kind(X), y)
    assert model.certificate_.kind == "unfinished plane"
    assert any("a plane separates" in note for note in model.certificate_.notes)
    model.certificate_.verify(kind(X), y)
    monkeypatch.setattr(Perceptron, "_go_on", lambda *arguments: None)
    monkeypatch.setattr(
        "sixfold.learners.linear.perceptron.certify_planes", lambda *arguments: (None, [None])
    )
    plain = Perceptron(max_iter=epochs, tol=None)
    with pytest.raises(AttributeError):  # without a certificate
        plain.fit(kind(X), y)
    np.testing.assert_array_equal(model.coef_.T, plain._state.w)  # not those of later epochs
