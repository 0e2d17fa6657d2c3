"""What a support vector machine cannot use is refused with a sentence; limits leave a model and a warning."""

import re
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from sixfold import SVC, kernels
from sixfold.budget import BudgetExhausted
from sixfold.errors import InputError, StoppedEarly
from sixfold.learners.svm import svc
from sixfold.learners.svm.support_vectors import SupportVectors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = np.where(X[:, 0] + RNG.normal(size=30) > 0, "yes", "no")
GRAM = X @ X.T


def refuses(sentence):
    return pytest.raises(InputError, match=re.escape(sentence))


# -- parameters ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"kernel": "rfb"}, "kernel='rfb' is not an option; did you mean 'rbf'?"),
        ({"kernel": 3}, "kernel=3 is not an option."),
        ({"gamma": 0.0}, "gamma=0.0 is out of range: a finite number above 0 is needed."),
        ({"gamma": -1}, "gamma=-1 is out of range"),
        ({"gamma": "scael"}, "gamma='scael' is not an option; did you mean 'scale'?"),
        ({"sigma": 0.0}, "sigma=0.0 is out of range: a finite number above 0 is needed."),
        ({"sigma": 1.0, "gamma": 2.0}, "both say how wide the kernel is"),
        ({"sigma": 1.0, "kernel": "linear"}, "sigma=1.0 is the width of kernel='rbf'"),
        ({"kernel": "poly", "degree": 1.5}, "degree=1.5 is of type float: a whole number"),
        ({"kernel": "poly", "coef0": np.nan}, "coef0=nan"),
        ({"C": -1.0}, "C=-1.0 is out of range: a number above 0 is needed."),
        ({"cache_size": 0}, "cache_size=0 is out of range: a finite number above 0 is needed."),
        ({"decision_function_shape": "ova"}, "decision_function_shape='ova' is not an option"),
        ({"multi_class": "ovr", "decision_function_shape": "ovo"}, "which multi_class='ovr' does not have."),
        ({"probability": "yes"}, "probability='yes' is of type str: True or False is needed."),
        ({"shrinking": 1}, "shrinking=1 is of type int: True or False is needed."),
        ({"break_ties": None}, "break_ties=None is of type NoneType: True or False is needed."),
        (
            {"max_iter": -2},
            "max_iter=-2 is out of range: a whole number that is at least 1 or None is needed.",
        ),
    ],
    ids=str,
)
def test_parameters_out_of_range_are_named(parameters, sentence):
    with refuses(sentence):
        SVC(**parameters).fit(X, Y)


def test_ties_of_pairs_cannot_be_broken():
    model = SVC(decision_function_shape="ovo", break_ties=True).fit(X, Y)
    with refuses("break_ties must be False when decision_function_shape is 'ovo'"):
        model.predict(X)


def test_what_scikit_learn_has_for_not_given_is_no_probability():
    assert not hasattr(SVC(probability="deprecated").fit(X, Y), "predict_proba")
    assert SVC(probability=np.True_).fit(X, Y).predict_proba(X).shape == (30, 2)


# -- kernel values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["precomputed", kernels.Precomputed()], ids=str)
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (GRAM[:, :20], "Precomputed matrix must be a square matrix. Input is a 30x20 matrix."),
        (sp.csr_array(GRAM), "Sparse precomputed kernels are not supported"),
        (np.where(np.eye(30, k=3) * np.arange(30) == 4, 9.0, GRAM), "X[1, 4] = 9 and X[4, 1] = "),
        (np.where(np.eye(30) > 0, np.nan, GRAM), "Input X contains NaN: 30 such values, the first in row 0"),
    ],
    ids=["not square", "sparse", "not symmetric", "nan"],
)
def test_what_is_no_gram_matrix_is_refused(kernel, values, sentence):
    with refuses(sentence):
        SVC(kernel=kernel).fit(values, Y)


def test_rounding_does_not_make_a_gram_matrix_lopsided():
    rounded = GRAM * (1 + 1e-13 * RNG.normal(size=GRAM.shape))
    np.testing.assert_allclose(
        SVC(kernel="precomputed").fit(rounded, Y).decision_function(GRAM),
        SVC(kernel="precomputed").fit(GRAM, Y).decision_function(GRAM),
        atol=1e-3,
    )
    SVC(kernel="precomputed").fit(GRAM.astype(np.float32), Y).certificate_.verify(GRAM.astype(np.float32), Y)


