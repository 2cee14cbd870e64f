"""What both SLD engines share: the form of the problem, the bounds, and when to stop.

With ``r`` an item's likelihood ratio, positive against negative, the log-likelihood of a
sample's prevalence q is ``sum log(1 + q (r - 1))``. It is concave, and its slope is
``sum 1 / (q + c)`` with one pole ``c = 1 / (r - 1)`` per item: at least 0 for evidence in
favour of the label, at most -1 for evidence against it, infinite for none. A pass over the
items costs one division each. One EM step leads to ``q + q (1 - q) slope / size``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["EM_ROUNDS", "HIGHEST", "LOWEST", "Rule", "poles"]

#: Prevalences are kept inside these while they move, away from poles at exactly 0 and 1.
LOWEST = 1e-100
HIGHEST = float(np.nextafter(1.0, 0.0))
#: EM never stops before this many rounds, as in QuaPy.
EM_ROUNDS = 12
#: Likelihoods that agree to this relative difference say nothing: it is rounding, and many
#: equal items would add it up to an answer.
_ROUNDING = 1e-12


class Rule(NamedTuple):
    """How to move, and when to stop: by EM or by the exact solver, at a move below `tol`."""

    exact: bool
    tol: float
    max_iter: int


def poles(posteriors: npt.NDArray[Any], prior: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Turn posteriors under `prior` into poles.

    Parameters
    ----------
    posteriors : array, shape (n_labels, n_items)
    prior : array of float64, shape (n_labels,)
        Strictly between 0 and 1.

    Returns
    -------
    array of float64, shape (n_labels, n_items)
        ``b / (a - b)`` with ``a = posterior / prior`` and ``b`` the same of the negatives.
    """
    share = prior[:, np.newaxis]
    against = (1.0 - posteriors) / (1.0 - share)
    gap = posteriors / share
    gap -= against
    found = np.full(gap.shape, np.inf)
    np.divide(against, gap, out=found, where=np.abs(gap) > _ROUNDING * against)
    return found
