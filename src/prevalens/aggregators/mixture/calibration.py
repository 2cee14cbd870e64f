"""Ends of intervals and bands that cover the truth in validation, in posterior deviations.

Validation samples are classed by how far they seem to have moved; their labels by how far the label
itself seems to have moved, and by how many positives are expected. Ends towards the training
prevalence and away from it are calibrated apart: a move is underestimated more often than
overestimated. All of it is done at several batch sizes, and interpolated between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from scipy.stats import norm

from prevalens.aggregators.counting import binomial_median
from prevalens.aggregators.mixture.scenarios import Posterior
from prevalens.types import Floats, Ints
from prevalens.validation_shifts import ShiftedSplit

#: Expected numbers of positives that separate the strata of labels.
_STRATA = (0.1, 0.3, 1.0, 3.0, 10.0)
#: Moves of a label, in posterior deviations, that separate the classes of labels.
_MOVES = (0.5, 1.5)
#: Bands are multiples of intervals at this level, so that rare and frequent labels miss as often.
_TAIL = 0.99
#: Least such multiple: a stratum without errors in validation may have some later.
_LEAST = 0.5
#: Share of the permitted misses that bands do not use. Over random divisions of six
#: datasets, bands cover 85 to 95 % of new samples in 14 of 18 cells with it or without; on the
#: datasets' own test parts in 10 with it, in 8 without (docs/mixture.md).
_BAND_SLACK = 0.15
#: Pairs of sample and label from which a quantile is taken.
_ENOUGH = 60
#: Levels at which the calibration is kept.
_LEVELS = np.concatenate([np.arange(0.0, 0.99, 0.01), np.arange(0.99, 1.0005, 0.001)])

#: Distances of the lower and the upper ends from the posterior mean, (n_samples, n_labels) each.
Ends: TypeAlias = tuple[Floats, Floats]
_Validated: TypeAlias = Mapping[ShiftedSplit, Posterior]


@dataclass(frozen=True)
class Multiples:
    """Multiples of the posterior deviation for the intervals of single labels.

    Attributes
    ----------
    cuts : array, shape (n_classes - 1,)
        Moves between which the classes of samples lie.
    values : array, shape (n_classes, n_moves, n_strata, 2, n_levels)
        Towards the training prevalence, and away from it.
    """

    cuts: Floats
    values: Floats

    @classmethod
    def gaussian(cls) -> Self:
        """The multiples of Gaussian errors, in one class."""
        shape = (1, len(_MOVES) + 1, len(_STRATA) + 1, 2, 1)
        return cls(np.zeros(0), np.tile(_gaussian(), shape))

    @classmethod
    def of(cls, validated: _Validated, n_classes: int, weights: Mapping[str, float]) -> Self:
        """Quantiles over validation samples; families without an entry in `weights` weigh 1."""
        return cls.of_errors(_Errors.of(validated, weights), n_classes)

    @classmethod
    def of_errors(cls, errors: _Errors, n_classes: int) -> Self:
        """Quantiles of errors: O(n log n), every error is sorted once."""
        cuts = np.quantile(errors.moved, np.arange(1, n_classes) / n_classes)
        n_strata = len(_STRATA) + 1
        cell = np.searchsorted(cuts, errors.moved)[:, np.newaxis] * n_strata + errors.stratum
        # Small integers are sorted by counting.
        order = np.argsort(cell.astype(np.uint16), axis=None, kind="stable")
        ends = np.cumsum(np.bincount(cell.ravel(), minlength=n_classes * n_strata))
        away, move = errors.away.ravel(), errors.move.ravel()
        values = np.tile(_gaussian(), (n_classes, len(_MOVES) + 1, n_strata, 2, 1))
        for number, inside in enumerate(np.split(order, ends[:-1])):
            place, stratum = divmod(number, n_strata)
            inside = inside[np.argsort(away[inside])]
            some, weight = away[inside], errors.weight[inside // errors.away.shape[1]]
            values[place, :, stratum] = _sides(some, weight, values[place, 0, stratum])
            for kind in range(len(_MOVES) + 1):
                own = move[inside] == kind
                default = values[place, kind, stratum]
                values[place, kind, stratum] = _sides(some[own], weight[own], default)
        return cls(cuts, values)

    def places(self, posterior: Posterior, prevalence: Floats) -> Ints:
        """The class of each sample."""
        return np.searchsorted(self.cuts, _moved(posterior, prevalence))

    def at(self, place: Ints, move: Ints, stratum: Ints, level: float) -> Floats:
        """The multiples at a level, towards and away, shape (n_samples, n_labels, 2)."""
        table = self.values[..., _position(level)]
        return np.asarray(table[place[:, np.newaxis], move, stratum])

    def ends(self, posterior: Posterior, sizes: Ints, prevalence: Floats, level: float) -> Ends:
        """Distances of the ends of the intervals from the posterior mean."""
        place = self.places(posterior, prevalence)
        cells = _move(posterior, prevalence), _stratum(posterior.mean, sizes[:, np.newaxis])
        return _ends(self.at(place, *cells, level), posterior, prevalence)


@dataclass(frozen=True)
class Bands:
    """Multiples of the posterior deviation for bands that hold all labels of a sample.

    Attributes
    ----------
    single : Multiples
        A band is a multiple of these at the level 0.99.
    largest : array, shape (n_classes, n_levels)
    """

    single: Multiples
    largest: Floats

    @classmethod
    def gaussian(cls, n_labels: int) -> Self:
        """The multiples of Gaussian and independent errors."""
        largest = _gaussian(n_labels)[np.newaxis] / _gaussian()[_position(_TAIL)]
        return cls(Multiples.gaussian(), largest)

    @classmethod
    def of(cls, validated: _Validated, n_classes: int, weights: Mapping[str, float]) -> Self:
        """Quantiles, over validation samples, of the largest ratio of a sample's labels."""
        errors = _Errors.of(validated, weights)
        single, each = Multiples.of_errors(errors, n_classes), errors.weight
        places = np.searchsorted(single.cuts, errors.moved)
        tails = np.maximum(single.at(places, errors.move, errors.stratum, _TAIL), _LEAST)
        towards, away = tails[..., 0], tails[..., 1]
        largest = np.where(errors.away >= 0, errors.away / away, -errors.away / towards).max(axis=1)
        # Where many samples moved equally far, classes may be empty: they get those of all samples.
        wider = _LEVELS + _BAND_SLACK * (1 - _LEVELS)
        by_class = np.tile(_quantiles(largest, each, wider), (n_classes, 1))
        for number in np.unique(places):
            inside = places == number
            by_class[number] = _quantiles(largest[inside], each[inside], wider)
        return cls(single, by_class)

    def ends(self, posterior: Posterior, sizes: Ints, prevalence: Floats, level: float) -> Ends:
        """Distances of the ends of the bands from the posterior mean."""
        place = self.single.places(posterior, prevalence)
        cells = _move(posterior, prevalence), _stratum(posterior.mean, sizes[:, np.newaxis])
        tails = np.maximum(self.single.at(place, *cells, _TAIL), _LEAST)
        largest = self.largest[:, _position(level)][place][:, np.newaxis, np.newaxis]
        return _ends(largest * tails, posterior, prevalence)


