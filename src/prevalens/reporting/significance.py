"""Daggers: which methods are not significantly worse than the best one of their row.

As in Moreo et al., by a Wilcoxon signed-rank test on the errors of the same samples:

- no mark: p-value below .001, significantly different from the best;
- dagger: p-value above .001 and below .05;
- double dagger: p-value .05 or more.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import wilcoxon

from prevalens.reporting.table import Mark
from prevalens.validation import FloatArray

__all__ = ["DAGGER_BELOW", "WORSE_BELOW", "Part", "mark", "p_value", "pair"]

#: Below this p-value a method counts as different from the best, without doubt.
WORSE_BELOW = 0.001
#: Below this one it still does, at the lower confidence.
DAGGER_BELOW = 0.05

# Shifts are a function of the samples, so equal shifts mean equal samples; a store may have
# rounded them to single precision.
_SAME_SHIFT = 1e-6


@dataclass(frozen=True)
class Part:
    """Errors of a method on some samples of one seed, and the samples' shifts."""

    shift: FloatArray
    errors: FloatArray


def p_value(best: FloatArray, other: FloatArray) -> float:
    """Two-sided p-value of the Wilcoxon signed-rank test on paired errors.

    Parameters
    ----------
    best, other : array of float, shape (n_samples,)
        Errors on the same samples, in the same order.

    Notes
    -----
    Errors that are equal throughout have the p-value 1; there the test itself is not defined.

    Examples
    --------
    >>> import numpy as np
    >>> errors = np.linspace(0.01, 0.1, 40)
    >>> p_value(errors, errors)
    1.0
    >>> p_value(errors, errors + 0.01) < 0.001
    True
    """
    difference = np.asarray(best, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    if not difference.any():
        return 1.0
    with warnings.catch_warnings():
        # With a handful of samples and ties there is only the normal approximation.
        warnings.filterwarnings("ignore", "Sample size too small", UserWarning)
        return float(wilcoxon(difference).pvalue)


def mark(p: float | None) -> Mark:
    """The mark of a p-value against the best; None stands for no test.

    Examples
    --------
    >>> mark(0.0004), mark(0.02), mark(0.3), mark(None)
    ('', 'dagger', 'ddagger', 'untested')
    """
    if p is None:
        return "untested"
    if p <= WORSE_BELOW:
        return ""
    return "dagger" if p < DAGGER_BELOW else "ddagger"


def pair(
    best: Mapping[Hashable, Part], other: Mapping[Hashable, Part]
) -> tuple[FloatArray, FloatArray] | None:
    """Errors of two methods on the same samples, seeds one after the other.

    None if they have no seed in common, or if the samples of a common seed are not the same.
    """
    common = [key for key in best if key in other]
    if not common or not all(_same_samples(best[key], other[key]) for key in common):
        return None
    left = np.concatenate([best[key].errors for key in common])
    right = np.concatenate([other[key].errors for key in common])
    return left, right


def _same_samples(left: Part, right: Part) -> bool:
    if left.shift.shape != right.shift.shape:
        return False
    return bool(np.allclose(left.shift, right.shift, rtol=0.0, atol=_SAME_SHIFT))
