"""What the logistic solvers accept besides items and labels: strengths, weights, stopping."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.validation import InputError, check_fraction, check_int

__all__ = ["check_sample_weight", "check_stopping", "check_strengths"]


def check_strengths(C: Any, n: int) -> npt.NDArray[np.float64]:
    """Return C as `n` positive numbers; a single one is repeated."""
    values = np.asarray(C, dtype=np.float64)
    if values.ndim > 1 or (values.ndim == 1 and len(values) != n):
        raise InputError(f"C must be one number or {n} of them; its shape is {values.shape}.")
    bad = ~(values > 0) | np.isinf(values)
    if bad.any():
        raise InputError(f"C must be positive and finite; got {values[bad].flat[0]}.")
    return np.broadcast_to(values, (n,))


def check_stopping(tol: float, max_iter: int) -> tuple[float, int]:
    """Return the tolerance and the number of steps, or say what is wrong with them."""
    return check_fraction(tol, "tol"), check_int(max_iter, "max_iter", minimum=1)


def check_sample_weight(sample_weight: Any, n_items: int) -> npt.NDArray[np.float64] | None:
    """Return weights of items as float64, or None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_items,):
        raise InputError(
            f"sample_weight must have one number per item ({n_items}); its shape is "
            f"{weights.shape}."
        )
    if not np.all(weights >= 0) or not np.any(weights > 0) or not np.all(np.isfinite(weights)):
        raise InputError("sample_weight must be finite, not negative, and not zero everywhere.")
    return weights