@dataclass(frozen=True)
class BySize:
    """A calibration at each of several batch sizes, linear in the logarithm of the size between.

    Attributes
    ----------
    sizes : array of float, shape (n_sizes,)
        Ascending.
    parts : tuple of Multiples or of Bands
    """

    sizes: Floats
    parts: tuple[Any, ...]

    @classmethod
    def of(
        cls,
        kind: type[Multiples] | type[Bands],
        validated: _Validated,
        n_classes: int,
        weights: Mapping[str, float],
    ) -> Self:
        """Calibrate at each size of the validation samples."""
        by_size: dict[int, dict[ShiftedSplit, Posterior]] = {}
        for split, posterior in validated.items():
            by_size.setdefault(split.planned, {})[split] = posterior
        sizes = sorted(by_size)
        parts = tuple(kind.of(by_size[size], n_classes, weights) for size in sizes)
        return cls(np.array(sizes, dtype=np.float64), parts)

    def ends(self, posterior: Posterior, sizes: Ints, prevalence: Floats, level: float) -> Ends:
        """Distances of the ends from the posterior mean."""
        lower, upper = np.zeros_like(posterior.mean), np.zeros_like(posterior.mean)
        for part, share in zip(self.parts, self._shares(sizes), strict=True):
            below, above = part.ends(posterior, sizes, prevalence, level)
            lower += share[:, np.newaxis] * below
            upper += share[:, np.newaxis] * above
        return lower, upper

    def _shares(self, sizes: Ints) -> Floats:
        """Weight of each calibration in each sample, shape (n_sizes, n_samples)."""
        at = np.interp(np.log(sizes), np.log(self.sizes), np.arange(len(self.sizes)))
        return np.maximum(1 - np.abs(at - np.arange(len(self.sizes))[:, np.newaxis]), 0)


