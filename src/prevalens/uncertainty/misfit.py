"""Does a sample look like any mix of training items? A goodness of fit for posteriors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from prevalens.samples import Samples

__all__ = ["Misfit", "fit_misfit"]

Floats: TypeAlias = npt.NDArray[np.float64]

#: Directions of the scores at most.
_DIRECTIONS = 200
_LEAST = 1e-3


@dataclass(frozen=True)
class Misfit:
    """How far the mean scores of a sample lie from what the labels' mix can explain.

    Scores are the posteriors p and their p (1 - p), which tells of confidence. Their part that is
    not linear in the labels has mean 0 under any change of the label mix (as far as
    the line holds). Distances count less in directions along which labels move the scores.

    Attributes
    ----------
    centre : array of float, shape (n_scores,)
    directions : array of float, shape (n_scores, n_directions)
        To coordinates in which the unexplained part of an item has unit covariance.
    explained : array of float, shape (n_directions,)
        Variance that a shift of the labels may give each coordinate.
    slack : float
        Variance that is left under label shift, however large the sample is.
    known : array of float, shape (n_known,)
        Ascending distances of samples that are explained.
    """

    centre: Floats
    directions: Floats
    explained: Floats
    slack: float
    known: Floats

    def p_value(self, posteriors: npt.NDArray[np.floating], samples: Samples) -> Floats:
        """Share of explained samples that look as far off, shape (n_samples,)."""
        place = self._place(posteriors, samples)
        distance = self._distance(place, 1.0 / samples.sizes)
        beyond = len(self.known) - np.searchsorted(self.known, distance)
        return np.asarray((1.0 + beyond) / (1.0 + len(self.known)))

    def _place(self, posteriors: npt.NDArray[np.floating], samples: Samples) -> Floats:
        return np.asarray((samples.mean(_features(posteriors)) - self.centre) @ self.directions)

    def _distance(self, place: Floats, variance: Floats) -> Floats:
        scale = variance[:, np.newaxis] + self.slack + self.explained
        return np.asarray((place**2 / scale).sum(axis=1))


def fit_misfit(
    posteriors: npt.NDArray[np.floating], Y: npt.NDArray[np.int8], samples: Samples
) -> Misfit:
    """Learn from labelled posteriors and from samples of them under label shift.

    Notes
    -----
    O(n_items x n_labels^2). For many labels the directions of largest variance stand for all.
    """
    features, labels = _features(posteriors), Y - Y.mean(axis=0)
    centre = features.mean(axis=0)
    effect = _ridge(labels, features - centre)
    directions = _whitening(features - centre - labels @ effect)
    prior = np.sqrt(Y.mean(axis=0) * (1 - Y.mean(axis=0)))
    along, explained = _shift_axes(prior[:, np.newaxis] * effect @ directions)
    misfit = Misfit(centre, directions @ along, explained, 0.0, np.empty(0))
    return _calibrated(misfit, posteriors, samples)


def _calibrated(misfit: Misfit, posteriors: npt.NDArray[np.floating], samples: Samples) -> Misfit:
    place = misfit._place(posteriors, samples)
    # Drawn without replacement: a sample of half the pool varies half as much.
    variance = (1.0 - samples.sizes / (samples.n_items + 1.0)) / samples.sizes
    unexplained = misfit.explained < np.median(variance)
    excess = 0.0
    if unexplained.any():
        excess = float(np.mean((place[:, unexplained] ** 2).mean(axis=1) - variance))
    parts = (misfit.centre, misfit.directions, misfit.explained, max(excess, 0.0))
    known = np.sort(Misfit(*parts, np.empty(0))._distance(place, variance))
    return Misfit(*parts, known)


def _features(posteriors: npt.NDArray[np.floating]) -> Floats:
    values = np.asarray(posteriors, dtype=np.float64)
    return np.hstack([values, values * (1.0 - values)])


def _ridge(labels: Floats, features: Floats) -> Floats:
    gram = labels.T @ labels
    gram[np.diag_indices_from(gram)] += 1.0
    return np.asarray(np.linalg.solve(gram, labels.T @ features))


def _whitening(residuals: Floats) -> Floats:
    """Principal directions of standardised residuals, each scaled to unit variance."""
    deviation = residuals.std(axis=0)
    per_deviation = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 1e-9)
    standard = residuals * per_deviation
    values, vectors = np.linalg.eigh(standard.T @ standard / len(standard))
    kept = np.flatnonzero(values > _LEAST * values[-1])[-_DIRECTIONS:]
    return per_deviation[:, np.newaxis] * vectors[:, kept] / np.sqrt(values[kept])


def _shift_axes(effect: Floats) -> tuple[Floats, Floats]:
    """Axes along which a shift of the labels moves the scores, and how much."""
    explained, along = np.linalg.eigh(effect.T @ effect)
    return along, np.maximum(explained, 0.0)
