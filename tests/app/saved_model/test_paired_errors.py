"""Paired tests against SciPy and values worked out by hand."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_rel, wilcoxon

from sixfold.app.saved_model.paired_errors import (
    mcnemar_p_value,
    paired_t_p_value,
    sign_flip_p_value,
    wilcoxon_p_value,
)

RNG = np.random.default_rng(0)


def test_mcnemar_counts_coins():
    assert mcnemar_p_value(0, 0) == 1.0
    assert mcnemar_p_value(0, 5) == pytest.approx(2 * 0.5**5)
    assert mcnemar_p_value(1, 9) == pytest.approx(2 * (1 + 10) / 2**10)
    assert mcnemar_p_value(3, 8) == mcnemar_p_value(8, 3)


def test_paired_t_is_scipy_s():
    a, b = RNG.random(30), RNG.random(30)
    assert paired_t_p_value(a, b) == pytest.approx(ttest_rel(a, b).pvalue)


@pytest.mark.parametrize(("difference", "p"), [([0.0, 0.0], 1.0), ([1.0, 1.0], 0.0), ([1.0], math.nan)])
def test_paired_t_without_spread(difference, p):
    assert paired_t_p_value(np.array(difference), np.zeros(len(difference))) == pytest.approx(p, nan_ok=True)


def test_wilcoxon_is_scipy_s_and_equal_losses_are_equal():
    a, b = RNG.random(30), RNG.random(30)
    assert wilcoxon_p_value(a, b) == pytest.approx(wilcoxon(a, b).pvalue)
    assert wilcoxon_p_value(a, a) == 1.0
    assert math.isnan(wilcoxon_p_value(np.array([np.inf]), np.array([0.0])))


def test_sign_flips_of_equal_terms_are_mcnemar_s():
    for first, second, off in ((1, 9, 1e-12), (3, 8, 1e-12), (40, 20, 0.01)):
        terms = np.concatenate([np.ones(first), -np.ones(second), np.zeros(50)])
        assert sign_flip_p_value(terms) == pytest.approx(mcnemar_p_value(first, second), abs=off)


def test_sign_flips_of_many_rows_are_normal():
    terms = np.concatenate([np.ones(530), -np.ones(470)])
    assert sign_flip_p_value(terms) == pytest.approx(mcnemar_p_value(530, 470), abs=0.01)
    assert sign_flip_p_value(np.zeros(9)) == 1.0
