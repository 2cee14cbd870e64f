"""verdict: should these estimates be trusted on data like this, in plain words, with reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from prevalens.reporting.trust_data import COUNTED, ESTIMATE, TRAINING, TrustReport

__all__ = ["Reason", "Verdict", "verdict"]

Grade = Literal["yes", "with care", "no"]
_ORDER: tuple[Grade, ...] = ("yes", "with care", "no")
_HEADLINES: dict[Grade, str] = {
    "yes": "Yes: on data like this the estimates can be trusted.",
    "with care": "With care: the estimates help, but not everywhere.",
    "no": "No: on data like this the estimates should not be trusted.",
}
#: An error may be this share of the training prevalence's before care is asked for.
_MOST_OF_TRAINING = 0.6
#: Coverage may fall short of its level by this much.
_SHORTFALL = 0.07
_FEW_ITEMS = 300
_FEW_POSITIVES = 20
_NAMED = 5


@dataclass(frozen=True)
class Reason:
    """A sentence, and how far it allows trust by itself."""

    grade: Grade
    text: str


@dataclass(frozen=True)
class Verdict:
    """The answer.

    Attributes
    ----------
    grade : {"yes", "with care", "no"}
    headline : str
    reasons : tuple of Reason
        The most serious first.
    """

    grade: Grade
    headline: str
    reasons: tuple[Reason, ...]


def verdict(report: TrustReport) -> Verdict:
    """Weigh an evaluation.

    Notes
    -----
    The answer is as good as the worst of its reasons. It holds for batches that differ from the
    training data in their label mix; whether labels have changed their look, labelled items of
    the past cannot tell.
    """
    reasons = sorted(_reasons(report), key=lambda one: -_ORDER.index(one.grade))
    grade = reasons[0].grade
    return Verdict(grade, _HEADLINES[grade], tuple(reasons))


def _reasons(report: TrustReport) -> Iterator[Reason]:
    yield _against_training(report)
    if COUNTED in report.compared:
        yield _against_counting(report)
    if "all" in report.coverage():
        yield _intervals(report)
    yield from _labels(report)
    yield from _data(report)


def _points(value: float) -> str:
    return f"{100 * value:.1f} points"


def _against_training(report: TrustReport) -> Reason:
    own, naive = (report.error(name, report.moved).mean for name in (ESTIMATE, TRAINING))
    figures = (
        f"Where the label mix has moved, an estimate is off by {_points(own)} on average; keeping "
        f"the training prevalence, by {_points(naive)}."
    )
    if own >= naive:
        return Reason("no", figures + " The model is no help there.")
    if own > _MOST_OF_TRAINING * naive:
        return Reason("with care", figures + " The model follows the shift, but only in part.")
    return Reason("yes", figures)


def _against_counting(report: TrustReport) -> Reason:
    own, counted = (report.error(name, report.moved).mean for name in (ESTIMATE, COUNTED))
    figures = f"Counting the classifier's answers would be off by {_points(counted)}."
    if own > 1.05 * counted:
        more = " That is closer than this model: look for another method with prevalens compare."
        return Reason("with care", figures + more)
    return Reason("yes", figures)


def _intervals(report: TrustReport) -> Reason:
    share, width, number = report.coverage()["all"]
    level = report.level or 0.9
    figures = (
        f"The {100 * level:g} % intervals hold the truth in {100 * share:.0f} % of {number:,} "
        f"cases; they are {_points(width)} wide on average."
    )
    if share < level - 2 * _SHORTFALL:
        return Reason("with care", figures + " They are much too narrow: do not rely on them.")
    if share < level - _SHORTFALL:
        return Reason("with care", figures + " They are somewhat too narrow.")
    return Reason("yes", figures)


def _labels(report: TrustReport) -> Iterator[Reason]:
    worse = [
        one.label
        for one in report.by_label()
        if one.n_moved >= 30 and one.moved[ESTIMATE] >= one.moved[TRAINING]
    ]
    if worse:
        grade: Grade = "no" if len(worse) > len(report.labels) / 2 else "with care"
        yield Reason(
            grade,
            f"For {_listed(worse)} the training prevalence is at least as close when the "
            f"label moves ({len(worse)} of {len(report.labels)} labels).",
        )
    rare = np.flatnonzero(report.positives < _FEW_POSITIVES)
    if rare.size:
        names = [report.labels[j] for j in rare]
        yield Reason(
            "with care" if len(rare) > len(report.labels) / 2 else "yes",
            f"{_listed(names)}: fewer than {_FEW_POSITIVES} labelled items have the label, so "
            f"little can be said ({len(rare)} of {len(report.labels)} labels).",
        )


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown


def _data(report: TrustReport) -> Iterator[Reason]:
    if report.seen > 0:
        yield Reason(
            "no" if report.seen > 0.5 else "with care",
            f"{100 * report.seen:.0f} % of the labelled items were in the training data: the "
            "figures are too good. Evaluate on items the model has not seen.",
        )
    if report.n_items < _FEW_ITEMS:
        yield Reason(
            "with care",
            f"There are only {report.n_items} labelled items; all figures here are rough.",
        )
