"""Pages on trust: the verdict on an evaluation with its figures, and a comparison of methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from prevalens.model.compare import Leaderboard, Place
from prevalens.model.trust import (
    COUNTED,
    ERROR_AXIS,
    ESTIMATE,
    SHIFT_AXIS,
    TRAINING,
    Error,
    TrustReport,
)
from prevalens.reports.charts import diagonal, error_against_shift
from prevalens.reports.grid import Grid, GridCell, GridRow, count, number, percent, provenance_grid
from prevalens.reports.page import Figure, Section, SectionPart, page
from prevalens.reports.render import CAPTIONS, render
from prevalens.reports.svg import Scale, element, label, line, row_chart, shortened
from prevalens.reports.theme import series

Grade = Literal["yes", "with care", "no"]
_ORDER: tuple[Grade, ...] = ("yes", "with care", "no")
_REASONS: dict[str, str] = CAPTIONS["reasons"]
_TRUST: dict[str, str] = CAPTIONS["trust"]
#: Largest error, as a share of that of the training prevalence, that needs no care.
_MOST_OF_TRAINING = 0.6
#: Error relative to that of the training prevalence from which the model counts as worse.
_MOST_BEHIND = 1.05
#: Fewer samples, or intervals, do not count by themselves.
_FEWEST_SAMPLES = 30
#: The family of samples without a shift.
_UNSHIFTED = "natural"
#: How far coverage may fall short of its level.
_SHORTFALL = 0.07
_FEW_ITEMS = 300
_FEW_POSITIVES = 20
_NAMED = 5


@dataclass(frozen=True)
class Reason:
    """A sentence, and the best grade that it allows."""

    grade: Grade
    text: str


@dataclass(frozen=True)
class Verdict:
    """Whether the estimates can be trusted, and why.

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
    """Judge whether the estimates of an evaluation can be trusted.

    Notes
    -----
    The grade is that of the worst reason. Every family of shifts counts, also that without a
    shift, and every amount of shift. It holds for batches that differ from the training data
    in their label mix; labelled items of the past cannot show whether items of a label have come
    to look different.
    """
    reasons = sorted(_reasons(report), key=lambda reason: -_ORDER.index(reason.grade))
    grade = reasons[0].grade
    worse = _worse_places(report)
    name = "worse" if grade == "with care" and worse else grade
    headline = CAPTIONS["verdicts"][name].format(places=_joined(map(_place_name, worse)))
    return Verdict(grade, headline, tuple(reasons))


def _reasons(report: TrustReport) -> Iterator[Reason]:
    yield _against_training(report)
    yield _everywhere(report)
    if COUNTED in report.compared:
        yield _against_counting(report)
    if "all" in report.coverage():
        yield _interval_reason(report)
    yield from _label_reason(report)
    yield from _data(report)


def _worse_places(report: TrustReport) -> list[str]:
    """Families and amounts of shift in which the training prevalence is clearly closer."""
    return [
        name
        for name, errors in report.places().items()
        if errors[ESTIMATE].n_samples >= _FEWEST_SAMPLES
        and errors[ESTIMATE].mean > _MOST_BEHIND * errors[TRAINING].mean
    ]


def _everywhere(report: TrustReport) -> Reason:
    """Whether the model is closer than the training prevalence in every kind of samples."""
    places, worse = report.places(), _worse_places(report)
    if not worse:
        return Reason("yes", _REASONS["everywhere"].format(n=len(places)))
    figures = [
        f"{_place_name(name)} ({_points(places[name][ESTIMATE].mean)} against "
        f"{100 * places[name][TRAINING].mean:.1f})"
        for name in worse
    ]
    shifted = [name for name in worse if name in report.by_protocol() and name != _UNSHIFTED]
    useless = shifted or 2 * len(worse) > len(places)
    text = _REASONS["worse_places"].format(places=_joined(figures))
    return Reason("no" if useless else "with care", text)


def _place_name(name: str) -> str:
    return f"at {name}" if name.endswith(" shift") else f"in {name} samples"


def _joined(parts: Iterable[str]) -> str:
    *first, last = (*parts, "")[:-1] or ("",)
    return f"{', '.join(first)} and {last}" if first else last


def _points(value: float) -> str:
    return f"{100 * value:.1f} points"


def _against_training(report: TrustReport) -> Reason:
    own, naive = (report.error(name, report.moved).mean for name in (ESTIMATE, TRAINING))
    figures = _REASONS["training"].format(own=_points(own), naive=_points(naive))
    if own >= naive:
        return Reason("no", figures + _REASONS["training_no"])
    if own > _MOST_OF_TRAINING * naive:
        return Reason("with care", figures + _REASONS["training_care"])
    return Reason("yes", figures)


