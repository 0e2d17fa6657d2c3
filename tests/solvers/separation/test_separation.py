"""Separation is claimed where a linear program confirms it, and every claim comes with its proof."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.datasets import load_iris

from sixfold.budget import Budget
from sixfold.solvers.separation.separation import check_separation, separate
from solvers.problems import blocks, problem

KINDS = ("complete", "quasi-complete", "overlap")


def separation(X, y, loss="logistic", *, fit_intercept=True, weight=None, rows_per_block=None, target=0):
    """Return what was found, checked against the data."""
    stated = problem(loss, fit_intercept=fit_intercept)
    y = np.asarray(y, dtype=float)
    data = blocks(X, y, weight, rows_per_block)
    found = separate(stated, data, Budget(), target)
    assert check_separation(found, stated, data, target)
    return found


def margins(found, X, y):
    """Return the least margin of each row over the other classes, or y s."""
    score = X @ found.w + found.b
    if score.shape[1] == 1:
        return np.asarray(y) * score[:, 0]
    own = score[np.arange(len(y)), y]
    score[np.arange(len(y)), y] = -np.inf
    return own - score.max(axis=1)


def signed_points(X, y, loss, fit_intercept):
    z = np.column_stack([X, np.ones(len(X))]) if fit_intercept else np.asarray(X, dtype=float)
    if loss != "softmax":
        return np.asarray(y)[:, None] * z
    classes = int(max(y)) + 1
    sides = np.eye(classes)
    return np.array(
        [
            np.outer(sides[c] - sides[k], z[i]).ravel()
            for i, c in enumerate(y)
            for k in range(classes)
            if k != c
        ]
    ).reshape(-1, classes * z.shape[1])


def kind_by_linear_program(points):
    """Maximise the number of points strictly on the right side with none on the wrong side."""
    n, d = points.shape
    if n == 0:
        return "overlap"
    answer = linprog(
        np.append(np.zeros(d), -np.ones(n)),
        A_ub=np.hstack([-points, np.eye(n)]),
        b_ub=np.zeros(n),
        bounds=[(None, None)] * d + [(0.0, 1.0)] * n,
    )
    strictly = round(-answer.fun)
    return "complete" if strictly == n else "quasi-complete" if strictly else "overlap"


# -- against the linear program --------------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(
    st.integers(1, 14), st.integers(1, 4), st.booleans(), st.sampled_from(["logistic", "softmax"]),
    st.integers(1, 3), st.integers(0, 10**6),
)  # fmt: skip
def test_the_kind_is_that_of_a_linear_program(n, d, fit_intercept, loss, size, seed):
    # Few small whole numbers: duplicates, ties, constant columns and every kind of degeneracy.
    random = np.random.default_rng(seed)
    X = random.integers(-size, size + 1, (n, d)).astype(float)
    y = random.integers(0, 3, n) if loss == "softmax" else random.choice([-1, 1], n)
    expected = kind_by_linear_program(signed_points(X, y, loss, fit_intercept))
    assert separation(X, y, loss, fit_intercept=fit_intercept).kind == expected
    # Units and means change nothing, nor does the way the rows are kept.
    unit = 2.0 ** random.integers(-26, 27, d)
    shift = 2.0 ** random.integers(0, 20, d) * fit_intercept
    assert separation((X + shift) * unit, y, loss, fit_intercept=fit_intercept).kind == expected
    found = separation(sp.csr_array(X), y, loss, fit_intercept=fit_intercept, rows_per_block=3)
    assert found.kind == expected


@settings(deadline=None, max_examples=50)
@given(st.integers(5, 60), st.integers(1, 8), st.floats(0.0, 2.0), st.integers(0, 10**6))
def test_random_rows_are_judged_as_by_a_linear_program(n, d, noise, seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = np.where(X.sum(axis=1) + noise * random.normal(size=n) > 0.3, 1, -1)
    found = separation(X, y)
    assert found.kind == kind_by_linear_program(signed_points(X, y, "logistic", True))
    assert separation(X.astype(np.float32), y).kind == found.kind


# -- known cases -----------------------------------------------------------------------------------------


def test_exclusive_or_ends_with_the_proof():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    found = separation(X, [-1, -1, 1, 1])
    assert found.kind == "overlap"
    rows, weights = found.proof.rows, found.proof.weights
    side = np.array([-1, -1, 1, 1])[rows]
    np.testing.assert_allclose(2 * weights[side > 0] @ X[rows[side > 0]], [0.5, 0.5])
    np.testing.assert_allclose(2 * weights[side < 0] @ X[rows[side < 0]], [0.5, 0.5])
    np.testing.assert_allclose([weights[side > 0].sum(), weights[side < 0].sum()], 0.5)


def test_setosa_is_separated_from_the_rest():
    X, y = load_iris(return_X_y=True)
    found = separation(X, np.where(y == 0, 1, -1))
    assert found.kind == "complete"
    assert margins(found, X, np.where(y == 0, 1, -1)).min() > 0
    assert separation(X, np.where(y == 1, 1, -1)).kind == "overlap"


def test_softmax_on_iris_is_separated_from_setosa_only():
    X, y = load_iris(return_X_y=True)
    found = separation(X, y, "softmax")
    assert found.kind == "quasi-complete"
    assert found.boundary.tolist() == np.flatnonzero(y > 0).tolist()
    least = margins(found, X, y)
    assert least[:50].min() > 0
    np.testing.assert_allclose(least[50:], 0.0, atol=1e-12)
    assert separation(X[y > 0], y[y > 0] - 1, "softmax").kind == "overlap"


def test_one_column_among_many_separates():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 6))
    y = np.where(X[:, 3] > 0.2, 1, -1)
    X[:, 3] += 0.05 * y
    found = separation(X, y)
    assert found.kind == "complete"
    assert margins(found, X, y).min() > 0


def test_rows_on_the_boundary_are_named():
    # Below 0 all -1, above 0 all +1, both at 0; the second column does not help.
    X = np.array([[-2.0, 1.0], [-1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [0.0, 1.5], [1.0, 2.0]])
    y = np.array([-1, -1, -1, 1, -1, 1, 1])
    found = separation(X, y)
    assert found.kind == "quasi-complete"
    assert found.boundary.tolist() == [2, 3, 4, 5]
    assert found.proof is not None


@pytest.mark.parametrize("size", [1.0, 1e-4, 1e-7])
def test_rows_just_off_the_boundary_are_not_on_it(size):
    X = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [0.0, 1.5], [size, 2.0], [1.0, 0.0], [-1.0, 1.0]])
    found = separation(X, [-1, 1, -1, 1, 1, 1, -1])
    assert found.kind == "quasi-complete"
    assert found.boundary.tolist() == [0, 1, 2, 3]


def test_a_category_with_one_class_only_separates_quasi_completely():
    random = np.random.default_rng(1)
    category = np.repeat([0, 1, 2], 40)
    y = random.choice([-1, 1], 120)
    y[category == 2] = 1
    X = np.column_stack([np.eye(3)[category], random.normal(size=120)])
    found = separation(X, y)
    assert found.kind == "quasi-complete"
    assert sorted(set(range(120)) - set(found.boundary.tolist())) == list(range(80, 120))


def test_nested_faces_are_reduced_one_after_the_other():
    # x1 decides, but for ties, which x2 decides, but for ties, which x3 decides or not.
    first = np.array(
        [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1], [0, 0, 1]], dtype=float
    )
    assert separation(first, [1, 1, 1, 1, 1, -1, 1], fit_intercept=False).kind == "quasi-complete"
    assert separation(first, [1, 1, 1, 1, 1, -1, -1], fit_intercept=False).kind == "overlap"


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_class_alone_is_separated_if_its_hull_is_beside_zero(fit_intercept):
    X = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, 2.0]])
    assert separation(X, [1, 1, 1], fit_intercept=fit_intercept).kind == "complete"
    X[2] = [-3.0, -3.0]
    expected = "complete" if fit_intercept else "overlap"
    assert separation(X, [1, 1, 1], fit_intercept=fit_intercept).kind == expected


def test_a_row_of_zeros_lies_on_every_plane_through_zero():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0]])
    found = separation(X, [1, 1, 1], fit_intercept=False)
    assert found.kind == "quasi-complete"
    assert found.boundary.tolist() == [0]


def test_a_class_that_no_row_has_separates_quasi_completely():
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    found = separation(X, np.array([0, 0, 2, 2]), "softmax")
    assert found.kind == "quasi-complete"
    assert found.b[1] < min(found.b[0], found.b[2])


def test_a_model_that_separates_is_taken_as_it_is_and_another_is_not():
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([-1.0, 1.0, 1.0])
    model = np.array([[7.0]]), np.array([-1.0])
    found = separate(problem("logistic"), blocks(X, y), Budget(), start=model)
    assert (found.kind, found.w[0, 0], found.b[0]) == ("complete", 7.0, -1.0)
    found = separate(problem("logistic"), blocks(X, -y), Budget(), start=model)
    assert found.w[0, 0] < 0.0


def test_one_class_of_a_softmax_leaves_nothing_to_separate():
    assert separation(np.array([[1.0], [2.0]]), np.array([0, 0]), "softmax").kind == "overlap"


def test_rows_of_weight_zero_do_not_count():
    X = np.array([[0.0], [1.0], [2.0], [0.5]])
    y = np.array([-1, -1, 1, 1])
    assert separation(X, y).kind == "overlap"
    assert separation(X, y, weight=np.array([1.0, 2.0, 0.5, 0.0])).kind == "complete"


def test_each_target_is_judged_by_itself():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([[-1, -1], [-1, 1], [1, -1], [1, -1]])
    assert separation(X, y, target=0).kind == "complete"
    assert separation(X, y, target=1).kind == "overlap"


# -- near misses -----------------------------------------------------------------------------------------


def touching(overlap, d=5, n=400):
    """Two classes either side of a plane, but for a pair of rows that overlaps by so much of the spread."""
    random = np.random.default_rng(7)
    w = random.normal(size=d)
    w /= np.linalg.norm(w)
    X = random.normal(size=(n, d))
    y = np.where(X @ w > 0, 1, -1)
    X += 0.5 * y[:, None] * w
    # Each of the two lies inside a face spanned by rows of the other class, moved by overlap.
    plus, minus = X[y > 0], X[y < 0]
    weights = random.dirichlet(np.ones(d))
    face = min(range(50), key=lambda k: np.ptp(plus[k : k + d] @ w))
    target = weights @ plus[face : face + d]
    inwards = plus.mean(axis=0) - target
    inside = target + overlap * inwards / np.linalg.norm(inwards)
    # The row is the only one that reaches over: remove all others of +1 in its way.
    return np.vstack([plus[face : face + d], plus.mean(axis=0), minus, inside]), np.concatenate(
        [np.ones(d + 1), -np.ones(len(minus) + 1)]
    )


@pytest.mark.parametrize("scale", [1.0, 1e8, 1e-8])
@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-9])
def test_a_row_that_is_barely_inside_the_other_hull_is_no_separation(size, scale):
    X, y = touching(size)
    assert separation(X * scale, y).kind == "overlap"


@pytest.mark.parametrize("mean", [0.0, 1e4])
@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-9])
def test_a_tiny_margin_is_a_separation(size, mean):
    random = np.random.default_rng(3)
    X = random.normal(size=(300, 4))
    w = np.array([1.0, -2.0, 0.5, 1.0])
    y = np.where(X @ w > 0, 1, -1)
    # All rows of both classes within size of the plane but for their own spread along it.
    X -= np.outer(X @ w - size * y * random.uniform(1, 2, 300), w) / (w @ w)
    assert separation(X + mean, y).kind == "complete"
    assert separation(sp.csr_array(X), y).kind == "complete"


def test_a_flipped_row_deep_inside_is_no_separation():
    random = np.random.default_rng(4)
    X = random.normal(size=(2000, 20))
    y = np.where(X @ np.ones(20) > 0, 1, -1)
    assert separation(X, y).kind == "complete"
    y[np.argmax(X @ np.ones(20))] *= -1
    found = separation(X, y)
    assert found.kind == "overlap"
    assert found.proof.rows.size <= 22


# -- limits and checks -----------------------------------------------------------------------------------


def test_nothing_is_claimed_when_time_is_up():
    random = np.random.default_rng(5)
    X, y = random.normal(size=(100, 3)), random.choice([-1.0, 1.0], 100)
    with Budget(time_limit=0.0) as budget:
        found = separate(problem("logistic"), blocks(X, y), budget)
    assert found.kind == "unknown"
    assert budget.stopped_by == "time_limit=0 s"
    with Budget() as budget:
        budget.flag[0] = 1
        assert separate(problem("logistic"), blocks(X, y), budget).kind == "unknown"
    assert budget.stopped_by == "Ctrl-C"


def test_the_check_refuses_what_the_data_do_not_bear_out():
    X, y = load_iris(return_X_y=True)
    stated = problem("logistic")
    apart, mixed = (blocks(X, np.where(y == k, 1.0, -1.0)) for k in (0, 1))
    complete, overlap = (separate(stated, data, Budget()) for data in (apart, mixed))
    assert check_separation(complete, stated, apart)
    assert not check_separation(complete, stated, mixed)
    assert not check_separation(replace(complete, b=complete.b + 100.0), stated, apart)
    assert check_separation(overlap, stated, mixed)
    assert not check_separation(overlap, stated, apart)
    assert not check_separation(replace(overlap, proof=None), stated, mixed)
    half = replace(overlap.proof, weights=overlap.proof.weights[::-1])
    assert not check_separation(replace(overlap, proof=half), stated, mixed)


def test_the_check_refuses_an_overlap_whose_rows_leave_a_direction_open():
    X = np.array([[-1.0], [0.0], [0.0], [1.0]])
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    stated, data = problem("logistic"), blocks(X, y)
    found = separate(stated, data, Budget())
    assert found.kind == "quasi-complete"
    assert not check_separation(replace(found, kind="overlap"), stated, data)
