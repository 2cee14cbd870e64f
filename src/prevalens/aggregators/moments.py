"""Ridge regression for RQ without samples: the moments of ML-APP are known in closed form.

A linear correction needs the means and covariances of (mean score, prevalence) over the samples of
the protocol, and nothing else. With k items per sample, of which m are positives of label c,
the sample mean of the rows v = [scores, labels] has

    mean        (m/k) mu1 + (1 - m/k) mu0
    covariance  m/k^2 (1 - m/n1) S1 + (k-m)/k^2 (1 - (k-m)/n0) S0

where mu1, S1 and n1 are mean, covariance and number of the label's positives in the pool, mu0, S0
and n0 those of its negatives. Averages over all labels and reachable grid points are a few
matrix products: the covariances of all labels together are one weighted product of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.aggregators._regressor import Floats, Regressor
from prevalens.protocols import MLAPP
from prevalens.protocols.grid import grid_points, positives_wanted
from prevalens.validation import InputError

__all__ = ["MomentsRidge", "ProtocolMoments", "protocol_moments"]


@dataclass(frozen=True)
class ProtocolMoments:
    """Means and covariances of estimates X and prevalences Y over samples.

    Attributes
    ----------
    mean_x : array of float, shape (n_inputs,)
    mean_y : array of float, shape (n_labels,)
    cov_xx : array of float, shape (n_inputs, n_inputs)
    cov_xy : array of float, shape (n_inputs, n_labels)
    """

    mean_x: Floats
    mean_y: Floats
    cov_xx: Floats
    cov_xy: Floats

    @classmethod
    def of_rows(cls, X: Floats, Y: Floats) -> ProtocolMoments:
        """Of samples that have been drawn, one row each."""
        x, y = X - X.mean(axis=0), Y - Y.mean(axis=0)
        return cls(X.mean(axis=0), Y.mean(axis=0), x.T @ x / len(x), x.T @ y / len(x))

    @classmethod
    def mixed(cls, parts: Sequence[ProtocolMoments]) -> ProtocolMoments:
        """Of the samples of several pools together, as many of each."""
        mean_x = np.mean([part.mean_x for part in parts], axis=0)
        mean_y = np.mean([part.mean_y for part in parts], axis=0)
        off = [(part.mean_x - mean_x, part.mean_y - mean_y) for part in parts]
        between_xx = np.mean([np.outer(x, x) for x, _ in off], axis=0)
        between_xy = np.mean([np.outer(x, y) for x, y in off], axis=0)
        within_xx = np.mean([part.cov_xx for part in parts], axis=0)
        within_xy = np.mean([part.cov_xy for part in parts], axis=0)
        return cls(mean_x, mean_y, within_xx + between_xx, within_xy + between_xy)


@dataclass(frozen=True)
class _Cells:
    """Sums over a label's reachable grid points, each of shape (n_labels,).

    Attributes
    ----------
    count : number of points
    share, squared : sums of m/k and of its square
    positive, negative : sums of the factors of the covariances of positives and of negatives
    """

    count: Floats
    share: Floats
    squared: Floats
    positive: Floats
    negative: Floats


def protocol_moments(X: Floats, Y: npt.NDArray[np.int8], protocol: MLAPP) -> ProtocolMoments:
    """Exact moments of (mean of X, mean of Y) over the samples that ML-APP would draw.

    Parameters
    ----------
    X : array of float, shape (n_items, n_inputs)
    Y : 0/1 array, shape (n_items, n_labels)
    protocol : MLAPP
        Every label and reachable grid point counts the same.

    Notes
    -----
    O((n_items + n_labels) x n_inputs x (n_inputs + n_labels)) in matrix products.
    """
    cells = _cells(Y, protocol)
    truth = Y.astype(np.float64)
    centre_x, centre_y = X.mean(axis=0), truth.mean(axis=0)
    # Around the means of the pool, so that nothing large cancels.
    x, y = X - centre_x, truth - centre_y
    positives = truth.sum(axis=0)
    ones = _class_means(truth, positives, x, y)
    zeros = _class_means(1.0 - truth, len(truth) - positives, x, y)
    total = cells.count.sum()
    mean_x, mean_y = (
        (cells.share @ one + (cells.count - cells.share) @ zero) / total
        for one, zero in zip(ones, zeros, strict=True)
    )
    both = cells.share - cells.squared
    neither = cells.count - 2.0 * cells.share + cells.squared
    within_one = _scatter_factor(cells.positive, positives)
    within_zero = _scatter_factor(cells.negative, len(truth) - positives)
    weight = truth @ within_one + (1.0 - truth) @ within_zero
    own_one = cells.squared - within_one * positives
    own_zero = neither - within_zero * (len(truth) - positives)

    def second(rows: Floats, one: Floats, zero: Floats) -> Floats:
        between = (ones[0].T * own_one + zeros[0].T * both) @ one
        between += (zeros[0].T * own_zero + ones[0].T * both) @ zero
        return np.asarray(((x.T * weight) @ rows + between) / total)

    return ProtocolMoments(
        centre_x + mean_x,
        centre_y + mean_y,
        second(x, ones[0], zeros[0]) - np.outer(mean_x, mean_x),
        second(y, ones[1], zeros[1]) - np.outer(mean_x, mean_y),
    )


def _cells(Y: npt.NDArray[np.int8], protocol: MLAPP) -> _Cells:
    served = protocol.reachable(Y).astype(np.float64)
    size = protocol.size
    wanted = positives_wanted(grid_points(protocol.grid), size).astype(np.float64)
    positives = Y.sum(axis=0, dtype=np.float64)[:, np.newaxis]
    negatives = len(Y) - positives
    others = size - wanted
    return _Cells(
        count=served.sum(axis=1),
        share=served @ (wanted / size),
        squared=served @ (wanted / size) ** 2,
        positive=(served * wanted * (1.0 - wanted / np.maximum(positives, 1.0))).sum(axis=1)
        / size**2,
        negative=(served * others * (1.0 - others / np.maximum(negatives, 1.0))).sum(axis=1)
        / size**2,
    )


def _class_means(members: Floats, counts: Floats, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Mean rows of each label's members, shapes (n_labels, n_inputs) and (n_labels, n_labels)."""
    share = members.T / np.maximum(counts, 1.0)[:, np.newaxis]
    return np.asarray(share @ x), np.asarray(share @ y)


