"""The automatic choice: which classifiers and which aggregator ``Quantifier()`` uses.

Classifiers are scored out of fold, each alone and in ensembles; each set of scores is read by the
mixture and by counting; the pair with the least validation loss is fitted on all items. The
validation loss is the error on samples of held-out items under several families of shift. All
pairs are screened on some of the samples; the promising ones are compared on all.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from math import isnan
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from prevalens.aggregators import PCC, Aggregator, ScenarioMixture, TrainingPrevalence
from prevalens.charts import Dots, table
from prevalens.classifiers import (
    ClassifierEnsemble,
    CrossFit,
    ExtraTrees,
    Forest,
    Given,
    PerLabel,
)
from prevalens.classifiers.ensemble import is_weighted, mean_posterior, train_members
from prevalens.classifiers.logistic import BatchedLogistic
from prevalens.classifiers.trees import OutOfBag
from prevalens.crossfit import Division, out_of_fold, warn_of_constant_labels
from prevalens.errors import PrevalensWarning
from prevalens.expression import expression_of, to_text
from prevalens.parallel import compute
from prevalens.scores import Scores
from prevalens.selection.budget import Budget, Costs
from prevalens.tables.column_guard import ColumnGuard
from prevalens.tables.text import TextPreparation
from prevalens.types import Classifier, Floats, Groups, Ints, Items, LabelMatrix, Progress, Settings
from prevalens.validation import InputError, is_texts
from prevalens.validation_shifts import SIZE, ShiftedSplit, losses, shifted_splits, total_loss

#: Strengths of the logistic regressions, the default one first, the strongest last, and one that
#: is tried if the strongest of these is the best; the same with balanced classes, which raise the
#: scores of rare labels above the noise.
STRENGTHS, STRONGER = (1.0, 0.1, 10.0), 100.0
BALANCED, BALANCED_STRONGER = (1.0,), 10.0
#: Tolerance of out-of-fold regressions: their posteriors are then right to about 0.001, far less
#: than those of two folds differ. Regressions on all items have the default one.
TOLERANCE = 1e-4
#: Dense features are turned into uncorrelated ones if there are at most so many items or features.
MANY_FEATURES = 2000
#: Up to so many numbers in a product of the items with the parameters of all labels, the folds are
#: solved together: the time goes into many small products.
SMALL = 2 * 10**6
#: Trees of a forest. With fewer than the second, the posteriors out of bag, which are means over a
#: third of the trees, are not worth their noise; the screening does with the second.
TREES, FEWEST_TREES = 200, 80
#: The share of the remaining budget that a forest may take.
FOREST_SHARE = 0.5
#: Bytes that a fitted forest may take, in memory and in a model file that is not compressed. All
#: other parts of a model of usual size stay below.
FOREST_BYTES = 100_000_000
#: Bytes that one tree may take while it is grown, in scikit-learn's form.
TREE_BYTES = 1_000_000_000
#: By how much forests must lower the loss of the best choice without them, as a share: they cost
#: many times the time and the size.
FOREST_GAIN = 0.03
#: Shrinkage of the mixture in the screening; its default for few items.
SHRINKAGE = 0.1
#: Of the screened pairs, those are promising whose loss is at most the first share above the least.
#: The second is about what forests gain by all their trees, after a screening with few of them.
MARGIN, MORE_TREES_GAIN = 0.01, 0.01
#: A fit of the mixture takes about as long as so many validations, most of it for intervals; and
#: with so many items a validation searches for a shrinkage, so that it takes longer by a factor.
FIT, MANY, SEARCH = 4, 1000, 4
#: Ensembles whose losses differ by less than this share are as good; the one with more members is
#: taken, as validation samples are smaller and less shifted than real samples may be.
CLOSE = 0.005
#: By how much counting must be better than the mixture to be taken, on validation samples of the
#: usual size; the smaller they are, the more noise favours counting, which cannot follow shifts
#: larger than those of the validation samples.
HANDICAP = 0.05
#: Settings of the mixture if the items are given scores. There are fewer labelled items than
#: classifiers are trained on, so that their noise, not a model that fits badly, makes a batch look
#: unlike a scenario; and calibrated answers of a fixed labeller follow the labels, not the items.
GIVEN_MIXTURE: dict[str, Any] = {"evidence_weight": 1.0, "prior": (1.0, 1.0, 2.0, 0.2)}
#: Its shrinkage times the number of labelled items, if these are too few to choose it by.
GIVEN_SHRINKAGE = 100
#: The same if features follow the scores. The mixture then reads twice as many columns, of which
#: those with a learner follow the items, too.
FEATURES_MIXTURE = GIVEN_MIXTURE | {"evidence_weight": None}
FEATURES_SHRINKAGE = 300


@dataclass(frozen=True)
class Candidate:
    """A method that was compared, or was left out.

    Attributes
    ----------
    name : str
    loss : float
        Validation loss: mean absolute error as a ratio to that of the training prevalence. NaN
        if there were too few items to validate.
    by_family : dict of str to float
        The same by family of shift.
    note : str
        Why it was not chosen although its loss is low, or why it was not tried.
    """

    name: str
    loss: float
    by_family: dict[str, float] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Choice:
    """The chosen parts, fitted on all items, and the candidates.

    Attributes
    ----------
    classifier, aggregator : fitted
    candidates : tuple of Candidate
        The chosen candidate first, the others by their losses.
    seconds : float
    notes : tuple of str
        One sentence for each method that was left out for lack of time or memory.
    cut_short : bool
        Whether the clock ended the search: on a faster or less busy machine more is tried.
        Otherwise the same items and the same seed give the same choice everywhere.
    scores : Scores or None
        Out-of-fold scores the aggregator was fitted on; a quantifier does not keep them.
    folds : array of int, shape (n_items,), or None
        Which items were scored by the same classifier.
    """

    classifier: Classifier | None
    aggregator: Aggregator
    candidates: tuple[Candidate, ...]
    seconds: float
    notes: tuple[str, ...]
    scores: Scores | None = None
    folds: Ints | None = None
    cut_short: bool = False

    @property
    def name(self) -> str:
        """The chosen method's name in the catalogue."""
        return self.candidates[0].name

    def table(self) -> str:
        """The candidates, one line each, as text."""
        families = list(self.candidates[0].by_family)
        width = max([10, *map(len, families)])
        lines = [f"{'method':42} {'all':>6} " + " ".join(f"{name:>{width}}" for name in families)]
        for candidate in self.candidates:
            values = [candidate.by_family.get(name, float("nan")) for name in families]
            cells = " ".join(f"{value:{width}.3f}" for value in values)
            line = f"{candidate.name:42} {candidate.loss:6.3f} {cells}  {candidate.note}"
            lines.append(line.rstrip())
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"{self.name}, chosen in {self.seconds:.1f} s\n{self.table()}"

    def _repr_html_(self) -> str:
        tried = [candidate for candidate in self.candidates if not isnan(candidate.loss)]
        if not tried:
            return f"<pre>{escape(repr(self))}</pre>"
        losses = np.array([candidate.loss for candidate in tried])
        title = (
            f"{self.name}, chosen in {self.seconds:.1f} s. Errors on validation samples, as a "
            "ratio to that of the training prevalence"
        )
        names = [candidate.name for candidate in tried]
        return table(Dots(names, losses, axis="error", title=title))


