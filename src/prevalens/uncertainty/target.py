"""Estimates that use the labels of some items of the batch, labelled by hand.

The labelled items must be drawn at random, uniformly or with known weights; a subset chosen by hand
biases the estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, logsumexp, ndtr
from scipy.stats import norm

from prevalens.batches import OPENNESS, VALUES, Batches
from prevalens.collection import label_matrix
from prevalens.estimate import PrevalenceEstimate
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.uncertainty.drift import arcsine, from_arcsine, quantile
from prevalens.validation import InputError, check_same_length

#: Weight of calibrated scores in power and variance, as a number of labelled items.
_PRIOR_ITEMS = 5.0
#: Spacing of the logarithms of factors on the claimed variances.
_STEP = 0.5
#: Logarithm of the factor that all labels of a batch share, a priori standard normal.
_SHARED = np.arange(-3.0, 9.0 + _STEP, _STEP)
#: Logarithm of a label's own factor, a priori inverse gamma (2, 2): errors are then t with 4
#: degrees of freedom.
_OWN = np.arange(-2.0, 6.0 + _STEP, _STEP)
#: Weight of the labels' log-likelihood for the shared factor: their errors are not independent.
_EVIDENCE = 0.5
#: A side of an interval counts as at least this share of its width.
_NARROWEST = 0.25
#: Parts of an estimate that labels change.
_COMBINED = ("point", "lower", "upper", "band_lower", "band_upper")
#: Bisections that find the end of an interval, to a millionth.
_BISECTIONS = 20
#: Smallest variance, if all items are labelled and nothing is open.
_NOTHING = 1e-12


@dataclass(frozen=True)
class LabelledPart:
    """Items of a batch whose labels are known.

    Attributes
    ----------
    rows : array of int, shape (n_labelled,)
        Distinct row numbers of the batch, drawn at random.
    Y : 0/1 array, shape (n_labelled, n_labels)
    weights : array of float, shape (n_labelled,)
        How many items of the batch each stands for; they sum to `n_items`.
    n_items : int
        Size of the batch.
    """

    rows: npt.NDArray[np.intp]
    Y: LabelMatrix
    weights: Floats
    n_items: int

    @property
    def least(self) -> Floats:
        """Prevalence of the batch if no other item had the label."""
        return np.asarray(self.Y.sum(axis=0) / self.n_items)

    @property
    def most(self) -> Floats:
        """Prevalence of the batch if all other items had it."""
        return np.asarray(self.least + 1.0 - len(self.rows) / self.n_items)

    @property
    def n_effective(self) -> float:
        """Items of a uniform sample that says as much (Kish); with equal weights all of them."""
        return float(self.weights.sum() ** 2 / (self.weights**2).sum())

    @property
    def counts(self) -> Floats:
        """The weights, scaled to sum to `n_effective`."""
        return np.asarray(self.weights * self.n_effective / self.n_items)

    @property
    def open_shares(self) -> Floats:
        """Squared shares of the items in a mean, times the chance of not having been drawn.

        An item of weight w was drawn with probability 1 / w. The variance of a weighted mean is
        the sum of these times the variance of an item: for equal weights (1 - n / n_items) / n.
        """
        drawn = np.minimum(1.0 / self.weights, 1.0)
        return np.asarray((1.0 - drawn) * (self.weights / self.n_items) ** 2)


def check_labelled(labelled: Any, n_items: int, labels: Sequence[str]) -> LabelledPart:
    """Return ``(rows, Y_rows)`` or ``(rows, Y_rows, weights)`` as a checked `LabelledPart`."""
    if not isinstance(labelled, tuple) or len(labelled) not in (2, 3):
        raise InputError(
            "labelled must be a pair: row numbers of the batch, and their labels; weights may "
            "follow as the third."
        )
    rows, (Y, _) = np.asarray(labelled[0]), label_matrix(labelled[1], labels)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise InputError("The labelled rows must be a list of row numbers.")
    check_same_length(len(rows), "The labelled rows", len(Y), "their labels")
    if rows.min() < 0 or rows.max() >= n_items or len(np.unique(rows)) < len(rows):
        raise InputError(f"The labelled rows must be distinct numbers from 0 to {n_items - 1}.")
    weights = _check_weights(labelled[2] if len(labelled) == 3 else None, len(rows))
    return LabelledPart(rows.astype(np.intp), Y, weights * n_items / weights.sum(), n_items)


def _check_weights(weights: Any, n_labelled: int) -> Floats:
    if weights is None:
        return np.ones(n_labelled)
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("The weights of the labelled rows must be numbers.") from None
    check_same_length(n_labelled, "The labelled rows", len(np.atleast_1d(array)), "their weights")
    if array.ndim != 1 or not np.all(np.isfinite(array) & (array > 0)):
        raise InputError("The weights of the labelled rows must be positive numbers, one per row.")
    return array


def ppi_mean(y: Floats, predicted: Floats, elsewhere: Floats) -> tuple[Floats, Floats]:
    """Power-tuned prediction-powered mean of a population, and its variance (PPI++).

    Parameters
    ----------
    y, predicted : array of float, shape (n_labelled, n_labels)
        Labels and predictions of labelled items.
    elsewhere : array of float, shape (n_unlabelled, n_labels)
        Predictions of unlabelled items of the same population.

    References
    ----------
    Angelopoulos, Duchi and Zrnic, "PPI++: Efficient prediction-powered inference",
    arXiv 2311.01453, 2023.
    """
    n, n_more = len(y), len(elsewhere)
    spread = np.concatenate([predicted, elsewhere]).var(axis=0, ddof=1)
    together = _covariance(y, predicted, np.ones(n)) / (n - 1)
    power = np.divide(
        together, (1.0 + n / n_more) * spread, out=np.zeros_like(spread), where=spread > 0
    )
    left = y - power * predicted
    mean = power * elsewhere.mean(axis=0) + left.mean(axis=0)
    variance = power**2 * elsewhere.var(axis=0, ddof=1) / n_more + left.var(axis=0, ddof=1) / n
    return mean, variance


class BatchScores(NamedTuple):
    """What is needed of the scores of a batch; zeros if there are none: only the labels count.

    Attributes
    ----------
    mean, spread : array of float, shape (n_labels,)
        Mean and variance over all items.
    labelled : array of float, shape (n_labelled, n_labels)
        The scores of the labelled items.
    """

    mean: Floats
    spread: Floats
    labelled: Floats

    @classmethod
    def of(cls, scores: Array, rows: npt.NDArray[np.intp]) -> BatchScores:
        """Of the scores of all items, shape (n_items, n_labels), and the labelled rows."""
        values = np.asarray(scores, dtype=np.float64)
        return cls(values.mean(axis=0), values.var(axis=0), values[rows])


def ppi_of_batch(part: LabelledPart, scores: BatchScores, point: Floats) -> tuple[Floats, Floats]:
    """Prevalence of the batch itself from its labelled items and all scores, and its variance.

    Parameters
    ----------
    part : LabelledPart
    scores : BatchScores
    point : array of float, shape (n_labels,)
        First estimate of the prevalences, for the variances of labels with few positives.

    Notes
    -----
    The difference estimator of survey sampling: the mean score of the batch, times a power, plus
    the weighted mean residual of the labelled items (Hájek). As the batch is finite, an item
    counts in the variance by the chance of not having been drawn. That the items of a stratified
    sample were drawn stratum by stratum is not used: the variance is then rather too large. A
    handful of labels says little about power and variance: both are shrunk towards the values of
    calibrated scores.
    """
    y, predicted, spread = part.Y.astype(np.float64), scores.labelled, scores.spread
    n, counts = len(y), part.counts
    gram = _covariance(predicted, predicted, counts) + _PRIOR_ITEMS * spread
    power = np.divide(
        _covariance(y, predicted, counts) + _PRIOR_ITEMS * spread,
        gram,
        out=np.zeros_like(gram),
        where=gram > 0,
    )
    left = y - power * predicted
    residual = np.average(left, axis=0, weights=counts)
    mean = power * scores.mean + residual
    share = _share(part, point)
    least = np.maximum(share * (1.0 - share) - power**2 * spread, 0.25 * share * (1.0 - share))
    shares = part.open_shares
    variance = shares @ (left - residual) ** 2 * n / max(n - 1, 1)
    return np.clip(mean, part.least, part.most), np.maximum(variance, least * shares.sum())


def label_scores(scores: Scores, n_labels: int) -> Array:
    """Scores of items for `with_labels`; zeros if they are features, so that the labels count."""
    if scores.kind == "features":
        return np.zeros((scores.n_items, n_labels))
    return np.asarray(scores.values)


def _share(part: LabelledPart, point: Floats) -> Floats:
    """Share of labelled items that have each label, shrunk towards a first estimate.

    No positive among few items does not mean that there are none.
    """
    positives = part.counts @ part.Y + _PRIOR_ITEMS * point + 0.5
    return np.asarray(positives / (part.n_effective + _PRIOR_ITEMS + 1.0))


def with_labels(estimate: PrevalenceEstimate, scores: Array, labelled: Any) -> PrevalenceEstimate:
    """Combine the estimate of a batch with the labels of some of its items.

    The labelled items alone give a second, unbiased estimate (`ppi_of_batch`). Per label, both are
    weighted by their precisions. The claim of the first is not taken at its word: its variance is
    that of its intervals, times a factor for the whole batch, times a factor for the label. Both
    have a prior; how far the two estimates are apart, over all labels, tells the rest.

    Parameters
    ----------
    estimate : PrevalenceEstimate, shape (n_labels,)
        Estimate of the batch, with intervals, which need not be symmetric.
    scores : array of float, shape (n_items, n_labels)
        Posteriors or votes of all items of the batch; zeros if there are none.
    labelled : pair of (rows, Y_rows), or triple of (rows, Y_rows, weights)
        Distinct row numbers of the batch, drawn at random, and their labels. Weights are
        proportional to 1 / (probability of being drawn); without them all are equal.

    Returns
    -------
    PrevalenceEstimate
        With intervals and bands of the same level, which respect that labelled items are known;
        `n_labelled` items were used, and `more_labels` more would halve the interval of a label.

    Notes
    -----
    Prevalences are compared as arcsin sqrt p, where variances do not depend on p. There the
    prevalence has a two-piece normal prior around the estimate, with the variances of the two
    sides of the interval. The logarithm of the factor of the batch is standard normal, the factor
    of a label inverse gamma (2, 2), which makes the errors of the estimate t with 4 degrees
    of freedom. Both are on a grid, so that the posterior is a mixture of truncated normals; time
    and memory are O(grid * n_labels). Ends are whole numbers of items. Bands treat labels as
    independent, which makes them too wide rather than too narrow. It fails if the labelled items
    are not a random sample.

    Examples
    --------
    >>> estimate = PrevalenceEstimate([0.5], ["a"], lower=[0.3], upper=[0.7], level=0.9)
    >>> rows, Y_rows = np.arange(20), np.zeros((20, 1))
    >>> combined = with_labels(estimate, np.full((100, 1), 0.5), (rows, Y_rows))
    >>> combined.point.round(2).tolist(), combined.n_labelled
    ([0.03], 20)
    """
    part = check_labelled(labelled, len(scores), estimate.labels)
    return _combined(estimate, part, BatchScores.of(scores, part.rows))


def _combined(
    estimate: PrevalenceEstimate, part: LabelledPart, scores: BatchScores
) -> PrevalenceEstimate:
    """See `with_labels`."""
    if estimate.ndim != 1 or estimate.lower is None or estimate.upper is None:
        raise InputError(
            "Labels are combined with the estimate of one batch that has intervals; ask for an "
            "interval, such as 0.9."
        )
    labels = _of_labels(part, scores, estimate.point)
    posterior = _posterior(
        labels.angle - arcsine(estimate.point), labels.variance, _sides(estimate, part.n_items)
    )
    return _answer(estimate, part, labels, posterior)


class _OfLabels(NamedTuple):
    """What the labelled items say: angles of the prevalences, and their variances."""

    angle: Floats
    variance: Floats


def _of_labels(part: LabelledPart, scores: BatchScores, point: Floats) -> _OfLabels:
    """The estimate of `ppi_of_batch` as an angle.

    Scores and a finite batch make the labelled items worth more than their number: as many as
    would have this variance alone. Anscombe's correction is for that number.
    """
    mean, variance = ppi_of_batch(part, scores, point)
    share = _share(part, point)
    worth = share * (1.0 - share) / np.maximum(variance, _NOTHING)
    corrected = (worth * mean + 0.375) / (worth + 0.75)
    return _OfLabels(arcsine(corrected), 1.0 / (4.0 * worth + 2.0))


def with_labels_of_batches(
    estimate: PrevalenceEstimate, scores: Array, samples: Samples, labelled: Any
) -> PrevalenceEstimate:
    """Combine the estimates of several batches with the labels of some of their items.

    Parameters
    ----------
    estimate : PrevalenceEstimate, shape (n_batches, n_labels)
    scores : array of float, shape (n_items, n_labels)
    samples : Samples
        The items of each batch.
    labelled : as in `with_labels`
        The rows are those of `scores`. A batch without labelled rows keeps its estimate.
    """
    part = check_labelled(labelled, len(scores), estimate.labels)
    place = np.full(len(scores), -1)
    place[part.rows] = np.arange(len(part.rows))

    def of_batch(number: int) -> tuple[LabelledPart, BatchScores] | None:
        bag = samples[number]
        rows = np.flatnonzero(place[bag] >= 0)
        if not len(rows):
            return None
        own = place[bag[rows]]
        labels_of_bag = (rows, part.Y[own], part.weights[own])
        checked = check_labelled(labels_of_bag, len(bag), estimate.labels)
        return checked, BatchScores.of(scores[bag], rows)

    return _combine_batches(estimate, of_batch)


class ScoredLabels(NamedTuple):
    """Labelled items of several batches, with their scores.

    Attributes
    ----------
    batch : array of int, shape (n_labelled,)
        Number of the batch of each.
    Y : 0/1 array, shape (n_labelled, n_labels)
    weights : array of float, shape (n_labelled,)
    scores : array of float, shape (n_labelled, n_labels)
        Their posteriors or votes; zeros if there are none.
    """

    batch: npt.NDArray[np.intp]
    Y: LabelMatrix
    weights: Floats
    scores: Floats


def with_labels_of_sums(
    estimate: PrevalenceEstimate, batches: Batches, sizes: Ints, labelled: ScoredLabels
) -> PrevalenceEstimate:
    """As `with_labels_of_batches`, of batches whose other items need not be at hand.

    Parameters
    ----------
    estimate : PrevalenceEstimate, shape (n_batches, n_labels)
    batches : Batches
        With the sums of the scores and, for posteriors, of p (1 - p).
    sizes : array of int, shape (n_batches,)
        Items of the batches, where `batches` represents them by some of their items.
    labelled : ScoredLabels
    """
    mean = spread = np.zeros(estimate.shape)
    if batches.kind != "features":
        mean = batches.mean(VALUES)
        openness = batches.mean(OPENNESS) if batches.kind == "posteriors" else 0.0
        spread = np.maximum(mean - openness - mean**2, 0.0)

    def of_batch(number: int) -> tuple[LabelledPart, BatchScores] | None:
        own = np.flatnonzero(labelled.batch == number)
        if not len(own):
            return None
        rows = (np.arange(len(own)), labelled.Y[own], labelled.weights[own])
        part = check_labelled(rows, int(sizes[number]), estimate.labels)
        return part, BatchScores(mean[number], spread[number], labelled.scores[own])

    return _combine_batches(estimate, of_batch)


def _combine_batches(
    estimate: PrevalenceEstimate,
    of_batch: Callable[[int], tuple[LabelledPart, BatchScores] | None],
) -> PrevalenceEstimate:
    """Combine the estimates of batches with their labelled items; those without any stay."""
    fields = {
        name: np.array(vars(estimate)[name])
        for name in _COMBINED
        if vars(estimate)[name] is not None
    }
    n_batches = len(estimate.point)
    n_labelled, more_labels = np.zeros(n_batches, dtype=np.intp), np.full(estimate.shape, np.nan)
    for i in range(n_batches):
        known = of_batch(i)
        if known is None:
            continue
        combined = _combined(estimate.sample(i), *known)
        for name, values in fields.items():
            values[i] = vars(combined)[name]
        n_labelled[i], more_labels[i] = len(known[0].rows), combined.more_labels
    return PrevalenceEstimate(
        labels=estimate.labels,
        index=estimate.index,
        level=estimate.level,
        p_value=estimate.p_value,
        n_labelled=n_labelled,
        more_labels=more_labels,
        **fields,
    )


class _Sides(NamedTuple):
    """Variances of angles that the sides of the intervals claim, shape (n_labels,)."""

    below: Floats
    above: Floats


def _sides(estimate: PrevalenceEstimate, n_items: int) -> _Sides:
    """Variances of both sides; at least those of a tenth of an item."""
    lower, point, upper = map(arcsine, (estimate.lower, estimate.point, estimate.upper))
    narrowest = _NARROWEST * (upper - lower)
    reach = quantile(float(np.asarray(estimate.level)))
    tenth = arcsine(np.abs(estimate.point - 0.1 / n_items)) - point
    below, above = (
        np.maximum(np.maximum(half, narrowest) / reach, np.abs(tenth)) ** 2
        for half in (point - lower, upper - point)
    )
    return _Sides(below, above)


class _Posterior(NamedTuple):
    """Angles minus those of the first estimates: per label a mixture of truncated normals.

    Attributes
    ----------
    weights : array of float, shape (2, n_factors, n_labels)
        Of the components below and above 0, before they are truncated there.
    means, deviations : array of float, shape (2, n_factors, n_labels)
    shift : array of float, shape (n_labels,)
        By how far the estimate moves: the difference of the two estimates, times the mean share
        that precision weighting gives to the labelled items.
    """

    weights: Floats
    means: Floats
    deviations: Floats
    shift: Floats

    def cdf(self, x: Floats) -> Floats:
        """Distribution function of each label at one value per label."""
        ends = np.stack([np.minimum(x, 0.0), np.maximum(x, 0.0)])[:, np.newaxis]
        reached = ndtr((ends - self.means) / self.deviations)
        reached[1] -= ndtr(-self.means[1] / self.deviations[1])
        return np.asarray((self.weights * reached).sum(axis=(0, 1)))

    def quantile(self, share: float, lowest: Floats, highest: Floats) -> Floats:
        """Quantile of each label between two bounds, by bisection."""
        for _ in range(_BISECTIONS):
            middle = (lowest + highest) / 2.0
            below = self.cdf(middle) < share
            lowest = np.where(below, middle, lowest)
            highest = np.where(below, highest, middle)
        return np.asarray((lowest + highest) / 2.0)


def _posterior(difference: Floats, variance: Floats, sides: _Sides) -> _Posterior:
    """Average over the factors on the claimed variances.

    Only the product of the two factors matters for a label, and the products of two grids of equal
    spacing are a grid: `kernel` maps a product to the pairs that give it.
    """
    products = _SHARED[0] + _OWN[0] + _STEP * np.arange(len(_SHARED) + len(_OWN) - 1)
    kernel = _kernel(len(products))
    claimed = np.exp(products)[:, np.newaxis] * np.stack(sides)[:, np.newaxis]
    share = claimed / (claimed + variance)
    means, deviations = share * difference, np.sqrt(share * variance)
    # Twice the sides' parts of the prior, times the density of the difference.
    logs = (
        np.log(2.0 * np.sqrt(claimed) / np.sqrt(claimed).sum(axis=0))
        + norm.logpdf(difference, scale=np.sqrt(claimed + variance))
    )  # fmt: skip
    signs = np.array([-1.0, 1.0])[:, np.newaxis, np.newaxis]
    evidence = logsumexp(logs + log_ndtr(signs * means / deviations), axis=0)
    highest = evidence.max(axis=0)
    likelihood = np.exp(evidence - highest)
    of_shared = kernel @ likelihood
    log_shared = -0.5 * _SHARED**2 + _EVIDENCE * np.log(of_shared).sum(axis=1)
    shared = np.exp(log_shared - logsumexp(log_shared))
    # The prior of a product, given what the labels say together about the shared factor.
    prior = kernel.T @ (shared[:, np.newaxis] / of_shared)
    side = (difference > 0).astype(np.intp)
    towards = np.take_along_axis(share, side[np.newaxis, np.newaxis], axis=0)[0]
    shift = difference * (prior * likelihood * towards).sum(axis=0)
    return _Posterior(prior * np.exp(logs - highest), means, deviations, shift)


def _kernel(n_products: int) -> Floats:
    """Prior of a label's own factor, shifted by the shared one: shape (n_shared, n_products)."""
    log_prior = -2.0 * _OWN - 2.0 * np.exp(-_OWN)
    own = np.exp(log_prior - logsumexp(log_prior))
    kernel = np.zeros((len(_SHARED), n_products))
    for row in range(len(_SHARED)):
        kernel[row, row : row + len(_OWN)] = own
    return kernel


