"""Many settings of one classifier: trained together, or chosen label by label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.crossfit import LabelledScores
from prevalens.response import offers, response, train
from prevalens.scores import Kind, Scores
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import InputError, take_items

__all__ = ["PerLabelSettings", "Settings", "fit_settings", "labelled_settings"]

#: Parameters of a classifier by name.
Settings: TypeAlias = Mapping[str, Any]


def fit_settings(
    classifier: Any, settings: Sequence[Settings], X: Any, Y: LabelMatrix
) -> Iterator[Any]:
    """Train one classifier with each of several settings; yields them in that order.

    A classifier that has a method ``fit_settings(settings, X, Y)`` of its own shares the work
    between them (the batched logistic regression solves all in one go); any other is cloned and
    trained once per setting.
    """
    if hasattr(classifier, "fit_settings"):
        yield from classifier.fit_settings(settings, X, Y)
        return
    for setting in settings:
        yield train(clone(classifier).set_params(**setting), X, Y)


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


def labelled_settings(
    scheme: Any,
    classifier: Any,
    settings: Sequence[Settings],
    X: Any,
    Y: LabelMatrix,
    kind: Kind,
) -> Iterator[LabelledScores]:
    """What ``scheme.fit`` gives, for each of several settings of one classifier.

    The work of the settings is shared where the classifier can (see `fit_settings`); every
    setting sees the same division of the items.
    """
    if not hasattr(classifier, "fit_settings"):
        for setting in settings:
            yield scheme.fit(clone(classifier).set_params(**setting), X, Y, kind)
        return
    parts = []
    for rest, held in scheme.divide(Y):
        X_held = take_items(X, held)
        finals = list(fit_settings(classifier, settings, take_items(X, rest), Y[rest]))
        parts.append((held, [response(one, X_held, kind, Y.shape[1]).values for one in finals]))
    if scheme.refits:
        finals = list(fit_settings(classifier, settings, X, Y))
    rows = np.concatenate([held for held, _ in parts])
    order = np.argsort(rows, kind="stable")
    for number, final in enumerate(finals):
        values = np.concatenate([scores[number] for _, scores in parts])[order]
        yield LabelledScores(final, {kind: Scores(values, kind)}, rows[order])
