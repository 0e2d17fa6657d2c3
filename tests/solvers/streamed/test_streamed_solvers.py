"""Solvers that only reduce find what those of memory find, however the rows are cut into blocks."""

import math
import pickle
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from sixfold.budget import Budget
from sixfold.data.blocks import Block, Blocks, MemoryBlocks
from sixfold.errors import IncompatibleError
from sixfold.solvers.l1.coordinate import CoordinateDescent
from sixfold.solvers.least_squares.direct import LeastSquares
from sixfold.solvers.margin.interior_point import InteriorPoint
from sixfold.solvers.smooth.newton import Newton
from sixfold.solvers.streamed import hinge
from sixfold.solvers.streamed.choose import solve_streamed
from sixfold.solvers.streamed.columns import column_spread
from sixfold.solvers.streamed.neighbors import nearest_rows
from solvers.problems import problem

RNG = np.random.default_rng(0)


class CutBlocks(Blocks):
    """Rows in blocks of given lengths that can only be reduced, by functions that were pickled."""

    streamed = True

    def __init__(self, X, y, weight, lengths):
        self.parts, start = [], 0
        for length in lengths:
            rows = slice(start, start + length)
            if length:
                self.parts.append(Block(X[rows], y[rows], None if weight is None else weight[rows], start))
            start += length
        assert start == X.shape[0]
        self.n_rows, self.n_columns, self.n_targets = X.shape[0], X.shape[1], y.shape[1]
        self.weight_sum = float(start if weight is None else weight.sum())
        self.dtype, self.sparse, self.passes = X.dtype, False, 0

    def __iter__(self):
        raise AssertionError("the rows left their place")

    def whole(self):
        raise AssertionError("the rows left their place")

    def reduce(self, function, join):
        self.passes += 1
        function, join = pickle.loads(pickle.dumps((function, join)))
        if self.watch is not None:
            self.watch()
        found = [function(part) for part in self.parts]
        while len(found) > 1:
            found = [
                join(*found[k : k + 2]) if len(found[k : k + 2]) > 1 else found[k]
                for k in range(0, len(found), 2)
            ]
        return found[0]


def cut(draw, rows):
    ends = sorted(draw(st.lists(st.integers(0, rows), max_size=5)))
    return np.diff([0, *ends, rows]).tolist()


def table(rows=400, columns=5, scores=1, dtype=np.float64):
    X = RNG.standard_normal((rows, columns)) * [1.0, 3.0, 0.1, 1.0, 10.0] + [0.0, 50.0, 0.0, -2.0, 0.0]
    s = (X - X.mean(axis=0)) / X.std(axis=0) @ RNG.standard_normal((columns, scores))
    return X.astype(dtype), s


def weights(rows, some):
    return RNG.random(rows) * (RNG.random(rows) > 0.1) if some else None


def same(found, true, digits=1e-9):
    size = max(np.abs(true.w).max(), 1e-300)
    np.testing.assert_allclose(found.w, true.w, rtol=0, atol=digits * size)
    np.testing.assert_allclose(found.b, true.b, rtol=digits, atol=digits * (1 + np.abs(true.b).max()))


@st.composite
def cases(draw):
    return cut(draw, 400), draw(st.booleans()), draw(st.booleans())


@given(cases(), st.sampled_from(["logistic", "squared_hinge"]), st.sampled_from([None, "l2"]))
@settings(max_examples=30)
def test_two_classes(case, loss, penalty):
    lengths, weighted, intercept = case
    X, s = table()
    y = np.where(s + RNG.logistic(size=s.shape) > 0, 1.0, -1.0)
    weight, stated = weights(400, weighted), problem(loss, penalty, 1e-3, fit_intercept=intercept)
    true = Newton().solve(stated, MemoryBlocks(X, y, weight), Budget(1e-13, 100))
    blocks = CutBlocks(X, y, weight, lengths)
    found = solve_streamed(stated, blocks, Budget(1e-6, 100), 1)
    same(found, true)
    assert found.certificate.converged
    assert found.certificate.objective >= true.certificate.lower_bound
    assert found.certificate.lower_bound <= true.certificate.objective
    assert found.certificate.gap < 1e-9
    wrong = y[:, 0] * (X @ found.w + found.b)[:, 0] <= 0
    assert found.wrong == np.count_nonzero(wrong if weight is None else wrong[weight > 0])


