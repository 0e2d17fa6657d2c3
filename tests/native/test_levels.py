"""Which of the levels that were built is loaded."""

import os
import subprocess
import sys

import pytest

from sixfold import _native
from sixfold._native import choose_level


@pytest.mark.parametrize(
    ("built", "best", "chosen"),
    [
        (["v2", "v3", "v4"], "v4", "v4"),
        (["v2", "v3", "v4"], "v3", "v3"),
        (["v2", "v4"], "v3", "v2"),
        (["v3"], "v4", "v3"),
        (["plain"], "plain", "plain"),
        (["plain"], "v4", "plain"),
    ],
)
def test_the_best_level_that_is_built_and_runs_here_is_loaded(built, best, chosen):
    assert choose_level(None, built, best) == chosen


def test_another_level_can_be_asked_for():
    assert choose_level("v2", ["v2", "v3", "v4"], "v4") == "v2"


@pytest.mark.parametrize(
    ("wanted", "built", "best", "message"),
    [
        ("v2", ["v3", "v4"], "v4", "SIXFOLD_ISA='v2' was asked for, but .* for v3, v4,.*choose v3 or v4"),
        ("v4", ["v3", "v4"], "v3", "SIXFOLD_ISA='v4' .*this processor runs at most v3.*choose v3, or"),
        ("avx", ["v3"], "v3", r"SIXFOLD_ISA='avx' .*SIXFOLD_LEVELS=all"),
        (None, ["v4"], "v2", r"^this build .* for v4, .* runs at most v2\. Please build"),
    ],
)
def test_a_level_that_cannot_be_loaded_is_an_error_that_says_what_can(wanted, built, best, message):
    with pytest.raises(ImportError, match=message):
        choose_level(wanted, built, best)


def test_the_environment_asks_for_a_level():
    loads = [sys.executable, "-c", "from sixfold import _native; print(_native.level)"]
    for wanted in ("avx", *(level for level in _native.built_levels() if level <= _native.cpu.level())):
        run = subprocess.run(
            loads, capture_output=True, text=True, check=False, env={**os.environ, "SIXFOLD_ISA": wanted}
        )
        assert run.stdout.strip() == wanted or "SIXFOLD_ISA='avx' was asked for" in run.stderr
