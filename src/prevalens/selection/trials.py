"""A time limit on a piece of work."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.aggregators import Aggregator
from prevalens.crossfit import Scheme, fit_settings
from prevalens.errors import PrevalensError
from prevalens.metrics import per_label
from prevalens.response import response
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.types import Floats, Groups, Items, LabelMatrix, Settings
from prevalens.validation import InputError

__all__ = [
    "Task",
    "TimeLimitError",
    "Trial",
    "best_trial",
    "by_classifier",
    "deadline",
    "losses_of",
    "per_label_choice",
    "try_chunk",
]


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


@dataclass(frozen=True)
class Trial:
    """One setting and how it did; `losses` is per label, shape (n_labels,)."""

    classifier: Settings
    aggregator: Settings
    loss: float
    losses: Floats | None
    seconds: float
    failure: str = ""

    @property
    def params(self) -> dict[str, Any]:
        """The setting in scikit-learn's words for parameters of parts."""
        inside = {f"classifier__{name}": value for name, value in self.classifier.items()}
        return inside | {f"aggregator__{name}": value for name, value in self.aggregator.items()}


@dataclass(frozen=True)
class Task:
    """All that a setting is tried on; a picklable value."""

    X: Items
    Y: LabelMatrix
    X_held: Items
    positives_held: npt.NDArray[np.int64]
    samples: Samples
    true: Floats
    loss: str
    own_samples: bool
    scheme: Scheme
    groups: Groups
    time_limit: float | None

    def fewest_positives(self) -> npt.NDArray[np.int64]:
        """Positives of each label on the side that has fewer of them."""
        return np.minimum(self.Y.sum(axis=0, dtype=np.int64), self.positives_held)


def by_classifier(
    candidates: Sequence[tuple[Settings, Settings]],
) -> list[tuple[Settings, list[Settings]]]:
    """Candidates with equal classifier settings together, in the order of their first one."""
    groups: list[tuple[Settings, list[Settings]]] = []
    for classifier, aggregator in candidates:
        for known, inside in groups:
            if known == classifier:
                inside.append(aggregator)
                break
        else:
            groups.append((classifier, [aggregator]))
    return groups


def try_chunk(
    classifier: Any,
    aggregator: Aggregator,
    groups: Sequence[tuple[Settings, list[Settings]]],
    task: Task,
) -> list[Trial]:
    """Try some classifier settings, each with its aggregator settings; a failure is a result."""
    start = time.perf_counter()
    trials: list[Trial] = []
    try:
        with deadline(task.time_limit):
            scored = _scored(classifier, aggregator, [first for first, _ in groups], task)
            for (settings, inside), (labelled, Y, pool) in zip(groups, scored, strict=True):
                for inner, fitted in zip(
                    inside, aggregator.fit_settings(inside, labelled, Y), strict=True
                ):
                    loss, losses = _judge(fitted.aggregate(pool, task.samples), task)
                    seconds = time.perf_counter() - start
                    trials.append(Trial(settings, inner, loss, losses, seconds))
                    start = time.perf_counter()
    except (TimeLimitError, ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        failure = f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - start
        missing = [(s, a) for s, inside in groups for a in inside][len(trials) :]
        trials += [Trial(s, a, float("inf"), None, seconds, failure) for s, a in missing]
    return trials


def _scored(
    classifier: Any, aggregator: Aggregator, settings: Sequence[Settings], task: Task
) -> Iterator[tuple[Scores, LabelMatrix, Scores]]:
    """For each classifier setting: labelled scores, their labels, and scores of the held items."""
    kind = aggregator.consumes
    if classifier is None:
        yield Scores(task.X, "features"), task.Y, Scores(task.X_held, "features")
        return
    n_labels = task.Y.shape[1]
    if not aggregator.needs_labelled_scores:
        for fitted in fit_settings(classifier, settings, task.X, task.Y):
            pool = response(fitted, task.X_held, kind, n_labels)
            yield Scores(task.Y, kind), task.Y, pool
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
        each = 1 - each  # the one measure where more is better
    if not task.own_samples:
        return float(each.mean()), each.mean(axis=0)
    own = np.full(each.shape[1], np.inf)
    for label in range(each.shape[1]):
        mine = task.samples.target == label
        if mine.any():
            own[label] = each[mine, label].mean()
    return float(each.mean()), own


def best_trial(trials: Sequence[Trial]) -> int:
    """The position of the first trial with the smallest loss."""
    return int(np.argmin([trial.loss for trial in trials]))


def losses_of(trial: Trial) -> Floats:
    """Each label's loss, or a sentence if the trial failed."""
    if trial.losses is None:
        raise InputError(f"The setting {trial.params} failed: {trial.failure}")
    return trial.losses


def per_label_choice(trials: Sequence[Trial]) -> list[int]:
    """Each label's best trial; a label without samples of its own takes the best over all."""
    n_labels = next(len(t.losses) for t in trials if t.losses is not None)
    table = np.array([np.full(n_labels, np.inf) if t.losses is None else t.losses for t in trials])
    choice = np.argmin(table, axis=0)
    choice[~np.isfinite(table).any(axis=0)] = best_trial(trials)
    return [int(i) for i in choice]
