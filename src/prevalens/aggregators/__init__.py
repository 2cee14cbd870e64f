"""Aggregators: from the scores of items to the prevalences of samples.

`CC`, `PCC`, `ACC`, `PACC`, `SLD`, `HDy` and `PAV` look at each label alone. `RQ`, `LPQ` and
`ScenarioMixture` look at labels together. `HDx` and `QuapyPerLabel` read the items themselves
and need no classifier, and `Native` lets any other quantifier in. `TrainingPrevalence` is the
baseline to beat.
"""

from prevalens.aggregators.adjusted import ACC, PACC
from prevalens.aggregators.base import Aggregator
from prevalens.aggregators.baseline import TrainingPrevalence
from prevalens.aggregators.calibrated import PAV
from prevalens.aggregators.clusterers import KMeansClusters, RandomClusters
from prevalens.aggregators.counting import CC, PCC
from prevalens.aggregators.hdx import HDx
from prevalens.aggregators.hdy import HDy
from prevalens.aggregators.lpq import LPQ
from prevalens.aggregators.mixture import ScenarioMixture
from prevalens.aggregators.native import Native, QuantifierLike
from prevalens.aggregators.quapy_adapter import QuapyPerLabel
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
    "HDx",
    "HDy",
    "KMeansClusters",
    "Native",
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
