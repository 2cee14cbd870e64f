"""Goodness of fit: whether a mix of training items explains the posteriors of a sample."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.samples import Samples
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.validation import PrevalensWarning
from prevalens.validation_shifts import draw_shifts

#: Directions of the scores at most.
_DIRECTIONS = 200
#: Directions of less variance than this, against the largest, are left out.
_LEAST = 1e-3
#: Samples per fold, kind of shift and size.
_SAMPLES = 40


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
    """

    centre: Floats
    directions: Floats
    explained: Floats
    n_items: int

    def place(self, posteriors: Array, samples: Samples) -> Floats:
        """Coordinates of the samples' mean scores."""
        return np.asarray((samples.mean(_features(posteriors)) - self.centre) @ self.directions)

    def distance(self, place: Floats, variance: Floats) -> Floats:
        """Mean square of the coordinates, each in units of what is to be expected."""
        return np.asarray((place**2 / (variance[:, np.newaxis] + self.explained)).mean(axis=1))

    def excess(self, place: Floats, variance: Floats) -> float:
        """Variance beyond the expected variance, in directions that labels hardly explain."""
        open_ = self.explained < np.median(variance)
        if not open_.any():
            return 0.0
        return float(np.mean((place[:, open_] ** 2).mean(axis=1) - variance))


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
    known : array of float, shape (n_known,)
        Ascending distances of samples that are explained.
    """

    frame: _Frame
    slack: float
    known: Floats

    def p_value(self, posteriors: Array, samples: Samples) -> Floats:
        """Share of explained samples that lie at least as far off, shape (n_samples,)."""
        place = self.frame.place(posteriors, samples)
        variance = 1.0 / samples.sizes + 1.0 / self.frame.n_items + self.slack
        beyond = len(self.known) - np.searchsorted(self.known, self.frame.distance(place, variance))
        return np.asarray((1.0 + beyond) / (1.0 + len(self.known)))


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
    excess = float(np.mean([frame.excess(place, variance) for frame, place, variance in measured]))
    slack = max(excess, 0.0)
    distances = [frame.distance(place, variance + slack) for frame, place, variance in measured]
    return Misfit(_fit_frame(posteriors, Y), slack, np.sort(np.concatenate(distances)))


def _measured(
    posteriors: Array, Y: LabelMatrix, in_fold: npt.NDArray[np.bool_], rng: np.random.Generator
) -> tuple[_Frame, Floats, Floats]:
    """Frame of the other folds, and places and variances of samples of this fold in it."""
    rest, held = np.flatnonzero(~in_fold), np.flatnonzero(in_fold)
    frame = _fit_frame(posteriors[rest], Y[rest])
    samples, _ = draw_shifts(Y[held], _SAMPLES, rng)
    # Drawing without replacement from few items lowers a sample's variance; their mean has its own.
    variance = (1.0 - samples.sizes / len(held)) / samples.sizes + 1.0 / len(held) + 1.0 / len(rest)
    return frame, frame.place(posteriors[held], samples), variance


def _fit_frame(posteriors: Array, Y: LabelMatrix) -> _Frame:
    prevalence = Y.mean(axis=0)
    features, labels = _features(posteriors), Y - prevalence
    centre = features.mean(axis=0)
    gram = labels.T @ labels
    gram[np.diag_indices_from(gram)] += 1.0
    effect = np.linalg.solve(gram, labels.T @ (features - centre))
    directions = _whitening(features - centre - labels @ effect)
    spread = np.sqrt(prevalence * (1.0 - prevalence))
    # Axes along which a shift of the labels moves the scores, and by how much.
    moves = spread[:, np.newaxis] * effect @ directions
    explained, along = np.linalg.eigh(moves.T @ moves)
    return _Frame(centre, directions @ along, np.maximum(explained, 0.0), len(Y))


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


#: p-value of the goodness of fit below which a warning names the sample.
MISFIT = 0.01
#: Maximum number of samples that a warning names.
_NAMED = 5


def warn_of_misfit(p_value: Floats, names: Sequence[Any] | None) -> None:
    """Issue one warning that names the samples that no mix of training items explains.

    Parameters
    ----------
    p_value : array of float, shape (n_samples,)
    names : sequence, optional
        One per sample; None if there is a single batch without a name.
    """
    bad = np.flatnonzero(p_value < MISFIT)
    if len(bad) == 0:
        return
    lowest = p_value[bad].min()
    warnings.warn(
        f"{_subject(bad, names)} unlike anything the training data can explain (goodness of fit "
        f"p = {lowest:.2g}): labels may look different there than in training, or "
        "co-occur differently; the estimates may be unreliable.",
        PrevalensWarning,
        stacklevel=4,
    )


def _subject(bad: Array, names: Sequence[Any] | None) -> str:
    if names is None:
        return "The batch looks"
    shown = ", ".join(repr(names[i]) for i in bad[:_NAMED])
    if len(bad) == 1:
        return f"Sample {shown} looks"
    more = f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
    return f"Samples {shown}{more} look"
