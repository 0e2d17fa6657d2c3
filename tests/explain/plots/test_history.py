"""Objective and gap over the iterations of a fit."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sixfold import DecisionTreeClassifier, KNeighborsClassifier, LogisticRegression
from sixfold.budget import Record
from sixfold.errors import InputError
from sixfold.explain.plots.style import DARK, LIGHT, contrast
from sixfold.plot import history

X, Y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.fixture(scope="module")
def model():
    return LogisticRegression().fit(X, Y)


def part(ax, gid):
    return next(line for line in ax.lines if line.get_gid() == gid)


def test_gap_and_objective_are_those_of_the_records(model, drawn):
    ax = drawn(history(model))
    gap = np.maximum([record.gap for record in model.history_], model.certificate_.rounding)
    np.testing.assert_allclose(part(ax, "gap").get_ydata(), gap)
    np.testing.assert_allclose(part(ax, "gap").get_xdata(), np.arange(1, len(gap) + 1))
    assert ax.get_yscale() == "log"
    left, right = ax.figure.axes
    assert left is ax
    np.testing.assert_allclose(
        part(right, "objective").get_ydata(), [record.objective for record in model.history_]
    )
    certificate = model.certificate_
    np.testing.assert_allclose(part(ax, "tolerance").get_ydata(), certificate.tolerance * certificate.scale)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("iteration", "● certified gap to the optimum, at most")
    assert right.get_ylabel() == "■ objective"
    # What the tolerance is stands below the axes: inside, no place is free of both lines for certain.
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["tolerance 1e-06 of the scale 0.693"]
    assert ax.get_legend().get_window_extent().y1 < ax.get_window_extent().y0


def test_seconds_can_be_along_the_axis(model):
    ax = history(model, by="seconds")
    np.testing.assert_allclose(part(ax, "gap").get_xdata(), [record.seconds for record in model.history_])
    assert ax.get_xlabel() == "seconds since the fit began"


@pytest.mark.parametrize("show", ["gap", "objective"])
def test_one_of_them_has_no_second_axis(model, show):
    ax = history(model, show=show)
    assert ax.figure.axes == [ax]
    assert [line.get_gid() for line in ax.lines if line.get_gid() != "tolerance"] == [show]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_both_axes_can_be_read(model, new_axes, drawn, theme):
    ax = new_axes(theme.surface)
    assert history(make_pipeline(StandardScaler(), model), ax=ax) is ax
    drawn(ax)
    for one in ax.figure.axes:
        assert contrast(one.yaxis.label.get_color(), theme.surface) >= 4.5
        assert contrast(one.get_yticklabels()[0].get_color(), theme.surface) >= 4.5


def test_a_gap_that_is_the_objective_is_drawn_once():
    ax = history(DecisionTreeClassifier().fit(X, Y))
    assert ax.figure.axes == [ax]
    assert [line.get_gid() for line in ax.lines] == ["objective"]
    assert ax.get_xlabel() == "level"


def test_gaps_that_are_not_known_yet_are_left_out(drawn):
    records = [Record(1, 0.1, 3.0, np.inf), Record(2, 0.2, 2.0, 1.0), Record(3, 0.3, 1.5, 0.0)]
    ax = drawn(history(SimpleNamespace(history_=records)))
    np.testing.assert_array_equal(part(ax, "gap").get_xdata(), [2])
    np.testing.assert_array_equal(part(ax.figure.axes[1], "objective").get_xdata(), [1, 2, 3])


def test_a_model_without_history_is_refused():
    with pytest.raises(InputError, match="history_ of KNeighborsClassifier is missing"):
        history(KNeighborsClassifier().fit(X, Y))
    with pytest.raises(InputError, match="history_ of LogisticRegression is missing"):
        history(LogisticRegression())

    with pytest.raises(InputError, match="No iteration of SimpleNamespace has a gap"):
        history(SimpleNamespace(history_=[Record(1, 0.1, 3.0, np.inf)]), show="gap")


def test_wrong_options_are_refused(model):
    with pytest.raises(InputError, match="by='second' is not an option; did you mean 'seconds'"):
        history(model, by="second")
    with pytest.raises(InputError, match="show='gaps' is not an option; did you mean 'gap'"):
        history(model, show="gaps")
