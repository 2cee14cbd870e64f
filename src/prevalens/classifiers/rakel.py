"""RAkEL: label powersets over small random groups of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.classifiers.labelsets import (
    LabelsetEnsemble,
    Labelsets,
    RandomPartition,
    check_labelsets,
)
from prevalens.classifiers.powerset import Powerset
from prevalens.classifiers.response import offers
from prevalens.validation import check_rng

__all__ = ["RAkEL"]


class RAkEL(LabelsetEnsemble):
    """Random k-labelsets: a `Powerset` for each of several small groups of labels.

    Parameters
    ----------
    estimator : multi-class classifier, optional
        Of each powerset. Default: multinomial logistic regression.
    labelsets : RandomPartition, RandomLabelsets or list of lists of positions, optional
        The groups. Default ``RandomPartition(size=3)``, the disjoint version;
        ``RandomLabelsets(size=3)`` is the overlapping one.
    n_jobs : int, optional
    random_state : int, optional
        Of the choice of groups.

    Attributes
    ----------
    labelsets_ : list of int arrays
    classifiers_ : list of fitted Powerset

    Notes
    -----
    A label's posterior is the mean over the groups that hold it, its vote the majority of theirs.
    One multi-class training per group with at most 2**size classes. Sees no relation between
    labels of different groups.

    References
    ----------
    Tsoumakas, Katakis and Vlahavas, "Random k-labelsets for multilabel classification", IEEE
    TKDE 23(7), 2011.

    Examples
    --------
    >>> X, Y = [[0.0], [0.2], [1.0], [1.2]], [[0, 0, 1], [0, 0, 1], [1, 1, 0], [1, 1, 0]]
    >>> RAkEL(labelsets=[[0, 1], [2]]).fit(X, Y).predict([[0.0], [1.0]]).tolist()
    [[0, 0, 1], [1, 1, 0]]
    """

    code = "rakel"

    def __init__(
        self,
        estimator: Any = None,
        labelsets: Any = None,
        *,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.labelsets = labelsets
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Any, Y: npt.NDArray[np.int8]) -> None:
        self._fit_groups(Powerset(self.estimator), X, Y, self._groups(Y.shape[1]))

    def _groups(self, n_labels: int) -> list[npt.NDArray[np.intp]]:
        labelsets = RandomPartition() if self.labelsets is None else self.labelsets
        if isinstance(labelsets, Labelsets):
            return labelsets.draw(n_labels, check_rng(self.random_state))
        return check_labelsets(labelsets, n_labels)

    def _offers_posteriors(self) -> bool:
        return self.estimator is None or "posteriors" in offers(self.estimator)
