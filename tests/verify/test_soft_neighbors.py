"""The check of neighbourhood components: what it recomputes, and which changes it finds."""

import dataclasses

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification

from oracles import soft_neighbors as oracle
from sixfold import Certificate, NeighborhoodComponentsAnalysis
from sixfold.errors import CertificateError
from sixfold.explain.certificate_words import in_plain_words
from sixfold.verify import soft_neighbors

X, Y = load_iris(return_X_y=True)
pytestmark = pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")


def recomputed(X, y, components, weight=None):
    q = np.ones(len(X)) if weight is None else weight
    claimed = Certificate(soft_neighbors.KIND, 0.5, 1.0, 1.0, 0.0)
    return soft_neighbors.recompute(X, y, q, components, claimed).certificate


@pytest.mark.parametrize("scale", [0.1, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("block", [64, 1 << 21])
def test_loss_and_slope_are_those_of_the_oracle(scale, weighted, block, monkeypatch):
    monkeypatch.setattr(soft_neighbors, "BLOCK_NUMBERS", block)
    rng = np.random.default_rng(0)
    L = rng.standard_normal((2, 4))
    weight = rng.uniform(0.0, 3.0, 150) if weighted else None
    found = recomputed(X * scale, Y, L, weight)
    assert found.objective == pytest.approx(oracle.loss(L, X * scale, Y, weight), abs=1e-7)
    slope = np.linalg.norm(oracle.slope(L, X * scale, Y, weight)) * np.linalg.norm(L)
    assert found.gap == pytest.approx(slope, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("parameters", [{}, {"n_components": 2}, {"init": "pca", "n_components": 1}], ids=str)
@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_an_honest_fit_is_confirmed_and_a_changed_one_is_not(parameters, scale):
    model = NeighborhoodComponentsAnalysis(**parameters).fit(X * scale, Y)
    model.certificate_.verify(X * scale, Y)
    model.components_ = model.components_ * [1.0, 1.0, 0.2, 1.0]
    with pytest.raises(CertificateError, match=r"the objective is|a gap of at most"):
        model.certificate_.verify(X * scale, Y)


@pytest.mark.parametrize(
    "change", [lambda L: L[:, :2], lambda L: L[0], lambda L: np.where(L > 0, np.nan, L)], ids=range(3)
)
def test_a_map_of_other_shape_or_without_numbers_is_refused(change):
    model = NeighborhoodComponentsAnalysis(max_iter=3).fit(X, Y)
    model.components_ = change(model.components_)
    with pytest.raises(CertificateError, match="no matrix of finite numbers"):
        model.certificate_.verify(X, Y)


@pytest.mark.parametrize("init", ["whitening", "random"])
def test_a_loss_that_rounding_has_blurred_is_confirmed_as_it_is_claimed(init):
    """Beside one row that is far out, products tell little of the others, and differences more."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 3, 61)
        table = rng.standard_normal((61, 4)) + labels[:, None]
        table[60] = 1e6 * table[0]
        model = NeighborhoodComponentsAnalysis(init=init, random_state=0, max_iter=5).fit(table, labels)
        model.certificate_.verify(table, labels)


def test_columns_of_all_sizes_have_a_slope_that_is_a_number():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, 60)
    table = (rng.standard_normal((60, 4)) + labels[:, None]) * [1e-100, 1.0, 1e100, 1e-5]
    for init in ("identity", "whitening", "lda", "random"):
        model = NeighborhoodComponentsAnalysis(init=init, random_state=0, max_iter=5).fit(table, labels)
        assert not np.isnan(model.certificate_.gap)
        model.certificate_.verify(table, labels)


def test_other_rows_labels_and_weights_are_told():
    model = NeighborhoodComponentsAnalysis().fit(X, Y)
    for table, labels, weight in [(X * 1.01, Y, None), (X, np.roll(Y, 7), None), (X, Y, np.arange(150.0))]:
        with pytest.raises(CertificateError):
            model.certificate_.verify(table, labels, weight)


@pytest.mark.parametrize(
    "change", [{"objective": 0.01}, {"gap": 1e-9}, {"kind": "duality gap"}, {"objective": 0.5}], ids=str
)
def test_claims_that_are_too_good_are_refused(change):
    model = NeighborhoodComponentsAnalysis(max_iter=3).fit(X, Y)
    with pytest.raises(CertificateError):
        dataclasses.replace(model.certificate_, **change).verify(X, Y)


def test_the_certificate_says_that_there_is_no_bound():
    certificate = NeighborhoodComponentsAnalysis().fit(X, Y).certificate_
    assert certificate.kind == "stationary point"
    assert str(certificate).startswith("stationary point: no bound: not convex; the slope is ")
    assert certificate.lower_bound == -np.inf
    assert "bounds nothing" in certificate.legend
    assert "no bound" in in_plain_words(certificate)
    assert Certificate.from_json(certificate.to_json()).gap == certificate.gap


def test_large_tables_are_confirmed_whichever_loop_has_made_the_map():
    table, labels = make_classification(900, 12, n_informative=8, n_classes=4, random_state=0)
    for scale in (0.05, 1.0, 30.0):
        model = NeighborhoodComponentsAnalysis(max_iter=4).fit(table * scale, labels)
        model.certificate_.verify(table * scale, labels)
