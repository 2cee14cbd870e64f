"""Preparation: from texts or columns to a matrix, fitted once and without labels."""

from prevalens.preparation.base import CellError, Preparation, Unfamiliar
from prevalens.preparation.columns import ColumnPreparation
from prevalens.preparation.given import ArrayPreparation, GivenPreparation
from prevalens.preparation.text import TextPreparation

__all__ = [
    "ArrayPreparation",
    "CellError",
    "ColumnPreparation",
    "GivenPreparation",
    "Preparation",
    "TextPreparation",
    "Unfamiliar",
]
