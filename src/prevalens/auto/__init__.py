"""The automatic choice: which classifiers and which aggregator, by rehearsed quantification loss.

Every candidate is judged by the error of its estimates in samples of the labelled items themselves,
under several families of shift, with out-of-fold scores; nothing else than the labelled items is
looked at. What does not fit into the time budget is not tried.
"""

from prevalens.auto.choice import Candidate, Choice
from prevalens.auto.search import choose

__all__ = ["Candidate", "Choice", "choose"]
