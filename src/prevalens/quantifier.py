"""Quantifier: the join of a classifier and an aggregator.

The only place that knows both parts. Named methods are pairs: ``Quantifier(PerLabel(), CC())`` is
``lr+cc`` of group BC+BA, ``Quantifier(Stacked(), RQ())`` is ``stack+rq`` of group MLC+MLA.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self, TypeGuard

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.validation import check_is_fitted

from prevalens.aggregators import Aggregator, ScenarioMixture, TrainingPrevalence
from prevalens.batches import (
    EVIDENCE,
    NOTHING,
    OPENNESS,
    VALUES,
    Batches,
    Columns,
    Products,
    ScoredSamples,
    Statistic,
    fingerprint_of,
)
from prevalens.charts import Dots, table
from prevalens.classifiers import CrossFit, Given, PerLabel
from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.collection import label_matrix
from prevalens.crossfit import Scheme, warn_of_copies
from prevalens.errors import PrevalensWarning
from prevalens.estimate import Intervals, PrevalenceEstimate
from prevalens.expression import Call, Method, expression_of, to_text
from prevalens.response import (
    HasMembers,
    HasMulticlass,
    is_joint,
    offers,
    response,
    train,
    weighted_prior,
)
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.selection.automatic import Choice, choose
from prevalens.selection.backtest import (
    Candidates,
    Prepare,
    Timeline,
    TooShortError,
    as_read,
    estimate_with,
    rivals,
    run_backtest,
)
from prevalens.solvers.score_counts import ScoreCounts
from prevalens.summary import Summary, add_up
from prevalens.types import (
    Array,
    Classifier,
    Floats,
    Groups,
    Ints,
    Items,
    LabelMatrix,
    Labels,
    Progress,
)
from prevalens.uncertainty import Bootstrap, label_scores, with_labels
from prevalens.uncertainty.drift import (
    DEFAULT_DRIFT,
    Backtest,
    as_numbers,
    check_drift,
    drift_between_groups,
    label_noise,
    mean_times,
    widened,
)
from prevalens.uncertainty.goodness_of_fit import (
    MISFIT,
    Misfit,
    cautious,
    fit_alarm,
    warn_of_misfit,
)
from prevalens.uncertainty.label_noise import LabelNoise
from prevalens.validation import (
    InputError,
    check_choice,
    check_fraction,
    check_items,
    check_same_length,
    count_items,
    take_items,
)

_TIME_BUDGET = 600.0
#: Most folds of the cross-fitting in a backtest.
_FOLDS_OF_BACKTEST = 3
#: Level of the intervals that say how well scores support the estimates of an alarming batch.
_CAUTIOUS = 0.9
#: Items that are scored at a time where only sums are kept; few enough for the cache.
_PORTION = 16_384
_SEEDS = ("random_state", "seed")


class _Labelled(NamedTuple):
    """Labelled scores that the aggregator learns from, and how their items belong together."""

    scores: Scores
    Y: LabelMatrix
    groups: Groups = None
    folds: Ints | None = None


class _Learnt(NamedTuple):
    """The fitted parts of a quantifier.

    Attributes
    ----------
    labelled : _Labelled or None
        None if the aggregator needs none and no intervals are prepared.
    """

    classifier: Classifier | None
    aggregator: Aggregator
    labelled: _Labelled | None = None
    choice: Choice | None = None


class _Trust(NamedTuple):
    """What intervals and the alarm need, fitted."""

    uncertainty: Bootstrap | None = None
    drift: float = DEFAULT_DRIFT
    misfit: Misfit | None = None
    backtest: Backtest | None = None
    candidates: tuple[Aggregator, ...] = ()


class Quantifier(BaseEstimator):  # type: ignore[misc]
    """Estimate how frequent each label is in a batch of items.

    Parameters
    ----------
    classifier : estimator, optional
        Anything with ``fit(X, Y)`` and a multi-label response: a classifier of this package
        or of scikit-learn, a pipeline, or a fitted classifier in ``FrozenEstimator``. Default:
        one logistic regression per label. None if the aggregator reads the items themselves.
        `Given` if the items are scores that a labeller outside of this package has given.
    aggregator : Aggregator, optional
        How the scores of items become prevalences. Default: the scenario mixture. With neither
        classifier nor aggregator, both are chosen by their error on shifted samples of items
        that were held out; with `Given` alone, what reads the given scores is.
    scheme : CrossFit or HoldOut, optional
        How labelled scores for the aggregator arise. Default: out-of-fold scores of five
        folds, then the classifier is fitted again on all items. A backtest uses at most three
        folds. Its `random_state` is that of the automatic choice.
    uncertainty : Bootstrap, "auto" or None
        Prepares calibrated intervals while fitting (see `prevalens.uncertainty`), for aggregators
        that have none of their own. "auto" is ``Bootstrap()``, with fewer replicas for aggregators
        that read the items themselves. None saves that time; intervals are then refused.
    drift : float, optional
        Standard deviation of the drift that intervals allow for, on the scale of
        ``arcsin(sqrt(p))``; it does not shrink with the batch. Default: 0.03, or measured
        between groups or over time if `fit` is given these. 0: no allowance.
    time_budget : float
        Seconds that the automatic choice may take on an ordinary core; the default is ten minutes.
        It plans by counting operations: the same items and seed give the same quantifier on any
        machine, unless the clock ends the choice (``choice_.cut_short``).

    Attributes
    ----------
    choice_ : Choice or None
        All candidates of the automatic choice with their losses. None if a part was given.
    classifier_ : fitted classifier, or None
    aggregator_ : fitted aggregator
    uncertainty_ : fitted Bootstrap, or None
    drift_ : float
        Standard deviation of the drift that intervals allow for.
    backtest_ : Backtest or None
        What estimating later items by earlier ones has shown; None unless `fit` was given times.
    misfit_ : Misfit or None
        The alarm, for classifiers with posteriors.
    noise_ : LabelNoise or None
        How often the labels of the training items are wrong; None unless `fit` was given it.
    labels_ : tuple of str
    prevalence_ : array of float, shape (n_labels,)
        Prevalences in the training items.

    Notes
    -----
    Assumes that the batch differs from the training data in its label mix, and that items with
    the same labels have the same distribution of features in both. If that distribution changes
    too, every method here is biased.

    Examples
    --------
    >>> from prevalens.aggregators import PCC
    >>> from prevalens.classifiers import PerLabel
    >>> from prevalens.datasets import synthetic
    >>> data = synthetic(n_train=300, n_test=200, n_labels=4, random_state=0)
    >>> quantifier = Quantifier(PerLabel(), PCC()).fit(data.train.X, data.train.Y)
    >>> quantifier.quantify(data.test.X).shape
    (4,)
    >>> quantifier.name, quantifier.group
    ('lr+pcc', 'BC+BA')
    """

    def __init__(
        self,
        classifier: Classifier | None = None,
        aggregator: Aggregator | None = None,
        *,
        scheme: Scheme | None = None,
        uncertainty: Bootstrap | str | None = "auto",
        drift: float | None = None,
        time_budget: float = _TIME_BUDGET,
    ):
        self.classifier = classifier
        self.aggregator = aggregator
        self.scheme = scheme
        self.uncertainty = uncertainty
        self.drift = drift
        self.time_budget = time_budget

    def fit(
        self,
        X: Items,
        Y: Labels,
        *,
        labels: Sequence[str] | None = None,
        groups: Groups = None,
        time: Any = None,
        prepare: Prepare | None = None,
        noise: LabelNoise | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from labelled items.

        Parameters
        ----------
        X : array, sparse matrix, data frame or texts, one row per item
        Y : 0/1 matrix, data frame or list of label sets, one row per item
        labels : sequence of str, optional
            Names of the labels; taken from Y if left out.
        groups : sequence, one entry per item, optional
            Items that depend on each other, such as copies or several rows of one person, have
            the same entry. The classifier that scores an item for the aggregator has then not
            seen any item of its group. Without groups, a warning says if copies are at least 10 %
            of the items (and at least 20).
        time : array-like of dates, ISO strings or numbers, one entry per item, optional
            When each item arose. Later items are then estimated by earlier ones, at several
            origins: the errors set the intervals, by how far a batch is ahead, and without a
            given method also the weights of several candidates. Costs two to five times a fit.
        prepare : callable, optional
            For items that were prepared before: called with the row numbers before and after an
            origin, returns the items of both as a preparation makes them that was fitted on the
            first alone. Default: the rows of `X`.
        noise : LabelNoise, optional
            How often the people err who labelled the items. The quantifier is then fitted to labels
            that are drawn from what their answers say about the true ones, and estimates these.
        progress : callable, optional
            Called with a short message before each stage. What it raises ends the fit and leaves
            the quantifier as it was.
        """
        # Refuse incompatible parts before the items are checked.
        self.resolved_parts()
        X = self._checked(X)
        Y, names = label_matrix(Y, labels)
        check_same_length(count_items(X), "X", Y.shape[0], "Y")
        if groups is not None:
            groups = np.asarray(_values(groups))
            check_same_length(count_items(X), "X", len(groups), "groups")
        on_stage = progress or (lambda _: None)
        timeline = None if time is None else _timeline(_values(time), count_items(X))
        if noise is not None:
            on_stage("correcting labels")
            Y = noise.true_labels(X, Y, classifier=self._label_reader(X), groups=groups)
        learnt = self._learn(X, Y, groups, on_stage)
        trust = self._trust(learnt, groups, on_stage)
        if timeline is not None:
            backtest, candidates = self._backtest(learnt, timeline, X, Y, groups, prepare, on_stage)
            trust = trust._replace(backtest=backtest, candidates=candidates)
        # All attributes are set together at the end: an interrupted fit changes none of them.
        self.labels_, self.n_labels_ = names, len(names)
        self.prevalence_ = Y.mean(axis=0, dtype=np.float64)
        self.classifier_, self.aggregator_ = learnt.classifier, learnt.aggregator
        self.uncertainty_, self.drift_, self.misfit_, self.backtest_, self.candidates_ = trust
        self.choice_: Choice | None = learnt.choice
        self.noise_ = None if noise is None else replace(noise, second=None)
        # The same items, labels and settings have the same one.
        parts = (self.name, names, self.prevalence_, self.aggregator_, self.classifier_)
        self.fingerprint_ = fingerprint_of(parts)
        return self

    def _html_repr(self) -> str:
        """What notebooks show: scikit-learn's diagram, and the training prevalences once fitted."""
        diagram = str(estimator_html_repr(self))
        if "aggregator_" not in vars(self):
            return diagram
        title = f"{self.name}: prevalences of {len(self.labels_)} labels in the training items"
        return diagram + table(Dots(self.labels_, self.prevalence_, title=title), most=20)

    @property
    def is_automatic(self) -> bool:
        """Whether classifier and aggregator, or what reads given scores, are chosen here."""
        chosen = self.classifier is None or isinstance(self.classifier, Given)
        return chosen and self.aggregator is None

    def _label_reader(self, X: Items) -> Classifier | None:
        """The classifier that corrects labels: the own one if a logistic regression cannot."""
        numbers = sp.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind in "fiub")
        if numbers and not isinstance(self.classifier, Given):
            return None
        if self.classifier is None or "posteriors" not in offers(self.classifier):
            raise InputError(
                "Errors of labels are corrected by a classifier with posteriors; give items as "
                "numbers, or a classifier that has them."
            )
        return self.classifier

    def _learn(self, X: Items, Y: LabelMatrix, groups: Groups, progress: Progress) -> _Learnt:
        if self.is_automatic:
            return self._learn_automatically(X, Y, groups, progress)
        classifier, aggregator = self.resolved_parts()
        aggregator = clone(aggregator)
        kind = aggregator.consumes
        _warn_of_few(aggregator, Y)
        if classifier is None:
            labelled = _Labelled(Scores(X, "features"), Y, groups)
        else:
            progress("training the classifier")
            if not aggregator.needs_labelled_scores and self._calibration(aggregator) is None:
                # Counting looks only at the number of labels; Y itself has the right form.
                scores = Scores(Y, kind, prior=weighted_prior(classifier, Y))
                return _Learnt(train(classifier, X, Y), aggregator.fit(scores, Y))
            if groups is None and not isinstance(classifier, (FrozenEstimator, Given)):
                warn_of_copies(X, Y)
            scored = self.scheme_or_default().fit(classifier, X, Y, kind, groups=groups)
            classifier, rows = scored.classifier, scored.rows
            groups = None if groups is None else groups[rows]
            labelled = _Labelled(scored.scores, Y[rows], groups, scored.folds)
        progress("fitting the aggregator")
        aggregator.fit(labelled.scores, labelled.Y, groups=labelled.groups)
        return _Learnt(classifier, aggregator, labelled)

    def _learn_automatically(
        self, X: Items, Y: LabelMatrix, groups: Groups, progress: Progress
    ) -> _Learnt:
        # Answers of a labeller are often the same for items that are no copies.
        if groups is None and self.classifier is None:
            warn_of_copies(X, Y)
        choice = choose(
            X,
            Y,
            given=self.classifier if isinstance(self.classifier, Given) else None,
            groups=groups,
            time_budget=self.time_budget,
            random_state=self.scheme_or_default().random_state,
            progress=progress,
        )
        assert choice.scores is not None  # only what is kept has none
        labelled = _Labelled(choice.scores, Y, groups, choice.folds)
        kept = replace(choice, scores=None, folds=None)
        return _Learnt(choice.classifier, choice.aggregator, labelled, kept)

    def _trust(self, learnt: _Learnt, groups: Groups, progress: Progress) -> _Trust:
        """Prepare intervals, the allowance for drift and the alarm."""
        drift = DEFAULT_DRIFT if self.drift is None else check_drift(self.drift)
        if learnt.labelled is None:
            return _Trust(drift=drift)
        (scores, Y, own_groups, folds), aggregator = learnt.labelled, learnt.aggregator
        uncertainty = self._calibration(aggregator)
        if uncertainty is not None:
            progress("preparing intervals")
            uncertainty = clone(uncertainty).fit(aggregator, scores, Y, groups=own_groups)
        if groups is not None and self.drift is None and self.uncertainty is not None:
            drift = drift_between_groups(aggregator, scores, Y, own_groups, folds)
        misfit = None if self.uncertainty is None else fit_alarm(scores, Y, folds)
        return _Trust(uncertainty, drift, misfit)

    def _calibration(self, aggregator: Aggregator) -> Bootstrap | None:
        """What prepares intervals; None where the aggregator makes its own, or none are wanted."""
        if aggregator.has_intervals or self.uncertainty is None:
            return None
        if not isinstance(self.uncertainty, str):
            return self.uncertainty
        check_choice(self.uncertainty, "uncertainty", ("auto",))
        # Estimates from the items themselves take long, so fewer of them must do.
        state = self.scheme_or_default().random_state
        few = {"replicas": 4, "resamples": 8} if aggregator.consumes == "features" else {}
        return Bootstrap(**few, random_state=state)

    def _backtest(
        self,
        learnt: _Learnt,
        timeline: Timeline,
        X: Items,
        Y: LabelMatrix,
        groups: Groups,
        prepare: Prepare | None,
        progress: Progress,
    ) -> tuple[Backtest, tuple[Aggregator, ...]]:
        """What later items, estimated by earlier ones, show; and the candidates, fitted."""
        candidates = Candidates(
            learnt.classifier, (learnt.aggregator,), (learnt.aggregator.code,), np.array([1.0])
        )
        fitted: tuple[Aggregator, ...] = ()
        if learnt.choice is not None and learnt.classifier is not None:
            assert learnt.labelled is not None  # the automatic choice keeps them
            progress("fitting the candidates")
            scores, labels, own_groups, _ = learnt.labelled
            candidates = rivals(learnt.aggregator, learnt.classifier, scores, labels, own_groups)
            fitted = tuple(
                each
                if each is learnt.aggregator
                else clone(each).fit(as_read(each, scores), labels, groups=own_groups)
                for each in candidates.aggregators
            )
        scheme = self.scheme_or_default()
        if isinstance(scheme, CrossFit):
            # Fewer folds than in the fit itself: there are several origins.
            scheme = clone(scheme).set_params(n_folds=min(scheme.n_folds, _FOLDS_OF_BACKTEST))
        backtest = run_backtest(
            candidates,
            scheme,
            timeline,
            X,
            Y,
            groups=groups,
            prepare=prepare,
            seconds=self.time_budget,
            progress=progress,
        )
        return backtest, fitted

    def scheme_or_default(self) -> Scheme:
        """The scheme, or five-fold cross-fitting."""
        return CrossFit() if self.scheme is None else self.scheme

    def resolved_parts(self) -> tuple[Classifier | None, Aggregator]:
        """Classifier (None if not needed) and aggregator with defaults filled in, and checked."""
        classifier, aggregator = self._with_defaults()
        if aggregator.consumes == "features":
            return None, _taking_over(aggregator, classifier)
        _check_parts(classifier, aggregator)
        return classifier, aggregator

    def _with_defaults(self) -> tuple[Classifier | None, Aggregator]:
        aggregator = ScenarioMixture() if self.aggregator is None else self.aggregator
        if not isinstance(aggregator, Aggregator):
            raise InputError(
                f"The aggregator must be an Aggregator such as PCC(); got {aggregator!r}. "
                "A classifier comes first: Quantifier(classifier, aggregator)."
            )
        needed = self.classifier is None and aggregator.consumes != "features"
        return PerLabel() if needed else self.classifier, aggregator

    @property
    def expression(self) -> Method:
        """The method as a tree: which classifier, which aggregator, which scheme."""
        if self.is_automatic:
            changed = self.time_budget != _TIME_BUDGET
            given = {"time_budget": self.time_budget} if changed else {}
            parts = () if self.classifier is None else (expression_of(self.classifier),)
            return Method(aggregator=Call("auto", parts, given))
        classifier, aggregator = self._with_defaults()
        return Method(
            aggregator=expression_of(aggregator),
            classifier=None if classifier is None else expression_of(classifier),
            scheme=None if self.scheme is None else expression_of(self.scheme),
        )

    @property
    def name(self) -> str:
        """The method's name in the catalogue, such as ``lr+pcc``."""
        return to_text(self.expression)

    @property
    def group(self) -> str:
        """BC or MLC (does the classifier see labels together?) + BA or MLA (the aggregator?).

        Without a classifier it is BA or MLA alone. The automatic quantifier has the widest group,
        MLC+MLA, as it may choose any parts.
        """
        if self.is_automatic:
            return "MLC+MLA"
        classifier, aggregator = self._with_defaults()
        second = "MLA" if aggregator.joint else "BA"
        if classifier is None:
            return second
        return f"{'MLC' if is_joint(classifier) else 'BC'}+{second}"

    def score(self, X: Items) -> Scores:
        """The scores of items as the aggregator reads them; the costly step, done once per item."""
        check_is_fitted(self, "aggregator_")
        return self._score(self._checked(X))

    def _checked(self, X: Items) -> Items:
        """The items; numbers may be missing only if the classifier takes them so."""
        if self.classifier is None:
            # The training prevalence does not look at the items.
            takes_missing = isinstance(self.aggregator, TrainingPrevalence)
        elif isinstance(self.classifier, MultiLabelClassifier):
            takes_missing = self.classifier.takes_missing
        else:
            takes_missing = get_tags(self.classifier).input_tags.allow_nan
        return check_items(X, missing=takes_missing)

    def _score(self, X: Items) -> Scores:
        """The scores of items that have been checked."""
        classifier, kind = self.classifier_, self.aggregator_.consumes
        if classifier is None:
            return Scores(X, "features")
        if _may_trust(classifier, X):
            # The items are checked; the classifier's own methods would check them again.
            return Scores(classifier.respond(X, kind), kind)
        return response(classifier, X, kind, self.n_labels_)

    def aggregate(
        self,
        scores: Scores,
        samples: Samples,
        interval: float | None = None,
        *,
        index: Sequence[object] | None = None,
        time: Any = None,
    ) -> PrevalenceEstimate:
        """Estimate the prevalences of samples of items that have been scored.

        Parameters
        ----------
        scores : Scores
            What `score` gave for the pool of items.
        samples : Samples
            Bags of rows of that pool.
        interval : float, optional
            As in `quantify`.
        index : sequence, optional
            A name per sample; default: their positions.
        time : array-like of shape (n_samples,), or one value, optional
            The (mean) time of each sample, if the quantifier was fitted with times. Without it a
            sample counts as being as far ahead as the batches of the backtest were on average.

        Returns
        -------
        PrevalenceEstimate, shape (n_samples, n_labels)
        """
        check_is_fitted(self, "aggregator_")
        return self.read(ScoredSamples(scores, samples), interval, index=index, time=time)

    def read(
        self,
        batches: Batches,
        interval: float | None = None,
        *,
        index: Sequence[object] | None = None,
        time: Any = None,
    ) -> PrevalenceEstimate:
        """As `aggregate`, of batches whose items need not be at hand."""
        return self._estimated(batches, interval, index, self._horizon(time, len(batches)))

    def _estimated(
        self,
        batches: Batches,
        interval: float | None,
        index: Sequence[object] | None,
        horizon: Floats | None,
    ) -> PrevalenceEstimate:
        level = None if interval is None else check_fraction(interval, "interval")
        if level is None:
            point = self._point(batches, horizon)
            return PrevalenceEstimate(point, self.labels_, index=index)
        point, intervals = self._with_intervals(batches, horizon, level)
        if intervals.p_value is not None:
            alone = index is None and len(batches) == 1
            names = range(len(batches)) if index is None else index
            warn_of_misfit(intervals.p_value, None if alone else names)
        ends = {name: value for name, value in vars(intervals).items() if value is not None}
        return PrevalenceEstimate(point, self.labels_, index=index, level=level, **ends)

    def _horizon(self, time: Any, n_samples: int) -> Floats | None:
        """How far each sample is ahead of training; None without a backtest."""
        if self.backtest_ is not None:
            return self.backtest_.horizon(_values(time), n_samples)
        if time is not None:
            raise InputError(
                "The quantifier was fitted without times, so the time of a batch says nothing; fit "
                "it with `time=`, or leave time out."
            )
        return None

    def _p_value(self, batches: Batches, horizon: Floats | None) -> Floats | None:
        """What the alarm says of each batch; None without an alarm."""
        if self.misfit_ is None:
            return None
        usual: float | Floats = 0.0
        if self.backtest_ is not None and horizon is not None:
            usual = self.backtest_.expected_slack(horizon)
        return self.misfit_.p_value(batches, drift=self.drift_, slack=usual)

    def _point(
        self,
        batches: Batches,
        horizon: Floats | None,
        base: Floats | None = None,
        p_value: Floats | None = None,
    ) -> Floats:
        """Estimates of the aggregator, or the weighted median of the candidates.

        `base` and `p_value` are what aggregator and alarm answer, where that is known already.
        """
        if self.backtest_ is not None and horizon is not None and self.candidates_:
            estimated = [estimate_with(each, batches) for each in self.candidates_]
            return self.backtest_.combine(np.stack(estimated), horizon)
        point = self.aggregator_.read(batches) if base is None else base.copy()
        # A method that was named is answered as it is, whatever the alarm says; so are given
        # scores, of which too few items are labelled to tell a far shift from drift.
        if not self.is_automatic or isinstance(self.classifier, Given):
            return point
        known = self._p_value(batches, horizon) if p_value is None else p_value
        rows = np.flatnonzero(np.zeros(0) if known is None else known < MISFIT)
        if len(rows):
            _, own = self._own_intervals(batches[rows], _CAUTIOUS)
            point[rows] = cautious(point[rows], own, self.prevalence_, _CAUTIOUS)
        return point

    def _with_intervals(
        self, batches: Batches, horizon: Floats | None, level: float
    ) -> tuple[Floats, Intervals]:
        """Estimates with intervals that allow for drift, and the alarm."""
        base, own = self._own_intervals(batches, level)
        return self._allowing(batches, horizon, level, base, own)

    def _allowing(
        self,
        batches: Batches,
        horizon: Floats | None,
        level: float,
        base: Floats,
        own: Intervals,
    ) -> tuple[Floats, Intervals]:
        """What `_with_intervals` makes of the aggregator's own estimates and intervals."""
        p_value = self._p_value(batches, horizon)
        if p_value is not None:
            own = replace(own, p_value=p_value)
        if self.noise_ is not None:
            own = self.noise_.stretched(own, base)
        point = self._point(batches, horizon, base, p_value)
        if self.backtest_ is None or horizon is None:
            intervals = widened(own, base, self.drift_, level).holding(point)
        else:
            noise = label_noise(batches, point)
            intervals = self.backtest_.intervals(own, point, noise, horizon, level)
        if self.noise_ is not None:
            intervals = widened(intervals, point, self.noise_.reach(point), level)
        return point, intervals

    def _own_intervals(self, batches: Batches, level: float) -> tuple[Floats, Intervals]:
        """Estimates with intervals of the aggregator's own making, else of a bootstrap."""
        if self.aggregator_.has_intervals:
            point, intervals = self.aggregator_.read_with_intervals(batches, level)
            assert intervals is not None  # has_intervals declares them
            return point, intervals
        if self.uncertainty_ is not None:
            return self.uncertainty_.estimate(self.aggregator_, batches, level)
        raise InputError(
            f"{self.name} was fitted with uncertainty=None, so it has no calibrated intervals; "
            "leave that argument out and fit again, or leave interval out."
        )

    def interval_widths(
        self, batches: Batches, level: float, *, time: Any = None
    ) -> tuple[float, float]:
        """Mean width of the intervals without and with what they allow for drift.

        Parameters
        ----------
        batches : Batches
        level : float
        time : as in `aggregate`
        """
        base, own = self._own_intervals(batches, level)
        horizon = self._horizon(time, len(batches))
        _, intervals = self._allowing(batches, horizon, level, base, own)
        without, width = (float(np.mean(each.upper - each.lower)) for each in (own, intervals))
        return without, width

    @property
    def has_intervals(self) -> bool:
        """Whether ``interval=`` is answered."""
        return self.aggregator_.has_intervals or self.uncertainty_ is not None

    def quantify(
        self,
        X: Items,
        *,
        interval: float | None = None,
        time: Any = None,
        labelled: tuple[Any, ...] | None = None,
    ) -> PrevalenceEstimate:
        """Estimate the prevalence of each label in one batch.

        Parameters
        ----------
        X : array, sparse matrix, data frame or texts, one row per item
        interval : float, optional
            A level such as 0.9 adds intervals per label, bands over all labels and, where the
            classifier has posteriors, the p-value of the alarm.
        time : date or number, or one for each item, optional
            When the items of the batch arose, if the quantifier was fitted with times.
        labelled : pair of (rows, Y_rows), or triple of (rows, Y_rows, weights), optional
            Row numbers of some items of the batch, drawn at random, and their labels; the
            estimate then combines both (see `prevalens.uncertainty.with_labels`), with intervals
            of level `interval` or 0.9. Weights are for items that were not drawn uniformly:
            proportional to 1 / (probability of being drawn).

        Returns
        -------
        PrevalenceEstimate, shape (n_labels,)
        """
        at = None if time is None else _mean_time(time)
        if labelled is None and self.statistics is not None:
            return self.estimate(self.summarise(X), interval, time=at).sample(0)
        interval = 0.9 if labelled is not None and interval is None else interval
        scores = self.score(X)
        batches: Batches = ScoredSamples(scores, Samples.whole(scores.n_items))
        if self.statistics is not None:
            batches = self.summarise_scores(scores)
        estimate = self.read(batches, interval, time=at).sample(0)
        if labelled is None:
            return estimate
        values = label_scores(scores, self.n_labels_)
        if self.noise_ is None:
            return with_labels(estimate, values, labelled)
        # The labels of the batch have the same errors as those of the training items.
        return self.noise_.as_true(with_labels(self.noise_.as_seen(estimate), values, labelled))

    def quantify_many(
        self,
        X: Items,
        groups: Samples | Groups,
        *,
        interval: float | None = None,
        time: Any = None,
    ) -> PrevalenceEstimate:
        """Estimate the prevalence of each label in many batches; every item is scored once.

        Parameters
        ----------
        X : array, sparse matrix, data frame or texts, one row per item
        groups : Samples, or array of shape (n_items,)
            The batches: bags of row numbers, or for each item the name of its batch.
        interval : float, optional
            As in `quantify`.
        time : array-like of shape (n_items,), optional
            When each item arose, if the quantifier was fitted with times.

        Returns
        -------
        PrevalenceEstimate, shape (n_batches, n_labels)
            In the order of the samples, or of the sorted names.
        """
        index: Sequence[object]
        if isinstance(groups, Samples):
            samples, index = groups, range(len(groups))
        else:
            samples, names = Samples.by_group(_values(groups))
            check_same_length(count_items(X), "X", samples.n_items, "groups")
            index = names.tolist()
        at = None if time is None else mean_times(samples, _values(time))
        if isinstance(groups, Samples) or self.statistics is None:
            return self.aggregate(self.score(X), samples, interval, index=index, time=at)
        places = np.empty(samples.n_items, dtype=np.int64)
        places[samples.flat] = np.repeat(np.arange(len(samples)), samples.sizes)
        summary = self.summarise(X, places)
        order = np.argsort(np.array(summary.names, dtype=np.int64))
        return self.read(summary[order], interval, index=index, time=at)

    @property
    def statistics(self) -> tuple[Statistic, ...] | None:
        """The sums over the items of a batch that estimates need; None if they need the items."""
        check_is_fitted(self, "aggregator_")
        uncertainty, kind = self.uncertainty_, self.aggregator_.consumes
        replicas = [] if uncertainty is None else uncertainty.replicas_
        known = [each.statistic for each in (self.aggregator_, *self.candidates_, *replicas)]
        found = [each for each in known if each is not None]
        if len(found) < len(known):
            return None
        own = found[0]
        if uncertainty is not None and isinstance(own, Columns):
            found.append(Products(own))
        if kind != "features":
            found.append(VALUES)
        if kind == "posteriors":
            found.append(OPENNESS)
        return tuple({each.name: each for each in found}.values())

    def summarise(self, X: Items, groups: Groups = None, *, time: Any = None) -> Summary:
        """The sums over items that estimates need; add those of parts, then `estimate`.

        Parameters
        ----------
        X : array, sparse matrix, data frame or texts, one row per item
        groups : sequence, one entry per item, optional
            The name of each item's batch; without it all items are one batch, named ``""``.
        time : array-like of shape (n_items,), optional
            When each item arose, if the quantifier was fitted with times.

        Notes
        -----
        Items are scored in portions, so memory does not grow with their number. Exact for all
        aggregators that have sums, LPQ over CC, PCC, ACC or PACC, and RQ over these; SLD and
        KDEyML read histograms of 323 bins, which changed no estimate by more than 0.0005 where it
        was tried. Methods that must see the items (LPQ over SLD, quantifiers of QuaPy) are refused.
        """
        self.summed_statistics()
        X = self._checked(X)
        n_items = count_items(X)
        names = None if groups is None else np.asarray(_values(groups))
        if names is not None:
            check_same_length(n_items, "X", len(names), "groups")
        times = None if time is None else self.times_of(time)

        def parts() -> Iterator[Summary]:
            for start in range(0, max(n_items, 1), _PORTION):
                rows = slice(start, start + _PORTION)
                scores = self._score(X if n_items <= _PORTION else take_items(X, rows))
                own = None if names is None else names[rows]
                yield self.summarise_scores(scores, own, None if times is None else times[rows])

        return add_up(parts())

    def times_of(self, time: Any) -> Floats:
        """Times of items as numbers; refused if they are not of the kind of the training items."""
        values = _values(time)
        self._horizon(values[:1], 1)
        return as_numbers(values)[0]

    def summarise_scores(
        self, scores: Scores, groups: Array | None = None, times: Floats | None = None
    ) -> Summary:
        """As `summarise`, of items that have been scored.

        Parameters
        ----------
        scores : Scores
        groups : array, shape (n_items,), optional
        times : array of float, shape (n_items,), optional
            As numbers (days since 1970 for dates); NaN where it is not known.
        """
        samples, named = Samples.whole(scores.n_items), [""]
        if groups is not None:
            samples, names = Samples.by_group(groups)
            named = [str(name) for name in names.tolist()]
        return self.summarise_samples(scores, samples, named, times)

    def summarise_samples(
        self,
        scores: Scores,
        samples: Samples,
        names: Sequence[str] | None = None,
        times: Floats | None = None,
    ) -> Summary:
        """As `summarise_scores`, of samples of the items, by their names or numbers."""
        named = list(map(str, range(len(samples)))) if names is None else names
        known = self.summed_statistics()
        return Summary.of(scores, samples, named, known, fingerprint=self.fingerprint_, times=times)

    @property
    def sums_scores(self) -> bool:
        """Whether `summarise_counts` has all sums that estimates need."""
        known = {EVIDENCE.name, VALUES.name, OPENNESS.name}
        wanted = {statistic.name for statistic in self.statistics or (NOTHING,)}
        posteriors = self.aggregator_.consumes == "posteriors"
        return posteriors and isinstance(self.classifier_, Given) and wanted <= known

    def summarise_counts(self, scores: ScoreCounts, name: str) -> Summary:
        """As `summarise_scores`, of one batch of scores that one labeller has given."""
        assert isinstance(self.classifier_, Given)  # see `sums_scores`
        values, squares = (sums[np.newaxis] for sums in self.classifier_.posterior_sums(scores))
        known = {EVIDENCE.name: values, VALUES.name: values, OPENNESS.name: values - squares}
        sums = {each.name: known[each.name] for each in self.summed_statistics()}
        return Summary.of_sums(
            sums, np.array([scores.n_items]), [name], "posteriors", self.fingerprint_
        )

    def summed_statistics(self) -> tuple[Statistic, ...]:
        """The `statistics`, or an error if there are none."""
        statistics = self.statistics
        if statistics is None:
            raise InputError(
                f"{self.name} reads the items themselves, so it has no summaries; quantify the "
                "items, or fit a method that reads votes or posteriors."
            )
        return statistics

    def check_made(self, summary: Summary) -> None:
        """Refuse a summary that another quantifier made."""
        if summary.fingerprint != self.fingerprint_:
            raise InputError(
                f"The summary was made by another model (fingerprint {summary.fingerprint}; this "
                f"one has {self.fingerprint_}); summarise the items with this model."
            )

    def estimate(
        self, summary: Summary, interval: float | None = None, *, time: Any = None
    ) -> PrevalenceEstimate:
        """Estimate the prevalence of each label in batches that were summarised.

        Parameters
        ----------
        summary : Summary
            Made by this quantifier, here or elsewhere.
        interval : float, optional
            As in `quantify`.
        time : array-like of shape (n_batches,), optional
            The (mean) time of each batch; default: that of the summarised items.

        Returns
        -------
        PrevalenceEstimate, shape (n_batches, n_labels)
        """
        check_is_fitted(self, "aggregator_")
        self.check_made(summary)
        horizon = self._horizon(time, len(summary))
        if time is None and self.backtest_ is not None and horizon is not None:
            known = ~np.isnan(summary.times)
            horizon = np.where(known, self.backtest_.axis.horizon(summary.times), horizon)
        index = None if summary.names == ("",) else list(summary.names)
        return self._estimated(summary, interval, index, horizon)


