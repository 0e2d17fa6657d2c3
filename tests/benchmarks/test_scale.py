import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from benchmarks.scale import __main__ as driver
from benchmarks.scale import delayed_cluster, made_table, model, plain_reads, processes, warm_memory
from benchmarks.scale.counted import Count, native_loops
from benchmarks.scale.processes import FailedError, peak, run
from benchmarks.scale.tasks import LINEAR, objective

pq = pytest.importorskip("pyarrow.parquet")


# -- tables --------------------------------------------------------------------------------------------------


def test_a_table_is_the_beginning_of_a_longer_one(tmp_path, monkeypatch):
    monkeypatch.setattr(made_table, "GROUP_ROWS", 100)
    short, long = (pq.read_table(made_table.table(rows, tmp_path)) for rows in (250, 320))
    # The last row group of the short table is a part of one of the long table's, and as such other rows.
    assert long[:200].equals(short[:200])
    assert long.num_rows == 320
    assert long.column_names == [*made_table.COLUMNS, "amount", "label"]


def test_amounts_and_labels_come_from_one_score():
    X, label, amount = made_table.made_rows(0, 20_000)
    score = X @ made_table.weights()
    assert np.std(amount - score) == pytest.approx(1.0, abs=0.03)
    assert np.mean((score > 0) == label) == pytest.approx(0.78, abs=0.05)


def test_a_table_that_was_not_finished_is_made_again(tmp_path, monkeypatch):
    (tmp_path / "5.part").write_bytes(b"half")
    assert pq.read_metadata(made_table.table(5, tmp_path)).num_rows == 5


# -- the judge -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINEAR)
def test_the_judge_says_what_the_formula_says(name, tmp_path):
    path, task = made_table.table(40, tmp_path), LINEAR[name]
    X, label, amount = made_table.made_rows(0, 40)
    w, b = np.linspace(-1.0, 1.0, 30), 0.3
    s, y = X @ w + b, 2.0 * label - 1.0
    expected = {
        "logistic": np.log1p(np.exp(-y * s)).mean() + w @ w / 80,
        "hinge": np.maximum(1 - y * s, 0).mean() + w @ w / 80,
        "least squares": np.square(s - amount).mean() / 2,
    }
    assert objective(path, task, w, b) == pytest.approx(expected[name], rel=1e-13)


# -- processes and reads -------------------------------------------------------------------------------------


def test_memory_that_is_warmed_is_not_that_of_a_fit():
    warm_memory.touch(3 << 20)
    sleeping = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(sleeping) as fit, subprocess.Popen([*sleeping, processes.WARMING]) as warming:
        try:
            found = processes.descendants(os.getpid())
        finally:
            fit.kill()
            warming.kill()
    assert fit.pid in found
    assert warming.pid not in found


def test_the_peak_of_a_child_counts():
    child = "x = b'1' * 150_000_000; import time; time.sleep(0.5)"
    program = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}]); print('{{\"a\": 1}}')"
    )
    found = run([sys.executable, "-c", program])
    assert found["a"] == 1
    assert 150e6 < found["peak"] < 350e6


def test_a_process_that_fails_says_why():
    with pytest.raises(FailedError, match="no such thing"):
        run([sys.executable, "-c", "raise SystemExit('no such thing')"])


def test_a_process_that_is_no_more_has_no_peak():
    assert peak(2**22 + 1) == 0
    assert peak() > 1e6


def test_plain_reads_see_every_number_as_often_as_asked(tmp_path):
    path = made_table.table(7_000, tmp_path)  # more than a piece
    with tempfile.TemporaryFile() as scratch:
        size = plain_reads.decode(path, scratch)
        assert size == 7_000 * 30 * 8
        expected = made_table.made_rows(0, 7_000)[0].sum()
        assert plain_reads.read(scratch, size, size) == pytest.approx(expected)


def test_tables_that_go_through_loops_are_counted():
    X = np.zeros((100, 30))
    count = Count(30)
    assert count.watched(lambda table, w, name: name)(X, np.zeros(30), name="kept") == "kept"
    count.watched(lambda table: None)(table=X[:60])
    count.watched(lambda gram: None)(np.zeros((30, 30)))
    assert count.bytes == 160 * 30 * 8


def test_loops_are_as_they_were_after_counting():
    from sixfold import LinearRegression
    from sixfold._native import core

    before = dict(vars(core))
    X, _, amount = made_table.made_rows(0, 500)
    with native_loops(30) as count:
        LinearRegression().fit(X, amount)
    assert count.bytes >= X.nbytes
    assert dict(vars(core)) == before


# -- what is kept --------------------------------------------------------------------------------------------


def test_new_figures_take_the_place_of_old_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "KEPT", tmp_path / "scale.json")
    one, other = ({"task": "logistic", "rows": rows, "by": "sixfold", "seconds": 1.0} for rows in (20, 10))
    driver.keep("growth", [one])
    driver.keep("growth", [other])
    driver.keep("growth", [{**one, "seconds": 2.0}])
    assert json.loads(driver.KEPT.read_text()) == {"growth": [other, {**one, "seconds": 2.0}]}


