"""Measures: how far an estimate is from the truth, one number per sample.

Every measure takes the true and the estimated prevalences, shape (n_samples, n_labels) or
(n_labels,), treats each label as a binary problem and averages over labels:
``D(p, q) = mean_j d(p_j, q_j)``. It returns an array of shape (n_samples,).

Sebastiani (2020) recommends absolute error and relative absolute error, and Moreo et al. use them.
The other measures allow comparisons with older work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from prevalens.types import Floats, Ints
from prevalens.validation import InputError, check_choice, check_prevalences

__all__ = [
    "HORIZON_EDGES",
    "HORIZON_NAMES",
    "INTERVAL_METRICS",
    "MEASURES",
    "SHIFT_NAMES",
    "ae",
    "concordance",
    "horizon_bins",
    "interval_measures",
    "kld",
    "nae",
    "nrae",
    "per_label",
    "rae",
    "se",
    "shift",
    "shift_bins",
    "smooth",
]

Errors: TypeAlias = Floats

#: The three shift regimes of the paper, in the order of `shift_bins`.
SHIFT_NAMES = ("low", "mid", "high")
#: Classes of horizons, in the order of `horizon_bins`, and the shares of the training span that
#: separate them.
HORIZON_NAMES = ("near", "medium", "far")
HORIZON_EDGES = (0.25, 1.0)
#: What is measured of intervals: see `interval_measures`.
INTERVAL_METRICS = ("coverage", "width", "needed_width", "band_coverage", "band_width")


def _pair(true: Any, estimated: Any) -> tuple[Errors, Errors]:
    """Check both arguments; a single vector is repeated for every sample of the other."""
    p, q = check_prevalences(true, "true"), check_prevalences(estimated, "estimated")
    if p.shape[1] != q.shape[1]:
        raise InputError(f"true has {p.shape[1]} labels but estimated has {q.shape[1]}.")
    if p.shape[0] != q.shape[0] and 1 not in (p.shape[0], q.shape[0]):
        raise InputError(f"true has {p.shape[0]} samples but estimated has {q.shape[0]}.")
    p, q = np.broadcast_arrays(p, q)
    return p, q


def ae(true: Any, estimated: Any) -> Errors:
    """Absolute error: the mean over labels of ``|p - q|``; between 0 and 1.

    Examples
    --------
    >>> ae([[0.5, 0.1]], [[0.25, 0.1]]).tolist()
    [0.125]
    """
    p, q = _pair(true, estimated)
    return np.abs(p - q).mean(axis=1)


def se(true: Any, estimated: Any) -> Errors:
    """Squared error: the mean over labels of ``(p - q)^2``; between 0 and 1."""
    p, q = _pair(true, estimated)
    return ((p - q) ** 2).mean(axis=1)


def _epsilon(size: Any, n_samples: int) -> Errors:
    """The paper's smoothing factor, 1 / (2 sample size), as a column."""
    sizes = np.asarray(size, dtype=np.float64)
    if sizes.ndim > 1 or sizes.size not in (1, n_samples):
        raise InputError(
            f"size must be one number or one per sample ({n_samples}); got shape {sizes.shape}."
        )
    if not np.all(sizes >= 1):
        raise InputError(f"size is the number of items in a sample; got {sizes.min()}.")
    return (1.0 / (2.0 * sizes)).reshape(-1, 1)


def smooth(prevalences: Any, size: Any) -> Errors:
    """Additive smoothing ``(eps + p) / (2 eps + 1)`` with ``eps = 1 / (2 size)``.

    Parameters
    ----------
    prevalences : array, shape (n_samples, n_labels)
    size : int or array of int, shape (n_samples,)
        Number of items in each sample.
    """
    p = check_prevalences(prevalences, "prevalences")
    eps = _epsilon(size, p.shape[0])
    return (eps + p) / (2 * eps + 1)


def _smooth_pair(true: Any, estimated: Any, size: Any) -> tuple[Errors, Errors]:
    p, q = _pair(true, estimated)
    return smooth(p, size), smooth(q, size)


