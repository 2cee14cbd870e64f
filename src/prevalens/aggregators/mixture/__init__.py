"""Scenario mixture: ask which change of the labels explains a sample, and what follows.

`aggregator` is the public class; `scenarios` weighs the kinds of change in `shifts` by the moments
of the labelled scores; `calibration` sets the widths of intervals and bands.
"""

from prevalens.aggregators.mixture.aggregator import ScenarioMixture

__all__ = ["ScenarioMixture"]
