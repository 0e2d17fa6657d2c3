"""NIST's Statistical Reference Datasets for linear regression: certified coefficients, digit by digit.

The data sets that are a formula, or come with statsmodels, are always tested; all eleven are if their files
lie beside the project in ``shared/data/nist``.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from sixfold import LinearRegression

FILES = sorted(Path(__file__).parents[3].glob("shared/data/nist/*.dat"))

# What is added to 1 + x + ... + x^5 at x = 0 ... 20 in Wampler3; 100 and 10,000 times that in Wampler4 and 5.
WAMPLER_NOISE = np.array(
    [
        759,
        -2048,
        2048,
        -2048,
        2523,
        -2048,
        2048,
        -2048,
        1838,
        -2048,
        2048,
        -2048,
        1838,
        -2048,
        2048,
        -2048,
        2523,
        -2048,
        2048,
        -2048,
        759,
    ],
    dtype=float,
)
WAMPLER_ERRORS = np.array(
    [
        2152.32624678170,
        2363.55173469681,
        779.343524331583,
        101.475507550350,
        5.64566512170752,
        0.112324854679312,
    ]
)


def right_digits(found, certified):
    """Return how many digits are right: -log10 of the relative error (of the absolute one at 0)."""
    found, certified = np.asarray(found, dtype=float), np.asarray(certified, dtype=float)
    error = np.abs(found - certified) / np.where(certified == 0, 1.0, np.abs(certified))
    return float(-np.log10(np.maximum(error, 1e-17)).min())


def check(X, y, coefficients, errors, deviation, fit_intercept=True, digits=12.0, error_digits=9.0):
    model = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    summary = model.summary()
    assert right_digits(summary.coefficient, coefficients) >= digits
    assert right_digits(summary.standard_error, errors) >= error_digits
    assert right_digits(summary.residual_deviation, deviation) >= error_digits
    model.certificate_.verify(X, y)
    return model


def powers(x, degree):
    return np.column_stack([x**k for k in range(1, degree + 1)])


@pytest.mark.parametrize(
    "noise", [0.0, 1.0, 100.0, 10000.0], ids=["Wampler1", "Wampler3", "Wampler4", "Wampler5"]
)
def test_wampler(noise):
    X = powers(np.arange(21.0), 5)
    y = 1.0 + X.sum(axis=1) + noise * WAMPLER_NOISE
    check(X, y, np.ones(6), noise * WAMPLER_ERRORS, noise * 2360.14502379268)


def test_wampler2():
    X = powers(np.arange(21.0), 5)
    # The published y have five decimals, which integer arithmetic gives without rounding on the way.
    y = sum(np.arange(21.0) ** k * 10.0 ** (5 - k) for k in range(6)) / 1e5
    check(X, y, 10.0 ** -np.arange(6.0), np.zeros(6), 0.0)


def test_noint1():
    x = np.arange(60.0, 71.0)
    model = check(
        x[:, None], x + 70.0, [2.07438016528926], [0.0165289256198347], 3.56753034006338, fit_intercept=False
    )
    assert right_digits(model.summary().r_squared, 0.999365492298663) > 12


def test_noint2():
    X, y = np.array([[4.0], [5.0], [6.0]]), np.array([3.0, 4.0, 4.0])
    check(X, y, [0.727272727272727], [0.0420827318078432], 0.369274472937998, fit_intercept=False)


def test_longley():
    data = pytest.importorskip("statsmodels.datasets").longley.load_pandas()
    coefficients = [
        -3482258.63459582,
        15.0618722713733,
        -0.0358191792925910,
        -2.02022980381683,
        -1.03322686717359,
        -0.0511041056535807,
        1829.15146461355,
    ]
    errors = [
        890420.383607373,
        84.9149257747669,
        0.0334910077722432,
        0.488399681651699,
        0.214274163161675,
        0.226073200069370,
        455.478499142212,
    ]
    model = check(data.exog, data.endog, coefficients, errors, 304.854073561965)
    assert right_digits(model.summary().r_squared, 0.995479004577296) > 12


@pytest.mark.skipif(not FILES, reason="NIST's files are not beside the project")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_certified_data_set(path):
    """All eleven at least 12 digits (Filip 7.5), standard errors and residual deviation 9 (Filip 6)."""
    text = path.read_text()
    lines = text.splitlines()

    def section(name):
        first, last = re.search(name + r"\s+\(lines\s+(\d+)\s+to\s+(\d+)\)", text).groups()
        return lines[int(first) - 1 : int(last)]

    certified = section("Certified Values")
    parameters = [line.split() for line in certified if re.match(r"\s*B\d", line)]
    deviation = next(
        float(found.group(1))
        for line in certified
        if (found := re.search(r"^\s+Standard Deviation\s+([\d.E+-]+)\s*$", line))
    )
    data = np.array([[float(value) for value in line.split()] for line in section("Data") if line.strip()])
    has_intercept = parameters[0][0] == "B0"
    X, columns = data[:, 1:], len(parameters) - has_intercept
    X = powers(X[:, 0], columns) if X.shape[1] == 1 else X
    filip = path.stem == "Filip"
    check(
        X,
        data[:, 0],
        [float(row[1]) for row in parameters],
        [float(row[2]) for row in parameters],
        deviation,
        has_intercept,
        digits=7.5 if filip else 12.0,
        error_digits=6.0 if filip else 9.0,
    )
