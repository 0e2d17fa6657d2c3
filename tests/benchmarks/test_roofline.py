"""The roofline: bytes and operations worked out by hand, the roof between them, and the page."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.families import FAMILIES
from benchmarks.roofline.__main__ import Share, page
from benchmarks.roofline.machine import Machine, measure
from benchmarks.roofline.needs import NEEDS
from sixfold._native import core

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "bytes_read", "operations"),
    [
        ("ols", 480, 20 * 9),
        ("logistic", 960, 2 * 4 * 60),
        ("hinge", 960, 2 * 4 * 60),
        ("softmax", 960, 2 * 4 * 60 * 4),
        ("perceptron", 4800, 10 * 2 * 60),
        ("sgd", 4800, 10 * 4 * 60),
        ("tree_depth_10", 480 + 600, 600),
        ("uniform", 480 + 120, 2 * 60 * 5),
    ],
)
def test_needs_are_those_worked_out_by_hand(name, bytes_read, operations):
    data = SimpleNamespace(X=np.zeros((20, 3)), y=np.arange(20) % 4, Q=np.zeros((5, 3)))
    assert NEEDS[name](data)[:2] == (bytes_read, operations)


def test_the_roof_is_the_longer_of_reads_and_operations():
    machine = Machine(bandwidth=10.0, operations=100.0)
    assert machine.least_seconds(50.0, 100.0) == 5.0
    assert machine.least_seconds(5.0, 100.0) == 1.0
    assert machine.least_seconds(1.0, 100.0, single=True) == 0.5


@pytest.mark.parametrize("count", [0, 1, 63, 64, 1000])
def test_the_loop_that_reads_adds_up_every_number(count):
    numbers = np.arange(count, dtype=float)
    assert core.sum_numbers(numbers) == numbers.sum()


def test_the_loop_that_calculates_counts_its_operations():
    one = core.multiply_and_add(1)
    assert one > 0.0
    assert one % 4.0 == 0.0
    assert core.multiply_and_add(1000) == 1000 * one


def test_figures_of_a_machine_are_positive():
    assert min(measure(1 << 12, 1 << 8)) > 0.0


def test_every_case_is_one_of_the_benchmark():
    assert NEEDS.keys() <= {case.name for family in FAMILIES for case in family.cases}


def test_the_page_begins_with_the_smallest_share():
    shares = [Share("near", 1e9, 1e9, "reads", 0.5, 1.0), Share("far", 1e9, 1e9, "operations", 0.1, 1.0)]
    machine = {"bandwidth": 2e10, "operations": 1e11}
    lines = page(shares, machine, "P").splitlines()
    rows = [line for line in lines if line.startswith(("| near", "| far"))]
    assert rows == [
        "| far | 1 | 1 | operations | 100 ms | 1000 ms | 10% |",
        "| near | 1 | 1 | reads | 500 ms | 1000 ms | 50% |",
    ]


def test_an_unknown_case_is_named():
    command = [sys.executable, "-m", "benchmarks.roofline", "nothing"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ)
    assert ran.returncode == 2
    assert "no needs are known of nothing; there are ols" in ran.stderr


def test_a_quick_run_prints_the_page_and_leaves_that_of_the_docs_alone():
    kept = (ROOT / "docs" / "roofline.md").read_bytes()
    command = [sys.executable, "-m", "benchmarks.roofline", "--quick"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=os.environ)
    assert ran.stdout.count(" ms | ") == 2 * len(NEEDS)
    assert (ROOT / "docs" / "roofline.md").read_bytes() == kept
