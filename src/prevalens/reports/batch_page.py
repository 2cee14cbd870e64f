"""The report on batches as one page: tables, charts and the data of its script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from prevalens.model.model import Model
from prevalens.model.result import BatchResult, Drivers
from prevalens.reports import batch_charts, batches
from prevalens.reports.batch_charts import points_text, share_text
from prevalens.reports.grid import MISSING, Grid, count, number, provenance_grid
from prevalens.reports.page import Figure, Gallery, Section, SectionPart, page
from prevalens.reports.render import CAPTIONS, render, to_html

#: Most cells of the table of all estimates; larger results are in the file of `quantify -o`.
MOST_CELLS = 20_000
_TEXTS = CAPTIONS["batches"]


def prevalence_table(report: BatchResult, batch: int) -> Markup:
    """The estimates of one batch as HTML: a row per label, with a bar; the script can change it."""
    top, root = batch_charts.top_of(report), batch_charts.is_skewed(report)
    headings = [f"0 to {100 * top:.3g} %", "estimate", "training", "change"]
    if report.lower is not None:
        headings.insert(2, f"{_level_text(report)}interval")
    return render(
        "batch_table.html",
        report=report,
        batch=batch,
        headings=headings,
        change=report.change[batch],
        beyond=report.beyond[batch],
        top=top,
        width=batch_charts.BAR_WIDTH,
        bar=lambda label: batch_charts.interval_bar(report, batch, label, top, root=root),
        interval=lambda label: batch_charts.interval_text(report, batch, label),
        share=share_text,
        points=points_text,
    )


def movers_grid(report: BatchResult, batch: int, labels: Sequence[int]) -> Grid:
    """The labels that have moved farthest since training."""
    name, point, training = report.batches[batch], report.point[batch], report.training
    beyond = report.beyond[batch]
    rows = [
        (
            report.labels[label],
            share_text(training[label]),
            share_text(point[label]),
            points_text(point[label] - training[label]),
            MISSING if training[label] <= 0 else f"{point[label] / training[label]:.2f}",
            "yes" if beyond[label] else "no",
        )
        for label in labels
    ]
    headings = ("training", name, "change, points", "times", "beyond interval")
    caption = f"Biggest movers since training, {name}"
    return Grid.from_rows(caption, "label", headings, rows, [_TEXTS["beyond"]])


def steps_grid(report: BatchResult, changes: Sequence[batches.LargestChange]) -> Grid:
    """The largest changes from one batch to the next."""
    rows = [
        (
            report.labels[step.label],
            f"{report.batches[step.start]} to {report.batches[step.start + 1]}",
            share_text(report.point[step.start, step.label]),
            share_text(report.point[step.start + 1, step.label]),
            points_text(step.change),
            "yes" if step.clear else "no",
        )
        for step in changes
    ]
    headings = ("batches", "before", "after", "change, points", "intervals apart")
    return Grid.from_rows("Biggest steps from one batch to the next", "label", headings, rows)


def pairs_grid(report: BatchResult, pairs: Sequence[batches.Pair]) -> Grid:
    """Labels that move together."""
    rows = [
        (
            f"{report.labels[pair.first]} and {report.labels[pair.second]}",
            "together" if pair.correlation > 0 else "apart",
            number(pair.correlation, 2),
            number(pair.of_steps, 2),
            number(pair.chance, 3),
        )
        for pair in pairs
    ]
    headings = ("move", "correlation", "of the steps", "chance")
    notes = [note.format(n_batches=len(report.batches)) for note in _TEXTS["pairs"]]
    return Grid.from_rows("Labels that move together or apart", "labels", headings, rows, notes)


def drivers_grid(drivers: Drivers) -> Grid:
    """The features that push one label's scores up or down."""
    rows = [
        (driver.name, f"{driver.push:+.3f}", f"{driver.training:.4f}", f"{driver.batch:.4f}")
        for driver in drivers.drivers
    ]
    headings = ("push on the score", "mean in training", "mean in the batch")
    return Grid.from_rows(f"{drivers.label}, {drivers.batch}", "feature", headings, rows)


