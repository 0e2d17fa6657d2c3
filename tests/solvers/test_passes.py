"""Passes over the rows give what the problem defines."""

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold.budget import Budget
from sixfold.data.blocks import MemoryBlocks
from sixfold.risk.losses import LOSSES
from sixfold.solvers.passes import objective
from solvers.problems import problem


@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "zero_one"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_native_objective_is_that_of_the_problem(loss, dtype, weighted):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((5000, 7)).astype(dtype)
    labels = LOSSES[loss].labels
    scores = 3 if labels == "class" else 2
    y = rng.standard_normal((5000, 2))
    y = {"real": y, "sign": np.where(y > 0, 1.0, -1.0)}.get(labels, rng.integers(0, 3, (5000, 1)) * 1.0)
    weight = rng.random(5000) if weighted else None
    w, b = 100.0 * rng.standard_normal((7, scores)), rng.standard_normal(scores)
    task = problem(loss, "elasticnet", 0.3)
    value = task.loss.value(X.astype(float) @ w + b, y[:, 0] if labels == "class" else y)
    value = value if labels == "class" else value.sum(axis=1)
    expected = 0.3 * task.penalty.value(w) + np.average(value, weights=weight)
    for kind in (np.asarray, np.asfortranarray, sp.csr_array):
        blocks = MemoryBlocks(kind(X), y, weight, rows_per_block=3000)
        assert objective(task, w, b, blocks, Budget()) == pytest.approx(expected, rel=1e-12)
