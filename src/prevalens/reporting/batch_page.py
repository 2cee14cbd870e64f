"""batch_page: the report on batches as one HTML file that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from prevalens.reporting.batch_charts import (
    change_map,
    is_skewed,
    movers_chart,
    points_text,
    share_text,
    small_trend,
)
from prevalens.reporting.batch_data import BatchReport
from prevalens.reporting.batch_numbers import (
    FEWEST_BATCHES,
    focus,
    movers,
    movers_over_all,
    moving_together,
    steps,
)
from prevalens.reporting.batch_tables import (
    MOST_CELLS,
    all_estimates,
    drivers_grid,
    movers_grid,
    pairs_grid,
    prevalence_table,
    scores_grid,
    sizes_grid,
    steps_grid,
)
from prevalens.reporting.formatting import count
from prevalens.reporting.grid import Entry, Grid, Group, Heading, Line
from prevalens.reporting.page import Figure, Gallery, Markup, Part, Section, page
from prevalens.reporting.render_html import to_html

__all__ = ["batch_page", "batch_sections"]

_MOST_TRENDS = 12
_MOST_IN_MAP = 40
_MOST_MOVERS = 12


def batch_page(report: BatchReport) -> str:
    """The report on batches as one HTML file.

    Parameters
    ----------
    report : BatchReport

    Returns
    -------
    str
        HTML with its styles, script and data inside; nothing is asked of any server. Without
        script it is tables and charts, with it they can be sorted, filtered and asked.

    Examples
    --------
    >>> report = BatchReport(["spam"], ["May", "June"], [90, 80], [[0.2], [0.3]], [0.25])
    >>> batch_page(report)[:15]
    '<!DOCTYPE html>'
    """
    return page(
        report.title,
        batch_sections(report),
        lead=Markup(_summary(report) + _data(report)),
        asset="batch_report",
    )


def batch_sections(report: BatchReport) -> list[Section]:
    """The sections of the report, in their order."""
    sections = [_prevalence(report)]
    if len(report.batches) > 1:
        sections.append(_trend(report))
    sections += [_movers(report), _together(report), _drivers(report), _warnings(report)]
    sections += [_estimates(report)] if len(report.batches) > 1 else []
    return [*sections, _provenance(report)]


def _summary(report: BatchReport) -> str:
    """The most important figures, and a sentence."""
    batch = focus(report)
    change = report.change[batch]
    up, down = int(change.argmax()), int(change.argmin())
    warnings = sum(one.level == "warning" for one in report.notices)
    facts = [
        (count(len(report.batches)), "batches" if len(report.batches) > 1 else "batch"),
        (count(int(report.sizes.sum())), "items"),
        (count(len(report.labels)), "labels"),
    ]
    if report.lower is not None:
        facts.append((count(int(report.beyond[batch].sum())), "labels clearly moved"))
    if change[up] > 0:
        facts.append((f"{points_text(change[up])}", f"points: {report.labels[up]}"))
    if change[down] < 0:
        facts.append((f"{points_text(change[down])}", f"points: {report.labels[down]}"))
    cards = "".join(
        f"<li><b>{escape(value)}</b> <span>{escape(name)}</span></li>" for value, name in facts
    )
    warned = (
        f'<p class="callout"><a href="#data-warnings">{warnings} '
        f"{'warning' if warnings == 1 else 'warnings'} about the data</a> to read before you rely "
        "on these figures.</p>"
        if warnings
        else ""
    )
    return f"<p>{escape(_sentence(report, batch))}</p><ul class='facts'>{cards}</ul>{warned}\n"


def _sentence(report: BatchReport, batch: int) -> str:
    name = report.batches[batch]
    if report.lower is None:
        return f"Estimated share of items that have each label; figures at the top are for {name}."
    clear = int(report.beyond[batch].sum())
    level = "" if report.level is None else f"{100 * report.level:g} % "
    if not clear:
        return (
            f"In {name}, no label has clearly moved: every training prevalence lies within the "
            f"{level}interval of its estimate."
        )
    first = movers(report, batch, 1)[0]
    verb = "risen" if report.change[batch, first] > 0 else "fallen"
    return (
        f"In {name}, {clear} of {len(report.labels)} labels have clearly moved since training "
        f"(the training prevalence lies outside the {level}interval). Most of all "
        f"{report.labels[first]} has {verb}, from {share_text(report.training[first])} to "
        f"{share_text(report.point[batch, first])}."
    )


def _data(report: BatchReport) -> str:
    """What the script needs, in a block that is never run."""
    values: dict[str, Any] = {
        "labels": list(report.labels),
        "batches": list(report.batches),
        "sizes": report.sizes.tolist(),
        "ordered": report.ordered,
        "training": _rounded(report.training),
        "level": report.level,
    }
    for name in ("point", "lower", "upper", "counted", "true"):
        part = getattr(report, name)
        values[name] = None if part is None else _rounded(part)
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    # No character can end the block.
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="batch-data">{text}</script>\n'


def _rounded(values: np.ndarray) -> list[Any]:
    found: list[Any] = np.round(values, 5).tolist()
    return found


def _checked(chosen: bool) -> str:
    return ' checked="checked"' if chosen else ""


def _options(names: Sequence[str], chosen: int) -> str:
    return "".join(
        f'<option value="{number}"{" selected" * (number == chosen)}>{escape(name)}</option>'
        for number, name in enumerate(names)
    ).replace(" selected", ' selected="selected"')


def _prevalence(report: BatchReport) -> Section:
    batch, skewed = focus(report), is_skewed(report)
    controls = (
        '<div class="controls" hidden="hidden">'
        '<label>Find a label <input id="filter" type="search" autocomplete="off"/></label>'
        f'<label>Batch <select id="batch">{_options(report.batches, batch)}</select></label>'
        '<label class="check"><input id="moved" type="checkbox"/> only clearly moved</label>'
        f'<label class="check"><input id="root" type="checkbox"{_checked(skewed)}/> '
        "square-root scale</label>"
        '<output id="found" aria-live="polite"></output></div>'
    )
    key = (
        '<p class="key"><span class="dot" aria-hidden="true"></span> estimate'
        + (
            ' <span class="range" aria-hidden="true"></span> interval'
            if report.lower is not None
            else ""
        )
        + ' <span class="mark" aria-hidden="true"></span> training prevalence. Change in '
        "percentage points; bold where training lies outside the interval."
        + (" The bars have a square-root scale, on which rare labels can be seen." * skewed)
        + "</p>"
    )
    meaning = (
        "Share of items that have each label. An interval says how far the true share may be, if "
        "items with the same labels look as they did in training."
    )
    table = Markup(controls + key + prevalence_table(report, batch))
    return Section("Prevalence per label", (meaning, table, sizes_grid(report)))


def _trend(report: BatchReport) -> Section:
    labels = movers_over_all(report, _MOST_TRENDS)
    controls = (
        '<div id="trend" hidden="hidden"><div class="controls">'
        f'<label>Label <select id="trend-label">{_options(report.labels, labels[0])}</select>'
        "</label>"
        + _toggle(report.counted is not None, "show-counted", "line", "uncorrected")
        + _toggle(report.true is not None, "show-true", "line truth", "truth")
        + '</div><div id="trend-chart" tabindex="0" role="group" '
        'aria-label="Trend; left and right arrow keys read the batches"></div>'
        '<output id="trend-value" aria-live="polite"></output></div>'
    )
    figures = tuple(Figure(small_trend(report, label), name=f"trend-{label}") for label in labels)
    caption = (
        "Estimates with their intervals; dashed: training prevalence"
        + ("; dotted: the truth." if report.true is not None else ".")
        + (
            f" The {len(labels)} labels that have moved most of {len(report.labels)}; the table "
            "below has all."
            if len(labels) < len(report.labels)
            else ""
        )
    )
    chart = Figure(
        change_map(report, movers_over_all(report, _MOST_IN_MAP)),
        "Percentage points since training: orange is more, blue is less. The batches run from "
        "left to right.",
        name="change-map",
    )
    return Section("Trend over batches", (Markup(controls), Gallery(figures, caption), chart))


def _toggle(there: bool, name: str, sign: str, words: str) -> str:
    if not there:
        return ""
    return (
        f'<label class="check"><input id="{name}" type="checkbox" checked="checked"/> '
        f'<span class="{sign}" aria-hidden="true"></span> {words}</label>'
    )


def _movers(report: BatchReport) -> Section:
    batch = focus(report)
    labels = movers(report, batch, _MOST_MOVERS)
    title = f"From training to {report.batches[batch]}"
    figure = Figure(
        movers_chart(report, batch, labels, title),
        "Hollow: training prevalence; filled: estimate, with its interval. Orange rises, blue "
        "falls.",
        name="movers",
    )
    parts: list[Part] = [figure, movers_grid(report, batch, labels)]
    if len(report.batches) > 1 and report.ordered:
        parts.append(steps_grid(report, steps(report)))
    return Section("Biggest movers", tuple(parts))


def _together(report: BatchReport) -> Section:
    title = "Labels that move together"
    n_batches = len(report.batches)
    if n_batches < FEWEST_BATCHES:
        words = (
            f"{n_batches} {'batch says' if n_batches == 1 else 'batches say'} nothing about which "
            f"labels move together; it takes at least {FEWEST_BATCHES}."
        )
        return Section(title, (words,))
    pairs = moving_together(report)
    if not pairs:
        words = "No two labels vary more over the batches than their intervals are wide."
        return Section(title, (words,))
    return Section(title, (pairs_grid(report, pairs),))


def _drivers(report: BatchReport) -> Section:
    parts: list[Part] = []
    if report.drivers:
        parts.append(
            "Features whose mean has moved since training, times the weight the label's linear "
            "classifier gives them: their part in the movement of the label's mean log-odds. They "
            "explain the scores, not the world: a word may stand in for another cause, and the "
            "correction for the classifier's errors comes after them."
        )
        parts += [
            Markup(_details(f"{one.label}, {one.batch}", drivers_grid(one), first=number == 0))
            for number, one in enumerate(report.drivers)
        ]
    if report.counted is not None:
        batch = focus(report)
        parts.append(
            "How far the classifier's scores moved by themselves, and what the correction for its "
            "errors adds. A large correction relies on the error rates seen in training."
        )
        parts.append(scores_grid(report, batch, movers(report, batch, _MOST_MOVERS)))
    if not parts:
        parts.append("The method offers no weights and no uncorrected scores to look into.")
    return Section("What drives the estimates", tuple(parts))


def _details(title: str, grid: Grid, *, first: bool) -> str:
    opened = ' open="open"' if first else ""
    return f"<details{opened}><summary>{escape(title)}</summary>{to_html(grid)}</details>"


def _warnings(report: BatchReport) -> Section:
    if not report.notices:
        return Section("Data warnings", ("Nothing unusual was found in the batches.",))
    order = sorted(report.notices, key=lambda one: one.level != "warning")
    items = "".join(
        f'<li class="{one.level}"><b>{"Warning" if one.level == "warning" else "Note"}</b>'
        f"{f' ({escape(one.batch)})' if one.batch else ''}: {escape(one.text)}</li>"
        for one in order
    )
    return Section("Data warnings", (Markup(f'<ul class="notices">{items}</ul>'),))


def _estimates(report: BatchReport) -> Section:
    if report.point.size > MOST_CELLS:
        words = (
            f"{count(report.point.size)} estimates are too many for a table; "
            "prevalens quantify -o writes them to a file."
        )
        return Section("All estimates", (words,))
    return Section("All estimates", (all_estimates(report),))


def _provenance(report: BatchReport) -> Section:
    lines = tuple(Line(name, (Entry(value),)) for name, value in report.provenance.items())
    words = (
        "The method assumes that the batches differ from the training data in their label mix, "
        "and that items with the same labels look alike in both. If labels have changed their "
        "look (new products, new wording), estimates and intervals are off, and nothing in the "
        "unlabelled batch can tell for certain."
    )
    if not lines:
        return Section("How the numbers were made", (words,))
    grid = Grid("Provenance", "what", ((Heading("value", words=True),),), (Group(lines),))
    return Section("How the numbers were made", (words, grid))