def test_ratios_are_of_the_same_round():
    own = [{"seconds": 1.0, "peak": 5}, {"seconds": 2.0, "peak": 4}, {"seconds": 1.0, "peak": 4}]
    theirs = [{"seconds": 10.0, "peak": 1}, {"seconds": 22.0, "peak": 1}, {"seconds": 30.0, "peak": 1}]
    assert driver.record("hinge", 10, "a peer", theirs, own)["ratio"] == 11.0
    assert driver.record("hinge", 10, "sixfold", own, own) == {
        "task": "hinge", "rows": 10, "by": "sixfold", "rounds": 3, "seconds": 1.0, "peak": 5,
    }  # fmt: skip


# -- the model of costs, against numbers worked by hand ------------------------------------------------------

# 1,000 rows of 10 columns: 80,000 bytes, 40,000 on each of two machines.
WORK = model.Work(passes=3, read=20_000.0, down=100.0, up=50.0, kept=2.0)
MACHINE = model.Machine(decode=40_000.0, disk=5_000.0, memory=40_000.0)


def test_one_machine_decodes_once_and_reads_each_pass():
    found = model.cost(WORK, 500, 10, MACHINE)
    assert (found.decoding, found.reading, found.talking) == (1.0, 6.0, 0.0)
    assert found.seconds == 7.0
    assert found.bytes_read == 4 * 40_000
    assert found.memory == 40_000 + 2 * 8 * 500


def test_what_does_not_fit_is_read_from_the_disk():
    assert model.cost(WORK, 1_000, 10, MACHINE).reading == 3 * 80_000 / 5_000


def test_machines_share_the_rows():
    found = model.cost(WORK, 1_000, 10, MACHINE, machines=2, network=model.Network(), files=50_000.0)
    assert (found.decoding, found.reading, found.talking) == (1.0, 6.0, 0.0)
    assert found.bytes_read == 50_000 + 3 * 80_000
    assert found.bytes_sent == 3 * 2 * 150


def test_a_pass_over_a_network():
    network = model.Network(bandwidth=1_000.0, latency=0.25, scheduling=0.1, delay=0.5)
    found = model.cost(WORK, 1_000, 10, MACHINE, 2, network, partitions=9)
    # Nine tasks on two slots wait five times; nine tasks and 2 + 1 joins are handed out; nine functions of
    # 100 bytes leave; two levels wait, answer, and bring eight results of 50 bytes.
    one = 5 * 0.5 + 12 * 0.1 + 0.9 + 2 * (0.5 + 2 * 0.25 + 0.4)
    assert found.talking == pytest.approx(3 * one)
    assert one == pytest.approx(7.4)


def test_ten_billion_rows_on_a_hundred_machines():
    work = model.CLUSTER_WORK["least squares"]
    found = model.cost(work, 1e10, 30, model.HERE, 100, model.CLUSTER, partitions=1_000)
    # 24 GB a machine, 48 s of decoding and 5 s a pass. 1,000 tasks and 125 + 16 + 2 + 1 joins of a
    # millisecond, 248 bytes to each, and four levels: a millisecond there and back, and 8 x 7,944 bytes.
    assert (found.decoding, found.reading) == (48.0, 15.0)
    one = 1.144 + 1_000 * 248 / 1.25e9 + 4 * (1e-3 + 8 * 7_944 / 1.25e9)
    assert found.talking == pytest.approx(3 * one)


def test_the_model_of_delays():
    # 16 tasks on 4 workers wait four times, and two levels of joins: six delays a pass.
    assert delayed_cluster.predicted(passes=5, base=1.0, delay=0.1) == pytest.approx(1.0 + 5 * 6 * 0.1)


def test_tasks_are_late_once_however_often_it_is_installed(monkeypatch):
    from sixfold.data import dask_blocks

    for name in delayed_cluster.TASKS:
        monkeypatch.setattr(dask_blocks, name, getattr(dask_blocks, name))
    slept = []
    monkeypatch.setattr(delayed_cluster.time, "sleep", slept.append)
    delayed_cluster.install(0.5)
    delayed_cluster.install(0.25)
    assert dask_blocks._listed(1, 2) == [1, 2]
    assert slept == [0.25]


def test_results_that_are_cut_when_they_are_joined():
    work = model.Work(passes=3, read=1.0, down=0.0, up=50.0, most=80.0)
    found = model.cost(work, 0, 10, MACHINE, 2, model.Network(bandwidth=10.0), partitions=9)
    assert found.bytes_sent == 3 * 80.0
    assert found.talking == 3 * 2 * 80.0 / 10.0


def test_what_learners_send():
    newton = model.symmetric(2, 5, 1.0)
    assert (newton.down, newton.up) == (3 * 8, (1 + 3 + 9) * 8)
    search = model.neighbours(2, 10, 5, 1.0)
    assert (search.passes, search.down, search.up) == (1.0, 10 * 2 * 8, 10 * 5 * 16)
    grown = model.tree(3, 4, 16, 2, 1.0)
    assert (grown.passes, grown.up) == (4, 4 * 3 * 16 * 2 * 8)
