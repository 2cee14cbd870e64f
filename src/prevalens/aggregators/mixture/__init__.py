"""Scenario mixture: estimate prevalences under the changes of the labels that explain a sample.

`aggregator` is the public class; `scenarios` weighs the kinds of change in `shifts` by the moments
of the labelled scores; `calibration` sets the widths of intervals and bands.
"""

from prevalens.aggregators.mixture.aggregator import ScenarioMixture

__all__ = ["ScenarioMixture"]
