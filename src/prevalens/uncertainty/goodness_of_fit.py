"""The alarm: whether a mix of training items explains the posteriors of a sample.

Under any change of the label mix alone, the part of the scores that labels do not explain stays
as it was. The alarm measures how far it has moved, and compares with validation samples of each
family of label shift: among samples that only such a shift has changed, one in a hundred alarms.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prevalens.batches import OPENNESS, VALUES, Batches, ScoredSamples
from prevalens.estimate import Intervals
from prevalens.scores import Scores
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.uncertainty.drift import arcsine, from_arcsine, quantile
from prevalens.validation import PrevalensWarning, check_rng
from prevalens.validation_shifts import draw_shifts

#: Directions of the scores at most.
_DIRECTIONS = 200
#: Directions of less variance than this, against the largest, are left out.
_LEAST = 1e-3
_TINY = 1e-9
#: Samples per fold, family of shift and size.
_SAMPLES = 40
#: Least number of items in a fold, and parts of labelled items that do not come in folds.
_LEAST_FOLD, _FOLDS = 10, 5


@dataclass(frozen=True)
class _Frame:
    """Coordinates in which the part of the scores that labels do not explain is white noise.

    Attributes
    ----------
    centre : array of float, shape (n_scores,)
    directions : array of float, shape (n_scores, n_directions)
    explained : array of float, shape (n_directions,)
        Variance that a shift of the labels may give each coordinate.
    n_items : int
        Number of items it was fitted on.
    per_drift : float
        Variance of the coordinates if all labels drift by a standard deviation of 1 on the scale of
        `arcsine`, and their posteriors with them.
    """

    centre: Floats
    directions: Floats
    explained: Floats
    n_items: int
    per_drift: float

    def place(self, batches: Batches) -> Floats:
        """Coordinates of the batches' mean scores."""
        means = np.hstack([batches.mean(VALUES), batches.mean(OPENNESS)])
        return np.asarray((means - self.centre) @ self.directions)

    def distance(self, place: Floats, variance: Floats) -> Floats:
        """Mean square of the coordinates, each in units of what is to be expected."""
        squares = place**2 / (variance[:, np.newaxis] + self.explained)
        # Constant scores leave no direction, and nothing to tell samples apart by.
        return np.asarray(squares.sum(axis=1) / max(len(self.explained), 1))

    def excess(self, place: Floats, variance: Floats) -> Floats:
        """Variance beyond the expected variance, in directions that labels hardly explain."""
        open_ = self.explained < np.median(variance)
        if not open_.any():
            return np.zeros(len(place))
        return np.asarray((place[:, open_] ** 2).mean(axis=1) - variance)


@dataclass(frozen=True)
class Misfit:
    """How far the mean scores of a sample lie from what the labels' mix can explain.

    Scores are the posteriors p and p (1 - p), which measures confidence. Their part that is not
    linear in the labels has mean 0 under any change of the label mix, if the linear model holds.
    Distances count less in directions along which labels move the scores.

    Attributes
    ----------
    frame : _Frame
    slack : float
        Variance under label shift and between classifiers that no sample size removes.
    sizes : array of float, shape (n_sizes,)
        Sizes of the samples that are known to be explained.
    known : tuple of n_sizes tuples of arrays of float
        Ascending distances of these samples, by size and family of shift.
    """

    frame: _Frame
    slack: float
    sizes: Floats
    known: tuple[tuple[Floats, ...], ...]

    def p_value(self, batches: Batches, *, drift: float = 0.0, slack: Any = 0.0) -> Floats:
        """Share of explained samples that lie at least as far off, shape (n_batches,).

        The largest share over the families of shift, among samples of the nearest size.

        Parameters
        ----------
        batches : Batches
            Of posteriors.
        drift : float
            Standard deviation of the drift that intervals allow for; what they hold is no alarm.
        slack : float, or array of shape (n_batches,)
            Variance of the scores that drift over time was seen to have, if that is more.
        """
        place = self.frame.place(batches)
        allowed = np.maximum(drift**2 * self.frame.per_drift, slack)
        variance = 1.0 / batches.sizes + 1.0 / self.frame.n_items + self.slack + allowed
        distance = self.frame.distance(place, variance)
        far = np.abs(np.log(batches.sizes)[:, np.newaxis] - np.log(self.sizes))
        nearest = far.argmin(axis=1)
        p_value = np.ones(len(batches))
        for number in np.unique(nearest):
            rows = nearest == number
            shares = [_share_beyond(family, distance[rows]) for family in self.known[number]]
            p_value[rows] = np.max(shares, axis=0)
        return p_value

    def excess(self, batches: Batches) -> Floats:
        """Variance of each batch beyond what label shift explains, shape (n_batches,)."""
        place = self.frame.place(batches)
        variance = 1.0 / batches.sizes + 1.0 / self.frame.n_items + self.slack
        return self.frame.excess(place, variance)


