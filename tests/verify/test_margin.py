"""The checker of hard margins: four points on a line, worked out by hand."""

import math

import numpy as np
import pytest

from benchmarks.gauntlet import families
from benchmarks.gauntlet.settings import CLASSES
from sixfold import LinearSVC
from sixfold.certificate import Certificate
from sixfold.verify.linear import LinearClaim
from sixfold.verify.margin import recompute

# The widest margin lies between -1 and 1: w = 1, b = 0, and a = 1/2 at both.
X = np.array([[-3.0], [-1.0], [1.0], [2.0]])
Y = np.array([[-1.0], [-1.0], [1.0], [1.0]])
DUAL = np.array([[0.0], [0.5], [-0.5], [0.0]])  # u = -a y
OPTIMAL = Certificate("duality gap", 0.5, 0.0, 0.5, 1e-6)


def check(w=1.0, b=0.0, dual=DUAL, weights=None, fit_intercept=True):
    return recompute(
        LinearClaim(
            X, Y, weights, np.array([[w]]), np.array([b]), "hinge", 0.0, 0.0, False, fit_intercept, dual
        ),
        OPTIMAL,
    )


def test_the_widest_margin_is_confirmed():
    found = check().compare(OPTIMAL)
    assert (found.objective, found.gap) == (0.5, 0.0)


def test_a_longer_w_is_worse_by_the_difference_of_squares():
    # 1.1^2 / 2 - 1 / 2
    assert check(w=1.1).certificate.gap == pytest.approx(0.105, rel=1e-14)


@pytest.mark.parametrize("model", [{"w": 0.9}, {"b": 0.01}, {"w": -1.0}])
def test_a_row_inside_the_margin_is_not_allowed(model):
    assert math.isinf(check(**model).certificate.gap)


def test_a_row_that_does_not_count_may_be_inside():
    assert check(b=0.5, w=1.5, weights=np.array([1.0, 1.0, 1.0, 0.0])).certificate.gap < math.inf
    assert check(w=1 / 3, b=0.0, weights=np.array([1.0, 0.0, 0.0, 0.0])).certificate.gap < math.inf


@pytest.mark.parametrize("dual", [DUAL, 7.0 * DUAL, DUAL * [[1.0], [1.0], [2.0], [1.0]]])
def test_a_dual_point_counts_whatever_its_length_and_balance(dual):
    assert check(dual=dual).certificate.gap == pytest.approx(0.0, abs=1e-15)


def test_no_dual_point_bounds_by_less_than_zero():
    rng = np.random.default_rng(0)
    for _ in range(100):
        found = check(dual=rng.normal(size=(4, 1)), fit_intercept=bool(rng.integers(2)))
        assert found.certificate.gap >= 0.0


def test_the_scale_is_allowed_what_the_objective_is():
    table = families.make("categories as columns, n < d", CLASSES)
    certificate = LinearSVC(loss="hinge", C=np.inf).fit(table.X, table.y).certificate_
    certificate.verify(table.X, table.y)
