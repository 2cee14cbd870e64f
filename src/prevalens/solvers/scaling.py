"""Platt and vector scaling of posteriors, for all labels at once.

Posteriors p become ``expit(a log p - c log(1 - p) + b)``: with a = c Platt scaling, a line through
the log-odds; with two slopes the vector scaling of a single label.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from prevalens.types import Array, Floats, LabelMatrix

#: Number of slopes of each form of calibration.
FORMS = {"platt": 1, "vector": 2}
#: Posteriors of exactly 0 and 1 have no log-odds; they are moved inside by this much.
_EDGE = 1e-12
#: Pull of slopes towards 1 and of the intercept towards 0; decides only where posteriors do not
#: vary, or where two slopes cannot be told apart.
_RIDGE = 1e-6
_ROUNDS = 100
#: Standard errors by which a slope must exceed 0. Of 960,000 uninformative labels
#: (five shapes of scores, 2 to 50 positives among 30 or 300 negatives) two passed.
_GUARD = 4.0


def _features(posteriors: Array, n_slopes: int) -> Floats:
    """What slopes multiply, shape (n_slopes, *posteriors.shape)."""
    inside = np.clip(posteriors.astype(np.float64), _EDGE, 1.0 - _EDGE)
    if n_slopes == 1:
        return np.asarray(logit(inside))[np.newaxis]
    return np.stack([np.log(inside), -np.log1p(-inside)])


def apply_scaling(posteriors: Array, slope: Floats, intercept: Floats) -> Floats:
    """Calibrate posteriors, shape (n_labels, n_items), by slopes of shape (n_slopes, n_labels)."""
    features = _features(posteriors, len(slope))
    line = (slope[:, :, np.newaxis] * features).sum(axis=0) + intercept[:, np.newaxis]
    return np.asarray(expit(line))


def fit_scaling(posteriors: Array, Y: LabelMatrix, n_slopes: int = 1) -> tuple[Floats, Floats]:
    """Fit slopes and intercept of every label by maximum likelihood.

    Parameters
    ----------
    posteriors : array, shape (n_items, n_labels)
    Y : 0/1 array, shape (n_items, n_labels)
    n_slopes : {1, 2}

    Returns
    -------
    slope : array of float64, shape (n_slopes, n_labels)
    intercept : array of float64, shape (n_labels,)
        A label whose single slope is not significantly positive gets slopes of 0 and the
        intercept of its prevalence: its posteriors cannot be distinguished from noise.
    """
    # Platt's targets: 0 and 1 moved inside by as much as the number of items justifies.
    positives = Y.sum(axis=0, dtype=np.float64)
    high, low = (positives + 1.0) / (positives + 2.0), 1.0 / (len(Y) - positives + 2.0)
    targets = np.where(Y == 1, high, low)
    design = _design(posteriors, 1)
    found = _newton(design, targets)
    variance = np.linalg.inv(_curvature(design, expit(_predictor(design, found))))[:, 0, 0]
    useless = found[0] <= _GUARD * np.sqrt(variance)
    if n_slopes > 1:
        found = _newton(_design(posteriors, n_slopes), targets)
    found[:, useless] = 0.0
    found[-1, useless] = logit(targets.mean(axis=0))[useless]
    return found[:-1], found[-1]


def _design(posteriors: Array, n_slopes: int) -> Floats:
    """The features and a constant, shape (n_slopes + 1, n_items, n_labels)."""
    features = _features(posteriors, n_slopes)
    return np.concatenate([features, np.ones_like(features[:1])])


def _predictor(design: Floats, coefficients: Floats) -> Floats:
    return np.asarray((design * coefficients[:, np.newaxis]).sum(axis=0))


def _newton(design: Floats, targets: Floats) -> Floats:
    """Newton's method with step halving, for all labels at once; shape (n_slopes + 1, n_labels)."""
    centre = np.ones((len(design), targets.shape[1]))
    centre[-1] = 0.0

    def loss(coefficients: Floats) -> Floats:
        z = _predictor(design, coefficients)
        fit: Floats = np.sum(np.logaddexp(0.0, z) - targets * z, axis=0)
        return fit + 0.5 * _RIDGE * np.sum((coefficients - centre) ** 2, axis=0)

    found = centre.copy()
    least = loss(found)
    for _ in range(_ROUNDS):
        p = expit(_predictor(design, found))
        gradient = (design * (p - targets)).sum(axis=1) + _RIDGE * (found - centre)
        step = -np.linalg.solve(_curvature(design, p), gradient.T[:, :, np.newaxis])[:, :, 0].T
        length = np.ones_like(least)
        trial = loss(found + step)
        while np.any(worse := (trial > least + 1e-12 * np.abs(least)) & (length > 1e-8)):
            length[worse] *= 0.5
            trial = loss(found + length * step)
        found, least = found + length * step, trial
        if np.max(np.abs(step).sum(axis=0)) < 1e-10:
            break
    return found


def _curvature(design: Floats, p: Floats) -> Floats:
    """Second derivatives of the loss, shape (n_labels, n_slopes + 1, n_slopes + 1)."""
    weighted = design * (p * (1.0 - p))
    rows = [[(left * right).sum(axis=0) for right in weighted] for left in design]
    return np.moveaxis(np.array(rows), 2, 0) + _RIDGE * np.eye(len(design))
