"""The baseline every method must beat: the training prevalence, whatever the sample."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from prevalens.aggregators.base import Aggregator
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores

__all__ = ["TrainingPrevalence"]


class TrainingPrevalence(Aggregator):
    """Answer the training prevalence for every sample (known as MLPE).

    Its absolute error is the shift itself.

    Notes
    -----
    Right only if nothing moved. For rare labels and small samples it is harder to beat than it
    looks.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> items = Scores([[0.3], [0.7]], kind="features")
    >>> naive = TrainingPrevalence().fit(items, [[1, 0], [1, 1]])
    >>> naive.aggregate(items, Samples.whole(2)).tolist()
    [[1.0, 0.5]]
    """

    code = "naive"
    consumes: Kind = "features"
    joint = False

    def _fit(self, scores: Scores, Y: npt.NDArray[np.int8]) -> None:
        """The prevalence is kept by the base class."""

    def _aggregate(self, scores: Scores, samples: Samples) -> npt.NDArray[np.float64]:  # noqa: ARG002
        return np.tile(self.prevalence_, (len(samples), 1))
