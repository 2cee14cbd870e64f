"""KDEy: the mixture of the kernel densities of positives and negatives that fits the sample best.

The densities are those of the posteriors of a label. In the plane of both posteriors, (1 - p, p),
where the method was published, all points lie on a line, and a Gaussian kernel of bandwidth h is
one of bandwidth h / sqrt(2) in p.
"""

from __future__ import annotations

import numpy as np

from prevalens.aggregators.base import FEW, Aggregator
from prevalens.aggregators.matching import nearest_mixtures
from prevalens.aggregators.sld import MaximumLikelihood
from prevalens.aggregators.sld_blocked import Rule
from prevalens.batches import Columns, Statistic, fingerprint_of
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.validation import check_number

#: Points per bandwidth of the tables of densities; their relative error is below 1e-4.
_FINE = 64
#: Points per bandwidth where densities are compared, and how far beyond 0 and 1: the sum over the
#: points is the integral to many digits, as the densities are smooth.
_COARSE, _MARGIN = 2, 4.0
_BANDWIDTHS = (0.01, 1.0)
_RULE = Rule(exact=True, tol=1e-9, max_iter=1000)


def check_bandwidth(bandwidth: object) -> float:
    """The bandwidth along p."""
    return check_number(bandwidth, "bandwidth", *_BANDWIDTHS) / float(np.sqrt(2.0))


def _kernel(points: Floats, centres: Floats, width: float) -> Floats:
    """Gaussian kernels without their constant, shape (n_points, n_centres)."""
    distance = (points[:, np.newaxis] - centres) / width
    return np.asarray(np.exp(-0.5 * distance**2))


def _linear_bins(values: Array, members: LabelMatrix, grid: Floats) -> Floats:
    """Members of each label, each shared between the two nearest points of an even grid.

    Returns
    -------
    array of float, shape (n_labels, len(grid))
        Rows sum to 1; NaN for a label without members.
    """
    weights = np.zeros((members.shape[1], len(grid)))
    for label, row in enumerate(weights):
        place = values[:, label].astype(np.float64) * (len(grid) - 1)
        below = np.minimum(place.astype(np.intp), len(grid) - 2)
        upper = (place - below) * members[:, label]
        row += np.bincount(below, weights=members[:, label] - upper, minlength=len(grid))
        row += np.bincount(below + 1, weights=upper, minlength=len(grid))
    with np.errstate(invalid="ignore"):
        return weights / weights.sum(axis=1, keepdims=True)


def _class_weights(scores: Scores, Y: LabelMatrix, width: float) -> tuple[Floats, list[Floats]]:
    """A grid of posteriors, and the shares of positives and of negatives at its points."""
    grid = np.linspace(0.0, 1.0, int(np.ceil(_FINE / width)) + 1)
    return grid, [_linear_bins(scores.values, members, grid) for members in (Y, 1 - Y)]


class KDEyML(MaximumLikelihood):
    """Mixture of kernel densities under which the sample's posteriors are most likely.

    Parameters
    ----------
    bandwidth : float
        Of the Gaussian kernel in the plane of both posteriors, as in the paper; 0.01 to 1.

    Attributes
    ----------
    table_ : array of float, shape (n_labels, n_points)
        At even steps of the posterior, the share of the positives' density in the sum of both
        densities: the posterior of a label with prior 0.5.

    Notes
    -----
    With f and g the densities of a label's positives and negatives, the likelihood of a
    prevalence q is ``prod (q f + (1 - q) g)`` over the sample's items. That is the likelihood of
    `SLD` with the posteriors ``f / (f + g)`` and the prior 0.5, and it is maximised by the same
    solver. Densities are tabulated once, at 64 points per bandwidth, to a relative error of 1e-4;
    reading them costs O(n_items x n_labels), and the solver as much as `SLD`.

    A label that is constant in the labelled scores is estimated by its mean posterior. Fails where
    a label has few positives: their density is a few bumps, and items between them count as
    negatives.

    References
    ----------
    Moreo, González, del Coz, "Kernel density estimation for multiclass quantification", Machine
    Learning 114, 2025.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.9], [0.8], [0.3], [0.2]], kind="posteriors")
    >>> kdey = KDEyML().fit(posteriors, [[1], [1], [0], [0]])
    >>> samples = Samples.from_indices([[0, 1, 2, 3], [0, 1, 1, 2]], n_items=4)
    >>> kdey.aggregate(posteriors, samples).round(3).tolist()
    [[0.5], [0.75]]
    """

    code = "kdey"

    def __init__(self, bandwidth: float = 0.1) -> None:
        self.bandwidth = bandwidth

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        width = check_bandwidth(self.bandwidth)
        grid, weights = _class_weights(scores, Y, width)
        # On an even grid the kernel depends on the difference of two points alone.
        kernel = _kernel(np.concatenate([-grid[:0:-1], grid]), np.zeros(1), width)[:, 0]
        kept = slice(len(grid) - 1, 2 * len(grid) - 1)
        positives, negatives = (
            np.stack([np.convolve(kernel, row)[kept] for row in rows]) for rows in weights
        )
        total = positives + negatives
        # Far from all labelled items both densities are 0 in floating point: no evidence.
        self.table_ = np.divide(positives, total, out=np.full_like(total, 0.5), where=total > 0)
        varies = (self.prevalence_ > 0) & (self.prevalence_ < 1)
        self.prior_ = np.where(varies, 0.5, self.prevalence_)
        self._rule = _RULE

    def _calibrated(self, posteriors: Floats, labels: Ints) -> Floats:
        grid = np.linspace(0.0, 1.0, self.table_.shape[1])
        rows = [
            np.interp(own, grid, self.table_[label])
            for own, label in zip(posteriors, labels.tolist(), strict=True)
        ]
        return np.stack(rows) if rows else posteriors


