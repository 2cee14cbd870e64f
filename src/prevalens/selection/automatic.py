"""What an automatic choice answers: the chosen method, and what it was chosen from."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from prevalens.aggregators import PCC, Aggregator, ScenarioMixture, TrainingPrevalence
from prevalens.classifiers import ClassifierEnsemble, CrossFit
from prevalens.crossfit import Division, warn_of_constant_labels
from prevalens.expression import expression_of, to_text
from prevalens.scores import Scores
from prevalens.selection.members import Budget, Member, Trainer, scores_of
from prevalens.tables.column_guard import ColumnGuard
from prevalens.tables.text import TextPreparation
from prevalens.types import Floats, Groups, Items, LabelMatrix, Progress
from prevalens.validation import InputError, is_texts
from prevalens.validation_shifts import SIZE, ShiftedSplit, losses, shifted_splits, total_loss

__all__ = ["Candidate", "Choice", "choose"]


@dataclass(frozen=True)
class Candidate:
    """One method that was tried.

    Attributes
    ----------
    name : str
    loss : float
        Mean absolute error in rehearsal, as a ratio to that of the training prevalence.
    by_family : dict of str to float
        The same by family of shift.
    """

    name: str
    loss: float
    by_family: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """What was chosen, fitted on all items, and what it was chosen from.

    Attributes
    ----------
    classifier, aggregator : fitted
    candidates : tuple of Candidate
        The best first.
    seconds : float
    notes : tuple of str
        What was left out for lack of time, one sentence each.
    scores : Scores or None
        Out-of-fold scores the aggregator was fitted on; a quantifier does not keep them.
    folds : array of int, shape (n_items,), or None
        Which items were scored by the same classifier.
    """

    classifier: Any
    aggregator: Aggregator
    candidates: tuple[Candidate, ...]
    seconds: float
    notes: tuple[str, ...]
    scores: Scores | None = None
    folds: npt.NDArray[np.intp] | None = None

    @property
    def name(self) -> str:
        """The chosen method in the words of the catalogue."""
        return self.candidates[0].name

    def table(self) -> str:
        """The candidates, one line each, as text."""
        families = list(self.candidates[0].by_family)
        width = max([10, *map(len, families)])
        head = f"{'method':42} {'all':>6} " + " ".join(f"{name:>{width}}" for name in families)
        lines = [
            f"{one.name:42} {one.loss:6.3f} "
            + " ".join(f"{one.by_family.get(name, float('nan')):{width}.3f}" for name in families)
            for one in self.candidates
        ]
        return "\n".join([head, *lines])


_Labels = LabelMatrix
#: The share of the budget that judging pairs of logistic regressions may take, or panels of all
#: strengths; and how much longer that takes than judging one alone.
PANEL_SHARE, PAIR, WIDE = 0.15, 5.0, 6.0
#: Panels whose losses differ by less than this share are as good; the one with more members is
#: taken, as rehearsal samples are smaller and less shifted than real ones may be.
CLOSE = 0.005
#: By how much counting must be better than the mixture to be taken, in rehearsal samples of the
#: usual size; the smaller they are, the more noise favours counting, which cannot follow shifts
#: larger than those the labelled items let one rehearse.
HANDICAP = 0.05


class _Tried(NamedTuple):
    """A candidate with what it is made of."""

    candidate: Candidate
    aggregator: Aggregator
    scores: Scores
    group: list[Member]


def choose(
    X: Items,
    Y: _Labels,
    *,
    groups: Groups = None,
    time_budget: float = 600.0,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Choice:
    """Choose classifiers and an aggregator for labelled items, and fit them.

    Parameters
    ----------
    X : matrix of features, or texts
    Y : 0/1 array of int8, shape (n_items, n_labels)
    groups : sequence, one entry per item, optional
        Items of one group are never both trained on and scored.
    time_budget : float
        Seconds to plan with. Small data are done in a few; what large data leave no time for is
        not tried. The plan is an estimate, not a stop-watch.
    random_state : int
    progress : callable, optional
        Told in a few words what comes next.

    Notes
    -----
    Tried are logistic regressions per label of four strengths, and of three with balanced
    classes, a forest, extra trees on dense features, and panels of these; each with the mean
    posterior and with the scenario mixture; and the training prevalence.

    Examples
    --------
    >>> from prevalens.datasets import synthetic
    >>> data = synthetic(n_train=150, n_labels=3, random_state=0)
    >>> choice = choose(data.train.X, data.train.Y, time_budget=5)
    >>> "naive" in [one.name for one in choice.candidates]
    True
    """
    if not time_budget > 0:
        raise InputError(f"time_budget must be above 0 seconds; got {time_budget}.")
    search = _Search(X, Y, groups, time_budget, random_state, progress or (lambda _: None))
    return search.run()


class _Linear(NamedTuple):
    """Logistic regressions, the most promising first of each sort.

    Attributes
    ----------
    plain, balanced : list of Member
        Without and with balanced classes. Those there is no time to judge in panels are left out.
    """

    plain: list[Member]
    balanced: list[Member]


class _Search:
    """One choice in the making."""

    def __init__(
        self,
        X: Items,
        Y: _Labels,
        groups: Groups,
        budget: float,
        random_state: int,
        tell: Progress,
    ) -> None:
        self.budget = Budget(budget)
        self.Y, self.groups, self.random_state, self.tell = Y, groups, random_state, tell
        self.preparation = None
        if is_texts(X):
            tell("turning texts into features")
            self.preparation = TextPreparation().fit(X)
            X = self.preparation.transform(X)
        self.X = X
        self.splits = shifted_splits(Y, random_state=random_state, stratified=False)
        self.folds: npt.NDArray[np.intp] | None = None

    def run(self) -> Choice:
        divisions = self._divide()
        trainer = Trainer(self.X, self.Y, divisions, self.budget, self.random_state, self.tell)
        linear = self._linear(trainer)
        # Without rehearsal there is nothing to compare.
        trees = trainer.trees() if self.splits else []
        return self._decide(_groups(linear, trees), trainer)

    def _divide(self) -> list[Division]:
        if len(self.Y) < 2:
            raise InputError("One labelled item is too few to learn from; give at least two.")
        n_parts = len(self.Y if self.groups is None else np.unique(self.groups))
        scheme = CrossFit(min(5, max(2, n_parts)), random_state=self.random_state)
        divisions = scheme.divide(self.Y, self.groups)
        warn_of_constant_labels(self.Y, divisions)
        self.folds = np.empty(len(self.Y), dtype=np.intp)
        for number, (_, held) in enumerate(divisions):
            self.folds[held] = number
        return divisions

    def _linear(self, trainer: Trainer) -> _Linear:
        members = trainer.linear(alone=not self.splits)
        if len(members) == 1:
            return _Linear(members, [])
        began = time.perf_counter()
        plain = self._ranked([[one] for one in members if not one.weighted])
        each = (time.perf_counter() - began) / len(plain)
        allowed = PANEL_SHARE * self.budget.seconds
        balanced: list[Member] = []
        if each * PAIR <= allowed:
            balanced = self._ranked([[plain[0], one] for one in members if one.weighted])
        else:
            self.budget.notes.append("Logistic regressions were not joined in pairs.")
        if each * WIDE > allowed:
            self.budget.notes.append("Logistic regressions of all strengths were not joined.")
            plain = plain[:1]
        return _Linear(plain, balanced[:1])

    def _ranked(self, groups: list[list[Member]]) -> list[Member]:
        """The last members of the groups, those of the most promising groups first."""
        promises = [self._promise(group) for group in groups]
        return [groups[number][-1] for number in np.argsort(promises, kind="stable")]

    def _promise(self, group: list[Member]) -> float:
        """What may be expected of their scores: the better of counting and a plain mixture."""
        self.tell(f"comparing logistic regressions, {_name(group)}")
        scores = scores_of(group)
        aggregators = [ScenarioMixture(0.1, random_state=self.random_state), *_counting(group)]
        return min(self._loss(one, scores)[0] for one in aggregators)

    def _decide(self, groups: list[list[Member]], trainer: Trainer) -> Choice:
        self.tell("choosing")
        tried: list[_Tried] = []
        for group in groups:
            self.tell(f"choosing, {_name(group)}")
            scores = scores_of(group)
            aggregators = [ScenarioMixture(random_state=self.random_state), *_counting(group)]
            for aggregator in aggregators:
                loss, by_family = self._loss(aggregator, scores)
                label = f"{_name(group)}+{to_text(expression_of(aggregator))}"
                tried.append(_Tried(Candidate(label, loss, by_family), aggregator, scores, group))
        # Losses are ratios to that of the training prevalence, which has nothing to compute.
        constant = Candidate("naive", 1.0, dict.fromkeys(tried[0].candidate.by_family, 1.0))
        tried.append(_Tried(constant, TrainingPrevalence(), Scores(self.X, "features"), []))
        # Without rehearsal there is nothing to compare; the mixture is the safest guess.
        handicap = HANDICAP * max([1.0, *(SIZE / split.size for split in self.splits)])
        best = _best(tried, handicap) if self.splits else tried[0]
        rest = [one for one in tried if one is not best]
        rest.sort(key=lambda one: _handicapped(one, handicap))
        candidates = (best.candidate, *(one.candidate for one in rest))
        return self._choice(best, candidates, trainer)

    def _choice(self, best: _Tried, candidates: tuple[Candidate, ...], trainer: Trainer) -> Choice:
        self.tell("fitting the aggregator")
        aggregator = best.aggregator
        if not hasattr(aggregator, "n_labels_"):
            aggregator.fit(best.scores, self.Y)
        fitted = [trainer.on_all_items(one) for one in best.group]
        classifier = fitted[0] if fitted else None
        if len(fitted) > 1:
            classifier = ClassifierEnsemble.of_fitted(fitted, self.Y.shape[1], self.X.shape[1])
        if fitted:
            steps = [] if self.preparation is None else [self.preparation]
            guard = ColumnGuard(names=getattr(self.preparation, "terms_", None))
            classifier = make_pipeline(*steps, guard.fit(self.X, self.Y), classifier)
        notes = tuple(self.budget.notes)
        return Choice(
            classifier, aggregator, candidates, self.budget.spent, notes, best.scores, self.folds
        )

    def _loss(self, aggregator: Aggregator, scores: Scores) -> tuple[float, dict[str, float]]:
        """Rehearsed loss; the mixture's own rehearsal is taken as it is."""
        if not self.splits:
            return float("nan"), {}
        if isinstance(aggregator, ScenarioMixture):
            by_family = aggregator.validation_losses(scores, self.Y)
            return total_loss(by_family), by_family

        def estimate(split: ShiftedSplit) -> Floats:
            fitted = clone(aggregator).fit(scores.take(split.rest), self.Y[split.rest])
            return fitted.aggregate(scores.take(split.held), split.samples)

        by_family = losses(self.splits, estimate)
        return total_loss(by_family), by_family


