"""How sure an estimate is: intervals for every quantifier, and labels from the target."""

from prevalens.uncertainty.bootstrap import Bootstrap
from prevalens.uncertainty.warning import warn_of_misfit

__all__ = ["Bootstrap", "warn_of_misfit"]
