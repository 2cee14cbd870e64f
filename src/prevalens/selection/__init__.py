"""Selection: the settings or the whole method with the smallest quantification error.

`GridSearch` chooses the settings of a given quantifier; `choose` picks classifiers and aggregator
for ``Quantifier()``. Both use the labelled items only. This package knows classifiers and
aggregators; `prevalens.quantifier` imports it.
"""

from prevalens.selection.automatic import Candidate, Choice, choose
from prevalens.selection.grid_search import GridSearch, SampleQuantifier

__all__ = ["Candidate", "Choice", "GridSearch", "SampleQuantifier", "choose"]
