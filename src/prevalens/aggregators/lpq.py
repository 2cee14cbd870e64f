"""LPQ: quantification over label powersets, which uses the co-occurrence of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from prevalens.aggregators.base import Aggregator
from prevalens.aggregators.external import QuapyPerLabel, QuapyStates, as_aggregator
from prevalens.aggregators.multiclass import StateQuantifier, multiclass
from prevalens.batches import Columns, fingerprint_of
from prevalens.crossfit import CrossFit, Division
from prevalens.labelsets import Groups, KMeansClusters, Labelsets, check_clusters, powerset
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.solvers.multinomial import MultinomialLogistic
from prevalens.types import Array, Floats, Ints, Items, LabelMatrix
from prevalens.validation import InputError, check_int, check_rng, count_items, take_items

_States = npt.NDArray[np.intp]


class LPQ(Aggregator):
    """Label-powerset quantification: shares of label combinations, summed for each label.

    Labels are divided into clusters. In each, the combinations of its labels that occur in
    training (label states) are the classes of one single-label problem; a multiclass quantifier
    estimates their shares, and a label's prevalence is the sum over the states that contain it.

    Parameters
    ----------
    base : Aggregator, StateQuantifier, or any quantifier, optional
        The multiclass quantifier: ``CC()``, ``PCC()`` (the default), ``ACC()``, ``PACC()``,
        ``SLD()`` or ``KDEyML()``, in their versions over states; a quantifier of QuaPy (with
        `QuapyPerLabel` also by name); any other aggregator, or any object with ``fit(X, Y)`` and
        ``quantify(X)``, to which each state is a label.
    clusterer : Labelsets or list of lists of label positions, optional
        ``KMeansClusters()`` (default), ``BalancedClusters()`` or ``RandomClusters()``.
    classifier : single-label classifier, optional
        One is trained per cluster, with the states for classes. Default: multinomial logistic
        regression. Not used by a base that reads the items themselves.
    n_folds : int
        Number of folds of the out-of-fold scores, for a base that learns from scores.
    n_jobs : int, optional
        Number of clusters fitted at the same time.
    random_state : int
        Seed of the clusters and folds.

    Attributes
    ----------
    clusters_ : list of int arrays
        The labels of each cluster.
    states_ : list of 0/1 arrays, each of shape (n_states, n_labels of the cluster)
        The combinations of each cluster: the paper's assignment matrix A.

    Notes
    -----
    One multiclass training per cluster, `n_folds` more where the base learns (ACC, PACC), then
    what the base costs. A state that does not occur in training has no share in any sample, and
    with large clusters nearly every item has a state of its own. Ignores relations between labels
    of different clusters.

    References
    ----------
    Moreo, Francisco and Sebastiani, "Multi-label quantification", ACM Transactions on Knowledge
    Discovery from Data 18, 2023.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> Y = (X + 0.1 * rng.normal(size=(300, 2)) > 0).astype(int)
    >>> items = Scores(X, kind="features")
    >>> lpq = LPQ(clusterer=[[0, 1]]).fit(items, Y)
    >>> lpq.states_[0].tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> lpq.aggregate(items, Samples.from_indices([np.flatnonzero(Y[:, 0])], n_items=300)).round(1)
    array([[0.9, 0.5]])
    """

    code = "lpq"
    consumes: Kind = "features"
    joint = True

    def __init__(
        self,
        base: Any = None,
        clusterer: Any = None,
        *,
        classifier: Any = None,
        n_folds: int = 5,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.base = base
        self.clusterer = clusterer
        self.classifier = classifier
        self.n_folds = n_folds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def with_classifier(self, classifier: Any) -> LPQ:
        """A copy that uses this single-label classifier."""
        return clone(self).set_params(classifier=classifier)

    def _fit_grouped(self, scores: Scores, Y: LabelMatrix, groups: Array | None) -> None:
        check_int(self.n_folds, "n_folds", minimum=2)
        inner = self._inner()
        self.clusters_ = self._clusters(Y)
        parts = [powerset(Y[:, labels]) for labels in self.clusters_]
        self.states_ = [states for states, _ in parts]
        self._quantifiers: list[_Inner] = Parallel(n_jobs=self.n_jobs)(
            delayed(self._fit_cluster)(inner, scores.values, state_of, groups)
            for _, state_of in parts
        )
        self._fingerprint = fingerprint_of([self.clusters_, self.states_, self._quantifiers])

    def _clusters(self, Y: LabelMatrix) -> Groups:
        clusterer = KMeansClusters() if self.clusterer is None else self.clusterer
        if isinstance(clusterer, Labelsets):
            clusterer = clusterer.groups(Y, check_rng(self.random_state))
        return check_clusters(clusterer, Y.shape[1])

    def _inner(self) -> StateQuantifier:
        """The quantifier of each cluster, unfitted."""
        if isinstance(self.base, StateQuantifier):
            return self.base
        base = as_aggregator(self.base)
        if isinstance(base, QuapyPerLabel):
            if self.classifier is not None and base.classifier is None:
                base = base.with_classifier(self.classifier)
            return QuapyStates(base)
        return multiclass(base)

    def _fit_cluster(
        self, inner: StateQuantifier, X: Items, state_of: _States, groups: Array | None
    ) -> _Inner:
        n_states = int(state_of.max()) + 1
        if n_states == 1:
            return _Inner(None, None, 1)
        if inner.consumes == "features":
            return _Inner(clone(inner).fit(X, state_of, n_states), None, n_states)
        template = MultinomialLogistic() if self.classifier is None else self.classifier
        held_out = None
        if inner.needs_labelled_scores:
            held_out = np.empty((len(state_of), n_states))
            for rest, held in self._divide(np.eye(n_states, dtype=np.int8)[state_of], groups):
                classifier = _train(template, take_items(X, rest), state_of[rest])
                X_held = take_items(X, held)
                held_out[held] = _state_scores(classifier, X_held, n_states, inner.consumes)
        quantifier = clone(inner).fit(held_out, state_of, n_states)
        return _Inner(quantifier, _train(template, X, state_of), n_states)

    def _divide(self, members: LabelMatrix, groups: Array | None) -> list[Division]:
        """Rows to train on and rows to score, for `n_folds` folds or as many as there are items."""
        n_units = len(members) if groups is None else len(np.unique(groups))
        scheme = CrossFit(min(self.n_folds, n_units), random_state=self.random_state)
        return scheme.divide(members, groups)

    @property
    def statistic(self) -> Columns | None:
        """The scores of all states, if the base reads their means."""
        if not all(inner.reads_means for inner in self._quantifiers):
            return None
        return Columns(f"states {self._fingerprint}", self._all_scores)

    def _all_scores(self, scores: Scores) -> Floats:
        parts = [inner.scores(scores.values) for inner in self._quantifiers if inner.quantifier]
        return np.hstack([np.empty((scores.n_items, 0)), *parts])

    def _from_means(self, means: Floats, sizes: Ints) -> Floats:
        estimates, start = np.empty((len(sizes), self.n_labels_)), 0
        for labels, states, inner in zip(
            self.clusters_, self.states_, self._quantifiers, strict=True
        ):
            shares = np.ones((len(sizes), 1))
            if inner.quantifier is not None:
                shares = inner.quantifier.from_means(means[:, start : start + inner.n_states])
                start += inner.n_states
            estimates[:, labels] = shares @ states
        return estimates

    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:
        estimates = np.empty((len(samples), self.n_labels_))
        parts = zip(self.clusters_, self.states_, self._quantifiers, strict=True)
        for labels, states, quantifier in parts:
            estimates[:, labels] = quantifier.shares(scores.values, samples) @ states
        return estimates


@dataclass(frozen=True)
class _Inner:
    """The fitted quantifier of one cluster, and its classifier if it has one."""

    quantifier: StateQuantifier | None
    classifier: Any
    n_states: int

    @property
    def reads_means(self) -> bool:
        """Whether the mean scores of the states are all that it reads."""
        return self.quantifier is None or self.quantifier.reads_means

    def scores(self, X: Any) -> Any:
        """What the quantifier reads of items: the scores of the states, or the items."""
        if self.quantifier is None or self.classifier is None:
            return X
        return _state_scores(self.classifier, X, self.n_states, self.quantifier.consumes)

    def shares(self, X: Any, samples: Samples) -> Floats:
        """Shares of the states, shape (n_samples, n_states)."""
        if self.quantifier is None or len(samples) == 0:
            return np.ones((len(samples), self.n_states)) / self.n_states
        return self.quantifier.estimate(self.scores(X), samples)


def _train(template: Any, X: Any, state_of: _States) -> Any:
    """Return a fitted classifier; a constant one if there is only one state."""
    alone = state_of.min() == state_of.max()
    classifier = DummyClassifier(strategy="prior") if alone else clone(template)
    return classifier.fit(X, state_of)


def _state_scores(classifier: Any, X: Any, n_states: int, kind: Kind) -> Floats:
    """Votes or posteriors with a column for every state, including unseen ones."""
    if kind == "votes":
        return np.eye(n_states)[classifier.predict(X)]
    if not hasattr(classifier, "predict_proba"):
        raise InputError(
            f"The base of LPQ needs posteriors; {type(classifier).__name__} offers only votes. Use "
            "LPQ(ACC()), or wrap it in CalibratedClassifierCV."
        )
    scores = np.zeros((count_items(X), n_states))
    scores[:, classifier.classes_] = classifier.predict_proba(X)
    return scores
