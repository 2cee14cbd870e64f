"""Tables of the report on batches."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from prevalens.reporting.batch_charts import (
    BAR_WIDTH,
    interval_bar,
    is_skewed,
    points_text,
    share_text,
    top_of,
)
from prevalens.reporting.batch_data import BatchReport, Drivers
from prevalens.reporting.batch_numbers import Pair, Step
from prevalens.reporting.formatting import count, number
from prevalens.reporting.grid import Entry, Grid, Group, Heading, Line

__all__ = [
    "MOST_CELLS",
    "all_estimates",
    "drivers_grid",
    "interval_text",
    "movers_grid",
    "pairs_grid",
    "prevalence_table",
    "scores_grid",
    "sizes_grid",
    "steps_grid",
]

#: A table with more cells than this helps nobody; the figures are in the result file.
MOST_CELLS = 20_000


def interval_text(report: BatchReport, batch: int, label: int) -> str:
    """An interval in words; empty without intervals."""
    if report.lower is None or report.upper is None:
        return ""
    low, high = report.lower[batch, label], report.upper[batch, label]
    return f"{share_text(low)} to {share_text(high)}"


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
    rows = tuple(Line(name, tuple(Entry(text) for text in texts)) for name, texts in lines)
    return Grid(caption, stub, (tuple(map(Heading, heads)),), (Group(rows),), tuple(notes))


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


def steps_grid(report: BatchReport, found: Sequence[Step]) -> Grid:
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
