"""Damaged files end in a ModelFileError, or in a model that answers: no crash, no hang, little memory."""

from __future__ import annotations

import sys

from tests.fuzz.mutate_model_files import in_another_process


def test_damaged_files_do_no_harm() -> None:
    """Here 3,000 of them; ``python -m tests.fuzz.mutate_model_files`` tries 24,000."""
    result = in_another_process(0, 3000, measured=True)
    wrong = [text for text in result["found"] if text.startswith(("FAILED", "unforeseen"))]
    assert wrong == []
    assert sum(result["found"].values()) == 3000
    assert result["found"]["refused"] >= 1400
    assert result["found"]["refused though sealed"] >= 700
    assert result["times"] < 10


def test_a_crash_is_seen() -> None:
    """A process that ends by a signal is a failure with a number, and the files after it are still tried."""
    crash = "import os; print(1, flush=True); os.kill(os.getpid(), 11)"
    program = [sys.executable, "-c", f"{crash}"]
    result = in_another_process(1, 2, False, program)
    assert any("FAILED 1: the process ended with -11" in text for text in result["found"])
