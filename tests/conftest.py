"""What every test can count on."""

import os
import signal
import threading

import hypothesis
import numpy as np
import pytest

# The same examples every time, so that it is a change that makes a test fail; HYPOTHESIS_PROFILE=search looks
# for new ones. No test times anything: a busy machine is no failure.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("search", deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(autouse=True)
def ctrl_c_as_usual():
    """Give SIGINT its usual meaning: a shell that starts tests in the background has it ignored."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def the_same_random_numbers(request):
    """Start a module's generator again, so that a test's numbers do not depend on which others ran before."""
    if hasattr(request.module, "RNG"):
        request.module.RNG = np.random.default_rng(0)
