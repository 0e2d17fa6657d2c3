"""Newton's method in one call, and the sums that it leaves, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold._native import core
from sixfold.risk.losses import LOSSES
from sixfold.solvers.passes import LOSS_CODES
from sixfold.solvers.threads import thread_limit

DONE, STOPPED, STUCK = range(3)
LOSS, SCORE_SQUARES, SLOPE_SQUARES, SLOPE, SLOPE_SIZE, PRODUCTS, MASS, CENTRED = range(8)
NAMES = ("logistic", "squared_hinge", "softmax")


class Fit:
    """The call with its results, and the same sums by NumPy."""

    def __init__(self, X, y, weight, name, l2, intercept=True, enough=1e-9, start=None, **options):
        self.X, self.y, self.name, self.l2, self.intercept = X, y, name, l2, intercept
        self.loss, n = LOSSES[name], X.shape[0]
        self.q = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
        d, k = X.shape[1], int(y.max()) + 1 if name == "softmax" else y.shape[1]
        self.w, self.b = (np.zeros((d, k)), np.zeros(k)) if start is None else start
        self.means, self.lengths = np.empty(d), np.empty(d)
        self.slope, self.sums = np.empty((d, k)), np.empty((k, 8))
        self.reach, width = np.empty(d), d + intercept
        self.curvature = None if name == "softmax" else np.zeros((k, width, width))
        limits = {
            "seconds_left": np.inf,
            "flag": np.zeros(1, dtype=np.int32),
            "report": None,
            "most_steps": 50,
        }
        *found, self.largest, self.move = core.newton_fit(
            X=X, y=y, weight=weight, weight_sum=float(n if weight is None else weight.sum()),
            loss=LOSS_CODES.index(name), l2=l2, intercept=intercept, enough=enough, scale=1.0, w=self.w,
            b=self.b, means=self.means, slope=self.slope, lengths=self.lengths, sums=self.sums,
            reach=self.reach, curvature=self.curvature,
            started=start is not None, **{**limits, **options},
        )  # fmt: skip
        self.end, self.steps, self.depth, self.wrong, self.log_chance = found

    def targets(self):
        return self.y[:, 0] if self.name == "softmax" else self.y

    def by_numpy(self):
        X = self.X.astype(np.float64)
        mean = self.q @ X
        Z = X - mean if self.intercept else X
        score = X @ self.w + self.b
        u = self.loss.gradient(score, self.targets())
        return mean, Z, score, u


@st.composite
def tables(draw):
    name = draw(st.sampled_from(NAMES))
    n, d, k = draw(st.integers(1, 600)), draw(st.integers(1, 30)), draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    X = (rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, size=d) + rng.integers(0, 3)).astype(dtype)
    own = np.concatenate([np.arange(k), rng.integers(0, k, size=n)])[:n]
    y = own[:, None] if name == "softmax" else np.where(own[:, None] == np.arange(k), 1.0, -1.0)
    weight = None if draw(st.booleans()) else rng.integers(0, 3, size=n) + (np.arange(n) < k).astype(float)
    layout = draw(st.sampled_from(["C", "F"]))
    return np.asarray(X, order=layout), y.astype(dtype), weight, name, 10.0 ** rng.integers(-3, 2)


@given(tables(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_model_is_a_minimum_and_its_sums_are_those_of_numpy(table, intercept):
    fit = Fit(*table, intercept=intercept)
    if fit.end == STUCK:  # left to others: rarely, where rounding is all that is left
        return
    assert fit.end == DONE
    mean, Z, score, u = fit.by_numpy()
    q, digits = fit.q[:, None], float(np.finfo(fit.X.dtype).eps)
    rms = np.sqrt(fit.q @ Z**2)
    np.testing.assert_allclose(fit.means, mean, rtol=1e-12, atol=1e-12 * np.abs(fit.X).max())
    np.testing.assert_allclose(fit.lengths, fit.q @ Z**2, rtol=1e-9, atol=1e-20)
    np.testing.assert_allclose(fit.slope, Z.T @ (q * u), rtol=1e-9, atol=1e-12 * max(rms.max(), 1.0))
    # The slope of the objective, of scores that rounding the model moves by its digits.
    gradient = fit.slope + fit.l2 * fit.w
    moved = digits * (np.abs(fit.X).astype(float).max(axis=0) @ np.abs(fit.w)).max() + digits
    assert np.abs(gradient / (rms[:, None] + fit.l2)).max() <= 1e-6 + 8.0 * moved
    if not intercept:
        assert not fit.b.any()
    sums, value = fit.sums.T, fit.loss.value(score, fit.targets())
    assert sums[LOSS].sum() == pytest.approx(float((fit.q @ value).sum()), rel=1e-11, abs=1e-15)
    for place, terms in (
        (SCORE_SQUARES, score**2), (SLOPE_SQUARES, u**2), (SLOPE, u), (SLOPE_SIZE, np.abs(u)),
        (PRODUCTS, np.abs(score * u)),
    ):  # fmt: skip
        np.testing.assert_allclose(sums[place], fit.q @ terms, rtol=1e-8, atol=1e-11)
    assert (fit.w == fit.w.astype(fit.X.dtype)).all()
    counted = fit.q > 0
    np.testing.assert_allclose(fit.reach, np.abs(Z[counted]).max(axis=0), rtol=1e-9, atol=1e-10)
    assert fit.largest == pytest.approx(np.abs(score[counted]).max(), rel=1e-9, abs=1e-9)
    if fit.name != "softmax":
        np.testing.assert_allclose(sums[MASS], fit.q @ (fit.y > 0), rtol=1e-10, atol=1e-14)
        ones = np.hstack([Z, np.ones((len(Z), 1))]) if intercept else Z
        for k, H in enumerate(fit.curvature):
            bend = fit.q * fit.loss.curvature(score, fit.targets())[:, k]
            size = np.abs(np.triu(ones.T @ (bend[:, None] * ones)))
            np.testing.assert_allclose(
                np.triu(H), np.triu(ones.T @ (bend[:, None] * ones)), rtol=1e-7, atol=1e-9 * size.max()
            )
    if fit.name == "softmax":
        p = u + (fit.y == np.arange(fit.b.size))
        np.testing.assert_allclose(sums[MASS], fit.q @ p, rtol=1e-8)
        assert fit.log_chance >= -np.log(p[fit.q > 0].min()) * (1.0 - 1e-9)
        own = np.take_along_axis(score, fit.y.astype(int), axis=1)
        top = (own > np.where(fit.y == np.arange(fit.b.size), -np.inf, score)).all(axis=1)
        assert fit.wrong == np.count_nonzero(~top & (fit.q > 0))


def labelled(rows, seed=0, columns=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return X, np.where(X[:, :1] + rng.normal(size=(rows, 1)) > 0, 1.0, -1.0)


@pytest.mark.parametrize("intercept", [True, False])
def test_without_a_penalty_nothing_is_left_of_the_slopes(intercept):
    X, y = labelled(300)
    X = X * [1e-6, 1.0, 1e6] + [1e-6, 3.0, 0.0]
    fit = Fit(X, y, np.arange(300.0) % 3, "logistic", 0.0, intercept=intercept)
    assert fit.end == DONE
    assert np.abs(fit.slope[:, 0] / np.sqrt(fit.lengths)).max() < 1e-14
    before = Fit(X, y, np.arange(300.0) % 3, "logistic", 0.0, intercept=intercept, enough=1e-3)
    assert before.move < 0.1
    last = np.abs((X @ (fit.w - before.w) + fit.b - before.b)[fit.q > 0]).max()
    assert last <= before.move


def test_the_last_step_moves_scores_by_one_where_classes_are_separated():
    X = labelled(100)[0]
    fit = Fit(X, np.where(X[:, :1] > 0.2, 1.0, -1.0), None, "logistic", 0.0, enough=1e-6)
    assert fit.end == DONE
    assert fit.move > 0.5
    assert fit.wrong == 0


def test_threads_change_nothing():
    X, y = labelled(300_000)
    found = []
    for threads in (1, 2):
        with thread_limit(threads):
            found.append(Fit(X, y, None, "logistic", 0.01))
    assert found[0].end == DONE
    np.testing.assert_array_equal(found[0].w, found[1].w)
    np.testing.assert_array_equal(found[0].sums, found[1].sums)


def test_a_start_saves_steps_and_a_misleading_one_does_no_harm():
    X, y = labelled(500)
    plain = Fit(X, y, None, "logistic", 0.01)
    near = Fit(X, y, None, "logistic", 0.01, start=(plain.w * 1.001, plain.b.copy()))
    far = Fit(X, y, None, "logistic", 0.01, start=(np.full((3, 1), 1e3), np.zeros(1)))
    assert len(near.steps) < len(plain.steps) == len(far.steps)
    np.testing.assert_allclose(near.w, plain.w, rtol=1e-10)
    np.testing.assert_array_equal(far.w, plain.w)


def test_steps_that_overshoot_are_shortened():
    X = np.array([[-1.0], [0.1], [3.0], [20.0]]) * 50.0
    y = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    fit = Fit(X, y, np.array([1.0, 500.0, 1.0, 3.0]), "logistic", 1e-7)
    values = [value for _, _, value, _ in fit.steps]
    assert fit.end == DONE
    assert values == sorted(values, reverse=True)


def test_whoever_hears_of_the_steps_can_end_them():
    X, y = labelled(200)
    y = np.hstack([y, -y])
    heard = []

    def report(target, value, gap):
        heard.append((target, value, gap))
        return len(heard) == 2

    fit = Fit(X, y, None, "logistic", 0.01, report=report)
    assert fit.end == STOPPED
    assert [target for target, _, _ in heard] == [0, 0]
    assert fit.w[:, 0].any()
    assert not fit.w[:, 1].any()  # not begun
    whole = Fit(X, y, None, "logistic", 0.01)
    assert [step[2] for step in whole.steps[:2]] == [value for _, value, _ in heard]


def test_what_a_report_raises_comes_out():
    X, y = labelled(50)

    def report(target, value, gap):
        raise KeyError(gap)

    with pytest.raises(KeyError):
        Fit(X, y, None, "logistic", 0.01, report=report)


def test_no_time_leaves_the_start():
    fit = Fit(*labelled(50), None, "logistic", 0.01, seconds_left=0.0)
    assert fit.end == STOPPED
    assert not fit.w.any()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_values_that_cannot_be_computed_with_are_left_to_others(value):
    X, y = labelled(50)
    X[7, 1] = value
    assert Fit(X, y, None, "logistic", 0.01).end == STUCK


def test_sizes_and_labels_are_looked_at():
    X, y = labelled(50)
    with pytest.raises(ValueError, match="one entry a row"):
        Fit(X, y[:-1], None, "logistic", 0.01)
    with pytest.raises(ValueError, match="class indices"):
        Fit(X, y * 1.0, None, "softmax", 0.01)
    with pytest.raises(ValueError, match="logistic"):
        Fit(X, y, None, "hinge", 0.01)
