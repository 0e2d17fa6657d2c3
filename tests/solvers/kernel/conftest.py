"""Ways of solving that tests ask for by name."""

import pytest

from sixfold.solvers.kernel import decomposition, dual


@pytest.fixture
def in_rounds(monkeypatch):
    """Active rows in float32, few at first."""
    monkeypatch.setattr(decomposition, "DOUBLE_ROWS", 10)
    monkeypatch.setattr(decomposition, "DIRECT_ROWS", 10)
    monkeypatch.setattr(decomposition, "FIRST_ACTIVE_ROWS", 40)
    monkeypatch.setattr(dual, "TYPICAL_ROWS", 4)