def _answer(
    estimate: PrevalenceEstimate, part: LabelledPart, labels: _OfLabels, posterior: _Posterior
) -> PrevalenceEstimate:
    start, level = arcsine(estimate.point), np.asarray(estimate.level, dtype=np.float64)
    point = np.clip(from_arcsine(start + posterior.shift), part.least, part.most)
    bounds = arcsine(part.least) - start, arcsine(part.most) - start

    def ends(level: Floats) -> tuple[Floats, Floats]:
        tail = float(1.0 - level) / 2.0
        return posterior.quantile(tail, *bounds), posterior.quantile(1.0 - tail, *bounds)

    def as_items(end: Floats) -> Floats:
        items = np.round(from_arcsine(start + end) * part.n_items)
        return np.asarray(np.clip(items / part.n_items, part.least, part.most))

    each = ends(level)
    # Labels count as independent, which makes the band too wide rather than too narrow.
    all_ = ends(level ** (1.0 / len(point)))
    deviation = (each[1] - each[0]) / 2.0 / quantile(float(level))
    return PrevalenceEstimate(
        point,
        estimate.labels,
        lower=np.minimum(as_items(each[0]), point),
        upper=np.maximum(as_items(each[1]), point),
        band_lower=np.minimum(as_items(all_[0]), point),
        band_upper=np.maximum(as_items(all_[1]), point),
        level=estimate.level,
        p_value=estimate.p_value,
        n_labelled=len(part.rows),
        more_labels=_more_labels(part, labels.variance, deviation**2),
    )


def _more_labels(part: LabelledPart, variance: Floats, reached: Floats) -> Floats:
    """How many more labels, drawn in the same way, would halve the interval of each label.

    The precision must become four times that of now, `reached`; the estimate without labels keeps
    its part of it, and the rest must come from the labelled items, whose variance is proportional
    to 1 / n - 1 / n_items.
    """
    n, n_items = part.n_effective, part.n_items
    if len(part.rows) == n_items:
        return np.zeros(len(variance))
    wanted = 1.0 / (3.0 / np.maximum(reached, _NOTHING) + 1.0 / variance)
    each = variance / (1.0 / n - 1.0 / n_items)
    needed = 1.0 / (wanted / each + 1.0 / n_items)
    return np.asarray(np.ceil((needed / n - 1.0) * len(part.rows)))


def _covariance(left: Floats, right: Floats, counts: Floats) -> Floats:
    """Sums of products of deviations from the mean, column by column; rows count `counts` times."""
    deviations = left - np.average(left, axis=0, weights=counts)
    others = right - np.average(right, axis=0, weights=counts)
    return np.asarray(counts @ (deviations * others))
