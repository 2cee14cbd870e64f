"""Quantifier: the join of a classifier and an aggregator.

The only place that knows both halves. Named methods are pairs: ``Quantifier(PerLabel(), CC())`` is
``lr+cc`` of group BC+BA, ``Quantifier(Stacked(), RQ())`` is ``stack+rq`` of group MLC+MLA.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Self

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from prevalens.aggregators import Aggregator, ScenarioMixture
from prevalens.classifiers import CrossFit, PerLabel
from prevalens.collection import label_matrix
from prevalens.estimate import Intervals, PrevalenceEstimate
from prevalens.expression import Call, Method, expression_of, to_text
from prevalens.response import is_joint, offers, response, train
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.selection.automatic import Choice, choose
from prevalens.types import Floats, LabelMatrix
from prevalens.uncertainty import Bootstrap, plain_intervals, warn_of_misfit, with_labels
from prevalens.validation import (
    InputError,
    check_fraction,
    check_items,
    check_same_length,
    count_items,
)

__all__ = ["Quantifier"]

_Tell = Callable[[str], None]


class _Learnt(NamedTuple):
    """What a fit finds."""

    classifier: Any
    aggregator: Aggregator
    uncertainty: Any = None
    choice: Choice | None = None


class Quantifier(BaseEstimator):  # type: ignore[misc]
    """Estimate how frequent each label is in a batch of items.

    Parameters
    ----------
    classifier : estimator, optional
        Anything with ``fit(X, Y)`` and a multi-label response: a classifier of this package
        or of scikit-learn, a pipeline, or a fitted one inside ``FrozenEstimator``. Default:
        one logistic regression per label. None if the aggregator reads the items themselves.
    aggregator : Aggregator, optional
        How the scores of items become prevalences. Default: the scenario mixture. With neither
        classifier nor aggregator, both are chosen by rehearsed quantification loss.
    scheme : CrossFit or HoldOut, optional
        How labelled scores for the aggregator arise. Default: out-of-fold scores of five
        folds, then the classifier is fitted again on all items.
    uncertainty : Bootstrap, optional
        Prepares calibrated intervals while fitting (see `prevalens.uncertainty`), for aggregators
        that have none of their own; the automatic choice does so by itself. Without it,
        ``quantify(X, interval=0.9)`` knows only the noise of the items, too little under shift.
    time_budget : float
        Seconds that the automatic choice may plan with.

    Attributes
    ----------
    choice_ : Choice
        Of the automatic choice: all candidates with their losses.
    classifier_ : fitted classifier, or None
    aggregator_ : fitted aggregator
    labels_ : tuple of str
    prevalence_ : array of float, shape (n_labels,)
        Prevalences in the training items.

    Notes
    -----
    Assumes that the batch differs from the training data in its label mix, and that items with
    the same labels look alike in both. If the look of a label changes too, every method here
    is off.

    Examples
    --------
    >>> from prevalens.aggregators import PCC
    >>> from prevalens.classifiers import PerLabel
    >>> from prevalens.datasets import synthetic
    >>> data = synthetic(n_train=300, n_test=200, n_labels=4, seed=0)
    >>> quantifier = Quantifier(PerLabel(), PCC()).fit(data.train.X, data.train.Y)
    >>> quantifier.quantify(data.test.X).shape
    (4,)
    >>> quantifier.name, quantifier.group
    ('lr+pcc', 'BC+BA')
    """

    def __init__(
        self,
        classifier: Any = None,
        aggregator: Any = None,
        *,
        scheme: Any = None,
        uncertainty: Any = None,
        time_budget: float = 600.0,
    ):
        self.classifier = classifier
        self.aggregator = aggregator
        self.scheme = scheme
        self.uncertainty = uncertainty
        self.time_budget = time_budget

    def fit(
        self, X: Any, Y: Any, *, labels: Any = None, progress: Callable[[str], None] | None = None
    ) -> Self:
        """Learn from labelled items.

        Parameters
        ----------
        X : array, sparse matrix, data frame or texts, one row per item
        Y : 0/1 matrix, data frame or list of label sets, one row per item
        labels : sequence of str, optional
            Names of the labels; taken from Y if left out.
        progress : callable, optional
            Told in a few words what comes next. What it raises ends the fit and leaves the
            quantifier as it was.
        """
        # Halves that do not fit are refused before the items are looked at.
        self.halves()
        X = check_items(X)
        Y, names = label_matrix(Y, labels)
        check_same_length(count_items(X), "X", Y.shape[0], "Y")
        found = self._learn(X, Y, progress or (lambda _: None))
        # Remembered at the end and together: a fit that was stopped leaves no half of itself.
        self.labels_, self.n_labels_ = names, len(names)
        self.prevalence_ = Y.mean(axis=0, dtype=np.float64)
        self.classifier_, self.aggregator_ = found.classifier, found.aggregator
        self.uncertainty_ = found.uncertainty
        self.__dict__.pop("choice_", None)
        if found.choice is not None:
            self.choice_ = found.choice
        return self

    @property
    def is_automatic(self) -> bool:
        """Whether classifier and aggregator are left to the quantifier itself."""
        return self.classifier is None and self.aggregator is None

    def _learn(self, X: Any, Y: LabelMatrix, tell: _Tell) -> _Learnt:
        if self.is_automatic:
            return self._learn_automatically(X, Y, tell)
        classifier, aggregator = self.halves()
        aggregator = clone(aggregator)
        if classifier is None:
            return self._learn_second(None, aggregator, Scores(X, "features"), Y, tell)
        tell("training the classifier")
        kind: Kind = aggregator.consumes
        if aggregator.needs_labelled_scores or self._calibration(aggregator) is not None:
            labelled = self.scheme_or_default().fit(classifier, X, Y, kind)
            seen = labelled.scores, Y[labelled.rows], tell, labelled.folds
            return self._learn_second(labelled.classifier, aggregator, *seen)
        # Counting looks only at the number of labels; Y itself has the right form.
        return _Learnt(train(classifier, X, Y), aggregator.fit(Scores(Y, kind), Y))

    def _learn_automatically(self, X: Any, Y: LabelMatrix, tell: _Tell) -> _Learnt:
        seed = getattr(self.scheme, "seed", 0)
        choice = choose(X, Y, time_budget=self.time_budget, seed=seed, progress=tell)
        aggregator = choice.aggregator
        prepared = self._prepared(aggregator, choice.scores, Y, choice.folds, tell)
        kept = replace(choice, scores=None, folds=None)
        return _Learnt(choice.classifier, aggregator, prepared, kept)

    def _learn_second(
        self,
        classifier: Any,
        aggregator: Aggregator,
        scores: Scores,
        Y: LabelMatrix,
        tell: _Tell,
        folds: Any = None,
    ) -> _Learnt:
        tell("fitting the aggregator")
        aggregator.fit(scores, Y)
        return _Learnt(classifier, aggregator, self._prepared(aggregator, scores, Y, folds, tell))

    def _prepared(
        self, aggregator: Aggregator, scores: Any, Y: LabelMatrix, folds: Any, tell: _Tell
    ) -> Any:
        """What calibrated intervals need; None where they are not prepared."""
        uncertainty = self._calibration(aggregator)
        if uncertainty is None:
            return None
        tell("preparing intervals")
        return clone(uncertainty).fit(aggregator, scores, Y, folds=folds)

    def _calibration(self, aggregator: Aggregator) -> Any:
        """What prepares intervals; None where the aggregator makes its own, or none are wanted."""
        if aggregator.has_intervals:
            return None
        # Whoever leaves the choice of the method to us leaves that of the intervals, too.
        if self.is_automatic and self.uncertainty is None and aggregator.consumes == "posteriors":
            return Bootstrap()
        return self.uncertainty

    def scheme_or_default(self) -> Any:
        """The scheme, or five-fold cross-fitting."""
        return CrossFit() if self.scheme is None else self.scheme

    def halves(self) -> tuple[Any, Aggregator]:
        """Classifier (None if not needed) and aggregator with defaults filled in, and checked."""
        aggregator = ScenarioMixture() if self.aggregator is None else self.aggregator
        if not isinstance(aggregator, Aggregator):
            raise InputError(
                f"The aggregator must be an Aggregator such as PCC(); got {aggregator!r}. "
                "A classifier comes first: Quantifier(classifier, aggregator)."
            )
        classifier = self.classifier
        if aggregator.consumes == "features":
            return None, _adopt(aggregator, classifier)
        classifier = PerLabel() if classifier is None else classifier
        _check_halves(classifier, aggregator)
        return classifier, aggregator

    @property
    def expression(self) -> Method:
        """The method as a tree: which classifier, which aggregator, which scheme."""
        if self.is_automatic:
            return _automatic(self.time_budget)
        aggregator = ScenarioMixture() if self.aggregator is None else self.aggregator
        classifier = self.classifier
        if classifier is None and aggregator.consumes != "features":
            classifier = PerLabel()
        return Method(
            aggregator=expression_of(aggregator),
            classifier=None if classifier is None else expression_of(classifier),
            scheme=None if self.scheme is None else expression_of(self.scheme),
        )

    @property
    def name(self) -> str:
        """The method in the words of the catalogue, such as ``lr+pcc``."""
        return to_text(self.expression)

    @property
    def group(self) -> str:
        """BC or MLC (does the classifier see labels together?) + BA or MLA (the aggregator?).

        A quantifier that needs no classifier has only the second half. The automatic one may
        turn out to be any, and counts as the widest.
        """
        if self.is_automatic:
            return "MLC+MLA"
        aggregator = ScenarioMixture() if self.aggregator is None else self.aggregator
        second = "MLA" if aggregator.joint else "BA"
        classifier = self.classifier
        if classifier is None and aggregator.consumes == "features":
            return second
        first = "MLC" if classifier is not None and is_joint(classifier) else "BC"
        return f"{first}+{second}"

    def score(self, X: Any) -> Scores:
        """The scores of items as the aggregator reads them; the costly half, done once."""
        check_is_fitted(self, "aggregator_")
        X = check_items(X)
        if self.classifier_ is None:
            return Scores(X, "features")
        return response(self.classifier_, X, self.aggregator_.consumes, self.n_labels_)

    def quantify(
        self, X: Any, *, interval: float | None = None, labelled: Any = None
    ) -> PrevalenceEstimate:
        """Estimate the prevalence of each label in one batch.

        Parameters
        ----------
        X : array, sparse matrix, data frame or texts, one row per item
        interval : float, optional
            A level such as 0.9 adds intervals per label, bands over all labels and, where the
            aggregator has one, a goodness of fit.
        labelled : pair of (rows, Y_rows), optional
            Row numbers of some items of the batch, drawn uniformly at random, and their labels;
            the estimate then combines both (see `prevalens.uncertainty.with_labels`), with
            intervals of level `interval` or 0.9.

        Returns
        -------
        PrevalenceEstimate, shape (n_labels,)
        """
        interval = 0.9 if labelled is not None and interval is None else interval
        scores = self.score(X)
        samples = Samples.whole(scores.n_items)
        point = self.aggregator_.aggregate(scores, samples)
        fields = self.interval_fields(scores, samples, interval, None)
        estimate = PrevalenceEstimate(
            point[0], self.labels_, level=interval, **{name: f[0] for name, f in fields.items()}
        )
        if labelled is None:
            return estimate
        per_label = scores.kind != "features" and scores.states is None
        values = scores.values if per_label else np.zeros((scores.n_items, self.n_labels_))
        return with_labels(estimate, values, labelled)

    def quantify_many(
        self, X: Any, groups: Any, *, interval: float | None = None
    ) -> PrevalenceEstimate:
        """Estimate the prevalence of each label in many batches; every item is scored once.

        Parameters
        ----------
        X : array, sparse matrix, data frame or texts, one row per item
        groups : Samples, or array of shape (n_items,)
            The batches: bags of row numbers, or for each item the name of its batch.
        interval : float, optional
            As in `quantify`.

        Returns
        -------
        PrevalenceEstimate, shape (n_batches, n_labels)
            In the order of the samples, or of the sorted names.
        """
        scores = self.score(X)
        if isinstance(groups, Samples):
            samples, index = groups, list(range(len(groups)))
        else:
            samples, names = Samples.by_group(_values(groups))
            index = names.tolist()
            check_same_length(scores.n_items, "X", samples.n_items, "groups")
        point = self.aggregator_.aggregate(scores, samples)
        fields = self.interval_fields(scores, samples, interval, index)
        return PrevalenceEstimate(point, self.labels_, index=index, level=interval, **fields)

    def interval_fields(
        self, scores: Scores, samples: Samples, level: float | None, names: list[Any] | None
    ) -> dict[str, Floats]:
        """Intervals of the aggregator's own making, else of the bootstrap, by their names."""
        if level is None:
            return {}
        level = check_fraction(level, "interval")
        found: Intervals | None = None
        if self.aggregator_.has_intervals:
            found = self.aggregator_.estimate(scores, samples, level)[1]
        elif getattr(self, "uncertainty_", None) is not None:
            found = self.uncertainty_.intervals(self.aggregator_, scores, samples, level)
        else:
            found = plain_intervals(self.aggregator_, scores, samples, level)
        if found is not None and found.p_value is not None:
            warn_of_misfit(found.p_value, names)
        return {name: value for name, value in vars(found).items() if value is not None}


