"""Model: a preparation and a fitted quantifier in one file that is safe to share."""

from prevalens.model.model import Model
from prevalens.model.summary import TrainingSummary
from prevalens.model.writing import writing

__all__ = ["Model", "TrainingSummary", "writing"]
