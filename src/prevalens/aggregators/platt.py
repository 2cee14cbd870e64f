"""Platt scaling of posteriors for all labels at once: a line through the log-odds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from prevalens.types import Floats, LabelMatrix

__all__ = ["apply", "fit"]

#: Posteriors of exactly 0 and 1 have no log-odds; they are moved inside by this much.
_EDGE = 1e-12
#: Pull of the slope towards 1; decides only where the log-odds do not vary.
_RIDGE = 1e-6
_ROUNDS = 100
#: Standard errors by which a slope must exceed 0. Of 960,000 uninformative labels
#: (five shapes of scores, 2 to 50 positives among 30 or 300 negatives) two passed.
_GUARD = 4.0


def log_odds(posteriors: npt.NDArray[Any]) -> Floats:
    """Log-odds in float64, finite also for posteriors of 0 and 1."""
    odds: Floats = logit(np.clip(posteriors.astype(np.float64), _EDGE, 1.0 - _EDGE))
    return odds


def apply(posteriors: npt.NDArray[Any], slope: Floats, intercept: Floats) -> Floats:
    """Calibrate posteriors, shape (n_labels, n_items), by one line per row."""
    scaled: Floats = expit(slope[:, np.newaxis] * log_odds(posteriors) + intercept[:, np.newaxis])
    return scaled


def fit(posteriors: npt.NDArray[Any], Y: LabelMatrix) -> tuple[Floats, Floats]:
    """Fit slope and intercept of every label by maximum likelihood.

    Parameters
    ----------
    posteriors : array, shape (n_items, n_labels)
    Y : 0/1 array, shape (n_items, n_labels)

    Returns
    -------
    slope, intercept : arrays of float64, shape (n_labels,)
        A label whose slope is not significantly positive gets slope 0 and the intercept of its
        prevalence: its posteriors cannot be told from noise.
    """
    x, targets = log_odds(posteriors), _targets(Y)
    slope, intercept = _newton(x, targets)
    h11, h10, h00 = _curvature(x, expit(slope * x + intercept))
    useless = slope <= _GUARD * np.sqrt(h00 / (h11 * h00 - h10 * h10))
    slope[useless] = 0.0
    intercept[useless] = logit(targets.mean(axis=0))[useless]
    return slope, intercept


def _targets(Y: LabelMatrix) -> Floats:
    """Platt's targets: 0 and 1 moved inside by as much as the number of items justifies."""
    positives = Y.sum(axis=0, dtype=np.float64)
    high = (positives + 1.0) / (positives + 2.0)
    low = 1.0 / (len(Y) - positives + 2.0)
    return np.where(Y == 1, high, low)


def _loss(x: Floats, targets: Floats, slope: Floats, intercept: Floats) -> Floats:
    z = slope * x + intercept
    loss: Floats = np.sum(np.logaddexp(0.0, z) - targets * z, axis=0)
    return loss + 0.5 * _RIDGE * (slope - 1.0) ** 2


def _newton(x: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """Newton's method with step halving, all labels in step."""
    slope, intercept = np.ones(x.shape[1]), np.zeros(x.shape[1])
    loss = _loss(x, targets, slope, intercept)
    for _ in range(_ROUNDS):
        rise, shift = _direction(x, targets, slope, intercept)
        length = np.ones_like(slope)
        trial = _loss(x, targets, slope + rise, intercept + shift)
        while np.any(worse := (trial > loss + 1e-12 * np.abs(loss)) & (length > 1e-8)):
            length[worse] *= 0.5
            trial = _loss(x, targets, slope + length * rise, intercept + length * shift)
        slope, intercept, loss = slope + length * rise, intercept + length * shift, trial
        if np.max(np.abs(rise) + np.abs(shift)) < 1e-10:
            break
    return slope, intercept


def _direction(
    x: Floats, targets: Floats, slope: Floats, intercept: Floats
) -> tuple[Floats, Floats]:
    """Solve the 2x2 Newton system of every label in closed form."""
    p = expit(slope * x + intercept)
    residual = p - targets
    g1 = np.sum(residual * x, axis=0) + _RIDGE * (slope - 1.0)
    g0 = np.sum(residual, axis=0)
    h11, h10, h00 = _curvature(x, p)
    determinant = h11 * h00 - h10 * h10
    return (h10 * g0 - h00 * g1) / determinant, (h10 * g1 - h11 * g0) / determinant


def _curvature(x: Floats, p: Floats) -> tuple[Floats, Floats, Floats]:
    """Second derivatives of the loss: slope twice, slope and intercept, intercept twice."""
    weight = p * (1.0 - p)
    h11: Floats = np.sum(weight * x * x, axis=0)
    h10: Floats = np.sum(weight * x, axis=0)
    h00: Floats = np.sum(weight, axis=0)
    return h11 + _RIDGE, h10, h00 + _RIDGE
