"""Ways of solving that tests ask for by name."""

import pytest

from sixfold.solvers import active_rows, dual_scores


@pytest.fixture
def in_rounds(monkeypatch):
    """Active rows in float32, few at first."""
    monkeypatch.setattr(active_rows, "DOUBLE_ROWS", 10)
    monkeypatch.setattr(active_rows, "DIRECT_ROWS", 10)
    monkeypatch.setattr(active_rows, "SAMPLE_ROWS", 40)
    monkeypatch.setattr(dual_scores, "TYPICAL_ROWS", 4)
