import json

import numpy as np
import pytest

from benchmarks.landscape import __main__ as driver
from benchmarks.landscape import beside, measure, page
from benchmarks.landscape.settings import SETTINGS, likelihood, margins, regression
from benchmarks.landscape.tables import SHAPES, Shape, Table, make


class Fitted:
    def __init__(self, coef, intercept):
        self.coef_, self.intercept_ = np.array(coef), np.array(intercept)


ROWS = np.array([[1.0, 2.0], [-1.0, 0.5], [0.0, -3.0]])


def test_objectives_are_those_of_the_formulas():
    numbers = Table(ROWS, np.array([1.0, 0.0, -1.0]), ROWS)
    w, b = np.array([0.5, -0.25]), 0.1
    residual = ROWS @ w + b - numbers.y
    expected = np.mean(residual**2) / 2 + 0.3 * 0.75 + 0.2 * (0.25 + 0.0625) / 2
    assert regression(numbers, Fitted(w, b), l1=0.3, l2=0.2) == pytest.approx(expected, rel=1e-14)
    labels = Table(ROWS, np.array([1, 0, 1]), ROWS)
    margin = np.array([1.0, -1.0, 1.0]) * (ROWS @ w + b)
    penalty = (0.25 + 0.0625) / 2 / 3
    model = Fitted([w], [b])
    assert likelihood(labels, model) == pytest.approx(np.log1p(np.exp(-margin)).mean() + penalty, rel=1e-14)
    expected = np.log1p(np.exp(-margin)).mean() + 0.75 / 3
    assert likelihood(labels, model, power=1) == pytest.approx(expected, rel=1e-14)
    hinge = np.maximum(1 - margin, 0)
    for power in (1, 2):
        expected = np.mean(hinge**power) + penalty
        assert margins(labels, model, power) == pytest.approx(expected, rel=1e-14)
    three = Table(ROWS, np.array([2, 0, 1]), ROWS)
    W = np.array([[0.5, 0.0], [0.0, 1.0], [-1.0, 0.2]])
    scores = ROWS @ W.T + 0.5
    at = scores[np.arange(3), three.y]
    loss = np.log(np.exp(scores).sum(axis=1)) - at
    expected = loss.mean() + np.square(W).sum() / 6
    assert likelihood(three, Fitted(W, [0.5] * 3)) == pytest.approx(expected, rel=1e-14)


def test_the_model_of_zeros_has_the_loss_of_zero_scores():
    two, three = (Table(ROWS, np.array(y), ROWS) for y in ([1, 0, 1], [2, 0, 1]))
    assert likelihood(two, None) == pytest.approx(np.log(2))
    assert likelihood(three, None) == pytest.approx(np.log(3))
    assert margins(two, None, 1) == 1.0
    assert margins(three, None, 2) == 3.0


def test_tables_are_the_same_every_time_and_have_every_class():
    for shape in (Shape(100, 4), Shape(200, 300, sparse=True)):
        first, again = make(shape, 4), make.__wrapped__(shape, 4)
        np.testing.assert_array_equal(first.y, again.y)
        assert first.X.shape == (shape.rows, shape.columns)
        assert set(first.y) == {0, 1, 2, 3}


def test_every_setting_has_a_table_and_peers_that_can():
    for setting in SETTINGS:
        suited = [shape for shape in SHAPES if setting.suits(shape)]
        assert suited
        assert all(setting.peers_for(shape) for shape in suited)
    wide = Shape(1_000, 10_000)
    logistic = next(one for one in SETTINGS if one.name == "logistic")
    assert "newton-cholesky" not in [logistic.peer_name(k) for k in logistic.peers_for(wide)]


def test_peers_are_told_apart():
    for setting in SETTINGS:
        names = [setting.peer_name(number) for number in range(len(setting.peers))]
        assert len(set(names)) == len(names)


SOME = (
    "least squares",
    "logistic",
    "linear SVM, hinge, 4 classes",
    "SVM, RBF, 4 classes",
    "neighbours, with queries",
)


