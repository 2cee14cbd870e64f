"""Protocols: how samples are drawn from a pool, ``draw(Y, rng) -> Samples``.

============================ ======================================================
`MLAPP`                      one label at a time steered through a grid of prevalences
`Natural`                    uniform: no shift
`TwoLabels`                  two labels steered at once
`LabelsetWeights`            random weights on whole label sets
`DirichletLabelsets`         uniform points of the simplex over label sets (UPP)
`LabelTilt`                  every label's odds moved at random
`CovariateTilt`              the features moved, the labels follow
`ChronologicalWindows`       windows of equal size in order of time
`Periods`                    one sample per day, month, batch
============================ ======================================================
"""

from prevalens.protocols.base import Protocol
from prevalens.protocols.ml_app import MLAPP, Unreachable
from prevalens.protocols.simplex import DirichletLabelsets
from prevalens.protocols.temporal import ChronologicalWindows, Periods
from prevalens.protocols.tilts import CovariateTilt, LabelsetWeights, LabelTilt, Natural
from prevalens.protocols.two_labels import TwoLabels

__all__ = [
    "MLAPP",
    "ChronologicalWindows",
    "CovariateTilt",
    "DirichletLabelsets",
    "LabelTilt",
    "LabelsetWeights",
    "Natural",
    "Periods",
    "Protocol",
    "TwoLabels",
    "Unreachable",
]