def scores_grid(report: BatchResult, batch: int, labels: Sequence[int]) -> Grid:
    """How much of each estimate is the movement of the scores, and how much the correction."""
    point, training = report.point[batch], report.training
    counted = point if report.counted is None else report.counted[batch]
    rows = [
        (
            report.labels[label],
            *map(share_text, (training[label], counted[label], point[label])),
            points_text(counted[label] - training[label]),
            points_text(point[label] - counted[label]),
        )
        for label in labels
    ]
    headings = ("training", "uncorrected", "estimate", "scores moved", "correction adds")
    caption = f"Scores and correction, {report.batches[batch]}"
    return Grid.from_rows(caption, "label", headings, rows)


def sizes_grid(report: BatchResult) -> Grid:
    """Batches, their sizes, how far they have moved, and the p-values of the alarm."""
    shift = 100 * np.abs(report.change).mean(axis=1)
    moved = report.beyond.sum(axis=1)
    rows = [
        [name, count(int(size)), f"{points:.1f}", MISSING if report.lower is None else count(n)]
        for name, size, points, n in zip(
            report.batches, report.sizes, shift, moved.tolist(), strict=True
        )
    ]
    headings = ["items", "shift", "clearly moved"]
    notes = [_TEXTS["sizes"]]
    if report.n_labelled is not None:
        more = [report.more_labels_of(i) for i in range(len(rows))]
        rows = [
            [*row, count(int(n)), MISSING if m is None else count(m)]
            for row, n, m in zip(rows, report.n_labelled, more, strict=True)
        ]
        headings += ["labelled", "more to halve"]
        notes.append(_TEXTS["labelled"])
    if report.p_value is not None:
        rows = [
            [*row, number(float(p), 3) + (" *" if alarms else "")]
            for row, p, alarms in zip(rows, report.p_value, report.alarms, strict=True)
        ]
        headings.append("alarm, p")
        notes += [_TEXTS["alarm"], _TEXTS["alarming"]][: 1 + bool(report.alarms.any())]
    return Grid.from_rows("Batches", "batch", headings, rows, notes)


def all_estimates(report: BatchResult) -> Grid:
    """Every estimate, in percent: a row per label, a column per batch."""
    columns = np.vstack([report.training, report.point]).T
    rows = [
        (name, *(f"{100 * share:.1f}" for share in shares))
        for name, shares in zip(report.labels, columns, strict=True)
    ]
    headings = ("training", *report.batches)
    return Grid.from_rows("All estimates, in percent", "label", headings, rows)


_MOST_TRENDS = 12
_MOST_IN_MAP = 40
_MOST_MOVERS = 12


def batch_page(report: BatchResult) -> str:
    """The report on batches as one HTML file.

    Parameters
    ----------
    report : BatchResult

    Returns
    -------
    str
        HTML with its styles, script and data inside; it loads nothing from a server. The script
        lets the reader sort and filter; tables and charts are readable without it.

    Examples
    --------
    >>> report = BatchResult(["spam"], ["May", "June"], [90, 80], [[0.2], [0.3]], [0.25])
    >>> batch_page(report)[:15]
    '<!DOCTYPE html>'
    """
    batch = batches.focus(report)
    lead = render(
        "batch_lead.html",
        sentence=_sentence(report, batch),
        facts=list(_facts(report, batch)),
        n_warnings=sum(notice.level == "warning" for notice in report.notices),
        data=_script_data(report),
    )
    return page(report.title, batch_sections(report), lead=lead, assets=["batch_report"])


def batch_sections(report: BatchResult) -> list[Section]:
    """The sections of the report, in their order."""
    batch = batches.focus(report)
    several = len(report.batches) > 1
    sections = {
        "Prevalence per label": _prevalence(report, batch),
        "Trend over batches": _trend(report) if several else (),
        "Biggest movers": _movers(report, batch),
        "Labels that move together": _together(report),
        "What drives the estimates": [_drivers(report, batch)],
        "Data warnings": _warnings(report),
        "All estimates": _estimates(report) if several else (),
        "How the numbers were made": _made(report),
    }
    return [Section(title, tuple(parts)) for title, parts in sections.items() if parts]


