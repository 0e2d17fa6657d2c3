"""How first-order solvers stop, and what is on record."""

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold.budget import Budget
from sixfold.data.blocks import MemoryBlocks
from sixfold.solvers.first_order.gradient_descent import GradientDescent
from sixfold.solvers.first_order.options import FirstOrderOptions
from sixfold.solvers.first_order.stochastic import MiniBatch, StochasticGradient
from solvers.first_order.first_order_problems import SOLVERS, regression, solve
from solvers.problems import problem


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_step_far_too_large_leaves_a_finite_model_and_advice(solver):
    X, y = regression()
    budget = Budget(tol=1e-6, max_iter=1000)
    options = FirstOrderOptions(eta0=1e6, learning_rate="constant", accelerate=False)
    solution = solver(options).solve(problem(), MemoryBlocks(X, y), budget)
    assert np.isfinite(solution.w).all()
    assert solution.n_iter < 100
    assert budget.stopped_by == "divergence"
    assert not solution.certificate.converged
    assert "eta0=1e+06 is too large" in solution.certificate.notes[0]
    assert solution.certificate.objective <= solution.certificate.scale * (1 + 1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_interrupt_keeps_the_best_model_so_far(solver):
    X, y = regression()
    blocks = MemoryBlocks(X, y)
    budget = Budget(tol=0.0)

    def press(record):
        budget.flag[0] = record.iteration == 3

    budget.callbacks = (press,)
    solution = solver().solve(problem(), blocks, budget)
    assert budget.stopped_by == "Ctrl-C"
    assert solution.n_iter == 3
    assert solution.certificate.objective < solution.certificate.scale
    with pytest.raises(KeyboardInterrupt):
        budget.conclude(solution.certificate)


@pytest.mark.parametrize("solver", [StochasticGradient, MiniBatch])
def test_a_stop_within_the_first_pass_keeps_what_was_learnt(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 20))
    y = X.sum(axis=1, keepdims=True)
    budget = Budget(tol=0.0, time_limit=1e-9)
    # As if time ran out just after the first pass began: the native loop looks after some 7,000 rows.
    budget.exhausted = lambda: budget.stopped_by is not None or bool(budget.history)
    task, blocks = problem(), MemoryBlocks(X, y)
    options = {"eta0": 1e-4, "shuffle": False, "standardize": False}
    part = solver(FirstOrderOptions(**options)).solve(task, blocks, budget)
    whole = solve(solver, task, blocks, max_iter=1, **options)
    assert part.n_iter == 1
    assert whole.certificate.objective < part.certificate.objective < part.certificate.scale


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_time_limit_ends_the_work_with_an_honest_certificate(solver):
    X, y = regression(n=100_000)
    task, blocks = problem(penalty="l2", alpha=0.1), MemoryBlocks(X, y)
    budget = Budget(tol=0.0, time_limit=0.01)
    with budget:
        solution = solver().solve(task, blocks, budget)
    assert budget.stopped_by == "time_limit=0.01 s"
    best = solve(GradientDescent, task, blocks, tol=1e-12).certificate.objective
    assert solution.certificate.lower_bound <= best * (1 + 1e-9)
    assert solution.certificate.objective >= best * (1 - 1e-9)


def test_a_bound_that_would_take_long_is_left_out_when_time_is_up():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 250))
    budget = Budget(tol=0.0, time_limit=1e-9)
    solution = StochasticGradient().solve(problem(), MemoryBlocks(X, X[:, :1].copy()), budget)
    certificate = solution.certificate
    assert certificate.gap == certificate.objective > 0
    assert "time was up" in certificate.notes[0]


def test_stochastic_updates_end_when_they_no_longer_gain():
    X, y = regression()
    budget = Budget(tol=1e-4, max_iter=10_000)
    options = FirstOrderOptions(learning_rate="constant", eta0=0.02)
    solution = StochasticGradient(options).solve(problem(), MemoryBlocks(X, y), budget)
    assert budget.stopped_by == "lack of progress"
    assert solution.n_iter < 200
    assert not solution.certificate.converged


@pytest.mark.parametrize("kind", ["C", "F", "sparse"])
def test_the_objective_on_record_is_that_of_its_own_pass(kind):
    # In C order it is added up during the next pass, for all but the last; otherwise after the pass.
    random = np.random.default_rng(5)
    X = random.standard_normal((300, 4))
    y = np.where(X.sum(axis=1) + random.standard_normal(300) > 0, 1.0, -1.0)
    X = {"C": X, "F": np.asfortranarray(X), "sparse": sp.csr_array(X)}[kind]
    stated, data = problem("logistic", "l2", 0.01), MemoryBlocks(X, y[:, None], random.uniform(size=300))
    options = FirstOrderOptions(eta0=0.1, standardize=False)
    reached = []
    for passes in (1, 2, 3, 4):
        with Budget(tol=0.0, max_iter=passes) as budget:
            solution = StochasticGradient(options).solve(stated, data, budget)
        reached.append(budget.history[-1].objective)
        assert solution.n_iter == passes
        best = min(record.objective for record in budget.history)
        assert stated.objective(solution.w, solution.b, data) == pytest.approx(best, rel=1e-12)
    np.testing.assert_allclose([record.objective for record in budget.history], reached, rtol=1e-12)
