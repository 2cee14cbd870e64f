"""Trials of a grid search: each setting is trained on some items and judged on others."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from types import FrameType
from typing import Any

import numpy as np

from prevalens.aggregators import Aggregator
from prevalens.crossfit import Scheme, fit_settings
from prevalens.errors import PrevalensError
from prevalens.metrics import per_label
from prevalens.response import response, weighted_prior
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.types import Classifier, Floats, Groups, Items, LabelMatrix, Settings

#: Settings of the classifier, and those of the aggregator that are tried with them.
ClassifierSettings = tuple[Settings, list[Settings]]


class TimeLimitError(PrevalensError, TimeoutError):
    """The work was not done within its time."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise `TimeLimitError` in the block when the time is over.

    Parameters
    ----------
    seconds : float, optional
        None means no limit.

    Notes
    -----
    Uses an alarm signal, which Python handles between two of its own instructions: a long call of
    compiled code is not interrupted; the error is raised when it returns. Outside the main thread,
    and where the system has no alarms, the limit is checked when the work is done.

    Examples
    --------
    >>> with deadline(60):
    ...     sum(range(10))
    45
    """
    if seconds is None:
        yield
        return
    error = TimeLimitError(f"The time limit of {seconds:g} s was exceeded.")
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        start = time.perf_counter()
        yield
        if time.perf_counter() - start > seconds:
            raise error
        return

    def expire(_signal: int, _frame: FrameType | None) -> None:
        raise error

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class SettingTrial:
    """A setting and its loss, in all and per label, shape (n_labels,); infinite if it failed."""

    classifier: Settings
    aggregator: Settings
    loss: float
    losses: Floats
    seconds: float
    failure: str = ""

    @property
    def params(self) -> dict[str, object]:
        """The setting in scikit-learn's names for parameters of parts."""
        inside = {f"classifier__{name}": value for name, value in self.classifier.items()}
        return inside | {f"aggregator__{name}": value for name, value in self.aggregator.items()}


@dataclass(frozen=True)
class Task:
    """The data and rules by which settings are tried; can be pickled.

    Attributes
    ----------
    X, Y : items to train on
    X_held : items to judge by
    samples : Samples
        Bags of rows of `X_held`.
    true : array of float, shape (n_samples, n_labels)
    loss : str
        Name of a measure.
    own_samples : bool
        True if a label is judged by the samples that steer it alone.
    scheme : Scheme
    groups : array, one entry per item of `X`, or None
    time_limit : float or None
        Seconds for the settings that are trained together.
    """

    X: Items
    Y: LabelMatrix
    X_held: Items
    samples: Samples
    true: Floats
    loss: str
    own_samples: bool
    scheme: Scheme
    groups: Groups
    time_limit: float | None


def try_settings(
    classifier: Classifier | None,
    aggregator: Aggregator,
    settings: Sequence[ClassifierSettings],
    task: Task,
) -> list[SettingTrial]:
    """Try some classifier settings, each with its aggregator settings; a failure is a result."""
    start = time.perf_counter()
    trials: list[SettingTrial] = []
    try:
        with deadline(task.time_limit):
            scored = _scored(classifier, aggregator, [outer for outer, _ in settings], task)
            for (outer, inside), (labelled, Y, pool) in zip(settings, scored, strict=True):
                for inner, fitted in zip(
                    inside, aggregator.fit_settings(inside, labelled, Y), strict=True
                ):
                    loss, losses = _judge(fitted.aggregate(pool, task.samples), task)
                    seconds = time.perf_counter() - start
                    trials.append(SettingTrial(outer, inner, loss, losses, seconds))
                    start = time.perf_counter()
    except (TimeLimitError, ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        lost: dict[str, Any] = {"loss": np.inf, "losses": np.full(task.Y.shape[1], np.inf)}
        lost["failure"] = f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - start
        if isinstance(error, TimeLimitError) and task.time_limit is not None:
            # Where the limit is checked late, settings may have been finished after it.
            spent = accumulate(trial.seconds for trial in trials)
            trials = [
                trial if after <= task.time_limit else replace(trial, **lost)
                for trial, after in zip(trials, spent, strict=True)
            ]
        pairs = [(outer, inner) for outer, inside in settings for inner in inside]
        trials += [
            SettingTrial(outer, inner, seconds=seconds, **lost)
            for outer, inner in pairs[len(trials) :]
        ]
    return trials


def _scored(
    classifier: Classifier | None,
    aggregator: Aggregator,
    settings: Sequence[Settings],
    task: Task,
) -> Iterator[tuple[Scores, LabelMatrix, Scores]]:
    """For each classifier setting: labelled scores, their labels, and scores of the held items."""
    kind, n_labels = aggregator.consumes, task.Y.shape[1]
    if classifier is None:
        yield Scores(task.X, "features"), task.Y, Scores(task.X_held, "features")
        return
    if not aggregator.needs_labelled_scores:
        for fitted in fit_settings(classifier, settings, task.X, task.Y):
            pool = response(fitted, task.X_held, kind, n_labels)
            yield Scores(task.Y, kind, prior=weighted_prior(fitted, task.Y)), task.Y, pool
        return
    for labelled in task.scheme.fit_settings(
        classifier, settings, task.X, task.Y, kind, groups=task.groups
    ):
        pool = response(labelled.classifier, task.X_held, kind, n_labels)
        yield labelled.scores, task.Y[labelled.rows], pool


def _judge(estimated: Floats, task: Task) -> tuple[float, Floats]:
    """The loss over all samples, and each label's own."""
    each = per_label(task.loss, task.true, estimated, task.samples.sizes)
    if task.loss == "concordance":
        each = 1 - each  # The only measure whose larger values are better.
    if not task.own_samples:
        return float(each.mean()), each.mean(axis=0)
    own = np.full(each.shape[1], np.inf)
    for label in np.unique(task.samples.target[task.samples.target >= 0]):
        own[label] = each[task.samples.target == label, label].mean()
    return float(each.mean()), own
