"""A distance that is learnt from labelled rows: plain distance, after a linear map.

    d(x, q) = |L (x - q)| = sqrt((x - q)' M (x - q)),        M = L'L

What learns L is any transformer x -> L x + c, ours or scikit-learn's, alone or behind a scaler in a pipeline.
L is read off by asking for the images of 0 and of multiples of the unit rows; a map that is not linear on
random rows or on training rows is refused.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError
from sixfold.geometry.distances.base import EUCLIDEAN, Distance, Measure
from sixfold.geometry.distances.transforms import offsets

Array = NDArray[Any]

PROBES = 8  # random rows whose images tell whether a map is linear
ROWS = 64  # training rows that are asked, too: one made of pieces may be linear near 0
LONGER = 2.0**32  # times the unit row, where its image is near that of 0; a power of 2 changes no digit
LONGEST = 2.0**480  # beyond, squares of rows overflow
LARGEST = 2.0**500  # number in an image: sums of squared differences are numbers, too
UNIT_ROWS = 256  # that are mapped at a time: all of a wide table would be a square of its width
LINEAR = 1e-6  # by which they may be off, relative to the largest of them: single precision is


@dataclass(frozen=True, eq=False)
class Learned(Distance):
    """|L (x - q)|, L learnt from labelled rows.

    Parameters
    ----------
    transformer : transformer or array of shape (components, columns)
        What learns L, for instance ``NeighborhoodComponentsAnalysis()``, which ``fit`` of the nearest
        neighbours fits to its own rows and labels; one that is fitted, or L itself, is taken as it is. A
        clone is not fitted, so that in a cross-validation every fold learns from its own rows.

    Examples
    --------
    >>> from sixfold import KNeighborsClassifier, distances
    >>> wide = distances.Learned([[0.1, 0.0], [0.0, 1.0]])
    >>> model = KNeighborsClassifier(1, metric=wide).fit([[0.0, 0.0], [9.0, 3.0]], ["a", "b"])
    >>> model.predict([[8.0, 0.5]])
    array(['a'], dtype='<U1')
    """

    transformer: Any
    centre: Array | None = None

    def __post_init__(self) -> None:
        """Check what the distance is to be learnt by."""
        given = self.transformer
        if isinstance(given, type):
            raise InputError(f"Learned was given the class {given.__name__}. Pass {given.__name__}().")
        if hasattr(given, "fit") and hasattr(given, "transform"):
            return
        try:
            matrix = np.array(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"Learned({given!r:.80}) is neither a transformer nor a matrix of numbers. Pass for instance "
                "NeighborhoodComponentsAnalysis(), or an array of shape (components, columns)."
            ) from error
        if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
            raise InputError(
                f"Learned was given an array of shape {matrix.shape}. Pass a matrix of finite numbers, of "
                "shape (components, columns)."
            )
        object.__setattr__(self, "transformer", matrix)

    def __repr__(self) -> str:
        given = self.transformer
        return f"Learned({f'array of shape {given.shape}' if isinstance(given, np.ndarray) else repr(given)})"

    # -- learning ------------------------------------------------------------------------------------------

    @property
    def fitted(self) -> bool:
        """Whether L is known."""
        if isinstance(self.transformer, np.ndarray):
            return True
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted

        try:
            check_is_fitted(self.transformer)
        except NotFittedError:
            return False
        return hasattr(self.transformer, "n_features_in_")  # some ask for no fit, and yet know no columns

    def learnt(self, X: Any, y: Any, weight: Array | None = None, time_limit: float | None = None) -> Self:
        """Return the distance learnt from these rows and labels; itself where it is known already.

        The limit holds for a transformer that has none of its own.
        """
        if self.fitted:
            return self
        from sklearn.base import clone
        from sklearn.utils.validation import has_fit_parameter

        if weight is not None and not has_fit_parameter(self.transformer, "sample_weight"):
            raise InputError(
                f"metric={self!r} is learnt without sample_weight, which its transformer does not take. Fit "
                "it first, and pass Learned the fitted one, or leave sample_weight out."
            )
        transformer = clone(self.transformer)
        if time_limit is not None and getattr(transformer, "time_limit", time_limit) is None:
            transformer.set_params(time_limit=time_limit)
        weights = {} if weight is None else {"sample_weight": weight}
        return replace(self, transformer=transformer.fit(X, y, **weights))

    def of_rows(self, X: Any) -> Self:
        """Return the distance for training rows like these."""
        if not self.fitted:
            raise InputError(
                f"metric={self!r} is not learnt yet. Fit its transformer first, or fit nearest neighbours "
                "with it, which do so."
            )
        made = replace(self, centre=offsets(X))  # asks the transformer again, which may be fitted anew
        if made.components.shape[1] != X.shape[1]:
            raise InputError(
                f"metric={self!r} was learnt from rows of {made.components.shape[1]} columns, but X has "
                f"{X.shape[1]}. Pass rows with the same columns."
            )
        if not isinstance(self.transformer, np.ndarray):
            some = np.linspace(0, X.shape[0] - 1, min(X.shape[0], ROWS)).astype(np.int64)
            made._require_linear(X[some].astype(np.float64), *made._linear)
        return made

    @property
    def components(self) -> Array:
        """L, of shape (components, columns)."""
        return self.transformer if isinstance(self.transformer, np.ndarray) else self._linear[0]

    @cached_property
    def _linear(self) -> tuple[Array, Array]:
        """L and the image of 0."""
        columns = int(self.transformer.n_features_in_)
        constant = self._images(np.zeros((1, columns)))[0]
        step = np.ones(columns)
        moved = self._unit_images(np.arange(columns), step) - constant
        while True:
            # A column of large numbers moves by 1 as good as nowhere: what differs would be rounding.
            near = np.abs(moved).max(axis=1) < np.abs(constant).max()
            short = np.flatnonzero(near & (step < LONGEST))
            if not short.size:
                break
            step[short] *= LONGER
            moved[short] = self._unit_images(short, step) - constant
        L = moved.T / step
        self._require_linear(np.random.default_rng(0).standard_normal((PROBES, columns)) * step, L, constant)
        return np.ascontiguousarray(L), constant

    def _require_linear(self, rows: Array, L: Array, constant: Array) -> None:
        images, linear = self._images(rows), rows @ L.T
        size = max(float(np.abs(part).max()) for part in (images, linear, constant))
        if not np.abs(images - constant - linear).max() <= LINEAR * size:
            raise InputError(
                f"{self.transformer!r} is no linear map of rows. Put it before the nearest neighbours in a "
                "pipeline, and leave the metric as it is."
            )

    def _unit_images(self, which: Array, step: Array) -> Array:
        """Return the images of rows that are 0 but in one column each, and there ``step``."""
        parts = []
        for some in np.split(which, range(UNIT_ROWS, which.size, UNIT_ROWS)):
            rows = np.zeros((some.size, step.size))
            rows[np.arange(some.size), some] = step[some]
            parts.append(self._images(rows))
        return np.concatenate(parts)

    def _images(self, rows: Array) -> Array:
        with warnings.catch_warnings():
            # One that was fitted to a table with names would rather have them here, too.
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
            images = self.transformer.transform(rows)
        return np.asarray(images.toarray() if hasattr(images, "toarray") else images, dtype=np.float64)

    # -- the distance --------------------------------------------------------------------------------------

    @property
    def measure(self) -> Measure:
        """Euclidean, of the images of rows."""
        return EUCLIDEAN

    def embed(self, rows: Any, query: bool = False) -> Any:
        """Return L (x - centre)."""
        centre = 0.0 if self.centre is None else self.centre
        # einsum adds up in one order whatever the number of rows: a row has the same image in any company.
        with np.errstate(over="ignore", invalid="ignore"):
            images = np.einsum("ij,kj->ik", rows - centre, self.components, optimize=False)
        if images.size and not max(images.max(), -images.min()) < LARGEST:
            raise InputError(
                f"The rows are so large after the map of metric={self!r} that their squared distances "
                "overflow. Divide the columns or the map by a power of ten first."
            )
        return images

    # -- as a parameter of scikit-learn's estimators -------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the transformer and its parameters, for searches over ``metric__transformer__...``."""
        given = self.transformer
        inner = given.get_params() if deep and hasattr(given, "get_params") else {}
        return {"transformer": given} | {f"transformer__{name}": value for name, value in inner.items()}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters of the transformer."""
        inner = {name.removeprefix("transformer__"): value for name, value in parameters.items()}
        if inner and isinstance(self.transformer, np.ndarray):
            raise InputError(f"{self!r} has no parameters. Pass another one: metric=Learned(...).")
        if "transformer" in inner:
            raise InputError(
                "A learnt distance keeps its transformer. Pass another one: metric=Learned(...)."
            )
        self.transformer.set_params(**inner)
        return self

    def __sklearn_clone__(self) -> Self:
        from sklearn.base import clone

        given = self.transformer
        return type(self)(given if isinstance(given, np.ndarray) else clone(given))
