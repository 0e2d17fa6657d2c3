"""Binary SVMs of several classes in one list of support vectors, and the votes of their decisions."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.multiclass import _ovr_decision_function

from sixfold.learners.svm.support_vectors import class_scores, count_pair_votes, votes_are_certain
from sixfold.solvers.kernel import one_vs_one
from sixfold.solvers.kernel.one_vs_one import arrange, class_sides, svms_of

RNG = np.random.default_rng(0)


def make_svm(labels, positive, negative, alpha, intercept):
    """Return an SVM as the solver does: its rows, the positive ones first."""
    negatives = labels != positive if negative is None else labels == negative
    index = np.concatenate([np.flatnonzero(labels == positive), np.flatnonzero(negatives)])
    y = np.where(labels[index] == positive, 1.0, -1.0)
    return SimpleNamespace(
        positive=positive,
        problem=SimpleNamespace(index=index, y=y),
        solution=SimpleNamespace(alpha=alpha[index], intercept=intercept),
    )


@pytest.mark.parametrize("together", [0, 64])
@pytest.mark.parametrize(("n_classes", "pairwise"), [(2, False), (3, True), (5, True), (4, False)])
def test_decisions_and_coefficients_of_the_layout_are_those_of_the_svms(
    n_classes, pairwise, together, monkeypatch
):
    monkeypatch.setattr(one_vs_one, "MOST_SVMS_AT_ONCE", together)
    labels = RNG.integers(0, n_classes, size=40)
    labels[:n_classes] = np.arange(n_classes)
    sides = class_sides(n_classes, pairwise)
    alphas = [np.where(RNG.random(40) < 0.4, RNG.random(40), 0.0) for _ in sides]
    svms = [make_svm(labels, *side, alpha, RNG.normal()) for side, alpha in zip(sides, alphas, strict=True)]
    layout = arrange(svms, labels, n_classes, pairwise)
    K = RNG.normal(size=(7, 40))
    found = layout.decisions(7, lambda some, factors: K[:, layout.support[some]] @ factors)
    for number, one in enumerate(svms):
        signed = np.zeros(40)
        signed[one.problem.index] = one.problem.y * one.solution.alpha
        np.testing.assert_allclose(found[:, number], K @ signed + one.solution.intercept, rtol=1e-12)
        np.testing.assert_array_equal(layout.coefficients(number), signed[layout.support])
        assert layout.coefficient_lengths()[number] == pytest.approx(np.linalg.norm(signed))
    assert layout.sides == sides
    np.testing.assert_array_equal(labels[layout.support], np.sort(labels[layout.support]))
    assert layout.dual_coef.shape[0] == (n_classes - 1 if pairwise or n_classes == 2 else n_classes)


def test_a_layout_without_support_vectors_decides_by_intercepts():
    labels = np.array([0, 1, 2])
    sides = class_sides(3, True)
    svms = [make_svm(labels, *side, np.zeros(3), b) for b, side in enumerate(sides)]
    layout = arrange(svms, labels, 3, True)
    assert layout.support.size == 0
    np.testing.assert_array_equal(layout.decisions(2, None), [[0, 1, 2]] * 2)


@pytest.mark.parametrize("n_classes", [3, 4, 7])
def test_every_class_knows_its_svms(n_classes):
    pairs = class_sides(n_classes, True)
    for label in range(n_classes):
        mine = [pairs[number] for number in svms_of(label, n_classes)]
        assert [second if first == label else first for first, second in mine] == [
            other for other in range(n_classes) if other != label
        ]


def votes_by_hand(row, n_classes):
    votes = np.zeros(n_classes)
    for (first, second), decision in zip(class_sides(n_classes, True), row, strict=True):
        votes[first if decision > 0 else second] += 1
    return votes


@given(st.integers(3, 5), st.integers(0, 10_000))
def test_votes_and_scores_are_those_of_the_definition(n_classes, seed):
    decisions = np.random.default_rng(seed).integers(-2, 3, size=(6, n_classes * (n_classes - 1) // 2)) / 2
    votes = count_pair_votes(decisions, n_classes)
    np.testing.assert_array_equal(votes, [votes_by_hand(row, n_classes) for row in decisions])
    moved = np.where(decisions == 0, -1e-300, decisions)  # scikit-learn counts 0 for the first class there
    np.testing.assert_allclose(
        class_scores(moved, n_classes), _ovr_decision_function(moved < 0, -moved, n_classes), rtol=1e-13
    )


@given(st.integers(3, 5), st.integers(0, 10_000))
def test_no_decisions_within_the_error_change_a_winner_that_is_certain(n_classes, seed):
    rng = np.random.default_rng(seed)
    decisions = rng.normal(size=(20, n_classes * (n_classes - 1) // 2))
    error = rng.uniform(0, 0.5, size=decisions.shape[1])
    known = votes_are_certain(decisions, error, n_classes)
    winner = count_pair_votes(decisions, n_classes).argmax(axis=1)
    for _ in range(20):
        other = decisions + error * rng.choice([-1.0, 1.0], size=decisions.shape)
        changed = count_pair_votes(other, n_classes).argmax(axis=1) != winner
        assert not np.any(changed & known)
    assert votes_are_certain(decisions, 0 * error, n_classes).sum() >= known.sum()


def test_a_clear_winner_is_certain():
    assert votes_are_certain(np.array([[1.0, 1.0, 0.01]]), np.full(3, 0.1), 3).tolist() == [True]
    assert votes_are_certain(np.array([[1.0, 0.05, 0.01]]), np.full(3, 0.1), 3).tolist() == [False]
    assert votes_are_certain(np.array([[1.0, -1.0, 1.0]]), np.full(3, 0.1), 3).tolist() == [True]  # a tie
