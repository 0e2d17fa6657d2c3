"""Tall hinges are solved on the rows near their kink, and end where the path of all rows does."""

import math
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

from sixfold import LinearSVC
from sixfold.budget import Budget
from sixfold.data.blocks import MemoryBlocks
from sixfold.errors import StoppedEarly
from sixfold.solvers.margin import interior_point, margin_band
from sixfold.solvers.margin.interior_point import InteriorPoint
from sixfold.solvers.margin.margin_band import Band, ReducedRows, SignedTable, minimise_band
from solvers.problems import problem

RNG = np.random.default_rng(0)
ROWS = 4000


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    monkeypatch.setattr(margin_band, "FEWEST_ROWS", ROWS)
    monkeypatch.setattr(margin_band, "SAMPLE_ROWS", 300)
    monkeypatch.setattr(margin_band, "SAMPLE_ROWS_A_COLUMN", 20)
    # Tables of this size have a native path of their own, after which no rounds are needed.
    monkeypatch.setattr(interior_point.SmallHinges, "of", lambda *a: None)


def table(classes=2, columns=4, rows=ROWS):
    X = RNG.standard_normal((rows, columns))
    s = X @ RNG.standard_normal((columns, classes)) + 0.5 * RNG.standard_normal((rows, classes))
    return X, s.argmax(axis=1)


def both(model, X, y, weight=None):
    """Return the model fitted in rounds, and by the path of all rows."""
    reduced = []
    with pytest.MonkeyPatch.context() as patch:
        original = margin_band.minimise_band
        patch.setattr(margin_band, "minimise_band", lambda *a: reduced.append(1) or original(*a))
        rounds = LinearSVC(loss="hinge", **model).fit(X, y, weight)
        assert reduced
        patch.setattr(interior_point, "has_narrow_band", lambda *a: False)
        count = len(reduced)
        whole = LinearSVC(loss="hinge", **model).fit(X, y, weight)
        assert len(reduced) == count
    return rounds, whole


def check(rounds, whole, X, y, weight=None):
    mine, other = rounds.certificate_, whole.certificate_
    assert mine.converged
    assert mine.lower_bound <= other.objective
    assert other.lower_bound <= mine.objective
    assert mine.verify(X, y, weight).converged
    assert rounds.dual_.shape == whole.dual_.shape


