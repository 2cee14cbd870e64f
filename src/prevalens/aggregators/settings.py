"""Many settings of one aggregator, with the work shared where it can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from prevalens.aggregators.base import Aggregator
from prevalens.scores import Scores

__all__ = ["fit_aggregators"]


def fit_aggregators(
    aggregator: Aggregator,
    settings: Sequence[Mapping[str, Any]],
    scores: Scores,
    Y: npt.NDArray[np.int8],
) -> Iterator[Aggregator]:
    """Fit one aggregator with each of several settings; yields them in that order.

    An aggregator with a method ``fit_settings(settings, scores, Y)`` of its own shares the work
    (RQ fits its base once for all settings of its regressor); any other is cloned and fitted
    once per setting.
    """
    if hasattr(aggregator, "fit_settings"):
        yield from aggregator.fit_settings(settings, scores, Y)
        return
    for setting in settings:
        yield clone(aggregator).set_params(**setting).fit(scores, Y)
