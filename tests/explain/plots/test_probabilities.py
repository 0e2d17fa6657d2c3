"""Calibration and threshold curves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn import metrics
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_iris

from sixfold import SVC, KNeighborsClassifier, LinearSVC, LogisticRegression
from sixfold.errors import InputError
from sixfold.explain.plots.probabilities import threshold_measures, wilson
from sixfold.explain.plots.style import DARK
from sixfold.plot import calibration, threshold

X, Y = load_breast_cancer(return_X_y=True)
X = X[:, :2]
NAMES = np.where(Y == 1, "benign", "malignant")


@pytest.fixture(scope="module")
def model():
    return LogisticRegression().fit(X[::2], NAMES[::2])


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_the_curve_is_scikit_learns_with_counts(model, strategy, drawn):
    ax = drawn(calibration(model, X[1::2], NAMES[1::2], bins=8, strategy=strategy))
    given = model.predict_proba(X[1::2])[:, 1]
    hits = NAMES[1::2] == "malignant"
    share, mean = calibration_curve(hits, given, n_bins=8, strategy=strategy)
    line = next(line for line in ax.lines if line.get_gid() == "calibration")
    np.testing.assert_allclose(line.get_data(), (mean, share))
    counts = [int(text.get_text()) for text in ax.texts if text.get_gid() == "count"]
    assert sum(counts) == hits.size
    assert len(counts) == mean.size
    brier = metrics.brier_score_loss(hits, given)
    assert f"Brier score {brier:.3g}" in ax.get_title()
    assert "class malignant" in ax.get_legend().get_texts()[0].get_text()


def test_every_class_has_its_curve_and_the_score_is_of_all():
    table, y = load_iris(return_X_y=True)
    model = LogisticRegression(C=0.01).fit(table, y)
    ax = calibration(model, table, y, bins=5, dark=True)
    curves = [line for line in ax.lines if line.get_gid() == "calibration"]
    assert [line.get_color() for line in curves] == list(DARK.series[:3])
    brier = ((model.predict_proba(table) - np.eye(3)[y]) ** 2).sum(axis=1).mean()
    assert f"Brier score {brier:.3g}" in ax.get_title()


@given(st.integers(1, 40), st.data())
def test_intervals_are_wilsons(rows, data):
    hits = data.draw(st.integers(0, rows))
    low, high = wilson(np.array([hits / rows]), np.array([rows]))
    expected = binomtest(hits, rows).proportion_ci(0.95, method="wilson")
    np.testing.assert_allclose([low[0], high[0]], expected, atol=1e-6)


def test_no_probabilities_no_calibration():
    model = LinearSVC().fit(X, Y)
    with pytest.raises(InputError, match="LinearSVC has no predict_proba"):
        calibration(model, X, Y)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40))
def test_measures_are_those_of_scikit_learn(rows):
    scores = np.array([score for score, _ in rows], dtype=float)
    hits = np.array([hit for _, hit in rows])
    if not hits.any():
        hits[0] = True
    at, found = threshold_measures(scores, hits)
    np.testing.assert_array_equal(at, np.unique(scores))
    for place, level in enumerate(at):
        says = scores >= level
        assert found["precision"][place] == pytest.approx(metrics.precision_score(hits, says))
        assert found["recall"][place] == pytest.approx(metrics.recall_score(hits, says))
        assert found["F1"][place] == pytest.approx(metrics.f1_score(hits, says))
        assert found["accuracy"][place] == pytest.approx(metrics.accuracy_score(hits, says))


def test_four_lines_and_the_best_threshold(model, drawn):
    ax = drawn(threshold(model, X[1::2], NAMES[1::2]))
    by_name = {line.get_gid(): line for line in ax.lines if line.get_gid()}
    assert {"precision", "recall", "F1", "accuracy", "best"} == set(by_name)
    scores, hits = model.predict_proba(X[1::2])[:, 1], NAMES[1::2] == "malignant"
    (at,), (height,) = by_name["best"].get_data()
    best = max(metrics.f1_score(hits, scores >= level) for level in np.unique(scores))
    assert height == pytest.approx(best)
    assert metrics.f1_score(hits, scores >= at) == pytest.approx(best)
    assert ax.get_xlabel() == "threshold on the probability of class malignant"


@pytest.mark.parametrize("positive", ["benign", "malignant"])
def test_decisions_have_thresholds_too(positive, new_axes):
    model = SVC().fit(X, NAMES)
    ax = new_axes("black")
    assert threshold(model, X, NAMES, ax=ax, positive=positive, best="accuracy") is ax
    assert ax.get_xlabel() == f"threshold on the decision function of class {positive}"
    scores = model.decision_function(X) * (1 if positive == "malignant" else -1)
    (at,), (height,) = next(line for line in ax.lines if line.get_gid() == "best").get_data()
    assert ((scores >= at) == (positive == NAMES)).mean() == pytest.approx(height)


def test_wrong_input_is_refused(model):
    table, y = load_iris(return_X_y=True)
    with pytest.raises(InputError, match="knows 3 classes, but a threshold tells two apart"):
        threshold(KNeighborsClassifier().fit(table, y), table, y)
    with pytest.raises(InputError, match="positive='cancer' is none of the classes"):
        threshold(model, X, NAMES, positive="cancer")
    with pytest.raises(InputError, match="have one class"):
        threshold(model, X[:3], NAMES[:3])
    with pytest.raises(InputError, match=r"y has the class \['x'\], but the model knows"):
        threshold(model, X[:1], np.array(["x"]))
    with pytest.raises(InputError, match="X has 2 rows, but y has 3 entries"):
        calibration(model, X[:2], NAMES[:3])
    with pytest.raises(InputError, match="best='f1' is not an option; did you mean 'F1'"):
        threshold(model, X, NAMES, best="f1")
    with pytest.raises(InputError, match="has no classes_: a fitted classifier is needed"):
        calibration(LogisticRegression(), X, NAMES)
    with pytest.raises(InputError, match="bins=1 is out of range"):
        calibration(model, X, NAMES, bins=1)