def rae(true: Any, estimated: Any, *, size: Any) -> Errors:
    """Relative absolute error with the paper's smoothing.

    The mean over labels of ``(|p - q| / p + |p - q| / (1 - p)) / 2`` after both sides have been
    smoothed with ``eps = 1 / (2 size)``.

    Parameters
    ----------
    true, estimated : array, shape (n_samples, n_labels)
    size : int or array of int, shape (n_samples,)
        Number of items in each sample.

    Examples
    --------
    >>> rae([[0.5]], [[0.5]], size=100).tolist()
    [0.0]
    """
    p, q = _smooth_pair(true, estimated, size)
    gap = np.abs(p - q)
    return ((gap / p + gap / (1 - p)) / 2).mean(axis=1)


def nae(true: Any, estimated: Any) -> Errors:
    """Absolute error divided by its largest possible value for that truth; between 0 and 1.

    For a binary label the worst estimate of ``p`` is off by ``max(p, 1 - p)``.
    """
    p, q = _pair(true, estimated)
    return (np.abs(p - q) / np.maximum(p, 1 - p)).mean(axis=1)


def nrae(true: Any, estimated: Any, *, size: Any) -> Errors:
    """Relative absolute error divided by its largest possible value for that truth.

    Notes
    -----
    The worst estimate of a smoothed ``p`` is the far end of the smoothed range, so the value
    lies between 0 and 1.
    """
    p, q = _smooth_pair(true, estimated, size)
    low = smooth(np.zeros_like(p), size)
    worst = np.maximum(p - low, (1 - low) - p)
    # The factor (1/p + 1/(1-p))/2 is common to the error and its maximum.
    return (np.abs(p - q) / worst).mean(axis=1)


def kld(true: Any, estimated: Any, *, size: Any) -> Errors:
    """Kullback-Leibler divergence of the smoothed binary distributions; 0 or more.

    Notes
    -----
    Kept for comparison with older work; Sebastiani (2020) argues against it as a measure of
    quantification error.
    """
    p, q = _smooth_pair(true, estimated, size)
    return (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))).mean(axis=1)


def concordance(true: Any, estimated: Any) -> Errors:
    """Concordance ratio ``min(p, q) / max(p, q)`` of Levin and Roitman (2017).

    The only measure here whose larger values are better: 1 is perfect, also for two zeros.
    """
    p, q = _pair(true, estimated)
    largest = np.maximum(p, q)
    ratio = np.ones_like(largest)
    np.divide(np.minimum(p, q), largest, out=ratio, where=largest > 0)
    return ratio.mean(axis=1)


def shift(training: Any, true: Any) -> Errors:
    """How far each sample's prevalences have moved from the training ones, as absolute error.

    Parameters
    ----------
    training : array, shape (n_labels,)
    true : array, shape (n_samples, n_labels)
    """
    return ae(training, true)


def shift_bins(shifts: npt.ArrayLike, n_bins: int = 3) -> Ints:
    """Number each sample by the equal-width bin of [min, max] its shift falls into.

    With three bins these are the paper's low (0), mid (1) and high (2) shift.

    Notes
    -----
    Bins are closed below; the last one is closed above too. If all shifts are equal, all
    samples fall into bin 0.

    Examples
    --------
    >>> shift_bins([0.0, 0.1, 0.2, 0.3]).tolist()
    [0, 1, 2, 2]
    """
    values = np.asarray(shifts, dtype=np.float64)
    if values.size == 0:
        return np.empty(0, dtype=np.int64)
    edges = np.linspace(values.min(), values.max(), n_bins + 1)
    if edges[0] == edges[-1]:
        return np.zeros(values.shape, dtype=np.int64)
    return np.searchsorted(edges[1:-1], values, side="right").astype(np.int64)


def horizon_bins(horizons: npt.ArrayLike) -> Ints:
    """Number horizons by the classes of `HORIZON_NAMES`; each contains its upper end.

    Examples
    --------
    >>> horizon_bins([0.1, 0.25, 0.5, 1.5]).tolist()
    [0, 0, 1, 2]
    """
    return np.searchsorted(HORIZON_EDGES, np.asarray(horizons)).astype(np.int64)