def _facts(report: BatchResult, batch: int) -> Iterator[tuple[str, str]]:
    """The most important numbers, each with its unit."""
    change = report.change[batch]
    yield count(len(report.batches)), "batches" if len(report.batches) > 1 else "batch"
    yield count(int(report.sizes.sum())), "items"
    if report.n_labelled is not None:
        yield count(int(report.n_labelled.sum())), "of them labelled"
    yield count(len(report.labels)), "labels"
    if report.lower is not None:
        yield count(int(report.beyond[batch].sum())), "labels clearly moved"
    for label, sign in ((int(change.argmax()), 1), (int(change.argmin()), -1)):
        if sign * change[label] > 0:
            yield points_text(change[label]), f"points: {report.labels[label]}"


def _sentence(report: BatchResult, batch: int) -> str:
    n_moved, first = int(report.beyond[batch].sum()), batches.movers(report, batch, 1)[0]
    text: str = _TEXTS["lead_moved" if n_moved else "lead_still"]
    alarm = _TEXTS["lead_alarm"] if report.alarms[batch] else ""
    return ((_TEXTS["lead"] if report.lower is None else text) + alarm).format(
        batch=report.batches[batch],
        level=_level_text(report),
        n_moved=n_moved,
        n_labels=len(report.labels),
        label=report.labels[first],
        verb="risen" if report.change[batch, first] > 0 else "fallen",
        before=share_text(report.training[first]),
        after=share_text(report.point[batch, first]),
    )


def _level_text(report: BatchResult) -> str:
    return "" if report.level is None else f"{100 * report.level:g} % "


def _script_data(report: BatchResult) -> dict[str, object]:
    """The data of the page's script, as values that JSON can hold."""
    arrays = {
        "training": report.training,
        "point": report.point,
        "lower": report.lower,
        "upper": report.upper,
        "counted": report.counted,
        "true": report.true,
    }
    return {
        "labels": list(report.labels),
        "batches": list(report.batches),
        "sizes": report.sizes.tolist(),
        "ordered": report.ordered,
        "level": report.level,
        **{key: part if part is None else part.round(5).tolist() for key, part in arrays.items()},
    }


def _prevalence(report: BatchResult, batch: int) -> list[SectionPart]:
    table = prevalence_table(report, batch)
    shown = {
        "report": report,
        "batch": batch,
        "skewed": batch_charts.is_skewed(report),
        "table": table,
    }
    return [render("batch_prevalence.html", **shown), sizes_grid(report)]


def _trend(report: BatchResult) -> list[SectionPart]:
    labels = batches.movers_over_all(report, _MOST_TRENDS)
    figures = tuple(
        Figure(batch_charts.small_trend(report, label), name=f"trend-{label}") for label in labels
    )
    caption = _TEXTS["trends"] + ("; dotted: the truth." if report.true is not None else ".")
    n_shown, n_labels = len(labels), len(report.labels)
    if n_shown < n_labels:
        caption += _TEXTS["trends_most"].format(n_shown=n_shown, n_labels=n_labels)
    drawn = batch_charts.change_map(report, batches.movers_over_all(report, _MOST_IN_MAP))
    chart = Figure(drawn, _TEXTS["map"], name="change-map")
    controls = render("batch_trend.html", report=report, first=labels[0])
    return [controls, Gallery(figures, caption), chart]


def _movers(report: BatchResult, batch: int) -> list[SectionPart]:
    labels = batches.movers(report, batch, _MOST_MOVERS)
    drawn = batch_charts.movers_chart(
        report, batch, labels, f"From training to {report.batches[batch]}"
    )
    figure = Figure(drawn, _TEXTS["movers"], name="movers")
    parts: list[SectionPart] = [figure, movers_grid(report, batch, labels)]
    if len(report.batches) > 1 and report.ordered:
        parts.append(steps_grid(report, batches.steps(report)))
    return parts


