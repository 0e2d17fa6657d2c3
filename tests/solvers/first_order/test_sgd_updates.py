"""The native row updates: against the textbook by hand, and against plain NumPy for every pairing."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from oracles import linear as oracles
from sixfold.budget import Budget
from sixfold.data.blocks import Block
from sixfold.risk.losses import LOSSES
from sixfold.risk.penalties import Penalty, make_penalty
from sixfold.risk.problem import Problem
from sixfold.solvers.first_order.sgd_updates import (
    SCHEDULES,
    ReferenceModel,
    SGDState,
    StepRule,
    sgd_epochs,
    sgd_pass,
)
from sixfold.solvers.passes import LOSS_CODES
from sixfold.solvers.threads import thread_limit


def updated(loss, x, y, w, *, eta=0.1, alpha=0.0, penalty=None, b=None):
    """Return w and b after one update with one row."""
    x, y = np.array([x], dtype=float), np.array([[y]], dtype=float)
    w = np.array(w, dtype=float).reshape(x.size, -1)
    intercept = b is not None
    problem = Problem(LOSSES[loss], make_penalty(penalty), alpha, fit_intercept=intercept)
    state = SGDState.at(w, np.atleast_1d(b if intercept else np.zeros(w.shape[1])))
    assert sgd_pass(state, Block(x, y, None, 0), problem, StepRule("constant", eta))
    return state.w, state.c


# -- the updates of the lecture, by hand -------------------------------------------------------


def test_squared_loss_moves_by_the_residual_times_the_row():
    # s = 1*1 + 2*2 = 5, y = 7: w + 0.1 * 2 * (1, 2)
    w, _ = updated("squared", [1, 2], 7, [1, 2])
    assert w[:, 0] == pytest.approx([1.2, 2.4], rel=1e-15)


def test_the_intercept_moves_by_the_residual():
    # s = 5 + 1 = 6, y = 7: w + 0.1 * 1 * (1, 2), b + 0.1
    w, b = updated("squared", [1, 2], 7, [1, 2], b=1.0)
    assert w[:, 0] == pytest.approx([1.1, 2.2], rel=1e-15)
    assert b == pytest.approx([1.1], rel=1e-15)


def test_logistic_loss_moves_by_the_probability_of_the_other_label():
    # y s = log 3, so sigma(-y s) = 1/4: w + 0.1 * 0.25 * (-1) * x
    w, _ = updated("logistic", [1, 0], -1, [-np.log(3.0), 5])
    assert w[:, 0] == pytest.approx([-np.log(3.0) - 0.025, 5.0], rel=1e-15)


def test_perceptron_moves_only_for_a_mistake():
    w, _ = updated("perceptron", [1, 2], -1, [1, 1])  # s = 3, wrong
    assert w[:, 0] == pytest.approx([0.9, 0.8], rel=1e-15)
    w, _ = updated("perceptron", [1, 2], 1, [1, 1])
    np.testing.assert_array_equal(w[:, 0], [1, 1])
    w, _ = updated("perceptron", [1, -1], 1, [1, 1])  # s = 0: the kink counts as right
    np.testing.assert_array_equal(w[:, 0], [1, 1])


@pytest.mark.parametrize(
    ("at_zero", "label", "moved"),
    [
        ("wrong", 1, 1), ("wrong", -1, 1), ("positive", 1, 0), ("positive", -1, 1), ("negative", 1, 1),
        ("negative", -1, 0), (None, 1, 0), (None, -1, 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("sparse", [False, True])
def test_a_score_of_zero_is_to_the_perceptron_what_its_rule_says(at_zero, label, moved, sparse):
    X = np.array([[2.0, -3.0]])
    state = SGDState.at(np.zeros((2, 1)), np.zeros(1), sparse=sparse)
    block = Block(sp.csr_array(X) if sparse else X, np.array([[float(label)]]), None, 0)
    rule = StepRule("constant", 0.5, at_zero=at_zero)
    assert sgd_pass(state, block, Problem(LOSSES["perceptron"], make_penalty(None)), rule)
    np.testing.assert_array_equal(state.w[:, 0], 0.5 * moved * label * X[0])
    np.testing.assert_array_equal(state.c, [0.5 * moved * label])
    # Under its own gradient a score of 0 moves nothing, and is a mistake all the same.
    assert state.mistakes.tolist() == [1 if at_zero is None else moved]


def test_the_perceptron_of_the_texts_by_hand():
    # w = 0 is wrong: w = (2, 1), b = 1. Then (1, -1) has s = 2: w = (1, 2), b = 0. Then s = 3 is right.
    X, y = np.array([[2.0, 1.0], [1.0, -1.0], [1.0, 1.0]]), np.array([[1.0], [-1.0], [1.0]])
    state = SGDState.at(np.zeros((2, 1)), np.zeros(1))
    rule = StepRule("constant", 1.0, at_zero="wrong")
    assert sgd_pass(state, Block(X, y, None, 0), Problem(LOSSES["perceptron"], make_penalty(None)), rule)
    assert (state.w[:, 0].tolist(), state.c.tolist()) == ([1.0, 2.0], [0.0])
    assert state.mistakes.tolist() == [2]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "perceptron", "softmax"])
def test_mistakes_are_counted_before_each_update(loss, batch_size, sparse):
    random = np.random.default_rng(3)
    X = random.standard_normal((40, 3))
    weight = np.where(np.arange(40) % 5, 1.0, 0.0)
    scores = 3 if loss == "softmax" else 2
    y = random.integers(0, 3, (40, 1)) if loss == "softmax" else random.choice([-1, 1], (40, 2))
    problem, rule = (
        Problem(LOSSES[loss], make_penalty(None)),
        StepRule("constant", 0.3, batch_size=batch_size),
    )
    state = SGDState.at(np.zeros((3, scores)), np.zeros(scores), sparse=sparse)
    expected = np.zeros(scores, dtype=int)
    for first in range(0, 40, batch_size):
        rows = slice(first, first + batch_size)
        score = X[rows] @ state.w + state.c
        for s, label, counts in zip(score, y[rows], weight[rows], strict=True):
            if loss == "softmax":
                expected[label[0]] += counts * (np.delete(s, label[0]).max() >= s[label[0]])
            else:
                expected += (counts * (label * s <= 0)).astype(int)
        part = sp.csr_array(X[rows]) if sparse else X[rows]
        sgd_pass(state, Block(part, y[rows].astype(float), weight[rows], 0), problem, rule, None, 1.0)
    assert state.mistakes.tolist() == expected.tolist()
    whole = SGDState.at(np.zeros((3, scores)), np.zeros(scores), sparse=sparse)
    block = Block(sp.csr_array(X) if sparse else X, y.astype(float), weight, 0)
    sgd_pass(whole, block, problem, rule, None, 1.0)
    assert whole.mistakes.tolist() == expected.tolist()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("loss", "dtype"), [("logistic", np.float64), ("softmax", np.float32)])
def test_the_loss_of_a_reference_model_comes_with_a_pass(loss, dtype, threads):
    random = np.random.default_rng(4)
    X = random.standard_normal((5000, 11)).astype(dtype)
    weight = random.uniform(size=5000)
    scores = 3 if loss == "softmax" else 1
    y = random.integers(0, 3, (5000, 1)) if loss == "softmax" else random.choice([-1, 1], (5000, 1))
    block = Block(X, y.astype(float), weight, 0)
    problem, rule = Problem(LOSSES[loss], make_penalty("l2"), 0.1), StepRule("decay", 0.1, 0.01)
    w, b = random.standard_normal((11, scores)), random.standard_normal(scores)
    reference = ReferenceModel(w, b)
    center, factor = X.mean(axis=0).astype(float), np.ones(11)
    state, alone = (SGDState.at(0 * w, 0 * b, center=center, factor=factor) for _ in range(2))
    order = random.permutation(5000)
    with thread_limit(threads):
        assert sgd_pass(state, block, problem, rule, order, 2.0, None, reference)
    labels = y[:, 0] if loss == "softmax" else y
    value = problem.loss.value(X.astype(float) @ w + b, labels)
    assert reference.loss == pytest.approx(2.0 * (weight @ value).sum(), rel=1e-12)
    sgd_pass(alone, block, problem, rule, order, 2.0)
    np.testing.assert_array_equal(state.w, alone.w)


def test_hinge_with_l2_decays_and_moves_inside_the_margin():
    # factor 1 - 0.1 * 0.5 = 0.95; y s = 0.5 < 1: 0.95 w + 0.1 * (1, 2)
    w, _ = updated("hinge", [1, 2], 1, [0.1, 0.2], alpha=0.5, penalty="l2")
    assert w[:, 0] == pytest.approx([0.195, 0.39], rel=1e-15)
    w, _ = updated("hinge", [1, 2], 1, [1, 2], alpha=0.5, penalty="l2")  # y s = 5: only decay
    assert w[:, 0] == pytest.approx([0.95, 1.9], rel=1e-15)


def test_l1_subtracts_the_sign_but_never_crosses_zero():
    # the residual is 0, so only the penalty acts: 0.1 * 0.5 = 0.05 towards zero
    w, _ = updated("squared", [1, 1, 1], 0.02, [1.0, -1.0, 0.02], alpha=0.5, penalty="l1")
    assert w[:, 0] == pytest.approx([0.95, -0.95, 0.0], abs=1e-15)


def test_softmax_moves_every_class_by_its_probability():
    # scores log(1, 2, 5) at x = 1: probabilities 1/8, 2/8, 5/8; the class is 1
    w, b = updated("softmax", [1, 0], 1, [np.log([1, 2, 5]), [7, 7, 7]], eta=0.8, b=np.zeros(3))
    assert w[0] - np.log([1, 2, 5]) == pytest.approx([-0.1, 0.6, -0.5], rel=1e-14)
    np.testing.assert_array_equal(w[1], [7, 7, 7])
    assert b == pytest.approx([-0.1, 0.6, -0.5], rel=1e-14)


def test_a_batch_moves_by_the_mean_of_its_rows():
    problem = Problem(LOSSES["squared"], make_penalty(None), fit_intercept=False)
    state = SGDState.at(np.array([[1.0]]), np.zeros(1))
    X, y = np.array([[1.0], [2.0], [4.0]]), np.array([[2.0], [6.0], [4.0]])
    sgd_pass(state, Block(X, y, None, 0), problem, StepRule("constant", 0.1, batch_size=2))
    # first two rows: (1*1 + 4*2) / 2 = 4.5, w = 1.45; last row alone: 4 - 5.8 = -1.8, w += 0.1 * -7.2
    assert state.w[0, 0] == pytest.approx(1.45 - 0.72, rel=1e-14)
    assert state.updates == 2


def test_step_sizes_follow_the_schedule():
    steps = {name: [StepRule(name, 2.0, 0.5).step_size(t) for t in (0, 2, 3)] for name in SCHEDULES}
    assert steps["constant"] == [2.0, 2.0, 2.0]
    assert steps["decay"] == [2.0, 1.0, 0.8]
    assert steps["invscaling"] == pytest.approx([2.0, 2.0 / 3.0**0.5, 1.0], rel=1e-15)


# -- every pairing against plain NumPy ---------------------------------------------------------


@st.composite
def situations(draw):
    loss = draw(st.sampled_from(LOSS_CODES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 19))
    scores = draw(st.integers(2, 4) if loss == "softmax" else st.integers(1, 2))
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < draw(st.sampled_from([0.2, 1.0])))
    labels = LOSSES[loss].labels
    y = rng.standard_normal((n, scores))
    y = {"real": y, "sign": np.where(y > 0, 1.0, -1.0)}.get(
        labels, rng.integers(0, scores, (n, 1)).astype(float)
    )
    l1_ratio = draw(st.sampled_from([None, 0.0, 0.3, 1.0]))
    alpha = draw(st.sampled_from([0.01, 0.3, 60.0]))  # 60 makes 1 - eta l2 reach zero
    average = draw(st.sampled_from([None, 0, 3]))
    return {
        "X": X.astype(draw(st.sampled_from([np.float32, np.float64]))),
        "y": y,
        "order": np.concatenate([rng.permutation(n) for _ in range(draw(st.integers(1, 3)))]),
        "w": rng.standard_normal((d, scores)),
        "b": rng.standard_normal(scores),
        "weight": draw(st.sampled_from([None, 2.0 * rng.random(n)])),
        "loss": loss,
        "penalty": Penalty(None, l1_ratio, positive=draw(st.booleans())),
        "alpha": alpha,
        "fit_intercept": draw(st.booleans()),
        "rule": StepRule(
            draw(st.sampled_from(SCHEDULES)),
            1e-3 if loss == "cubed" else 0.02,  # cubed losses blow up from steps that others bear
            0.3,
            draw(st.integers(1, 4)),
            average,
        ),
        "center": rng.standard_normal(d) if draw(st.booleans()) else None,
        "factor": rng.random(d) + 0.5,
    }


def expected(case, center, factor):
    rule, penalty = case["rule"], case["penalty"]
    return oracles.descend_rows(
        *(case[name] for name in ("X", "y", "order", "w", "b")),
        loss=case["loss"],
        schedule=rule.schedule,
        eta0=rule.eta0,
        rate=rule.rate,
        l1=case["alpha"] * penalty.l1,
        l2=case["alpha"] * penalty.l2,
        positive=penalty.positive,
        fit_intercept=case["fit_intercept"],
        batch_size=rule.batch_size,
        average_from=rule.average_from,
        weight=case["weight"],
        center=0.0 if center is None else center,
        factor=1.0 if factor is None else factor,
    )


def run(case, X, center=None, factor=None):
    rule = case["rule"]
    problem = Problem(LOSSES[case["loss"]], case["penalty"], case["alpha"], case["fit_intercept"])
    state = SGDState.at(
        case["w"],
        case["b"],
        sparse=sp.issparse(X),
        average=rule.average_from is not None,
        center=center,
        factor=factor,
    )
    block = Block(X, case["y"], case["weight"], 0)
    assert sgd_pass(state, block, problem, rule, case["order"], weight_scale=1.0)
    return state


def assert_same(state, case, center=None, factor=None):
    w, c, mean_w, mean_c, updates = expected(case, center, factor)
    assert state.updates == updates
    np.testing.assert_allclose(state.w, w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(state.c, c, rtol=1e-9, atol=1e-12)
    if case["rule"].average_from is not None:
        np.testing.assert_allclose(state.mean_w, mean_w, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.mean_c, mean_c, rtol=1e-9, atol=1e-12)


@given(situations(), st.sampled_from(["C", "F", "every other"]))
def test_dense_updates_are_those_of_plain_numpy(case, layout):
    X = np.asarray(case["X"], order="F" if layout == "F" else "C")
    if layout == "every other":
        X = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    factor = None if case["center"] is None else case["factor"]
    assert_same(run(case, X, case["center"], factor), case, case["center"], factor)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["squared", "hinge", "squared_hinge", "perceptron", "logistic"])
@pytest.mark.parametrize(("columns", "scores"), [(1, 1), (8, 1), (11, 1), (17, 1), (1, 2), (7, 8), (12, 15)])
def test_plain_updates_are_those_of_plain_numpy(kind, dtype, loss, columns, scores):
    rng = np.random.default_rng(columns)
    X, Y = rng.standard_normal((30, columns)).astype(dtype), rng.standard_normal((30, scores))
    case = {
        "X": X,
        "y": Y if loss == "squared" else np.where(Y > 0, 1.0, -1.0),
        "order": rng.integers(0, 30, 50),
        "w": rng.standard_normal((columns, scores)),
        "b": rng.standard_normal(scores),
        "weight": rng.integers(0, 3, 30).astype(float),
        "loss": loss,
        "penalty": make_penalty(None),
        "alpha": 0.0,
        "fit_intercept": columns != 11,
        "rule": StepRule("decay", 0.02, 0.3),
    }
    assert_same(run(case, kind(X)), case)


@pytest.mark.parametrize("at_zero", ["wrong", "positive", "negative", None])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scores", [1, 3])
def test_scores_of_zero_are_seen_on_the_way(at_zero, kind, scores):
    # Whole numbers, so that rows come to lie exactly on the plane.
    rng = np.random.default_rng(0)
    X, y = rng.integers(-1, 2, (40, 3)).astype(float), rng.choice([-1.0, 1.0], (40, scores))
    state = SGDState.at(np.zeros((3, scores)), np.zeros(scores), sparse=kind is sp.csr_array)
    w, b, mistakes, zeros = np.zeros((3, scores)), np.zeros(scores), np.zeros(scores, dtype=int), 0
    for x, label in zip(X, y, strict=True):
        score = x @ w + b
        zeros += np.count_nonzero(score == 0.0)
        at = {"wrong": np.ones(scores), "positive": label < 0, "negative": label > 0, None: np.zeros(scores)}
        moved = (label * score < 0) | ((score == 0) & at[at_zero].astype(bool))
        mistakes += moved if at_zero is not None else label * score <= 0
        w, b = w + np.outer(x, label * moved), b + label * moved
    rule = StepRule("constant", 1.0, at_zero=at_zero)
    assert sgd_pass(
        state, Block(kind(X), y, None, 0), Problem(LOSSES["perceptron"], make_penalty(None)), rule
    )
    assert zeros > 3 * scores
    np.testing.assert_array_equal(state.w, w)
    np.testing.assert_array_equal(state.c, b)
    np.testing.assert_array_equal(state.mistakes, mistakes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_of_any_length_end_where_they_end(dtype):
    # From no entry to 49, so that rows are shorter than, as long as and longer than what is read at a time.
    rng = np.random.default_rng(0)
    there = np.arange(50) < rng.permutation(50)[:, None]
    X = np.where(there, rng.standard_normal((50, 50)), 0.0).astype(dtype)
    case = {
        "X": X,
        "y": rng.choice([-1.0, 1.0], (50, 1)),
        "order": rng.permutation(np.repeat(np.arange(50), 2)),
        "w": rng.standard_normal((50, 1)),
        "b": rng.standard_normal(1),
        "weight": None,
        "loss": "logistic",
        "penalty": make_penalty(None),
        "alpha": 0.0,
        "fit_intercept": True,
        "rule": StepRule("constant", 0.1),
    }
    assert_same(run(case, sp.csr_array(X)), case)


@given(situations(), st.sampled_from([np.int32, np.int64]))
def test_sparse_updates_are_those_of_plain_numpy(case, index_type):
    X = sp.csr_array(case["X"])
    X.indices, X.indptr = X.indices.astype(index_type), X.indptr.astype(index_type)
    assert_same(run(case, X), case)


@pytest.mark.parametrize("alpha", [0.01, 3.0])  # 3: the common factor falls below 1e-6 every few rows
def test_sparse_updates_stay_right_over_many_rows(alpha):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 6)) * (rng.random((40, 6)) < 0.3)
    case = {
        "X": X,
        "y": rng.standard_normal((40, 1)),
        "order": rng.integers(0, 40, 5_000),
        "w": np.zeros((6, 1)),
        "b": np.zeros(1),
        "weight": None,
        "loss": "squared",
        "penalty": make_penalty("elasticnet", 0.2),
        "alpha": alpha,
        "fit_intercept": True,
        "rule": StepRule("invscaling", 0.3, 0.2, 1, 100),
    }
    assert_same(run(case, sp.csr_array(X)), case)


# -- the contract of sgd_pass -------------------------------------------------------------------


def test_two_passes_over_halves_are_one_pass_over_the_whole():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 3)), rng.standard_normal((20, 1))
    problem = Problem(LOSSES["squared"], make_penalty("l1"), 0.1)
    rule = StepRule("decay", 0.1, 0.2, average_from=0)
    for kind in (np.asarray, sp.csr_array):
        states = [
            SGDState.at(np.zeros((3, 1)), np.zeros(1), sparse=kind is not np.asarray, average=True)
            for _ in range(2)
        ]
        sgd_pass(states[0], Block(kind(X), y, None, 0), problem, rule)
        for rows in (slice(0, 7), slice(7, 20)):
            sgd_pass(states[1], Block(kind(X[rows]), y[rows], None, 0), problem, rule)
        np.testing.assert_allclose(states[0].w, states[1].w, rtol=1e-13)
        np.testing.assert_allclose(states[0].mean_w, states[1].mean_w, rtol=1e-13)


@pytest.mark.parametrize("scores", [1, 3])
def test_several_epochs_in_one_call_are_as_many_passes(scores):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((30, 4)), np.sign(rng.standard_normal((30, scores)))
    block, problem = Block(X, y, rng.uniform(0, 2, 30), 0), Problem(LOSSES["perceptron"], make_penalty(None))
    rule = StepRule("invscaling", 0.5, 0.2, average_from=0)
    orders = np.array([rng.permutation(30) for _ in range(5)])
    one, other = (SGDState.at(np.zeros((4, scores)), np.zeros(scores), average=True) for _ in range(2))
    finished, mistakes = sgd_epochs(one, block, problem, rule, orders, -1, 1.0, Budget())
    made = []
    for order in orders:
        before = other.mistakes.copy()
        sgd_pass(other, block, problem, rule, order, 1.0)
        made.append(other.mistakes - before)
    assert finished
    np.testing.assert_array_equal(mistakes, made)
    assert one.updates == other.updates == 150
    for name in ("w", "c", "mean_w", "mean_c", "mistakes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_epochs_end_with_enough_right_rows():
    X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([[1.0], [1.0], [-1.0]])
    state = SGDState.at(np.zeros((1, 1)), np.zeros(1))
    orders = np.tile(np.arange(3), (9, 1))
    block, problem = Block(X, y, None, 0), Problem(LOSSES["perceptron"], make_penalty(None))
    rule = StepRule("constant", 1.0, at_zero="wrong")
    # By hand: w = b = 1 after the first row, which is on the plane; -1 is then on it: w = 2, b = 0.
    finished, mistakes = sgd_epochs(state, block, problem, rule, orders, 0, 1.0, Budget())
    assert (finished, mistakes.tolist()) == (True, [[2], [0]])
    assert state.updates == 6
    assert (state.w[0, 0], state.c[0]) == (2.0, 0.0)


def test_weights_of_a_block_are_scaled_to_a_mean_of_one():
    X, y = np.array([[1.0], [2.0]]), np.array([[1.0], [2.0]])
    problem, rule = Problem(LOSSES["squared"], make_penalty(None)), StepRule("constant", 0.1)
    models = []
    for weight in (np.array([1.0, 3.0]), np.array([10.0, 30.0]), np.array([0.5, 1.5])):
        state = SGDState.at(np.zeros((1, 1)), np.zeros(1))
        sgd_pass(state, Block(X, y, weight, 0), problem, rule)
        models.append(state.w[0, 0])
    assert models[0] == models[1] == models[2]
    # by hand: w = b = 0.1 * 0.5 * 1, then s = 0.15, w += 0.1 * 1.5 * 1.85 * 2
    assert models[0] == pytest.approx(0.05 + 0.555, rel=1e-14)


def test_a_block_whose_rows_all_count_nothing_changes_nothing():
    state = SGDState.at(np.ones((1, 1)), np.ones(1))
    problem, rule = Problem(LOSSES["squared"], make_penalty(None)), StepRule("constant", 0.1)
    assert sgd_pass(state, Block(np.ones((2, 1)), np.ones((2, 1)), np.zeros(2), 0), problem, rule)
    assert state.w[0, 0] == state.c[0] == 1.0


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("batch_size", [1, 8])
def test_an_interrupt_ends_the_pass_with_a_whole_update(kind, batch_size):
    X = np.ones((1000, 4))
    order = np.zeros(40_000_000, dtype=np.int64)  # over a second of work
    problem = Problem(LOSSES["squared"], make_penalty("l2"), 1e-3)
    budget = Budget()
    budget.flag[0] = 1
    state = SGDState.at(np.zeros((4, 1)), np.zeros(1), sparse=kind is not np.asarray)
    rule = StepRule("constant", 0.01, batch_size=batch_size)
    finished = sgd_pass(state, Block(kind(X), np.ones((1000, 1)), None, 0), problem, rule, order, 1.0, budget)
    assert not finished
    assert 0 < state.updates < order.size // batch_size
    assert np.isfinite(state.w).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": np.array([5])}, "row numbers"),
        ({"y": np.ones((2, 1))}, "one row a row"),
        ({"w": np.ones((2, 1))}, "one entry a score and column"),
    ],
)
def test_the_native_loop_refuses_sizes_that_do_not_fit(change, message):
    given_sizes = {"y": np.ones((5, 1)), "w": np.ones((3, 1)), "order": np.arange(5)} | change
    problem, rule = Problem(LOSSES["squared"], make_penalty(None)), StepRule("constant", 0.1)
    state = SGDState.at(given_sizes["w"], np.zeros(1))
    block = Block(np.ones((5, 3)), given_sizes["y"], None, 0)
    with pytest.raises(ValueError, match=message):
        sgd_pass(state, block, problem, rule, given_sizes["order"])


@pytest.mark.parametrize("scores", range(1, 9))
@pytest.mark.parametrize("average", [False, True])
def test_sparse_rows_of_any_number_of_scores_are_added_up(scores, average):
    rng = np.random.default_rng(scores)
    X = np.where(rng.random((40, 6)) < 0.4, rng.standard_normal((40, 6)), 0.0)
    y = np.sign(rng.standard_normal((40, scores)))
    problem = Problem(LOSSES["perceptron"], make_penalty(None))
    rule = StepRule("constant", 0.5, average_from=0 if average else None, at_zero="wrong")
    states = []
    for kind in (np.asarray, sp.csr_array):
        sparse = kind is not np.asarray
        state = SGDState.at(np.zeros((6, scores)), np.zeros(scores), sparse=sparse, average=average)
        for _ in range(3):
            sgd_pass(state, Block(kind(X), y, None, 0), problem, rule)
        states.append(state)
    for name in ("w", "c", "mean_w", "mean_c"):
        np.testing.assert_allclose(getattr(states[1], name), getattr(states[0], name), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(states[1].mistakes, states[0].mistakes)