class KDEyHD(Aggregator):
    """Mixture of kernel densities nearest to the sample's own, in Hellinger distance.

    Parameters
    ----------
    bandwidth : float
        As in `KDEyML`; the density of the sample has the same kernel.

    Attributes
    ----------
    positives_, negatives_ : arrays of float, shape (n_labels, n_points)
        Densities of each label's positives and negatives at `points_`, up to a constant; NaN where
        there are none.
    points_ : array of float, shape (n_points,)

    Notes
    -----
    Densities are compared at two points per bandwidth, from 4 bandwidths below 0 to 4 above 1.
    The nearest mixture is found as in `DyS`. The paper compares at random points;
    with many of these both find the same mixture. O(n_items x n_labels x n_points) for the kernels
    of all items, O(n_labels x n_indices x n_points) for the samples.

    A label that is constant in the labelled scores is estimated by its mean posterior. Fails where
    a label has few positives, and for samples of a few items, whose density is a few bumps.

    References
    ----------
    Moreo, González, del Coz, "Kernel density estimation for multiclass quantification", Machine
    Learning 114, 2025.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.9], [0.8], [0.3], [0.2]], kind="posteriors")
    >>> kdey = KDEyHD().fit(posteriors, [[1], [1], [0], [0]])
    >>> kdey.aggregate(posteriors, Samples.whole(4)).round(3).tolist()
    [[0.5]]
    """

    code = "kdey-hd"
    consumes: Kind = "posteriors"
    joint = False
    least_positives = FEW

    def __init__(self, bandwidth: float = 0.1) -> None:
        self.bandwidth = bandwidth

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        self._width = check_bandwidth(self.bandwidth)
        reach = _MARGIN * self._width
        n_points = int(np.ceil(_COARSE * (1.0 + 2.0 * reach) / self._width)) + 1
        self.points_ = np.linspace(-reach, 1.0 + reach, n_points)
        grid, weights = _class_weights(scores, Y, self._width)
        kernel = _kernel(grid, self.points_, self._width)
        self.positives_, self.negatives_ = (_to_one(rows @ kernel) for rows in weights)

    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:
        estimates = np.empty((len(samples), self.n_labels_))
        for label in range(self.n_labels_):
            means = samples.mean(self._kernels(scores, label))
            estimates[:, label] = self._match(means, label, samples.mean(scores.values[:, label]))
        return estimates

    def _kernels(self, scores: Scores, label: int) -> Floats:
        """The kernel of each item at the points, shape (n_items, n_points)."""
        return _kernel(scores.values[:, label].astype(np.float64), self.points_, self._width)

    def _match(self, densities: Floats, label: int, fallback: Floats) -> Floats:
        if not 0 < self.prevalence_[label] < 1:
            return fallback
        positives, negatives = self.positives_[label], self.negatives_[label]
        return nearest_mixtures(_to_one(densities), positives, negatives, "hellinger")

    @property
    def statistic(self) -> Statistic:
        """The posteriors, and the kernels of the items at the points, label by label."""
        name = f"kernels {fingerprint_of([self.points_, self._width])}"
        return Columns(name, self._columns)

    def _columns(self, scores: Scores) -> Floats:
        kernels = [self._kernels(scores, label) for label in range(self.n_labels_)]
        return np.column_stack([scores.values, *kernels])

    def _from_means(self, means: Floats, sizes: Ints) -> Floats:  # noqa: ARG002
        posteriors = means[:, : self.n_labels_]
        parts = np.split(means[:, self.n_labels_ :], self.n_labels_, axis=1)
        matched = [
            self._match(part, label, posteriors[:, label]) for label, part in enumerate(parts)
        ]
        return np.stack(matched, axis=1)


def _to_one(densities: Floats) -> Floats:
    """Densities scaled to sum to 1 over the points."""
    return np.asarray(densities / densities.sum(axis=1, keepdims=True))
