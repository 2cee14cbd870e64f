"""A method of one's own, beside those of the catalogue.

To see it, and to run it against two others:

    prevalens --with examples/own_method.py methods stretched
    prevalens --with examples/own_method.py bench examples/own_plan.toml --html own.html
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from prevalens import Samples, Scores, register
from prevalens.aggregators import Aggregator


@register
class Stretched(Aggregator):
    """The mean posterior, moved away from the training prevalence, which it is drawn towards.

    Parameters
    ----------
    factor : float
        0 is the training prevalence, 1 is PCC; above 1 it moves further than PCC.
    """

    code = "stretched"
    consumes = "posteriors"
    joint = False
    # No held-out scores are needed: `fit` notes the prevalences of Y alone.
    needs_labelled_scores = False

    def __init__(self, factor: float = 1.5) -> None:
        self.factor = factor

    def _fit(self, scores: Scores, Y: npt.NDArray[np.int8]) -> None:
        pass

    def _aggregate(self, scores: Scores, samples: Samples) -> npt.NDArray[np.float64]:
        moved = samples.mean(scores.values) - self.prevalence_
        return np.asarray(self.prevalence_ + self.factor * moved)
