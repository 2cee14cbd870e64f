"""Likelihood and expected prevalences of a sample under each scenario of `ScenarioMixture`.

All distributions are Gaussian in coordinates in which the scores of an item have (nearly) unit
covariance. A sample therefore enters through its mean score alone, and a few matrix products
compute all samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prevalens.aggregators.mixture.shifts import Drifts, LineNoise, ScoreLine, Tilts
from prevalens.types import Floats, LabelMatrix

#: Keeps directions without any variance finite.
_TINY = 1e-12
#: Prior share of prevalences that ML-APP could not draw from the labelled items.
_BEYOND = 0.05
#: Standard error of an estimated move, as a share of it, that is due to the model itself.
_BEND = 0.25
#: An evidence weight whose log-evidence is this far below the best is left out for a sample.
_NEGLIGIBLE = 12.0
#: Entries of one work array; bounds the memory of large problems.
_BLOCK = 2_000_000


class Posterior(NamedTuple):
    """Posterior of the prevalences, given a sample's mean score.

    Attributes
    ----------
    mean, variance : shape (n_samples, n_labels)
        Mean and variance of the sample's own prevalences. The variance is empty unless asked for.
    weights : shape (n_samples, n_scenarios)
        Posterior probability of each scenario: each label moved, none did, many did, items drifted.
    """

    mean: Floats
    variance: Floats
    weights: Floats


class WeightedAnswer(NamedTuple):
    """Estimates and evidence at one evidence weight, for some of the samples."""

    rows: npt.NDArray[np.intp]
    evidence: Floats
    mean: Floats
    variance: Floats
    weights: Floats


def blend(parts: Sequence[WeightedAnswer], n_samples: int) -> Posterior:
    """Average the answers at several evidence weights by their evidence."""
    evidence = np.full((n_samples, len(parts)), -np.inf)
    for column, part in enumerate(parts):
        evidence[part.rows, column] = part.evidence
    shares = np.exp(evidence - log_sum(evidence)[:, np.newaxis])
    mean, second, weights = (np.zeros((n_samples, field.shape[1])) for field in parts[0][2:])
    for column, part in enumerate(parts):
        share = shares[part.rows, column, np.newaxis]
        mean[part.rows] += share * part.mean
        weights[part.rows] += share * part.weights
        if part.variance.shape[1]:
            second[part.rows] += share * (part.variance + part.mean**2)
    variance = np.maximum(second - mean**2, 0) if second.shape[1] else second
    return Posterior(np.clip(mean, 0, 1), variance, weights)


def log_sum(logs: Floats) -> Floats:
    """Logarithm of the sum of exponentials, row by row."""
    top = logs.max(axis=1)
    return np.asarray(top + np.log(np.exp(logs - top[:, np.newaxis]).sum(axis=1)))


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


class _Seen(NamedTuple):
    """Mean scores of samples in the coordinates of the training items.

    Attributes
    ----------
    z, z_squares : shape (n_samples, n_scores)
        Mean scores, whitened, and their squares.
    length : shape (n_samples,)
        Squared lengths of z.
    line : ScoreLine
        Distances from each label's line.
    turned, turned_squares : shape (n_samples, n_labels)
        z along the directions in which tilts of the labels move it, and the squares.
    regressed : shape (n_samples, n_labels)
        What the regression of the labels on z adds to their prevalences.
    """

    z: Floats
    z_squares: Floats
    length: Floats
    line: ScoreLine
    turned: Floats
    turned_squares: Floats
    regressed: Floats


@dataclass(frozen=True)
class ScenarioModel:
    """The scenarios at one setting of the hyperparameters.

    Parameters
    ----------
    moments : Moments
    shrinkage : float
        Added to every variance, as a share of their mean: directions in which the scores hardly
        vary are trusted less.
    evidence_weights : tuple of float
        Factors on the number of items a sample counts for; several are weighed by how well each
        explains the sample, equally likely beforehand.
    scales : tuple of float
        Standard deviations of the log-weights in the many-label scenarios.
    prior : tuple of four floats
        Prior weight of "none moved", "one label moved", "many moved" and "the items drifted".
    drifts : tuple of float
        Standard deviations of the drifts.
    size : int
        Sample size at which the prior asks which prevalences of a label could be drawn.
    """

    moments: Moments
    shrinkage: float
    evidence_weights: tuple[float, ...]
    scales: tuple[float, ...]
    prior: tuple[float, ...]
    drifts: tuple[float, ...] = ()
    size: int = 100

    @property
    def n_scenarios(self) -> int:
        """Each label alone, none, tilts, drifts."""
        return len(self.moments.prevalence) + 1 + len(self.scales) + len(self.drifts)

    @cached_property
    def _factors(self) -> Floats:
        spread = self.moments.spread
        return 1 / np.sqrt(spread + self.shrinkage * spread.mean() + _TINY)

    @cached_property
    def _mean_signal_share(self) -> float:
        """Mean share of the whitened variance that is the scores' own, not the shrinkage's.

        With few items only the scores' own part of a mean score is uncertain.
        """
        return float(np.mean(self._signal_share))

    @cached_property
    def _signal_share(self) -> Floats:
        """Share of the whitened variance that is the scores' own, in each direction."""
        return self.moments.spread * self._factors**2

    @cached_property
    def _low(self) -> Floats:
        return self.moments.low * self._factors

    @cached_property
    def _step(self) -> Floats:
        return self.moments.step * self._factors

    @cached_property
    def _cross(self) -> Floats:
        return self.moments.cross * self._factors[:, np.newaxis]

    @cached_property
    def _tilts(self) -> Tilts:
        moments = self.moments
        return Tilts(self._cross, moments.prevalence, moments.covariance, self.scales)

    @cached_property
    def _drifts(self) -> Drifts:
        moments, variances = self.moments, np.diag(self.moments.covariance)
        return Drifts(self._signal_share, self._cross, moments.prevalence, variances, self.drifts)

    @cached_property
    def _log_broad(self) -> Floats:
        """Log prior of no move, of each scale of tilts, of each drift."""
        none, _, many, drift = self.prior
        tilts = [many / len(self.scales)] * len(self.scales)
        drifts = [drift / len(self.drifts)] * len(self.drifts) if self.drifts else []
        return np.log(np.maximum([none, *tilts, *drifts], _TINY))

    @cached_property
    def _reachable(self) -> Floats:
        """Largest prevalence that each label could be steered to with the labelled items."""
        return np.minimum(self.moments.positives / self.size, 1.0)

    @cached_property
    def _log_prior(self) -> Floats:
        """Log prior that each label is the one that moved: as often as ML-APP would steer it."""
        # A label that is constant in the labelled items has no step, so its moves are invisible.
        usable = (self.moments.positives > 0) & (self.moments.negatives > 0)
        share = np.where(usable, self._reachable, 0.0)
        with np.errstate(divide="ignore"):
            return np.log(share / max(share.sum(), _TINY)) + np.log(self.prior[1])

    @cached_property
    def _unexplained(self) -> Floats:
        """Share of each label's variance that its regression on the scores leaves."""
        explained = np.square(self._cross).sum(axis=0)
        variance = np.diag(self.moments.covariance)
        share = np.divide(explained, variance, out=np.zeros_like(variance), where=variance > 0)
        return np.clip(1 - share, 0.05, 1.0)

    def posterior(self, means: Floats, size: float, *, variance: bool = False) -> Posterior:
        """Return the posterior over the scenarios, from the mean scores of samples of one size.

        Parameters
        ----------
        means : array of float, shape (n_samples, n_scores)
        size : float
            Number of items in each sample.
        variance : bool
            Whether to compute the posterior variance too.

        Notes
        -----
        O(n_samples L (d + L)) in blocks of samples.
        """
        n_labels = len(self.moments.prevalence)
        rows = max(1, _BLOCK // max(n_labels, means.shape[1]))
        parts = [
            self._block(means[start : start + rows], size, variance=variance)
            for start in range(0, max(len(means), 1), rows)
        ]
        return Posterior(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _block(self, means: Floats, size: float, *, variance: bool) -> Posterior:
        seen = self._see(means, size)
        if len(self.evidence_weights) == 1:
            kept = np.ones((len(means), 1), dtype=np.bool_)
        else:
            rough = np.column_stack([self._rough(seen, size, w) for w in self.evidence_weights])
            kept = rough >= rough.max(axis=1, keepdims=True) - _NEGLIGIBLE
        parts = []
        for column, evidence_weight in enumerate(self.evidence_weights):
            rows = np.flatnonzero(kept[:, column])
            chosen = _Seen._make(field[rows] for field in seen)
            parts.append(self._at(chosen, rows, size, evidence_weight, variance=variance))
        return blend(parts, len(means))

    def _see(self, means: Floats, size: float) -> _Seen:
        z = (means - self.moments.mean) @ (self.moments.axes * self._factors)
        squares = np.square(z)
        length = squares.sum(axis=1)
        line = ScoreLine.of(z, length, self._low, self._step, self._noise(size))
        regressed = z @ self._cross
        turned = self._tilts.turn(regressed)
        return _Seen(z, squares, length, line, turned, np.square(turned), regressed)

    def _rough(self, seen: _Seen, size: float, evidence_weight: float) -> Floats:
        """Log-evidence of an evidence weight to within a few units."""
        single = seen.line.rough(evidence_weight) + self._log_prior
        broad = self._broad(seen, self._count(size, evidence_weight))
        return log_sum(np.column_stack([single, broad]))

    def _at(
        self,
        seen: _Seen,
        rows: npt.NDArray[np.intp],
        size: float,
        evidence_weight: float,
        *,
        variance: bool,
    ) -> WeightedAnswer:
        """Estimate the samples `rows` at one evidence weight."""
        steered = seen.line.integrate(evidence_weight, self._density)
        count = self._count(size, evidence_weight)
        logs = np.column_stack([steered.evidence + self._log_prior, self._broad(seen, count)])
        evidence = log_sum(logs)
        weights = np.exp(logs - evidence[:, np.newaxis])
        n_labels = len(self.moments.prevalence)
        single, broad = weights[:, :n_labels], weights[:, n_labels:]
        moved = single * steered.g
        mean, plain = self._steered(seen, single, moved)
        mean += self._followed(seen, broad, count)
        spread = np.empty((len(rows), 0))
        if variance:
            moments = moved, single * steered.g2
            spread = self._variance(seen, (single, broad), moments, (mean, plain), (size, count))
        return WeightedAnswer(rows, evidence, mean, spread, weights)

    def _count(self, size: float, evidence_weight: float) -> float:
        """Items that the mean score of a sample is worth, if nothing or many labels moved."""
        return evidence_weight / (1 / size + self._mean_signal_share / self.moments.n_items)

    def _noise(self, size: float) -> LineNoise:
        """Variance of the mean score, if each label moved to a prevalence g.

        It is that of `size` items, and that of the class means themselves, which a rare
        label's few items leave uncertain.
        """
        moments = self.moments
        high = self._mean_signal_share / np.maximum(moments.positives, 1)
        low = self._mean_signal_share / np.maximum(moments.negatives, 1)
        return LineNoise.of(1 / size, low, high)

    def _broad(self, seen: _Seen, count: float) -> Floats:
        """Log-evidence, prior included, of no move, of tilts and of drifts."""
        tilts = self._tilts.log_likelihood(seen.length, seen.turned_squares, count)
        drifts = self._drifts.log_likelihood(seen.z_squares, count)
        return np.hstack([tilts, drifts]) + self._log_broad

    def _followed(self, seen: _Seen, shares: Floats, count: float) -> Floats:
        """Expected prevalences under no move, tilts and drifts, times their shares."""
        first = 1 + len(self.scales)
        tilted = self._tilts.mean(seen.turned, shares[:, :first], count)
        return tilted + self._drifts.mean(seen.z, shares[:, first:], count)

    def _density(self, g: Floats) -> Floats:
        """Prior density of the prevalence a label moved to: mostly where ML-APP would go."""
        reachable = np.maximum(self._reachable, 1 / self.size)
        return np.where(g <= reachable, _BEYOND + (1 - _BEYOND) / reachable, _BEYOND)

    def _steered(self, seen: _Seen, single: Floats, moved: Floats) -> tuple[Floats, Floats]:
        """Expected prevalences under the one-label scenarios, times their weights.

        `moved` are the weights times the prevalences that the labels moved to. Second, the same
        without what the regression adds, as if it held for the label that moved too.
        """
        low, step = self._others
        regressed = seen.regressed
        plain = single @ low + moved @ step
        mean = plain + single.sum(axis=1, keepdims=True) * regressed
        # The label that moved has the prevalence it moved to, whatever the regression says.
        own = single * (np.diag(low) + regressed) + moved * np.diag(step)
        return mean + moved - own, plain

    @cached_property
    def _others(self) -> tuple[Floats, Floats]:
        """Prevalences of all labels if one label moved, minus what the regression adds back."""
        moments = self.moments
        low = moments.others_low - self._low @ self._cross
        step = moments.others_step - self._step @ self._cross
        return low, step

    @cached_property
    def _others_second(self) -> tuple[Floats, Floats, Floats]:
        """Second moments of the others, and their uncertainty, by powers of the prevalence."""
        low, step = self._others
        high, none = self._uncertain
        return low**2 + none, 2 * (low * step - none), step**2 + high + none

    def _variance(
        self,
        seen: _Seen,
        weights: tuple[Floats, Floats],
        moved: tuple[Floats, Floats],
        mean: tuple[Floats, Floats],
        worth: tuple[float, float],
    ) -> Floats:
        """Variance between scenarios, within them, and of the sample's labels around their mean.

        `moved` are the weights of the labels times the first and the second moment of the
        prevalence they moved to; `mean` is the mean of all scenarios, and that of the one-label
        scenarios without the regression; `worth` is the size of the samples, and the number of
        items their mean scores count for.
        """
        (single, broad), (first, square), (mean_, plain) = weights, moved, mean
        size, count = worth
        regressed, (low, step) = seen.regressed, (np.diag(part) for part in self._others)
        second = self._broad_second(seen, broad, count)
        for share, onto in zip((single, first, square), self._others_second, strict=True):
            second += share @ onto
        second += regressed * (2 * plain + single.sum(axis=1, keepdims=True) * regressed)
        base = low + regressed
        second += square * (1 - step**2) - base * (single * base + 2 * first * step)
        inside = np.clip(mean_, 1 / (2 * size), 1 - 1 / (2 * size))
        sampling = inside * (1 - inside) * self._unexplained / size
        # The further a label has moved, the larger the error of the linear model above.
        bent = (_BEND * (mean_ - self.moments.prevalence)) ** 2
        return np.maximum(second - mean_**2, 0) + sampling + bent

    def _broad_second(self, seen: _Seen, shares: Floats, count: float) -> Floats:
        """Second moments of the prevalences under no move, tilts and drifts, times the shares."""
        variances = [np.zeros_like(self.moments.prevalence)]
        variances += [self._tilts.variance(scale, count) for scale in self.scales]
        variances += [self._drifts.variance(scale, count) for scale in self.drifts]
        second = shares @ np.array(variances)
        # Without a move, the regression alone is followed.
        guesses = chain(
            [self.moments.prevalence + seen.regressed],
            (self._tilts.alone(seen.turned, scale, count) for scale in self.scales),
            (self._drifts.alone(seen.z, scale, count) for scale in self.drifts),
        )
        for column, guess in enumerate(guesses):
            np.square(guess, out=guess)
            guess *= shares[:, column, np.newaxis]
            second += guess
        return second

    @cached_property
    def _uncertain(self) -> tuple[Floats, Floats]:
        """Variance of the labels' prevalences among the items with each label, and without it.

        The few items of a rare label say little about the labels that occur with it.
        """
        moments = self.moments
        parts = []
        for share, count in (
            (moments.others_low + moments.others_step, moments.positives),
            (moments.others_low, moments.negatives),
        ):
            # Half an item on either side: labels never seen together may still occur together.
            mild = (share * count[:, np.newaxis] + 0.5) / (count[:, np.newaxis] + 1)
            variance = mild * (1 - mild) / (count[:, np.newaxis] + 1)
            np.fill_diagonal(variance, 0)
            parts.append(variance)
        return parts[0], parts[1]
