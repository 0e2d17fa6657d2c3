"""The harness on toy contenders: a fake clock makes every figure known beforehand."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import report
from benchmarks.memory import MAPPINGS, _library_code, extra_memory
from benchmarks.runner import ROUNDS, Case, Contender, MissingDataError, Row, run_case


class FakeClock:
    """Time that passes only when a toy says so."""

    def __init__(self):
        self.now = 0.0
        self.calls = []

    def __call__(self):
        return self.now

    def toy(self, name, seconds, answer=0.0, **options):
        """Return a contender that takes these seconds (a number, or one for each run)."""
        lasting = iter(seconds) if isinstance(seconds, list) else None

        def run(job, data):
            self.calls.append(name)
            self.now += seconds if lasting is None else next(lasting)
            return answer

        return Contender(name, lambda data: None, run, lambda result: result, **options)


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr("benchmarks.runner.PAUSE", 0.0)
    # A collection goes through all that other tests have left: half a second for each of some hundred runs.
    monkeypatch.setattr("benchmarks.runner.gc.collect", lambda: None)
    return FakeClock()


def toy_case(*contenders, **options):
    return Case(
        name="toy",
        title="a toy",
        data=lambda quick: SimpleNamespace(X=np.zeros(10)),
        contenders=contenders,
        error=lambda data, answer: abs(answer),
        accuracy=1e-6,
        with_memory=False,
        **options,
    )


def missing(data):
    raise ImportError("no such package")


def test_contenders_alternate_after_the_warm_up(clock):
    rows = run_case(toy_case(clock.toy("a", 0.8), clock.toy("b", 1.2), clock.toy("c", 2.0)), clock=clock)
    # Two warm-up runs each; then 5 s hold six rounds of a (at 0.8 s) and four of b (at 1.2 s); c
    # (at 2 s) takes part in the fewest, three.
    assert "".join(clock.calls) == "aabbcc" + "abc" * 3 + "ab" + "aa"
    assert [row.rounds for row in rows] == [6, 4, 3]


def test_ratio_is_the_median_of_paired_ratios_without_the_warm_up(clock):
    # Two warm-up runs; then 5 / 1, 4 / 2, 12 / 4 (the ratio of the medians would be 5 / 2).
    ours = clock.toy("sixfold", [9.0, 3.0, 1.0, 2.0, 4.0])
    peer = clock.toy("peer", [9.0, 3.0, 5.0, 4.0, 12.0])
    rows = run_case(toy_case(ours, peer), clock=clock, quick=True)
    assert rows[1].ratio == 3.0


def test_quartiles_of_the_paired_ratios(clock):
    ours = clock.toy("sixfold", 1.0)
    peer = clock.toy("peer", [1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    row = run_case(toy_case(ours, peer), clock=clock)[1]
    assert row.ratio == pytest.approx(3.0)
    assert row.quartiles == pytest.approx((2.0, 4.0))


def test_short_runs_are_repeated_within_a_turn(clock):
    rows = run_case(toy_case(clock.toy("a", 0.004), clock.toy("b", 0.5)), clock=clock)
    # 20 ms hold five runs of a; two warm-up runs.
    assert clock.calls.count("a") == 2 + 5 * ROUNDS
    assert rows[1].ratio == pytest.approx(125.0)


def test_a_slow_contender_runs_once(clock):
    rows = run_case(toy_case(clock.toy("a", 1.0), clock.toy("slow", 40.0)), clock=clock)
    assert clock.calls.count("slow") == 1
    assert rows[1].rounds == 1
    assert rows[1].quartiles is None
    assert rows[1].ratio == 40.0
    assert "| one round |" in report.markdown(rows, {})


def test_a_case_brings_its_own_clock(clock):
    assert run_case(toy_case(clock.toy("a", 1.0), clock.toy("b", 3.0), clock=clock))[1].ratio == 3.0


def test_the_ratio_of_a_contender_that_was_stopped_is_at_least_that(clock):
    toys = [clock.toy("sixfold", 1.0), clock.toy("stopped", 40.0, stopped=lambda result: True)]
    rows = run_case(toy_case(*toys, bars={"stopped": 20.0}), clock=clock)
    assert [row.at_least for row in rows] == [False, True]
    assert rows[1].met
    assert "| >= 40x " in report.markdown(rows, {})


def test_no_bar_is_met_where_ours_was_stopped(clock):
    toys = [clock.toy("sixfold", 1.0, stopped=lambda result: True), clock.toy("b", 9.0)]
    assert run_case(toy_case(*toys, bars={"b": 2.0}), clock=clock)[1].met is False


def test_a_less_accurate_peer_is_marked_in_the_table(clock):
    rows = run_case(
        toy_case(
            clock.toy("sixfold", 1.0, 1e-9),
            clock.toy("sloppy", 5.0, 1e-3),
            clock.toy("exact", 5.0),
        ),
        clock=clock,
    )
    assert [row.accurate for row in rows] == [True, False, True]
    table = report.markdown(rows, {})
    sloppy, exact = (
        next(line for line in table.splitlines() if name in line) for name in ("sloppy", "exact")
    )
    assert "5x †" in sloppy
    assert "1e-03 †" in sloppy
    assert "†" not in exact
    assert "compares unequal work" in table


def test_an_answer_that_is_not_a_number_is_not_accurate(clock):
    rows = run_case(toy_case(clock.toy("sixfold", 1.0), clock.toy("broken", 1.0, np.nan)), clock=clock)
    assert not rows[1].accurate


@pytest.mark.parametrize(("answer", "expected"), [(0.0, [True, False]), (1.0, [False, False])])
def test_bars_are_met_by_fast_and_accurate_answers_only(clock, answer, expected):
    ours = clock.toy("sixfold", 1.0, answer)
    case = toy_case(ours, clock.toy("b", 3.0), clock.toy("c", 3.0), bars={"b": 3.0, "c": 3.1})
    rows = run_case(case, clock=clock)
    assert [row.met for row in rows] == [None, *expected]


@pytest.mark.parametrize(
    ("slack", "met"), [(None, [True, True]), (1e-7, [True, False]), (1e-6, [True, True])]
)
def test_where_answers_are_compared_ours_has_to_be_as_good_as_the_peers(clock, slack, met):
    ours, worse, better = (clock.toy(*toy) for toy in (("sixfold", 1.0, 6e-7), ("b", 3.0, 8e-7), ("c", 3.0)))
    case = toy_case(ours, worse, better, bars={"b": 3.0, "c": 3.0}, slack=slack)
    assert [row.met for row in run_case(case, clock=clock)] == [None, *met]


def test_errors_without_an_exact_answer_count_from_the_best(clock):
    toys = [clock.toy("sixfold", 1.0, 7.5), clock.toy("b", 3.0, 7.0), clock.toy("c", 3.0, 8.0)]
    rows = run_case(toy_case(*toys, slack=1.0), clock=clock)
    assert [row.error for row in rows] == [0.5, 0.0, 1.0]


def test_a_missing_peer_is_listed_and_its_bar_is_not_counted_as_met(clock):
    absent = Contender("absent", missing, None, None)
    case = toy_case(clock.toy("sixfold", 1.0), absent, clock.toy("b", 9.0), bars={"absent": 2.0, "b": 2.0})
    rows = run_case(case, clock=clock)
    remark = "not installed (no such package)"
    assert rows[1] == Row("a toy", "absent", installed=False, bar=2.0, remark=remark)
    text = report.markdown(rows, {})
    assert "| not installed" in text
    assert "bars met: 1 of 2" in text
    assert "- not measured (not installed): a toy, absent" in text


def test_a_case_without_its_data_is_left_out_and_its_bars_are_not_met(clock):
    def no_data(quick):
        raise MissingDataError("the disk is empty")

    case = toy_case(clock.toy("sixfold", 1.0), clock.toy("b", 9.0), bars={"b": 2.0}, memory_bar=0.5)
    rows = run_case(Case(**{**vars(case), "data": no_data}), clock=clock)
    remark = "no data (the disk is empty)"
    assert rows[0] == Row("a toy", "sixfold", installed=False, bar=0.5, remark=remark)
    assert rows[1] == Row("a toy", "b", installed=False, bar=2.0, remark=remark)
    assert not clock.calls
    text = report.markdown(rows, {})
    assert "bars met: 0 of 2" in text
    assert "- not measured (no data): a toy, b" in text


def test_without_sixfold_the_import_error_is_passed_on(clock):
    with pytest.raises(ImportError, match="no such package"):
        run_case(toy_case(Contender("sixfold", missing, None, None), clock.toy("b", 1.0)), clock=clock)


def test_a_bar_for_somebody_who_is_no_peer_is_an_error(clock):
    with pytest.raises(ValueError, match=r"bars for \['scikitlearn'\]"):
        toy_case(clock.toy("sixfold", 1.0), clock.toy("scikit-learn", 1.0), bars={"scikitlearn": 2.0})


def table_of_8_megabytes(quick):
    temporary = np.ones(1 if quick else 5_000_000)  # 40 MB that must not count
    return SimpleNamespace(X=np.ones(1_000 if quick else 1_000_000) * temporary[0])


def copy_times(copies, data):
    return np.ones((copies, len(data.X)))


@pytest.mark.parametrize("copies", [1, 4])
def test_extra_memory_counts_the_run_and_not_the_data(copies):
    found = extra_memory(table_of_8_megabytes, copy_times, copies, quick=False)
    assert found / 8e6 == pytest.approx(copies, abs=0.1)


@pytest.mark.skipif(not MAPPINGS.exists(), reason="the system does not list what is mapped")
def test_code_of_libraries_is_told_from_arrays_and_mapped_data(tmp_path):
    before = _library_code()
    assert before > 1 << 20  # Python and NumPy
    np.full(1 << 20, 1.0).tofile(tmp_path / "table")
    held = np.full(1 << 20, 1.0), np.memmap(tmp_path / "table")
    assert held[1].sum() > 0
    assert abs(_library_code() - before) < 1 << 22


def test_memory_bar_is_judged_as_a_fraction_of_the_table(clock, monkeypatch):
    monkeypatch.setattr("benchmarks.runner.extra_memory", lambda make, run, job, quick: 8)
    case = toy_case(clock.toy("sixfold", 1.0), clock.toy("peer", 1.0), memory_bar=0.1)
    rows = run_case(Case(**{**vars(case), "with_memory": True}), clock=clock)
    assert rows[0].memory == pytest.approx(0.1)
    assert rows[0].met is False
    assert "10.0% of X" in report.markdown(rows, {})
    assert "- missed: a toy, sixfold" in report.verdict(rows)


def test_table_is_written_as_markdown_and_json_without_seconds(clock, tmp_path):
    case = toy_case(clock.toy("sixfold", 0.7), clock.toy("peer", 7.0, remark=lambda result: "a remark"))
    rows = run_case(case, clock=clock)
    report.write(rows, {"threads": "2"}, tmp_path / "results")
    found = json.loads((tmp_path / "results/table.json").read_text())
    assert found["machine"] == {"threads": "2"}
    assert found["rows"][1]["ratio"] == pytest.approx(10.0)
    assert "seconds" not in json.dumps(found)
    text = (tmp_path / "results/table.md").read_text()
    assert "| 10x" in text
    assert "a remark" in text
    assert text.endswith("bars met: 0 of 0\n")