def _timeline(time: Any, n_items: int) -> Timeline | None:
    """The training items by time; None, with a warning, if they leave nothing to learn from."""
    try:
        return Timeline.of(time, n_items)
    except TooShortError as error:
        warnings.warn(
            f"The times of the items are not used: {error}. Intervals allow for drift as without "
            "times.",
            PrevalensWarning,
            stacklevel=4,
        )
        return None


def _mean_time(time: Any) -> Any:
    values = np.atleast_1d(np.asarray(_values(time)))
    return mean_times(Samples.whole(len(values)), values)


def _values(groups: Groups) -> Groups:
    series = nw.from_native(groups, series_only=True, pass_through=True)
    return series.to_numpy() if isinstance(series, nw.Series) else groups


def _may_trust(classifier: object, X: Items) -> TypeGuard[MultiLabelClassifier]:
    """Whether checked items may be scored without the classifier's own checks.

    This holds for numbers without column names and with as many columns as the training items; for
    all others the classifier's own methods raise the error. It does not hold for an ensemble:
    `response` asks it for the scores of all its members.
    """
    if not isinstance(classifier, MultiLabelClassifier) or isinstance(classifier, HasMembers):
        return False
    matrix = (isinstance(X, np.ndarray) or sp.issparse(X)) and X.ndim == 2 and X.dtype != object
    known = vars(classifier)
    unnamed = "feature_names_in_" not in known
    return bool(matrix and unnamed and known.get("n_features_in_") == X.shape[1])