def _groups(linear: _Linear, trees: list[Member]) -> list[list[Member]]:
    """The panels that are compared, each member alone first."""
    lead, beside = linear.plain[:1], linear.balanced
    groups = [lead, *([one] for one in trees), trees, lead + beside, lead + trees]
    groups += [lead + beside + trees, linear.plain + beside, linear.plain + beside + trees]
    different = {tuple(one.name for one in group): group for group in groups if group}
    return sorted(different.values(), key=len)


def _counting(group: list[Member]) -> list[Aggregator]:
    """The mean posterior, unless some members do not count: it would be that of the others."""
    return [] if any(one.weighted for one in group) else [PCC(point="median")]


def _name(group: list[Member]) -> str:
    names = ",".join(one.name for one in group)
    return names if len(group) == 1 else f"panel({names})"


def _handicapped(one: _Tried, handicap: float) -> float:
    loss = one.candidate.loss
    if np.isnan(loss):
        return float("inf")
    return loss * (1 + handicap) if isinstance(one.aggregator, PCC) else loss


def _best(tried: list[_Tried], handicap: float) -> _Tried:
    """The least loss; of mixtures about as good, the one with most classifiers."""
    best = min(tried, key=lambda one: _handicapped(one, handicap))
    if not isinstance(best.aggregator, ScenarioMixture):
        return best
    limit = best.candidate.loss * (1 + CLOSE)
    close = [
        one
        for one in tried
        if isinstance(one.aggregator, ScenarioMixture) and one.candidate.loss <= limit
    ]
    return max(close, key=lambda one: (len(one.group), -one.candidate.loss))
