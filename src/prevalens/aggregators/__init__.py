"""Aggregators: from the scores of items to the prevalences of samples.

`CC`, `PCC`, `ACC`, `PACC`, `SLD`, `HDy` and `PAV` look at each label alone. `RQ`, `LPQ` and
`ScenarioMixture` look at labels together. `HDx` and `QuapyPerLabel` read the items themselves
and need no classifier, and `ExternalQuantifier` lets any other quantifier in.
`TrainingPrevalence` is the baseline to beat.
"""

from prevalens.aggregators.adjusted import ACC, PACC
from prevalens.aggregators.base import Aggregator
from prevalens.aggregators.calibrated import PAV
from prevalens.aggregators.counting import CC, PCC, TrainingPrevalence
from prevalens.aggregators.external import ExternalQuantifier, QuantifierLike, QuapyPerLabel
from prevalens.aggregators.lpq import LPQ
from prevalens.aggregators.matching import HDx, HDy
from prevalens.aggregators.mixture.aggregator import ScenarioMixture
from prevalens.aggregators.regressors import (
    REGRESSORS,
    BatchedLinearSVR,
    ChainedSVR,
    NormalisedLasso,
    NormalisedRidge,
    PrevalenceForest,
    StackedSVR,
)
from prevalens.aggregators.rq import RQ
from prevalens.aggregators.sld import SLD
from prevalens.labelsets import KMeansClusters, RandomClusters

__all__ = [
    "ACC",
    "CC",
    "LPQ",
    "PACC",
    "PAV",
    "PCC",
    "REGRESSORS",
    "RQ",
    "SLD",
    "Aggregator",
    "BatchedLinearSVR",
    "ChainedSVR",
    "ExternalQuantifier",
    "HDx",
    "HDy",
    "KMeansClusters",
    "NormalisedLasso",
    "NormalisedRidge",
    "PrevalenceForest",
    "QuantifierLike",
    "QuapyPerLabel",
    "RandomClusters",
    "ScenarioMixture",
    "StackedSVR",
    "TrainingPrevalence",
]
