"""Fits that the tests of the report share, each run once."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sixfold.app.fitting import FitOptions, FitResult, run_fit


@cache
def fitted_example(name: str, learners: tuple[str, ...] = ("all",), **options: Any) -> FitResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run_fit(FitOptions(f"example:{name}", learners=learners, **options))


def fit_frame(frame: pl.DataFrame, folder: Path, target: str = "y", **options: Any) -> FitResult:
    """Fit a frame by way of a CSV file."""
    path = folder / "table.csv"
    frame.write_csv(path)
    options = {"learners": ("tree",), "output": folder} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run_fit(FitOptions(str(path), target, **options))


@pytest.fixture(scope="session")
def iris() -> FitResult:
    return fitted_example("iris")


@pytest.fixture(scope="session")
def breast_cancer() -> FitResult:
    return fitted_example("breast_cancer", ("logistic regression", "perceptron", "tree"))


@pytest.fixture(scope="session")
def diabetes() -> FitResult:
    return fitted_example("diabetes", ("lasso", "nearest neighbours"))


@pytest.fixture
def noise() -> pl.DataFrame:
    """Two columns that say something about y, and one that does not."""
    random = np.random.default_rng(0)
    a, b, c = random.normal(size=(3, 400))
    y = np.where(a + b + random.normal(size=400) > 0, "up", "down")
    return pl.DataFrame({"a": a, "b": b, "c": c, "y": y})
