"""What every test can count on."""

import os
import signal
import threading

import hypothesis
import numpy as np
import pytest

collect_ignore = ["fuzz/fuzz_model_file.py"]  # a program, which needs atheris and changes what it watches
collect_ignore_glob = ["patch/scripts/*"]  # which test_scripts.py runs

# The same examples every time, so that it is a change that makes a test fail; HYPOTHESIS_PROFILE=search looks
# for new ones, and "few" is for further runs of tests that pass. No test times anything: a busy machine is no
# failure.
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "same")
FEW = 10
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("search", deadline=None)
hypothesis.settings.register_profile("few", derandomize=True, deadline=None, max_examples=FEW)
hypothesis.settings.load_profile(PROFILE)


def pytest_itemcollected(item):
    """Let "few" hold for tests that ask for more examples themselves."""
    asked = getattr(getattr(item, "obj", None), "_hypothesis_internal_use_settings", None)
    if PROFILE == "few" and asked is not None and asked.max_examples > FEW:
        item.obj._hypothesis_internal_use_settings = hypothesis.settings(asked, max_examples=FEW)


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
