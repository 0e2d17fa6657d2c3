"""Ctrl-C that is heard once.

Polars raises a KeyboardInterrupt of its own when Ctrl-C is pressed while it works, and Python raises another
one a moment later, when its own handler of the signal is called: in the midst of what the first one set off,
such as removing half a file. A Ctrl-C while one is being dealt with is therefore not heard.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Let Ctrl-C raise a KeyboardInterrupt, unless one is being dealt with."""
    usual = threading.current_thread() is threading.main_thread()
    if not usual or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def heard(number: int, frame: Any) -> None:
        if not isinstance(sys.exception(), KeyboardInterrupt):
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
