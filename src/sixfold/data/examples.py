"""Built-in data: small real tables that come with scikit-learn, one worked out by hand, one by formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import check_option

Array = NDArray[Any]


@dataclass(frozen=True)
class Example:
    """A table with a target.

    Attributes
    ----------
    name : str
    X : ndarray of shape (rows, columns)
        Numbers, or text as objects.
    y : ndarray of shape (rows,)
    columns : list of str
    task : {"regression", "classification"}
    about : str
        One sentence: what the rows are and what is predicted.
    """

    name: str
    X: Array
    y: Array
    columns: list[str]
    task: Literal["regression", "classification"]
    about: str


def _diabetes() -> Example:
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    about = (
        "442 patients: the progress of diabetes after a year, from age, sex, body mass, pressure and blood."
    )
    return Example("diabetes", bunch.data, bunch.target, list(bunch.feature_names), "regression", about)


def _wampler() -> Example:
    """Return the polynomial of Wampler (1970): exact integers, and columns that are nearly dependent."""
    x = np.arange(21.0)
    X = np.column_stack([x**k for k in range(1, 6)])
    about = "21 values of 1 + x + x^2 + x^3 + x^4 + x^5: a known hard case for least squares (NIST Wampler1)."
    return Example("wampler", X, 1.0 + X.sum(axis=1), [f"x^{k}" for k in range(1, 6)], "regression", about)


def _breast_cancer() -> Example:
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    about = "569 tumours, malignant or benign, from 30 measurements of cell nuclei in an image."
    labels = bunch.target_names[bunch.target]
    return Example("breast cancer", bunch.data, labels, list(bunch.feature_names), "classification", about)


def _iris() -> Example:
    from sklearn.datasets import load_iris

    bunch = load_iris()
    about = "150 iris flowers of three species, from the length and width of their sepals and petals."
    labels = bunch.target_names[bunch.target]
    return Example("iris", bunch.data, labels, list(bunch.feature_names), "classification", about)


def _setosa() -> Example:
    iris = _iris()
    about = "150 iris flowers, setosa or not, from the length and width of their sepals and petals."
    labels = np.where(iris.y == "setosa", "setosa", "other")
    return Example("setosa", iris.X, labels, iris.columns, "classification", about)


def _strangers() -> Example:
    """Return eight people, some of whom were met in the dark; "?" is unknown."""
    columns = ["shadow", "garlic", "complexion", "accent"]
    people = [
        ("?", "yes", "pale", "none", "no"),
        ("yes", "yes", "ruddy", "none", "no"),
        ("?", "no", "ruddy", "none", "yes"),
        ("no", "no", "average", "heavy", "yes"),
        ("?", "no", "average", "odd", "yes"),
        ("yes", "no", "pale", "heavy", "no"),
        ("yes", "no", "average", "heavy", "no"),
        ("?", "yes", "ruddy", "odd", "no"),
    ]
    table = np.array(people, dtype=object)
    about = "8 strangers, vampires or not: whether they cast a shadow and eat garlic, complexion and accent."
    return Example("strangers", table[:, :4], table[:, 4].astype(str), columns, "classification", about)


EXAMPLES: dict[str, Callable[[], Example]] = {
    "diabetes": _diabetes,
    "wampler": _wampler,
    "breast cancer": _breast_cancer,
    "iris": _iris,
    "setosa": _setosa,
    "strangers": _strangers,
}


def load_example(name: str) -> Example:
    """Return the built-in table of that name.

    >>> load_example("wampler").X.shape
    (21, 5)
    """
    check_option("example", name, EXAMPLES)
    return EXAMPLES[name]()
