"""Aggregators: from the scores of items to the prevalences of samples.

Most look at each label alone: counting (`CC`, `PCC`), adjusted counting (`ACC`, `PACC`, `RLLS`,
`EDy`, Forman's and Friedman's thresholds), likelihood (`SLD`, `KDEyML`), matching of histograms and
densities (`HDy`, `DyS`, `KDEyHD`), Bayesian posteriors (`BayesianCC`, `PQ`), and `PAV`. `RQ`,
`LPQ`, `ScenarioMixture` and `MulticalibratedPCC` look at labels together. `HDx` and
`QuapyPerLabel` read the items themselves and need no classifier, and `ExternalQuantifier` lets any
other quantifier in. `TrainingPrevalence` is the baseline to beat.
"""

from prevalens.aggregators.adjusted import ACC, PACC
from prevalens.aggregators.base import Aggregator
from prevalens.aggregators.bayes import PQ, BayesianCC
from prevalens.aggregators.calibrated import PAV, MulticalibratedPCC
from prevalens.aggregators.counting import CC, PCC, TrainingPrevalence
from prevalens.aggregators.energy import EDy
from prevalens.aggregators.external import ExternalQuantifier, QuantifierLike, QuapyPerLabel
from prevalens.aggregators.kernel_density import KDEyHD, KDEyML
from prevalens.aggregators.label_shift import RLLS
from prevalens.aggregators.lpq import LPQ
from prevalens.aggregators.matching import DyS, HDx, HDy
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
from prevalens.aggregators.thresholds import (
    T50,
    Friedman,
    MaxThreshold,
    MedianSweep,
    MedianSweep2,
    XThreshold,
)
from prevalens.labelsets import BalancedClusters, KMeansClusters, RandomClusters

__all__ = [
    "ACC",
    "CC",
    "LPQ",
    "PACC",
    "PAV",
    "PCC",
    "PQ",
    "REGRESSORS",
    "RLLS",
    "RQ",
    "SLD",
    "T50",
    "Aggregator",
    "BalancedClusters",
    "BatchedLinearSVR",
    "BayesianCC",
    "ChainedSVR",
    "DyS",
    "EDy",
    "ExternalQuantifier",
    "Friedman",
    "HDx",
    "HDy",
    "KDEyHD",
    "KDEyML",
    "KMeansClusters",
    "MaxThreshold",
    "MedianSweep",
    "MedianSweep2",
    "MulticalibratedPCC",
    "NormalisedLasso",
    "NormalisedRidge",
    "PrevalenceForest",
    "QuantifierLike",
    "QuapyPerLabel",
    "RandomClusters",
    "ScenarioMixture",
    "StackedSVR",
    "TrainingPrevalence",
    "XThreshold",
]