X2, Y2 = table()
RARE = (X2[:, 0] + 0.3 * RNG.standard_normal(ROWS) > 2.4).astype(int)
WEIGHT = RNG.random(ROWS) * (RNG.random(ROWS) > 0.3)
CASES = {
    "plain": (X2, Y2, None, {}),
    "tight": (X2, Y2, None, {"tol": 1e-11}),
    "loose": (X2, Y2, None, {"tol": 1e-2}),
    "large C": (X2, Y2, None, {"C": 1e6}),
    "small C": (X2, Y2, None, {"C": 1e-3}),
    "tiny C": (X2, Y2, None, {"C": 1e-9}),
    "no intercept": (X2 + 0.5, Y2, None, {"fit_intercept": False}),
    "far from zero": (X2 + 1e6, Y2, None, {}),
    "scales": (X2 * [1e-4, 1.0, 1e3, 1e6], Y2, None, {}),
    "scales beyond single precision": (X2 * [1e-60, 1.0, 1e3, 1e60], Y2, None, {}),
    "float32": (X2.astype(np.float32), Y2, None, {}),
    "by column": (np.asfortranarray(X2), Y2, None, {}),
    "weights": (X2, Y2, WEIGHT, {}),
    "weights of twelve decades": (X2, Y2, 10.0 ** RNG.uniform(-12, 0, ROWS), {}),
    "rare": (X2, RARE, None, {}),
    "balanced": (X2, RARE, None, {"class_weight": "balanced"}),
    "sorted": (X2[np.argsort(Y2, kind="stable")], np.sort(Y2), None, {}),
    "separable": (X2, (X2.sum(axis=1) > 0).astype(int), None, {}),
    "dependent": (np.column_stack([X2, X2[:, :2]]), Y2, None, {}),
    "constant": (np.column_stack([X2, np.full(ROWS, 7.0)]), Y2, None, {}),
    "in one place": (np.repeat(X2[:40], 100, axis=0), np.repeat(Y2[:40], 100), None, {}),
    "no plane": (X2, RNG.integers(0, 2, ROWS), None, {}),
    "all alike": (np.ones((ROWS, 2)), Y2, None, {}),
    "four classes": (*table(4), None, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_rounds_end_where_the_path_of_all_rows_does(name):
    X, y, weight, model = CASES[name]
    check(*both(model, X, y, weight), X, y, weight)


def test_an_answer_whose_rows_keep_their_sides_is_exact():
    rounds, whole = both({"tol": 1e-10}, X2, Y2)
    np.testing.assert_allclose(rounds.coef_, whole.coef_, rtol=1e-9)
    np.testing.assert_array_equal(rounds.support_, whole.support_)
    np.testing.assert_allclose(rounds.dual_, whole.dual_, atol=1e-6)


def test_blocks_change_nothing_but_rounding():
    y, stated = np.where(Y2, 1.0, -1.0)[:, None], problem("hinge", "l2", 1e-3)
    one, many = (
        InteriorPoint().solve(stated, MemoryBlocks(X2, y, WEIGHT, rows), Budget(1e-9, 100))
        for rows in (None, 700)
    )
    np.testing.assert_allclose(many.w, one.w, rtol=1e-8)
    assert many.certificate.converged


def test_a_reduced_problem_is_never_above_the_whole():
    y, stated = np.where(Y2, 1.0, -1.0)[:, None], problem("hinge", "l2", 1e-3)
    blocks = MemoryBlocks(X2, y, WEIGHT)
    least = InteriorPoint().solve(stated, blocks, Budget(1e-12, 100)).certificate.objective
    for scale in (0.0, 0.1, 1.0, 3.0):
        rows = SignedTable(stated, list(blocks), 0, X2.mean(axis=0), Budget())
        value = rows.judge(scale * RNG.standard_normal(5))
        band = rows.band(500)
        if band is None:  # at zero all rows are in one place
            assert scale == 0.0
            continue
        for held in (np.float32, np.float64):
            found = minimise_band(stated, band, rows.centre, rows.weight_sum, 1e-9, Budget(), True, held)
            assert found.certain <= found.lower + 1e-12 <= least + 2e-12
        assert value >= least - 1e-12


def test_a_band_and_its_means_are_sums_of_rows():
    y = np.where(Y2, 1.0, -1.0)[:, None]
    blocks = MemoryBlocks(X2, y, WEIGHT, 900)
    rows = SignedTable(
        problem("hinge", "l2", 1e-3), list(blocks), 0, np.array([1.0, 0.0, 0.0, -1.0]), Budget()
    )
    theta = RNG.standard_normal(5)
    rows.judge(theta)
    band = rows.band(400)
    assert isinstance(band, Band)
    past = y[:, 0] * ((X2 - rows.centre) @ theta[:-1] + theta[-1]) - 1.0
    near = (np.abs(past) < rows.width) & (WEIGHT > 0)
    np.testing.assert_array_equal(band.numbers, np.flatnonzero(near))
    assert 300 <= band.numbers.size <= 400
    for k, label in enumerate((-1.0, 1.0)):
        inside = np.where((past <= -rows.width) & (y[:, 0] == label), WEIGHT, 0.0)
        np.testing.assert_allclose(band.mass[k], inside.sum(), rtol=1e-12)
        np.testing.assert_allclose(band.sums[k], inside @ (X2 - rows.centre), atol=1e-9)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("rows", [None, 900])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_a_band_are_gathered_about_the_centre(weight, rows, dtype):
    X, y = X2.astype(dtype), np.where(Y2, 1.0, -1.0)[:, None]
    centre = np.array([1.0, 0.0, 0.0, -1.0])
    stated = problem("hinge", "l2", 1e-3)
    whole = SignedTable(stated, list(MemoryBlocks(X, y, weight, rows)), 0, centre, Budget())
    for table in (whole, SignedTable(stated, whole.sample(2000), 0, centre, Budget())):
        table.judge(np.array([0.3, -0.2, 0.1, 0.5, 0.1]))
        band = table.band(400)
        assert isinstance(band, Band)
        held = np.concatenate([part.X for part in table.parts])[band.numbers]
        means = (band.sums / np.maximum(band.mass, 1e-300)[:, None])[band.mass > 0]
        for stored in (
            ReducedRows(band, centre, None),
            ReducedRows(replace(band, X=held), centre, np.float64),
        ):
            gathered = stored.whole()
            np.testing.assert_array_equal(gathered.X, np.vstack([held - centre, means]))
            np.testing.assert_array_equal(gathered.y[: band.y.size, 0], band.y)
        (single, *_) = ReducedRows(band, centre, np.float32)
        np.testing.assert_array_equal(single.X, (held - centre).astype(np.float32))


def test_an_evenly_spaced_sample_is_not_copied():
    y = np.where(Y2, 1.0, -1.0)[:, None]
    rows = SignedTable(problem("hinge", "l2", 1e-3), list(MemoryBlocks(X2, y)), 0, np.zeros(4), Budget())
    (sample,) = rows.sample(400)
    assert np.shares_memory(sample.X, X2)
    np.testing.assert_array_equal(sample.X, X2[5::10])
    np.testing.assert_array_equal(sample.y, y[5::10])


def test_a_rare_label_has_its_share_of_a_sample():
    y = np.where(RARE, 1.0, -1.0)[:, None]
    rows = SignedTable(problem("hinge", "l2", 1e-3), list(MemoryBlocks(X2, y)), 0, np.zeros(4), Budget())
    (sample,) = rows.sample(400)
    rare = sample.y[:, 0] > 0
    assert min(RARE.sum(), 80) <= rare.sum() <= RARE.sum()
    assert sample.weight is not None
    np.testing.assert_allclose(sample.weight[rare].sum(), RARE.sum(), rtol=0.2)
    np.testing.assert_allclose(sample.weight.sum(), ROWS, rtol=0.1)


def test_limits_and_callbacks_are_heard():
    X, y = table(rows=20 * ROWS)
    with pytest.warns(StoppedEarly, match="max_iter=1"):
        stopped = LinearSVC(loss="hinge", max_iter=1).fit(X, y)
    assert stopped.certificate_.verify(X, y).gap >= 0.0
    with pytest.warns(StoppedEarly, match="a callback"):
        stopped = LinearSVC(loss="hinge", callbacks=[lambda record: True]).fit(X, y)
    assert len(stopped.history_) == 1
    assert np.isfinite(stopped.certificate_.objective)
    for limit in (1e-6, 1e-3, 5e-3, 1e-2):
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoppedEarly)
            stopped = LinearSVC(loss="hinge", time_limit=limit).fit(X, y)
        assert time.perf_counter() - begun < 5.0
        assert math.isfinite(stopped.certificate_.objective)
        stopped.certificate_.verify(X, y)


def test_fits_are_the_same_for_any_number_of_threads():
    X, y = table(rows=20 * ROWS)
    one, two = (LinearSVC(loss="hinge", n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.dual_, two.dual_)
