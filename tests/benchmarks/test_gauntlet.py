"""The gauntlet: what hangs or crashes ends nothing else, runs can be continued, the report counts right."""

import json
import os
import time

import numpy as np
import pytest
from sklearn import datasets

from benchmarks.gauntlet import families, fits, report, tables
from benchmarks.gauntlet.__main__ import main
from benchmarks.gauntlet.settings import CLASSES, NUMBERS, Setting, peers, settings


class Hangs:
    def fit(self, X, y):
        time.sleep(600)


class Loops:
    def fit(self, X, y):
        while True:
            pass


class Crashes:
    def fit(self, X, y):
        os._exit(11)


class Odd(Setting):
    """A setting whose learner misbehaves."""

    def model(self):
        return {"hangs": Hangs, "loops": Loops, "crashes": Crashes}[self.learner]()


def job(learner, kind=Odd, table="iris"):
    setting = kind(learner, CLASSES, "logistic", None, "C", None, {})
    return fits.Job(table, "raw", 100, setting)


def test_a_fit_that_hangs_or_crashes_is_written_down_and_the_next_one_runs(monkeypatch):
    monkeypatch.setattr(fits, "PATIENCE", 2.0)
    worker = fits.Worker(limit=2.0, with_peers=False)
    hung, busy, crashed, fine = map(
        worker.run, (job("hangs"), job("loops"), job("crashes"), job("LogisticRegression", Setting))
    )
    worker.close()
    for stopped in (hung, busy):
        assert stopped["error"] == "fit was stopped"
        assert (stopped["certified"], stopped["seconds"]) == (False, 2.0)
    assert crashed["error"] == "fit ended its process"
    assert fine["certified"]
    assert fine["verified"]
    assert [report.failed(record) for record in (hung, busy, crashed, fine)] == [True, True, True, False]


def test_keys_are_unique_and_every_table_is_visited():
    jobs = list(fits.all_jobs(3_000))
    assert len({job.key for job in jobs}) == len(jobs)
    visited = {job.table for job in jobs}
    assert visited == tables.TASKS.keys() | families.FAMILIES.keys()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("setting", list({each.group: each for each in reversed(list(settings()))}.values()))
def test_scikit_learn_takes_what_is_meant_to_be_its_own(setting):
    X, y = datasets.load_diabetes(return_X_y=True)
    for peer in peers(setting, 100, 2):
        peer.fit(X[:100], y[:100] if setting.task == NUMBERS else y[:100] > 150)


@pytest.mark.parametrize("name", families.FAMILIES)
def test_a_family_is_the_same_every_time_and_has_all_its_classes(name):
    family = families.FAMILIES[name]
    for task in family.tasks:
        one, other = families.make(name, task), families.make(name, task)
        np.testing.assert_array_equal(one.y, other.y)
        if task == CLASSES:
            assert np.unique(one.y).size == len(family.shares)


def test_a_sample_has_every_class_and_their_shares():
    y = np.repeat([0, 1, 2], [900, 99, 1])
    kept = y[tables.sample(y, 100, classes=True)]
    assert np.bincount(kept).tolist() == [91, 9, 1]
    np.testing.assert_array_equal(tables.sample(y, 1_000, classes=True), np.arange(1_000))


def test_a_run_is_cut_short_continued_and_repeated(tmp_path, capsys):
    file, again = tmp_path / "records.jsonl", tmp_path / "again.jsonl"
    asked = ["--sets", "iris", "--learners", "LogisticRegression", "--rows=50", "--jobs=1", "--no-peers"]
    assert main([*asked, "--fits", "2", "--output", str(file)]) == 0
    main([*asked, "--fits", "3", "--resume", str(file)])
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert len({record["key"] for record in records}) == 3
    assert "| all " in capsys.readouterr().out
    records[1]["certified"] = False
    file.write_text("\n".join(map(json.dumps, records)))
    main([*asked, "--again", str(file), "--output", str(again)])
    assert [json.loads(line)["key"] for line in again.read_text().splitlines()] == [records[1]["key"]]


def test_the_report_counts_what_failed_and_what_was_slow():
    fine = {"key": "a", "group": "g", "certified": True, "verified": True}
    fine |= {"seconds": 1.0, "peer_seconds": 0.5}
    slow = fine | {"key": "b", "seconds": 31.0, "peer_seconds": 10.0}
    allowed = fine | {"key": "c", "seconds": 29.0, "peer_seconds": 10.0}
    accused = fine | {"key": "d", "verified": False, "verify_error": "CertificateError: no"}
    text = report.text([fine, slow, allowed, accused])
    assert "not certified or not verified: 1 of 4" in text
    assert "scikit-learn's): 1\n" in text
    assert "CertificateError: no" in text
    assert [record["key"] for record in (fine, slow, allowed, accused) if report.too_slow(record)] == ["b"]