def _against_counting(report: TrustReport) -> Reason:
    own, counted = (report.error(name, report.moved).mean for name in (ESTIMATE, COUNTED))
    figures = _REASONS["counting"].format(counted=_points(counted))
    if own > 1.05 * counted:
        return Reason("with care", figures + _REASONS["counting_care"])
    return Reason("yes", figures)


def _interval_reason(report: TrustReport) -> Reason:
    share, width, n = report.coverage()["all"]
    level = report.level or 0.9
    figures = _REASONS["intervals"].format(
        level=100 * level, share=100 * share, n=n, width=_points(width)
    )
    moves = {
        name: own[0] for name, own in report.coverage_by_move().items() if own[2] >= _FEWEST_SAMPLES
    }
    least = share
    if len(moves) > 1:
        where = min(moves, key=lambda name: moves[name])
        least = min(share, moves[where])
        figures += _REASONS["intervals_least"].format(where=where, share=100 * moves[where])
    if least < level - 2 * _SHORTFALL:
        everywhere = share < level - 2 * _SHORTFALL
        text = _REASONS["intervals_narrow" if everywhere else "intervals_narrow_there"]
        return Reason("with care", figures + text)
    if share < level - _SHORTFALL:
        return Reason("with care", figures + _REASONS["intervals_care"])
    return Reason("yes", figures)


def _label_reason(report: TrustReport) -> Iterator[Reason]:
    worse = [
        own.label
        for own in report.by_label()
        if own.n_moved >= _FEWEST_SAMPLES and own.moved[ESTIMATE] >= own.moved[TRAINING]
    ]
    rare = [report.labels[j] for j in np.flatnonzero(report.positives < _FEW_POSITIVES)]
    grades: dict[str, tuple[list[str], Grade, Grade]] = {
        "worse": (worse, "with care", "no"),
        "rare": (rare, "yes", "with care"),
    }
    for reason, (labels, some, most) in grades.items():
        if labels:
            names = ", ".join(labels[:_NAMED])
            if len(labels) > _NAMED:
                names += f" and {len(labels) - _NAMED} more"
            sizes = {"n": len(labels), "n_labels": len(report.labels), "fewest": _FEW_POSITIVES}
            text = _REASONS[reason].format(names=names, **sizes)
            yield Reason(most if len(labels) > len(report.labels) / 2 else some, text)


def _data(report: TrustReport) -> Iterator[Reason]:
    if report.seen > 0:
        text = _REASONS["seen"].format(share=100 * report.seen)
        yield Reason("no" if report.seen > 0.5 else "with care", text)
    if report.n_items < _FEW_ITEMS:
        yield Reason("with care", _REASONS["few"].format(n_items=report.n_items))


def protocol_caption(name: str) -> str:
    """The name of a protocol with a description, where there is one."""
    known: dict[str, str] = CAPTIONS["protocols"]
    return f"{name}: {known[name]}" if name in known else name


def trust_page(report: TrustReport) -> str:
    """An evaluation as one self-contained HTML file."""
    answer = verdict(report)
    reasons = [
        {"level": "note" if reason.grade == "yes" else "warning", "text": reason.text}
        for reason in answer.reasons
    ]
    lead = render("notices.html", notices=reasons, headline=answer.headline)
    return page(report.title, trust_sections(report), lead=lead, assets=["batch_report"])


def trust_sections(report: TrustReport) -> list[Section]:
    """The sections below the verdict."""
    sections = [_by_shift(report), _by_protocol(report)]
    if report.coverage():
        sections.append(Section("Reliability of intervals", _interval_grids(report)))
    labels = Section("Labels", (label_grid(report),))
    return [*sections, labels, Section("How this was measured", _measured(report))]


def _by_shift(report: TrustReport) -> Section:
    curves = {name: (100 * report.shifts, 100 * report.errors(name)) for name in report.compared}
    drawn = error_against_shift(
        curves, title="Error by shift", x_name=SHIFT_AXIS, y_name=ERROR_AXIS, band=(0.1, 0.9)
    )
    figure = Figure(
        drawn,
        _TRUST["by_shift"],
        name="error-by-shift",
    )
    errors = report.by_shift()
    rows = {
        f"{regime} shift ({100 * low:.1f} to {100 * high:.1f} points)": errors[regime]
        for regime, (low, high) in report.shift_ranges().items()
    }
    grid = error_grid("Mean absolute error by shift", "samples with", rows, report.compared)
    return Section("Error by amount of shift", (figure, grid))


def _by_protocol(report: TrustReport) -> Section:
    rows = {protocol_caption(name): own for name, own in report.by_protocol().items()}
    grid = error_grid("Mean absolute error by kind of shift", "samples", rows, report.compared)
    pairs = {
        name: (
            np.concatenate([trial.true for trial in report.trials]),
            np.concatenate([report.values(trial, name) for trial in report.trials]),
        )
        for name in report.compared[:-1]
    }
    figure = Figure(diagonal(pairs, percent=True), _TRUST["diagonal"], name="diagonal")
    return Section("Kinds of shift, and bias", (grid, figure))