def test_the_worst_entry_of_a_large_matrix_is_found():
    large = np.eye(1200)
    large[700, 20] = 1e-3
    large[30, 1100] = 2e-3
    with refuses("X[30, 1100] = 0.002 and X[1100, 30] = 0."):
        SVC(kernel="precomputed").fit(large, np.arange(1200) % 2)


def test_kernel_values_for_other_rows_are_refused():
    model = SVC(kernel="precomputed").fit(GRAM, Y)
    with refuses("X has 20 features, but SVC is expecting 30 features as input"):
        model.predict(GRAM[:5, :20])


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda A, B: A, "returned an array of shape (8, 3) for tables of shapes (8, 3) and (8, 3)"),
        (lambda A, B: 1.0, "returned an array of shape ()"),
        (lambda A, B: "similar", "returned 'similar' of type str, not real numbers."),
        (lambda A, B: np.full((A.shape[0], B.shape[0]), np.nan), "is nan for row 0 and row 0"),
    ],
    ids=["wrong shape", "one number", "text", "nan"],
)
def test_a_function_that_is_no_kernel_is_refused(function, sentence):
    with refuses(sentence):
        SVC(kernel=function).fit(X, Y)


def test_values_whose_kernel_overflows_or_vanishes_are_refused():
    with refuses("so large that their squares"):
        SVC().fit(1e200 * X, Y)
    with refuses("The variance of X is 0.0 in float64, so gamma='scale' is inf"):
        SVC().fit(1e-200 * X, Y)
    with refuses("Divide the columns by their spread"):
        SVC(kernel="poly", degree=9, gamma=1.0).fit(1e20 * X, Y)


def test_an_altered_model_is_refused():
    model = SVC().fit(X, Y)
    model.n_support_ = model.n_support_ + 1
    with refuses("The internal representation of SVC was altered"):
        model.predict(X)


