"""The contract of an aggregator: from the scores of items to the prevalences of samples."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from prevalens.batches import Batches, ScoredSamples, Statistic
from prevalens.estimate import Intervals
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.validation import InputError, check_binary_matrix, check_same_length

#: Positives of a label below which distributions of their scores say little: `ACC` with its default
#: guard adjusts no label with fewer.
FEW = 5


class Aggregator(BaseEstimator, ABC):  # type: ignore[misc]
    """Estimate the label prevalences of samples from the scores of their items.

    A subclass declares `code`, `consumes` and `joint` (as class attributes, or as properties where
    they follow from a part) and, if it learns anything, writes `_fit`. One that reads sums over
    the items of a sample names them in `statistic` and writes `_from_means`, so that it can
    estimate batches of any size; one that must see the items writes `_aggregate`. All of these may
    trust their input. Everything else has a default:

    ======================= ===================================================================
    `needs_labelled_scores` False if `fit` reads nothing but the number of labels and `Y`
    `has_intervals`         True if `_estimate` computes intervals itself
    `least_positives`       positives, and negatives, that a label needs; a warning says if fewer
    `_estimate`             estimates and intervals from one pass; default: no intervals
    `fit_settings`          fits with several settings; override it to share work between them
    `_fit_grouped`          `_fit` for items in groups; override it if `_fit` divides the items
    `with_classifier`       a copy that uses a single-label classifier; default: refused
    ======================= ===================================================================

    Attributes
    ----------
    code : str
        Name in the grammar of methods.
    consumes : {"votes", "posteriors", "features"}
        The kind of scores it reads; checked where classifier and aggregator are joined.
    joint : bool
        False if each label's estimate depends on that label's scores alone (BA), True if
        labels inform each other (MLA).
    needs_labelled_scores : bool
        False if `fit` uses nothing of the labelled scores (CC, PCC), so that no held-out
        scores need to be made for it.
    has_intervals : bool
    least_positives : int
        Positives, and negatives, below which the estimate of a label means little; where
        classifier and aggregator are joined, a warning says if labels have fewer.
    n_labels_ : int
        Number of labels seen in `fit`.
    prevalence_ : array of float, shape (n_labels,)
        Label prevalences of the labelled scores.
    """

    consumes: Kind
    joint: bool
    needs_labelled_scores: bool = True
    has_intervals: bool = False
    least_positives: int = 0

    def fit(self, scores: Scores, Y: Any, *, groups: Any = None) -> Self:
        """Learn from labelled scores that the classifier did not train on.

        Parameters
        ----------
        scores : Scores
        Y : 0/1 array, shape (n_items, n_labels)
        groups : array, shape (n_items,), optional
            Items with the same value stay together wherever the aggregator divides the items.
        """
        Y = check_binary_matrix(Y)
        check_same_length(scores.n_items, "scores", Y.shape[0], "Y")
        self._check_scores(scores, Y.shape[1])
        self.n_labels_ = Y.shape[1]
        self.prevalence_ = Y.mean(axis=0, dtype=np.float64)
        self._fit_grouped(scores, Y, None if groups is None else np.asarray(groups))
        return self

    def aggregate(self, scores: Scores, samples: Samples) -> Floats:
        """Estimate the prevalence of every label in every sample.

        Parameters
        ----------
        scores : Scores
            Scores of all items of the pool, computed once.
        samples : Samples
            Bags of rows of that pool.

        Returns
        -------
        array of float64, shape (n_samples, n_labels)
            Between 0 and 1.
        """
        self._check_input(scores, samples)
        return np.clip(self._aggregate(scores, samples), 0.0, 1.0)

    @property
    def statistic(self) -> Statistic | None:
        """The sums over the items of a batch that are all it reads; None if it reads the items."""
        return None

    def read(self, batches: Batches) -> Floats:
        """As `aggregate`, of batches whose items need not be at hand."""
        if isinstance(batches, ScoredSamples):
            return self.aggregate(batches.scores, batches.samples)
        check_is_fitted(self, "n_labels_")
        if self.statistic is None:
            raise InputError(
                f"{type(self).__name__} reads the items themselves, so it cannot estimate from "
                "sums over items."
            )
        means = batches.mean(self.statistic)
        return np.clip(self._from_means(means, batches.sizes), 0.0, 1.0)

    def estimate(
        self, scores: Scores, samples: Samples, level: float | None = None
    ) -> tuple[Floats, Intervals | None]:
        """Estimate prevalences and, if `has_intervals`, their intervals, in one pass.

        Parameters
        ----------
        scores : Scores
        samples : Samples
        level : float, optional
            Coverage of the intervals, such as 0.9; None for no intervals.

        Returns
        -------
        point : array of float64, shape (n_samples, n_labels)
        intervals : Intervals or None
            None without a level, or if the aggregator computes no intervals itself.
        """
        return self.read_with_intervals(ScoredSamples(scores, samples), level)

    def read_with_intervals(
        self, batches: Batches, level: float | None
    ) -> tuple[Floats, Intervals | None]:
        """As `estimate`, of batches whose items need not be at hand."""
        if level is None:
            return self.read(batches), None
        if isinstance(batches, ScoredSamples):
            self._check_input(batches.scores, batches.samples)
        return self._estimate(batches, level)

    def fit_settings(
        self, settings: Sequence[Mapping[str, Any]], scores: Scores, Y: Any
    ) -> Iterator[Self]:
        """Fit one copy with each of several settings; yields them in that order."""
        for setting in settings:
            yield clone(self).set_params(**setting).fit(scores, Y)

    def with_classifier(self, classifier: Any) -> Aggregator:
        """Return a copy that trains this single-label classifier; most aggregators refuse it."""
        raise InputError(
            f"{type(self).__name__} reads the items themselves and needs no classifier, but "
            f"was given {type(classifier).__name__}. Use Quantifier(None, ...)."
        )

    def _fit_grouped(
        self,
        scores: Scores,
        Y: LabelMatrix,
        groups: Array | None,  # noqa: ARG002 - for those that divide the items
    ) -> None:
        """Learn; the input has been checked."""
        self._fit(scores, Y)

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        """Learn; the input has been checked. Default: there is nothing to learn."""

    def _estimate(
        self,
        batches: Batches,
        level: float,  # noqa: ARG002 - for aggregators that have intervals
    ) -> tuple[Floats, Intervals | None]:
        """Estimates and intervals; the input has been checked. Default: no intervals."""
        return self.read(batches), None

    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:
        """Estimate; the input has been checked, the output is clipped to [0, 1]."""
        assert self.statistic is not None  # those that read the items write this method
        means = ScoredSamples(scores, samples).mean(self.statistic)
        return self._from_means(means, samples.sizes)

    def _from_means(self, means: Floats, sizes: Ints) -> Floats:
        """Estimate from the means of the statistic, shape (n_batches, n_sums).

        The output is clipped to [0, 1].
        """
        raise NotImplementedError

    def _check_input(self, scores: Scores, samples: Samples) -> None:
        check_is_fitted(self, "n_labels_")
        self._check_scores(scores, self.n_labels_)
        check_same_length(scores.n_items, "scores", samples.n_items, "the samples' pool")

    def _check_scores(self, scores: Scores, n_labels: int) -> None:
        name = type(self).__name__
        if scores.kind != self.consumes:
            raise InputError(f"{name} needs {self.consumes}; it was given {scores.kind}.")
        if scores.n_items == 0:
            raise InputError(f"{name} was given scores of no items.")
        if scores.kind != "features" and scores.values.shape[1] != n_labels:
            n_columns = scores.values.shape[1]
            raise InputError(
                f"{name} knows {n_labels} labels, but the scores have {n_columns} columns."
            )


_BYTES_PER_CHUNK = 32 * 2**20
#: An interval narrower than this counts as one of width zero.
_SAME = 1e-9


def per_label(value: Any, name: str, n_labels: int, *, open_ends: bool) -> Floats:
    """Return shares, shape (n_labels,), from a number for all labels or a number for each."""
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


def label_chunks(labels: Array, n_items: int) -> Iterator[Ints]:
    """Yield label numbers in chunks whose float64 scores of all items take at most 32 MB."""
    step = max(1, _BYTES_PER_CHUNK // (8 * n_items))
    for start in range(0, len(labels), step):
        yield labels[start : start + step]


def never_certain(intervals: Intervals, point: Floats, sizes: Ints) -> Intervals:
    """Widen the intervals of width zero by one item of the batch on each side.

    A label without errors in validation may have some in the next batch. Other intervals stay as
    they are; bands are widened where they must hold the new intervals.
    """
    item = 1.0 / sizes[:, np.newaxis]
    flat = intervals.upper - intervals.lower < _SAME
    lower = np.where(flat, np.maximum(point - item, 0.0), intervals.lower)
    upper = np.where(flat, np.minimum(point + item, 1.0), intervals.upper)
    band_lower = np.minimum(intervals.band_lower, lower)
    band_upper = np.maximum(intervals.band_upper, upper)
    return Intervals(lower, upper, band_lower, band_upper, intervals.p_value)