def _together(report: BatchResult) -> list[SectionPart]:
    n_batches, fewest = len(report.batches), batches.FEWEST_BATCHES
    if n_batches < fewest:
        verb = "batch says" if n_batches == 1 else "batches say"
        return [_TEXTS["too_few"].format(n_batches=n_batches, verb=verb, fewest=fewest)]
    pairs = batches.moving_together(report)
    return [pairs_grid(report, pairs) if pairs else _TEXTS["no_pairs"]]


def _drivers(report: BatchResult, batch: int) -> Markup:
    scores = None
    if report.counted is not None:
        scores = to_html(scores_grid(report, batch, batches.movers(report, batch, _MOST_MOVERS)))
    grids = [drivers_grid(drivers) for drivers in report.drivers]
    return render("batch_drivers.html", grids=grids, html=to_html, scores=scores)


def _warnings(report: BatchResult) -> list[SectionPart]:
    if not report.notices:
        return [_TEXTS["no_warnings"]]
    notices = sorted(report.notices, key=lambda notice: notice.level != "warning")
    return [render("notices.html", notices=notices, headline="")]


def _estimates(report: BatchResult) -> list[SectionPart]:
    if report.point.size > MOST_CELLS:
        return [_TEXTS["too_many"].format(n_estimates=count(report.point.size))]
    return [all_estimates(report)]


def _made(report: BatchResult) -> list[SectionPart]:
    lines = dict(report.provenance)
    drift = str(lines.pop("drift", ""))
    return [_TEXTS["assumption"], *([drift] if drift else []), *provenance_grid(lines)]


_MOST_DRIVEN = 6


def report_of(
    result: BatchResult,
    model: Model | None = None,
    *,
    true: npt.ArrayLike | None = None,
    title: str = "Prevalence of labels",
) -> BatchResult:
    """Add the drivers, the truth, the provenance and the title of a report to a batch result.

    Parameters
    ----------
    result : BatchResult
    model : Model, optional
        The model that made the result, to show what drives the estimates.
    true : array of float, shape (n_batches, n_labels), optional
        The true prevalences, if they are known.
    title : str
    """
    drivers: tuple[Drivers, ...] = ()
    if model is not None and result.feature_means is not None:
        batch = batches.focus(result)
        means, labels = result.feature_means[batch], batches.movers(result, batch, _MOST_DRIVEN)
        drivers = batches.drivers_of(model, means, labels=labels, batch=result.batches[batch])
    provenance = _provenance_lines(result.provenance, model)
    return replace(
        result,
        true=true,  # type: ignore[arg-type]
        drivers=drivers,
        provenance=provenance,
        title=title,
    )


def report_html(
    result: BatchResult,
    model: Model | None = None,
    *,
    true: npt.ArrayLike | None = None,
    title: str = "Prevalence of labels",
) -> str:
    """The report on a batch result as one HTML file; see `report_of`."""
    return batch_page(report_of(result, model, true=true, title=title))


def _provenance_lines(given: Mapping[str, object], model: Model | None) -> dict[str, str]:
    """The provenance of a result and its model, as lines of text."""
    own = {name: _provenance_text(value) for name, value in given.items() if name != "model"}
    own["estimated"] = own.pop("created", "")
    if model is not None:
        summary = model.summary
        own |= {
            "method": f"{summary.method} ({summary.group})",
            "preparation": summary.preparation,
            "training": f"{summary.n_items:,} items, {len(model.labels)} labels, "
            f"{summary.cardinality:.2f} labels per item",
            "model trained": str(model.provenance.get("created", "")),
        }
    return {name: value for name, value in own.items() if value}


def _provenance_text(value: object) -> str:
    match value:
        case {"name": name}:
            return str(name)
        case Mapping():
            return ", ".join(map(_provenance_text, value.values()))
        case list() | tuple():
            shown = ", ".join(map(_provenance_text, value[:10]))
            return f"{shown} and {len(value) - 10} more" if len(value) > 10 else shown
        case int():
            return f"{value:,}"
        case _:
            return "" if value is None else str(value)
