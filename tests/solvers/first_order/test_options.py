"""Options of first-order solvers are refused by name where they are wrong."""

import numpy as np
import pytest

from sixfold.data.blocks import MemoryBlocks
from sixfold.errors import InputError
from sixfold.solvers.base import choose
from sixfold.solvers.first_order.options import FirstOrderOptions
from solvers.first_order.first_order_problems import SOLVERS
from solvers.problems import problem


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": "invscale"}, "did you mean 'invscaling'"),
        ({"eta0": 0.0}, "eta0=0.0 is out of range"),
        ({"eta0": float("nan")}, "eta0=nan is out of range"),
        ({"decay": -1.0}, "decay=-1.0 is out of range"),
        ({"power_t": -0.1}, "power_t=-0.1 is out of range"),
        ({"batch_size": 0}, "batch_size=0 is out of range"),
        ({"batch_size": 2.5}, "a whole number"),
        ({"average": -3}, "average=-3 is out of range"),
    ],
)
def test_wrong_options_are_refused_by_name(options, message):
    with pytest.raises(InputError, match=message):
        FirstOrderOptions(**options)


def test_a_loss_without_gradient_is_refused_by_name():
    blocks = MemoryBlocks(np.ones((2, 1)), np.ones((2, 1)))
    with pytest.raises(InputError, match="needs the gradient of the loss"):
        choose("sgd", problem("zero_one"), blocks, [solver() for solver in SOLVERS])
