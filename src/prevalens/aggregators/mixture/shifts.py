"""The shifts of the mixture: one label moves (`ScoreLine`), many do (`Tilts`), items (`Drifts`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prevalens.types import Floats

_Function = Callable[[Floats], Floats]
#: Keeps labels without any step finite.
_TINY = 1e-12
#: Nodes and weights of the integral over the prevalence of the label that moved, on [0, 1].
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(9)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2
#: The integral reaches this many posterior standard deviations to both sides.
_REACH = 4.0
#: Entries of a work array of the integral: what is done with it stays in the cache.
_BLOCK = 2**14


class OneLabel(NamedTuple):
    """Log-likelihood of "this label moved", and moments of the prevalence it moved to.

    Each of shape (n_samples, n_labels).
    """

    evidence: Floats
    g: Floats
    g2: Floats


class LineNoise(NamedTuple):
    """Variance of a mean score at prevalence g of a label: ``constant + g linear + g^2 quadratic``.

    Each of shape (n_labels,), in units of the variance of one item.
    """

    constant: Floats
    linear: Floats
    quadratic: Floats

    @classmethod
    def of(cls, alone: float, without: Floats, with_label: Floats) -> LineNoise:
        """From ``alone + (1 - g)^2 without + g^2 with_label``."""
        return cls(alone + without, -2 * without, without + with_label)

    def at(self, g: Floats) -> Floats:
        """The variances at prevalences g, shape (..., n_labels)."""
        return _quadratic(g, *self)


def _quadratic(g: Floats, constant: Floats, linear: Floats, quadratic: Floats) -> Floats:
    """``constant + g linear + g^2 quadratic``, in one work array."""
    values = g * quadratic
    values += linear
    values *= g
    values += constant
    return values


@dataclass(frozen=True)
class ScoreLine:
    """Squared distance of each sample from each label's line: ``offset - 2 g along + g^2 squared``.

    Attributes
    ----------
    offset, along : shape (n_samples, n_labels)
    squared : shape (n_labels,)
    n_scores : int
        Dimensions the distance is taken in.
    noise : LineNoise
        Of the mean scores around the line.
    likeliest : shape (n_samples, n_labels)
        The prevalence at which each line comes nearest.
    variance, misfit : shape (n_samples, n_labels)
        The noise there, and the squared distance in units of it.
    """

    offset: Floats
    along: Floats
    squared: Floats
    n_scores: int
    noise: LineNoise
    likeliest: Floats
    variance: Floats
    misfit: Floats

    @classmethod
    def of(
        cls, z: Floats, length: Floats, low: Floats, step: Floats, noise: LineNoise
    ) -> ScoreLine:
        """From samples z (n_samples, n_scores) and lines low + g step (n_labels, n_scores)."""
        offset = length[:, np.newaxis] - 2 * z @ low.T + np.square(low).sum(axis=1)
        along = z @ step.T - np.einsum("ij,ij->i", low, step)
        squared = np.square(step).sum(axis=1)
        likeliest = np.clip(along / np.maximum(squared, _TINY), 0, 1)
        variance = noise.at(likeliest)
        misfit = _quadratic(likeliest, offset, -2 * along, squared) / variance
        return cls(offset, along, squared, z.shape[1], noise, likeliest, variance, misfit)

    def __getitem__(self, rows: npt.NDArray[np.intp]) -> ScoreLine:
        """The lines of some of the samples."""
        names = ("offset", "along", "likeliest", "variance", "misfit")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def _peak(self, evidence_weight: float) -> Floats:
        """The log-likelihood at the likeliest prevalence."""
        log = np.log(self.variance / evidence_weight)
        log *= self.n_scores
        log += evidence_weight * self.misfit
        log *= -0.5
        return log

    def rough(self, evidence_weight: float) -> Floats:
        """The log-likelihood integrated over g to within a few units, without quadrature."""
        narrow = np.maximum(evidence_weight * self.squared / (2 * np.pi * self.variance), 1)
        return self._peak(evidence_weight) - 0.5 * np.log(narrow)

    def integrate(self, evidence_weight: float, density: _Function) -> OneLabel:
        """Over g with a prior density, by nine Gauss nodes around the likeliest value.

        The noise is divided by the evidence weight. O(n_samples n_labels) time; in blocks of
        samples that stay in the cache.
        """
        parts = [np.empty_like(self.offset) for _ in range(3)]
        n_rows = max(1, _BLOCK // (len(_NODES) * max(self.offset.shape[1], 1)))
        for start in range(0, len(self.offset), n_rows):
            rows = slice(start, start + n_rows)
            for whole, part in zip(
                parts, self._moments(rows, evidence_weight, density), strict=True
            ):
                whole[rows] = part
        mass = np.maximum(parts[0], np.finfo(float).tiny)
        evidence = self._peak(evidence_weight)
        evidence += np.log(mass)
        return OneLabel(evidence, parts[1] / mass, parts[2] / mass)

    def _moments(
        self, rows: slice, evidence_weight: float, density: _Function
    ) -> tuple[Floats, Floats, Floats]:
        """Integrals of the likelihood times 1, g and g^2; the likelihood is 1 at its peak."""
        likeliest, variance = self.likeliest[rows], self.variance[rows]
        reach = _REACH / np.sqrt(np.maximum(evidence_weight * self.squared / variance, _TINY))
        start = np.maximum(likeliest - reach, 0)
        width = np.minimum(likeliest + reach, 1) - start
        g = start + _NODES[:, np.newaxis, np.newaxis] * width
        noise = self.noise.at(g)
        part = _quadratic(g, self.offset[rows], -2 * self.along[rows], self.squared)
        part /= noise
        part -= self.misfit[rows]
        part *= -0.5 * evidence_weight
        noise /= variance
        np.log(noise, out=noise)
        noise *= 0.5 * self.n_scores
        part -= noise
        np.minimum(part, 50.0, out=part)
        np.exp(part, out=part)
        part *= density(g)
        part *= width
        mass = np.tensordot(_WEIGHTS, part, axes=1)
        part *= g
        first = np.tensordot(_WEIGHTS, part, axes=1)
        part *= g
        return mass, first, np.tensordot(_WEIGHTS, part, axes=1)


@dataclass(frozen=True)
class Tilts:
    """Items weighted by exp(theta . y), theta Gaussian of one of several scales.

    Samples enter through their whitened mean scores z, as `turned`: z along the directions in
    which tilts of the labels move it. Scale 0 stands for no move at all and comes first.

    Attributes
    ----------
    cross : shape (n_scores, n_labels)
        Covariance of whitened scores and labels.
    prevalence : shape (n_labels,)
    covariance : shape (n_labels, n_labels)
        Of the labels.
    scales : tuple of float
        Standard deviations of theta, without the 0.
    """

    cross: Floats
    prevalence: Floats
    covariance: Floats
    scales: tuple[float, ...]

    @property
    def all_scales(self) -> tuple[float, ...]:
        """No move first."""
        return (0.0, *self.scales)

    @cached_property
    def _directions(self) -> tuple[Floats, Floats]:
        """Squared singular values of the cross-covariance, and its right singular vectors."""
        squares, vectors = np.linalg.eigh(self.cross.T @ self.cross)
        return np.maximum(squares, 0), vectors

    @cached_property
    def _labels(self) -> Floats:
        """How the labels' prevalences move with the directions of the tilts."""
        return np.asarray(self._directions[1].T @ self.covariance)

    def turn(self, regressed: Floats) -> Floats:
        """From z @ cross, shape (n_samples, n_labels)."""
        return np.asarray(regressed @ self._directions[1])

    def log_likelihood(self, length: Floats, squares: Floats, count: float) -> Floats:
        """Log-likelihood of each scale up to one constant, shape (n_samples, 1 + n_scales).

        `length` are the squared lengths of z, `squares` those of the turned z along each direction,
        `count` is the number of items it is worth.
        """
        strength = np.square(self.all_scales) * count
        gain = np.outer(self._directions[0], strength)
        inside = squares @ (strength * count / (1 + gain))
        constant = len(self.cross) * np.log(count) - np.log1p(gain).sum(axis=0)
        return 0.5 * (constant - (length * count)[:, np.newaxis] + inside)

    def mean(self, turned: Floats, shares: Floats, count: float) -> Floats:
        """Expected prevalences under each scale, times the shares (n_samples, 1 + n_scales)."""
        squares, vectors = self._directions
        strength = np.square(self.all_scales)[:, np.newaxis] * count
        kept = 1 / (1 + strength * squares)
        near, far = turned * (shares @ kept), turned * (shares @ (strength * kept))
        total = shares.sum(axis=1, keepdims=True)
        return total * self.prevalence + near @ vectors.T + far @ self._labels

    def alone(self, turned: Floats, scale: float, count: float) -> Floats:
        """Expected prevalences under one scale, shape (n_samples, n_labels)."""
        squares = self._directions[0]
        kept = turned / (1 + scale**2 * count * squares)
        return self.prevalence + kept @ self._onto(scale, count)

    def _onto(self, scale: float, count: float) -> Floats:
        """How the prevalences follow each direction, shape (n_labels, n_labels)."""
        return self._directions[1].T + (scale**2 * count) * self._labels

    def variance(self, scale: float, count: float) -> Floats:
        """Variance of the prevalences given a sample's mean score, shape (n_labels,)."""
        squares = self._directions[0]
        onto = self._onto(scale, count)
        explained = (squares / (1 + scale**2 * count * squares)) @ np.square(onto) / count
        prior = scale**2 * np.square(self.covariance).sum(axis=0)
        return np.maximum(prior + np.diag(self.covariance) / count - explained, 0)


