"""What every learnt distance is: a linear map of rows, after which plain distance means what was learnt.

    d(x, z) = |L x - L z| = sqrt((x - z)' M (x - z)),        M = L'L

    fit         check the rows and labels -> where to start -> learn L within a budget
    transform   L x for each row x

A class of its own says what is learnt, and by which solver.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sixfold.data.checks import check_rows, column_names, require_computable
from sixfold.data.labels import LabelledData, check_labelled
from sixfold.errors import InputError, check_flag, check_number, check_option
from sixfold.learners.base import IterativeLearner
from sixfold.solvers.metric_learning import starts
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]

STARTS = ("auto", "pca", "lda", "identity", "random", "whitening")


class LearnedMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, IterativeLearner, ABC):
    """A linear map of rows that is learnt from their labels."""

    n_components: int | None
    init: Any
    warm_start: Any
    random_state: Any
    components_: Array

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn the map.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            The rows.
        y : array of shape (n_samples,)
            The label of each row: text, whole numbers or booleans.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts.

        Returns
        -------
        object
            The fitted transformer itself.
        """
        return self._run_fit(X, y, sample_weight)

    def transform(self, X: Any) -> Array:
        """Return L x for each row.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        return check_rows(self, X) @ self.components_.T

    def get_mahalanobis_matrix(self) -> Array:
        """Return M = L'L, of shape (n_features, n_features)."""
        check_is_fitted(self)
        L = self.components_.astype(np.float64)
        return L.T @ L

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    # -- what the steps of a fit share ---------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_number("n_components", self.n_components, at_least=1, whole=True, optional=True)
        check_flag("warm_start", self.warm_start)
        if not _is_array(self.init):
            check_option("init", self.init, STARTS, also="an array of shape (n_components, n_features)")

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> LabelledData:
        data = check_labelled(
            self, X, y, sample_weight, classes=None if reset else self.classes_, reset=reset
        )
        require_computable(data.X, "X", lambda: column_names(self, data.X.shape[1]))
        return data

    def _start(self, data: LabelledData) -> Array:
        """Return the map to begin with, in float64; a new one for every fit."""
        columns = data.X.shape[1]
        components = self._components_wanted(columns)
        before = self.__dict__.get("components_") if self.warm_start else None
        if before is not None:
            return self._earlier_map(before, components, columns)
        if _is_array(self.init):
            return self._given_start(components, columns)
        kind = self._usual_start(data, components) if self.init == "auto" else self.init
        if kind == "random":
            return starts.random_map(check_random_state(self.random_state), components, columns)
        if kind == "identity":
            return starts.identity(components, columns)
        X = data.X.astype(np.float64)
        q = np.ones(X.shape[0]) if data.weight is None else data.weight
        q = q / q.sum()
        if kind == "pca":
            self._require_rows_for_pca(X.shape[0], components)
        # With the threads of BLAS the SVD of 300 x 2,000 took 2 s on a busy machine, with one of them 0.1.
        with single_threaded_blas(min(X.shape)):
            if kind == "pca":
                return starts.principal_directions(X, q, components)
            find = starts.discriminants if kind == "lda" else starts.class_whitening
            return find(X, data.index, q, data.classes.size, components)

    def _earlier_map(self, before: Array, components: int, columns: int) -> Array:
        if before.shape[1] != columns:
            raise InputError(
                f"The new inputs dimensionality ({columns}) does not match the input dimensionality of the "
                f"previously learned transformation ({before.shape[1]}). Set warm_start=False, or pass the "
                "columns of the last fit."
            )
        if self.n_components is not None and before.shape[0] != components:
            raise InputError(
                f"warm_start=True goes on from components_ of shape {before.shape}, but a map of shape "
                f"({components}, {columns}) is asked for. Set warm_start=False, or keep to the n_components "
                "of the last fit."
            )
        return before.astype(np.float64)

    def _usual_start(self, data: LabelledData, components: int) -> str:
        """Return what "auto" stands for: scikit-learn's choice."""
        if components <= min(data.X.shape[1], data.classes.size - 1):
            return "lda"
        return "pca" if components < min(data.X.shape) else "identity"

    def _components_wanted(self, columns: int) -> int:
        if self.n_components is None:
            return self._given_start(None, columns).shape[0] if _is_array(self.init) else columns
        wanted = int(self.n_components)
        if wanted > columns:
            raise InputError(
                f"The preferred dimensionality of the projected space `n_components` ({wanted}) cannot be "
                f"greater than the given data dimensionality ({columns})! Ask for at most {columns}."
            )
        return wanted

    def _require_rows_for_pca(self, rows: int, components: int) -> None:
        if components > rows:
            raise InputError(
                f"init='pca' finds at most as many directions as there are rows, and n_components="
                f"{components} are asked for of {rows} rows. Use init='identity', or fewer components."
            )

    def _given_start(self, components: int | None, columns: int) -> Array:
        try:
            given = np.asarray(self.init, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"init={self.init!r:.50} is neither a name nor numbers ({error}). Pass an array of shape "
                f"(n_components, {columns})."
            ) from error
        if given.ndim != 2:
            raise InputError(
                f"init={self.init!r:.50} has {given.ndim} axes. Pass an array of shape (n_components, "
                f"{columns})."
            )
        if given.shape[1] != columns:
            raise InputError(
                f"The input dimensionality ({given.shape[1]}) of the given linear transformation `init` must "
                f"match the dimensionality of the given inputs `X` ({columns}). Pass an array of shape "
                f"(n_components, {columns})."
            )
        if given.shape[0] > columns:
            raise InputError(
                f"The output dimensionality ({given.shape[0]}) of the given linear transformation `init` "
                f"cannot be greater than its input dimensionality ({columns})."
            )
        if given.shape[0] != (given.shape[0] if components is None else components):
            raise InputError(
                f"The preferred dimensionality of the projected space `n_components` ({components}) does not "
                f"match the output dimensionality of the given linear transformation `init` "
                f"({given.shape[0]})!"
            )
        if not np.isfinite(given).all():
            raise InputError("init holds NaN or infinity. Pass finite numbers.")
        if given.shape[0] == 0:
            raise InputError("init has no rows, so no column would be left. Pass one at least.")
        return given.copy()

    @contextmanager
    def _arithmetic(self, data: LabelledData) -> Iterator[None]:
        with np.errstate(all="ignore"):
            yield

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _is_array(value: Any) -> bool:
    return not isinstance(value, str)
