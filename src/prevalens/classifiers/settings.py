"""A classifier whose settings are chosen label by label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from prevalens.classifiers.powerset import LabelsetEnsemble
from prevalens.response import class_weight_of, train
from prevalens.types import LabelMatrix, Settings
from prevalens.validation import InputError


class PerLabelSettings(LabelsetEnsemble):
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

    part = "classifier"
    joint = False
    label_wise = True

    def __init__(self, classifier: Any, settings: Sequence[Settings], *, choice: Any) -> None:
        self.classifier = classifier
        self.settings = settings
        self.choice = choice

    def label_class_weights(self) -> list[Any]:
        """The class weights of each label, from its settings."""
        weights = [class_weight_of(self._with(setting)) for setting in self.settings]
        return [weights[number] for number in self.choice]

    def _with(self, setting: Settings) -> Any:
        """The classifier with some settings, unfitted."""
        return clone(self.classifier).set_params(**setting)

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        choice = np.asarray(self.choice)
        if choice.shape != (Y.shape[1],):
            raise InputError(
                f"choice must name one setting per label ({Y.shape[1]}); its shape is "
                f"{choice.shape}."
            )
        chosen = np.unique(choice)
        self.labelsets_ = [np.flatnonzero(choice == number) for number in chosen]
        self.classifiers_ = [
            train(self._with(self.settings[number]), X, Y[:, labels])
            for number, labels in zip(chosen, self.labelsets_, strict=True)
        ]
