"""The report on batches as one page: tables, charts and the data of its script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from prevalens.model.model import Model
from prevalens.model.result import FEWEST_FOR_VERDICT, BatchResult, Drivers
from prevalens.reports import batch_charts, batches
from prevalens.reports.batch_charts import points_range, points_text, share_text
from prevalens.reports.grid import MISSING, Grid, GridCell, GridRow, count, number, provenance_grid
from prevalens.reports.headline import headline
from prevalens.reports.page import Figure, Gallery, Section, SectionPart, page
from prevalens.reports.render import CAPTIONS, render, to_html
from prevalens.types import Floats

#: Most cells of the table of all estimates; larger results are in the file of `quantify -o`.
MOST_CELLS = 20_000
#: Most batches of a page, most estimates in its script's data, and fewest batches all the same.
_MOST_BATCHES, _MOST_DATA, _FEWEST_BATCHES = 366, 50_000, 12
_MOST_NOTICES = 30
_TEXTS = CAPTIONS["batches"]


def prevalence_table(report: BatchResult, batch: int) -> Markup:
    """The estimates of one batch as HTML: a row per label, with a bar; the script can change it.

    Supported moves come first, see `movers`.
    """
    top, root = batch_charts.top_of(report), batch_charts.is_skewed(report)
    headings = [f"0 to {100 * top:.3g} %", "estimate", "training", "change"]
    if report.lower is not None:
        headings.insert(2, f"{_level_text(report)}interval")
    return render(
        "batch_table.html",
        report=report,
        batch=batch,
        headings=headings,
        order=batches.movers(report, batch),
        change=report.change[batch],
        moved=report.moved[batch],
        most=_MOST_ROWS,
        top=top,
        width=batch_charts.BAR_WIDTH,
        bar=lambda label: batch_charts.interval_bar(report, batch, label, top, root=root),
        interval=lambda label: batch_charts.interval_text(report, batch, label),
        share=share_text,
        points=points_text,
    )


def movers_grid(report: BatchResult, batch: int, labels: Sequence[int]) -> Grid:
    """The labels that are farthest from training, supported moves first."""
    name, point, training = report.batches[batch], report.point[batch], report.training
    lower, upper = (None if end is None else end[batch] - training for end in report.bands)
    rows = [
        (
            report.labels[label],
            share_text(training[label]),
            share_text(point[label]),
            points_text(point[label] - training[label]),
            MISSING if lower is None or upper is None else points_range(lower[label], upper[label]),
            _SUPPORT[int(report.moved[batch, label])],
        )
        for label in labels
    ]
    headings = ("training", name, "change, points", "band of the change", "supported")
    title = "Biggest movers since training" if report.ordered else "Farthest from training"
    return Grid.from_rows(f"{title}, {name}", "label", headings, rows, [_flag_note(report)])


_SUPPORT = {1: "▲ higher", -1: "▼ lower", 0: "no"}


def _flag_note(report: BatchResult) -> str:
    text: str = _TEXTS["flag"]
    return text.format(level=_level_text(report), fewest=FEWEST_FOR_VERDICT)


def steps_grid(report: BatchResult, changes: Sequence[batches.LargestChange]) -> Grid:
    """The largest changes from one batch to the next."""
    rows = [
        (
            report.labels[step.label],
            f"{report.batches[step.start]} to {report.batches[step.start + 1]}",
            share_text(report.point[step.start, step.label]),
            share_text(report.point[step.start + 1, step.label]),
            points_text(step.change),
            points_range(step.lower, step.upper) or MISSING,
            "yes" if step.clear else "no",
        )
        for step in changes
    ]
    headings = ("batches", "before", "after", "change, points", "interval", "supported")
    return Grid.from_rows("Biggest steps from one batch to the next", "label", headings, rows)


def difference_table(report: BatchResult, first: int, second: int) -> Markup:
    """The differences of two batches as HTML: a row per label; the script can change it."""
    found = report.difference(report.batches[first], report.batches[second])
    low, high = found.lower, found.upper
    return render(
        "batch_difference.html",
        report=report,
        difference=found,
        level=_level_text(report),
        most=_MOST_ROWS,
        interval=lambda label: _points_interval(low, high, label),
        support=_SUPPORT,
        share=share_text,
        points=points_text,
    )


def _points_interval(low: Floats | None, high: Floats | None, label: int) -> str:
    return (
        "" if low is None or high is None else points_range(float(low[label]), float(high[label]))
    )


def difference_grid(report: BatchResult, first: int, second: int) -> Grid:
    """The largest differences of two batches, supported ones first."""
    found = report.difference(report.batches[first], report.batches[second])
    rows = [
        (
            row["label"],
            points_text(row["difference"]),
            MISSING if row["lower"] is None else points_range(row["lower"], row["upper"]),
            _SUPPORT[row["supported"]],
        )
        for row in found.to_rows()[:_MOST_MOVERS]
    ]
    headings = ("difference", f"{_level_text(report)}interval", "supported")
    return Grid.from_rows(f"{found.names[1]} minus {found.names[0]}", "label", headings, rows)


def pairs_grid(report: BatchResult, pairs: Sequence[batches.Pair]) -> Grid:
    """Labels that move together by more than chance."""
    rows = [
        (
            f"{report.labels[pair.first]} and {report.labels[pair.second]}",
            "together" if pair.correlation > 0 else "apart",
            number(pair.correlation, 2),
            number(pair.chance, 3),
        )
        for pair in pairs
    ]
    headings = ("move" if report.ordered else "vary", "correlation", "chance")
    note = _TEXTS["pairs_time" if report.ordered else "pairs_groups"]
    notes = [note.format(n_batches=int(report.judged.sum()))]
    verb = "move" if report.ordered else "vary"
    return Grid.from_rows(f"Labels that {verb} together or apart", "labels", headings, rows, notes)


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
    columns: dict[str, Sequence[str]] = {
        "items": [count(int(size)) for size in report.sizes],
        "shift": [f"{points:.1f}" for points in 100 * np.abs(report.change).mean(axis=1)],
        "supported": _n_supported(report),
    }
    notes = [_TEXTS["sizes"]]
    if report.n_labelled is not None:
        more = [report.more_labels_of(i) for i in range(len(report.batches))]
        columns["labelled"] = [count(int(n)) for n in report.n_labelled]
        columns["more to halve"] = [MISSING if m is None else count(m) for m in more]
        notes.append(_TEXTS["labelled"])
    if report.p_value is not None:
        columns["alarm, p"] = [
            number(float(p), 3) + (" *" if alarms else "")
            for p, alarms in zip(report.p_value, report.alarms, strict=True)
        ]
        notes += [_TEXTS["alarm"], _TEXTS["alarming"]][: 1 + bool(report.alarms.any())]
    cells = zip(*columns.values(), strict=True)
    rows: list[GridRow] = [
        (name, *(GridCell(cell, aside=bool(alarm)) for cell in row))
        for name, alarm, row in zip(report.batches, report.alarms, cells, strict=True)
    ]
    stub = "batch" if report.ordered else "group"
    return Grid.from_rows("Batches" if report.ordered else "Groups", stub, columns, rows, notes)


def _n_supported(report: BatchResult) -> list[str]:
    """How many moves each batch has that its bands support; none without a verdict."""
    n_moved = (report.moved != 0).sum(axis=1).tolist()
    verdict = report.judged & (report.lower is not None)
    return [count(n) if known else MISSING for n, known in zip(n_moved, verdict, strict=True)]


def all_estimates(report: BatchResult) -> Grid:
    """Every estimate, in percent: a row per label, a column per batch.

    Supported moves are bold, batches that raise the alarm grey.
    """
    alarms, moved = report.alarms, report.moved
    rows: list[GridRow] = [
        (
            report.labels[label],
            f"{100 * report.training[label]:.1f}",
            *(
                GridCell(f"{100 * share:.1f}", bold=bool(move), aside=bool(alarm))
                for share, move, alarm in zip(
                    report.point[:, label], moved[:, label], alarms, strict=True
                )
            ),
        )
        for label in batches.movers_over_all(report)
    ]
    headings = ("training", *report.batches)
    notes = [f"Bold: supported. {_TEXTS['key_alarm'] if alarms.any() else ''}".strip()]
    return Grid.from_rows("All estimates, in percent", "label", headings, rows, notes)


_MOST_TRENDS = 12
#: Labels and batches that the map shows, and groups that a small chart shows.
_MOST_IN_MAP, _MOST_COLUMNS, _MOST_BARS = 150, 60, 25
_MOST_MOVERS = 12
#: Rows that long tables show until the reader asks for all.
_MOST_ROWS = 25


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
    report = batches.by_size(report)
    most = min(_MOST_BATCHES, max(_FEWEST_BATCHES, _MOST_DATA // len(report.labels)))
    part = batches.shown(report, most)
    lead = render(
        "batch_lead.html",
        headline=headline(report),
        facts=list(_facts(report, batches.focus(report))),
        n_warnings=sum(notice.level == "warning" for notice in report.notices),
        left_out=_left_out(report, part),
        data=_script_data(part),
    )
    return page(report.title, batch_sections(part), lead=lead, assets=["batch_report"])


def _left_out(report: BatchResult, part: BatchResult) -> str:
    """Which batches are shown; empty if all are."""
    n, n_shown = len(report.batches), len(part.batches)
    text: str = _TEXTS["shown_time" if report.ordered else "shown_groups"]
    return "" if n == n_shown else text.format(n=count(n), n_shown=n_shown)


def batch_sections(report: BatchResult) -> list[Section]:
    """The sections of the report, in their order."""
    report = batches.by_size(report)
    batch = batches.focus(report)
    several = len(report.batches) > 1
    words = CAPTIONS["sections" if report.ordered else "group_sections"]
    sections = {
        "labels": [_prevalence(report, batch)],
        "trend": _trend(report) if several else (),
        "movers": _movers(report, batch),
        "differences": [_differences(report)] if several else (),
        "together": _together(report),
        "drivers": [_drivers(report, batch)],
        "warnings": _warnings(report),
        "estimates": _estimates(report) if several else (),
        "made": _made(report),
    }
    return [Section(words[name], tuple(parts)) for name, parts in sections.items() if parts]


def _facts(report: BatchResult, batch: int) -> Iterator[tuple[str, str]]:
    """The most important numbers, each with its unit; moves by the ends of their bands."""
    several = "batches" if report.ordered else "groups"
    yield count(len(report.batches)), several if len(report.batches) > 1 else "batch"
    yield count(int(report.sizes.sum())), "items"
    if report.n_labelled is not None:
        yield count(int(report.n_labelled.sum())), "of them labelled"
    yield count(len(report.labels)), "labels"
    if report.alarms.any():
        yield f"{report.alarms.sum()} of {len(report.batches)}", f"{several} raise the alarm"
    if report.lower is None or not report.judged[batch]:
        return
    name = report.batches[batch]
    verb = "clearly moved" if report.ordered else "clearly differ"
    yield count(int((report.moved[batch] != 0).sum())), f"labels {verb}, {name}"
    lower, upper = (end[batch] - report.training for end in report.bands if end is not None)
    for sign in (1, -1):
        found = [j for j in batches.movers(report, batch) if report.moved[batch, j] == sign]
        if found:
            yield (
                points_range(lower[found[0]], upper[found[0]]),
                f"points: {report.labels[found[0]]}",
            )


def _level_text(report: BatchResult) -> str:
    return "" if report.level is None else f"{100 * report.level:g} % "


def _script_data(report: BatchResult) -> dict[str, object]:
    """The data of the page's script, as values that JSON can hold."""
    band_lower, band_upper = report.bands
    arrays = {
        "training": report.training,
        "point": report.point,
        "lower": report.lower,
        "upper": report.upper,
        "band_lower": band_lower,
        "band_upper": band_upper,
        "reach": batches.reach(report),
        "counted": report.counted,
        "true": report.true,
    }
    return {
        "labels": list(report.labels),
        "batches": list(report.batches),
        "sizes": report.sizes.tolist(),
        "ordered": report.ordered,
        "level": report.level,
        "alarms": report.alarms.tolist(),
        "judged": report.judged.tolist(),
        "moved": report.moved.tolist(),
        **{key: part if part is None else part.round(5).tolist() for key, part in arrays.items()},
    }


