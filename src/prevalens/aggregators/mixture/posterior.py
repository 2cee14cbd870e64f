"""What a sample says at several evidence weights, and all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prevalens.types import Floats, LabelMatrix

__all__ = ["Moments", "Posterior", "WeightedAnswer", "blend", "log_sum"]


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

    mean: Floats
    variance: Floats
    misfit: Floats
    weights: Floats


class WeightedAnswer(NamedTuple):
    """The answer at one evidence weight, for some of the samples."""

    rows: npt.NDArray[np.intp]
    evidence: Floats
    mean: Floats
    variance: Floats
    weights: Floats


def blend(parts: Sequence[WeightedAnswer], n_samples: int) -> Posterior:
    """Answers at several evidence weights, weighed by their evidence; the misfit is left open."""
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


def log_sum(logs: Floats) -> Floats:
    """Logarithm of the sum of exponentials, row by row."""
    top = logs.max(axis=1)
    found: Floats = top + np.log(np.exp(logs - top[:, np.newaxis]).sum(axis=1))
    return found


@dataclass(frozen=True)
class Moments:
    """Means and covariances of labelled scores, in the eigenvectors of their covariance.

    Attributes
    ----------
    mean : shape (n_scores,)
    axes : shape (n_scores, n_scores)
        Eigenvectors in columns.
    spread : shape (n_scores,)
        Variances along them.
    low, step : shape (n_labels, n_scores)
        Mean score of the items without each label, and what having it adds.
    cross : shape (n_scores, n_labels)
        Covariance of scores and labels.
    prevalence : shape (n_labels,)
    covariance : shape (n_labels, n_labels)
        Of the labels.
    others_low, others_step : shape (n_labels, n_labels)
        Prevalences of all labels among the items without each label, and what having it adds.
    positives, negatives : shape (n_labels,)
        Numbers of items, as floats.
    """

    mean: Floats
    axes: Floats
    spread: Floats
    low: Floats
    step: Floats
    cross: Floats
    prevalence: Floats
    covariance: Floats
    others_low: Floats
    others_step: Floats
    positives: Floats
    negatives: Floats

    @classmethod
    def of(cls, values: npt.NDArray[np.floating], Y: LabelMatrix) -> Moments:
        """From scores (n_items, n_scores) and labels (n_items, n_labels): O(n d (d + L) + d^3)."""
        n_items = len(Y)
        labels = Y.astype(np.float64)
        mean = values.mean(axis=0, dtype=np.float64)
        centred = values - mean
        spread, axes = np.linalg.eigh(centred.T @ centred / n_items)
        turned = centred @ axes
        prevalence = labels.mean(axis=0)
        positives = labels.sum(axis=0)
        negatives = n_items - positives
        sums, pairs = labels.T @ turned, labels.T @ labels
        at_least_one = np.maximum(positives, 1)[:, np.newaxis]
        high = sums / at_least_one
        # The scores are centred, so the sums of negatives are minus those of positives.
        low = -sums / np.maximum(negatives, 1)[:, np.newaxis]
        others_high = pairs / at_least_one
        others_low = (positives - pairs) / np.maximum(negatives, 1)[:, np.newaxis]
        return cls(
            mean=mean,
            axes=axes,
            spread=np.maximum(spread, 0),
            low=low,
            step=high - low,
            cross=sums.T / n_items,
            prevalence=prevalence,
            covariance=pairs / n_items - np.outer(prevalence, prevalence),
            others_low=others_low,
            others_step=others_high - others_low,
            positives=positives,
            negatives=negatives,
        )

    @property
    def n_items(self) -> float:
        """Number of labelled items."""
        return float(self.positives[0] + self.negatives[0])
