"""The types that a model file may hold beyond those skops trusts, one by one.

skops trusts numpy arrays, scipy sparse matrices and the estimators of scikit-learn. A new part of a
method must be added here, or its models cannot be saved; a test walks the whole catalogue.
"""

from __future__ import annotations

__all__ = ["TRUSTED"]

TRUSTED: tuple[str, ...] = (
    "prevalens.aggregators._sld_rule.Rule",
    "prevalens.aggregators.adjusted.ACC",
    "prevalens.aggregators.adjusted.PACC",
    "prevalens.aggregators.baseline.TrainingPrevalence",
    "prevalens.aggregators.calibrated.PAV",
    "prevalens.aggregators.clusterers.KMeansClusters",
    "prevalens.aggregators.clusterers.RandomClusters",
    "prevalens.aggregators.counting.CC",
    "prevalens.aggregators.counting.PCC",
    "prevalens.aggregators.hdx.HDx",
    "prevalens.aggregators.hdx._Dense",
    "prevalens.aggregators.hdy.HDy",
    "prevalens.aggregators.lpq.LPQ",
    "prevalens.aggregators.lpq._Inner",
    "prevalens.aggregators.multiclass.MulticlassPACC",
    "prevalens.aggregators.multiclass.MulticlassPCC",
    "prevalens.aggregators.regressors.NormalisedLasso",
    "prevalens.aggregators.regressors.NormalisedRidge",
    "prevalens.aggregators.regressors.PrevalenceForest",
    "prevalens.aggregators.rq.RQ",
    "prevalens.aggregators.sld.SLD",
    "prevalens.aggregators.state_logistic.StateLogistic",
    "prevalens.aggregators.svr_regressors.BatchedLinearSVR",
    "prevalens.aggregators.svr_regressors.ChainedSVR",
    "prevalens.aggregators.svr_regressors.StackedSVR",
    "prevalens.classifiers.chain.Chain",
    "prevalens.classifiers.chain.ChainEnsemble",
    "prevalens.classifiers.clems.CLEMS",
    "prevalens.classifiers.clusters.LabelSpaceClusters",
    "prevalens.classifiers.knn.MLkNN",
    "prevalens.classifiers.labelled.CrossFit",
    "prevalens.classifiers.labelled.HoldOut",
    "prevalens.classifiers.logistic.BatchedLogistic",
    "prevalens.classifiers.logistic.MultinomialLogistic",
    "prevalens.classifiers.per_label.PerLabel",
    "prevalens.classifiers.powerset.Powerset",
    "prevalens.classifiers.rakel.RAkEL",
    "prevalens.classifiers.stacked.Stacked",
    "prevalens.classifiers.trees.Forest",
    "prevalens.classifiers.trees.Tree",
    "prevalens.preparation.cells.CategoryEncoder",
    "prevalens.preparation.cells.DateEncoder",
    "prevalens.preparation.cells.NumberEncoder",
    "prevalens.preparation.cells.TextEncoder",
    "prevalens.preparation.cells.VectorEncoder",
    "prevalens.preparation.columns.ColumnPreparation",
    "prevalens.preparation.given.ArrayPreparation",
    "prevalens.preparation.given.GivenPreparation",
    "prevalens.preparation.text.TextPreparation",
    "prevalens.quantifier.Quantifier",
    # The nodes of a decision tree; `prevalens.model.trees` checks them after loading.
    "sklearn.tree._tree.Tree",
)
