"""Limits, history, callbacks and Ctrl-C behave the same in every solver."""

import math
import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sixfold.budget import Budget, Record
from sixfold.certificate import Certificate
from sixfold.errors import StoppedEarly


def certificate(gap):
    return Certificate("duality gap", objective=1.0, gap=gap, scale=1.0, tolerance=1e-6)


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.001)  # the interpreter runs the handler between two instructions


def run(budget, gaps):
    """A solver that does nothing but report these gaps."""
    gaps = iter(gaps)
    with budget:
        for _ in budget.iterations():
            if budget.record(1.0, next(gaps), 1.0):
                break
    return len(budget.history)


# -- limits ------------------------------------------------------------


def test_the_tolerance_stops_without_a_reason_to_warn():
    budget = Budget(tol=1e-3)
    assert run(budget, [1.0, 0.1, 1e-3, 0.0]) == 3
    assert budget.stopped_by is None


def test_the_gap_is_judged_against_the_scale():
    budget = Budget(tol=1e-3)
    assert not budget.record(1.0, 0.05, 10.0)
    assert budget.record(1.0, 0.01, 10.0)


def test_max_iter_stops():
    budget = Budget(max_iter=4)
    assert run(budget, [1.0] * 9) == 4
    assert budget.stopped_by == "max_iter=4"
    assert budget.iterations_left == 0


def test_no_iteration_at_all_is_allowed():
    assert run(Budget(max_iter=0), []) == 0


def test_the_time_limit_stops():
    budget = Budget(time_limit=0.0)
    assert run(budget, [1.0]) == 0
    assert budget.stopped_by == "time_limit=0 s"


def test_time_is_counted_from_the_start_of_the_work(monkeypatch):
    clock = iter([0.0, 100.0, 101.5, 102.5])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    budget = Budget(time_limit=2.0)
    with budget:
        assert budget.seconds_left == 0.5
        assert budget.exhausted()


def test_without_limits_nothing_ends():
    budget = Budget()
    assert budget.seconds_left == budget.iterations_left == math.inf
    assert not budget.exhausted()


def test_a_gap_that_is_not_a_number_does_not_stop():
    assert not Budget().record(1.0, math.nan, 1.0)


# -- history and callbacks ------------------------------------------------------------


def test_history_has_one_record_an_iteration():
    heard = []
    budget = Budget(max_iter=2, callbacks=[heard.append])
    run(budget, np.array([0.5, 0.25]))
    assert [record[0] for record in budget.history] == [1, 2]
    assert [record.gap for record in budget.history] == [0.5, 0.25]
    assert all(isinstance(record, Record) for record in budget.history)
    assert all(type(record.gap) is float for record in budget.history)
    assert 0.0 <= budget.history[0].seconds <= budget.history[1].seconds
    assert heard == budget.history


@pytest.mark.parametrize("answer", [True, np.True_])
def test_a_callback_that_returns_true_stops(answer):
    budget = Budget(callbacks=[lambda record: answer if record.iteration == 3 else None])
    assert run(budget, [1.0] * 9) == 3
    assert budget.stopped_by == "a callback"


@pytest.mark.parametrize("answer", [False, None, 1, "yes", np.False_, np.ones(2)])
def test_no_other_answer_stops(answer):
    assert run(Budget(max_iter=5, callbacks=[lambda record: answer]), [1.0] * 9) == 5


def test_every_callback_hears_of_every_iteration():
    heard = []
    run(Budget(callbacks=[lambda record: True, heard.append]), [1.0])
    assert len(heard) == 1


# -- Ctrl-C ------------------------------------------------------------


def test_ctrl_c_is_held_back_until_the_model_is_complete():
    before = signal.getsignal(signal.SIGINT)
    budget = Budget()
    with budget:
        assert not budget.exhausted()
        press_ctrl_c()
        assert budget.interrupted
        assert budget.flag[0] == 1
        assert budget.exhausted()
        assert budget.stopped_by == "Ctrl-C"
        assert budget.record(1.0, 1.0, 1.0)
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        budget.conclude(certificate(0.0))


def test_the_handler_is_restored_after_an_error():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), Budget():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is before


def test_after_the_work_ctrl_c_raises_as_ever():
    with Budget():
        pass
    with pytest.raises(KeyboardInterrupt):
        press_ctrl_c()


def test_a_handler_of_the_users_own_is_left_alone():
    heard = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        own = signal.getsignal(signal.SIGINT)
        with Budget() as budget:
            assert signal.getsignal(signal.SIGINT) is own
            press_ctrl_c()
        assert heard == [signal.SIGINT]
        assert not budget.interrupted
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_budget_works_in_another_thread():
    counted = []
    thread = threading.Thread(target=lambda: counted.append(run(Budget(max_iter=3), [1.0] * 9)))
    thread.start()
    thread.join()
    assert counted == [3]


# -- conclusion ------------------------------------------------------------


def test_a_limit_warns_with_the_certificate():
    budget = Budget(max_iter=2)
    run(budget, [1.0] * 9)
    given = certificate(0.5)

    def fit():
        budget.conclude(given)

    with pytest.warns(StoppedEarly) as caught:
        fit()
    assert str(caught[0].message) == (
        "Stopped by max_iter=2 after 2 iterations; the best model so far was kept "
        "(duality gap: within 0.5 of the optimum, short of the 1e-06 asked for). Allow more, or a larger "
        "tol, if that is not good enough."
    )
    assert caught[0].message.certificate is given
    assert isinstance(caught[0].message, ConvergenceWarning)
    # It points at the line outside of sixfold that called it.
    assert caught[0].filename == __file__
    assert caught[0].lineno == fit.__code__.co_firstlineno + 1


def test_one_iteration_is_singular():
    budget = Budget(max_iter=1)
    run(budget, [1.0])
    with pytest.warns(StoppedEarly, match="after 1 iteration; "):
        budget.conclude(certificate(0.5))


def test_a_limit_that_did_not_matter_is_not_mentioned():
    budget = Budget(max_iter=1)
    run(budget, [1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        budget.conclude(certificate(1e-7))


def test_no_limit_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Budget().conclude(certificate(0.5))