def _scatter_factor(factor: Floats, counts: Floats) -> Floats:
    """From the factor of an unbiased covariance to that of the sum of squares."""
    return np.asarray(np.where(counts > 1, factor / np.maximum(counts - 1.0, 1.0), 0.0))


class MomentsRidge(Regressor):
    """Ridge regression on the exact moments of ML-APP: what sampled ridge tends to.

    In ``RQ(PCC(), "moments")`` no samples are drawn. For bases that are means over items: CC, PCC,
    and ACC and PACC before they are clipped. Given rows, it is `NormalisedRidge`.

    Parameters
    ----------
    alpha : float
        Penalty of the squared coefficients of standardised inputs, per row.

    Attributes
    ----------
    coef_ : array of float, shape (n_inputs, n_labels)
    intercept_ : array of float, shape (n_labels,)

    Notes
    -----
    One linear system in the number of labels. Ridge regression gives means; absolute errors of rare
    labels are smaller with `BatchedLinearSVR`, which gives medians.

    References
    ----------
    Cochran, "Sampling techniques", Wiley 1977 (variances without replacement).

    Examples
    --------
    >>> X = [[0.1, 0.9], [0.2, 0.7], [0.4, 0.5], [0.8, 0.1]]
    >>> MomentsRidge(alpha=1e-9).fit(X, X).predict([[0.5, 0.5]]).round(2).tolist()
    [[0.5, 0.5]]
    """

    code = "moments"

    def __init__(self, alpha: float = 0.01) -> None:
        self.alpha = alpha

    def fit_protocol(
        self, parts: Sequence[tuple[Floats, npt.NDArray[np.int8], Any]]
    ) -> MomentsRidge:
        """Learn from labelled items and the protocol that would draw samples of them.

        Parameters
        ----------
        parts : list of (values, Y, protocol)
            Of each pool: what the base's estimates are means of, the labels, and an MLAPP.
        """
        for _, _, protocol in parts:
            if not isinstance(protocol, MLAPP):
                raise InputError(
                    f"Exact moments are known for MLAPP alone; got {protocol!r}. Use the "
                    "regressor 'ridge', which learns from samples."
                )
        moments = [protocol_moments(X, Y, protocol) for X, Y, protocol in parts]
        self._one_target = moments[0].cov_xy.shape[1] == 1
        self.n_features_in_ = len(moments[0].mean_x)
        self._solve(ProtocolMoments.mixed(moments))
        return self

    def _fit(self, X: Floats, Y: Floats) -> None:
        self._solve(ProtocolMoments.of_rows(X, Y))

    def _solve(self, moments: ProtocolMoments) -> None:
        deviation = np.sqrt(np.maximum(np.diag(moments.cov_xx), 0.0))
        # As StandardScaler does it: what does not vary is left as it is.
        deviation = np.where(deviation > 1e-12, deviation, 1.0)
        system = moments.cov_xx / np.outer(deviation, deviation)
        system[np.diag_indices_from(system)] += self.alpha
        standard = np.linalg.solve(system, moments.cov_xy / deviation[:, np.newaxis])
        self.coef_ = standard / deviation[:, np.newaxis]
        self.intercept_ = moments.mean_y - moments.mean_x @ self.coef_

    def _predict(self, X: Floats) -> Floats:
        return np.asarray(X @ self.coef_ + self.intercept_)
