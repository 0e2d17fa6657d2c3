"""A table with more columns than rows is solved in coordinates of its rows, and certified on itself."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold import ERMClassifier, ERMRegressor
from sixfold.budget import Budget
from sixfold.risk.problem import Problem
from sixfold.solvers import wide_tables
from sixfold.solvers.smooth import descent
from sixfold.solvers.smooth.lbfgs import LBFGS
from sixfold.solvers.smooth.newton import Newton
from sixfold.solvers.smooth.refined_newton import RefinedNewton
from sixfold.solvers.wide_tables import RowCoordinates
from solvers.problems import blocks, problem, solve

PAIRS = [
    (solver, loss)
    for solver in (Newton(), LBFGS(), RefinedNewton())
    for loss in ("logistic", "squared_hinge", "softmax")
]
each_pair = pytest.mark.parametrize(("solver", "loss"), PAIRS, ids=[f"{s.name}-{loss}" for s, loss in PAIRS])


def table(loss, rows=30, columns=90, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows).astype(float) if loss == "softmax" else rng.choice([-1.0, 1.0], rows)
    return rng.normal(size=(rows, columns)) + 3.0, y


@each_pair
@pytest.mark.parametrize("intercept", [True, False])
def test_the_model_is_that_of_the_whole_table(solver, loss, intercept, monkeypatch):
    X, y = table(loss)
    X[4] = X[3] + X[2] - X[1]  # rows may depend
    stated, data = problem(loss, "l2", 1e-3, fit_intercept=intercept), blocks(X, y)
    found = solve(solver, stated, data, tol=1e-12)[0]
    assert "row space" in found.solver
    assert found.certificate.converged
    monkeypatch.setattr(RowCoordinates, "of", lambda *_, **__: None)
    whole = solve(Newton(), stated, data, tol=1e-12)[0]
    np.testing.assert_allclose(found.w, whole.w, atol=1e-5)
    np.testing.assert_allclose(found.b - found.b.mean() * (loss == "softmax"), whole.b, atol=1e-4)


@each_pair
def test_weights_sparse_tables_single_precision_and_blocks(solver, loss):
    X, y = table(loss, seed=1)
    X[np.abs(X - 3.0) < 0.3] = 0.0
    weight = np.random.default_rng(2).integers(0, 3, y.size).astype(float)
    stated = problem(loss, "l2", 1e-2)
    expected = solve(solver, stated, blocks(X, y, weight), tol=1e-10)[0]
    for other in (sp.csr_array(X), np.asfortranarray(X), X.astype(np.float32)):
        found = solve(solver, stated, blocks(other, y.astype(other.dtype), weight.astype(other.dtype), 7))[0]
        assert "row space" in found.solver
        assert found.certificate.converged
        np.testing.assert_allclose(found.w, expected.w, atol=3e-3)


def test_a_start_is_taken_along():
    X, y = table("logistic")
    stated, data = problem("logistic", "l2", 1e-3), blocks(X, y)
    first = solve(Newton(), stated, data)[0]
    with Budget(1e-6, 100) as budget:
        again = Newton().solve(stated, data, budget, first)
    assert again.n_iter < first.n_iter


@pytest.mark.parametrize("solver", [Newton(), RefinedNewton()], ids=lambda solver: solver.name)
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
@pytest.mark.parametrize("intercept", [True, False])
def test_rows_that_are_independent_are_separated_by_one_linear_system(solver, loss, intercept):
    X, y = table(loss, rows=60, columns=200)
    found, budget = solve(solver, problem(loss, fit_intercept=intercept), blocks(X, y))
    assert found.solver == "linear system in the row space"
    assert found.certificate.objective < 1e-15
    assert len(budget.history) == 1


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_equal_rows_of_two_classes_are_no_linear_system(loss):
    X, y = table(loss, rows=30, columns=80)
    X[1], X[2] = X[0], X[0]
    y[:3] = [1.0, 0.0 if loss == "softmax" else -1.0, 1.0]
    found = solve(RefinedNewton(), problem(loss), blocks(X, y))[0]
    # Two of three equal rows are of one class, all others are certain.
    share = -(2.0 * np.log(2.0 / 3.0) + np.log(1.0 / 3.0)) / 30.0
    assert found.certificate.objective == pytest.approx(share, rel=1e-4)


def test_tall_tables_and_sparse_ones_that_would_fill_up_are_left_alone():
    stated, budget = problem("logistic", "l2", 1.0), Budget()
    y = np.resize([1.0, -1.0], 50)
    assert RowCoordinates.of(stated, blocks(np.ones((50, 50)), y), budget) is None
    sparse = blocks(sp.random_array((50, 5000), density=1e-3, format="csr"), y)
    assert RowCoordinates.of(stated, sparse, budget, factored=False) is None
    assert RowCoordinates.of(stated, sparse, budget, factored=True) is not None
    assert RowCoordinates.of(problem("logistic", "l1", 1.0), blocks(np.ones((50, 60)), y), budget) is None


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_values_that_cannot_be_summed_are_noticed(value):
    X, y = table("logistic")
    X[7, 20] = value
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError):
        solve(Newton(), problem("logistic", "l2", 0.01), blocks(X, y))


@pytest.mark.parametrize("loss", ["absolute", "logistic", "squared_hinge"])
@pytest.mark.parametrize("alpha", [None, 1e-6, 1.0])
def test_sparse_rows_are_factored_where_there_are_few(loss, alpha):
    """The absolute loss of sparse rows had gradient descent only, and 2,000 columns a matrix of that size."""
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 300), density=0.05, rng=rng, format="csr")
    scores = X @ rng.normal(size=300)
    made = ERMRegressor if loss == "absolute" else ERMClassifier
    penalty = None if alpha is None else "l2"
    y = scores + rng.normal(size=60) if loss == "absolute" else (scores > 0).astype(int)
    model = made(loss=loss, penalty=penalty, alpha=alpha or 1.0, tol=1e-8).fit(X, y)
    assert model.certificate_.converged
    model.certificate_.verify(X, y)
    assert loss != "absolute" or "row space" in model.solver_


# -- products in single precision ------------------------------------------------------------------------


@pytest.fixture
def in_double(monkeypatch):
    """Return the list that products in double precision are noted in."""
    noted, products = [], wide_tables.row_products
    monkeypatch.setattr(wide_tables, "WORTH_SINGLE", 0)
    monkeypatch.setattr(wide_tables, "row_products", lambda *given: noted.append(1) or products(*given))
    return noted


@each_pair
def test_single_precision_serves_usual_tolerances(solver, loss, in_double):
    X, y = table(loss)
    found = solve(solver, problem(loss, "l2", 1e-3), blocks(X, y))[0]
    assert found.certificate.converged
    assert bool(in_double) == isinstance(solver, RefinedNewton)  # which comes where digits are missing
    exact = solve(solver, problem(loss, "l2", 1e-3), blocks(X, y), tol=1e-10)[0]
    assert in_double
    assert exact.certificate.converged
    assert found.certificate.objective >= exact.certificate.lower_bound


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("apart", [1e-2, 1e-6])  # the products are too rough, or seem to depend on each other
def test_rows_that_only_double_precision_tells_apart(apart, loss, weighted, in_double):
    X, y = table(loss)
    X[20:] = X[:10] + apart * X[20:]
    weight = np.where(np.arange(30) % 7 == 3, 0.0, 1.0) if weighted else None
    found = solve(Newton(), problem(loss, "l2", 1e-6), blocks(X, y, weight))[0]
    assert found.certificate.converged
    assert in_double


@pytest.mark.parametrize("unit", [1e-30, 1e25])
def test_products_out_of_the_range_of_single_precision(unit, in_double):
    X, y = table("logistic")
    found = solve(Newton(), problem("logistic", "l2", 1e-3 * unit**2), blocks(unit * X, y))[0]
    assert found.certificate.converged
    assert in_double


@pytest.mark.filterwarnings("ignore::sixfold.errors.RankWarning")
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("loss", ["absolute", "cubed"])
def test_rows_that_are_all_alike_have_no_coordinates(rows, loss, capfd):
    """LAPACK says so, on the terminal, where it is asked to solve for none."""
    X, y = np.ones((rows, 9)), np.arange(rows, dtype=float)
    model = ERMRegressor(loss, penalty="l2", alpha=0.1).fit(X, y)
    assert model.certificate_.converged
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "softmax"])
def test_the_certificate_is_worked_out_on_the_whole_table_alone(loss, monkeypatch):
    X, y = table(loss, rows=60, columns=90)
    asked, certify, by_sums = [], Problem.certify_with_dual, descent.certify_by_sums

    def noted(self, kind, w, b, data, *rest, **options):
        asked.append(data.n_columns)
        return certify(self, kind, w, b, data, *rest, **options)

    def noted_sums(stated, w, b, data, *rest):
        asked.append(data.n_columns)
        return by_sums(stated, w, b, data, *rest)

    monkeypatch.setattr(Problem, "certify_with_dual", noted)
    monkeypatch.setattr(descent, "certify_by_sums", noted_sums)
    stated, data = problem(loss, "l2", 1e-1), blocks(X, y)
    found = solve(LBFGS(), stated, data, tol=1e-6)[0]
    assert found.certificate.converged
    assert set(asked) == {90}
    assert found.certificate.objective == pytest.approx(stated.objective(found.w, found.b, data), rel=1e-11)


def test_a_certificate_that_fails_on_the_whole_table_is_asked_for_inside(monkeypatch):
    X, y = table("logistic")
    stated, data = problem("logistic", "l2", 1e-1), blocks(X, y)
    certify, refused = Problem.certify_with_dual, []

    def short(self, kind, w, b, rows, *rest, closer=True, **options):
        certificate, dual = certify(self, kind, w, b, rows, *rest, closer=closer, **options)
        if rows.n_columns == 90 and not closer:
            refused.append(rows)
            certificate = replace(certificate, gap=certificate.objective)
        return certificate, dual

    monkeypatch.setattr(Problem, "certify_with_dual", short)
    monkeypatch.setattr(descent, "certify_by_sums", lambda *_: None)
    found = solve(LBFGS(), stated, data, tol=1e-6)[0]
    assert refused
    assert found.certificate.converged
