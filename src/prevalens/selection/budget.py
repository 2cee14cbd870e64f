"""The work of the automatic choice, counted beforehand, and the budget that it must fit into.

What is tried depends on counts of operations alone, so that the same items and the same seed give
the same model on every machine and under any load. The counts are turned into the seconds of an
ordinary core by constants; a real core may take half or twice as long.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from prevalens.types import Items
from prevalens.validation_shifts import ShiftedSplit

#: Share of a budget that may be planned; the rest is for cores slower than the ordinary one.
_PLANNED = 0.7
#: Seconds of a logistic regression of all labels: to begin with, per entry of the features and
#: label, and per coefficient.
_LINEAR, _LINEAR_ENTRY, _LINEAR_COEFFICIENT = 2e-2, 1.5e-8, 2e-7
#: Seconds of a tree: to begin with, and per item, level and feature tried: alone and per label.
_TREE, _TREE_ITEM, _TREE_LABEL = 5e-4, 3e-8, 1e-9
#: A tree on sparse features passes over the zeros of a feature at once.
_TREE_SPARSE = 0.4
#: Seconds of a multiplication in a large product, and of the integral of a sample and label.
_PRODUCT, _INTEGRAL = 1.5e-10, 1.5e-6


class Budget:
    """Seconds for a choice, what is planned with them, and notes on what was left out.

    Parameters
    ----------
    seconds : float

    Attributes
    ----------
    planned : float
        Seconds that the work so far was expected to take.
    notes : list of str
        One sentence for each thing that was left out.
    cut_short : bool
        Whether something was left out because the clock, not the plan, allowed no more.

    Examples
    --------
    >>> budget = Budget(10)
    >>> budget.allows(6, "A forest"), budget.allows(6, "Another forest")
    (True, False)
    >>> budget.notes
    ['Another forest was left out: it would take about 6 s more.']
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.planned = 0.0
        self.notes: list[str] = []
        self.cut_short = False
        self._start = time.perf_counter()

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start

    @property
    def left(self) -> float:
        """Seconds that may still be planned."""
        return _PLANNED * self.seconds - self.planned

    def allows(self, seconds: float, what: str) -> bool:
        """Whether work may be done, which is then part of the plan; a note says if not.

        The clock may only end the search: it refuses what the plan would have allowed if the
        budget would be exceeded, and everything after that.
        """
        if seconds > self.left:
            self.notes.append(f"{what} was left out: it would take about {seconds:.2g} s more.")
            return False
        if self.cut_short or self.spent + seconds > self.seconds:
            self.cut_short = True
            self.notes.append(f"{what} was left out: the time was over.")
            return False
        self.planned += seconds
        return True


class Costs:
    """Expected seconds of the parts of a choice on an ordinary core.

    Parameters
    ----------
    X : matrix of features
    n_labels : int
    n_folds : int
        Out-of-fold scores train a classifier so many times, a member of the choice once more.

    Examples
    --------
    >>> costs = Costs(np.zeros((1000, 50)), 10, 5)
    >>> costs.linear(4) == 4 * costs.linear(1) and costs.trees(200) > costs.trees(100)
    True
    """

    def __init__(self, X: Items, n_labels: int, n_folds: int) -> None:
        self.n_items, self.n_features = X.shape
        self.n_labels, self.n_folds = n_labels, n_folds
        self._sparse = sp.issparse(X)
        self._entries = X.nnz if self._sparse else self.n_items * self.n_features

    def linear(self, n_settings: int) -> float:
        """Logistic regressions with several settings, on all folds and on all items."""
        entries = _LINEAR_ENTRY * self._entries + _LINEAR_COEFFICIENT * self.n_features
        return n_settings * (self.n_folds + 1) * (_LINEAR + entries * self.n_labels)

    def trees(self, n_trees: int) -> float:
        """Trees on all items."""
        levels = np.log2(max(self.n_items, 2))
        tried = self.n_items * levels * np.sqrt(self.n_features)
        share = _TREE_SPARSE if self._sparse else 1.0
        each = _TREE + share * tried * (_TREE_ITEM + _TREE_LABEL * self.n_labels)
        return float(n_trees * each)

    def mixture(self, n_members: int, splits: Sequence[ShiftedSplit]) -> float:
        """One validation of a mixture of members on splits of the items."""
        n_scores = n_members * self.n_labels
        both = n_scores * (n_scores + self.n_labels)
        folds = {split.fold: len(split.rest) for split in splits}
        products = sum(folds.values()) * both + len(folds) * n_scores**3
        n_samples = sum(len(split.true) for split in splits)
        integrals = _INTEGRAL * n_samples * self.n_labels
        return _PRODUCT * (products + n_samples * both) + integrals
