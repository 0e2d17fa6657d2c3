"""Where classes are replaced, and how that is undone.

Public modules of scikit-learn get ours under their names, and so does every module outside of scikit-learn
that has imported theirs already. scikit-learn's own modules keep theirs: those that hold one are imported
first, so that forests, stackings and searches inside it are made of what they were written for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType, TracebackType
from typing import Self

from sixfold.errors import check_option

# scikit-learn's public module, ours, and the names.
DROP_INS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "sklearn.linear_model",
        "sixfold.patch.linear",
        ("ElasticNet", "Lasso", "LinearRegression", "LogisticRegression", "Ridge", "RidgeClassifier"),
    ),
    (
        "sklearn.linear_model",
        "sixfold.patch.selection",
        ("ElasticNetCV", "LassoCV", "LogisticRegressionCV", "RidgeCV"),
    ),
    ("sklearn.svm", "sixfold.patch.svm", ("LinearSVC", "SVC")),
    ("sklearn.tree", "sixfold.patch.trees", ("DecisionTreeClassifier",)),
    (
        "sklearn.neighbors",
        "sixfold.patch.neighbors",
        (
            "KNeighborsClassifier",
            "KNeighborsRegressor",
            "KNeighborsTransformer",
            "NearestNeighbors",
            "RadiusNeighborsClassifier",
            "RadiusNeighborsRegressor",
            "RadiusNeighborsTransformer",
        ),
    ),
    ("sklearn.model_selection", "sixfold.patch.selection", ("GridSearchCV", "RandomizedSearchCV")),
)
# Modules of scikit-learn that hold one of these classes, and take it when they are imported.
HOLDERS = (
    "calibration",
    "cluster",
    "ensemble",
    "feature_selection",
    "inspection",
    "linear_model",
    "manifold",
    "multiclass",
    "semi_supervised",
)
# Tables of other packages with a class as key: those look a model up by its exact type. (Where the package is
# imported later, the classes that it puts there are ours already.)
TABLES = {
    "skl2onnx._supported_operators": "sklearn_operator_name_map",
    "skl2onnx._parse": "sklearn_parsers_map",
}

_replaced: dict[type, type] = {}  # theirs, by ours
_own: set[tuple[str, str]] = set()  # modules and names that held ours already, and keep it


def drop_in_names() -> list[str]:
    """Return the names that can be replaced."""
    return [name for _, _, names in DROP_INS for name in names]


def patch_sklearn(names: str | Iterable[str] | None = None) -> Patch:
    """Have scikit-learn's classes fitted by sixfold, wherever they are imported from now on or were before.

    Parameters
    ----------
    names : str, iterable of str or None, default=None
        Classes to replace; None for all: see ``sixfold.patch.drop_in_names()``.

    Returns
    -------
    Patch
        With which ``with patch_sklearn(): ...`` undoes it at the end.

    Examples
    --------
    >>> import sixfold, sklearn.linear_model
    >>> with sixfold.patch_sklearn():
    ...     model = sklearn.linear_model.LogisticRegression().fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> isinstance(model, sklearn.linear_model.LogisticRegression), model.certificate_.converged
    (True, True)
    """
    known = drop_in_names()
    wanted = known if names is None else [names] if isinstance(names, str) else list(names)
    for name in wanted:
        check_option("names", name, known)
    pairs = {_theirs(name): _ours(name) for name in wanted}
    new = {theirs: ours for theirs, ours in pairs.items() if ours not in _replaced}
    if new:
        for holder in HOLDERS:
            importlib.import_module(f"sklearn.{holder}")
        _own.update(_places(set(new.values())))
        _exchange(new)
        _replaced.update({ours: theirs for theirs, ours in new.items()})
    return Patch(tuple(new.values()))


def unpatch_sklearn(names: str | Iterable[str] | None = None) -> None:
    """Give scikit-learn's names back to its own classes; models that are fitted stay what they are.

    Parameters
    ----------
    names : str, iterable of str or None, default=None
        Classes to give back; None for all.
    """
    wanted = None if names is None else {names} if isinstance(names, str) else set(names)
    _restore([ours for ours in _replaced if wanted is None or ours.__name__ in wanted])


class Patch:
    """What was replaced by one call, to be undone at the end of a ``with``."""

    def __init__(self, classes: tuple[type, ...]) -> None:
        self.classes = classes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _restore([ours for ours in self.classes if ours in _replaced])

    def __repr__(self) -> str:
        return f"<sixfold in place of {', '.join(one.__name__ for one in self.classes) or 'nothing more'}>"


def _theirs(name: str) -> type:
    found: type = getattr(importlib.import_module(_homes(name)[0]), name)
    return _replaced.get(found, found)


def _ours(name: str) -> type:
    found: type = getattr(importlib.import_module(_homes(name)[1]), name)
    return found


def _homes(name: str) -> tuple[str, str]:
    """Return the modules of theirs and ours."""
    return next((theirs, ours) for theirs, ours, names in DROP_INS if name in names)


def _restore(classes: list[type]) -> None:
    _exchange({ours: _replaced[ours] for ours in classes})
    for ours in classes:
        del _replaced[ours]


def _exchange(classes: dict[type, type]) -> None:
    """Put other classes in the place of these, in every module that users import from or have written."""
    for place in _places(set(classes)) - _own:
        space = vars(sys.modules[place[0]])
        space[place[1]] = classes.get(space[place[1]], space[place[1]])  # a module may have two names
    for name, table in TABLES.items():
        known = getattr(sys.modules.get(name), table, {})
        known.update({after: known[before] for before, after in classes.items() if before in known})


def _places(classes: set[type]) -> set[tuple[str, str]]:
    """Return the modules and names that hold one of these classes."""
    ids = set(map(id, classes))  # not every value can be hashed
    return {
        (home, name)
        for home, module in _modules()
        for name, value in list(vars(module).items())
        if id(value) in ids
    }


def _modules() -> Iterator[tuple[str, ModuleType]]:
    """Go through scikit-learn's public modules, and through all that are not its own or ours."""
    public = {theirs for theirs, _, _ in DROP_INS}
    for name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType):
            continue
        if name in public or name.partition(".")[0] not in ("sklearn", "sixfold"):
            yield name, module
