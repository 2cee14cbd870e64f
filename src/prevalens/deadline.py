"""A time limit on a piece of work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from prevalens.errors import PrevalensError

__all__ = ["TimeLimitError", "deadline"]


class TimeLimitError(PrevalensError, TimeoutError):
    """The work was not done within its time."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Stop the work inside when the time is up.

    Parameters
    ----------
    seconds : float, optional
        None means no limit.

    Notes
    -----
    Uses an alarm signal, which reaches Python between two of its own steps: a single long call into
    compiled code is not cut short, but stops as soon as it returns. Outside the main thread, and
    where the system has no alarms, the limit is looked at only when the work is done.

    Examples
    --------
    >>> with deadline(60):
    ...     sum(range(10))
    45
    """
    if seconds is None:
        yield
        return

    def expire(_signal: int, _frame: FrameType | None) -> None:
        raise TimeLimitError(f"The time limit of {seconds:g} s was exceeded.")

    can_alarm = hasattr(signal, "SIGALRM")
    if not can_alarm or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