def choose(
    X: Items,
    Y: LabelMatrix,
    *,
    given: Given | None = None,
    groups: Groups = None,
    time_budget: float = 600.0,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Choice:
    """Choose classifiers and an aggregator for labelled items, and fit them.

    Parameters
    ----------
    X : matrix of features, or texts
    Y : 0/1 array of int8, shape (n_items, n_labels)
    given : Given, optional
        Calibrates X if it holds scores of labellers.
    groups : sequence, one entry per item, optional
        Items of one group are never both trained on and scored.
    time_budget : float
        Seconds that the choice may take on an ordinary core. Methods that would take too long are
        not tried. That is planned by counting operations, not by the clock; the clock only ends
        the search if the machine is so slow that the budget would be exceeded.
    random_state : int
    progress : callable, optional
        Called with a short message before each stage.

    Notes
    -----
    Tried are logistic regressions per label of three strengths, a fourth if the strongest of these
    is the best, with balanced classes besides; a forest, extra trees on dense features, and
    ensembles of these; each with the mean posterior and with the scenario mixture; and the training
    prevalence. Forests are trained once and score their items out of bag; with `groups`, and
    all other classifiers, out of fold.

    Given scores are calibrated out of fold (several labellers together, and each besides), and read
    by the mean posterior and by a scenario mixture with settings for few labelled items; with
    features besides the scores, by the mixture alone.

    Forests are chosen only if they lower the validation loss by at least 3 % of that of the
    best choice without them. A fitted forest may take 100 MB, and one of its trees 1 GB while it is
    grown; a forest that would take more gets fewer trees, or is left out if these are too few.

    Examples
    --------
    >>> from prevalens.datasets import synthetic
    >>> data = synthetic(n_train=150, n_labels=3, random_state=0)
    >>> choice = choose(data.train.X, data.train.Y, time_budget=5)
    >>> "naive" in [candidate.name for candidate in choice.candidates]
    True
    """
    if not time_budget > 0:
        raise InputError(f"time_budget must be above 0 seconds; got {time_budget}.")
    if len(Y) < 2:
        raise InputError("One labelled item is too few to learn from; give at least two.")
    search = _Search(X, Y, groups, time_budget, random_state, progress or (lambda _: None))
    return search.run() if given is None else search.run_given(given)


@dataclass
class Member:
    """A classifier with its out-of-fold scores; trained on all items only if it is chosen.

    Attributes
    ----------
    name : str
        Its name in the catalogue.
    classifier : classifier
    scores : array of float, shape (n_items, n_labels)
    out_of_bag : OutOfBag or None
        Of a forest that was fitted on all items, maybe with fewer trees.
    members : array of float, shape (n_items, n_members * n_labels), or None
        Scores of the members, if the classifier has members itself.
    """

    name: str
    classifier: Classifier
    scores: Floats
    out_of_bag: OutOfBag | None = None
    members: Floats | None = None

    @property
    def weighted(self) -> bool:
        """Whether class weights were used, so that posteriors are not frequencies."""
        return is_weighted(self.classifier)


def scores_of(members: Sequence[Member]) -> Scores:
    """Scores of a member, or of several members with the mean of those with plain posteriors."""
    values = [np.clip(member.scores, 0, 1) for member in members]
    if len(values) == 1:
        return Scores(values[0], members=members[0].members)
    mean = mean_posterior(np.stack(values, axis=1), [not member.weighted for member in members])
    return Scores(mean, members=np.hstack(values))


class Trainer:
    """Trains the classifiers that there is time and memory for.

    Parameters
    ----------
    X : matrix of features
    Y : 0/1 array of int8, shape (n_items, n_labels)
    divisions : sequence of Division
        Rows to train on and rows to score, for out-of-fold scores.
    budget : Budget
    random_state : int
    progress : callable
        Called with a short message before each stage.
    grouped : bool
        Whether items belong together: forests are then trained once per division, too. Otherwise
        their items are scored out of bag.

    Attributes
    ----------
    costs : Costs
    left_out : list of Candidate
        Methods that were not tried for their size.
    """

    def __init__(
        self,
        X: Items,
        Y: LabelMatrix,
        divisions: Sequence[Division],
        budget: Budget,
        random_state: int,
        progress: Progress,
        *,
        grouped: bool = False,
    ) -> None:
        self.X, self.Y, self.divisions = X, Y, divisions
        self.budget, self.random_state, self.progress = budget, random_state, progress
        self.grouped = grouped
        self.costs = Costs(X, Y.shape[1], len(divisions))
        self.left_out: list[Candidate] = []

    def linear(self, strengths: Sequence[float], class_weight: str | None = None) -> list[Member]:
        """Logistic regressions per label, one for each strength, solved together."""
        first = PerLabel(class_weight=class_weight)
        settings = [{"C": strength} for strength in strengths]
        X = self._uncorrelated
        if not sp.issparse(X) and X.size * self.Y.shape[1] <= SMALL:
            self.progress("logistic regressions")
            quick = BatchedLogistic(class_weight=class_weight, tol=TOLERANCE)
            scores = quick.out_of_fold(strengths, X, self.Y, self.divisions)
        else:
            each = clone(first).set_params(tol=TOLERANCE)
            scores = self._out_of_fold(each, "logistic regressions", settings, X)
        members = [clone(first).set_params(**setting) for setting in settings]
        return [
            Member(_text(member), member, values)
            for member, values in zip(members, scores, strict=True)
        ]

    def given(self, given: Given) -> list[Member]:
        """Scores of labellers, calibrated out of fold; several labellers together and separate."""
        several = (given.n_labellers or self.X.shape[1] // self.Y.shape[1]) > 1
        settings = [{"separate": False}, {"separate": True}] if several else [{}]
        labelled = out_of_fold(
            given, self.X, self.Y, self.divisions, settings=settings, refit=False
        )
        kinds = [clone(given).set_params(**setting) for setting in settings]
        found = [labelled_scores.scores for labelled_scores in labelled]
        return [
            Member(_text(kind), kind, scores.values, members=scores.members)
            for kind, scores in zip(kinds, found, strict=True)
        ]

    @cached_property
    def _uncorrelated(self) -> Items:
        """Dense features without correlations: a rotation, which leaves the penalty as it is.

        The regressions are the same and are solved in about half the iterations.
        """
        if sp.issparse(self.X) or min(self.X.shape) > MANY_FEATURES:
            return self.X
        left, lengths, _ = np.linalg.svd(self.X - self.X.mean(axis=0), full_matrices=False)
        seen = lengths >= 1e-9 * lengths.max()
        return left[:, seen] * lengths[seen]

    def _out_of_fold(
        self, classifier: Classifier, name: str, settings: Sequence[Settings], X: Items
    ) -> list[Floats]:
        """Posteriors of all items, for each setting, by classifiers that have not seen them."""
        labelled = out_of_fold(
            classifier,
            X,
            self.Y,
            self.divisions,
            settings=settings,
            refit=False,
            progress=lambda fold: self.progress(f"{name}, {fold}"),
        )
        return [labelled_scores.scores.values for labelled_scores in labelled]

    def trees(self) -> list[Member]:
        """A forest, and on dense features one of extra trees, if there is time for enough trees."""
        kinds = [Forest()]
        if not sp.issparse(self.X):
            # Items are scored out of bag only where trees have bags.
            kinds.append(ExtraTrees(bootstrap=not self.grouped))
        planned = [member for kind in kinds if (member := self._forest(kind)) is not None]
        return self.grown(planned, FEWEST_TREES)

    def _forest(self, kind: Forest) -> Member | None:
        """A forest of the trees that there is time and memory for; None if they are too few.

        With groups it is trained, otherwise `grown` does that.
        """
        largest = self._largest(kind)
        # With groups each tree is trained once per fold, and once on all items.
        times = len(self.divisions) + 1 if self.grouped else 1
        affordable = int(FOREST_SHARE * self.budget.left / (times * self.costs.trees(1)))
        n_trees = min(largest, max(affordable, FEWEST_TREES))
        if largest < FEWEST_TREES or not self.budget.allows(
            times * self.costs.trees(n_trees), f"{kind.code} with {n_trees} trees"
        ):
            return None
        forest = clone(kind).set_params(n_estimators=n_trees)
        name = _text(forest)
        forest.set_params(random_state=self.random_state)
        if self.grouped:
            return Member(name, forest, self._out_of_fold(forest, name, [{}], self.X)[0])
        return Member(name, forest, np.empty(0))

    def grown(self, members: Sequence[Member], n_trees: int | None = None) -> list[Member]:
        """The members, their forests with so many trees, or with all."""
        forests = [m for m in members if isinstance(m.classifier, Forest) and not self.grouped]
        grown = compute(
            _grown,
            (self.X, self.Y),
            [(member, n_trees) for member in forests],
            progress=lambda number: self.progress(f"training {forests[number].name}"),
        )
        by_name = {member.name: member for member in grown}
        return [by_name.get(member.name, member) for member in members]

    def _largest(self, kind: Forest) -> int:
        """The most trees that fit into the budget of bytes; 0, with a note, if they are too few."""
        n_items, n_labels = self.Y.shape
        # Twice as many nodes as items, each with two counts of eight bytes for every label.
        tree_bytes = 32 * n_items * n_labels
        per_item = max(1.0, float(self.Y.sum(axis=1).mean()))
        forest = clone(kind).set_params(n_estimators=TREES)
        expected = forest.expected_bytes(n_items, n_labels, labels_per_item=per_item)
        largest = min(TREES, int(TREES * FOREST_BYTES / max(expected, 1)))
        if tree_bytes <= TREE_BYTES and largest >= FEWEST_TREES:
            return largest
        why = (
            f"a tree takes about {tree_bytes / 1e9:.1f} GB while it is grown"
            if tree_bytes > TREE_BYTES
            else f"{TREES} trees take about {expected / 1e6:.0f} MB"
        )
        name = kind.code
        self.budget.notes.append(f"{name} was left out: {why}.")
        self.left_out.append(Candidate(f"{name}+mixture", float("nan"), note=f"left out: {why}"))
        return 0

    def on_all_items(self, members: Sequence[Member]) -> list[Classifier]:
        """The members' classifiers, trained on all items."""
        self.progress("training the chosen classifiers on all items")
        open_ = [member.classifier for member in members if member.out_of_bag is None]
        trained = iter(train_members(open_, self.X, self.Y))
        return [m.classifier if m.out_of_bag is not None else next(trained) for m in members]


def _grown(X: Items, Y: LabelMatrix, member: Member, n_trees: int | None) -> Member:
    """A forest with so many trees, or with all, and the posteriors out of its bags."""
    forest = member.classifier
    assert isinstance(forest, Forest)
    final = forest.n_estimators
    forest.set_params(n_estimators=n_trees or final)
    bags = forest.fit_out_of_bag(X, Y, after=member.out_of_bag)
    forest.set_params(n_estimators=final)
    return Member(member.name, forest, bags.posteriors, bags)


class _Tried(NamedTuple):
    """A candidate with its parts; `screened` if its loss is over some of the samples only."""

    candidate: Candidate
    aggregator: Aggregator
    scores: Scores
    members: list[Member]
    screened: bool = False

    @property
    def has_forest(self) -> bool:
        return any(isinstance(member.classifier, Forest) for member in self.members)

    def loss(self, handicap: float) -> float:
        """The loss to compare by, with the handicap of counting; infinite if it is not known."""
        loss = self.candidate.loss
        if np.isnan(loss):
            return float("inf")
        return loss * (1 + handicap) if isinstance(self.aggregator, PCC) else loss


class _Search:
    """The search for the best pair of classifiers and aggregator."""

    def __init__(
        self,
        X: Items,
        Y: LabelMatrix,
        groups: Groups,
        seconds: float,
        random_state: int,
        progress: Progress,
    ) -> None:
        self.Y, self.groups, self.random_state, self.progress = Y, groups, random_state, progress
        self.budget = Budget(seconds)
        self.preparation = None
        if is_texts(X):
            progress("turning texts into features")
            self.preparation = TextPreparation().fit(X)
            X = self.preparation.transform(X)
        self.X = X
        self.splits = shifted_splits(Y, random_state=random_state, groups=groups)
        folds = sorted({split.fold for split in self.splits})
        some = folds[: (len(folds) + 2) // 3]
        self.some_splits = [split for split in self.splits if split.fold in some]
        self.handicap = HANDICAP * max([1.0, *(SIZE / split.size for split in self.splits)])
        self.trainer = Trainer(
            X, Y, self._divide(), self.budget, random_state, progress, grouped=groups is not None
        )
        self.costs = self.trainer.costs
        self._screened: dict[tuple[str, ...], list[_Tried]] = {}
        self._mixture_settings: Settings = {}

    def run(self) -> Choice:
        self.budget.planned += self.costs.linear(1) + self._cost(1)
        plain, balanced = self._linear()
        # Without validation there is nothing to compare.
        trees = self.trainer.trees() if self.splits else []
        return self._decide(_ensembles(plain, balanced, trees))

    def run_given(self, given: Given) -> Choice:
        """The choice if the items are scores of labellers, with or without features."""
        settings, weight = GIVEN_MIXTURE, GIVEN_SHRINKAGE
        if given.n_labellers is not None:
            settings, weight = FEATURES_MIXTURE, FEATURES_SHRINKAGE
        self._mixture_settings = settings
        if len(self.Y) < MANY:
            # Too few to choose the shrinkage by; the fewer, the noisier are the covariances.
            few = round(max(SHRINKAGE, min(1.0, weight / len(self.Y))), 2)
            self._mixture_settings = settings | {"shrinkage": few}
        return self._decide([[member] for member in self.trainer.given(given)])

    def _divide(self) -> list[Division]:
        n_parts = len(self.Y if self.groups is None else np.unique(self.groups))
        scheme = CrossFit(min(5, max(2, n_parts)), random_state=self.random_state)
        divisions = scheme.divide(self.Y, self.groups)
        warn_of_constant_labels(self.Y, divisions)
        self.folds = np.empty(len(self.Y), dtype=np.int64)
        for number, (_, held) in enumerate(divisions):
            self.folds[held] = number
        return divisions

    def _cost(self, n_members: int) -> float:
        """Seconds of the validation and the fit of a mixture of so many members."""
        search = SEARCH if len(self.Y) >= MANY else 1
        return (FIT + search) * self.costs.mixture(n_members, self.splits)

    def _linear(self) -> tuple[list[Member], list[Member]]:
        """Logistic regressions without and with balanced classes, the most promising first."""
        others = STRENGTHS[1:]
        if not self.splits or not self._allows(len(others), 1, "of other strengths"):
            return self.trainer.linear(STRENGTHS[:1]), []
        members = self.trainer.linear(STRENGTHS)
        plain = self._ranked([[member] for member in members])
        strong = plain[0] is members[-1]
        if strong and self._allows(1, 1, f"with C={STRONGER:g}"):
            members += self.trainer.linear([STRONGER])
            plain = self._ranked([[member] for member in members])
        weights = (*BALANCED, BALANCED_STRONGER) if strong else BALANCED
        if not self._allows(len(weights), 2, "with balanced classes"):
            return plain, []
        weighted = self.trainer.linear(weights, "balanced")
        return plain, self._ranked([[plain[0], member] for member in weighted])[:1]

    def _allows(self, n_settings: int, n_members: int, what: str) -> bool:
        """Whether more logistic regressions may be trained, and screened in ensembles."""
        screening = self.costs.mixture(n_members, self.some_splits)
        cost = self.costs.linear(n_settings) + n_settings * screening
        return self.budget.allows(cost, f"Logistic regression {what}")

    def _ranked(self, ensembles: list[list[Member]]) -> list[Member]:
        """The last members of the ensembles, those of the most promising ensembles first."""
        expected = [min(each.candidate.loss for each in self._screen(e)) for e in ensembles]
        return [ensembles[number][-1] for number in np.argsort(expected, kind="stable")]

    def _screen(self, members: list[Member]) -> list[_Tried]:
        """Each aggregator on the ensemble's scores, compared on some of the samples; done once."""
        key = tuple(member.name for member in members)
        if key not in self._screened:
            self.progress(f"comparing, {_name(members)}")
            scores = scores_of(members)
            found = []
            for aggregator in [self._mixture(), *_counting(members)]:
                quick = aggregator
                if isinstance(aggregator, ScenarioMixture) and aggregator.shrinkage is None:
                    quick = clone(aggregator).set_params(shrinkage=SHRINKAGE)
                candidate = _candidate(members, aggregator, self._loss(quick, scores, screen=True))
                found.append(_Tried(candidate, aggregator, scores, members, screened=True))
            self._screened[key] = found
        return self._screened[key]

    def _mixture(self) -> ScenarioMixture:
        return ScenarioMixture(random_state=self.random_state, **self._mixture_settings)

    def _decide(self, ensembles: list[list[Member]]) -> Choice:
        self.progress("choosing")
        tried = self._validated(self._affordable(ensembles))
        # Losses are ratios to that of the training prevalence, which has nothing to compute.
        constant = Candidate("naive", 1.0, dict.fromkeys(tried[0].candidate.by_family, 1.0))
        tried.append(_Tried(constant, TrainingPrevalence(), Scores(self.X, "features"), []))
        # Without validation there is nothing to compare; the mixture is the safest guess.
        final = [each for each in tried if not each.screened]
        best = _best(final, self.handicap) if self.splits else tried[0]
        rest = sorted(
            (each for each in tried if each is not best), key=lambda each: each.loss(self.handicap)
        )
        others = [_explained(each, best, self.handicap) for each in rest]
        return self._choice(best, (best.candidate, *others, *self.trainer.left_out))

    def _affordable(self, ensembles: list[list[Member]]) -> list[_Tried]:
        """The ensembles that are worth their time, screened; the smallest always."""
        tried: list[_Tried] = []
        for members in ensembles:
            if _is_spoilt(members, tried):
                continue
            cost = self.costs.mixture(len(members), self.some_splits)
            if not tried or self.budget.allows(cost, _name(members)):
                tried += self._screen(members)
        return tried

    def _validated(self, tried: list[_Tried]) -> list[_Tried]:
        """All that were screened; the promising ones, the best at least, with all samples."""
        order = sorted(tried, key=lambda each: each.loss(self.handicap))
        promising = _promising(order, self.handicap)
        members = {member.name: member for each in promising for member in each.members}
        members = {member.name: member for member in self.trainer.grown([*members.values()])}
        validated: list[_Tried] = []
        for screened in promising:
            whole = [members[member.name] for member in screened.members]
            each = screened._replace(members=whole, scores=scores_of(whole))
            is_mixture = isinstance(each.aggregator, ScenarioMixture)
            cost = self._cost(len(each.members)) if is_mixture else 0.0
            what = f"{each.candidate.name} on all samples"
            if not validated or self.budget.allows(cost, what):
                self.progress(f"choosing, {each.candidate.name}")
                loss = self._loss(each.aggregator, each.scores)
                candidate = _candidate(each.members, each.aggregator, loss)
                validated.append(each._replace(candidate=candidate, screened=False))
        names = {each.candidate.name for each in validated}
        return validated + [each for each in order if each.candidate.name not in names]

    def _choice(self, best: _Tried, candidates: tuple[Candidate, ...]) -> Choice:
        if self.budget.cut_short:
            warnings.warn(
                f"The choice of a method was cut short after {self.budget.spent:.0f} s; another "
                "run may choose another method. Give a larger time budget.",
                PrevalensWarning,
                stacklevel=2,
            )
        self.progress("fitting the aggregator")
        best.aggregator.fit(best.scores, self.Y, groups=self.groups)
        fitted = self.trainer.on_all_items(best.members)
        classifier = fitted[0] if fitted else None
        if len(fitted) > 1:
            n_labels, n_features = self.Y.shape[1], self.X.shape[1]
            classifier = ClassifierEnsemble.of_fitted(fitted, n_labels, n_features)
        if fitted and not isinstance(classifier, Given):
            steps = [] if self.preparation is None else [self.preparation]
            names = None if self.preparation is None else self.preparation.terms_
            guard = ColumnGuard().fit(self.X, self.Y, names=names)
            classifier = make_pipeline(*steps, guard, classifier)
        return Choice(
            classifier,
            best.aggregator,
            candidates,
            self.budget.spent,
            tuple(self.budget.notes),
            best.scores,
            self.folds,
            self.budget.cut_short,
        )

    def _loss(
        self, aggregator: Aggregator, scores: Scores, *, screen: bool = False
    ) -> tuple[float, dict[str, float]]:
        splits = self.some_splits if screen else self.splits
        return validation_loss(aggregator, scores, self.Y, splits)


def lighter(classifier: Classifier) -> Classifier:
    """An unfitted copy that takes less time: looser regressions, fewer trees, in an ensemble too.

    Its posteriors differ from those of the original by far less than those of two folds do.
    """
    if isinstance(classifier, Pipeline):
        return make_pipeline(*map(clone, classifier[:-1]), lighter(classifier[-1]))
    if isinstance(classifier, ClassifierEnsemble):
        return ClassifierEnsemble.of_members(*map(lighter, classifier.members()))
    copy = clone(classifier)
    if isinstance(copy, PerLabel):
        copy.set_params(tol=max(copy.tol, TOLERANCE))
    if isinstance(copy, Forest):
        copy.set_params(n_estimators=min(copy.n_estimators, FEWEST_TREES))
    return copy


def validation_loss(
    aggregator: Aggregator, scores: Scores, Y: LabelMatrix, splits: Sequence[ShiftedSplit]
) -> tuple[float, dict[str, float]]:
    """Validation loss of an aggregator under drawn shifts, in all and by family of shift.

    Parameters
    ----------
    aggregator : Aggregator
        It is cloned.
    scores : Scores
        Out-of-fold scores of the items.
    Y : 0/1 array, shape (n_items, n_labels)
    splits : sequence of ShiftedSplit
        The loss is NaN without any.
    """
    if not splits:
        return float("nan"), {}
    if isinstance(aggregator, TrainingPrevalence):
        # Losses are ratios to that of the training prevalence.
        return 1.0, {split.family: 1.0 for split in splits}
    if isinstance(aggregator, ScenarioMixture):
        by_family = aggregator.validation_losses(scores, Y, splits=splits)
        return total_loss(by_family), by_family
    fitted: dict[int, Aggregator] = {}

    def estimate(split: ShiftedSplit) -> Floats:
        if split.fold not in fitted:
            fitted[split.fold] = clone(aggregator).fit(scores.take(split.rest), Y[split.rest])
        return fitted[split.fold].aggregate(scores.take(split.held), split.samples)

    by_family = losses(splits, estimate)
    return total_loss(by_family), by_family


def _candidate(
    members: list[Member], aggregator: Aggregator, loss: tuple[float, dict[str, float]]
) -> Candidate:
    return Candidate(f"{_name(members)}+{_text(aggregator)}", *loss)


def _is_spoilt(members: list[Member], tried: list[_Tried]) -> bool:
    """Whether some of the members, of those that were tried, were worse than a part of them."""
    losses_of = {
        frozenset(member.name for member in each.members): each.candidate.loss
        for each in tried
        if isinstance(each.aggregator, ScenarioMixture)
    }
    inside = [names for names in losses_of if names < {member.name for member in members}]
    return any(
        losses_of[names] > (1 + MARGIN) * losses_of[part]
        for names in inside
        for part in inside
        if part < names
    )


def _promising(order: list[_Tried], handicap: float) -> list[_Tried]:
    """Those about as good as the best; of those with forests, only if they may be worth it."""

    def near(tried: list[_Tried]) -> list[_Tried]:
        return [e for e in tried if e.loss(handicap) <= (1 + MARGIN) * tried[0].loss(handicap)]

    lean, forests = ([e for e in order if e.has_forest == has] for has in (False, True))
    if not lean or not forests:
        return near(order)
    without = lean[0].loss(handicap)
    worth = (1 - FOREST_GAIN + MARGIN + MORE_TREES_GAIN) * without
    kept = [each for each in near(forests) if each.loss(handicap) <= worth]
    if kept and (1 + MARGIN) * kept[0].loss(handicap) <= (1 - FOREST_GAIN) * without:
        return [*kept, lean[0]]
    return sorted([*near(lean), *kept], key=lambda each: each.loss(handicap))


def _ensembles(
    plain: list[Member], balanced: list[Member], trees: list[Member]
) -> list[list[Member]]:
    """The ensembles that are compared, each member alone first."""
    lead, wide = plain[:1], plain + balanced
    ensembles = [lead, *([tree] for tree in trees), trees, lead + balanced, lead + trees]
    ensembles += [lead + balanced + trees, wide, wide + trees]
    different = {
        tuple(member.name for member in members): members for members in ensembles if members
    }
    return sorted(different.values(), key=len)


def _counting(members: list[Member]) -> list[Aggregator]:
    """The mean posterior; nothing if class weights distort the posteriors of some members.

    Nor with features besides given scores: some hundred labelled items cannot tell when it is
    better than the mixture, and its intervals are too narrow if items drift.
    """
    kinds = [member.classifier for member in members]
    featured = any(isinstance(kind, Given) and kind.n_labellers is not None for kind in kinds)
    weighted = any(member.weighted for member in members)
    return [] if weighted or featured else [PCC(point="median")]


def _text(part: object) -> str:
    return to_text(expression_of(part))


def _name(members: list[Member]) -> str:
    names = ",".join(member.name for member in members)
    return names if len(members) == 1 else f"{ClassifierEnsemble.code}({names})"


def _best(tried: list[_Tried], handicap: float) -> _Tried:
    """The best choice; with forests only if they lower the loss by `FOREST_GAIN`."""
    best = _least(tried, handicap)
    lean = [each for each in tried if not each.has_forest]
    if not best.has_forest or not lean:
        return best
    without = _least(lean, handicap)
    earned = best.loss(handicap) <= (1 - FOREST_GAIN) * without.loss(handicap)
    return best if earned else without


def _least(tried: list[_Tried], handicap: float) -> _Tried:
    """The least loss; among mixtures with about that loss, the most classifiers."""
    best = min(tried, key=lambda each: each.loss(handicap))
    if not isinstance(best.aggregator, ScenarioMixture):
        return best
    limit = best.candidate.loss * (1 + CLOSE)
    close = [
        each
        for each in tried
        if isinstance(each.aggregator, ScenarioMixture) and each.candidate.loss <= limit
    ]
    return max(close, key=lambda each: (len(each.members), -each.candidate.loss))


def _explained(other: _Tried, best: _Tried, handicap: float) -> Candidate:
    """A candidate with a note if forests were refused that would have been a little better."""
    better = other.loss(handicap) < best.loss(handicap)
    if not (better and other.has_forest and not best.has_forest):
        return other.candidate
    gain = 1 - other.loss(handicap) / best.loss(handicap)
    note = f"forests must lower the loss by {FOREST_GAIN:.0%}; these do by {gain:.1%}"
    return replace(other.candidate, note=note)
