"""Classifiers: from one per label to natively multi-label, and the scores they give.

`PerLabel` learns each label alone. `Stacked`, `Chain`, `ChainEnsemble`, `MLkNN`, `Tree`,
`Forest`, `ExtraTrees`, `CLEMS`, `LabelSpaceClusters`, `Powerset`, `RAkEL`, `HOMER`,
`MLARAM`, `AdaBoostMH`, `RankSVM`, `MLTSVM`, `MLMPM` and `Funnelling` see labels together.
`Given` calibrates scores that were made elsewhere.
Any multi-label classifier of scikit-learn serves as well: `response` turns its answers into
`Scores`. `CrossFit` and `HoldOut` make labelled scores of items a classifier has not trained on.
"""

from prevalens.classifiers.aram import MLARAM
from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.classifiers.boosting import AdaBoostMH
from prevalens.classifiers.chain import Chain, ChainEnsemble
from prevalens.classifiers.clems import CLEMS
from prevalens.classifiers.ensemble import ClassifierEnsemble
from prevalens.classifiers.funnelling import Funnelling
from prevalens.classifiers.given import Given
from prevalens.classifiers.homer import HOMER
from prevalens.classifiers.knn import MLkNN
from prevalens.classifiers.logistic import BatchedLogistic
from prevalens.classifiers.margins import RankSVM
from prevalens.classifiers.minimax import MLMPM
from prevalens.classifiers.per_label import PerLabel
from prevalens.classifiers.powerset import LabelSpaceClusters, Powerset, RAkEL
from prevalens.classifiers.stacked import Stacked
from prevalens.classifiers.trees import ExtraTrees, Forest, Tree
from prevalens.classifiers.twin_svm import MLTSVM
from prevalens.crossfit import CrossFit, HoldOut, LabelledScores, Scheme
from prevalens.labelsets import RandomLabelsets, RandomPartition
from prevalens.response import is_joint, offers, response, train
from prevalens.solvers.multinomial import MultinomialLogistic

__all__ = [
    "CLEMS",
    "HOMER",
    "MLARAM",
    "MLMPM",
    "MLTSVM",
    "AdaBoostMH",
    "BatchedLogistic",
    "Chain",
    "ChainEnsemble",
    "ClassifierEnsemble",
    "CrossFit",
    "ExtraTrees",
    "Forest",
    "Funnelling",
    "Given",
    "HoldOut",
    "LabelSpaceClusters",
    "LabelledScores",
    "MLkNN",
    "MultiLabelClassifier",
    "MultinomialLogistic",
    "PerLabel",
    "Powerset",
    "RAkEL",
    "RandomLabelsets",
    "RandomPartition",
    "RankSVM",
    "Scheme",
    "Stacked",
    "Tree",
    "is_joint",
    "offers",
    "response",
    "train",
]
