"""The links of a chain of logistic regressions, solved together.

A link learns from the true labels before it, so that no link waits for another. All labels are
features of one solve, in which each link may use those before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from prevalens.classifiers.base import beside
from prevalens.classifiers.logistic import BatchedLogistic
from prevalens.classifiers.logistic_targets import for_all_labels
from prevalens.solvers.logistic import LogisticFit, fit_logistic
from prevalens.validation import Matrix

__all__ = ["solved_together", "train_links"]


def solved_together(estimator: Any) -> bool:
    """Whether an estimator is the batched logistic regression, with one setting for all labels."""
    return type(estimator) is BatchedLogistic and for_all_labels(
        estimator.C, estimator.class_weight
    )


def train_links(
    estimator: BatchedLogistic, X: Matrix, chained: npt.NDArray[np.int8], names: npt.NDArray[Any]
) -> list[BatchedLogistic]:
    """Train all links of a chain.

    Parameters
    ----------
    estimator : BatchedLogistic
    X : array or sparse matrix, shape (n_items, n_features)
    chained : array of int8, shape (n_items, n_links)
        Labels in the order of the chain.
    names : array, shape (n_links,)
        What a warning calls them.

    Returns
    -------
    list of fitted BatchedLogistic
        Link k has n_features + k features.
    """
    n_features, n_links = X.shape[1], chained.shape[1]
    before = np.tri(n_links, k=-1, dtype=bool)
    found = fit_logistic(
        beside(X, chained),
        chained,
        C=estimator.C,
        class_weight=estimator.class_weight,
        visible=np.hstack([np.ones((n_links, n_features), dtype=bool), before]),
        fit_intercept=estimator.fit_intercept,
        tol=estimator.tol,
        max_iter=estimator.max_iter,
    )
    return [
        clone(estimator).adopt(_part(found, link, n_features + link), names[[link]])
        for link in range(n_links)
    ]


def _part(found: LogisticFit, link: int, n_features: int) -> LogisticFit:
    """The solution of one link, without the features it may not use."""
    one = slice(link, link + 1)
    return LogisticFit(
        found.coef[one, :n_features],
        found.intercept[one],
        found.objective[one],
        found.n_iter[one],
        found.converged[one],
    )
