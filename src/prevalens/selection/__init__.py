"""Selection: the settings or the whole method with the smallest quantification error.

`GridSearch` chooses the settings of a given quantifier; `choose` picks classifiers and aggregator
for ``Quantifier()``. Both look at the labelled items only. This package works on the two parts of
a method and stands below the join.
"""

from prevalens.selection.automatic import Candidate, Choice, choose
from prevalens.selection.grid_search import GridSearch, SampleQuantifier

__all__ = ["Candidate", "Choice", "GridSearch", "SampleQuantifier", "choose"]