def _prevalence(report: BatchResult, batch: int) -> Markup:
    labels = batches.movers(report, batch, _MOST_MOVERS)
    drawn = batch_charts.movers_chart(
        report, batch, labels, f"From training to {report.batches[batch]}"
    )
    return render(
        "batch_prevalence.html",
        report=report,
        batch=batch,
        skewed=batch_charts.is_skewed(report),
        table=prevalence_table(report, batch),
        chart=Figure(drawn, _TEXTS["movers"], name="movers"),
        sizes=to_html(sizes_grid(report)),
    )


def _trend(report: BatchResult) -> list[SectionPart]:
    """Lines over time, or bars of groups; then the map of all labels and batches."""
    labels = batches.movers_over_all(report, _MOST_TRENDS)
    figures = tuple(Figure(_small(report, label), name=f"trend-{label}") for label in labels)
    caption = _TEXTS["trends" if report.ordered else "bars"]
    caption += "; dotted: the truth." if report.true is not None and report.ordered else "."
    n_shown, n_labels = len(labels), len(report.labels)
    if not report.ordered and len(report.batches) > _MOST_BARS:
        caption += _TEXTS["bars_most"].format(n_shown=_MOST_BARS, n_groups=len(report.batches))
    if report.alarms.any():
        caption += f" {_TEXTS['key_alarm']}"
    if n_shown < n_labels:
        caption += _TEXTS["trends_most"].format(n_shown=n_shown, n_labels=n_labels)
    controls = render("batch_trend.html", report=report, first=labels[0])
    return [controls, Gallery(figures, caption), _map(report)]


