"""Compared learners."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.datasets import load_iris

from sixfold import compare
from sixfold.errors import InputError
from sixfold.explain.plots.style import DARK
from sixfold.plot import leaderboard, paired

TABLE = {
    "learner": ["b", "a", "c $5"],
    "mean": [0.8, 0.9, 0.7],
    "std": [0.05, 0.02, 0.1],
    "split0_score": [0.75, 0.88, 0.6],
    "split1_score": [0.8, 0.9, 0.7],
    "split10_score": [0.85, 0.92, 0.8],
}


def part(ax, gid):
    return next(artist for artist in [*ax.lines, *ax.collections] if artist.get_gid() == gid)


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame])
def test_the_best_is_first_with_its_folds(kind, drawn):
    ax = drawn(leaderboard(kind(TABLE), metric="accuracy"))
    np.testing.assert_allclose(part(ax, "mean").get_xdata(), [0.9, 0.8, 0.7])
    points = np.asarray(part(ax, "folds").get_offsets())
    np.testing.assert_allclose(points[:, 0], [0.88, 0.9, 0.92, 0.75, 0.8, 0.85, 0.6, 0.7, 0.8])
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["a  0.900", "b  0.800", r"c \$5  0.700"]
    assert ax.get_xlabel() == "accuracy on held-out rows; beside the name, the mean of 3 folds"
    low, high = ax.get_ylim()
    assert low > high  # the first at the top


def test_a_comparison_is_drawn_with_test_scores_and_p_values(new_axes, drawn):
    found = compare(*load_iris(return_X_y=True), ["tree", "nearest neighbours"], cv=3)
    ax = drawn(found.plot(dark=True))
    there = [entry for entry in found.entries if not entry.left_out]
    np.testing.assert_allclose(part(ax, "mean").get_xdata(), [entry.mean for entry in there])
    np.testing.assert_allclose(part(ax, "test").get_xdata(), [entry.test for entry in there])
    assert part(ax, "test").get_color() == DARK.series[1]
    assert "the best" in [text.get_text() for text in ax.texts]
    assert ax.get_xlabel().startswith("accuracy on held-out rows")
    own = new_axes()
    assert leaderboard(found, ax=own) is own


def test_one_far_away_has_an_arrow_and_leaves_others_their_room():
    far = {
        name: [*values, {"learner": "base", "std": 0.01}.get(name, -0.5)] for name, values in TABLE.items()
    }
    ax = leaderboard(far)
    assert ax.get_xlim()[0] > 0.4
    (text,) = [text for text in ax.texts if text.get_gid() == "far"]
    assert text.get_text() == "←  -0.500"
    assert text.xy[1] == 3


def test_losses_are_drawn_as_losses():
    losses = {
        name: values if name in ("learner", "std") else [-v for v in values] for name, values in TABLE.items()
    }
    ax = leaderboard(losses, metric="neg_mean_squared_error")
    np.testing.assert_allclose(part(ax, "mean").get_xdata(), [0.7, 0.8, 0.9])
    assert "mean squared error on held-out rows, less is better" in ax.get_xlabel()


def test_learners_that_failed_are_last():
    broken = TABLE | {"mean": [0.8, math.nan, 0.7]}
    labels = [label.get_text() for label in leaderboard(broken).get_yticklabels()]
    assert [label.split()[0] for label in labels] == ["b", "c", "a"]


def test_differences_are_paired_with_a_corrected_interval(drawn):
    ax = drawn(paired(TABLE, metric="accuracy"))
    difference = np.array([[-0.13, -0.1, -0.07], [-0.28, -0.2, -0.12]])
    points = np.asarray(part(ax, "folds").get_offsets())
    np.testing.assert_allclose(points[:, 0].reshape(2, 3), difference)
    np.testing.assert_allclose(part(ax, "mean").get_xdata(), difference.mean(axis=1))
    segments = ax.containers[0].lines[2][0].get_segments()
    half = [(segment[1, 0] - segment[0, 0]) / 2 for segment in segments]
    expected = stats.t.ppf(0.975, 2) * np.sqrt((1 / 3 + 1 / 2) * difference.var(axis=1, ddof=1))
    np.testing.assert_allclose(half, expected)
    assert ax.get_title() == "Fold by fold against a"


def test_the_interval_holds_0_where_the_p_value_is_above_5_percent():
    found = compare(*load_iris(return_X_y=True), ["tree", "nearest neighbours"], cv=5, test_size=0)
    ax = paired(found)
    for segment, entry in zip(ax.containers[0].lines[2][0].get_segments(), found.entries[1:], strict=True):
        assert (segment[0, 0] <= 0 <= segment[1, 0]) == (entry.p_value >= 0.05)


def test_others_can_be_compared_with_any():
    ax = paired(TABLE, "b")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", r"c \$5"]
    with pytest.raises(InputError, match="to='d' is not an option"):
        paired(TABLE, "d")


def test_wrong_tables_are_refused():
    with pytest.raises(InputError, match=r"columns learner, mean, std is needed.*this is list"):
        leaderboard([1, 2])
    with pytest.raises(InputError, match=r"this is one with \['x'\]"):
        leaderboard(pd.DataFrame({"x": [1]}))
    with pytest.raises(InputError, match="no rows"):
        leaderboard({"learner": [], "mean": [], "std": []})
    with pytest.raises(InputError, match="at least two folds"):
        paired({"learner": ["a", "b"], "mean": [1, 2], "std": [0, 0]})
    with pytest.raises(InputError, match="a pair needs two learners"):
        paired({name: values[:1] for name, values in TABLE.items()})
