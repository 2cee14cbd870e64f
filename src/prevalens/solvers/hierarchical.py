"""Logistic regressions of many targets whose coefficients are drawn from a common distribution.

Each target has features of its own, but its coefficients have the same meaning as those of the
other targets, such as "slope of the own score". Their common means and variances are estimated
from all targets (empirical Bayes), so that a target with few positive items borrows from others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from prevalens.types import Array, Floats

#: Rounds of the expectation-maximisation; the means change by less than 1 % of a deviation after.
_ROUNDS = 30
#: Newton steps of the first round and of each later one, which starts near its solution.
_FIRST_STEPS, _STEPS = 12, 2
#: Least change of a linear predictor that is worth another Newton step.
_TOLERANCE = 1e-6
#: How often a step that does not lower the objective is halved.
_HALVINGS = 6


class CoefficientPrior(NamedTuple):
    """What is known of the coefficients before any target is seen, one entry per coefficient.

    Attributes
    ----------
    mean, deviation : array of float, shape (n_features,)
        Of the common mean of a coefficient.
    spread : array of float, shape (n_features,)
        Standard deviation between targets that is expected beforehand.
    weight : float
        Number of targets that `spread` counts for.
    """

    mean: Floats
    deviation: Floats
    spread: Floats
    weight: float = 4.0


def fit_hierarchical(features: Floats, Y: Array, prior: CoefficientPrior) -> Floats:
    """Coefficients of all targets, shape (n_targets, n_features).

    Parameters
    ----------
    features : array of float, shape (n_targets, n_items, n_features)
        The first feature is usually the constant 1.
    Y : 0/1 array, shape (n_items, n_targets)
    prior : CoefficientPrior

    Notes
    -----
    Coefficients of a target are Gaussian around common means, with a variance per coefficient; both
    are estimated by expectation-maximisation with Laplace's approximation (the posterior of a
    target is taken as Gaussian around its mode). O(rounds x n_targets x n_items x n_features^2).

    Examples
    --------
    >>> x = np.linspace(-1, 1, 40)
    >>> features = np.tile(np.column_stack([np.ones(40), x]), (2, 1, 1))
    >>> Y = np.column_stack([x > 0, np.zeros(40)])  # the second target has no positive item
    >>> prior = CoefficientPrior(np.zeros(2), np.full(2, 2.0), np.ones(2))
    >>> slopes = fit_hierarchical(features, Y, prior)[:, 1]
    >>> bool(slopes[0] > slopes[1] > 0)
    True
    """
    targets = np.asarray(Y, dtype=np.float64).T
    n_targets = len(features)
    mean, variance = np.array(prior.mean, dtype=np.float64), np.square(prior.spread)
    theta = np.tile(mean, (n_targets, 1))
    for number in range(_ROUNDS):
        steps = _STEPS if number else _FIRST_STEPS
        theta, posterior = _modes(features, targets, theta, mean, variance, steps)
        anchor = 1 / np.square(prior.deviation)
        mean = theta.sum(axis=0) / variance + anchor * prior.mean
        mean /= n_targets / variance + anchor
        squares = (np.square(theta - mean) + posterior).sum(axis=0)
        variance = prior.weight * np.square(prior.spread) + squares
        variance /= prior.weight + n_targets
    return _modes(features, targets, theta, mean, variance, _FIRST_STEPS)[0]


def _modes(
    features: Floats, targets: Floats, theta: Floats, mean: Floats, variance: Floats, steps: int
) -> tuple[Floats, Floats]:
    """Posterior modes and variances by damped Newton steps, both (n_targets, n_features)."""
    precision = np.diag(1 / variance)
    linear = _linear(features, theta)
    value = _objective(linear, targets, theta, mean, variance)
    for _ in range(steps):
        probability = expit(linear)
        slope = np.einsum("tni,tn->ti", features, probability - targets)
        slope += (theta - mean) / variance
        step = np.linalg.solve(_curvature(features, probability) + precision, slope[..., None])
        theta, linear, value, moved = _stepped(
            features, targets, theta, step[..., 0], mean, variance, value, linear
        )
        if moved < _TOLERANCE:
            break
    hessian = _curvature(features, expit(linear)) + precision
    return theta, np.diagonal(np.linalg.inv(hessian), axis1=1, axis2=2)


def _stepped(
    features: Floats,
    targets: Floats,
    theta: Floats,
    step: Floats,
    mean: Floats,
    variance: Floats,
    value: Floats,
    linear: Floats,
) -> tuple[Floats, Floats, Floats, float]:
    """The coefficients after a step, halved for targets whose objective would rise."""
    size = np.ones(len(theta))
    for _ in range(_HALVINGS):
        tried = theta - size[:, None] * step
        moved = _linear(features, tried)
        found = _objective(moved, targets, tried, mean, variance)
        worse = found > value + 1e-9 * np.abs(value)
        if not worse.any():
            break
        size[worse] /= 2
    kept = ~worse
    theta = np.where(kept[:, None], tried, theta)
    change = float(np.abs(moved - linear)[kept].max(initial=0.0))
    linear = np.where(kept[:, None], moved, linear)
    return theta, linear, np.where(kept, found, value), change


def _linear(features: Floats, theta: Floats) -> Floats:
    return (features @ theta[..., None])[..., 0]


def _curvature(features: Floats, probability: Floats) -> Floats:
    weights = probability * (1 - probability)
    return (features * weights[..., None]).transpose(0, 2, 1) @ features


def _objective(
    linear: Floats, targets: Floats, theta: Floats, mean: Floats, variance: Floats
) -> Floats:
    """Negative log posterior of each target."""
    loss = (np.logaddexp(0, linear) - targets * linear).sum(axis=1)
    return np.asarray(loss + (np.square(theta - mean) / variance).sum(axis=1) / 2)
