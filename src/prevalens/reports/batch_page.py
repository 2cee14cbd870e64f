"""Figures that the report on batches derives: movers, steps, labels that move together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from scipy.special import ndtri
from scipy.stats import false_discovery_control, t

from prevalens.model.result import BatchReport, Drivers
from prevalens.reports.batch_charts import (
    BAR_WIDTH,
    change_map,
    interval_bar,
    interval_text,
    is_skewed,
    movers_chart,
    points_text,
    share_text,
    small_trend,
    top_of,
)
from prevalens.reports.grid import Grid, GridCell, GridGroup, GridLine, Heading, count, number
from prevalens.reports.page import Figure, Gallery, Section, SectionPart, page
from prevalens.reports.render import to_html
from prevalens.types import Floats

__all__ = [
    "FEWEST_BATCHES",
    "MOST_CELLS",
    "LargestChange",
    "Pair",
    "all_estimates",
    "batch_page",
    "batch_sections",
    "drivers_grid",
    "focus",
    "movers",
    "movers_grid",
    "movers_over_all",
    "moving_together",
    "overlap",
    "pairs_grid",
    "prevalence_table",
    "scores_grid",
    "sizes_grid",
    "steps",
    "steps_grid",
]

#: Fewer batches than this say nothing about what moves together.
FEWEST_BATCHES = 5
#: Without intervals, labels that vary less than this are taken as standing still.
_STILL = 0.005


def focus(report: BatchReport) -> int:
    """The batch to show first: the latest, or the first where there is no order."""
    return len(report.batches) - 1 if report.ordered else 0


def movers(report: BatchReport, batch: int, most: int = 10) -> list[int]:
    """Labels by how far they are from training in a batch, the farthest first.

    Labels whose training prevalence lies outside the interval stand before the others.
    """
    change, beyond = np.abs(report.change[batch]), report.beyond[batch]
    return [int(j) for j in np.lexsort((-change, ~beyond))[:most]]


def movers_over_all(report: BatchReport, most: int) -> list[int]:
    """Labels by their farthest distance from training in any batch."""
    reach = np.abs(report.change).max(axis=0)
    return [int(j) for j in np.argsort(-reach, kind="stable")[:most]]


@dataclass(frozen=True)
class LargestChange:
    """A move of a label from one batch to the next.

    Attributes
    ----------
    label, start : int
        The label, and the batch before the move.
    change : float
    clear : bool
        Whether the two intervals do not overlap.
    """

    label: int
    start: int
    change: float
    clear: bool


def steps(report: BatchReport, most: int = 10) -> list[LargestChange]:
    """The largest moves between batches that follow each other."""
    found = [
        LargestChange(label, start, float(change), not overlap(report, label, start, stop))
        for start, stop in pairwise(range(len(report.batches)))
        for label, change in enumerate(report.point[stop] - report.point[start])
    ]
    found.sort(key=lambda step: (-step.clear, -abs(step.change)))
    return found[:most]


def overlap(report: BatchReport, label: int, first: int, second: int) -> bool:
    """Whether the intervals of a label in two batches overlap; True without intervals."""
    if report.lower is None or report.upper is None:
        return True
    low, high = report.lower[:, label], report.upper[:, label]
    return bool(low[first] <= high[second] and low[second] <= high[first])


@dataclass(frozen=True)
class Pair:
    """Two labels whose estimates move together, or against each other.

    Attributes
    ----------
    first, second : int
    correlation : float
        Of the estimates over the batches.
    of_steps : float or None
        Of the moves from batch to batch: what is left when both follow a trend. None without
        an order.
    chance : float
        Share of such findings that are expected to be chance (Benjamini and Hochberg).
    """

    first: int
    second: int
    correlation: float
    of_steps: float | None
    chance: float


def moving_together(report: BatchReport, most: int = 12) -> list[Pair]:
    """The pairs of labels with the strongest correlation over the batches.

    Only labels that vary more than their intervals are wide take part; none with fewer than
    `FEWEST_BATCHES` batches.

    Notes
    -----
    O(n_labels^2 x n_batches). The test treats batches as independent, which months with a trend
    are not; `of_steps` is the more careful figure then.
    """
    labels = _varying(report)
    if len(report.batches) < FEWEST_BATCHES or len(labels) < 2:
        return []
    values = report.point[:, labels]
    first, second = np.triu_indices(len(labels), k=1)
    correlations = _correlations(values)[first, second]
    moves = np.diff(values, axis=0)
    of_steps = _correlations(moves)[first, second] if report.ordered else None
    chance = false_discovery_control(_p_values(correlations, len(values)))
    order = np.argsort(-np.abs(correlations), kind="stable")[:most]
    return [
        Pair(
            int(labels[first[one]]),
            int(labels[second[one]]),
            float(correlations[one]),
            None if of_steps is None else float(of_steps[one]),
            float(chance[one]),
        )
        for one in order
    ]


def _varying(report: BatchReport) -> npt.NDArray[np.int64]:
    spread = report.point.std(axis=0)
    if report.lower is None or report.upper is None or report.level is None:
        return np.flatnonzero(spread > _STILL)
    deviations = float(ndtri(0.5 + report.level / 2))
    noise = (report.upper - report.lower).mean(axis=0) / (2 * deviations)
    return np.flatnonzero((spread > noise) & (spread > 1e-9))


def _correlations(values: Floats) -> Floats:
    """Correlations of columns; 0 where a column does not vary."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(np.asarray(np.corrcoef(values, rowvar=False)))


