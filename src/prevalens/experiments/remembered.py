"""Remembered: a classifier that is trained only if what it would say is not known yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prevalens.classifiers.constant import train
from prevalens.classifiers.response import is_joint, offers, response
from prevalens.classifiers.settings import Settings
from prevalens.experiments.cache import ScoreCache, digest, identity
from prevalens.scores import Kind

__all__ = ["Remembered"]


class Remembered(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Stands for a classifier and keeps its answers by content.

    `fit` only notes the training items. When the classifier is asked about items, the answer
    comes from the cache; if it is not there, the classifier is trained, and all kinds of
    scores it offers are kept. Adding a method with the same classifier then trains nothing.
    Names of parameters are those of the classifier, so that grids need not know.

    Parameters
    ----------
    classifier : multi-label classifier
    cache : ScoreCache

    Notes
    -----
    Costs one checksum over the items for every training and every question. A classifier
    with parameters that have no name (a random generator, a lambda), or items other than
    arrays, CSR matrices and texts, are not remembered, and everything is computed as without.
    """

    def __init__(self, classifier: Any, cache: ScoreCache) -> None:
        self.classifier = classifier
        self.cache = cache

    def __sklearn_clone__(self) -> Remembered:
        # A copy of the cache would keep a count of its own.
        return Remembered(clone(self.classifier), self.cache)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the classifier."""
        parameters: dict[str, Any] = self.classifier.get_params(deep)
        return parameters

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the classifier."""
        self.classifier.set_params(**params)
        return self

    @property
    def joint(self) -> bool:
        """Whether the classifier looks at labels together."""
        return is_joint(self.classifier)

    @property
    def label_wise(self) -> bool:
        """Whether dividing the labels changes nothing."""
        return bool(getattr(self.classifier, "label_wise", False))

    def fit(self, X: Any, Y: npt.NDArray[np.int8]) -> Self:
        """Note what to train on, should it be necessary."""
        return self._note(_One(self.classifier, X, Y), Y, digest(X, Y))

    @available_if(lambda self: hasattr(self.classifier, "fit_settings"))  # type: ignore[untyped-decorator]
    def fit_settings(
        self, settings: Sequence[Settings], X: Any, Y: npt.NDArray[np.int8]
    ) -> Iterator[Remembered]:
        """One for each setting; if one of them has to be trained, all are, together."""
        together = _Together(self.classifier, settings, X, Y)
        # Solved together with others, a setting ends up at other last digits than alone.
        company = identity([dict(setting) for setting in settings])
        data = None if company is None else digest(company, X, Y)
        for number, setting in enumerate(settings):
            one = clone(self).set_params(**setting)
            yield one._note(_OneOf(together, number), Y, data)

    @available_if(lambda self: "votes" in offers(self.classifier))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Votes, shape (n_items, n_labels)."""
        return self._scores(X, "votes")

    @available_if(lambda self: "posteriors" in offers(self.classifier))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> npt.NDArray[Any]:
        """Posteriors, shape (n_items, n_labels)."""
        return self._scores(X, "posteriors")

    def _note(self, training: Any, Y: npt.NDArray[np.int8], data: str | None) -> Self:
        self.training_ = training
        self.n_labels_ = Y.shape[1]
        known = identity(self.classifier)
        self.key_ = None if known is None or data is None else digest(known, data)
        return self

    def _scores(self, X: Any, kind: Kind) -> npt.NDArray[Any]:
        check_is_fitted(self, "training_")
        key = None if self.key_ is None else digest(self.key_, X)
        found = None if key is None else self.cache.get(key)
        if found is None or kind not in found:
            found = self._ask(X)
            if key is not None:
                self.cache.put(key, found)
        return found[kind]

    def _ask(self, X: Any) -> dict[str, npt.NDArray[Any]]:
        """Every kind of scores, as another method may want the other one."""
        trained = self.training_.classifier()
        n_labels = self.n_labels_
        found = {kind: response(trained, X, kind, n_labels).values for kind in offers(trained)}
        return {kind: _kept(kind, values) for kind, values in found.items()}


def _kept(kind: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values as they would come back from the cache: without gaps, and votes in a byte."""
    if kind == "votes":
        return values.astype(np.int8, order="C")
    return values if values.flags.forc else np.ascontiguousarray(values)


class _One:
    """A training that takes place when somebody asks for its classifier."""

    def __init__(self, classifier: Any, X: Any, Y: npt.NDArray[np.int8]) -> None:
        self._untrained, self._X, self._Y = classifier, X, Y
        self._trained: Any = None

    def classifier(self) -> Any:
        if self._trained is None:
            self._trained = train(self._untrained, self._X, self._Y)
        return self._trained


class _Together:
    """The same for several settings that are trained in one go."""

    def __init__(
        self, classifier: Any, settings: Sequence[Settings], X: Any, Y: npt.NDArray[np.int8]
    ) -> None:
        self._untrained, self._settings, self._X, self._Y = classifier, settings, X, Y
        self._trained: list[Any] = []

    def classifiers(self) -> list[Any]:
        if not self._trained:
            fitted = self._untrained.fit_settings(self._settings, self._X, self._Y)
            self._trained = list(fitted)
        return self._trained


class _OneOf:
    """One of several trained together."""

    def __init__(self, together: _Together, number: int) -> None:
        self._together, self._number = together, number

    def classifier(self) -> Any:
        return self._together.classifiers()[self._number]
