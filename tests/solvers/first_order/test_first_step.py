"""The first step is found from any guess."""

import numpy as np

from sixfold.budget import Budget
from sixfold.solvers.first_order.first_step import best_step


def test_the_best_step_is_found_from_any_guess():
    for guess in (1e-9, 1.0, 1e9):
        step = best_step(lambda eta: abs(np.log(eta)) if eta < 1e6 else np.inf, guess, Budget())
        assert 0.25 < step < 4.0
