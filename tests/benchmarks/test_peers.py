"""The search for a peer's best settings, on a toy, and the remarks."""

import pytest

from benchmarks.linear.regression_tasks import RegressionTask
from benchmarks.peers import chosen, fallback, fastest_accurate, joined

NO_TASK = RegressionTask(None, None)


class Toy:
    def __init__(self, tol):
        self.tol = tol

    def fit(self, X, y):
        return self


def test_loosest_tolerance_that_reaches_the_accuracy_is_taken():
    found = fastest_accurate([Toy], NO_TASK, lambda model: 3 * model.tol <= 1e-5)
    assert found.tol == pytest.approx(10**-5.5)


def test_of_several_solvers_the_fastest_accurate_one_is_taken(monkeypatch):
    monkeypatch.setattr("benchmarks.peers._timed_fit", lambda estimator, task: (estimator[1], estimator))
    makers = [lambda tol, cost=cost: (tol, cost) for cost in (1.0, 3.0, 2.0, 4.0)]
    assert fastest_accurate(makers, NO_TASK, lambda model: model[1] > 1.0)[1] == 2.0


def test_where_nothing_is_accurate_that_is_an_error():
    with pytest.raises(RuntimeError, match="No setting"):
        fastest_accurate([Toy], NO_TASK, lambda model: False)


def test_fallback_of_the_accelerated_peer_is_reported():
    assert fallback(object()) == "fell back to scikit-learn"
    assert joined(chosen, fallback)(Toy(1e-4)) == "tol=1e-04; fell back to scikit-learn"
