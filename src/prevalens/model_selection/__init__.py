"""Choosing the settings of a quantifier by its error of prevalence."""

from prevalens.model_selection.search import GridSearch

__all__ = ["GridSearch"]
