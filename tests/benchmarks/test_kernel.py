"""The judge of kernel SVMs on objectives that are known, and the peers on tiny data."""

import numpy as np
import pytest
from sklearn.svm import SVC

from benchmarks.kernel import tasks
from benchmarks.kernel.cases import (
    CASES,
    already_fitted,
    fit,
    fit_and_predict,
    fitted_svm,
    minus_log_dual_if_published,
    predict,
    share_of_mislabelled,
    sklearn,
    svc,
)
from benchmarks.kernel.tasks import (
    FittedSVM,
    SVMTask,
    cancer,
    dual_objective,
    fashion,
    heart,
    iris,
    minus_log_dual,
    scale,
    share_mislabelled,
    two_classes,
)
from benchmarks.runner import MissingDataError

# Rows 0 and 1 of kernel exp(-log(2) 1^2) = 1/2 with each other.
PAIR = SVMTask(
    np.array([[0.0], [1.0]]), np.array([0, 1]), 10.0, np.log(2.0), np.array([[0.2], [0.9]]), [0, 1]
)


def fitted(support, coefficients, intercept):
    return FittedSVM(np.array(support), np.array(coefficients, dtype=float), np.array(intercept, dtype=float))


def test_the_dual_objective_of_two_rows():
    # By hand: a = 2 each maximises 2 a - a^2 (2 - 2 / 2) / 2, which is 2 there.
    assert dual_objective(PAIR, fitted([0, 1], [[-2, 2]], [0])) == pytest.approx(2.0, rel=1e-14)
    assert dual_objective(PAIR, fitted([0, 1], [[-1, 1]], [0])) == pytest.approx(1.5, rel=1e-14)
    assert dual_objective(PAIR, fitted([1, 0], [[2, -2]], [0])) == pytest.approx(2.0, rel=1e-14)


def test_coefficients_above_their_bound_gain_nothing():
    task = PAIR._replace(C=1.0)
    assert dual_objective(task, fitted([0, 1], [[-2, 2]], [0])) == pytest.approx(1.5, rel=1e-14)


def test_a_broken_constraint_costs_what_it_is_worth():
    # 3 - (1 - 2 + 4) / 2 = 1.5 without the price.
    assert dual_objective(PAIR, fitted([0, 1], [[-1, 2]], [0.25])) == pytest.approx(1.25, rel=1e-14)


def test_a_share_of_the_objective_is_a_difference_of_errors():
    best, short = fitted([0, 1], [[-2, 2]], [0]), fitted([0, 1], [[-1.98, 1.98]], [0])
    # 1.98 loses (0.02)^2 / 2 of 2.
    assert minus_log_dual(PAIR, short) - minus_log_dual(PAIR, best) == pytest.approx(1e-4, rel=1e-3)


def test_nothing_is_worse_than_no_coefficients():
    assert minus_log_dual(PAIR, fitted([0, 1], [[0, 0]], [0])) > 700


def gram(X, gamma):
    return np.exp(-gamma * np.square(X[:, None] - X[None]).sum(axis=2))


def test_the_objectives_of_pairs_of_classes_add_up():
    task = iris(quick=True)
    model = fit(sklearn(task), task)
    total = 0.0
    for i, j in ((0, 1), (0, 2), (1, 2)):
        some = np.isin(task.y, (i, j))
        pair = SVC(C=task.C, gamma=task.gamma).fit(task.X[some], task.y[some])
        a = pair.dual_coef_[0]
        total += np.abs(a).sum() - a @ gram(pair.support_vectors_, task.gamma) @ a / 2
    assert dual_objective(task, fitted_svm(model)) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("make", [iris, cancer])
def test_labels_are_those_of_the_votes(make):
    task = make(quick=True)
    predicted = fit_and_predict(sklearn(task), task)
    assert share_of_mislabelled(task, predicted) == 0.0
    wrong = predicted.values.copy()
    wrong[:15] = (wrong[:15] + 1) % (task.y.max() + 1)
    assert share_mislabelled(task, fitted_svm(predicted.model), wrong) == 15 / len(wrong)


def test_a_model_fitted_before_only_predicts():
    task = iris(quick=True)
    job = already_fitted(sklearn, task)
    assert share_of_mislabelled(task, predict(job, task)) == 0.0
    assert predict(job, task).model is job.estimator


@pytest.mark.parametrize(("dtype", "digits"), [(np.float64, 1e-6), (np.float32, 1e-5)])
def test_intelex_reaches_the_objective_of_scikit_learn(dtype, digits):
    pytest.importorskip("sklearnex")
    task = two_classes(1.0, quick=True)
    theirs, peer = (
        fitted_svm(fit(prepare(task), task))
        for prepare in (sklearn, lambda t: svc("sklearnex.svm", dtype, t))
    )
    assert minus_log_dual(task, peer) == pytest.approx(minus_log_dual(task, theirs), abs=digits)


def test_gamma_is_that_of_scale():
    task = two_classes(1.0, quick=True)
    assert scale(task.X) == SVC(gamma="scale").fit(task.X, task.y)._gamma
    single = task.X.astype(np.float32)
    assert scale(single) == scale(single.astype(np.float64))


def test_a_model_with_other_accuracy_than_the_published_one_is_no_answer():
    task = iris(quick=True)
    model = fit(sklearn(task), task)
    right = float(np.mean(model.predict(task.Q) == task.truth))
    found = [
        minus_log_dual_if_published(task._replace(published=p), model) for p in (None, right, right - 0.01)
    ]
    assert found[0] == found[1] == minus_log_dual(task, fitted_svm(model))
    assert found[2] == np.inf


@pytest.mark.parametrize("make", [lambda quick: two_classes(1.0, quick), iris, cancer])
def test_quick_tasks_are_small(make):
    task = make(True)
    assert len(task.X) == len(task.y) <= 600
    assert len(task.Q) == len(task.truth)


def test_images_have_pixels_up_to_1():
    try:
        task = fashion(10_000, 2_000, quick=True)
    except MissingDataError:
        pytest.skip("Fashion-MNIST is not on this machine")
    assert task.X.dtype == task.Q.dtype == np.float32
    assert (task.X.min(), task.X.max()) == (0.0, 1.0)
    assert sorted(set(task.y.tolist())) == list(range(10))


def test_without_heart_scale_the_case_has_no_data(monkeypatch, tmp_path):
    monkeypatch.setattr(tasks, "HEART", tmp_path / "heart_scale")
    with pytest.raises(MissingDataError, match="heart_scale"):
        heart(quick=True)


def test_heart_scale_has_its_published_objective():
    try:
        task = heart(quick=True)
    except MissingDataError:
        pytest.skip("heart_scale does not lie beside the project")
    assert task.X.shape == (270, 13)
    assert dual_objective(task, fitted_svm(fit(sklearn(task), task))) == pytest.approx(100.877288, abs=5e-7)


def test_every_case_is_named_after_svms():
    assert all(case.name.startswith("svm_") for case in CASES)
