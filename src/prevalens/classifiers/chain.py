"""Classifier chains, and ensembles of them.

The links of a chain of logistic regressions are solved together: a link learns from the true
labels before it, so that no link waits for another. All labels are features of one solve, in which
each link may use those before it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import clone

from prevalens.classifiers.base import CompositeClassifier, append_columns
from prevalens.classifiers.logistic import BatchedLogistic, for_all_labels
from prevalens.response import response, train
from prevalens.scores import Kind
from prevalens.solvers.logistic import fit_logistic
from prevalens.types import LabelMatrix
from prevalens.validation import InputError, Matrix, check_int, check_rng


def solved_together(estimator: Any) -> bool:
    """Whether an estimator is the batched logistic regression, with one setting for all labels."""
    return type(estimator) is BatchedLogistic and for_all_labels(
        estimator.C, estimator.class_weight
    )


def train_links(
    estimator: BatchedLogistic, X: Matrix, chained: LabelMatrix, names: npt.NDArray[Any]
) -> list[BatchedLogistic]:
    """Train all links of a chain.

    Parameters
    ----------
    estimator : BatchedLogistic
    X : array or sparse matrix, shape (n_items, n_features)
    chained : array of int8, shape (n_items, n_links)
        Labels in the order of the chain.
    names : array, shape (n_links,)
        Names of the labels in warnings.

    Returns
    -------
    list of fitted BatchedLogistic
        Link k has n_features + k features.
    """
    n_features, n_links = X.shape[1], chained.shape[1]
    before = np.tri(n_links, k=-1, dtype=bool)
    fit = fit_logistic(
        append_columns(X, chained),
        chained,
        visible=np.hstack([np.ones((n_links, n_features), dtype=bool), before]),
        **estimator.get_params(),
    )
    links = []
    for link in range(n_links):
        alone = fit[link : link + 1]
        # Without the coefficients of the labels that the link may not use.
        alone = replace(alone, coef=alone.coef[:, : n_features + link])
        links.append(clone(estimator).set_solution(alone, names[[link]]))
    return links


class Chain(CompositeClassifier):
    """One classifier per label, with the labels before it in the chain as further features.

    It is trained on the true labels; for new items it uses its own votes in their place.

    Parameters
    ----------
    estimator : classifier of one label, optional
        Default: logistic regression with C = 1.
    order : "random" or sequence of int, optional
        The chain as positions of labels; default their order in Y.
    n_jobs : int, optional
        Labels trained at the same time; the default estimator trains all in one solve anyway.
    random_state : int or None
        Of a random order.

    Attributes
    ----------
    order_ : array of int, shape (n_labels,)
    classifiers_ : list of fitted classifiers
        In the order of the chain.

    Notes
    -----
    One training per label on n_features + up to n_labels - 1 features. A wrong vote early in the
    chain misleads all labels after it, the more so the longer the chain.

    References
    ----------
    Read et al., "Classifier chains for multi-label classification", Machine Learning 85(3), 2011.

    Examples
    --------
    >>> X, Y = [[0.0], [0.1], [1.0], [1.1]], [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> Chain(order=[1, 0]).fit(X, Y).predict([[0.0], [1.0]]).tolist()
    [[0, 1], [1, 0]]
    """

    code = "chain"

    def __init__(
        self,
        estimator: Any = None,
        order: Any = None,
        *,
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.estimator = estimator
        self.order = order
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Matrix, Y: LabelMatrix) -> None:
        self.order_ = self._positions(Y.shape[1])
        estimator = BatchedLogistic() if self.estimator is None else self.estimator
        chained = Y[:, self.order_]
        if solved_together(estimator):
            self.classifiers_ = train_links(estimator, X, chained, self.order_)
            return
        self.classifiers_ = Parallel(n_jobs=self.n_jobs)(
            delayed(train)(estimator, append_columns(X, chained[:, :link]), chained[:, [link]])
            for link in range(Y.shape[1])
        )

    def _positions(self, n_labels: int) -> npt.NDArray[np.intp]:
        if self.order is None:
            return np.arange(n_labels)
        if isinstance(self.order, str) and self.order == "random":
            return check_rng(self.random_state).permutation(n_labels)
        order = np.asarray(self.order)
        if order.ndim != 1 or not np.array_equal(np.sort(order), np.arange(n_labels)):
            raise InputError(
                f"order must be 'random' or name each of the {n_labels} labels once by its "
                f"position; got {self.order!r}."
            )
        return order

    def respond(self, X: Matrix, kind: Kind) -> npt.NDArray[Any]:
        """Votes or posteriors of checked items, shape (n_items, n_labels)."""
        scores = np.empty((X.shape[0], self.n_labels_))
        votes = np.zeros((X.shape[0], self.n_labels_))
        for link, (label, classifier) in enumerate(
            zip(self.order_, self.classifiers_, strict=True)
        ):
            inputs = append_columns(X, votes[:, :link])
            votes[:, link] = response(classifier, inputs, "votes", 1).values[:, 0]
            scores[:, label] = votes[:, link]
            if kind == "posteriors":
                scores[:, label] = response(classifier, inputs, kind, 1).values[:, 0]
        return scores


class ChainEnsemble(CompositeClassifier):
    """Chains in different random orders, averaged.

    Parameters
    ----------
    estimator : classifier of one label, optional
        Default: logistic regression with C = 1.
    n_chains : int
    n_jobs : int, optional
        Chains trained at the same time.
    random_state : int or None
        Of the orders.

    Attributes
    ----------
    chains_ : list of fitted Chain

    Notes
    -----
    `n_chains` times the cost of a `Chain`. Posteriors are the mean of the chains', votes their
    majority; an even split is a vote against.

    References
    ----------
    Read et al., "Classifier chains for multi-label classification", Machine Learning 85(3), 2011.

    Examples
    --------
    >>> X, Y = [[0.0], [0.1], [1.0], [1.1]], [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> ChainEnsemble(n_chains=3, random_state=0).fit(X, Y).predict([[0.0], [1.0]]).tolist()
    [[0, 1], [1, 0]]
    """

    code = "chains"

    def __init__(
        self,
        estimator: Any = None,
        n_chains: int = 10,
        *,
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.estimator = estimator
        self.n_chains = n_chains
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Matrix, Y: LabelMatrix) -> None:
        n_chains = check_int(self.n_chains, "n_chains", minimum=1)
        rng = check_rng(self.random_state)
        orders = [rng.permutation(Y.shape[1]) for _ in range(n_chains)]
        self.chains_ = Parallel(n_jobs=self.n_jobs)(
            delayed(Chain(self.estimator, order).fit)(X, Y) for order in orders
        )

    def respond(self, X: Matrix, kind: Kind) -> npt.NDArray[Any]:
        """Votes or posteriors of checked items, shape (n_items, n_labels)."""
        mean = np.mean([chain.respond(X, kind) for chain in self.chains_], axis=0)
        return np.asarray(mean > 0.5) if kind == "votes" else mean
