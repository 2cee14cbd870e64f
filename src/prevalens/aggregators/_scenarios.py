"""What each scenario of `ScenarioMixture` makes of a sample.

Everything is a Gaussian in coordinates in which the scores of an item have (nearly) unit
covariance, so a sample enters through its mean score alone and all samples are a few
matrix products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prevalens.aggregators._score_moments import Moments

__all__ = ["Posterior", "View"]

_Floats = npt.NDArray[np.float64]
#: Keeps directions without any variance finite.
_TINY = 1e-12
#: Nodes and weights of the integral over the prevalence of the label that moved, on [0, 1].
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(9)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2
#: The integral reaches this many posterior standard deviations to both sides.
_REACH = 4.0
#: Prior share of prevalences that ML-APP could not draw from the labelled items.
_BEYOND = 0.05
#: Standard error of an estimated move, as a share of it, that is due to the model itself.
_BEND = 0.25
#: The mean score of a new pool drifts as if this many training sets had been averaged wrongly.
_DRIFT = 5.0
#: Entries of one work array; bounds the memory of large problems.
_BLOCK = 2_000_000


class Posterior(NamedTuple):
    """What a sample's mean score says.

    Attributes
    ----------
    mean, variance : shape (n_samples, n_labels)
        Of the sample's own prevalences. The variance is empty unless asked for.
    misfit : shape (n_samples,)
        Squared distance of the mean score from the scenario that explains it best, in units of
        its expected value. NaN unless the variance is asked for.
    weights : shape (n_samples, n_labels + 1 + n_scales)
        Posterior probability of each scenario: each label moved, none did, many did.
    """

    mean: _Floats
    variance: _Floats
    misfit: _Floats
    weights: _Floats


class _OneLabel(NamedTuple):
    """Log-evidence of "this label moved", and moments of the prevalence it moved to."""

    evidence: _Floats
    g: _Floats
    g2: _Floats
    distance: _Floats


@dataclass(frozen=True)
class View:
    """The scenarios at one setting of the hyperparameters.

    Parameters
    ----------
    moments : Moments
    shrinkage : float
        Added to every variance, as a share of their mean: directions in which the scores hardly
        vary are trusted less.
    temper : float
        Factor on the number of items a sample counts for.
    scales : tuple of float
        Standard deviations of the log-weights in the many-label scenarios.
    prior : tuple of three floats
        Prior weight of "none moved", "one label moved" and "many moved".
    size : int
        Sample size at which the prior asks which prevalences of a label could be drawn.
    """

    moments: Moments
    shrinkage: float
    temper: float
    scales: tuple[float, ...]
    prior: tuple[float, float, float]
    size: int = 100

    @cached_property
    def _factors(self) -> _Floats:
        spread = self.moments.spread
        return 1 / np.sqrt(spread + self.shrinkage * spread.mean() + _TINY)

    @cached_property
    def _low(self) -> _Floats:
        return self.moments.low * self._factors

    @cached_property
    def _step(self) -> _Floats:
        return self.moments.step * self._factors

    @cached_property
    def _cross(self) -> _Floats:
        return self.moments.cross * self._factors[:, np.newaxis]

    @cached_property
    def _tilts(self) -> tuple[_Floats, _Floats]:
        """Squared singular values of the cross-covariance, and its right singular vectors."""
        squares, vectors = np.linalg.eigh(self._cross.T @ self._cross)
        return np.maximum(squares, 0), vectors

    @cached_property
    def _reachable(self) -> _Floats:
        """Up to which prevalence each label could be steered with the labelled items."""
        return np.minimum(self.moments.positives / self.size, 1.0)

    @cached_property
    def _log_prior(self) -> _Floats:
        """Of each label being the one that moved: as often as ML-APP would steer it."""
        # A label that is constant in the labelled items shows no step, so it cannot be told apart.
        usable = (self.moments.positives > 0) & (self.moments.negatives > 0)
        share = np.where(usable, self._reachable, 0.0)
        with np.errstate(divide="ignore"):
            return np.log(share / max(share.sum(), _TINY)) + np.log(self.prior[1])

    @cached_property
    def _unexplained(self) -> _Floats:
        """Share of each label's variance that its regression on the scores leaves."""
        explained = np.square(self._cross).sum(axis=0)
        variance = np.diag(self.moments.covariance)
        share = np.divide(explained, variance, out=np.zeros_like(variance), where=variance > 0)
        return np.clip(1 - share, 0.05, 1.0)

    def posterior(self, means: _Floats, size: float, *, variance: bool = False) -> Posterior:
        """Weigh the scenarios for the mean scores of samples of one size.

        Parameters
        ----------
        means : array of float, shape (n_samples, n_scores)
        size : float
            Number of items in each sample.
        variance : bool
            Whether the posterior variance and the misfit are wanted too.

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

    def _block(self, means: _Floats, size: float, *, variance: bool) -> Posterior:
        z = (means - self.moments.mean) @ (self.moments.axes * self._factors)
        length = np.einsum("ij,ij->i", z, z)
        one = self._one_label(z, length, size)
        turned = z @ self._cross @ self._tilts[1]
        count = self.temper / (1 / size + 1 / self.moments.n_items)
        many = np.column_stack([self._evidence(length, turned, s, count) for s in self._all_scales])
        weights = _softmax(np.column_stack([one.evidence, many]))
        n_labels = len(self.moments.prevalence)
        single, broad = weights[:, :n_labels], weights[:, n_labels:]
        guesses = [self._tilted(turned, s, count) for s in self._all_scales]
        mean = self._steered(z, single, one)
        for column, guess in enumerate(guesses):
            mean += broad[:, column, np.newaxis] * guess
        misfit, spread = np.full(len(z), np.nan), np.empty((len(z), 0))
        if variance:
            misfit = self._misfit(z, one, self._explained(turned, count), size)
            spread = self._variance(z, (single, broad), one, guesses, mean, size)
            for column, scale in enumerate(self._all_scales[1:], start=1):
                spread += broad[:, column, np.newaxis] * self._tilt_variance(scale, count)
        return Posterior(np.clip(mean, 0, 1), spread, misfit, weights)

    def _explained(self, turned: _Floats, count: float) -> _Floats:
        """The move of the mean score that the widest many-label scenario accounts for."""
        squares, vectors = self._tilts
        strength = self._all_scales[-1] ** 2 * count
        return (turned * (strength / (1 + strength * squares))) @ (self._cross @ vectors).T

    def _misfit(self, z: _Floats, one: _OneLabel, many: _Floats, size: float) -> _Floats:
        """Distance to the best of "none", "one" and "many moved", where the scores really vary.

        Directions with little variance are left out: in them a classifier trained on a few items
        more is as far away as a new kind of item.
        """
        firm = np.minimum(self.moments.spread * 3 / max(self.moments.spread.mean(), _TINY), 1)
        best = np.argmin(one.distance, axis=1)
        at = np.take_along_axis(one.g, best[:, np.newaxis], axis=1)
        rest = z - self._low[best] - at * self._step[best]
        distances = [np.square(far) @ firm for far in (z, rest, z - many)]
        nearest = np.min(distances, axis=0)
        return nearest / ((1 / size + _DRIFT / self.moments.n_items) * max(firm.sum(), _TINY))

    @property
    def _all_scales(self) -> tuple[float, ...]:
        return (0.0, *self.scales)

    def _one_label(self, z: _Floats, length: _Floats, size: float) -> _OneLabel:
        """Integrate over the prevalence g of each label, by quadrature around its likeliest value.

        The mean score of a sample in which label c has prevalence g is ``low + g step``; its
        variance is that of `size` items, and that of the class means themselves, which a rare
        label's few items leave uncertain.
        """
        moments, low, step = self.moments, self._low, self._step
        squared = np.square(step).sum(axis=1)
        offset = length[:, np.newaxis] - 2 * z @ low.T + np.square(low).sum(axis=1)
        along = z @ step.T - np.einsum("ij,ij->i", low, step)
        few = 1 / np.maximum(moments.positives, 1), 1 / np.maximum(moments.negatives, 1)

        def precision(g: _Floats) -> _Floats:
            return self.temper / (1 / size + g**2 * few[0] + (1 - g) ** 2 * few[1])

        likeliest = np.clip(along / np.maximum(squared, _TINY), 0, 1)
        reach = _REACH / np.sqrt(np.maximum(precision(likeliest) * squared, _TINY))
        start = np.maximum(likeliest - reach, 0)
        width = np.minimum(likeliest + reach, 1) - start
        top = self._log_likelihood(likeliest, offset, along, squared, precision, z.shape[1])
        mass, first, second = (np.zeros_like(offset) for _ in range(3))
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            g = start + node * width
            log = self._log_likelihood(g, offset, along, squared, precision, z.shape[1])
            part = np.exp(np.minimum(log - top, 50.0)) * self._density(g) * (weight * width)
            mass += part
            first += part * g
            second += part * g**2
        mass = np.maximum(mass, np.finfo(float).tiny)
        evidence = top + np.log(mass) + self._log_prior
        distance = (offset - 2 * likeliest * along + likeliest**2 * squared) * precision(likeliest)
        usable = np.isfinite(self._log_prior)
        return _OneLabel(evidence, first / mass, second / mass, np.where(usable, distance, np.inf))

    @staticmethod
    def _log_likelihood(
        g: _Floats,
        offset: _Floats,
        along: _Floats,
        squared: _Floats,
        precision: Callable[[_Floats], _Floats],
        n_scores: int,
    ) -> _Floats:
        tau = precision(g)
        return 0.5 * (n_scores * np.log(tau) - tau * (offset - 2 * g * along + g**2 * squared))

    def _density(self, g: _Floats) -> _Floats:
        """Prior density of the prevalence a label moved to: mostly where ML-APP would go."""
        reachable = np.maximum(self._reachable, 1 / self.size)
        return _BEYOND + (1 - _BEYOND) * (g <= reachable) / reachable

    def _evidence(self, length: _Floats, turned: _Floats, scale: float, count: float) -> _Floats:
        """Log-evidence of many small moves (scale 0: of no move at all)."""
        gain = scale**2 * count * self._tilts[0]
        inside = np.square(turned) @ (scale**2 * count**2 / (1 + gain))
        weight = self.prior[0] if scale == 0 else self.prior[2] / len(self.scales)
        quadratic = length * count - inside
        log = len(self._factors) * np.log(count) - np.log1p(gain).sum() - quadratic
        return 0.5 * log + np.log(max(weight, _TINY))

    def _tilted(self, turned: _Floats, scale: float, count: float) -> _Floats:
        """Expected prevalences if the log-weights of labels moved by Gaussians of this scale."""
        squares, vectors = self._tilts
        kept = turned / (1 + scale**2 * count * squares)
        onto = vectors.T
        if scale > 0:
            onto = onto + (scale**2 * count) * (vectors.T @ self.moments.covariance)
        return self.moments.prevalence + kept @ onto

    def _steered(self, z: _Floats, single: _Floats, one: _OneLabel) -> _Floats:
        """Expected prevalences under the one-label scenarios, times their weights."""
        low, step = self._others
        moved = single * one.g
        regressed = z @ self._cross
        mean = single @ low + moved @ step + single.sum(axis=1, keepdims=True) * regressed
        # The label that moved has the prevalence it moved to, whatever the regression says.
        own = single * (np.diag(low) + regressed) + moved * np.diag(step)
        return mean + moved - own

    @cached_property
    def _others(self) -> tuple[_Floats, _Floats]:
        """Prevalences of all labels given one that moved, less what the regression adds back."""
        moments = self.moments
        low = moments.others_low - self._low @ self._cross
        step = moments.others_step - self._step @ self._cross
        return low, step

    def _variance(
        self,
        z: _Floats,
        weights: tuple[_Floats, _Floats],
        one: _OneLabel,
        guesses: list[_Floats],
        mean: _Floats,
        size: float,
    ) -> _Floats:
        """Between scenarios, within them, and of a sample's own labels around their expectation."""
        single, broad = weights
        low, step = self._others
        regressed = z @ self._cross
        moved, moved2 = single * one.g, single * one.g2
        total = single.sum(axis=1, keepdims=True)
        second = single @ low**2 + 2 * moved @ (low * step) + moved2 @ step**2
        second += 2 * regressed * (single @ low + moved @ step) + total * regressed**2
        own = single * (np.diag(low) + regressed) ** 2 + moved2 * np.diag(step) ** 2
        own += 2 * moved * (np.diag(low) + regressed) * np.diag(step)
        second += moved2 - own
        second += moved2 @ self._uncertain[0] + (single - 2 * moved + moved2) @ self._uncertain[1]
        for column, guess in enumerate(guesses):
            second += broad[:, column, np.newaxis] * guess**2
        inside = np.clip(mean, 1 / (2 * size), 1 - 1 / (2 * size))
        sampling = inside * (1 - inside) * self._unexplained / size
        # The further a label has moved, the less the straight lines above can be trusted.
        bent = (_BEND * (mean - self.moments.prevalence)) ** 2
        return np.maximum(second - mean**2, 0) + sampling + bent

    @cached_property
    def _uncertain(self) -> tuple[_Floats, _Floats]:
        """Variance of the labels' prevalences among the items with each label, and without it.

        Few items of a rare label say little of what comes with it.
        """
        moments = self.moments
        parts = []
        for share, count in (
            (moments.others_low + moments.others_step, moments.positives),
            (moments.others_low, moments.negatives),
        ):
            # One item more on either side keeps "never seen together" from being certain.
            mild = (share * count[:, np.newaxis] + 0.5) / (count[:, np.newaxis] + 1)
            variance = mild * (1 - mild) / (count[:, np.newaxis] + 1)
            np.fill_diagonal(variance, 0)
            parts.append(variance)
        return parts[0], parts[1]

    def _tilt_variance(self, scale: float, count: float) -> _Floats:
        """What a sample's mean score leaves open of the prevalences in a many-label scenario."""
        squares, vectors = self._tilts
        onto = vectors.T + (scale**2 * count) * (vectors.T @ self.moments.covariance)
        explained = (squares / (1 + scale**2 * count * squares)) @ np.square(onto) / count
        prior = scale**2 * np.square(self.moments.covariance).sum(axis=0)
        return np.maximum(prior + np.diag(self.moments.covariance) / count - explained, 0)


def _softmax(logs: _Floats) -> _Floats:
    top = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - top)
    return weights / weights.sum(axis=1, keepdims=True)
