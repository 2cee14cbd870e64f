"""What a sample says at several tempers, and all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Part", "Posterior", "blend", "log_sum"]

_Floats = npt.NDArray[np.float64]


class Posterior(NamedTuple):
    """What a sample's mean score says.

    Attributes
    ----------
    mean, variance : shape (n_samples, n_labels)
        Of the sample's own prevalences. The variance is empty unless asked for.
    misfit : shape (n_samples,)
        Squared distance of the mean score from the scenario that explains it best, in units of
        its expected value. NaN unless the variance is asked for.
    weights : shape (n_samples, n_scenarios)
        Posterior probability of each scenario: each label moved, none did, many did, items drifted.
    """

    mean: _Floats
    variance: _Floats
    misfit: _Floats
    weights: _Floats


class Part(NamedTuple):
    """The answer at one temper, for some of the samples."""

    rows: npt.NDArray[np.intp]
    evidence: _Floats
    mean: _Floats
    variance: _Floats
    weights: _Floats


def blend(parts: Sequence[Part], n_samples: int) -> Posterior:
    """The answers at several tempers, weighed by their evidence; the misfit is left open."""
    evidence = np.full((n_samples, len(parts)), -np.inf)
    for column, part in enumerate(parts):
        evidence[part.rows, column] = part.evidence
    shares = np.exp(evidence - log_sum(evidence)[:, np.newaxis])
    mean, second, weights = (np.zeros((n_samples, one.shape[1])) for one in parts[0][2:])
    for column, part in enumerate(parts):
        share = shares[part.rows, column, np.newaxis]
        mean[part.rows] += share * part.mean
        weights[part.rows] += share * part.weights
        if part.variance.shape[1]:
            second[part.rows] += share * (part.variance + part.mean**2)
    variance = np.maximum(second - mean**2, 0) if second.shape[1] else second
    return Posterior(np.clip(mean, 0, 1), variance, np.full(n_samples, np.nan), weights)


def log_sum(logs: _Floats) -> _Floats:
    """Logarithm of the sum of exponentials, row by row."""
    top = logs.max(axis=1)
    found: _Floats = top + np.log(np.exp(logs - top[:, np.newaxis]).sum(axis=1))
    return found
