"""The sentences that explain a table to someone who sees one for the first time."""

from __future__ import annotations

from prevalens.reporting.formatting import count
from prevalens.reporting.table import ResultTable, larger_is_better

__all__ = [
    "SUMMARY_TITLES",
    "about_marks",
    "about_samples",
    "about_shift",
    "about_summaries",
    "measure_long",
    "measure_short",
    "measure_title",
    "measure_words",
]

_MEASURES = {
    "ae": (
        "AE",
        "absolute error",
        "the distance between the estimated and the true share of a label, averaged over labels; "
        ".05 means that estimates are off by five percentage points on average",
    ),
    "rae": (
        "RAE",
        "relative absolute error",
        "the absolute error of each label relative to its true share (and to the share without "
        "it), averaged over labels; 1 means that errors are as large as the shares themselves, and "
        "rare labels weigh as much as frequent ones",
    ),
    "se": ("SE", "squared error", "the squared distance of shares, averaged over labels"),
    "nae": (
        "NAE",
        "normalised absolute error",
        "the absolute error divided by the largest one possible for the true shares, from 0 to 1",
    ),
    "nrae": (
        "NRAE",
        "normalised relative absolute error",
        "the relative absolute error divided by the largest one possible, from 0 to 1",
    ),
    "kld": (
        "KLD",
        "Kullback-Leibler divergence",
        "how badly the estimated shares describe the true ones, in nats, averaged over labels",
    ),
    "concordance": (
        "CR",
        "concordance ratio",
        "the smaller of the estimated and the true share divided by the larger one, averaged over "
        "labels; 1 is perfect",
    ),
}

#: What the summaries of a table are called.
SUMMARY_TITLES = {
    "pooled": "Average over samples",
    "mean": "Average over datasets",
    "rank": "Average rank",
}

_KINDS = {
    "pooled": "Average over samples counts every sample once, so that datasets with more samples "
    "in a regime weigh more; it is the average that the paper prints",
    "mean": "average over datasets counts every dataset once",
    "rank": "average rank is the mean place of a method among the others, 1 for the best",
}


def measure_short(metric: str) -> str:
    """Abbreviation of a measure."""
    return _MEASURES[metric][0] if metric in _MEASURES else metric


def measure_long(metric: str) -> str:
    """Name of a measure with its abbreviation.

    Examples
    --------
    >>> measure_long("ae")
    'absolute error (AE)'
    """
    if metric not in _MEASURES:
        return metric
    short, long, _ = _MEASURES[metric]
    return f"{long} ({short})"


def measure_title(metric: str) -> str:
    """Name of a measure, with a capital, for the beginning of a caption."""
    long = measure_long(metric)
    return long[0].upper() + long[1:]


def measure_words(metric: str) -> str:
    """A sentence or two on what a measure measures."""
    better = "More is better." if larger_is_better(metric) else "Less is better."
    if metric not in _MEASURES:
        return f"Figures are {metric}. {better}"
    return f"{measure_title(metric)}: {_MEASURES[metric][2]}. {better}"


def about_samples(table: ResultTable) -> str:
    """What a figure is the mean of."""
    totals = {
        dataset: sum(
            max((cell.n_samples for cell in row.cells if cell is not None), default=0)
            for row in table.rows
            if row.dataset == dataset
        )
        for dataset in table.datasets
    }
    fewest, most = min(totals.values()), max(totals.values())
    how_many = count(most) if fewest == most else f"{count(fewest)} to {count(most)}"
    return (
        f"Every figure is a mean over test samples, {how_many} per dataset. A sample is a batch of "
        "items, drawn from the test part so that its label mix is not the training part's; a "
        "method sees the items and estimates the share of each label."
    )


def about_shift() -> str:
    """What the shift regimes are."""
    return (
        "Shift is how far a sample's label shares have moved from those of the training part, as "
        "mean absolute difference. Low, mid and high are the three equal parts of the range of "
        "shifts that occur on a dataset."
    )


def about_marks() -> str:
    """What bold type and daggers mean."""
    return (
        "The best method of each dataset and regime is in bold. † and ‡ mark methods that are not "
        "clearly different from it by a Wilcoxon signed-rank test on the errors of the same "
        "samples: † stands for .001 < p < .05, ‡ for p ≥ .05. Without a mark, p < .001."
    )


def about_summaries(table: ResultTable) -> str:
    """What the averages at the end of a table are; empty if it has none."""
    kinds = dict.fromkeys(row.kind for row in table.summaries)
    if not kinds:
        return ""
    sizes = sorted({row.n_datasets for row in table.summaries})
    datasets = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else str(sizes[0])
    plural = "dataset" if datasets == "1" else "datasets"
    sentence = "; ".join(_KINDS[kind] for kind in kinds)
    return f"{sentence[0].upper()}{sentence[1:]}. They are over {datasets} {plural}."
