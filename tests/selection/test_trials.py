"""A time limit stops work, and leaves no alarm behind."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from prevalens import Quantifier
from prevalens.aggregators import CC
from prevalens.datasets import synthetic
from prevalens.protocols import Natural
from prevalens.selection import GridSearch
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


def test_outside_the_main_thread_the_limit_is_checked_when_the_work_is_done() -> None:
    done: list[str] = []

    def work(seconds: float) -> None:
        try:
            with deadline(seconds):
                time.sleep(0.05)
                done.append("work")
        except TimeLimitError as error:
            done.append(str(error))

    for seconds in (0.01, 60.0):
        thread = threading.Thread(target=work, args=(seconds,))
        thread.start()
        thread.join()
    assert done == ["work", "The time limit of 0.01 s was exceeded.", "work"]


class Sleeper(ClassifierMixin, BaseEstimator):
    """Always votes for the first label, after a nap."""

    def __init__(self, nap: float = 0.0) -> None:
        self.nap = nap

    def fit(self, X: Any, Y: Any) -> Sleeper:
        time.sleep(self.nap)
        self.n_labels_ = Y.shape[1]
        return self

    def predict(self, X: Any) -> Any:
        return np.tile(np.arange(self.n_labels_) == 0, (len(X), 1)).astype(int)


def test_a_search_outside_the_main_thread_leaves_slow_settings_out() -> None:
    data = synthetic(n_train=120, n_labels=2, n_features=3, random_state=0).train
    slow = GridSearch(
        Quantifier(Sleeper(), CC()),
        {"classifier__nap": [0.0, 1.5]},
        protocol=Natural(size=20, n_samples=3),
        choose="together",
        time_limit=1.0,
    )
    thread = threading.Thread(target=slow.fit, args=(data.X, data.Y))
    thread.start()
    thread.join()
    assert slow.cv_results_["failure"][0] == ""
    assert "time limit of 1 s" in slow.cv_results_["failure"][1]
    assert slow.best_params_ == {"classifier__nap": 0.0}
