"""The check of an exact search: it accepts right answers, ties among them, and catches every fault put in."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold import KNeighborsClassifier, KNeighborsRegressor
from sixfold.errors import CertificateError
from sixfold.geometry.distances import DISTANCES
from sixfold.learners.neighbors.stored_rows import StoredRows
from sixfold.solvers.neighbors.search import DistanceSearch

RNG = np.random.default_rng(0)


def largest_of_powers(q, x):
    return float(np.abs(q - x).max() ** 0.5)


def grid(rows=120, columns=3):
    """Return rows of few values, so that most distances are shared by several rows."""
    return RNG.integers(0, 4, size=(rows, columns)).astype(float)


CASES = {
    "euclidean": (lambda X: X, {}),
    "many columns": (lambda X: np.tile(X, (5, 60)), {}),
    "k-d tree": (lambda X: X, {"algorithm": "kd_tree"}),
    "single precision": (lambda X: (X / 3).astype(np.float32), {}),
    "manhattan": (lambda X: X, {"metric": "manhattan"}),
    "bytes": (lambda X: X.astype(np.uint8), {"metric": "manhattan"}),
    "chebyshev": (lambda X: X, {"metric": "chebyshev"}),
    "powers": (lambda X: X, {"p": 3}),
    "weighted": (lambda X: X, {"metric_params": {"w": [1.0, 0.0, 2.5]}}),
    "cosine": (lambda X: X + 0.25, {"metric": "cosine"}),
    "gower": (lambda X: np.where(X == 3, np.nan, X), {"metric": "gower"}),
    "missing": (lambda X: np.where(X == 3, np.nan, X), {"metric": "nan_euclidean"}),
    "mahalanobis": (lambda X: X, {"metric": "mahalanobis"}),
    "sparse": (sp.csr_array, {}),
    "sparse sums": (sp.csr_array, {"metric": "manhattan"}),
    "sparse cosine": (sp.csr_array, {"metric": "cosine"}),
    "precomputed": (lambda X: np.abs(X[:, None] - X).sum(axis=2), {"metric": "precomputed"}),
    "function": (lambda X: X, {"metric": largest_of_powers}),
}
every_case = pytest.mark.parametrize("case", CASES)


def fitted(case, k=4, weight=None):
    kind, options = CASES[case]
    X = kind(grid())
    y = RNG.integers(0, 3, size=X.shape[0])
    return KNeighborsClassifier(k, **options).fit(X, y, weight), X, y


def changed(monkeypatch, change):
    """Let the search give other answers: ``change`` gets distances and rows of each query, itself first."""
    plain = DistanceSearch.nearest

    def nearest(self, queries, k, budget):
        found = plain(self, queries, k, budget)
        distances, rows = found.distances.copy(), found.rows.copy()
        for d, r in zip(distances, rows, strict=True):
            change(d, r)
        return dataclasses.replace(found, distances=distances, rows=rows)

    monkeypatch.setattr(DistanceSearch, "nearest", nearest)


@every_case
@pytest.mark.parametrize("k", [1, 4, 119])
def test_a_right_search_is_accepted(case, k):
    model, X, y = fitted(case, k)
    assert model.certificate_.verify(X, y).objective == pytest.approx(0.0, abs=1e-11)


@every_case
def test_rows_of_weight_zero_are_left_out(case):
    weight = RNG.choice([0.0, 1.0, 3.0], size=120)
    if case == "many columns":
        weight = np.tile(weight, 5)
    model, X, y = fitted(case, weight=weight)
    model.certificate_.verify(X, y, weight)


TABLES = {
    "offset": lambda: 1e8 + RNG.integers(0, 50, size=(80, 3)) / 64,
    "tenths": lambda: RNG.integers(0, 9, size=(80, 4)) / 10,
    "tiny": lambda: RNG.normal(size=(60, 4)) * 1e-150,
    "subnormal": lambda: RNG.integers(0, 9, size=(60, 2)) * 5e-324,
    "scales": lambda: RNG.normal(size=(60, 3)) * [1e-9, 1.0, 1e9],
    "duplicates": lambda: np.repeat(RNG.normal(size=(15, 6)), 4, axis=0),
    "parallel rows": lambda: np.outer(RNG.integers(1, 9, size=60), [0.1, 0.7, 0.3]),
    "zeros": lambda: np.zeros((40, 3)),
    "one row": lambda: RNG.normal(size=(1, 5)),
}


@pytest.mark.parametrize("metric", [name for name in DISTANCES if name != "precomputed"])
@pytest.mark.parametrize("table", TABLES)
def test_rounding_is_no_mistake(metric, table):
    X = TABLES[table]()
    model = KNeighborsRegressor(3, metric=metric).fit(X, np.arange(len(X)))
    model.certificate_.verify(X, np.arange(len(X)))


# -- faults ---------------------------------------------------------------------------------------------


def refuses(message):
    return pytest.raises(CertificateError, match=message)


@every_case
def test_a_wrong_neighbour_is_caught(case, monkeypatch):
    model, X, y = fitted(case)
    far = {row: model.kneighbors(X[[row]], X.shape[0])[1][0, -1] for row in (0, X.shape[0] - 1)}

    def take_the_farthest(d, r):
        if r[0] in far:
            r[-1] = far[r[0]]

    changed(monkeypatch, take_the_farthest)
    with refuses(r"Of the 4 neighbours of row \d+, row \d+ is not at distance"):
        model.certificate_.verify(X, y)


@every_case
def test_a_neighbour_that_is_passed_over_is_caught(case, monkeypatch):
    model, X, y = fitted(case)
    plain = DistanceSearch.nearest

    def nearest(self, queries, k, budget):
        found = plain(self, queries, min(k + 60, self.rows), budget)
        kept = [0, *range(found.rows.shape[1] - k + 1, found.rows.shape[1])]
        return dataclasses.replace(found, distances=found.distances[:, kept], rows=found.rows[:, kept])

    monkeypatch.setattr(DistanceSearch, "nearest", nearest)
    with refuses(r"row \d+ is missing, which comes before row \d+"):
        model.certificate_.verify(X, y)


@every_case
@pytest.mark.parametrize("factor", [1.0 - 1e-9, 1.0 + 1e-9])
def test_a_wrong_distance_is_caught(case, factor, monkeypatch):
    model, X, y = fitted(case, 40)

    def scale_the_last(d, r):
        d[-1] *= factor

    changed(monkeypatch, scale_the_last)
    with refuses(r"row \d+ is not at distance .*, but at|not all are in the order"):
        model.certificate_.verify(X, y)


@every_case
def test_a_tie_in_the_wrong_order_is_caught(case, monkeypatch):
    model, X, y = fitted(case, 12)

    def swap_a_tie(d, r):
        for i in np.flatnonzero(d[1:-1] == d[2:]) + 1:
            r[i], r[i + 1] = r[i + 1], r[i]

    changed(monkeypatch, swap_a_tie)
    with refuses("not all are in the order of their distances and numbers"):
        model.certificate_.verify(X, y)


@pytest.mark.parametrize(
    "case", [name for name in CASES if name not in ("powers", "cosine", "sparse cosine")]
)
def test_a_tied_row_with_a_lower_number_must_not_be_passed_over(case, monkeypatch):
    model, X, y = fitted(case, 2)
    plain = DistanceSearch.nearest

    def nearest(self, queries, k, budget):
        found = plain(self, queries, min(k + 60, self.rows), budget)
        distances, rows = found.distances[:, :k].copy(), found.rows[:, :k].copy()
        for i in range(len(rows)):
            rows[i, -1] = found.rows[i, np.flatnonzero(found.distances[i] == distances[i, -1])[-1]]
        return dataclasses.replace(found, distances=distances, rows=rows)

    monkeypatch.setattr(DistanceSearch, "nearest", nearest)
    with refuses(r"row \d+ is missing, which comes before row \d+"):
        model.certificate_.verify(X, y)


@every_case
def test_a_row_that_is_found_twice_is_caught(case, monkeypatch):
    model, X, y = fitted(case, 30)

    def repeat(d, r):
        if d[-2] > 0:  # the row before is not the query itself
            d[-1], r[-1] = d[-2], r[-2]

    changed(monkeypatch, repeat)
    with refuses("not all are different rows that count"):
        model.certificate_.verify(X, y)


def test_too_few_neighbours_are_caught(monkeypatch):
    model, X, y = fitted("euclidean")
    plain = StoredRows.nearest

    def nearest(self, queries, chunk, budget):
        found = plain(self, queries, chunk, budget)
        return dataclasses.replace(found, distances=found.distances[:, :-1], rows=found.rows[:, :-1])

    monkeypatch.setattr(StoredRows, "nearest", nearest)
    with refuses("Of the 4 neighbours of row 0, only 3 were found"):
        model.certificate_.verify(X, y)


def test_a_row_of_weight_zero_that_is_found_is_caught(monkeypatch):
    weight = np.where(np.arange(120) % 2, 1.0, 0.0)
    model, X, y = fitted("euclidean", weight=weight)
    monkeypatch.setattr(StoredRows, "_numbered", lambda self, rows, *counts: rows)
    with refuses("not all are different rows that count"):
        model.certificate_.verify(X, y, weight)


@every_case
def test_a_stored_row_that_was_changed_is_caught(case):
    model, X, y = fitted(case)
    given = X.copy()
    stored = model._store.rows
    stored[[77]] = stored[[76]] * 3 + (sp.csr_array([[1.0] * 3]) if sp.issparse(stored) else 1)
    with refuses(r"1 of \d+ rows of X are not what the model keeps, the first of them row 77"):
        model.certificate_.verify(given, y)


@pytest.mark.parametrize("case", ["k-d tree", "many columns", "sparse"])
def test_an_index_that_is_not_of_these_rows_is_caught(case):
    model, X, y = fitted(case)
    other, _, _ = fitted(case)
    model._store._search = other._store._search
    with refuses("Of the 4 neighbours of row"):
        model.certificate_.verify(X, y)