@pytest.mark.parametrize("setting", [one for one in SETTINGS if one.name in SOME], ids=lambda one: one.name)
def test_a_case_is_measured_and_judged(setting, monkeypatch):
    monkeypatch.setattr(measure, "ROUNDS", 1)
    monkeypatch.setattr(measure, "SHORTEST", 0.0)
    record = measure.measure(setting, Shape(100, 4), 1)
    assert record["ratio"] == record["peer seconds"] / record["seconds"] > 0
    assert record["error"] <= measure.ACCURACY
    json.dumps(record)


def test_a_peer_that_is_not_as_close_is_marked(monkeypatch):
    monkeypatch.setattr(measure, "ROUNDS", 1)
    monkeypatch.setattr(measure, "TOLERANCES", (1.0,))
    monkeypatch.setattr(measure, "ACCURACY", 1e-9)
    setting = next(one for one in SETTINGS if one.name == "lasso")
    record = measure.measure(setting, Shape(100, 4), 1)
    assert not record["fair"]
    assert "†" in page.line(record)


def record(setting, rows, ratio, seconds=1.0):
    return {
        "setting": setting,
        "rows": rows,
        "columns": 10,
        "sparse": False,
        "threads": 1,
        "seconds": seconds,
        "peer": "scikit-learn",
        "peer seconds": ratio * seconds,
        "ratio": ratio,
        "error": 0.0,
        "peer error": 0.0,
        "fair": True,
    }


def test_the_page_begins_with_the_worst_and_says_how_cost_grows():
    records = [record("one", 10**k, 4.0 / k, 2.0 * 10**k) for k in (3, 4, 5)] + [record("two", 1000, 0.5)]
    text = page.text(records)
    assert "4 cases, 3 below 1" not in text
    assert f"4 cases, 2 below 1, geometric mean {page.mean(records):.1f}" in text
    cases = text[text.index("From the worst on") :]
    assert cases.index("0.5x") < cases.index("0.8x") < cases.index("1.3x")
    assert "| one | 100,000 | 2e+09             | 1.6e+09 | 1.00              | 0.89 |" in text
    assert "| 1,000 x 10   | 2     | 0.8x | 0.5x  |" in text  # the root of 4/3 x 0.5
    assert "2 below 1" in page.summary(records)
    assert "By the clock" not in text


def test_threads_have_a_part_of_their_own():
    two = {**record("one", 1000, 3.0), "threads": 2}
    text = page.text([record("one", 1000, 2.0), two])
    one, clock = text.split("## By the clock")
    assert "1 cases, 0 below 1, geometric mean 2.0" in one
    assert "everyone has 2 threads" in clock
    assert "3x" in clock
    assert "2x" not in clock


def test_what_was_measured_is_kept_and_other_cases_stay(tmp_path, capsys):
    output = tmp_path / "kept.json"
    old = record("gone by", 7, 3.0)
    output.write_text(json.dumps([old]))
    asked = ["--only", "lasso", "--shapes", "100 x 4", "--output", str(output)]
    assert driver.main(asked) == 0
    kept = json.loads(output.read_text())
    assert kept[0] == old
    assert [one["setting"] for one in kept[1:]] == ["lasso"]
    assert "lasso, 100 x 4" in capsys.readouterr().out


# -- an old build beside a new one ---------------------------------------------------------------------------


def test_a_process_answers_cases_with_seconds():
    number = next(k for k, one in enumerate(SETTINGS) if one.name == "neighbours, with queries")
    asked = [json.dumps([0, number])] * 2
    assert all(0 < seconds < 10 for seconds in beside.serve(asked))


class Known:
    def __init__(self, *seconds):
        self.left = list(seconds)

    def seconds(self, shape, setting):
        return self.left.pop(0)


def test_what_seems_slower_is_measured_again():
    noisy = [Known(*[1.0] * 8), Known(*[1.5] * 4, *[1.0] * 4)]
    assert beside._compared(noisy, 0, 0) == 1.0
    slower = [Known(*[1.0] * 8), Known(*[1.5] * 8)]
    assert beside._compared(slower, 0, 0) == pytest.approx(2 / 3)
    faster = [Known(*[3.0, 2.0, 3.0, 3.0]), Known(*[1.0] * 4)]
    assert beside._compared(faster, 0, 0) == 2.0
