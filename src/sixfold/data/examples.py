"""Built-in data: small real tables that come with scikit-learn, one worked out by hand, one by formula."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import UsageError

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
    target : str
        What y is called.
    """

    name: str
    X: Array
    y: Array
    columns: list[str]
    task: Literal["regression", "classification"]
    about: str
    target: str = "target"


def _diabetes() -> Example:
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    about = (
        "442 patients: the progress of diabetes after a year, from age, sex, body mass, pressure and blood."
    )
    columns = list(bunch.feature_names)
    return Example("diabetes", bunch.data, bunch.target, columns, "regression", about, "progression")


def _wampler() -> Example:
    """Return the polynomial of Wampler (1970): exact integers, and columns that are nearly dependent."""
    x = np.arange(21.0)
    X = np.column_stack([x**k for k in range(1, 6)])
    about = "21 values of 1 + x + x^2 + x^3 + x^4 + x^5: a known hard case for least squares (NIST Wampler1)."
    columns = [f"x^{k}" for k in range(1, 6)]
    return Example("wampler", X, 1.0 + X.sum(axis=1), columns, "regression", about, "y")


def _linnerud() -> Example:
    """Return one of the three targets of this set: the waist, which exercise tells most about."""
    from sklearn.datasets import load_linnerud

    bunch = load_linnerud()
    about = "20 middle-aged men: the waist in cm, from how many chin-ups, sit-ups and jumps they manage."
    columns = ["chin-ups", "sit-ups", "jumps"]
    return Example(
        "linnerud", bunch.data, np.round(2.54 * bunch.target[:, 1], 1), columns, "regression", about, "waist"
    )


def _wine() -> Example:
    from sklearn.datasets import load_wine

    bunch = load_wine()
    about = "178 wines of three cultivars of one region in Italy, from 13 chemical measurements."
    labels = np.array(["first", "second", "third"])[bunch.target]
    columns = [name.replace("od280/od315_of_diluted_wines", "od280/od315") for name in bunch.feature_names]
    return Example("wine", bunch.data, labels, columns, "classification", about, "cultivar")


def _digits() -> Example:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    about = "1,797 digits written by hand, from the darkness (0 to 16) of 8 by 8 points."
    columns = [f"row {k // 8 + 1}, column {k % 8 + 1}" for k in range(64)]
    return Example("digits", bunch.data, bunch.target, columns, "classification", about, "digit")


def _breast_cancer() -> Example:
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    about = "569 tumours, malignant or benign, from 30 measurements of cell nuclei in an image."
    labels = bunch.target_names[bunch.target]
    columns = list(bunch.feature_names)
    return Example("breast cancer", bunch.data, labels, columns, "classification", about, "diagnosis")


def _iris() -> Example:
    from sklearn.datasets import load_iris

    bunch = load_iris()
    about = "150 iris flowers of three species, from the length and width of their sepals and petals."
    labels = bunch.target_names[bunch.target]
    columns = list(bunch.feature_names)
    return Example("iris", bunch.data, labels, columns, "classification", about, "species")


def _setosa() -> Example:
    iris = _iris()
    about = "150 iris flowers, setosa or not, from the length and width of their sepals and petals."
    labels = np.where(iris.y == "setosa", "setosa", "other")
    return Example("setosa", iris.X, labels, iris.columns, "classification", about, "species")


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
    labels = table[:, 4].astype(str)
    return Example("strangers", table[:, :4], labels, columns, "classification", about, "vampire")


EXAMPLES: dict[str, Callable[[], Example]] = {
    "breast cancer": _breast_cancer,
    "iris": _iris,
    "wine": _wine,
    "digits": _digits,
    "diabetes": _diabetes,
    "linnerud": _linnerud,
    "strangers": _strangers,
    "setosa": _setosa,
    "wampler": _wampler,
}


def load_example(name: str) -> Example:
    """Return the built-in table of that name; ``_`` and ``-`` will do for a blank.

    >>> load_example("wampler").X.shape
    (21, 5)
    >>> load_example("Breast_Cancer").target
    'diagnosis'
    """
    plain = " ".join(str(name).replace("_", " ").replace("-", " ").lower().split())
    if plain not in EXAMPLES:
        near = difflib.get_close_matches(plain, EXAMPLES, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"There is no example {name!r}.{hint} The examples are {', '.join(EXAMPLES)}.")
    return EXAMPLES[plain]()
