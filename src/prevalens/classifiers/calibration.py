"""Log-odds of scores, and the calibration of the scores of one labeller, label by label."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from prevalens.solvers.score_counts import ScoreCounts
from prevalens.types import Floats

#: Added to a score and to its complement before taking log-odds, so that 0 and 1 are finite.
_SMOOTHING = 0.01
#: Log-odds of a score of 1, by which those of all scores are divided.
_LARGEST = float(np.log((1 + _SMOOTHING) / _SMOOTHING))
#: Scores that pass through all steps of the calibration while they are in the cache.
_BLOCK = 2**14


def scaled_log_odds(X: Floats) -> Floats:
    """Log-odds of scores, from -1 for a score of 0 to 1 for a score of 1; NaN stays NaN."""
    odds = X + _SMOOTHING
    odds /= 1 + _SMOOTHING - X
    np.log(odds, out=odds)
    odds /= _LARGEST
    return odds


def calibrated_columns(scores: Floats, coefficients: Floats) -> Floats:
    """Posteriors of the scores of one labeller, which lie column by column.

    Parameters
    ----------
    scores : array of float, shape (n_items, n_labels)
        Between 0 and 1, or NaN.
    coefficients : array of float, shape (n_labels, 3)
        Constant, slope of the scaled log-odds, and that of a missing answer, of each label.
    """
    posteriors = np.empty(scores.shape, order="F")
    scratch = np.empty(min(len(scores), _BLOCK))
    for j, (own, out) in enumerate(zip(coefficients, posteriors.T, strict=True)):
        for start in range(0, len(scores), _BLOCK):
            part = slice(start, start + _BLOCK)
            _calibrate(scores[part, j], own, out[part], scratch)
    return posteriors


def calibrated_sums(scores: ScoreCounts, coefficients: Floats) -> tuple[Floats, Floats]:
    """Sums of the posteriors of scores and of their squares, shape (n_labels,) each.

    O(number of distinct scores), without the posteriors of the items.

    Parameters
    ----------
    scores : ScoreCounts
    coefficients : as in `calibrated_columns`
    """
    sums, squares = np.zeros((2, len(coefficients)))
    scratch, posteriors = np.empty((2, _BLOCK))
    for j, (own, column) in enumerate(zip(coefficients, scores.columns, strict=True)):
        for start in range(0, len(column.values), _BLOCK):
            block = slice(start, start + _BLOCK)
            part = posteriors[: len(column.values[block])]
            total = _calibrate(column.values[block], own, part, scratch)
            weighted = part if column.counts is None else column.counts[block] * part
            sums[j] += total if column.counts is None else weighted.sum()
            squares[j] += weighted @ part
    return sums, squares


def _calibrate(scores: Floats, coefficients: Floats, out: Floats, scratch: Floats) -> float:
    """Write the posteriors of some scores of a label, and return their sum.

    Of `scratch`, which is at least as long, the content is lost.
    """
    constant, slope, missing = coefficients.tolist()
    other = scratch[: len(scores)]
    np.add(scores, _SMOOTHING, out=out, dtype=np.float64)
    np.subtract(1 + _SMOOTHING, scores, out=other, dtype=np.float64)
    out /= other
    np.log(out, out=out)
    out *= -slope / _LARGEST
    out -= constant
    with np.errstate(over="ignore"):
        np.exp(out, out=out)
    out += 1.0
    np.reciprocal(out, out=out)
    total = float(out.sum())
    if np.isnan(total):
        out[np.isnan(out)] = expit(constant + missing)
        total = float(out.sum())
    return total
