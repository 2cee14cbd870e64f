"""How sure an estimate is: intervals for every quantifier, and labels from the target."""

from prevalens.uncertainty.bootstrap import Bootstrap, plain_intervals
from prevalens.uncertainty.target import ppi_mean, with_labels
from prevalens.uncertainty.warning import warn_of_misfit

__all__ = ["Bootstrap", "plain_intervals", "ppi_mean", "warn_of_misfit", "with_labels"]