def _p_values(correlations: Floats, n: int) -> Floats:
    safe = np.clip(correlations, -1 + 1e-12, 1 - 1e-12)
    return 2 * t.sf(np.abs(safe) * np.sqrt((n - 2) / (1 - safe**2)), n - 2)


#: A table with more cells than this helps nobody; the figures are in the result file.
MOST_CELLS = 20_000


def prevalence_table(report: BatchReport, batch: int) -> str:
    """The estimates of one batch as HTML: a row per label, with a bar; the script can change it."""
    top, root = top_of(report), is_skewed(report)
    heads = [f"0 to {100 * top:.3g} %", "estimate", *_interval_head(report), "training", "change"]
    cells = "".join(
        f'<th scope="col" data-column="{number}">{escape(text)}</th>'
        for number, text in enumerate(heads)
    )
    rows = "".join(_row(report, batch, label, top, root) for label in range(len(report.labels)))
    caption = "Prevalence per label beside training"
    return (
        f'<div class="scroll tall" role="region" tabindex="0" aria-label="{caption}">'
        f'<table id="prevalence-table" data-top="{top:g}" data-width="{BAR_WIDTH:g}">'
        f'<caption><span>{caption}, <span id="shown-batch">{escape(report.batches[batch])}'
        "</span></span></caption>"
        f'<thead><tr><th scope="col">label</th>{cells}</tr></thead><tbody>{rows}</tbody></table>'
        "</div>"
    )


def _interval_head(report: BatchReport) -> list[str]:
    if report.lower is None:
        return []
    return ["interval" if report.level is None else f"{100 * report.level:g} % interval"]


def _row(report: BatchReport, batch: int, label: int, top: float, root: bool) -> str:
    change = report.change[batch, label]
    clear = ' class="clear"' if report.beyond[batch, label] else ""
    interval = (
        f'<td data-field="interval">{escape(interval_text(report, batch, label))}</td>'
        if report.lower is not None
        else ""
    )
    return (
        f'<tr data-label="{label}"><th scope="row">{escape(report.labels[label])}</th>'
        f'<td class="chart">{interval_bar(report, batch, label, top, root=root)}</td>'
        f'<td data-field="point">{share_text(report.point[batch, label])}</td>{interval}'
        f"<td>{share_text(report.training[label])}</td>"
        f'<td data-field="change"{clear}>{points_text(change)}</td></tr>'
    )


def _grid(
    caption: str,
    stub: str,
    heads: Sequence[str],
    lines: Sequence[tuple[str, Sequence[str]]],
    notes: Sequence[str] = (),
) -> Grid:
    rows = tuple(GridLine(name, tuple(GridCell(text) for text in texts)) for name, texts in lines)
    return Grid(caption, stub, (tuple(map(Heading, heads)),), (GridGroup(rows),), tuple(notes))


def movers_grid(report: BatchReport, batch: int, labels: Sequence[int]) -> Grid:
    """The labels that have moved farthest since training."""
    lines = [
        (
            report.labels[label],
            (
                share_text(report.training[label]),
                share_text(report.point[batch, label]),
                points_text(report.change[batch, label]),
                _factor(report.training[label], report.point[batch, label]),
                "yes" if report.beyond[batch, label] else "no",
            ),
        )
        for label in labels
    ]
    heads = ("training", report.batches[batch], "change, points", "times", "beyond interval")
    note = "Beyond interval: the training prevalence lies outside the interval of the estimate."
    return _grid(
        f"Biggest movers since training, {report.batches[batch]}", "label", heads, lines, [note]
    )


def _factor(before: float, after: float) -> str:
    return "–" if before <= 0 else f"{after / before:.2f}"  # noqa: RUF001


