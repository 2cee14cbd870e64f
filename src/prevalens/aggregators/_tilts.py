"""The scenarios in which many labels moved a little: tilts of the labels, linearised."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["Tilts"]

_Floats = npt.NDArray[np.float64]


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

    cross: _Floats
    prevalence: _Floats
    covariance: _Floats
    scales: tuple[float, ...]

    @property
    def all_scales(self) -> tuple[float, ...]:
        """No move first."""
        return (0.0, *self.scales)

    @cached_property
    def _directions(self) -> tuple[_Floats, _Floats]:
        """Squared singular values of the cross-covariance, and its right singular vectors."""
        squares, vectors = np.linalg.eigh(self.cross.T @ self.cross)
        return np.maximum(squares, 0), vectors

    @cached_property
    def _labels(self) -> _Floats:
        """How the labels' prevalences move with the directions of the tilts."""
        found: _Floats = self._directions[1].T @ self.covariance
        return found

    def turn(self, regressed: _Floats) -> _Floats:
        """From z @ cross, shape (n_samples, n_labels)."""
        found: _Floats = regressed @ self._directions[1]
        return found

    def log_likelihood(self, length: _Floats, turned: _Floats, count: float) -> _Floats:
        """Of each scale, up to one constant: shape (n_samples, 1 + n_scales).

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

    def mean(self, turned: _Floats, shares: _Floats, count: float) -> _Floats:
        """Expected prevalences under each scale, times the shares.

        The shares are of shape (n_samples, 1 + n_scales), or (1 + n_scales,) for all samples.
        """
        squares, vectors = self._directions
        near, far = np.zeros_like(turned), np.zeros_like(turned)
        for column, scale in enumerate(self.all_scales):
            strength = scale**2 * count
            kept = shares[..., column, np.newaxis] * turned / (1 + strength * squares)
            near += kept
            far += strength * kept
        total = shares.sum(axis=-1)[..., np.newaxis]
        return total * self.prevalence + near @ vectors.T + far @ self._labels

    def variance(self, scale: float, count: float) -> _Floats:
        """What a sample's mean score leaves open of the prevalences, shape (n_labels,)."""
        squares, vectors = self._directions
        onto = vectors.T + (scale**2 * count) * self._labels
        explained = (squares / (1 + scale**2 * count * squares)) @ np.square(onto) / count
        prior = scale**2 * np.square(self.covariance).sum(axis=0)
        return np.maximum(prior + np.diag(self.covariance) / count - explained, 0)

    def explained(self, turned: _Floats, count: float) -> _Floats:
        """The part of z that the widest scale accounts for."""
        squares, vectors = self._directions
        strength = self.scales[-1] ** 2 * count
        return (turned * (strength / (1 + strength * squares))) @ (self.cross @ vectors).T
