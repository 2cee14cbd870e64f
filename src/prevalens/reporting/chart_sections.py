"""Sections of charts: of errors, of data, of samples and of estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy.typing as npt

from prevalens.collection import Collection
from prevalens.records import Result
from prevalens.reporting.checking import ordered_datasets
from prevalens.reporting.formatting import dataset_title
from prevalens.reporting.page import Figure, Gallery, Section
from prevalens.reporting.plots import (
    bias,
    correlation_map,
    curves_of,
    diagonal,
    error_against_shift,
    prevalence_histogram,
    shift_distribution,
)
from prevalens.reporting.plots.estimates import Estimates
from prevalens.reporting.words import measure_long, measure_short

__all__ = [
    "correlation_section",
    "curves_section",
    "estimates_section",
    "prevalence_section",
    "shift_section",
]

# Many bands over each other hide the lines.
_MOST_BANDS = 4


def curves_section(results: Sequence[Result], *, metric: str = "ae") -> Section:
    """How errors grow with shift, a chart per dataset.

    Parameters
    ----------
    results : sequence of Result
        Of one protocol.
    metric : str
    """
    figures = []
    for dataset in ordered_datasets(results):
        curves = curves_of([r for r in results if r.dataset == dataset], metric=metric)
        svg = error_against_shift(
            curves,
            title=dataset_title(dataset),
            y_name=measure_long(metric),
            band=(0.1, 0.9) if len(curves) <= _MOST_BANDS else None,
        )
        figures.append(Figure(svg, name=f"error-against-shift-{metric}-{dataset}"))
    caption = (
        "Mean error by shift, over twenty intervals of equal width. Bands, where there are any, "
        "hold the middle 80 % of the samples."
    )
    title = f"Error against shift, {measure_short(metric)}"
    return Section(title, (Gallery(tuple(figures), caption),))


def prevalence_section(prevalences: Mapping[str, npt.ArrayLike]) -> Section:
    """How frequent labels are, a histogram per dataset.

    Parameters
    ----------
    prevalences : mapping of str to array of float, shape (n_labels,)
        By dataset, in the order to show them.
    """
    figures = [
        Figure(
            prevalence_histogram(values, title=dataset_title(name)),
            name=f"prevalence-{name}",
        )
        for name, values in prevalences.items()
    ]
    caption = (
        "Share of a dataset's labels by how frequent they are in its training part. The intervals "
        "are narrower where most labels are."
    )
    return Section("How frequent labels are", (Gallery(tuple(figures), caption),))


def shift_section(shifts: Mapping[str, Mapping[str, npt.ArrayLike]]) -> Section:
    """How far samples have moved under several protocols, a chart per dataset.

    Parameters
    ----------
    shifts : mapping of str to mapping of str to array of float, shape (n_samples,)
        By dataset, and there by protocol; the first protocol sets the regimes.
    """
    figures = [
        Figure(shift_distribution(own, title=dataset_title(name)), name=f"shift-{name}")
        for name, own in shifts.items()
    ]
    caption = (
        "Distribution of shift, the mean absolute difference between a sample's label shares and "
        "those of the training part. The dashed lines divide the range of the first protocol's "
        "shifts into low, mid and high."
    )
    return Section("How far samples have moved", (Gallery(tuple(figures), caption),))


def correlation_section(collections: Mapping[str, Collection], *, most: int = 40) -> Section:
    """Which labels occur together, a map per dataset.

    Parameters
    ----------
    collections : mapping of str to Collection
        By dataset.
    most : int
        Labels to draw at most.
    """
    figures = [
        Figure(
            correlation_map(
                own.label_correlation(), own.labels, title=dataset_title(name), most=most
            ),
            name=f"correlation-{name}",
        )
        for name, own in collections.items()
    ]
    caption = (
        "Correlation (phi coefficient) between labels: orange for labels that occur together, blue "
        "for labels that avoid each other. Related labels stand side by side. Point at a cell for "
        "its value."
    )
    return Section("Which labels occur together", (Gallery(tuple(figures), caption),))


def estimates_section(estimates: Estimates, shift: npt.ArrayLike, *, name: str = "") -> Section:
    """Estimates against the truth: the diagonal plot and the bias by shift.

    Parameters
    ----------
    estimates : mapping of str to (true, estimated), arrays of float, shape (n_samples, n_labels)
        By method, all on the same samples.
    shift : array of float, shape (n_samples,)
    name : str
        The dataset, for the titles and file names.
    """
    suffix = f"-{name}" if name else ""
    figures = (
        Figure(diagonal(estimates), name=f"diagonal{suffix}"),
        Figure(bias(estimates, shift), name=f"bias{suffix}"),
    )
    caption = (
        "Left: mean estimate by true prevalence, over all samples and labels, with the middle 80 % "
        "of the estimates; perfect estimates lie on the dashed diagonal. Right: estimated minus "
        "true prevalence by shift; boxes hold the middle half of the values, lines in them mark "
        "the median, whiskers leave out five percent at each end."
    )
    title = f"Estimates on {dataset_title(name)}" if name else "Estimates"
    return Section(title, (Gallery(figures, caption),))
