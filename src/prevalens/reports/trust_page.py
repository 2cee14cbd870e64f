"""verdict: should these estimates be trusted on data like this, in plain words, with reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np
from markupsafe import Markup

from prevalens.model.compare import Leaderboard, Place
from prevalens.model.trust import COUNTED, ESTIMATE, TRAINING, Error, TrustReport
from prevalens.reports.charts import diagonal, error_against_shift
from prevalens.reports.grid import (
    Grid,
    GridCell,
    GridGroup,
    GridLine,
    Heading,
    count,
    number,
    percent,
)
from prevalens.reports.page import Figure, Section, SectionPart, page
from prevalens.reports.svg import Scale, element, label, line, row_chart, shortened
from prevalens.reports.theme import series

__all__ = [
    "Reason",
    "Verdict",
    "error_grid",
    "label_grid",
    "leaderboard_grid",
    "leaderboard_page",
    "leaderboard_sentence",
    "protocol_words",
    "trust_page",
    "trust_sections",
    "verdict",
]

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
        yield _interval_reason(report)
    yield from _label_reason(report)
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


def _interval_reason(report: TrustReport) -> Reason:
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


def _label_reason(report: TrustReport) -> Iterator[Reason]:
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


#: Name for users, and what it does, by the protocol's own name.
_PROTOCOLS = {
    "ml-app": ("ml-app", "one label at a time is steered from 0 to 100 %"),
    "natural": ("uniform", "drawn evenly, no shift but that of chance"),
    "label-tilt": ("tilt", "the odds of all labels move at once"),
    "labelset-weights": ("labelset", "whole label sets are weighted"),
    "covariate-tilt": ("covariate", "the features move and the labels follow"),
}


def protocol_words(name: str, *, short: bool = False) -> str:
    """What a protocol does, or only what users call it."""
    called, does = _PROTOCOLS.get(name, (name, ""))
    return called if short or not does else f"{called}: {does}"


def trust_page(report: TrustReport) -> str:
    """An evaluation as one self-contained HTML file."""
    found = verdict(report)
    reasons = "".join(
        f'<li class="{"note" if one.grade == "yes" else "warning"}">{escape(one.text)}</li>'
        for one in found.reasons
    )
    lead = f'<p><b>{escape(found.headline)}</b></p><ul class="notices">{reasons}</ul>'
    return page(report.title, trust_sections(report), lead=Markup(lead), assets=["batch_report"])


def trust_sections(report: TrustReport) -> list[Section]:
    """The sections below the verdict."""
    sections = [_by_shift(report), _by_protocol(report)]
    if report.coverage():
        sections.append(_intervals(report))
    return [*sections, _labels(report), _provenance(report)]


def _by_shift(report: TrustReport) -> Section:
    curves = {name: (report.shifts, report.errors(name)) for name in report.compared}
    figure = Figure(
        error_against_shift(curves, title="Error by shift", band=(0.1, 0.9)),
        "Mean absolute error over labels, by how far a sample has moved from the training data. "
        "Bands hold the middle 80 % of the samples.",
        name="error-by-shift",
    )
    ranges = report.shift_ranges()
    rows = {
        f"{regime} shift ({100 * low:.1f} to {100 * high:.1f} points)": report.by_shift()[regime]
        for regime, (low, high) in ranges.items()
    }
    grid = error_grid("Mean absolute error by shift", "samples with", rows, report.compared)
    return Section("Error by amount of shift", (figure, grid))


def _by_protocol(report: TrustReport) -> Section:
    rows = {protocol_words(name): own for name, own in report.by_protocol().items()}
    grid = error_grid("Mean absolute error by kind of shift", "samples", rows, report.compared)
    pairs = {
        name: (
            np.concatenate([trial.true for trial in report.trials]),
            np.concatenate([report.values(trial, name) for trial in report.trials]),
        )
        for name in report.compared[:-1]
    }
    figure = Figure(
        diagonal(pairs),
        "Mean estimate by true prevalence, over all samples and labels; the diagonal is perfect.",
        name="diagonal",
    )
    return Section("Kinds of shift, and bias", (grid, figure))


def error_grid(
    caption: str, stub: str, rows: Mapping[str, Mapping[str, Error]], names: Sequence[str]
) -> Grid:
    """Errors in points, a row per group of samples; the smallest is bold."""
    lines = tuple(_line(row, errors, names) for row, errors in rows.items())
    heads = (*(Heading(name) for name in names), Heading("9 in 10 below"), Heading("samples"))
    note = "In percentage points. Nine in ten samples: for this model."
    return Grid(caption, stub, (heads,), (GridGroup(lines),), (note,))


def _line(row: str, errors: Mapping[str, Error], names: Sequence[str]) -> GridLine:
    means = [errors[name].mean for name in names]
    entries = [GridCell(number(100 * mean, 2), bold=mean == min(means)) for mean in means]
    own = errors[names[0]]
    return GridLine(
        row, (*entries, GridCell(number(100 * own.ninth, 2)), GridCell(count(own.n_samples)))
    )


def _intervals(report: TrustReport) -> Section:
    lines = tuple(
        GridLine(
            protocol_words(name),
            (GridCell(percent(share)), GridCell(f"{100 * width:.1f}"), GridCell(count(n))),
        )
        for name, (share, width, n) in report.coverage().items()
    )
    heads = tuple(map(Heading, ("hold the truth", "mean width, points", "intervals")))
    caption = f"Intervals that aim at {100 * (report.level or 0.9):g} %"
    return Section(
        "Reliability of intervals", (Grid(caption, "samples", (heads,), (GridGroup(lines),)),)
    )


def label_grid(report: TrustReport) -> Grid:
    """What is known of each label."""
    lines = tuple(
        GridLine(
            one.label,
            (
                GridCell(count(one.positives)),
                GridCell(number(100 * one.error, 2)),
                *_moved_entries(one.moved, report.compared),
                GridCell(count(one.n_moved)),
                GridCell(percent(one.coverage)),
            ),
        )
        for one in report.by_label()
    )
    heads = tuple(
        map(
            Heading,
            (
                "positives",
                "error",
                *(f"moved: {name}" for name in report.compared),
                "samples moved",
                "intervals hold",
            ),
        )
    )
    note = (
        "Mean absolute error in points; moved: over samples in which the label is more than five "
        "points from its training prevalence."
    )
    return Grid("Error by label", "label", (heads,), (GridGroup(lines),), (note,))


def _moved_entries(moved: Mapping[str, float], names: Sequence[str]) -> list[GridCell]:
    values = [moved[name] for name in names]
    return [GridCell(number(100 * value, 2), bold=value == min(values)) for value in values]


def _labels(report: TrustReport) -> Section:
    return Section("Labels", (label_grid(report),))


def _provenance(report: TrustReport) -> Section:
    words = (
        f"{count(report.n_items)} labelled items; samples of {report.size} items are drawn from "
        "them so that the label mix moves, and their estimates compared with their truth. What is "
        "measured is error under shifts of the label mix. If labels come to look different (new "
        "products, new wording), errors are larger, and only newly labelled items can tell."
    )
    lines = tuple(GridLine(name, (GridCell(value),)) for name, value in report.provenance.items())
    parts: list[SectionPart] = [words, *report.notices]
    if lines:
        parts.append(
            Grid("Provenance", "what", ((Heading("value", left=True),),), (GridGroup(lines),))
        )
    return Section("How this was measured", tuple(parts))


_WIDTH = 480.0


def leaderboard_page(found: Leaderboard) -> str:
    """A comparison of methods as one self-contained HTML file."""
    figure = Figure(
        _chart(found),
        "Mean absolute error over kinds of shift and folds, with one standard deviation over the "
        "folds to either side; less is better.",
        name="leaderboard",
    )
    sections = [
        Section("Leaderboard", (figure, leaderboard_grid(found))),
        Section("How this was measured", _measured(found)),
    ]
    return page(found.title, sections, lead=leaderboard_sentence(found), assets=["batch_report"])


def leaderboard_sentence(found: Leaderboard) -> str:
    """The result in a sentence or two."""
    first, *others = found.places()
    tied = [one.method for one in others if one.tied]
    words = (
        f"{first.method} has the smallest error on this data, {100 * first.error:.2f} points on "
        "average."
    )
    if tied:
        words += f" {', '.join(tied)} cannot be told from it with this much data."
    return words


def leaderboard_grid(found: Leaderboard) -> Grid:
    """The methods from best to worst."""
    heads = (
        "error",
        "spread",
        *(protocol_words(name, short=True) for name in found.protocols),
        "behind the first",
        "seconds",
    )
    lines = tuple(_place_line(found, one) for one in found.places())
    notes = [
        "Mean absolute error of the estimated prevalences in percentage points; spread: standard "
        "deviation over the folds.",
        "≈ cannot be told from the first: the difference is within two standard errors, corrected "
        "for folds that share training items (Nadeau and Bengio 2003).",
        *(f"{name} could not be trained: {why}" for name, why in found.failures.items()),
    ]
    return Grid(
        "Methods, the best first",
        "method",
        (tuple(map(Heading, heads)),),
        (GridGroup(lines),),
        tuple(notes),
    )


def _place_line(found: Leaderboard, one: Place) -> GridLine:
    best = {name: min(p.by_protocol[name] for p in found.places()) for name in found.protocols}
    behind = "" if one.rank == 1 else f"{'≈ ' if one.tied else ''}{number(100 * one.behind, 2)}"
    entries = (
        GridCell(number(100 * one.error, 2), bold=one.rank == 1),
        GridCell(number(100 * one.spread, 2)),
        *(
            GridCell(number(100 * value, 2), bold=value == best[name])
            for name, value in one.by_protocol.items()
        ),
        GridCell(behind),
        GridCell(f"{one.seconds:.1f}"),
    )
    return GridLine(one.method, entries)


def _chart(board: Leaderboard) -> str:
    places = board.places()
    top = max(place.error + place.spread for place in places)
    x = Scale(0.0, top * 1.05, 190.0, _WIDTH - 14)
    rows = (_chart_row(place, x, 34.0 + 24 * (place.rank - 1) + 12) for place in places)
    title = "Mean absolute error, points"
    return row_chart(title, x, rows, lambda value: f"{100 * value:.3g}", _WIDTH)


def _chart_row(place: Place, x: Scale, y: float) -> str:
    low, high = x(place.error - place.spread), x(place.error + place.spread)
    return (
        label(shortened(place.method, 26), 182, y + 4, text_anchor="end")
        + line(low, y, high, y, stroke=series(0), stroke_width=2)
        + element("circle", cx=x(place.error), cy=y, r=5, fill=series(0))
    )


def _measured(found: Leaderboard) -> tuple[SectionPart, ...]:
    n_folds = found.errors.shape[1]
    words = (
        f"{count(found.n_items)} labelled items with {found.n_labels} labels were cut into "
        f"{n_folds} folds. Each method was trained on all folds but one; from that one, samples of "
        f"{found.size} items were drawn whose label mix has moved, and the estimates compared with "
        "the truth. All methods see the same folds and samples. The preparation of the items, "
        "which sees no labels, was fitted once on all items."
    )
    lines = tuple(GridLine(name, (GridCell(value),)) for name, value in found.provenance.items())
    heads = ((Heading("value", left=True),),)
    return (words, Grid("Provenance", "what", heads, (GridGroup(lines),))) if lines else (words,)