#: Drifts less probable than this are ignored for a sample.
_NEGLIGIBLE = 1e-5


@dataclass(frozen=True)
class Drifts:
    """Items weighted by exp(theta . s), theta Gaussian over the scores s: covariate shift.

    To first order the whitened mean score moves by F theta, where F is the share of each
    direction's variance that is the scores' own, and the labels follow by the regression on the
    scores: only the mix of items has changed.

    Attributes
    ----------
    signal_share : shape (n_scores,)
        F, the diagonal.
    cross : shape (n_scores, n_labels)
        Covariance of whitened scores and labels.
    prevalence, variances : shape (n_labels,)
        Of the labels.
    scales : tuple of float
        Standard deviations of theta.
    """

    signal_share: Floats
    cross: Floats
    prevalence: Floats
    variances: Floats
    scales: tuple[float, ...]

    def _seen(self, scale: float, count: float) -> Floats:
        """Variance of z in each direction."""
        return np.asarray(scale**2 * self.signal_share**2 + 1 / count)

    def _follow(self, scale: float, count: float) -> Floats:
        """The share of z that the labels follow in each direction."""
        return (scale**2 * self.signal_share + 1 / count) / self._seen(scale, count)

    def log_likelihood(self, squares: Floats, count: float) -> Floats:
        """Log-likelihood of each scale, up to the constant of `Tilts.log_likelihood`."""
        columns = []
        for scale in self.scales:
            seen = self._seen(scale, count)
            columns.append(-0.5 * (np.log(seen).sum() + squares @ (1 / seen)))
        return np.column_stack(columns) if columns else np.empty((len(squares), 0))

    def alone(self, z: Floats, scale: float, count: float) -> Floats:
        """Expected prevalences under one scale, shape (n_samples, n_labels)."""
        follow = self._follow(scale, count)[:, np.newaxis]
        return self.prevalence + z @ (follow * self.cross)

    def mean(self, z: Floats, shares: Floats, count: float) -> Floats:
        """Expected prevalences under each scale, times the shares (n_samples, n_scales)."""
        total = shares.sum(axis=1)
        expected = total[:, np.newaxis] * self.prevalence
        rows = np.flatnonzero(total > _NEGLIGIBLE)
        if len(rows):
            follow = [self._follow(scale, count) for scale in self.scales]
            expected[rows] += (z[rows] * (shares[rows] @ np.array(follow))) @ self.cross
        return expected

    def variance(self, scale: float, count: float) -> Floats:
        """Variance of the prevalences given a sample's mean score, shape (n_labels,)."""
        explained = self._follow(scale, count) ** 2 * self._seen(scale, count)
        left = (scale**2 - explained) @ np.square(self.cross) + self.variances / count
        return np.maximum(left, 0)
