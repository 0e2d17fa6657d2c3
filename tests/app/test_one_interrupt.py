"""Ctrl-C is heard once."""

import os
import signal
import threading

import pytest

from sixfold.app.one_interrupt import one_interrupt


def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_is_heard_and_those_while_it_is_dealt_with_are_not():
    done = []
    with one_interrupt():
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()
        try:
            raise KeyboardInterrupt  # as a library does that has its own handler of the signal
        except KeyboardInterrupt:
            ctrl_c()
            done.append("cleaned up")
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()
    assert done == ["cleaned up"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with one_interrupt():
            ctrl_c()
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_have_no_signals():
    failed = []

    def work():
        try:
            with one_interrupt():
                pass
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failed
