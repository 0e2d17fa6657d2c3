"""Learning from batches: the updates of the lecture by hand, and where a batch goes on from."""

import numpy as np
import pytest

from sixfold import ERMClassifier
from sixfold.errors import InputError

X = np.array([[1.0, 2.0], [-1.0, 1.0]])
Y = np.array([1, 0])

# Two rows, eta = 0.1, from w = 0. First row: s = 0, y = +1, x = (1, 2). Second row: y = -1, x = (-1, 1).
BY_HAND = {
    # w + eta (y - s) x: (0.1, 0.2), then s = 0.1 and w - 0.11 x
    "squared": ({"penalty": None}, [0.21, 0.09]),
    # w + eta y x / (1 + exp(y s)): (0.05, 0.1), then s = 0.05 and 1 / (1 + exp(-0.05)) = 0.512497396...
    "logistic": ({"penalty": None}, [0.05 + 0.0512497396484, 0.1 - 0.0512497396484]),
    # w + eta y x on a mistake: (0.1, 0.2), then s = 0.1 is a mistake and w - 0.1 x
    "perceptron": ({"penalty": None}, [0.2, 0.1]),
    # (1 - eta alpha) w + eta y x where y s < 1, alpha = 0.5: (0.1, 0.2), then 0.95 w - 0.1 x
    "hinge": ({"penalty": "l2", "alpha": 0.5}, [0.195, 0.09]),
}


def online(loss, **changes):
    return ERMClassifier(
        loss, **{"eta0": 0.1, "learning_rate": "constant", "shuffle": False, "fit_intercept": False} | changes
    )


@pytest.mark.parametrize("loss", BY_HAND)
def test_updates_are_those_of_the_lecture(loss):
    changes, expected = BY_HAND[loss]
    model = online(loss, **changes).partial_fit(X, Y, classes=[0, 1])
    np.testing.assert_allclose(model.coef_, [expected], rtol=1e-12)
    row_by_row = online(loss, **changes)
    for row in (slice(0, 1), slice(1, 2)):
        row_by_row.partial_fit(X[row], Y[row], classes=[0, 1])
    np.testing.assert_array_equal(row_by_row.coef_, model.coef_)


def test_softmax_moves_every_class_by_its_error():
    model = online("softmax", penalty=None).partial_fit(X[:1], [2], classes=[0, 1, 2])
    third = 0.1 / 3.0
    np.testing.assert_allclose(
        model.coef_, [[-third, -2 * third], [-third, -2 * third], [2 * third, 4 * third]]
    )
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_a_batch_goes_on_from_the_fit():
    random = np.random.default_rng(0)
    table, labels = random.normal(size=(200, 3)), random.integers(0, 2, 200)
    model = ERMClassifier(eta0=1e-9).fit(table, labels)
    before = model.coef_.copy()
    model.partial_fit(table[:5], labels[:5])
    np.testing.assert_allclose(model.coef_, before, rtol=1e-6)
    model.certificate_.verify(table[:5], labels[:5])


def test_a_step_is_found_where_none_is_given():
    random = np.random.default_rng(0)
    table = random.normal(size=(2000, 3))
    labels = np.where(table @ [1.0, -2.0, 0.5] > 0, "up", "down")
    model = ERMClassifier("hinge")
    for rows in np.array_split(np.arange(2000), 10):
        model.partial_fit(table[rows], labels[rows], classes=["up", "down"])
    assert model.score(table, labels) > 0.95
    assert len(model.history_) == 10


def test_classes_are_needed_first_and_stay():
    with pytest.raises(InputError, match="classes must be passed on the first call"):
        ERMClassifier().partial_fit(X, Y)
    with pytest.raises(InputError, match="differ from those of the first call"):
        ERMClassifier().partial_fit(X, Y, classes=[0, 1]).partial_fit(X, Y, classes=[0, 1, 2])
