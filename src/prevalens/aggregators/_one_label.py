"""The scenario in which one label moved: an integral along the line its mean score moves on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Line", "OneLabel"]

_Floats = npt.NDArray[np.float64]
_Function = Callable[[_Floats], _Floats]
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

    evidence: _Floats
    g: _Floats
    g2: _Floats


@dataclass(frozen=True)
class Line:
    """Squared distance of each sample from each label's line: ``offset - 2 g along + g^2 squared``.

    Attributes
    ----------
    offset, along : shape (n_samples, n_labels)
    squared : shape (n_labels,)
    n_scores : int
        Dimensions the distance is taken in.
    """

    offset: _Floats
    along: _Floats
    squared: _Floats
    n_scores: int

    @classmethod
    def of(cls, z: _Floats, length: _Floats, low: _Floats, step: _Floats) -> Line:
        """From samples z (n_samples, n_scores) and lines low + g step (n_labels, n_scores)."""
        offset = length[:, np.newaxis] - 2 * z @ low.T + np.square(low).sum(axis=1)
        along = z @ step.T - np.einsum("ij,ij->i", low, step)
        return cls(offset, along, np.square(step).sum(axis=1), z.shape[1])

    def take(self, rows: npt.NDArray[np.intp]) -> Line:
        """Some of the samples."""
        return Line(self.offset[rows], self.along[rows], self.squared, self.n_scores)

    @property
    def likeliest(self) -> _Floats:
        """The prevalence at which each line comes nearest."""
        return np.clip(self.along / np.maximum(self.squared, _TINY), 0, 1)

    def distance(self, g: _Floats) -> _Floats:
        """Squared distance at prevalence g."""
        return self.offset - 2 * g * self.along + g**2 * self.squared

    def log_likelihood(self, g: _Floats, precision: _Function) -> _Floats:
        """Of a Gaussian of this precision around the line at g."""
        tau = precision(g)
        return 0.5 * (self.n_scores * np.log(tau) - tau * self.distance(g))

    def rough(self, precision: _Function) -> _Floats:
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
