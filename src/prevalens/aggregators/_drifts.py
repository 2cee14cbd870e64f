"""The scenarios in which the items changed, and the labels only because of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Drifts"]

_Floats = npt.NDArray[np.float64]
#: A sample for which a drift is less likely than this is not followed along it.
_NEGLIGIBLE = 1e-5


@dataclass(frozen=True)
class Drifts:
    """Items weighted by exp(theta . s), theta Gaussian over the scores s: covariate shift.

    To first order the whitened mean score moves by F theta, where F is the share of each
    direction's variance that is the scores' own, and the labels follow by the regression on the
    scores: nothing but the mix of items has changed.

    Attributes
    ----------
    firm : shape (n_scores,)
        F, the diagonal.
    cross : shape (n_scores, n_labels)
        Covariance of whitened scores and labels.
    prevalence, variances : shape (n_labels,)
        Of the labels.
    scales : tuple of float
        Standard deviations of theta.
    """

    firm: _Floats
    cross: _Floats
    prevalence: _Floats
    variances: _Floats
    scales: tuple[float, ...]

    def _seen(self, scale: float, count: float) -> _Floats:
        """Variance of z in each direction."""
        found: _Floats = scale**2 * self.firm**2 + 1 / count
        return found

    def _follow(self, scale: float, count: float) -> _Floats:
        """By how much of z the labels follow in each direction."""
        return (scale**2 * self.firm + 1 / count) / self._seen(scale, count)

    def log_likelihood(self, squares: _Floats, count: float) -> _Floats:
        """Of each scale, from the squares of z, up to the constant of `Tilts.log_likelihood`."""
        columns = []
        for scale in self.scales:
            seen = self._seen(scale, count)
            columns.append(-0.5 * (np.log(seen).sum() + squares @ (1 / seen)))
        return np.column_stack(columns) if columns else np.empty((len(squares), 0))

    def mean(self, z: _Floats, shares: _Floats, count: float) -> _Floats:
        """Expected prevalences under each scale, times the shares (n_samples, n_scales)."""
        total = shares.sum(axis=1)
        found = total[:, np.newaxis] * self.prevalence
        rows = np.flatnonzero(total > _NEGLIGIBLE)
        if len(rows):
            follow = [self._follow(scale, count) for scale in self.scales]
            found[rows] += (z[rows] * (shares[rows] @ np.array(follow))) @ self.cross
        return found

    def variance(self, scale: float, count: float) -> _Floats:
        """What a sample's mean score leaves open of the prevalences, shape (n_labels,)."""
        explained = self._follow(scale, count) ** 2 * self._seen(scale, count)
        left = (scale**2 - explained) @ np.square(self.cross) + self.variances / count
        return np.maximum(left, 0)
