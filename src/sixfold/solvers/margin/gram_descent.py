"""Support vector machines of few rows, through the products of all pairs of them.

The dual of :mod:`sixfold.solvers.margin.dual_coordinate` with signs in its multipliers, s = a y, is

    minimise  s'(K + l2 R) s / (2 l2) - y.s,    s between 0 and y upper,    sum_i s_i = 0 (intercept),

with K the products of the rows about their mean and R the diagonal of r, which is 0 for the hinge. K is there
for all targets, and a step for a row then costs a row of K, or nothing where its multiplier stays. Rows
between their ends are few, and known early: their multipliers solve linear equations, which end the descent
(native/linear/margin/gram_descent.cpp). 100 x 100 rows take 0.3 ms, where an interior point takes 4.

Products have lost digits of columns that are far shorter than others. But w = sum_i s_i x_i / l2 comes from
the rows, and so does the certificate: what it does not confirm is left to other solvers.
"""

from __future__ import annotations

import numpy as np

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.data.blocks import Blocks
from sixfold.risk.multiplier_bound import certify_multipliers
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.solvers.base import Solution
from sixfold.solvers.margin.progress import MarginProgress
from sixfold.solvers.wide_tables import MAX_ROWS, row_products

HINGES = ("hinge", "squared_hinge")
ROWS_A_COLUMN = 1.5  # up to which products of rows are the smaller system
FEWEST_SQUARED = 1 << 19  # rows times columns squared: 100 x 70 take as long either way
MOST_EPOCHS = 500
FEWEST_ITERATIONS = 30  # a smaller ``max_iter`` asks for fewer than it can count
DRAW = 0.03  # of the mean |x|^2: how b is drawn to its centre


def suits_products(problem: Problem, blocks: Blocks) -> bool:
    """Return whether the rows are dense and few beside the columns."""
    if problem.loss.name not in HINGES or not problem.penalty.quadratic or not problem.l2 > 0.0:
        return False
    # Newton's method for the squared hinge has its native call (sixfold.solvers.smooth.small_fit).
    worth = not problem.loss.smooth or blocks.n_rows * blocks.n_columns**2 >= FEWEST_SQUARED
    few = blocks.n_rows <= min(MAX_ROWS, ROWS_A_COLUMN * blocks.n_columns)
    return few and worth and not blocks.sparse and not blocks.streamed


def solve_by_products(problem: Problem, blocks: Blocks, budget: Budget) -> Solution | None:
    """Return the solution of all targets, or None where this does not serve."""
    if budget.callbacks or not budget.tol > 0:
        return None
    if budget.max_iter is not None and budget.max_iter < FEWEST_ITERATIONS:
        return None
    block, centred, l2 = blocks.whole(), problem.fit_intercept, problem.l2
    X, q, y = block.X, normalized_weights(block, blocks), np.asarray(block.y, dtype=np.float64)
    counts = q > 0
    if centred and (np.ptp(y[counts], axis=0) == 0.0).any():
        return None  # there is but one class
    mean = np.asarray(X.mean(axis=0), dtype=np.float64) if centred else np.zeros(blocks.n_columns)
    products = row_products(X, mean, budget)
    spread = float(q @ np.diagonal(products))
    draw = DRAW * (spread or 1.0) / l2 if centred else 0.0
    M = products / l2 + draw
    rows, end = np.zeros((4, q.size)), q  # targets, ends and curvatures
    if problem.loss.smooth:
        end = np.where(counts, np.inf, 0.0)
        np.divide(1.0, q, out=rows[3], where=counts)
        M[np.diag_indices_from(M)] += rows[3]
    progress, S, c = MarginProgress(problem, blocks, budget), np.zeros(y.shape), np.zeros(y.shape[1])
    reached = True
    for k in range(blocks.n_targets):
        budget.new_part()
        up = y[:, k] > 0
        rows[0], rows[1], rows[2] = y[:, k], np.where(up, 0.0, -end), np.where(up, end, 0.0)
        s = np.zeros(q.size)
        c[k], objective, gap, _ = core.fit_by_products(
            M, rows, draw, 0.5 * progress.tolerance(k), budget.tol, 1e-22 * progress.scale, MOST_EPOCHS, s,
            budget.seconds_left, budget.flag,
        )  # fmt: skip
        S[:, k] = s
        progress.record(k, objective, gap)
        reached &= gap <= progress.tolerance(k)
        if not reached and budget.another_follows:
            break
    w = (np.asarray(X.T @ S, dtype=np.float64) - np.outer(mean, S.sum(axis=0))) / l2
    w, b = blocks.rounded(w), blocks.rounded(c - mean @ w)
    dual = np.divide(-S, q[:, None], out=np.zeros(S.shape), where=counts[:, None])
    certificate = None
    if reached:
        certificate = certify_multipliers(
            problem, X, np.zeros(mean.size), y, q, w, b, dual, budget.tol, progress.scale
        )
    if certificate is None:
        closer = reached or not budget.another_follows
        certificate, _ = problem.certify_with_dual(
            "duality gap", w, b, blocks, budget.tol, dual, progress.scale, closer
        )
    return Solution(w, b, certificate, "dual coordinate descent on products", len(budget.history), dual)
