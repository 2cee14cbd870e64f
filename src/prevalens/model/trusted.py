"""The types of this package that a model file may hold, one by one."""

from __future__ import annotations

__all__ = ["TRUSTED"]

TRUSTED: tuple[str, ...] = (
    "prevalens.aggregators.counting.PCC",
    "prevalens.aggregators.rq.RQ",
    "prevalens.aggregators.svr_regressors.BatchedLinearSVR",
    "prevalens.classifiers.logistic.BatchedLogistic",
    "prevalens.classifiers.per_label.PerLabel",
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
)