def _share_beyond(known: Floats, distance: Floats) -> Floats:
    beyond = len(known) - np.searchsorted(known, distance)
    return np.asarray((1.0 + beyond) / (1.0 + len(known)))


def fit_alarm(scores: Scores, Y: LabelMatrix, folds: Ints | None) -> Misfit | None:
    """The alarm for labelled scores; None if they are no posteriors, or too few items."""
    if scores.kind != "posteriors":
        return None
    rng = check_rng(0)
    if folds is None:
        folds = rng.permutation(len(Y)) % _FOLDS
    counts = np.unique(folds, return_counts=True)[1]
    if len(counts) < 2 or counts.min() < _LEAST_FOLD:
        return None
    return fit_misfit(scores.values, Y, folds, rng)


def fit_misfit(posteriors: Array, Y: LabelMatrix, folds: Ints, rng: np.random.Generator) -> Misfit:
    """Learn from labelled posteriors.

    Parameters
    ----------
    posteriors : array of float, shape (n_items, n_labels)
    Y : 0/1 array, shape (n_items, n_labels)
    folds : array of int, shape (n_items,)
        Items of one fold have their scores from one classifier. Samples of each fold are
        measured in the frame of the others, so that differences between classifiers count as
        explained.
    rng : numpy Generator

    Notes
    -----
    O(n_folds x n_items x n_labels^2). For many labels only the directions of largest variance
    are used.
    """
    measured = [_measured(posteriors, Y, folds == fold, rng) for fold in np.unique(folds)]
    excess = [part.frame.excess(part.place, part.variance).mean() for part in measured]
    slack = max(float(np.mean(excess)), 0.0)
    distance = np.concatenate([m.frame.distance(m.place, m.variance + slack) for m in measured])
    family = np.concatenate([part.family for part in measured])
    size = np.concatenate([part.size for part in measured])
    sizes = np.unique(size)
    known = tuple(
        tuple(np.sort(distance[(size == n) & (family == f)]) for f in np.unique(family[size == n]))
        for n in sizes
    )
    return Misfit(_fit_frame(posteriors, Y), slack, sizes.astype(np.float64), known)


class _Measured(NamedTuple):
    """Frame of all folds but one, and places and variances of samples of that one in it."""

    frame: _Frame
    place: Floats
    variance: Floats
    family: Ints
    size: Ints


def _measured(
    posteriors: Array, Y: LabelMatrix, in_fold: npt.NDArray[np.bool_], rng: np.random.Generator
) -> _Measured:
    rest, held = np.flatnonzero(~in_fold), np.flatnonzero(in_fold)
    frame = _fit_frame(posteriors[rest], Y[rest])
    samples, family = draw_shifts(Y[held], _SAMPLES, rng)
    # Drawing without replacement from few items lowers a sample's variance; their mean has its own.
    variance = (1.0 - samples.sizes / len(held)) / samples.sizes + 1.0 / len(held) + 1.0 / len(rest)
    # Folds differ by an item or so; sizes that follow from theirs are rounded to two digits.
    size = np.array([float(f"{n:.1e}") for n in samples.sizes.tolist()])
    place = frame.place(ScoredSamples(Scores(posteriors[held]), samples))
    return _Measured(frame, place, variance, family, size)


