"""What the first-order solvers share: their options, and that they serve every loss with a gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sixfold.data.blocks import Blocks
from sixfold.errors import check_flag, check_number, check_option
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.first_order.sgd_updates import SCHEDULES
from sixfold.solvers.first_order.stopping import FirstOrderProgress


@dataclass(frozen=True)
class FirstOrderOptions:
    """How the first-order solvers step.

    Attributes
    ----------
    learning_rate : {"auto", "constant", "decay", "invscaling"}
        "constant" is eta0, "decay" is eta0 / (1 + decay t), "invscaling" is eta0 / (t + 1)^power_t after t
        updates. "auto" is "decay" for stochastic updates; for full gradients it is "constant" where the loss
        is smooth, and a step that is halved when it brings nothing better where it is not.
    eta0 : float or None
        The first step; None finds one from the data.
    decay : float or None
        None lets the step fall to a quarter in the first pass, or faster where the penalty is curved enough.
    power_t : float
    average : bool or int
        True averages all iterates; a number those after so many updates.
    shuffle : bool
        Visit the rows of every block in a new random order in every pass.
    batch_size : int
        Rows an update of "minibatch".
    standardize : bool
        Step in each column according to its spread (see :mod:`sixfold.solvers.first_order.sgd_updates`); the
        problem and its solution stay the same. Stochastic updates over sparse rows never do, since it would
        touch every column.
    accelerate : bool
        Nesterov's momentum for full gradients.
    random_state : int, Generator, RandomState or None
    """

    learning_rate: str = "auto"
    eta0: float | None = None
    decay: float | None = None
    power_t: float = 0.5
    average: bool | int = False
    shuffle: bool = True
    batch_size: int = 32
    standardize: bool = True
    accelerate: bool = True
    random_state: Any = 0

    def __post_init__(self) -> None:
        check_option("learning_rate", self.learning_rate, ("auto", *SCHEDULES))
        check_number("eta0", self.eta0, above=0.0, optional=True)
        check_number("decay", self.decay, at_least=0.0, optional=True)
        check_number("power_t", self.power_t, at_least=0.0)
        check_flag("shuffle", self.shuffle)
        check_number("batch_size", self.batch_size, at_least=1, whole=True)
        if not isinstance(self.average, bool):
            check_number("average", self.average, at_least=0, whole=True)

    @property
    def average_from(self) -> int | None:
        """Updates after which iterates are averaged, or None."""
        if self.average is False:
            return None
        return 0 if self.average is True else int(self.average)

    def generator(self) -> Any:
        """Return the random numbers of ``random_state``."""
        if hasattr(self.random_state, "permutation"):
            return self.random_state
        return np.random.default_rng(self.random_state)


class FirstOrderSolver:
    """What gradient descent and its stochastic relatives answer alike."""

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ("gradient",)
    notices_nonfinite: ClassVar[bool] = False

    def __init__(self, options: FirstOrderOptions | None = None) -> None:
        self.options = options or FirstOrderOptions()

    def objection(self, problem: Problem) -> str | None:
        """Return None: every loss with a gradient and every penalty will do."""
        return None

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return True: they are listed last, for what no other solver minimises."""
        return True

    def _solution(self, progress: FirstOrderProgress, **details: Any) -> Solution:
        certificate = progress.certificate(**details)
        return Solution(progress.w, progress.b, certificate, self.name, progress.passes)
