"""The second contract: from the scores of items to the prevalences of samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import InputError, check_binary_matrix, check_same_length

__all__ = ["Aggregator", "fit_aggregators", "label_chunks", "per_label"]


class Aggregator(BaseEstimator, ABC):  # type: ignore[misc]
    """Estimate the label prevalences of samples from the scores of their items.

    A subclass declares `consumes` and `joint` (as class attributes, or as properties where
    they follow from a part) and writes `_fit` and `_aggregate`, which may trust their input.

    Attributes
    ----------
    consumes : {"votes", "posteriors", "features"}
        The kind of scores it reads; checked where classifier and aggregator are joined.
    joint : bool
        False if each label's estimate depends on that label's scores alone (BA), True if
        labels inform each other (MLA).
    learns : bool
        False if `fit` uses nothing of the labelled scores (CC, PCC), so that no held-out
        scores need to be made for it.
    n_labels_ : int
        Number of labels seen in `fit`.
    prevalence_ : array of float, shape (n_labels,)
        Label prevalences of the labelled scores.
    """

    consumes: Kind
    joint: bool
    learns: bool = True

    def fit(self, scores: Scores, Y: Any) -> Self:
        """Learn from labelled scores that the classifier did not train on.

        Parameters
        ----------
        scores : Scores
        Y : 0/1 array, shape (n_items, n_labels)
        """
        Y = check_binary_matrix(Y)
        check_same_length(scores.n_items, "scores", Y.shape[0], "Y")
        self._check_kind(scores)
        self._check_columns(scores, Y.shape[1])
        self.n_labels_ = Y.shape[1]
        self.prevalence_ = Y.mean(axis=0, dtype=np.float64)
        self._fit(scores, Y)
        return self

    def aggregate(self, scores: Scores, samples: Samples) -> Floats:
        """Estimate the prevalence of every label in every sample.

        Parameters
        ----------
        scores : Scores
            Of all items of the pool, computed once.
        samples : Samples
            Bags of rows of that pool.

        Returns
        -------
        array of float64, shape (n_samples, n_labels)
            Between 0 and 1.
        """
        check_is_fitted(self, "n_labels_")
        self._check_kind(scores)
        self._check_columns(scores, self.n_labels_)
        check_same_length(scores.n_items, "scores", samples.n_items, "the samples' pool")
        return np.clip(self._aggregate(scores, samples), 0.0, 1.0)

    @abstractmethod
    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        """Learn; the input has been checked."""

    @abstractmethod
    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:
        """Estimate; the input has been checked, the output is clipped to [0, 1]."""

    def _check_kind(self, scores: Scores) -> None:
        if scores.kind != self.consumes:
            raise InputError(
                f"{type(self).__name__} needs {self.consumes}; it was given {scores.kind}."
            )

    def _check_columns(self, scores: Scores, n_labels: int) -> None:
        if scores.n_items == 0:
            raise InputError(f"{type(self).__name__} was given scores of no items.")
        if scores.kind == "features" or scores.states is not None:
            return
        if scores.values.shape[1] != n_labels:
            raise InputError(
                f"{type(self).__name__} knows {n_labels} labels, but the scores have "
                f"{scores.values.shape[1]} columns."
            )


_BYTES_PER_CHUNK = 32 * 2**20


def per_label(value: Any, name: str, n_labels: int, *, open_ends: bool) -> Floats:
    """Return shares, shape (n_labels,), from one number for all labels or one for each."""
    shares = np.asarray(value, dtype=np.float64)
    if shares.shape not in ((), (n_labels,)):
        raise InputError(
            f"{name} must be one number or one per label ({n_labels}); got shape {shares.shape}."
        )
    inside = (shares > 0) & (shares < 1) if open_ends else (shares >= 0) & (shares <= 1)
    if not np.all(inside):
        ends = "strictly between 0 and 1" if open_ends else "between 0 and 1"
        raise InputError(f"{name} must lie {ends}; got {value!r}.")
    return np.broadcast_to(shares, (n_labels,)).copy()


def label_chunks(labels: npt.NDArray[Any], n_items: int) -> Iterator[npt.NDArray[np.int64]]:
    """Cut label numbers into portions for which (items, labels) in float64 takes some megabytes."""
    step = max(1, _BYTES_PER_CHUNK // (8 * n_items))
    for start in range(0, len(labels), step):
        yield labels[start : start + step]


def fit_aggregators(
    aggregator: Aggregator,
    settings: Sequence[Mapping[str, Any]],
    scores: Scores,
    Y: LabelMatrix,
) -> Iterator[Aggregator]:
    """Fit one aggregator with each of several settings; yields them in that order.

    An aggregator with a method ``fit_settings(settings, scores, Y)`` of its own shares the work
    (RQ fits its base once for all settings of its regressor); any other is cloned and fitted
    once per setting.
    """
    if hasattr(aggregator, "fit_settings"):
        yield from aggregator.fit_settings(settings, scores, Y)
        return
    for setting in settings:
        yield clone(aggregator).set_params(**setting).fit(scores, Y)
