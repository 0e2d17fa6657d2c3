"""The attributes of a model from a file, each checked as it is taken.

What no check has taken is refused: so the checks of a class are at the same time the list of what may be set.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.app.model_file.values import refuse

Array = NDArray[Any]
Shape = tuple[int | None, ...]

MOST_COLUMNS = 1 << 31


class Attributes:
    """Attributes by name; ``where`` says of what model they are."""

    def __init__(self, values: dict[str, Any], where: str) -> None:
        self.values, self.where = values, where
        self._left = set(values)

    def has(self, name: str) -> bool:
        """Return whether there is such an attribute."""
        return name in self.values

    def require(self, holds: Any, name: str, reason: str) -> None:
        """Refuse the file unless this holds."""
        if not holds:
            refuse(f"{self.where}.{name}", reason)

    def take(self, name: str, *types: Any, optional: bool = False, nullable: bool = False) -> Any:
        """Return an attribute, which is of one of these types exactly.

        One that is ``optional`` may be missing or None, one that is ``nullable`` may be None.
        """
        self._left.discard(name)
        if name not in self.values:
            self.require(optional, name, "is missing")
            return None
        value = self.values[name]
        if types and type(value) not in types and not ((optional or nullable) and value is None):
            wanted = " or ".join(one.__name__ for one in types)
            refuse(f"{self.where}.{name}", f"is of type {type(value).__name__}, not {wanted}")
        return value

    def flag(self, name: str, optional: bool = False) -> Any:
        """Return a truth value."""
        return self.take(name, bool, optional=optional)

    def text(self, name: str, options: Collection[Any] | None = None, optional: bool = False) -> Any:
        """Return text, one of the options if there are some."""
        value = self.take(name, str, optional=optional)
        self.require(options is None or value is None or value in options, name, f"is {value!r:.40}")
        return value

    def whole(self, name: str, least: int = 0, most: int = 1 << 62, optional: bool = False) -> Any:
        """Return a whole number between two others; NumPy's will do."""
        value = self.take(name, int, np.int64, np.int32, np.intp, optional=optional)
        if value is not None:
            self.require(least <= value <= most, name, f"is {value}, not from {least} to {most}")
        return value

    def number(self, name: str, finite: bool = True, optional: bool = False) -> Any:
        """Return a number; NumPy's will do."""
        value = self.take(name, int, float, np.float64, np.float32, np.int64, optional=optional)
        if value is not None and finite:
            self.require(math.isfinite(value), name, f"is {value}")
        return value

    def array(
        self,
        name: str,
        kinds: str = "f",
        shape: Shape | None = None,
        finite: bool = True,
        optional: bool = False,
        nullable: bool = False,
    ) -> Any:
        """Return an array of these kinds of types and this shape, where None stands for any length."""
        value = self.take(name, np.ndarray, optional=optional, nullable=nullable)
        if value is None:
            return None
        self.require(value.dtype.kind in kinds, name, f"holds {value.dtype.name}")
        if shape is not None:
            same = value.ndim == len(shape) and all(
                wanted is None or found == wanted for found, wanted in zip(value.shape, shape, strict=True)
            )
            self.require(same, name, f"has shape {value.shape}, not {shape}")
        if finite and value.dtype.kind == "f":
            self.require(np.isfinite(value).all(), name, "has numbers that are not finite")
        return value

    def matrix(self, name: str, shape: Shape, finite: bool = True) -> Any:
        """Return numbers of this shape, an array or a sparse matrix."""
        value: Any = self.values.get(name)
        if not sp.issparse(value):
            return self.array(name, "f", shape, finite)
        self._left.discard(name)
        pairs = zip(value.shape, shape, strict=True)
        same = all(wanted is None or found == wanted for found, wanted in pairs)
        self.require(same, name, f"has shape {value.shape}, not {shape}")
        self.require(value.dtype.kind == "f", name, f"holds {value.dtype.name}")
        self.require(not finite or np.isfinite(value.data).all(), name, "has numbers that are not finite")
        return value

    def indices(self, name: str, count: int, shape: Shape = (None,), least: int = 0) -> Any:
        """Return whole numbers below ``count``."""
        value = self.array(name, "iu", shape)
        self.require_indices(value, count, name, least)
        return value

    def require_indices(self, value: Any, count: int, name: str, least: int = 0) -> None:
        """Refuse the file unless all of these are at least ``least`` and below ``count``."""
        inside = not value.size or (int(value.min()) >= least and int(value.max()) < count)
        self.require(inside, name, f"has numbers that are not from {least} to {count - 1}")

    def columns(self, least: int = 0) -> int:
        """Return the number of columns, after checking their names."""
        count: int = self.whole("n_features_in_", least, MOST_COLUMNS)
        names = self.array("feature_names_in_", "O", (count,), optional=True)
        if names is not None:
            self.require(all(type(one) is str for one in names), "feature_names_in_", "are not all text")
        return count

    def classes(self, least: int = 1) -> Array:
        """Return the labels, of which there are several, in order and each once."""
        labels: Array = self.array("classes_", "biufUO", (None,))
        self.require_classes(labels, "classes_", least)
        return labels

    def require_classes(self, labels: Any, name: str, least: int = 1) -> None:
        """Refuse the file unless these are labels, each there once."""
        self.require(isinstance(labels, np.ndarray) and labels.ndim == 1, name, "is no list of labels")
        self.require(labels.dtype.kind in "biufUO", name, f"holds {labels.dtype.name}")
        plain = [one.item() if isinstance(one, np.generic) else one for one in labels.tolist()]
        good = all(type(one) in (str, int, float, bool) for one in plain)
        self.require(good, name, "has labels that are neither text nor numbers")
        numbers = [one for one in plain if isinstance(one, float)]
        self.require(not any(map(math.isnan, numbers)), name, "has labels that are no numbers")
        self.require(len(set(plain)) == len(plain), name, "has a label twice")
        self.require(len(plain) >= least, name, f"has {len(plain)} labels, and {least} are needed")

    def rest(self) -> None:
        """Refuse the file where an attribute is left that no check has taken."""
        if self._left:
            refuse(f"{self.where}.{sorted(self._left)[0]}", "is an attribute that this version does not know")
