"""Callbacks: ours, and scikit-learn's own where it has them."""

import numpy as np
import pytest

from sixfold import ERMRegressor
from sixfold.errors import InputError

X = np.random.default_rng(0).normal(size=(50, 3))
Y = X @ [1.0, 2.0, 3.0] + 1.0


def test_every_iteration_is_told():
    seen = []
    model = ERMRegressor(solver="gd", callbacks=[seen.append]).fit(X, Y)
    assert [record.iteration for record in seen] == list(range(1, model.n_iter_ + 1))
    assert seen == model.history_


def test_a_scikit_learn_callback_hears_of_every_iteration_and_can_stop():
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")

    class Counter:
        def __init__(self):
            self.begun, self.ended, self.set_up, self.torn_down = 0, 0, 0, 0

        def setup(self, estimator, context):
            self.set_up += 1

        def teardown(self, estimator, context):
            self.torn_down += 1

        def on_fit_task_begin(self, estimator, context):
            self.begun += 1

        def on_fit_task_end(self, estimator, context):
            self.ended += 1
            return context.task_name == "iteration" and context.task_id == 2

    counter = Counter()
    model = ERMRegressor(solver="gd", tol=0.0).set_callbacks(counter)
    with pytest.warns(match="Stopped by a callback after 3 iterations"):
        model.fit(X, Y)
    assert (counter.set_up, counter.torn_down) == (1, 1)
    assert (counter.begun, counter.ended) == (4, 4)  # the fit itself and three iterations


def test_what_cannot_be_called_is_refused():
    with pytest.raises(InputError, match="no sequence of callables"):
        ERMRegressor(callbacks=["print"]).fit(X, Y)