def interval_measures(
    true: Any, point: Any, ends: tuple[Any, Any], band: tuple[Any, Any], *, level: float
) -> dict[str, Errors]:
    """How often intervals and bands hold, and how wide they are, per sample.

    Parameters
    ----------
    true, point : array, shape (n_samples, n_labels)
    ends, band : pairs of arrays, shape (n_samples, n_labels)
        Lower and upper ends, of intervals per label and of bands over all labels.
    level : float
        The level that they are meant to have.

    Returns
    -------
    dict of arrays, shape (n_samples,)
        ``coverage``, the share of labels whose interval holds; ``band_coverage``, 1 if the bands
        of all labels hold, else 0; ``width`` and ``band_width``, means over labels;
        ``needed_width``, the width if all intervals were stretched or shrunk about their points by
        the one factor with which a share of `level` of them hold (NaN if no factor does that).

    Examples
    --------
    >>> ends, band = ([[0.1, 0.1]], [[0.3, 0.3]]), ([[0.0, 0.0]], [[1.0, 1.0]])
    >>> measures = interval_measures([[0.2, 0.6]], [[0.2, 0.2]], ends, band, level=1.0)
    >>> {name: float(values[0].round(3)) for name, values in measures.items()}
    {'coverage': 0.5, 'width': 0.2, 'needed_width': 0.6, 'band_coverage': 1.0, 'band_width': 1.0}
    """
    p, q = _pair(true, point)
    (low, high), (band_low, band_high) = ends, band
    low, high, band_low, band_high = map(np.asarray, (low, high, band_low, band_high))
    return {
        "coverage": ((low <= p) & (p <= high)).mean(axis=1),
        "width": (high - low).mean(axis=1),
        "needed_width": _needed_width(p, q, q - low, high - q, level),
        "band_coverage": ((band_low <= p) & (p <= band_high)).all(axis=1).astype(np.float64),
        "band_width": (band_high - band_low).mean(axis=1),
    }


def _needed_width(p: Errors, q: Errors, below: Errors, above: Errors, level: float) -> Errors:
    """Widths of intervals whose ends are moved by one factor until enough of them hold."""
    gap = np.abs(p - q)
    half = np.where(p > q, above, below)
    factors = np.full_like(gap, np.inf)
    np.divide(gap, half, out=factors, where=half > 0)
    factors[gap == 0] = 0.0
    factor = np.quantile(factors, level, method="inverted_cdf")
    if not np.isfinite(factor):
        return np.full(len(p), np.nan)
    ends = np.clip(q + factor * above, 0, 1) - np.clip(q - factor * below, 0, 1)
    return np.asarray(ends.mean(axis=1))


#: Measures by name, called as ``measure(true, estimated, size)``; for tables and plans.
MEASURES: dict[str, Callable[[Any, Any, Any], Errors]] = {
    "ae": lambda p, q, _size: ae(p, q),
    "rae": lambda p, q, size: rae(p, q, size=size),
    "se": lambda p, q, _size: se(p, q),
    "nae": lambda p, q, _size: nae(p, q),
    "nrae": lambda p, q, size: nrae(p, q, size=size),
    "kld": lambda p, q, size: kld(p, q, size=size),
    "concordance": lambda p, q, _size: concordance(p, q),
}


def per_label(metric: str, true: Any, estimated: Any, size: Any) -> Errors:
    """A measure before its mean over labels, shape (n_samples, n_labels).

    Examples
    --------
    >>> per_label("ae", [[0.5, 0.25]], [[0.25, 0.25]], 100).tolist()
    [[0.25, 0.0]]
    """
    check_choice(metric, "metric", tuple(MEASURES))
    p, q = _pair(true, estimated)
    n_samples, n_labels = p.shape
    sizes = np.broadcast_to(np.asarray(size), (n_samples,))
    # Every label of every sample as a sample of its own with one label.
    flat = MEASURES[metric](p.reshape(-1, 1), q.reshape(-1, 1), np.repeat(sizes, n_labels))
    return flat.reshape(n_samples, n_labels)
