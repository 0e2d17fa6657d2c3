"""The checker of separating planes and of proofs that there are none, on points worked out by hand."""

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold.certificate import Certificate
from sixfold.errors import CertificateError
from sixfold.verify.separation import SeparationClaim, recompute

SQUARE = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
XOR = np.array([[-1.0], [1.0], [1.0], [-1.0]])
AND = np.array([[-1.0], [-1.0], [-1.0], [1.0]])
PROOF = (np.arange(4), np.full(4, 0.25))  # both diagonals meet in the middle


def check(y, w, b, proof=None, margin=0.0, X=SQUARE, weights=None, fit_intercept=True):
    w, b = np.array(w, dtype=float)[:, None], np.array([float(b)])
    claimed = Certificate("any", 0.0, 0.0, 1.0, 0.0, {"margin": [margin]})
    return recompute(SeparationClaim(X, y, weights, w, b, fit_intercept, [proof]), claimed).certificate


def test_a_separating_plane_has_its_margin_and_no_gap():
    # The corner (1, 1) has the score 2 + 2 - 3 = 1, the next ones -1; |(2, 2, -3)| = sqrt 17.
    found = check(AND, [2.0, 2.0], -3.0, margin=1.0 / np.sqrt(17.0))
    assert (found.objective, found.gap) == (0.0, 0.0)


@pytest.mark.parametrize("margin", [0.25, 0.2, -0.2])
def test_another_margin_is_refused(margin):
    with pytest.raises(CertificateError, match="the margin is"):
        check(AND, [2.0, 2.0], -3.0, margin=margin)


@pytest.mark.parametrize("X", [SQUARE, sp.csr_array(SQUARE), 1e6 + SQUARE])
def test_a_proof_says_that_one_row_is_wrong(X):
    # The plane w = 0 has all four rows on it: all are wrong, one must be.
    found = check(XOR, [0.0, 0.0], 0.0, PROOF, X=X)
    assert (found.objective, found.gap) == (1.0, 0.75)


@pytest.mark.parametrize(
    "proof",
    [
        (np.arange(4), np.array([0.25, 0.25, 0.2, 0.3])),
        (np.arange(4), np.array([0.25, 0.25, -0.25, -0.25])),
        (np.arange(3), np.full(3, 1 / 3)),
        (np.array([0, 1, 2, 4]), np.full(4, 0.25)),
        (np.array([], dtype=int), np.array([])),
    ],
)
def test_a_proof_that_is_none_is_refused(proof):
    with pytest.raises(CertificateError, match="do not span a point"):
        check(XOR, [0.0, 0.0], 0.0, proof)


def test_a_row_that_does_not_count_proves_nothing():
    with pytest.raises(CertificateError, match="do not span a point"):
        check(XOR, [0.0, 0.0], 0.0, PROOF, weights=np.array([1.0, 1.0, 1.0, 0.0]))


def test_separable_classes_have_no_proof():
    rng = np.random.default_rng(0)
    for _ in range(100):
        c = rng.dirichlet(np.ones(4))
        with pytest.raises(CertificateError, match="do not span a point"):
            check(AND, [0.0, 0.0], 0.0, (np.arange(4), c))