def _fit_frame(posteriors: Array, Y: LabelMatrix) -> _Frame:
    prevalence = Y.mean(axis=0)
    features, labels = _features(posteriors), Y - prevalence
    centre = features.mean(axis=0)
    gram = labels.T @ labels
    gram[np.diag_indices_from(gram)] += 1.0
    effect = np.linalg.solve(gram, labels.T @ (features - centre))
    residuals = features - centre - labels @ effect
    directions = _whitening(residuals)
    spread = np.sqrt(prevalence * (1.0 - prevalence))
    # Axes along which a shift of the labels moves the scores, and by how much.
    moves = spread[:, np.newaxis] * effect @ directions
    explained, along = np.linalg.eigh(moves.T @ moves)
    own = residuals[:, : len(prevalence)].var(axis=0)
    per_drift = float(np.median((2.0 * spread) ** 2 / np.maximum(own, _TINY)))
    return _Frame(centre, directions @ along, np.maximum(explained, 0.0), len(Y), per_drift)


def _features(posteriors: Array) -> Floats:
    values = np.asarray(posteriors, dtype=np.float64)
    return np.hstack([values, values * (1.0 - values)])


def _whitening(residuals: Floats) -> Floats:
    """Principal directions of standardised residuals, each scaled to unit variance."""
    deviation = residuals.std(axis=0)
    per_deviation = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 1e-9)
    standard = residuals * per_deviation
    values, vectors = np.linalg.eigh(standard.T @ standard / len(standard))
    kept = np.flatnonzero(values > _LEAST * values[-1])[-_DIRECTIONS:]
    return per_deviation[:, np.newaxis] * vectors[:, kept] / np.sqrt(values[kept])


#: p-value below which the alarm names the sample.
MISFIT = 0.01
#: Maximum number of samples that a warning names.
_NAMED = 5
#: An alarming batch: factor on the variance that intervals claim, and standard deviation of the
#: moves that are to be expected beforehand, on the scale of `arcsine`.
_DOUBT, _USUAL_MOVE = 4.0, 0.2


def cautious(point: Floats, intervals: Intervals, prevalence: Floats, level: float) -> Floats:
    """Shrink the estimates of samples that alarm towards the training prevalence.

    Parameters
    ----------
    point : array of float, shape (n_samples, n_labels)
    intervals : Intervals
    prevalence : array of float, shape (n_labels,)
        In the training items.
    level : float
        Of the intervals.

    Notes
    -----
    Where a batch is not explained, the variance that an interval claims is taken four times, and
    weighed against moves of 12 points for a label of 10 %, or 20 points for one of 50 %: an
    estimate whose interval is narrow stays, one that the scores hardly support gives way.
    """
    half = (arcsine(intervals.upper) - arcsine(intervals.lower)) / 2.0
    claimed = _DOUBT * (half / quantile(level)) ** 2
    kept = _USUAL_MOVE**2 / (_USUAL_MOVE**2 + claimed)
    centre = arcsine(prevalence)
    return from_arcsine(centre + kept * (arcsine(point) - centre))


class MisfitWarning(PrevalensWarning):
    """Batches differ from the training data in more than the label mix."""


def warn_of_misfit(p_value: Floats, names: Sequence[Any] | None) -> None:
    """Issue one warning that names the samples that alarm, and says what to do.

    Parameters
    ----------
    p_value : array of float, shape (n_samples,)
    names : sequence, optional
        One per sample; None if there is a single batch without a name.
    """
    bad = np.flatnonzero(p_value < MISFIT)
    if len(bad):
        alarming = None if names is None else [names[i] for i in bad.tolist()]
        sentence = misfit_sentence(float(p_value[bad].min()), alarming)
        warnings.warn(sentence, MisfitWarning, stacklevel=4)


def misfit_sentence(p_value: float, names: Sequence[Any] | None) -> str:
    """Which batches alarm, what that means and what to do.

    Parameters
    ----------
    p_value : float
        The smallest of their p-values.
    names : sequence, optional
        Of the batches that alarm; None if there is a single batch without a name.
    """
    return (
        f"{_subject(names)} from the training data in more than the label mix (chance alone makes "
        f"such a difference in {100 * p_value:.2g} % of batches): errors may be larger there than "
        "the intervals say. Label about 50 items of such a batch, drawn at random, to find out: "
        "prevalens sample MODEL BATCH -n 50."
    )


def _subject(names: Sequence[Any] | None) -> str:
    if names is None:
        return "The batch differs"
    shown = ", ".join(map(repr, names[:_NAMED]))
    if len(names) == 1:
        return f"Batch {shown} differs"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"Batches {shown}{more} differ"
