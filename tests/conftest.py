"""What every test can count on."""

import signal
import threading

import hypothesis
import pytest

# No test times anything: a busy machine is no failure.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def ctrl_c_as_usual():
    """Give SIGINT its usual meaning: a shell that starts tests in the background has it ignored."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
