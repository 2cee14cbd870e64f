"""The shifts of the mixture: one label moves (`ScoreLine`), many do (`Tilts`), items (`Drifts`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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


class OneLabel(NamedTuple):
    """Log-likelihood of "this label moved", and moments of the prevalence it moved to.

    Each of shape (n_samples, n_labels).
    """

    evidence: Floats
    g: Floats
    g2: Floats


@dataclass(frozen=True)
class ScoreLine:
    """Squared distance of each sample from each label's line: ``offset - 2 g along + g^2 squared``.

    Attributes
    ----------
    offset, along : shape (n_samples, n_labels)
    squared : shape (n_labels,)
    n_scores : int
        Dimensions the distance is taken in.
    """

    offset: Floats
    along: Floats
    squared: Floats
    n_scores: int

    @classmethod
    def of(cls, z: Floats, length: Floats, low: Floats, step: Floats) -> ScoreLine:
        """From samples z (n_samples, n_scores) and lines low + g step (n_labels, n_scores)."""
        offset = length[:, np.newaxis] - 2 * z @ low.T + np.square(low).sum(axis=1)
        along = z @ step.T - np.einsum("ij,ij->i", low, step)
        return cls(offset, along, np.square(step).sum(axis=1), z.shape[1])

    def __getitem__(self, rows: npt.NDArray[np.intp]) -> ScoreLine:
        """The lines of some of the samples."""
        return ScoreLine(self.offset[rows], self.along[rows], self.squared, self.n_scores)

    @property
    def likeliest(self) -> Floats:
        """The prevalence at which each line comes nearest."""
        return np.clip(self.along / np.maximum(self.squared, _TINY), 0, 1)

    def distance(self, g: Floats) -> Floats:
        """Squared distance at prevalence g."""
        return self.offset - 2 * g * self.along + g**2 * self.squared

    def log_likelihood(self, g: Floats, precision: _Function) -> Floats:
        """Log-likelihood of a Gaussian of this precision around the line at g."""
        tau = precision(g)
        return 0.5 * (self.n_scores * np.log(tau) - tau * self.distance(g))

    def rough(self, precision: _Function) -> Floats:
        """The log-likelihood integrated over g to within a few units, without quadrature."""
        at = self.likeliest
        width = np.sqrt(2 * np.pi / np.maximum(precision(at) * self.squared, 2 * np.pi))
        return self.log_likelihood(at, precision) + np.log(width)

    def integrate(self, precision: _Function, density: _Function) -> OneLabel:
        """Over g with a prior density, by nine Gauss nodes around the likeliest value."""
        likeliest = self.likeliest
        reach = _REACH / np.sqrt(np.maximum(precision(likeliest) * self.squared, _TINY))
        start = np.maximum(likeliest - reach, 0)
        width = np.minimum(likeliest + reach, 1) - start
        top = self.log_likelihood(likeliest, precision)
        mass, first, second = (np.zeros_like(self.offset) for _ in range(3))
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            g = start + node * width
            log = self.log_likelihood(g, precision)
            part = np.exp(np.minimum(log - top, 50.0)) * density(g) * (weight * width)
            mass += part
            first += part * g
            second += part * g**2
        mass = np.maximum(mass, np.finfo(float).tiny)
        return OneLabel(top + np.log(mass), first / mass, second / mass)


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

    def log_likelihood(self, length: Floats, turned: Floats, count: float) -> Floats:
        """Log-likelihood of each scale up to one constant, shape (n_samples, 1 + n_scales).

        `length` are the squared lengths of z, `count` is the number of items it is worth.
        """
        n_scores, squares = len(self.cross), np.square(turned)
        columns = []
        for scale in self.all_scales:
            gain = scale**2 * count * self._directions[0]
            inside = squares @ (scale**2 * count**2 / (1 + gain))
            log = n_scores * np.log(count) - np.log1p(gain).sum() - (length * count - inside)
            columns.append(0.5 * log)
        return np.column_stack(columns)

    def mean(self, turned: Floats, shares: Floats, count: float) -> Floats:
        """Expected prevalences under each scale, times the shares.

        The shares are of shape (n_samples, 1 + n_scales), or (1 + n_scales,) for all samples.
        """
        squares, vectors = self._directions
        near, far = np.zeros_like(turned), np.zeros_like(turned)
        for column, scale in enumerate(self.all_scales):
            if not shares[..., column].any():
                continue
            strength = scale**2 * count
            kept = shares[..., column, np.newaxis] * turned / (1 + strength * squares)
            near += kept
            far += strength * kept
        total = shares.sum(axis=-1)[..., np.newaxis]
        return total * self.prevalence + near @ vectors.T + far @ self._labels

    def variance(self, scale: float, count: float) -> Floats:
        """Variance of the prevalences given a sample's mean score, shape (n_labels,)."""
        squares, vectors = self._directions
        onto = vectors.T + (scale**2 * count) * self._labels
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