@given(cases(), st.sampled_from(["logistic", "squared_hinge"]), st.sampled_from(["l1", "elasticnet"]))
@settings(max_examples=20)
def test_two_classes_with_absolute_values(case, loss, penalty):
    lengths, weighted, intercept = case
    X, s = table()
    y = np.where(s + RNG.logistic(size=s.shape) > 0, 1.0, -1.0)
    weight, stated = weights(400, weighted), problem(loss, penalty, 0.05, fit_intercept=intercept)
    true = CoordinateDescent().solve(stated, MemoryBlocks(X, y, weight), Budget(1e-14, 1000))
    found = solve_streamed(stated, CutBlocks(X, y, weight, lengths), Budget(1e-6, 100), 1)
    same(found, true, 1e-6)  # as near as the one in memory is
    assert found.certificate.converged
    assert found.certificate.lower_bound <= true.certificate.objective
    assert found.certificate.objective <= true.certificate.objective + 1e-11
    q = np.full(400, 1 / 400) if weight is None else weight / weight.sum()
    slope = X.T @ (q * stated.loss.gradient(X @ found.w + found.b, y)[:, 0]) + stated.l2 * found.w[:, 0]
    used, size = found.w[:, 0] != 0, np.sqrt(q @ X**2)
    np.testing.assert_allclose((slope + stated.l1 * np.sign(found.w[:, 0]))[used] / size[used], 0, atol=1e-9)
    assert (np.abs(slope[~used]) <= stated.l1 + 1e-9 * size[~used]).all()


