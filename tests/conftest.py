"""What every test can count on."""

import signal
import threading

import pytest


@pytest.fixture(autouse=True)
def ctrl_c_as_usual():
    """Give SIGINT its usual meaning: a shell that starts tests in the background has it ignored."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
