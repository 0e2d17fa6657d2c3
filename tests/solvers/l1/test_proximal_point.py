"""Proximal points: the minimum where coordinate descent crawls, on rows or on a Gram matrix."""

import numpy as np
import pytest

from sixfold import LinearRegression
from sixfold.budget import Budget
from sixfold.solvers.l1.active_set import Shrinkage
from sixfold.solvers.l1.proximal_point import SOLVED, RowSystem, minimise_on_gram, minimise_on_rows


def unmet(slope, w, rule):
    """Return by how much the slopes miss the conditions of the minimum."""
    steep = slope - rule.l2 * w
    at_zero = np.maximum((steep if rule.positive else np.abs(steep)) - rule.l1, 0.0)
    return np.where(w == 0, at_zero, np.abs(steep - rule.l1 * np.sign(w))).max()


def table(rows, columns, kind, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rows, columns)) / np.sqrt(rows)
    if kind == "collinear":
        A = A[:, :3] @ rng.normal(size=(3, columns)) + 1e-4 * A
    if kind == "scales":
        A = A * 10.0 ** np.linspace(-4, 4, columns)
    return A, A @ (rng.normal(size=columns) / np.abs(A).max(axis=0)) + rng.normal(size=rows) / np.sqrt(rows)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(("l1", "l2"), [(1e-1, 0.0), (1e-4, 0.0), (1e-3, 1e-1), (1e-6, 1e-6)])
@pytest.mark.parametrize("kind", ["independent", "collinear", "scales"])
@pytest.mark.parametrize("shape", [(20, 60), (40, 20)])
def test_both_forms_meet_the_conditions_of_the_minimum(shape, kind, l1, l2, positive):
    A, t = table(*shape, kind)
    rule, start = Shrinkage(l1, l2, positive), np.zeros(shape[1])
    size = np.abs(A.T @ t).max()

    def enough(w, slope, square=0.0):
        return unmet(slope, w, rule) <= 1e-9 * size

    by_gram, slope = minimise_on_gram(A.T @ A, start, A.T @ t, rule, enough, Budget())
    np.testing.assert_allclose(slope, A.T @ (t - A @ by_gram), atol=1e-9 * size)
    by_rows = minimise_on_rows(A.copy(), t, start, rule, enough, Budget())
    for w in (by_gram, by_rows):
        assert not positive or (w >= 0).all()
        assert unmet(A.T @ (t - A @ w), w, rule) <= 1e-8 * size


def test_a_start_that_is_enough_is_returned_as_it_is():
    A, t = table(10, 30, "independent")
    start = np.zeros(30)
    found = minimise_on_rows(A, t, start, Shrinkage(1.0, 0.0, False), lambda *_: True, Budget())
    assert found is start


@pytest.mark.parametrize("l1_ratio", [1.0, 0.9, 0.5, 0.01])
@pytest.mark.parametrize("part", [1e-1, 1e-3, 1e-5])
def test_wide_tables_take_a_few_iterations(l1_ratio, part):
    # Coordinate descent took hundreds where alpha is small and the l1_ratio is not 1.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 400))
    y = X @ rng.normal(size=400) / 20 + rng.normal(size=60)
    alpha = part * np.abs(X.T @ (y - y.mean())).max() / 60
    model = LinearRegression(penalty="elasticnet", l1_ratio=l1_ratio, alpha=alpha, max_iter=12).fit(X, y)
    assert model.certificate_.converged
    model.certificate_.verify(X, y)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_wide_tables_with_weights_and_offsets(weighted, fit_intercept):
    rng = np.random.default_rng(1)
    X = 100.0 * fit_intercept + rng.normal(size=(40, 200)) * 10.0 ** rng.uniform(-3, 3, size=200)
    y = rng.normal(size=40)
    weight = np.where(rng.random(40) < 0.2, 0.0, 10.0 ** rng.uniform(-3, 3, size=40)) if weighted else None
    model = LinearRegression(
        penalty="elasticnet", l1_ratio=0.5, alpha=1e-4, fit_intercept=fit_intercept, max_iter=30
    ).fit(X, y, sample_weight=weight)
    assert model.certificate_.converged
    model.certificate_.verify(X, y, sample_weight=weight)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("alpha", "l1_ratio"), [(1.0, 0.01), (0.1, 0.1), (1e-3, 0.1)])
def test_most_columns_are_taken_at_once_where_most_count(alpha, l1_ratio, order):
    # By working sets that double it took five rounds, and half the time went into matrices of their products.
    rng = np.random.default_rng(0)
    X = np.asarray(rng.normal(size=(60, 600)), order=order)
    y = X[:, :10].sum(axis=1) + rng.normal(size=60)
    model = LinearRegression(penalty="elasticnet", l1_ratio=l1_ratio, alpha=alpha).fit(X, y)
    assert model.certificate_.converged
    assert model.n_iter_ <= 2
    assert np.count_nonzero(model.coef_) > 60
    model.certificate_.verify(X, y)


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_conjugate_gradients_solve_the_system_of_the_factor(share):
    A, t = table(30, 200, "independent")
    system = RowSystem(A, t, np.zeros(200))
    support = np.flatnonzero(np.random.default_rng(1).random(200) < share)
    w, tau = np.zeros(200), np.full(200, 0.3)
    w[support] = 0.1
    system.off(w)
    weights = np.zeros(200)
    weights[support] = tau[support]
    exact = system._by_factor(weights)
    found = system._by_products(support, tau[support], 200)
    assert np.linalg.norm(found - exact) <= SOLVED * np.linalg.norm(system._f)
    assert system._by_products(support, tau[support], 1) is None
