"""Options that several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import click

from prevalens.tables.opening import Reading

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator; the help shows them in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def listed(values: Sequence[str]) -> list[str] | None:
    """Names from options that may be repeated and may hold commas; None if there are none."""
    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    return names or None


def _columns(name: str, text: str) -> Decorator:
    """An option that names columns; the command gets them as a list, or None."""
    return click.option(
        name,
        multiple=True,
        metavar="COL,...",
        callback=lambda _context, _option, values: listed(values),
        help=text,
    )


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How files are to be read; the command gets one `reading`."""

    @functools.wraps(command)
    def reads(*, delimiter: Any, encoding: Any, sheet: Any, embeddings: Any, **others: Any) -> Any:
        reading = Reading(
            delimiter=delimiter, encoding=encoding, sheet=sheet, embeddings=embeddings
        )
        return command(reading=reading, **others)

    options = together(
        click.option("--delimiter", help="Column delimiter; detected if omitted."),
        click.option("--encoding", help="Encoding of the files; UTF-8 if omitted."),
        click.option("--sheet", help="Sheet of an Excel workbook; the first if omitted."),
        click.option(
            "--embeddings",
            metavar="FILE.npy",
            help="Array with a row of numbers per item, as the feature column 'embeddings'; for "
            "several files a pattern such as vectors/*.npy, where * is the name of each.",
        ),
    )
    return options(reads)


date_form_option = click.option(
    "--date-form",
    metavar="FORM",
    help="Format of the dates, such as %d/%m/%Y; detected if omitted.",
)
scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS|local",
    help="Score the files on the Dask cluster of the scheduler at this address, such as "
    "tcp://host:8786, or on Dask workers of this machine; every worker must see the files.",
)
training_scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS|local",
    help="Train on the Dask cluster of the scheduler at this address, such as tcp://host:8786, or "
    "on Dask workers of this machine; the result is the same.",
)
#: Which items are a batch.
batch_options = together(
    click.option("--by", metavar="COL", help="Column whose values are the batches."),
    click.option(
        "--min-items",
        type=click.IntRange(min=0),
        default=10,
        show_default=True,
        help="Values of --by with fewer items become one batch, at the end; 1 keeps all apart.",
    ),
    click.option("--by-time", metavar="COL", help="Date column; every period is a batch."),
    click.option(
        "--freq",
        type=click.Choice(["D", "W", "M", "Q", "Y"], case_sensitive=False),
        help="Length of the periods: day, week, month (the default), quarter, year.",
    ),
    date_form_option,
)

#: Which columns are items.
item_options = together(
    click.option("--text", metavar="COL", help="Text column."),
    _columns(
        "--features",
        "Feature columns, besides that of --text; all columns that are not labels if both are "
        "omitted.",
    ),
    click.option(
        "--id", metavar="COL", help="Identifier column; used neither as feature nor as label."
    ),
    click.option(
        "--group",
        metavar="COL",
        help="Column of groups, such as authors; no method is tested on a group it was trained on.",
    ),
)

#: Where labels are, and how files are to be read.
labelled_options = together(
    _columns("--labels", "Label columns, which hold 0 or 1; patterns such as topic_* are allowed."),
    click.option("--tags", metavar="COL", help="Column that lists the labels of each item."),
    click.option("--sep", default=",", show_default=True, help="Separator of the tags."),
    reading_options,
)

#: Answers of labellers; texts and features are used besides these only if they are named.
score_options = together(
    click.option(
        "--scores",
        multiple=True,
        metavar="PATTERN",
        callback=lambda _context, _option, values: [listed([value]) for value in values] or None,
        help="Score columns of a labeller, such as 'p_*': probabilities or votes, empty if it did "
        "not answer. Matched with the labels by name. Repeat for several labellers. With --text or "
        "--features, the items themselves are learnt from, too.",
    ),
    click.option(
        "--scores-tags",
        multiple=True,
        metavar="COL",
        callback=lambda _context, _option, values: list(values) or None,
        help="Column of a labeller's answers, such as billing;login or billing:0.9. May be "
        "repeated.",
    ),
)

#: Errors of the people who labelled the items.
noise_options = together(
    _columns(
        "--second-labels",
        "Label columns of a second annotator, matched with --labels by name; empty where there is "
        "no second answer. Errors of the labels are then corrected.",
    ),
    click.option(
        "--second-tags",
        metavar="COL",
        help="The same as a column of tags; - means no label, an empty cell no answer.",
    ),
    click.option(
        "--agreement",
        metavar="SHARE",
        help="Instead: share of the answers that two annotators agree in, such as 0.95 or "
        "'0.95 (0.93-0.97)'.",
    ),
    click.option("--kappa", metavar="VALUE", help="Instead: their Cohen's kappa, such as 0.7."),
    click.option(
        "--errors",
        type=click.Choice(["balanced", "symmetric", "misses"]),
        help="Assumption about errors: labels are missed as often as set wrongly (balanced, the "
        "default), items with and without a label are judged wrongly at the same rate, or labels "
        "are only ever missed.",
    ),
)

protocol_option = click.option(
    "--protocol",
    "protocols",
    default="ml-app,natural,label-tilt",
    show_default=True,
    help="Families of shifts, with commas: ml-app, natural, label-tilt, labelset-weights, "
    "dirichlet, covariate-tilt, two-labels.",
)


def sample_options(count: int, *, size: str, samples: str) -> Decorator:
    """How samples are drawn; `count` is the default number, the others are lines of the help."""
    return together(
        click.option("--size", type=int, help=size),
        click.option("--samples", "n_samples", default=count, show_default=True, help=samples),
        click.option("--seed", default=0, show_default=True, help="Random seed."),
    )