def test_probabilities_need_a_fit_that_learnt_them():
    model = SVC().fit(X, Y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as caught:
        model.predict_proba(X)
    assert "not available when probability=False" in str(caught.value.__cause__)
    model.probability = True
    with pytest.raises(NotFittedError, match="not available when fitted with probability=False"):
        model.predict_proba(X)


# -- limits --------------------------------------------------------------------------------------------------


def test_a_limit_keeps_the_best_model_and_says_what_to_do():
    with pytest.warns(StoppedEarly, match="Stopped by max_iter=3 after 3 iterations") as caught:
        model = SVC(max_iter=3).fit(X, Y)
    assert caught[0].filename == __file__
    assert "Scale the columns to a similar spread" in str(caught[0].message)
    assert issubclass(StoppedEarly, ConvergenceWarning)
    assert model.fit_status_ == 1
    assert model.n_iter_.tolist() == [3]
    assert not model.certificate_.converged
    model.certificate_.verify(X, Y)
    assert caught[0].message.certificate == model.certificate_


@pytest.mark.parametrize("kernel", ["poly", "precomputed"])
def test_kernel_values_that_leave_no_digits_are_named(kernel):
    table, labels = load_breast_cancer(return_X_y=True)
    if kernel == "precomputed":
        table = kernels.Polynomial(5, 1.0)(table)
        remedy = "choose a smaller C, or a larger tol"
    else:
        remedy = "scale the columns, for instance with StandardScaler, or choose a smaller degree"
    sentence = rf"Kernel values up to 9e\+36, times dual coefficients up to .*, {no_digits(remedy)}"
    with pytest.warns(StoppedEarly, match=sentence):
        SVC(kernel=kernel, degree=5, gamma=1.0).fit(table, labels)


def no_digits(remedy, tol="0.001"):
    return f"leave no digits for tol={tol}: {remedy}"


def test_a_hard_margin_that_is_lost_in_rounding_says_so():
    table, labels = load_iris(return_X_y=True)
    table = table[50:] * [1.0, 1e3, 1.0, 1e-3]
    with pytest.warns(StoppedEarly, match=no_digits("scale the columns")):
        SVC(C=np.inf, kernel="quadratic").fit(table, labels[50:])
    with pytest.warns(StoppedEarly, match="Scale the columns to a similar spread"):
        SVC(C=np.inf, gamma=1.0, max_iter=2).fit(X, Y)


@pytest.mark.parametrize(
    ("kernel", "remedy"),
    [
        ("linear", "scale the columns, for instance with StandardScaler, or choose a smaller C"),
        ("rbf", "choose a smaller C, or a larger tol"),
    ],
)
def test_no_digits_are_left_for_a_tolerance_of_0(kernel, remedy):
    for table in (X, sp.csr_array(X), 1e9 * X):
        with pytest.warns(StoppedEarly, match=no_digits(remedy, "0")):
            SVC(kernel=kernel, tol=0.0, max_iter=20).fit(table, Y)


def test_a_gap_that_rounding_accounts_for_meets_a_tolerance_of_0():
    for table in (X, sp.csr_array(X), 1e9 * X):
        certificate = SVC(tol=0.0).fit(table, Y).certificate_
        assert certificate.converged
        assert "optimal to machine precision" in str(certificate)


def test_no_digits_are_left_without_support_vectors():
    with pytest.warns(StoppedEarly, match="dual coefficients up to 0, leave no digits for tol=0"):
        model = SVC(tol=0.0, time_limit=1e-9).fit(X, Y)
    assert model.support_.size == 0


def hard_table(rows=400):
    """Return rows that take many iterations: columns of different sizes, classes that overlap."""
    rng = np.random.default_rng(1)
    table = rng.normal(size=(rows, 6)) * np.geomspace(1e-3, 1e3, 6)
    return table, rng.integers(0, 2, size=rows)


@pytest.mark.parametrize("classes", [2, 3])
def test_time_ends_a_fit_that_would_go_on(classes):
    table, labels = hard_table()
    labels = np.arange(labels.size) % classes
    with pytest.warns(StoppedEarly, match=re.escape("Stopped by time_limit=0.05 s")):
        model = SVC(kernel="linear", C=1e6, tol=1e-12, time_limit=0.05).fit(table, labels)
    model.certificate_.verify(table, labels)


@pytest.mark.parametrize("classes", [2, 3])
def test_ctrl_c_leaves_a_fitted_model(classes):
    table, labels = hard_table()
    labels = np.arange(labels.size) % classes
    model = SVC(kernel="linear", C=1e6, tol=1e-12)
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(table, labels)
    assert model.predict(table).shape == labels.shape
    model.certificate_.verify(table, labels)


@pytest.mark.parametrize("labels", [Y, np.arange(30) % 3], ids=["two", "three"])
def test_callbacks_hear_of_the_fit_and_may_end_it(labels):
    heard = []
    model = SVC(callbacks=[heard.append]).fit(X, labels)
    assert heard == model.history_
    assert heard[-1].objective == pytest.approx(model.certificate_.objective, rel=1e-9)
    assert heard[-1].gap == pytest.approx(model.certificate_.gap, abs=1e-9)
    with pytest.warns(StoppedEarly, match="Stopped by a callback"):
        SVC(callbacks=[lambda record: True], tol=1e-9, C=100.0).fit(*hard_table(2000))


@pytest.mark.parametrize(
    ("labels", "step"), [(Y, "round"), (np.arange(30) % 3, "binary SVM")], ids=["two", "three"]
)
def test_verbose_prints_progress(labels, step, capsys):
    quiet = SVC().fit(X, labels)
    assert capsys.readouterr().out == ""
    model = SVC(verbose=True).fit(X, labels)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"SVC: {step} 1, ")
    assert lines[-1].startswith(f"SVC: {step} {len(model.history_)}, ")
    np.testing.assert_array_equal(model.dual_coef_, quiet.dual_coef_)


def count_fits(monkeypatch):
    """Return a list that grows by the budget of every fit of binary SVMs."""
    made, fit = [], svc.fit_binary_svms

    def counted(*arguments):
        made.append(arguments[7])
        return fit(*arguments)

    monkeypatch.setattr(svc, "fit_binary_svms", counted)
    return made


