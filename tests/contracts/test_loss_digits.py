"""The logistic and softmax losses, beside values with fifty digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from sixfold.risk.losses import LOSSES, softmax

# name: rows of (score, y, value, gradient, curvature), worked out from the table of losses.py.
SCORES = [-1e4, -745.0, -50.0, -36.5, -1.0, -1e-9, 0.0, 1e-9, 1.0, 17.3, 36.5, 50.0, 700.0, 1e4]


def decimal_logistic(margin):
    """Value, slope in the margin and curvature, in fifty digits."""
    with localcontext() as context:
        context.prec = 50
        odds = Decimal(-margin).exp()
        value = (1 + odds).ln() if odds > Decimal("1e-40") else odds
        # 1 / (1 + e^m) = odds / (1 + odds)
        return float(value), float(-odds / (1 + odds)), float(odds / (1 + odds) ** 2)


@pytest.mark.parametrize("y", [1.0, -1.0])
def test_logistic_agrees_with_fifty_digits(y):
    score, targets = np.array(SCORES), np.full(len(SCORES), y)
    value, slope, curvature = np.array([decimal_logistic(y * s) for s in SCORES]).T
    loss = LOSSES["logistic"]
    np.testing.assert_allclose(loss.value(score, targets), value, rtol=1e-15)
    np.testing.assert_allclose(loss.gradient(score, targets), y * slope, rtol=1e-15)
    np.testing.assert_allclose(loss.curvature(score, targets), curvature, rtol=1e-15)


def decimal_softmax(row, y):
    """Value and gradient of softmax, in fifty digits and more."""
    with localcontext() as context:
        context.prec = 80
        top = max(row)
        powers = [(Decimal(s) - Decimal(top)).exp() for s in row]
        total = sum(powers)
        others = total - powers[y]
        gradient = [float(-others / total if c == y else power / total) for c, power in enumerate(powers)]
        return float(total.ln() - Decimal(row[y]) + Decimal(top)), gradient


@pytest.mark.parametrize("y", [0, 1, 2])
def test_softmax_agrees_with_fifty_digits(y):
    rows = [
        (0.0, 0.0, 0.0),
        (50.0, 0.0, -1.0),
        (0.0, 50.0, 49.0),
        (-3.0, 2.5, 1.0),
        (1e4, 1e4 - 20.0, -1e4),
        (-36.0, 0.1, -40.0),
    ]
    expected = [decimal_softmax(row, y) for row in rows]
    loss, targets = LOSSES["softmax"], np.full(len(rows), y)
    np.testing.assert_allclose(
        loss.value(np.array(rows), targets), [value for value, _ in expected], rtol=4e-15
    )
    np.testing.assert_allclose(
        loss.gradient(np.array(rows), targets), [slope for _, slope in expected], rtol=4e-15
    )


def test_softmax_rows_are_distributions():
    p = softmax(np.array([[1e8, 0.0, -1e8], [0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(p, [[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]], rtol=1e-15)


def test_two_class_softmax_is_the_logistic_loss():
    rng = np.random.default_rng(6)
    score = 10 * rng.standard_normal(100)
    y = rng.integers(0, 2, 100)
    pair = np.column_stack([np.zeros(100), score])
    np.testing.assert_allclose(
        LOSSES["softmax"].value(pair, y), LOSSES["logistic"].value(score, 2.0 * y - 1), rtol=1e-14
    )