def _taking_over(aggregator: Aggregator, classifier: Classifier | None) -> Aggregator:
    """An aggregator that reads items; LPQ may take over the classifier, others need none."""
    if classifier is None:
        return aggregator
    single = classifier.multiclass() if isinstance(classifier, HasMulticlass) else classifier
    return aggregator.with_classifier(single)


def _check_parts(classifier: Classifier | None, aggregator: Aggregator) -> None:
    """Refuse a classifier that does not offer what the aggregator reads."""
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


def _warn_of_few(aggregator: Aggregator, Y: LabelMatrix) -> None:
    """Warn if labels have too few positives or negatives for the aggregator, but not none."""
    positives = Y.sum(axis=0, dtype=np.int64)
    rarer = np.minimum(positives, len(Y) - positives)
    few = int(np.count_nonzero((rarer > 0) & (rarer < aggregator.least_positives)))
    if few:
        warnings.warn(
            f"{few} of {Y.shape[1]} labels have fewer than {aggregator.least_positives} positives, "
            f"or negatives, in training: what {type(aggregator).__name__} estimates for them is "
            "mostly chance; label more items, or use PCC.",
            PrevalensWarning,
            stacklevel=4,
        )


def set_seeds(quantifier: Any, seed: int) -> None:
    """Set the seed of every part whose seed has its default value."""
    parts = quantifier.get_params(deep=True)
    for path in parts:
        name = path.rpartition("__")[2]
        if name in _SEEDS:
            owner = parts.get(path.removesuffix(name).removesuffix("__"), quantifier)
            known = inspect.signature(type(owner).__init__).parameters
            if name in known and parts[path] == known[name].default:
                quantifier.set_params(**{path: seed})
