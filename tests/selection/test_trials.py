"""A time limit stops work, and leaves no alarm behind."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from prevalens.selection.trials import TimeLimitError, deadline


def test_work_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(TimeLimitError, match=r"time limit of 0\.05 s"), deadline(0.05):
        time.sleep(5)


def test_quick_work_passes_and_the_alarm_is_off() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with deadline(60):
        pass
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_no_limit() -> None:
    with deadline(None):
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_outside_the_main_thread_the_work_goes_on() -> None:
    done: list[bool] = []

    def work() -> None:
        with deadline(0.01):
            time.sleep(0.05)
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
