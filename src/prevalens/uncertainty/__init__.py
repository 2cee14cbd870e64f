"""Intervals for every quantifier, goodness of fit, and labels from the target."""

from prevalens.uncertainty.bootstrap import Bootstrap, plain_estimate
from prevalens.uncertainty.goodness_of_fit import warn_of_misfit
from prevalens.uncertainty.target import (
    label_scores,
    ppi_mean,
    with_labels,
    with_labels_of_batches,
)

__all__ = [
    "Bootstrap",
    "label_scores",
    "plain_estimate",
    "ppi_mean",
    "warn_of_misfit",
    "with_labels",
    "with_labels_of_batches",
]