def steps_grid(report: BatchReport, found: Sequence[LargestChange]) -> Grid:
    """The largest moves from one batch to the next."""
    lines = [
        (
            report.labels[step.label],
            (
                f"{report.batches[step.start]} to {report.batches[step.start + 1]}",
                share_text(report.point[step.start, step.label]),
                share_text(report.point[step.start + 1, step.label]),
                points_text(step.change),
                "yes" if step.clear else "no",
            ),
        )
        for step in found
    ]
    heads = ("batches", "before", "after", "change, points", "intervals apart")
    return _grid("Biggest steps from one batch to the next", "label", heads, lines)


def pairs_grid(report: BatchReport, pairs: Sequence[Pair]) -> Grid:
    """Labels that move together."""
    lines = [
        (
            f"{report.labels[pair.first]} and {report.labels[pair.second]}",
            (
                "together" if pair.correlation > 0 else "apart",
                number(pair.correlation, 2),
                number(pair.of_steps, 2),
                number(pair.chance, 3),
            ),
        )
        for pair in pairs
    ]
    heads = ("move", "correlation", "of the steps", "chance")
    notes = [
        f"Correlation of the estimates over {len(report.batches)} batches; of the steps: of the "
        "moves from batch to batch, which a common trend does not raise.",
        "Chance: share of findings this strong that are expected to be chance, if batches were "
        "independent of each other (Benjamini and Hochberg).",
    ]
    return _grid("Labels that move together or apart", "labels", heads, lines, notes)


def drivers_grid(drivers: Drivers) -> Grid:
    """The features that push one label's scores up or down."""
    lines = [
        (
            one.name,
            (f"{one.push:+.3f}", f"{one.training:.4f}", f"{one.batch:.4f}"),
        )
        for one in drivers.drivers
    ]
    heads = ("push on the score", "mean in training", "mean in the batch")
    return _grid(f"{drivers.label}, {drivers.batch}", "feature", heads, lines)


def scores_grid(report: BatchReport, batch: int, labels: Sequence[int]) -> Grid:
    """How much of each estimate is the movement of the scores, and how much the correction."""
    counted = report.point if report.counted is None else report.counted
    lines = [
        (
            report.labels[label],
            (
                share_text(report.training[label]),
                share_text(counted[batch, label]),
                share_text(report.point[batch, label]),
                points_text(counted[batch, label] - report.training[label]),
                points_text(report.point[batch, label] - counted[batch, label]),
            ),
        )
        for label in labels
    ]
    heads = ("training", "uncorrected", "estimate", "scores moved", "correction adds")
    return _grid(f"Scores and correction, {report.batches[batch]}", "label", heads, lines)


def sizes_grid(report: BatchReport) -> Grid:
    """Batches, their sizes, how well they fit the training data, and how far they have moved."""
    heads = ["items", "shift", "clearly moved"]
    fits = report.p_value is not None
    lines = []
    for batch, name in enumerate(report.batches):
        texts = [
            count(int(report.sizes[batch])),
            f"{100 * abs(report.change[batch]).mean():.1f}",
            count(int(report.beyond[batch].sum())) if report.lower is not None else "–",  # noqa: RUF001
        ]
        if report.p_value is not None:
            texts.append(number(float(report.p_value[batch]), 3))
        lines.append((name, texts))
    notes = [
        "Shift: mean absolute difference between estimate and training, in points. Clearly moved: "
        "labels whose training prevalence lies outside the interval."
    ]
    if fits:
        heads.append("fit, p")
        notes.append(
            "Fit: how probable a batch this odd would be if its items looked like training items "
            "of the same labels. Values below .01 are a reason for doubt."
        )
    return _grid("Batches", "batch", heads, lines, notes)


def all_estimates(report: BatchReport) -> Grid:
    """Every estimate, in percent: a row per label, a column per batch."""
    lines = [
        (
            name,
            (
                f"{100 * report.training[label]:.1f}",
                *(
                    f"{100 * report.point[batch, label]:.1f}"
                    for batch in range(len(report.batches))
                ),
            ),
        )
        for label, name in enumerate(report.labels)
    ]
    return _grid("All estimates, in percent", "label", ("training", *report.batches), lines)


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
        assets=["batch_report"],
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
    parts: list[SectionPart] = [figure, movers_grid(report, batch, labels)]
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
    parts: list[SectionPart] = []
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
    lines = tuple(GridLine(name, (GridCell(value),)) for name, value in report.provenance.items())
    words = (
        "The method assumes that the batches differ from the training data in their label mix, "
        "and that items with the same labels look alike in both. If labels have changed their "
        "look (new products, new wording), estimates and intervals are off, and nothing in the "
        "unlabelled batch can tell for certain."
    )
    if not lines:
        return Section("How the numbers were made", (words,))
    grid = Grid("Provenance", "what", ((Heading("value", left=True),),), (GridGroup(lines),))
    return Section("How the numbers were made", (words, grid))
