"""Threads: small work uses one, also inside BLAS; what was set before comes back."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from sixfold import verify
from sixfold._native import core
from sixfold.errors import InputError
from sixfold.learners.linear.logistic_regression import LogisticRegression
from sixfold.solvers.threads import LITTLE_DATA, one_blas_thread, single_threaded_blas, thread_limit

controlled = pytest.mark.skipif(not core.blas_threads(), reason="BLAS does not let its threads be limited")


def threads_of_openblas():
    """Return those of NumPy's copy and of SciPy's; other packages bring copies of their own."""
    copies = [found for found in threadpool_info() if found["internal_api"] == "openblas"]
    ours = [found for found in copies if "numpy" in found["filepath"] or "scipy" in found["filepath"]]
    return {found["num_threads"] for found in ours or copies}


@pytest.fixture(autouse=True)
def two_blas_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


@controlled
def test_every_copy_of_openblas_is_limited_numpys_and_scipys():
    with one_blas_thread:
        assert threads_of_openblas() == {1}
    assert threads_of_openblas() == {2}


@controlled
def test_limits_inside_each_other_and_in_several_threads_restore_what_was_set():
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with one_blas_thread:
            entered.set()
            leave.wait(10.0)

    other = threading.Thread(target=hold, daemon=True)
    with one_blas_thread:
        with one_blas_thread:
            other.start()
            entered.wait(10.0)
        # A native loop that limits BLAS for itself does not end the limit of others.
        core.gram_rows(
            np.ones((8, 2)),
            np.ones((8, 1)),
            np.zeros(2, dtype=np.int64),
            np.arange(2),
            0,
            np.zeros(2),
            np.empty((2, 2)),
            np.inf,
            np.zeros(1, dtype=np.int32),
        )
        assert set(core.blas_threads()) == {1}
    assert set(core.blas_threads()) == {1}
    leave.set()
    other.join()
    assert set(core.blas_threads()) == {2}


@controlled
@pytest.mark.parametrize(("size", "threads"), [(1, 1), (2000, 1), (4096, 1), (4097, 2)])
def test_lapack_of_a_few_thousand_columns_has_one_thread(size, threads):
    with single_threaded_blas(size):
        assert set(core.blas_threads()) == {threads}


@controlled
@pytest.mark.parametrize(
    ("limits", "threads"),
    [
        ({"n_jobs": None}, 2),
        ({"n_jobs": 2}, 2),
        ({"n_jobs": 1}, 1),
        ({"n_jobs": None, "alone": True}, 1),
        ({"n_jobs": None, "values": LITTLE_DATA - 1}, 1),
        ({"n_jobs": None, "values": LITTLE_DATA}, 2),
    ],
)
def test_one_thread_is_one_for_blas_too_and_so_are_few_values(limits, threads):
    with thread_limit(**limits):
        assert set(core.blas_threads()) == {threads}
    assert set(core.blas_threads()) == {2}


@controlled
def test_a_small_fit_and_its_check_have_one_blas_thread(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    seen = []
    model = LogisticRegression(callbacks=[lambda record: seen.append(set(core.blas_threads()))]).fit(X, y)
    assert seen
    assert all(threads == {1} for threads in seen)

    def recompute(claim, claimed):
        seen.append(set(core.blas_threads()))
        return found(claim, claimed)

    found = verify.linear.recompute
    monkeypatch.setattr("sixfold.verify.linear.recompute", recompute)
    model.certificate_.verify(X, y)
    assert seen[-1] == {1}
    assert set(core.blas_threads()) == {2}


def test_no_threads_are_refused():
    with pytest.raises(InputError, match="n_jobs=0 is no number of threads"), thread_limit(0):
        pass


def test_none_keeps_the_limit_of_whoever_calls():
    with thread_limit(1):
        with thread_limit(None):
            assert core.limit_threads(1) == 1
        with thread_limit(2):
            assert core.limit_threads(2) == 2
        assert core.limit_threads(1) == 1
    assert core.limit_threads(0) == 0