def _small(report: BatchResult, label: int) -> str:
    if report.ordered:
        return batch_charts.small_trend(report, label)
    return batch_charts.small_bars(report, label, _MOST_BARS)


def _map(report: BatchResult) -> Figure:
    n_labels, n_batches = len(report.labels), len(report.batches)
    labels, n_columns = batches.movers_over_all(report, _MOST_IN_MAP), min(n_batches, _MOST_COLUMNS)
    caption: str = _TEXTS["map"]
    if len(labels) < n_labels:
        left = {"n_shown": len(labels), "n_labels": n_labels, "n_left": n_labels - len(labels)}
        caption += _TEXTS["map_most"].format(**left)
    if n_columns < n_batches:
        left = {"n_left": n_batches - n_columns, "n_batches": n_batches}
        caption += _TEXTS["map_most_batches"].format(**left)
    drawn = batch_charts.change_map(report, labels, n_columns)
    return Figure(drawn, caption, name="change-map", wide=True)


def _movers(report: BatchResult, batch: int) -> list[SectionPart]:
    parts: list[SectionPart] = [
        movers_grid(report, batch, batches.movers(report, batch, _MOST_MOVERS))
    ]
    if len(report.batches) > 1 and report.ordered:
        parts.append(steps_grid(report, batches.steps(report)))
    return parts


def _differences(report: BatchResult) -> Markup:
    """The last batch against the one before and the first, or the two largest groups.

    Batches that get no verdict are passed over if there are two others.
    """
    judged = np.flatnonzero(report.judged).tolist()
    shown = judged if len(judged) > 1 else list(range(len(report.batches)))
    first, second = shown[-2:] if report.ordered else (shown[1], shown[0])
    since = Markup("")
    if report.ordered and len(shown) > 2:
        since = to_html(difference_grid(report, shown[0], second))
    return render(
        "batch_differences.html",
        report=report,
        first=first,
        second=second,
        table=difference_table(report, first, second),
        since=since,
        note=_TEXTS["differences"],
    )


def _together(report: BatchResult) -> list[SectionPart]:
    n_batches, fewest = int(report.judged.sum()), batches.FEWEST_BATCHES
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
    shown = [render("notices.html", notices=notices[:_MOST_NOTICES], headline="")]
    more = len(notices) - _MOST_NOTICES
    return [*shown, _TEXTS["more_notices"].format(n=count(more))] if more > 0 else [*shown]


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
