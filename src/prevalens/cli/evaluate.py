"""`prevalens evaluate`: measure whether a model can be trusted on data like this."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prevalens.cli import calls
from prevalens.cli.console import plain_table, printed_warnings
from prevalens.cli.options import labelled_options, protocol_option, sample_options
from prevalens.cli.results import Results, result_options
from prevalens.model.progress import progress_bar

if TYPE_CHECKING:
    from prevalens.model.trust import Error, TrustReport
    from prevalens.reports.trust_page import Verdict

_STYLES = {"yes": "green", "with care": "yellow", "no": "red"}
_SIGNS = {"yes": "+", "with care": "!", "no": "-"}
#: Labels that the table on the screen shows.
_MOST_LABELS = 20


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("labelled", nargs=-1, required=True)
@labelled_options
@protocol_option
@click.option("--interval", default=0.9, show_default=True, help="Level of the intervals.")
@sample_options(
    1000,
    size="Items per sample. Default: 100, or a third of the items if there are fewer than 300.",
    samples="Samples per family of shifts.",
)
@result_options("Write a report to this HTML file.")
def command(model: Path, labelled: tuple[str, ...], results: Results, **settings: Any) -> None:
    """Measure whether MODEL can be trusted on data like that in LABELLED.

    LABELLED holds items that the model has not seen, with their labels: columns of 0 and 1 that
    have the names of the model's labels (or are named with --labels), or a column of --tags.
    Samples with another label mix are drawn from them. The model's estimates are compared
    with the truth, with counts of the classifier's votes, and with the training prevalence.
    """
    results.check(model, *labelled)
    with printed_warnings(), progress_bar() as progress:
        report = calls.evaluate_files(model, labelled, progress=progress, **settings)
    answer = calls.verdict(report)
    everything = {**verdict_fields(answer), **report.to_dict()}
    results.write(lambda: calls.trust_page(report), lambda: label_rows(report), everything)
    if not results.as_json:
        _print(report, answer, results.html)


def verdict_fields(answer: Verdict) -> dict[str, Any]:
    """The verdict and its reasons, for JSON."""
    reasons = [{"grade": reason.grade, "text": reason.text} for reason in answer.reasons]
    return {"verdict": answer.grade, "headline": answer.headline, "reasons": reasons}


def label_rows(report: TrustReport) -> list[dict[str, Any]]:
    """The errors of each label, for tables."""
    return [
        {
            "label": row.label,
            "positives": row.positives,
            "error": row.error,
            "n_moved": row.n_moved,
            **{f"moved_{name.replace(' ', '_')}": value for name, value in row.moved.items()},
            "coverage": row.coverage,
        }
        for row in report.by_label()
    ]


def _print(report: TrustReport, answer: Verdict, html: Path | None) -> None:
    console = Console(highlight=False)
    console.print(Text(answer.headline, style=f"bold {_STYLES[answer.grade]}"))
    for reason in answer.reasons:
        console.print(Text(f"  {_SIGNS[reason.grade]} {reason.text}", style=""))
    ranges = report.shift_ranges()
    by_shift = {
        f"{regime} ({100 * low:.1f} to {100 * high:.1f})": report.by_shift()[regime]
        for regime, (low, high) in ranges.items()
    }
    console.print()
    console.print(_errors("Mean absolute error, in points, by shift", by_shift, report))
    console.print(_errors("By kind of shift, in points", report.by_protocol(), report))
    if report.coverage_by_move():
        console.print(_intervals(report))
    console.print(_labels(report))
    if html is not None:
        console.print(Text(f"Report: {html}"))


def _errors(title: str, rows: dict[str, dict[str, Error]], report: TrustReport) -> Table:
    table = plain_table(["samples"], [*report.compared, "samples"], title=title)
    for row, errors in rows.items():
        means = [errors[name].mean for name in report.compared]
        cells = [
            Text(f"{100 * mean:.2f}", style="bold" if mean == min(means) else "") for mean in means
        ]
        table.add_row(Text(row), *cells, f"{errors[report.compared[0]].n_samples:,}")
    return table


def _intervals(report: TrustReport) -> Table:
    title = f"Intervals that aim at {100 * (report.level or 0.9):g} %, by how far a label moved"
    table = plain_table(
        ["moved"], ("hold the truth", "mean width, points", "intervals"), title=title
    )
    for row, (share, width, number) in report.coverage_by_move().items():
        table.add_row(Text(row), f"{100 * share:.0f} %", f"{100 * width:.1f}", f"{number:,}")
    return table


def _labels(report: TrustReport) -> Table:
    worst = sorted(report.by_label(), key=lambda row: -row.error)
    title = "By label, in points, largest error first"
    if len(worst) > _MOST_LABELS:
        title += f" ({_MOST_LABELS} of {len(worst)})"
    heads = ("positives", "error", "when it moves", "training then", "intervals hold")
    table = plain_table(["label"], heads, title=title)
    for row in worst[:_MOST_LABELS]:
        moved, training = row.moved[report.compared[0]], row.moved[report.compared[-1]]
        figures = [f"{100 * value:.2f}" for value in (row.error, moved, training)]
        coverage = "" if row.coverage != row.coverage else f"{100 * row.coverage:.0f} %"
        cells = [text.replace("nan", "-") for text in (*figures, coverage)]
        table.add_row(Text(row.label), f"{row.positives:,}", *cells)
    return table
