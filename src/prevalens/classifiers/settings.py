"""A classifier whose settings are chosen label by label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.response import offers, response, train
from prevalens.types import Floats, LabelMatrix, Settings
from prevalens.validation import InputError

__all__ = ["PerLabelSettings"]


class PerLabelSettings(MultiLabelClassifier):
    """A classifier that treats labels alone, with settings chosen label by label.

    Parameters
    ----------
    classifier : multi-label classifier that learns each label alone
    settings : list of dict
        Parameter settings of the classifier.
    choice : array of int, shape (n_labels,)
        Which of the settings each label uses.

    Notes
    -----
    One training per distinct setting, each on the labels that chose it.

    Examples
    --------
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> alone = OneVsRestClassifier(LogisticRegression())
    >>> strong, weak = {"estimator__C": 100.0}, {"estimator__C": 0.01}
    >>> both = PerLabelSettings(alone, [strong, weak], choice=[1, 0])
    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> far = both.fit(X, Y).predict_proba([[3.0]])[0]
    >>> bool(far[0] < 1 - far[1])
    True
    """

    joint = False
    label_wise = True
    takes_texts = True

    def __init__(self, classifier: Any, settings: Sequence[Settings], *, choice: Any) -> None:
        self.classifier = classifier
        self.settings = settings
        self.choice = choice

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        choice = np.asarray(self.choice)
        if choice.shape != (Y.shape[1],):
            raise InputError(
                f"choice must name one setting per label ({Y.shape[1]}); its shape is "
                f"{choice.shape}."
            )
        self.parts_ = []
        for number in np.unique(choice):
            columns = np.flatnonzero(choice == number)
            one = clone(self.classifier).set_params(**self.settings[number])
            self.parts_.append((columns, train(one, X, Y[:, columns])))

    def _posteriors(self, X: Any) -> Floats:
        return self._joined(X, "posteriors")

    def _votes(self, X: Any) -> npt.NDArray[Any]:
        return self._joined(X, "votes")

    def _offers_posteriors(self) -> bool:
        return "posteriors" in offers(self.classifier)

    def _joined(self, X: Any, kind: Any) -> Floats:
        n_labels = sum(len(columns) for columns, _ in self.parts_)
        blocks = [
            (columns, response(part, X, kind, len(columns)).values) for columns, part in self.parts_
        ]
        joined = np.empty((blocks[0][1].shape[0], n_labels))
        for columns, values in blocks:
            joined[:, columns] = values
        return joined