def _ends(multiples: Floats, posterior: Posterior, prevalence: Floats) -> Ends:
    """Multiples towards and away from the training prevalence as distances below and above."""
    deviation = np.sqrt(posterior.variance)
    towards, away = multiples[..., 0] * deviation, multiples[..., 1] * deviation
    up = posterior.mean >= prevalence
    return np.where(up, towards, away), np.where(up, away, towards)


def _sides(errors: Floats, weights: Floats, default: Floats) -> Floats:
    """Quantiles of ascending errors on both sides, (2, n_levels); the default for few errors."""
    if len(errors) < _ENOUGH:
        return default
    tails = (1 + _LEVELS) / 2
    below = _sorted_quantiles(-errors[::-1], weights[::-1], tails)
    return np.maximum([below, _sorted_quantiles(errors, weights, tails)], 0)


class _Errors(NamedTuple):
    """Errors of validation samples.

    Attributes
    ----------
    away : array of float, shape (n_samples, n_labels)
        Errors away from the training prevalence in posterior deviations. The error of a rare label
        that is absent counts as 0.
    move, stratum : array of int, shape (n_samples, n_labels)
        Classes of the labels by their move and by their expected number of positives.
    moved, weight : array of float, shape (n_samples,)
        How far samples seem to have moved, and what they weigh.
    """

    away: Floats
    move: Ints
    stratum: Ints
    moved: Floats
    weight: Floats

    @classmethod
    def of(cls, validated: _Validated, by_family: Mapping[str, float]) -> _Errors:
        """Of all splits; families without an entry in `by_family` weigh 1."""
        parts = []
        for split, p in validated.items():
            sign = np.where(p.mean >= split.naive, 1.0, -1.0)
            error = sign * (split.true - p.mean) / np.sqrt(p.variance)
            absent = (split.true == 0) & (binomial_median(p.mean, split.size) == 0)
            weight = np.full(len(split.true), by_family.get(split.family, 1.0))
            parts.append(
                (
                    np.where(absent, 0.0, error),
                    _move(p, split.naive),
                    _stratum(p.mean, split.size),
                    _moved(p, split.naive),
                    weight,
                )
            )
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


def _moved(posterior: Posterior, prevalence: Floats) -> Floats:
    """How far a sample seems to have moved from the training items."""
    return np.asarray(np.abs(posterior.mean - prevalence).mean(axis=1))


def _move(posterior: Posterior, prevalence: Floats) -> Ints:
    """Class of each label by how far it seems to have moved."""
    moved = np.abs(posterior.mean - prevalence) / np.sqrt(posterior.variance)
    return np.searchsorted(_MOVES, moved, side="right")


def _stratum(mean: Floats, size: Any) -> Ints:
    return np.searchsorted(_STRATA, mean * size, side="right")


def _position(level: float) -> int:
    return int(np.argmin(np.abs(_LEVELS - level)))


def _quantiles(values: Floats, weights: Floats, levels: Floats = _LEVELS) -> Floats:
    """At each level: the least value with that share of the weight at or below it."""
    order = np.argsort(values)
    return _sorted_quantiles(values[order], weights[order], levels)


def _sorted_quantiles(values: Floats, weights: Floats, levels: Floats) -> Floats:
    """`_quantiles` of ascending values."""
    share = np.cumsum(weights) / weights.sum()
    # Sums of weights may end a little below 1.
    at = np.searchsorted(share, np.minimum(levels, 1) - 1e-9)
    return values[np.minimum(at, len(values) - 1)]


def _gaussian(n_labels: int = 1) -> Floats:
    """Multiples of the deviation at `_LEVELS` if all errors are Gaussian and independent."""
    return norm.ppf((1 + np.clip(_LEVELS, 0, 0.9999) ** (1 / n_labels)) / 2)
