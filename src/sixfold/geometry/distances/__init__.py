"""Distances between rows: the table of them, and ``between(queries, rows, metric)``."""

from sixfold.geometry.distances.base import Distance
from sixfold.geometry.distances.pairwise import Called, Gower, Named, NanEuclidean, Precomputed
from sixfold.geometry.distances.standard import (
    DISTANCES,
    OTHERS,
    Cosine,
    Hamming,
    Mahalanobis,
    Minkowski,
    SquaredEuclidean,
    StandardisedEuclidean,
    between,
    distance_kind,
    make_distance,
)

__all__ = [
    "DISTANCES",
    "OTHERS",
    "Called",
    "Cosine",
    "Distance",
    "Gower",
    "Hamming",
    "Mahalanobis",
    "Minkowski",
    "Named",
    "NanEuclidean",
    "Precomputed",
    "SquaredEuclidean",
    "StandardisedEuclidean",
    "between",
    "distance_kind",
    "make_distance",
]
