"""Distances between rows: the table of them, and ``between(queries, rows, metric)``."""

from sixfold.geometry.distances.base import EUCLIDEAN, Distance, Measure
from sixfold.geometry.distances.learned import Learned
from sixfold.geometry.distances.pairwise import Called, Gower, Named, NanEuclidean, Paired, Precomputed
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
    "EUCLIDEAN",
    "OTHERS",
    "Called",
    "Cosine",
    "Distance",
    "Gower",
    "Hamming",
    "Learned",
    "Mahalanobis",
    "Measure",
    "Minkowski",
    "Named",
    "NanEuclidean",
    "Paired",
    "Precomputed",
    "SquaredEuclidean",
    "StandardisedEuclidean",
    "between",
    "distance_kind",
    "make_distance",
]
