"""Scores of pieces are those of the whole."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss, mean_absolute_error, r2_score
from sklearn.metrics import roc_auc_score as area

from sixfold.app.saved_model.running_score import RunningScore, row_losses

RNG = np.random.default_rng(0)


def of(task, scoring, classes=(), probabilities=True):
    return RunningScore(
        SimpleNamespace(
            task=task,
            classes=list(classes),
            scoring=scoring,
            gives_probabilities=probabilities and bool(classes),
        )
    )


def added(score, y, predicted, chances=None):
    for start in range(0, len(y), 37):
        part = slice(start, start + 37)
        score.add(y[part], predicted[part], None if chances is None else chances[part])
    return score.value()


@pytest.fixture
def labels():
    y = RNG.choice(["a", "b", "c"], 300, p=[0.7, 0.2, 0.1]).astype(object)
    chances = RNG.dirichlet([2.0, 1.0, 1.0], 300)
    return y, np.array(["a", "b", "c"])[chances.argmax(axis=1)], chances


def test_scores_of_labels(labels):
    y, predicted, _ = labels
    text = y.astype(str)
    assert added(of("classification", "accuracy", "abc"), y, predicted) == pytest.approx(
        (text == predicted).mean()
    )
    expected = balanced_accuracy_score(text, predicted)
    assert added(of("classification", "balanced_accuracy", "abc"), y, predicted) == pytest.approx(expected)
    expected = f1_score(text, predicted, average="macro")
    assert added(of("classification", "f1_macro", "abc"), y, predicted) == pytest.approx(expected)


def test_scores_of_probabilities(labels):
    y, predicted, chances = labels
    text = y.astype(str)
    found = added(of("classification", "neg_log_loss", "abc"), y, predicted, chances)
    assert found == pytest.approx(-log_loss(text, chances))
    found = added(of("classification", "roc_auc_ovr", "abc"), y, predicted, chances)
    assert found == pytest.approx(area(text, chances, multi_class="ovr"))


def test_two_classes_have_an_area(labels):
    y, _, chances = labels
    text = np.where(y == "a", "no", "yes").astype(object)
    two = np.column_stack([chances[:, 0], 1 - chances[:, 0]])
    found = added(of("classification", "roc_auc", ["no", "yes"]), text, text.astype(str), two)
    assert found == pytest.approx(area(text == "yes", two[:, 1]))


def test_scores_of_numbers():
    y, predicted = RNG.normal(size=100) + 1e9, RNG.normal(size=100) + 1e9
    assert added(of("regression", "r2"), y, predicted) == pytest.approx(r2_score(y, predicted), rel=1e-9)
    found = added(of("regression", "neg_mean_absolute_error"), y, predicted)
    assert found == pytest.approx(-mean_absolute_error(y, predicted))


def test_rows_without_target_do_not_count():
    score = of("classification", "accuracy", "ab")
    score.add(np.array(["a", None, "b"], dtype=object), np.array(["a", "a", "a"]))
    assert (score.rows, score.without_target, score.value()) == (2, 1, 0.5)
    score = of("regression", "r2")
    score.add(np.array([np.nan]), np.array([1.0]))
    assert (score.rows, score.without_target) == (0, 1)
    assert np.isnan(score.value())


def test_labels_that_the_model_does_not_know_are_wrong_and_have_no_probability():
    score = of("classification", "accuracy", "ab")
    score.add(np.array(["z", "b"], dtype=object), np.array(["a", "b"]))
    assert score.value() == 0.5
    losses = row_losses(np.array(["z", "b"]), np.array([[0.5, 0.5], [0.0, 1.0]]), ["a", "b"])
    assert losses[0] > 30
    assert losses[1] < 1e-15


def test_a_metric_of_probabilities_without_any_falls_back():
    assert of("classification", "neg_log_loss", "ab", probabilities=False).scoring == "accuracy"
    assert of("classification", "a function of mine", "ab").scoring == "accuracy"
    assert of("regression", "something").scoring == "r2"


def test_one_row_has_no_r2():
    score = of("regression", "r2")
    score.add(np.array([1.0]), np.array([1.0]))
    assert np.isnan(score.value())
