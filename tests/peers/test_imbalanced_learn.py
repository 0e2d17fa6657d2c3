"""imbalanced-learn's own tests pass, or fail, with the patch on as they do without it."""

from __future__ import annotations

import pytest

from peers.patched_suite import run

pytest.importorskip("imblearn")

# Its common checks and ensembles take many minutes: `python -m tests.peers.test_imbalanced_learn`.
QUICK = ("over_sampling", "under_sampling", "combine", "tests/test_pipeline.py")
SLOW = ("ensemble", "tests", "metrics", "model_selection", "utils")


@pytest.mark.parametrize("folder", QUICK)
def test_the_same_tests_pass_with_the_patch_on(folder):
    before, after = run(folder, "imblearn", patched=False), run(folder, "imblearn")
    assert before.passed
    assert (after.passed, set(after.failed)) == (before.passed, set(before.failed))


if __name__ == "__main__":
    for name in QUICK + SLOW:
        without, patched = run(name, "imblearn", patched=False), run(name, "imblearn")
        lost = sorted(set(without.passed) - set(patched.passed))
        print(
            f"{name}: {len(without.passed)} pass without, {len(patched.passed)} with the patch; lost: {lost}"
        )
