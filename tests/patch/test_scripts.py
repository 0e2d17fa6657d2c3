"""Scripts like those of scikit-learn's gallery print the same with the patch on, and warn of no more."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path

import pytest

import sixfold

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
LAST_DIGIT = 1.5  # units of the last digit that is printed: rounding may fall on either side


def printed(path: Path, patched: bool) -> tuple[str, set[str]]:
    """Run a script as a user would, and return what it prints and the kinds of its warnings."""
    namespace = {"__name__": "__main__"}
    with contextlib.ExitStack() as stack:
        if patched:
            stack.enter_context(sixfold.patch_sklearn())
        out = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    return out.getvalue(), {f"{one.category.__name__}: {str(one.message)[:60]}" for one in caught}


def agree(first: str, second: str) -> bool:
    """Return whether two texts are the same, numbers to the last digit that is printed."""
    if NUMBER.sub("#", " ".join(first.split())) != NUMBER.sub("#", " ".join(second.split())):
        return False
    for one, other in zip(NUMBER.findall(first), NUMBER.findall(second), strict=True):
        digits = max(len(text.partition("e")[0].partition(".")[2]) for text in (one, other))
        if abs(float(one) - float(other)) > LAST_DIGIT * 10.0**-digits * bool(digits):
            return False
    return True


def test_there_are_twenty_scripts():
    assert len(SCRIPTS) >= 20


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_prints_the_same_and_warns_of_no_more(path):
    theirs, before = printed(path, patched=False)
    ours, after = printed(path, patched=True)
    assert agree(theirs, ours), f"scikit-learn:\n{theirs}\nsixfold:\n{ours}"
    assert after <= before


def test_numbers_are_compared_to_their_last_digit():
    assert agree("score 0.9123 of 3", "score 0.9124 of 3")
    assert not agree("score 0.9123 of 3", "score 0.9126 of 3")
    assert not agree("score 0.9123 of 3", "score 0.9123 of 4")
    assert not agree("accuracy 0.9", "score 0.9")