def _automatic(time_budget: float) -> Method:
    default = inspect.signature(Quantifier.__init__).parameters["time_budget"].default
    given = {} if time_budget == default else {"time_budget": time_budget}
    return Method(aggregator=Call("auto", (), given))


def _values(groups: Any) -> Any:
    series = nw.from_native(groups, series_only=True, pass_through=True)
    return series.to_numpy() if isinstance(series, nw.Series) else groups


def _adopt(aggregator: Aggregator, classifier: Any) -> Aggregator:
    """An aggregator that reads items; LPQ may take over the classifier, others need none."""
    if classifier is None:
        return aggregator
    single = classifier.multiclass() if hasattr(classifier, "multiclass") else classifier
    return aggregator.with_classifier(single)


def _check_halves(classifier: Any, aggregator: Aggregator) -> None:
    """Say in a sentence if the classifier does not offer what the aggregator reads."""
    if not hasattr(classifier, "fit"):
        raise InputError(f"The classifier must have a fit method; got {classifier!r}.")
    kinds = offers(classifier)
    if aggregator.consumes in kinds:
        return
    left, right = type(aggregator).__name__, type(classifier).__name__
    if aggregator.consumes == "posteriors" and "votes" in kinds:
        raise InputError(
            f"{left} needs posteriors; {right} offers only votes. Use ACC, or wrap it in "
            "CalibratedClassifierCV."
        )
    raise InputError(
        f"{left} needs {aggregator.consumes}; {right} offers {', '.join(sorted(kinds)) or 'none'}."
    )
