"""Half-widths that cover the truth in validation, in units of the posterior's deviation.

Samples are classed by how far they seem to have moved, labels by how many positives are expected;
a stratum with few validation samples has the multiples of Gaussian errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import norm

from prevalens.aggregators.counting import binomial_median
from prevalens.aggregators.mixture.scenarios import Posterior
from prevalens.types import Floats, Ints
from prevalens.validation_shifts import ShiftedSplit

#: Expected numbers of positives that separate the strata of labels.
_STRATA = (0.1, 0.3, 1.0, 3.0, 10.0)
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


@dataclass(frozen=True)
class Multiples:
    """Multiples of the posterior deviation for the intervals of single labels.

    Attributes
    ----------
    cuts : array, shape (n_classes - 1,)
        Moves between which the classes of samples lie.
    values : array, shape (n_classes, n_strata, n_levels)
    """

    cuts: Floats
    values: Floats

    @classmethod
    def gaussian(cls) -> Self:
        """The multiples of Gaussian errors, in one class."""
        return cls(np.zeros(0), np.tile(_gaussian(), (1, len(_STRATA) + 1, 1)))

    @classmethod
    def of(
        cls,
        validated: Mapping[ShiftedSplit, Posterior],
        n_classes: int,
        weights: Mapping[str, float],
    ) -> Self:
        """Quantiles over validation samples; families without an entry in `weights` weigh 1."""
        moved = np.concatenate([_moved(p, split.naive) for split, p in validated.items()])
        cuts = np.quantile(moved, np.arange(1, n_classes) / n_classes)
        place = np.searchsorted(cuts, moved)
        stratum, ratio = _strata(validated), _ratios(validated)
        each = _sample_weights(validated, weights)[:, np.newaxis]
        values = np.tile(_gaussian(), (n_classes, len(_STRATA) + 1, 1))
        for number in np.unique(place):
            for cell in range(len(_STRATA) + 1):
                inside = (place == number)[:, np.newaxis] & (stratum == cell)
                if inside.sum() >= _ENOUGH:
                    weight = np.broadcast_to(each, inside.shape)[inside]
                    values[number, cell] = _quantiles(ratio[inside], weight)
        return cls(cuts, values)

    def places(self, posterior: Posterior, prevalence: Floats) -> Ints:
        """The class of each sample."""
        return np.searchsorted(self.cuts, _moved(posterior, prevalence))

    def at(self, places: Ints, stratum: Ints, level: float) -> Floats:
        """The multiples at a level, shape (n_samples, n_labels)."""
        return np.asarray(self.values[:, :, _position(level)][places[:, np.newaxis], stratum])

    def half_widths(
        self, posterior: Posterior, sizes: Ints, prevalence: Floats, level: float
    ) -> Floats:
        """Half-widths of the intervals of all labels, shape (n_samples, n_labels)."""
        places = self.places(posterior, prevalence)
        stratum = _stratum(posterior.mean, sizes[:, np.newaxis])
        return self.at(places, stratum, level) * np.sqrt(posterior.variance)


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
    def of(
        cls,
        validated: Mapping[ShiftedSplit, Posterior],
        n_classes: int,
        weights: Mapping[str, float],
    ) -> Self:
        """Quantiles, over validation samples, of the largest ratio of a sample's labels."""
        single = Multiples.of(validated, n_classes, weights)
        places = np.concatenate([single.places(p, split.naive) for split, p in validated.items()])
        largest = (_ratios(validated) / _tails(single, places, _strata(validated))).max(axis=1)
        each = _sample_weights(validated, weights)
        # Where many samples moved equally far, classes may be empty: they get those of all samples.
        wider = _LEVELS + _BAND_SLACK * (1 - _LEVELS)
        by_class = np.tile(_quantiles(largest, each, wider), (n_classes, 1))
        for number in np.unique(places):
            inside = places == number
            by_class[number] = _quantiles(largest[inside], each[inside], wider)
        return cls(single, by_class)

    def half_widths(
        self, posterior: Posterior, sizes: Ints, prevalence: Floats, level: float
    ) -> Floats:
        """Half-widths of the bands of all labels, shape (n_samples, n_labels)."""
        places = self.single.places(posterior, prevalence)
        tails = _tails(self.single, places, _stratum(posterior.mean, sizes[:, np.newaxis]))
        largest = self.largest[:, _position(level)][places][:, np.newaxis]
        return np.asarray(largest * tails * np.sqrt(posterior.variance))


def _tails(single: Multiples, places: Ints, stratum: Ints) -> Floats:
    return np.maximum(single.at(places, stratum, _TAIL), _LEAST)


def _moved(posterior: Posterior, prevalence: Floats) -> Floats:
    """How far a sample seems to have moved from the training items."""
    return np.asarray(np.abs(posterior.mean - prevalence).mean(axis=1))


def _stratum(mean: Floats, size: Any) -> Ints:
    return np.searchsorted(_STRATA, mean * size, side="right")


def _strata(validated: Mapping[ShiftedSplit, Posterior]) -> Ints:
    return np.concatenate([_stratum(p.mean, split.size) for split, p in validated.items()])


def _ratios(validated: Mapping[ShiftedSplit, Posterior]) -> Floats:
    """Distances of the truth in posterior deviations; 0 for a rare label that is absent."""
    parts = []
    for split, p in validated.items():
        ratio = np.abs(split.true - p.mean) / np.sqrt(p.variance)
        absent = (split.true == 0) & (binomial_median(p.mean, split.size) == 0)
        parts.append(np.where(absent, 0.0, ratio))
    return np.concatenate(parts)


def _sample_weights(splits: Mapping[ShiftedSplit, Any], by_family: Mapping[str, float]) -> Floats:
    """One weight for each sample of the splits."""
    return np.concatenate([np.full(len(a.true), by_family.get(a.family, 1.0)) for a in splits])


def _position(level: float) -> int:
    return int(np.argmin(np.abs(_LEVELS - level)))


def _quantiles(values: Floats, weights: Floats, levels: Floats = _LEVELS) -> Floats:
    """At each level: the least value with that share of the weight at or below it."""
    order = np.argsort(values)
    share = np.cumsum(weights[order]) / weights.sum()
    # Sums of weights may end a little below 1.
    at = np.searchsorted(share, np.minimum(levels, 1) - 1e-9)
    return values[order][np.minimum(at, len(values) - 1)]


def _gaussian(n_labels: int = 1) -> Floats:
    """Multiples of the deviation at `_LEVELS` if all errors are Gaussian and independent."""
    return norm.ppf((1 + np.clip(_LEVELS, 0, 0.9999) ** (1 / n_labels)) / 2)
