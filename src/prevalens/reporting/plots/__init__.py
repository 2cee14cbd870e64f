"""Charts as SVG: each takes plain arrays and gives a text that stands in a page as it is."""

from prevalens.reporting.plots.correlation import correlation_map
from prevalens.reporting.plots.curves import curves_of, error_against_shift
from prevalens.reporting.plots.estimates import bias, diagonal
from prevalens.reporting.plots.histograms import prevalence_histogram, shift_distribution

__all__ = [
    "bias",
    "correlation_map",
    "curves_of",
    "diagonal",
    "error_against_shift",
    "prevalence_histogram",
    "shift_distribution",
]
