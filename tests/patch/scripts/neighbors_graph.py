"""Neighbours without labels: distances, graphs, and a pipeline that keeps them."""

from sklearn.datasets import load_iris
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsTransformer,
    NearestNeighbors,
    RadiusNeighborsClassifier,
)
from sklearn.pipeline import make_pipeline

X, y = load_iris(return_X_y=True)
near = NearestNeighbors(n_neighbors=4).fit(X)
distances, rows = near.kneighbors(X[:50:10] + 0.013)
print(distances.round(4), rows)
print(near.kneighbors_graph(X).sum(), near.radius_neighbors_graph(X, 0.52).nnz)
chain = make_pipeline(
    KNeighborsTransformer(n_neighbors=10, mode="distance"), KNeighborsClassifier(7, metric="precomputed")
)
print(round(chain.fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 4))
print(round(RadiusNeighborsClassifier(1.5).fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 4))