@pytest.mark.parametrize("labels", [Y, np.arange(30) % 3], ids=["two", "three"])
def test_a_callback_that_ends_the_fit_ends_calibration_too(labels, monkeypatch):
    made = count_fits(monkeypatch)
    with pytest.warns(StoppedEarly) as caught:
        model = SVC(probability=True, tol=1e-12, callbacks=[lambda record: True]).fit(X, labels)
    assert len(made) == 1
    assert any("before the cross-validation of probability=True" in str(one.message) for one in caught)
    assert np.isfinite(model.predict_proba(X)).all()
    # One that only listens does not.
    SVC(probability=True, callbacks=[lambda record: None]).fit(X, labels)
    assert len(made) == 7


def test_a_limit_of_iterations_leaves_calibration_alone(monkeypatch):
    made = count_fits(monkeypatch)
    with pytest.warns(StoppedEarly, match="Stopped by max_iter=3") as caught:
        SVC(probability=True, max_iter=3).fit(X, Y)
    assert len(made) == 6
    assert len(caught) == 1


def test_ctrl_c_in_calibration_ends_the_training_that_is_under_way(monkeypatch):
    heard, fit = [], svc.fit_binary_svms

    def interrupted(*arguments):
        if heard:
            signal.raise_signal(signal.SIGINT)
        svms = fit(*arguments)
        heard.append(arguments[7].interrupted)
        return svms

    monkeypatch.setattr(svc, "fit_binary_svms", interrupted)
    model = SVC(probability=True)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert heard == [False, True]
    assert model.predict_proba(X).shape == (30, 2)


@pytest.mark.parametrize("little", [0, 1 << 24])
@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba", "explain"])
def test_ctrl_c_ends_an_answer(method, little, monkeypatch):
    model = SVC(probability=True).fit(X, Y)
    decisions, heard = SupportVectors.decisions, []

    def interrupted(scores, rows, budget):
        signal.raise_signal(signal.SIGINT)
        heard.append(budget.interrupted)
        return decisions(scores, rows, budget)

    monkeypatch.setattr(svc, "LITTLE_WORK", little)
    monkeypatch.setattr(SupportVectors, "decisions", interrupted)
    with pytest.raises(KeyboardInterrupt):
        getattr(model, method)(X[0] if method == "explain" else X)
    assert heard == ([] if little else [True])  # native loops hear of it only where they take long
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_calibration_that_time_ends_says_so(monkeypatch):
    from sixfold.learners.svm import svc as calibration

    def too_late(*_):
        raise BudgetExhausted

    monkeypatch.setattr(calibration, "decisions_of", too_late)
    with pytest.warns(StoppedEarly, match="probabilities come from part of the rows, or from none") as caught:
        model = SVC(probability=True).fit(X, Y)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


def test_a_function_whose_values_depend_on_the_order_of_rows_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"kernel=Called\(<lambda>\) is .* for rows 0 and .* K\(x, z\) = K\(z, x\)"
    ):
        SVC(kernel=lambda a, b: a @ b.T + np.arange(len(a))[:, None]).fit(np.eye(4), [0, 1, 0, 1])


def test_a_kind_of_kernel_is_not_a_kernel() -> None:
    with pytest.raises(InputError, match="kernel=RBF is a kind of kernel"):
        SVC(kernel=kernels.RBF).fit(np.eye(4), [0, 1, 0, 1])


def test_a_function_that_fails_is_told_what_it_was_called_with():
    def of_two_rows(a, b):
        return float(a @ b)

    with refuses("kernel=of_two_rows failed for tables of shapes (8, 3) and (8, 3)"):
        SVC(kernel=of_two_rows).fit(X, Y)
    with refuses("has to return a number for each pair of their rows"):
        SVC(kernel=lambda a: a @ a.T).fit(X, Y)


def test_a_function_of_texts_has_to_be_symmetric():
    def lengths(A, B):
        return np.array([[len(a) * len(b) + 0.5 * (len(a) > len(b)) for b in B] for a in A], dtype=float)

    texts = ["a", "ab", "abc", "abcd"]
    with refuses("kernel=Called(lengths) is 2 for rows 0 and 1, but 2.5 for rows 1 and 0. A kernel has"):
        SVC(kernel=lengths).fit(texts, [0, 0, 1, 1])