def error_grid(
    caption: str, stub: str, rows: Mapping[str, Mapping[str, Error]], names: Sequence[str]
) -> Grid:
    """Errors in points, a row per group of samples; the smallest is bold."""
    table: list[GridRow] = [
        (
            row,
            *_points_cells([errors[name].mean for name in names]),
            number(100 * errors[names[0]].ninth, 2),
            count(errors[names[0]].n_samples),
        )
        for row, errors in rows.items()
    ]
    headings = (*names, "9 in 10 below", "samples")
    return Grid.from_rows(caption, stub, headings, table, [_TRUST["points"]])


def _points_cells(errors: Sequence[float]) -> list[GridCell]:
    """Errors in points, the smallest in bold."""
    return [GridCell(number(100 * error, 2), bold=error == min(errors)) for error in errors]


def _interval_grids(report: TrustReport) -> tuple[Grid, Grid]:
    """Coverage by kind of shift, and by how far the labels moved."""
    aim = f"Intervals that aim at {100 * (report.level or 0.9):g} %"
    by_protocol = {protocol_caption(name): own for name, own in report.coverage().items()}
    return (
        _interval_grid(aim, "samples", by_protocol),
        _interval_grid(f"{aim}, by how far a label moved", "moved", report.coverage_by_move()),
    )


def _interval_grid(caption: str, stub: str, rows: Mapping[str, tuple[float, float, int]]) -> Grid:
    cells = [
        (name, percent(share), f"{100 * width:.1f}", count(n))
        for name, (share, width, n) in rows.items()
    ]
    headings = ("hold the truth", "mean width, points", "intervals")
    return Grid.from_rows(caption, stub, headings, cells)


def label_grid(report: TrustReport) -> Grid:
    """Errors and coverage of each label."""
    rows: list[GridRow] = [
        (
            own.label,
            count(own.positives),
            number(100 * own.error, 2),
            *_points_cells([own.moved[name] for name in report.compared]),
            count(own.n_moved),
            percent(own.coverage),
        )
        for own in report.by_label()
    ]
    moved = (f"moved: {name}" for name in report.compared)
    headings = ("positives", "error", *moved, "samples moved", "intervals hold")
    return Grid.from_rows("Error by label", "label", headings, rows, [_TRUST["labels"]])


def _measured(report: TrustReport) -> tuple[SectionPart, ...]:
    paragraph = _TRUST["measured"].format(n_items=count(report.n_items), size=report.size)
    return paragraph, *report.notices, *provenance_grid(report.provenance)


_WIDTH = 480.0


def leaderboard_page(board: Leaderboard) -> str:
    """A comparison of methods as one self-contained HTML file."""
    texts = CAPTIONS["methods"]
    figure = Figure(_chart(board), texts["chart"], name="leaderboard")
    measured = texts["measured"].format(
        n_items=count(board.n_items),
        n_labels=board.n_labels,
        n_folds=board.errors.shape[1],
        size=board.size,
    )
    sections = [
        Section("Leaderboard", (figure, leaderboard_grid(board))),
        Section("How this was measured", (measured, *provenance_grid(board.provenance))),
    ]
    return page(board.title, sections, lead=leaderboard_sentence(board), assets=["batch_report"])


def leaderboard_sentence(board: Leaderboard) -> str:
    """The result in a sentence or two."""
    first, *others = board.places()
    tied = [place.method for place in others if place.tied]
    texts: dict[str, str] = CAPTIONS["methods"]
    sentence = texts["best"].format(method=first.method, error=100 * first.error)
    return sentence + (texts["tied"].format(methods=", ".join(tied)) if tied else "")


def leaderboard_grid(board: Leaderboard) -> Grid:
    """The methods from best to worst."""
    places = board.places()
    best = {name: min(place.by_protocol[name] for place in places) for name in board.protocols}
    rows: list[GridRow] = [
        (
            place.method,
            GridCell(number(100 * place.error, 2), bold=place.rank == 1),
            number(100 * place.spread, 2),
            *(
                GridCell(number(100 * error, 2), bold=error == best[name])
                for name, error in place.by_protocol.items()
            ),
            _behind(place),
            f"{place.seconds:.1f}",
        )
        for place in places
    ]
    notes = [
        *CAPTIONS["methods"]["notes"],
        *(f"{name} could not be trained: {why}" for name, why in board.failures.items()),
    ]
    headings = ("error", "spread", *board.protocols, "behind the first", "seconds")
    return Grid.from_rows("Methods, the best first", "method", headings, rows, notes)


def _behind(place: Place) -> str:
    if place.rank == 1:
        return ""
    return f"{'≈ ' if place.tied else ''}{number(100 * place.behind, 2)}"


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
