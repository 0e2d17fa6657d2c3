"""Where the search for a linear map of rows begins.

    identity    L = I, or its first rows
    pca         the directions in which the rows spread most
    lda         the directions in which the means of classes differ most, where a class spreads by 1 in each
    whitening   L = V^(-1/2), V the covariance within classes; the same as lda where L has fewer rows
    random      numbers of a normal distribution

with L of shape (components, columns). Rows count by their weights.

Source: Fisher (1936) for lda; Goldberger et al. (2004), section 3, for what the start decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Of the largest spread: below, a direction counts as one without any, as in scikit-learn's discriminants.
LEAST_SPREAD = 1e-4


def identity(components: int, columns: int) -> Array:
    """Return the first rows of the identity."""
    return np.eye(components, columns)


def principal_directions(X: Array, q: Array, components: int) -> Array:
    """Return the directions of most variance, of length 1; ``q`` are weights with sum 1."""
    centred = X - q @ X
    if X.shape[0] < X.shape[1]:
        return _directions_of_rows(centred, q)[0][:components]
    _, directions = np.linalg.eigh((centred * q[:, None]).T @ centred)
    return np.ascontiguousarray(directions[:, ::-1][:, :components].T)


def class_means(X: Array, index: Array, q: Array, classes: int) -> tuple[Array, Array]:
    """Return the weighted mean of each class, and the share that it has of the weights."""
    share = np.bincount(index, q, classes)
    sums = np.zeros((classes, X.shape[1]))
    np.add.at(sums, index, X * q[:, None])
    return sums / np.where(share > 0, share, 1.0)[:, None], share


def whitening(X: Array, index: Array, q: Array, classes: int) -> Array:
    """Return W with W V W' = I, V the covariance within classes, of full rank, the widest spread first.

    A direction in which classes do not spread, but differ, is stretched as one of the least spread that can
    be told from none; one in which no rows differ, of which nothing is known, as that of the largest.
    """
    centred, unit = _in_units(X, q)
    return _white(centred, index, q, classes) / unit


def _in_units(X: Array, q: Array) -> tuple[Array, Array]:
    """Return the centred rows with every column's spread as its unit, and the units."""
    centred = X - q @ X
    counted = X[q > 0]
    centred[:, counted.min(axis=0) == counted.max(axis=0)] = 0.0  # but for the rounding of their mean
    unit = _spreads(centred, q)
    unit[unit == 0] = 1.0
    return centred / unit, unit


def _white(centred: Array, index: Array, q: Array, classes: int) -> Array:
    means, _ = class_means(centred, index, q, classes)
    inside = centred - means[index]
    values, directions = np.linalg.eigh((inside * q[:, None]).T @ inside)
    spread = np.sqrt(np.maximum(values[::-1], 0.0))
    directions = np.ascontiguousarray(directions[:, ::-1].T)
    largest = spread[0] if spread[0] > 0 else 1.0
    differ = _spreads(centred @ directions.T, q) > LEAST_SPREAD * largest
    stretched: Array = np.where(differ, np.maximum(spread, LEAST_SPREAD * largest), largest)
    return directions / stretched[:, None]


def _spreads(centred: Array, q: Array) -> Array:
    spreads: Array = np.sqrt(q @ np.square(centred))
    return spreads


def discriminants(X: Array, index: Array, q: Array, classes: int, components: int) -> Array:
    """Return the directions that tell classes apart best, each scaled so that classes spread by 1."""
    centred, unit = _in_units(X, q)
    if X.shape[0] < X.shape[1]:
        directions, spreads = _directions_of_rows(centred, q)
        basis = directions[spreads > LEAST_SPREAD**2 * spreads[0]]
        if basis.shape[0] >= components:
            return _discriminants(centred @ basis.T, index, q, classes, components) @ basis / unit
    return _discriminants(centred, index, q, classes, components) / unit


def _directions_of_rows(centred: Array, q: Array) -> tuple[Array, Array]:
    """Return the directions of rows that are fewer than the columns, and how much they spread in each."""
    _, spreads, directions = np.linalg.svd(centred * np.sqrt(q)[:, None], full_matrices=False)
    return np.ascontiguousarray(directions), spreads


def _discriminants(centred: Array, index: Array, q: Array, classes: int, components: int) -> Array:
    white = _white(centred, index, q, classes)
    means, share = class_means(centred, index, q, classes)
    apart = (means - share @ means) * np.sqrt(share)[:, None] @ white.T
    _, _, directions = np.linalg.svd(apart, full_matrices=True)
    return np.ascontiguousarray(directions[:components] @ white)


def class_whitening(X: Array, index: Array, q: Array, classes: int, components: int) -> Array:
    """Return the symmetric V^(-1/2), or the ``components`` directions in which classes differ most."""
    if components < X.shape[1]:
        return discriminants(X, index, q, classes, components)
    white = whitening(X, index, q, classes)
    values, directions = np.linalg.eigh(white.T @ white)
    return np.ascontiguousarray((directions * np.sqrt(np.maximum(values, 0.0))) @ directions.T)


def random_map(generator: np.random.RandomState, components: int, columns: int) -> Array:
    """Return what scikit-learn draws for the same seed."""
    return generator.standard_normal(size=(components, columns))
