"""trust_page: an evaluation as one HTML file, beginning with the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from prevalens.reporting.formatting import count, number, percent
from prevalens.reporting.grid import Entry, Grid, Group, Heading, Line
from prevalens.reporting.page import Figure, Markup, Part, Section, page
from prevalens.reporting.plots import diagonal, error_against_shift
from prevalens.reporting.trust_data import Error, TrustReport
from prevalens.reporting.trust_verdict import verdict

__all__ = ["error_grid", "label_grid", "protocol_words", "trust_page", "trust_sections"]

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
    return page(report.title, trust_sections(report), lead=Markup(lead), asset="batch_report")


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
    return Grid(caption, stub, (heads,), (Group(lines),), (note,))


def _line(row: str, errors: Mapping[str, Error], names: Sequence[str]) -> Line:
    means = [errors[name].mean for name in names]
    entries = [Entry(number(100 * mean, 2), bold=mean == min(means)) for mean in means]
    own = errors[names[0]]
    return Line(row, (*entries, Entry(number(100 * own.ninth, 2)), Entry(count(own.n_samples))))


def _intervals(report: TrustReport) -> Section:
    lines = tuple(
        Line(
            protocol_words(name),
            (Entry(percent(share)), Entry(f"{100 * width:.1f}"), Entry(count(n))),
        )
        for name, (share, width, n) in report.coverage().items()
    )
    heads = tuple(map(Heading, ("hold the truth", "mean width, points", "intervals")))
    caption = f"Intervals that aim at {100 * (report.level or 0.9):g} %"
    return Section(
        "Reliability of intervals", (Grid(caption, "samples", (heads,), (Group(lines),)),)
    )


def label_grid(report: TrustReport) -> Grid:
    """What is known of each label."""
    lines = tuple(
        Line(
            one.label,
            (
                Entry(count(one.positives)),
                Entry(number(100 * one.error, 2)),
                *_moved_entries(one.moved, report.compared),
                Entry(count(one.n_moved)),
                Entry(percent(one.coverage)),
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
    return Grid("Error by label", "label", (heads,), (Group(lines),), (note,))


def _moved_entries(moved: Mapping[str, float], names: Sequence[str]) -> list[Entry]:
    values = [moved[name] for name in names]
    return [Entry(number(100 * value, 2), bold=value == min(values)) for value in values]


def _labels(report: TrustReport) -> Section:
    return Section("Labels", (label_grid(report),))


def _provenance(report: TrustReport) -> Section:
    words = (
        f"{count(report.n_items)} labelled items; samples of {report.size} items are drawn from "
        "them so that the label mix moves, and their estimates compared with their truth. What is "
        "measured is error under shifts of the label mix. If labels come to look different (new "
        "products, new wording), errors are larger, and only newly labelled items can tell."
    )
    lines = tuple(Line(name, (Entry(value),)) for name, value in report.provenance.items())
    parts: list[Part] = [words, *report.notices]
    if lines:
        parts.append(
            Grid("Provenance", "what", ((Heading("value", words=True),),), (Group(lines),))
        )
    return Section("How this was measured", tuple(parts))
