"""Say so when a sample looks unlike anything the training data can explain."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.validation import PrevalensWarning

__all__ = ["MISFIT", "warn_of_misfit"]

#: A sample whose goodness of fit has a smaller p-value than this is warned of.
MISFIT = 0.01
#: Samples that a warning names at most.
_NAMED = 5


def warn_of_misfit(p_value: npt.NDArray[np.float64], names: Sequence[Any] | None) -> None:
    """Warn once, naming the samples that no mix of training items explains.

    Parameters
    ----------
    p_value : array of float, shape (n_samples,)
    names : sequence, optional
        One per sample; None if there is a single batch without a name.
    """
    bad = np.flatnonzero(p_value < MISFIT)
    if len(bad) == 0:
        return
    lowest = p_value[bad].min()
    warnings.warn(
        f"{_subject(bad, names)} unlike anything the training data can explain (goodness of fit "
        f"p = {lowest:.2g}): labels may look different there than in training, or keep other "
        "company; take the estimates with care.",
        PrevalensWarning,
        stacklevel=4,
    )


def _subject(bad: npt.NDArray[Any], names: Sequence[Any] | None) -> str:
    if names is None:
        return "The batch looks"
    shown = ", ".join(repr(names[i]) for i in bad[:_NAMED])
    if len(bad) == 1:
        return f"Sample {shown} looks"
    more = f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
    return f"Samples {shown}{more} look"
