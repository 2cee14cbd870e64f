"""Intervals for any quantifier: a bootstrap, calibrated on samples whose truth is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from prevalens.aggregators.base import Aggregator, never_certain
from prevalens.estimate import Intervals
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.types import Floats, Groups, Ints, LabelMatrix
from prevalens.uncertainty.errors import ErrorModel, Noise, fit_error_model, measure_noise, redrawn
from prevalens.uncertainty.goodness_of_fit import Misfit, fit_misfit
from prevalens.validation import check_int, check_rng
from prevalens.validation_shifts import draw_shifts

__all__ = ["Bootstrap", "plain_estimate"]

#: Samples that intervals are calibrated on, per kind of shift and size, over all replicas.
_CALIBRATION_SAMPLES = 400
#: Parts that labelled items are cut into for the goodness of fit, unless they come in folds.
_FOLDS = 5
#: Items that a fold must have for it.
_LEAST_FOLD = 10
#: Different items, or groups of items, that a replica must have to keep copies together.
_LEAST_GROUPS = 10


class Bootstrap(BaseEstimator):  # type: ignore[misc]
    """Intervals of a quantifier's estimates, from drawing again what they rest on.

    At fit time the aggregator is fitted again on resampled labelled scores. Each replica
    estimates samples of the items it has not seen, drawn under a mix of shifts (none, one label
    steered, all labels tilted, label sets weighted); from their errors it is learnt how far the
    truth lies from an estimate. For a batch, its items are resampled and all replicas are
    asked; the two variances and the size of the move set the width of the interval.

    Parameters
    ----------
    replicas : int
        Fits of the aggregator on resampled labelled scores. One that learns nothing from scores
        (CC, PCC, uncalibrated SLD) is not refitted.
    resamples : int
        Times that the items of each sample are drawn again.
    random_state : int

    Attributes
    ----------
    replicas_ : list of fitted Aggregator
    errors_ : ErrorModel
    n_labelled_ : int
        Items it was fitted on.
    misfit_ : Misfit or None
        Goodness of fit, for aggregators that read posteriors.

    Notes
    -----
    Costs `replicas` fits of the aggregator, and the scores of the scheme even for aggregators that
    need none. The classifier is not trained again: its own randomness enters only through
    the out-of-fold errors. Replicas are kept, and saved with a model.

    The truth that intervals cover is the prevalence of the batch itself, not of a population
    it came from. Fails where a batch has moved further, or otherwise, than the
    shifts it was calibrated on.

    References
    ----------
    Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7, 1979.
    Vovk, Gammerman and Shafer, "Algorithmic learning in a random world", Springer 2005.

    Examples
    --------
    >>> from prevalens.aggregators import PCC
    >>> rng = np.random.default_rng(0)
    >>> Y = (rng.random((400, 2)) < 0.4).astype(np.int8)
    >>> scores = Scores(0.25 + 0.5 * Y, kind="posteriors")
    >>> pcc = PCC().fit(scores, Y)
    >>> bootstrap = Bootstrap().fit(pcc, scores, Y)
    >>> _, found = bootstrap.estimate(pcc, scores, Samples.whole(400), 0.9)
    >>> bool(np.all(found.lower <= Y.mean(axis=0)) and np.all(Y.mean(axis=0) <= found.upper))
    True
    """

    def __init__(self, *, replicas: int = 20, resamples: int = 40, random_state: int = 0) -> None:
        self.replicas = replicas
        self.resamples = resamples
        self.random_state = random_state

    def fit(
        self,
        aggregator: Aggregator,
        scores: Scores,
        Y: LabelMatrix,
        *,
        folds: Ints | None = None,
        groups: Groups = None,
    ) -> Self:
        """Refit the aggregator and learn its errors.

        Parameters
        ----------
        aggregator : Aggregator
            Fitted or not; it is cloned.
        scores : Scores
            Labelled scores that the classifier did not train on.
        Y : 0/1 array, shape (n_items, n_labels)
        folds : array of int, shape (n_items,), optional
            Which items have their scores from the same classifier. Default: all of them.
        groups : array, shape (n_items,), optional
            Items with the same value are drawn together.
        """
        n_replicas = check_int(self.replicas, "replicas", minimum=2)
        times = check_int(self.resamples, "resamples", minimum=2)
        rng = check_rng(self.random_state)
        groups = None if groups is None else np.unique(groups, return_inverse=True)[1]
        fitted = list(_replicas(aggregator, scores, Y, groups, n_replicas, rng))
        self.replicas_ = (
            [replica for replica, _ in fitted] if aggregator.needs_labelled_scores else []
        )
        per_part = -(-_CALIBRATION_SAMPLES // (2 * len(fitted)))
        noises, samples, families = [], [], []
        for replica, unseen in fitted:
            drawn, family = draw_shifts(Y[unseen], per_part, rng)
            part = Samples(unseen[drawn.flat], drawn.offsets, n_items=len(Y))
            noises.append(
                measure_noise(replica, self.replicas_, scores, part, times=times, rng=rng)
            )
            samples.append(part)
            families.append(family)
        together = Samples.concat(samples)
        self.errors_: ErrorModel = fit_error_model(
            _joined(noises), together.mean(Y), Y.mean(axis=0), np.concatenate(families)
        )
        self.misfit_ = _misfit(scores, Y, folds, rng)
        self.n_labelled_ = len(Y)
        return self

    def estimate(
        self, aggregator: Aggregator, scores: Scores, samples: Samples, level: float
    ) -> tuple[Floats, Intervals]:
        """Estimates of many samples, with intervals, bands and goodness of fit.

        Parameters
        ----------
        aggregator : fitted Aggregator
        scores : Scores
        samples : Samples
        level : float
        """
        rng = check_rng(self.random_state)
        noise = measure_noise(
            aggregator, self.replicas_, scores, samples, times=self.resamples, rng=rng
        )
        found = self.errors_.intervals(noise, level)
        # A label without an error so far may meet its first odd item: bands leave room for one in
        # the batch, and for one in as many as were labelled.
        least = np.maximum(1.0 / samples.sizes, 1.0 / self.n_labelled_)[:, np.newaxis]
        misfit = self.misfit_
        found = Intervals(
            found.lower,
            found.upper,
            np.minimum(found.band_lower, np.maximum(noise.point - least, 0.0)),
            np.maximum(found.band_upper, np.minimum(noise.point + least, 1.0)),
            None if misfit is None else misfit.p_value(scores.values, samples),
        )
        return noise.point, never_certain(found, noise.point, samples)


def _misfit(
    scores: Scores,
    Y: LabelMatrix,
    folds: Ints | None,
    rng: np.random.Generator,
) -> Misfit | None:
    """Goodness of fit; None for scores that are no posteriors, or too few."""
    if scores.kind != "posteriors":
        return None
    if folds is None:
        folds = rng.permutation(len(Y)) % _FOLDS
    if np.unique(folds, return_counts=True)[1].min() < _LEAST_FOLD or len(np.unique(folds)) < 2:
        return None
    return fit_misfit(scores.values, Y, folds, rng)


def _replicas(
    aggregator: Aggregator,
    scores: Scores,
    Y: LabelMatrix,
    groups: Ints | None,
    n_replicas: int,
    rng: np.random.Generator,
) -> Iterator[tuple[Aggregator, Ints]]:
    """Aggregators fitted on resampled rows, and the rows each has not seen."""
    everything = np.arange(len(Y))
    if not aggregator.needs_labelled_scores:
        yield clone(aggregator).fit(scores, Y), everything
        return
    for _ in range(n_replicas):
        rows = _drawn_again(everything, groups, rng)
        unseen = np.setdiff1d(everything, rows)
        # Copies of an item stay together, or an aggregator that divides the items would learn from
        # some copies and validate on others. Very few items cannot be divided so.
        together = rows if groups is None else groups[rows]
        divisible = len(np.unique(together)) >= _LEAST_GROUPS
        kept = together if divisible else None
        yield (
            clone(aggregator).fit(scores.take(rows), Y[rows], groups=kept),
            # Of very few items all may have been drawn; then there is nothing better than all.
            (unseen if len(unseen) > 1 else everything),
        )


def _drawn_again(everything: Ints, groups: Ints | None, rng: np.random.Generator) -> Ints:
    """As many rows, or groups of rows, as there are, with replacement."""
    if groups is None:
        return rng.integers(0, len(everything), len(everything))
    members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    return np.concatenate([members[g] for g in rng.integers(0, len(members), len(members))])


def _joined(noises: list[Noise]) -> Noise:
    return Noise(
        np.concatenate([noise.point for noise in noises]),
        np.concatenate([noise.items for noise in noises]),
        np.concatenate([noise.training for noise in noises]),
    )


def plain_estimate(
    aggregator: Any,
    scores: Scores,
    samples: Samples,
    level: float,
    *,
    resamples: int = 200,
    random_state: int = 0,
) -> tuple[Floats, Intervals]:
    """Estimates, with percentiles of those of resampled items, without any calibration.

    All that is there for a quantifier that was fitted without `Bootstrap`: the noise of the items,
    and nothing of bias, training data or shift.
    """
    point = aggregator.aggregate(scores, samples)
    found = Intervals(*(np.empty_like(point) for _ in range(4)))
    tail = (1.0 - level) / 2.0
    rng = check_rng(random_state)
    for rows, drawn in redrawn(aggregator, scores, samples, times=resamples, rng=rng):
        here = point[rows]
        lower, upper = np.quantile(drawn, [tail, 1.0 - tail], axis=1)
        deviation = np.maximum(drawn.std(axis=1), 1e-12)
        largest = (np.abs(drawn - here[:, np.newaxis]) / deviation[:, np.newaxis]).max(axis=2)
        reach = np.quantile(largest, level, axis=1)[:, np.newaxis] * deviation
        found.lower[rows], found.upper[rows] = np.minimum(lower, here), np.maximum(upper, here)
        found.band_lower[rows] = np.clip(np.minimum(here - reach, found.lower[rows]), 0.0, 1.0)
        found.band_upper[rows] = np.clip(np.maximum(here + reach, found.upper[rows]), 0.0, 1.0)
    return point, never_certain(found, point, samples)
