"""Intervals for every quantifier, drift, the alarm, and labels from the target."""

from prevalens.uncertainty.bootstrap import Bootstrap
from prevalens.uncertainty.difference import Difference
from prevalens.uncertainty.drift import Backtest
from prevalens.uncertainty.goodness_of_fit import warn_of_misfit
from prevalens.uncertainty.label_noise import LabelNoise
from prevalens.uncertainty.misclassification import AdjustedPrevalence, Rate, adjust_prevalence
from prevalens.uncertainty.target import (
    ScoredLabels,
    label_scores,
    ppi_mean,
    with_labels,
    with_labels_of_batches,
    with_labels_of_sums,
)

__all__ = [
    "AdjustedPrevalence",
    "Backtest",
    "Bootstrap",
    "Difference",
    "LabelNoise",
    "Rate",
    "ScoredLabels",
    "adjust_prevalence",
    "label_scores",
    "ppi_mean",
    "warn_of_misfit",
    "with_labels",
    "with_labels_of_batches",
    "with_labels_of_sums",
]
