"""Preparation: from texts or columns to a matrix, fitted once and without labels.

`ColumnGuard` stands behind it, and knows the labels: it sets columns aside that have drifted.
"""

from prevalens.preparation.base import CellError, Preparation, Unfamiliar
from prevalens.preparation.column_guard import ColumnGuard, DriftWarning, guard_of
from prevalens.preparation.columns import ColumnPreparation
from prevalens.preparation.given import ArrayPreparation, GivenPreparation
from prevalens.preparation.text import TextPreparation

__all__ = [
    "ArrayPreparation",
    "CellError",
    "ColumnGuard",
    "ColumnPreparation",
    "DriftWarning",
    "GivenPreparation",
    "Preparation",
    "TextPreparation",
    "Unfamiliar",
    "guard_of",
]