@given(cases(), st.sampled_from([1e-1, 1e-4]), st.sampled_from([30, 10_000]))
@settings(max_examples=20)
def test_hinge_of_the_rows_near_the_margin(case, alpha, most):
    lengths, weighted, intercept = case
    X, s = table(scores=2)
    y = np.where(s + RNG.logistic(size=s.shape) > 0, 1.0, -1.0)
    weight, stated = weights(400, weighted), problem("hinge", "l2", alpha, fit_intercept=intercept)
    true = InteriorPoint().solve(stated, MemoryBlocks(X, y, weight), Budget(1e-13, 1000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hinge, "BAND_ROWS", most)
        patch.setattr(hinge, "SAMPLE_ROWS", 40)
        found = solve_streamed(stated, CutBlocks(X, y, weight, lengths), Budget(1e-9, 100), 1)
    assert found.certificate.converged
    assert found.certificate.lower_bound <= true.certificate.objective
    assert found.certificate.objective >= true.certificate.lower_bound
    same(found, true, 1e-9 if most > 400 else 1e-4)


@given(cases(), st.sampled_from([1e-2, 1e-5]))
@settings(max_examples=15)
def test_several_classes(case, alpha):
    lengths, weighted, intercept = case
    X, s = table(scores=3)
    y = np.argmax(s + RNG.gumbel(size=s.shape), axis=1)[:, None].astype(float)
    weight, stated = weights(400, weighted), problem("softmax", "l2", alpha, fit_intercept=intercept)
    true = Newton().solve(stated, MemoryBlocks(X, y, weight), Budget(1e-13, 100))
    found = solve_streamed(stated, CutBlocks(X, y, weight, lengths), Budget(1e-6, 100), 3)
    same(found, true)
    assert found.certificate.converged
    assert found.certificate.lower_bound <= true.certificate.objective
    assert found.certificate.objective >= true.certificate.lower_bound


@given(cases(), st.sampled_from([None, "l2", "l1", "elasticnet"]), st.sampled_from([0.2, 1e-3]))
@settings(max_examples=30)
def test_least_squares(case, penalty, alpha):
    lengths, weighted, intercept = case
    X, s = table(scores=2)
    y = s + RNG.standard_normal(s.shape)
    weight, stated = weights(400, weighted), problem("squared", penalty, alpha, fit_intercept=intercept)
    solver = CoordinateDescent() if penalty in ("l1", "elasticnet") else LeastSquares()
    true = solver.solve(stated, MemoryBlocks(X, y, weight), Budget(1e-15, 1000))
    found = solve_streamed(stated, CutBlocks(X, y, weight, lengths), Budget(1e-6, 100), 1)
    # Of absolute values a relative gap of 1e-15 leaves the root of it in the coefficients in memory.
    same(found, true, 1e-9 if penalty in (None, "l2") else 1e-6)
    assert found.certificate.converged
    # Objectives include what rounding may have done, which without another pass over the rows is more.
    computed = found.certificate.objective - found.certificate.rounding
    assert computed <= true.certificate.objective * (1 + 1e-12)
    assert found.certificate.lower_bound <= true.certificate.objective


def test_conditions_of_optimality_hold_with_absolute_values():
    X, s = table()
    y = s + RNG.standard_normal(s.shape)
    found = solve_streamed(problem("squared", "l1", 0.1), CutBlocks(X, y, None, [100] * 4), Budget(1e-6), 1)
    Z = X - X.mean(axis=0)
    slope = Z.T @ (y - X @ found.w - found.b)[:, 0] / 400
    size = np.abs(Z).mean(axis=0)
    used = found.w[:, 0] != 0
    assert used.any()
    np.testing.assert_allclose(
        slope[used], 0.1 * np.sign(found.w[used, 0]), rtol=0, atol=1e-12 * size[used].max()
    )
    assert (np.abs(slope[~used]) <= 0.1 + 1e-12 * size[~used].max(initial=1.0)).all()


def test_weights_stay_above_zero_where_they_must():
    X, s = table()
    stated = problem("squared", "elasticnet", 1e-2, positive=True)
    true = CoordinateDescent().solve(stated, MemoryBlocks(X, s), Budget(1e-15, 1000))
    found = solve_streamed(stated, CutBlocks(X, s, None, [400]), Budget(1e-6), 1)
    assert (found.w >= 0).all()
    same(found, true, 1e-6)
    assert found.certificate.converged


def test_columns_that_follow_from_others_share_their_weight():
    X, s = table()
    X = np.column_stack([X, X[:, 0] - 2 * X[:, 3], np.full(400, 3.0)])
    true = LeastSquares().solve(problem(), MemoryBlocks(X, s + X[:, [3]]), Budget())
    found = solve_streamed(problem(), CutBlocks(X, s + X[:, [3]], None, [150, 250]), Budget(), 1)
    same(found, true, 1e-8)
    assert found.rank == true.rank == 5


def test_a_mean_far_from_zero_costs_no_digits():
    X, s = table()
    X, y = X + 1e6, s + RNG.standard_normal(s.shape)
    found = solve_streamed(problem(), CutBlocks(X, y, None, [100] * 4), Budget(), 1)
    true = LeastSquares().solve(problem(), MemoryBlocks(X, y), Budget())
    same(found, true)
    labels = np.where(y > 0, 1.0, -1.0)
    stated = problem("logistic", "l2", 1e-4)
    near = Newton().solve(stated, MemoryBlocks(X - 1e6, labels), Budget(1e-13, 100))  # the same numbers
    true = replace(near, b=near.b - 1e6 * near.w.sum(axis=0))
    same(solve_streamed(stated, CutBlocks(X, labels, None, [1, 399]), Budget(), 1), true, 1e-8)


def test_single_precision_is_kept():
    X, s = table(dtype=np.float32)
    y = np.where(s > 0.3, 1.0, -1.0).astype(np.float32)
    found = solve_streamed(
        problem("logistic", "l2", 1e-2), CutBlocks(X, y, None, [200, 200]), Budget(1e-5), 1
    )
    assert np.array_equal(found.w, found.w.astype(np.float32))
    assert found.certificate.converged


def test_steps_that_are_too_long_are_shortened():
    X = np.array([[-30.0], [-20.0], [0.1], [0.2], [40.0]])
    y = np.array([[-1.0], [1.0], [-1.0], [1.0], [1.0]])
    stated = problem("logistic", "l2", 1e-12)
    true = Newton().solve(stated, MemoryBlocks(X, y), Budget(1e-13, 100))
    same(solve_streamed(stated, CutBlocks(X, y, None, [1, 1, 3]), Budget(1e-9, 100), 1), true, 1e-7)


def test_a_pass_an_iteration_and_few_for_the_certificate():
    X, s = table()
    blocks = CutBlocks(X, np.where(s > 0.1, 1.0, -1.0), None, [400])
    found = solve_streamed(problem("logistic", "l2", 1e-2), blocks, Budget(), 1)
    assert blocks.passes <= found.n_iter + 3  # the means, and two for the bound


@pytest.mark.parametrize("limit", [{"max_iter": 2}, {"time_limit": 1e-9}])
def test_a_stopped_descent_has_a_model_and_a_bound(limit):
    X, s = table()
    blocks = CutBlocks(X, np.where(s > 0.1, 1.0, -1.0), None, [200, 200])
    budget = Budget(1e-12, limit.get("max_iter"), limit.get("time_limit"))
    found = solve_streamed(problem("logistic", "l2", 1e-4), blocks, budget, 1)
    assert not found.certificate.converged
    assert budget.stopped_by is not None
    assert 0 <= found.certificate.lower_bound <= found.certificate.objective <= math.log(2) * (1 + 1e-9)


def test_what_has_no_solver_says_what_to_use():
    X, s = table()
    blocks = CutBlocks(X, np.sign(s), None, [400])
    with pytest.raises(IncompatibleError, match="use one of the losses 'squared'"):
        solve_streamed(problem("absolute"), blocks, Budget(), 1)
    with pytest.raises(IncompatibleError, match="use penalty='l2'"):
        solve_streamed(problem("softmax", "l1", 0.1), blocks, Budget(), 3)
    wide = CutBlocks(np.zeros((1, 4001)), np.ones((1, 1)), None, [1])
    with pytest.raises(IncompatibleError, match="choose fewer columns"):
        solve_streamed(problem("logistic", "l2", 0.1), wide, Budget(), 1)


@given(cases())
@settings(max_examples=20)
def test_means_and_spreads(case):
    lengths, weighted, _ = case
    X, s = table()
    weight = weights(400, weighted)
    found = column_spread(CutBlocks(X, s, weight, lengths))
    q = np.full(400, 1 / 400) if weight is None else weight / weight.sum()
    np.testing.assert_allclose(found.mean, q @ X, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.lengths(found.mean), np.sqrt(q @ (X - q @ X) ** 2), rtol=1e-12)
    assert found.rows == (400 if weight is None else np.count_nonzero(weight))


@given(cases(), st.integers(1, 9), st.sampled_from(["euclidean", "manhattan", "cosine"]))
@settings(max_examples=20)
def test_neighbors_of_all_blocks(case, k, metric):
    lengths, weighted, _ = case
    X = RNG.integers(1, 4, (400, 3)).astype(float)  # many ties
    y, weight, queries = (
        RNG.random((400, 1)),
        weights(400, weighted),
        RNG.integers(1, 4, (20, 3)).astype(float),
    )
    found = nearest_rows(CutBlocks(X, y, weight, lengths), queries, k, metric, {})
    whole = nearest_rows(CutBlocks(X, y, weight, [400]), queries, k, metric, {})
    np.testing.assert_array_equal(found.rows, whole.rows)
    np.testing.assert_array_equal(found.distances, whole.distances)
    np.testing.assert_array_equal(found.targets[:, :, 0], y[found.rows, 0])
    counted = np.arange(400) if weight is None else np.flatnonzero(weight)
    if metric == "manhattan":
        far = np.abs(queries[:, None] - X[counted]).sum(axis=2)
        np.testing.assert_array_equal(found.rows, counted[np.argsort(far, axis=1, kind="stable")[:, :k]])
