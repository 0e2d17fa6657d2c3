"""What the tests of bad input share: a small table, and how to expect a sentence."""

import re

import numpy as np
import pytest

from sixfold.errors import InputError
from sixfold.learners.registry import LEARNERS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(10, 3))
Y = X @ [1.0, 2.0, -1.0] + 0.1 * RNG.normal(size=10)
LABELS = np.where(Y - np.median(Y) > 0, "tall", "short")
NAMES = ["age", "height", "weight"]

every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
every_predictor = pytest.mark.parametrize(
    "learner", [one for one in LEARNERS if one.task != "search"], ids=lambda learner: learner.name
)
every_learner_of_known_numbers = pytest.mark.parametrize(
    "learner", [one for one in LEARNERS if one.hypothesis != "tree"], ids=lambda learner: learner.name
)
every_regressor = pytest.mark.parametrize(
    "learner", [one for one in LEARNERS if one.task == "regression"], ids=lambda learner: learner.name
)

every_linear_regressor = pytest.mark.parametrize(
    "learner",
    [one for one in LEARNERS if one.task == "regression" and one.hypothesis == "linear"],
    ids=lambda learner: learner.name,
)


def target(learner):
    """Return what the learner predicts: numbers or labels."""
    return Y if learner.task == "regression" else LABELS


def refuses(sentence, kind=InputError):
    """Expect this sentence, wherever it begins."""
    return pytest.raises(kind, match=re.escape(sentence))


def changed(values, place, value):
    values = values.copy()
    values[place] = value
    return values
