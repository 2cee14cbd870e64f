"""The automatic choice: which classifiers and which aggregator, by rehearsed quantification loss.

Every candidate is judged by the error of its estimates in samples of the labelled items themselves,
under several families of shift, with out-of-fold scores; nothing else than the labelled items is
looked at. What does not fit into the time budget is not tried.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from prevalens.aggregators import PCC, Aggregator, ScenarioMixture, TrainingPrevalence
from prevalens.aggregators.rehearsal import SIZE, Act, losses, rehearse, total_loss
from prevalens.classifiers import CrossFit, Forest, Panel, PerLabel
from prevalens.classifiers.constant import train
from prevalens.classifiers.labelled import Division, warn_of_constant_labels
from prevalens.classifiers.response import response
from prevalens.classifiers.settings import fit_settings
from prevalens.expression import expression_of, to_text
from prevalens.preparation import ColumnGuard, TextPreparation
from prevalens.scores import Scores
from prevalens.validation import InputError, is_texts, take_items

__all__ = ["Candidate", "Choice", "choose"]

_Labels = npt.NDArray[np.int8]
#: Strengths of the logistic regressions, from strong to weak regularisation.
STRENGTHS = (0.1, 1.0, 10.0, 100.0)
TREES = 200
#: A forest with fewer trees than this is not worth its noise.
FEWEST_TREES = 40
#: Trees whose training is timed before the forest is planned.
TIMED_TREES = 4
#: The share of the budget that the logistic regressions may plan for, and the forest.
LINEAR_SHARE, FOREST_SHARE = 0.4, 0.5
#: The share of the budget that panels of all strengths may take to judge, and how much longer that
#: takes than judging each strength alone.
PANEL_SHARE, WIDER = 0.15, 1.5
#: Panels whose losses differ by less than this share are as good; the one with more members is
#: taken, as rehearsal samples are smaller and less shifted than real ones may be.
CLOSE = 0.01
#: By how much counting must be better than the mixture to be taken, in rehearsal samples of the
#: usual size; the smaller they are, the more noise favours counting, which cannot follow shifts
#: larger than those the labelled items let one rehearse.
HANDICAP = 0.05


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
        head = f"{'method':42} {'all':>6} " + " ".join(f"{name:>10}" for name in families)
        lines = [
            f"{one.name:42} {one.loss:6.3f} "
            + " ".join(f"{one.by_family.get(name, float('nan')):10.3f}" for name in families)
            for one in self.candidates
        ]
        return "\n".join([head, *lines])


@dataclass
class _Member:
    """A classifier with its out-of-fold scores; trained on all items only if it is chosen."""

    name: str
    classifier: Any
    scores: npt.NDArray[np.float64]
    trained: bool = False


class _Tried(NamedTuple):
    """A candidate with what it is made of."""

    candidate: Candidate
    aggregator: Aggregator
    scores: Scores
    group: list[_Member]


def choose(
    X: Any,
    Y: _Labels,
    *,
    time_budget: float = 600.0,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Choice:
    """Choose classifiers and an aggregator for labelled items, and fit them.

    Parameters
    ----------
    X : matrix of features, or texts
    Y : 0/1 array of int8, shape (n_items, n_labels)
    time_budget : float
        Seconds to plan with. Small data are done in a few; what large data leave no time for is
        not tried. The plan is an estimate, not a stop-watch.
    seed : int
    progress : callable, optional
        Told in a few words what comes next.

    Notes
    -----
    Tried are logistic regressions per label of four strengths, all of them together, a forest, and
    panels of these; each with the mean posterior and with the scenario mixture; and the training
    prevalence.

    Examples
    --------
    >>> from prevalens.datasets import synthetic
    >>> data = synthetic(n_train=150, n_labels=3, seed=0)
    >>> choice = choose(data.train.X, data.train.Y, time_budget=5)
    >>> "naive" in [one.name for one in choice.candidates]
    True
    """
    if not time_budget > 0:
        raise InputError(f"time_budget must be above 0 seconds; got {time_budget}.")
    search = _Search(X, Y, time_budget, seed, progress or (lambda _: None))
    return search.run()


class _Search:
    """One choice in the making."""

    def __init__(
        self, X: Any, Y: _Labels, budget: float, seed: int, tell: Callable[[str], None]
    ) -> None:
        self.start = time.perf_counter()
        self.Y, self.budget, self.seed, self.tell = Y, budget, seed, tell
        self.preparation = None
        if is_texts(X):
            tell("turning texts into features")
            self.preparation = TextPreparation().fit(X)
            X = self.preparation.transform(X)
        self.X = X
        self.acts = rehearse(Y, seed=seed, stratified=False)
        self.notes: list[str] = []
        self.folds: npt.NDArray[np.intp] | None = None

    def run(self) -> Choice:
        scheme = CrossFit(min(5, max(2, len(self.Y))), seed=self.seed)
        divisions = scheme.divide(self.Y) if len(self.Y) >= 2 else []
        if not divisions:
            raise InputError("One labelled item is too few to learn from; give at least two.")
        warn_of_constant_labels(self.Y, divisions)
        self.folds = np.empty(len(self.Y), dtype=np.intp)
        for number, (_, held) in enumerate(divisions):
            self.folds[held] = number
        linear = self._linear(divisions)
        forest = self._forest(divisions)
        return self._decide(linear, [] if forest is None else [forest])

    def _left(self) -> float:
        return self.budget - (time.perf_counter() - self.start)

    def _linear(self, divisions: Sequence[Division]) -> list[_Member]:
        """Logistic regressions of all strengths, the most promising one first."""
        self.tell("training logistic regressions")
        began = time.perf_counter()
        first = train(PerLabel(), self.X, self.Y)
        # All strengths are solved together, which saves about half.
        one_round = (time.perf_counter() - began) * len(divisions) * len(STRENGTHS) / 2
        if not self.acts or one_round > LINEAR_SHARE * self.budget:
            if self.acts:
                self.notes.append("Only one strength of the logistic regression was tried.")
            return [_Member("lr", first, self._out_of_fold([{}], divisions)[0], trained=True)]
        found = self._out_of_fold([{"C": strength} for strength in STRENGTHS], divisions)
        members = []
        for C, scores in zip(STRENGTHS, found, strict=True):
            one = first if first.C == C else PerLabel(C=C)
            name = to_text(expression_of(one))
            members.append(_Member(name, one, scores, trained=one is first))
        self.tell("comparing logistic regressions")
        began = time.perf_counter()
        promises = [self._promise(one) for one in members]
        spent = time.perf_counter() - began
        members = [members[number] for number in np.argsort(promises, kind="stable")]
        if spent * WIDER <= PANEL_SHARE * self.budget:
            return members
        self.notes.append("Logistic regressions of several strengths were not joined in a panel.")
        return members[:1]

    def _promise(self, member: _Member) -> float:
        """What may be expected of its scores: the better of counting and a plain mixture."""
        self.tell(f"comparing logistic regressions, {member.name}")
        scores = Scores(member.scores)
        plain = ScenarioMixture(0.1, random_state=self.seed)
        counted = PCC(point="median")
        return min(self._loss(one, scores)[0] for one in (plain, counted))

    def _out_of_fold(
        self, settings: Sequence[dict[str, Any]], divisions: Sequence[Division]
    ) -> list[npt.NDArray[np.float64]]:
        found = [np.empty(self.Y.shape) for _ in settings]
        for number, (rest, held) in enumerate(divisions):
            self.tell(f"logistic regressions, fold {number + 1} of {len(divisions)}")
            X_rest, X_held = take_items(self.X, rest), take_items(self.X, held)
            for scores, one in zip(
                found, fit_settings(PerLabel(), settings, X_rest, self.Y[rest]), strict=True
            ):
                scores[held] = response(one, X_held, "posteriors", self.Y.shape[1]).values
        return found

    def _forest(self, divisions: Sequence[Division]) -> _Member | None:
        """A forest of as many trees as there is time for; None if they would be too few."""
        if not self.acts:
            return None
        self.tell("timing a forest")
        began = time.perf_counter()
        train(Forest(TIMED_TREES, random_state=self.seed), self.X, self.Y)
        per_tree = (time.perf_counter() - began) / TIMED_TREES
        rounds = len(divisions) + 1
        affordable = int(FOREST_SHARE * self._left() / max(per_tree * rounds, 1e-9))
        if affordable < FEWEST_TREES:
            self.notes.append(
                f"A forest was left out: {FEWEST_TREES} trees would take "
                f"{per_tree * rounds * FEWEST_TREES:.0f} s."
            )
            return None
        n_trees = min(TREES, affordable)
        forest = Forest(n_trees, random_state=self.seed)
        scores = np.empty(self.Y.shape)
        for number, (rest, held) in enumerate(divisions):
            self.tell(f"forest, fold {number + 1} of {len(divisions)}")
            one = train(clone(forest), take_items(self.X, rest), self.Y[rest])
            X_held = take_items(self.X, held)
            scores[held] = response(one, X_held, "posteriors", self.Y.shape[1]).values
        name = f"forest({n_trees})" if n_trees != 100 else "forest"
        return _Member(name, forest, scores)

    def _decide(self, linear: list[_Member], forest: list[_Member]) -> Choice:
        self.tell("choosing")
        tried: list[_Tried] = []
        for group in _groups(linear, forest):
            self.tell(f"choosing, {_name(group)}")
            scores = _scores([one.scores for one in group])
            for aggregator in (PCC(point="median"), ScenarioMixture(random_state=self.seed)):
                loss, by_family = self._loss(aggregator, scores)
                label = f"{_name(group)}+{to_text(expression_of(aggregator))}"
                tried.append(_Tried(Candidate(label, loss, by_family), aggregator, scores, group))
        # Losses are ratios to that of the training prevalence, which has nothing to compute.
        constant = Candidate("naive", 1.0, dict.fromkeys(tried[0].candidate.by_family, 1.0))
        tried.append(_Tried(constant, TrainingPrevalence(), Scores(self.X, "features"), []))
        # Without rehearsal there is nothing to compare; the mixture is the safest guess.
        handicap = HANDICAP * max([1.0, *(SIZE / act.size for act in self.acts)])
        best = _best(tried, handicap) if self.acts else tried[1]
        rest = [one for one in tried if one is not best]
        rest.sort(key=lambda one: _handicapped(one, handicap))
        candidates = (best.candidate, *(one.candidate for one in rest))
        return self._choice(best.aggregator, best.scores, best.group, candidates)

    def _choice(
        self,
        aggregator: Aggregator,
        scores: Scores,
        group: list[_Member],
        candidates: tuple[Candidate, ...],
    ) -> Choice:
        self.tell("fitting the aggregator")
        if not hasattr(aggregator, "n_labels_"):
            aggregator.fit(scores, self.Y)
        fitted = [self._trained(one) for one in group]
        classifier = fitted[0] if fitted else None
        if len(fitted) > 1:
            classifier = Panel.of_fitted(fitted, self.Y.shape[1])
        if group:
            steps = [] if self.preparation is None else [self.preparation]
            guard = ColumnGuard(names=getattr(self.preparation, "terms_", None))
            classifier = make_pipeline(*steps, guard.fit(self.X, self.Y), classifier)
        seconds = time.perf_counter() - self.start
        return Choice(
            classifier, aggregator, candidates, seconds, tuple(self.notes), scores, self.folds
        )

    def _trained(self, member: _Member) -> Any:
        if member.trained:
            return member.classifier
        self.tell(f"{member.name}, all items")
        return train(member.classifier, self.X, self.Y)

    def _loss(self, aggregator: Aggregator, scores: Scores) -> tuple[float, dict[str, float]]:
        """Rehearsed loss; the mixture's own rehearsal is taken as it is."""
        if isinstance(aggregator, ScenarioMixture):
            aggregator.fit(scores, self.Y)
            return aggregator.loss_, aggregator.losses_
        if not self.acts:
            return float("nan"), {}

        def estimate(act: Act) -> npt.NDArray[np.float64]:
            fitted = clone(aggregator).fit(scores.take(act.rest), self.Y[act.rest])
            return fitted.aggregate(scores.take(act.held), act.samples)

        by_family = losses(self.acts, estimate)
        return total_loss(by_family), by_family


def _groups(linear: list[_Member], forest: list[_Member]) -> list[list[_Member]]:
    """The panels that are compared, each member alone first."""
    groups = [linear[:1], linear, forest, linear[:1] + forest, linear + forest]
    different = {tuple(one.name for one in group): group for group in groups if group}
    return sorted(different.values(), key=len)


def _name(group: list[_Member]) -> str:
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


def _scores(members: Sequence[npt.NDArray[np.float64]]) -> Scores:
    """Scores of one member, or of several side by side with their mean."""
    values = [np.clip(one, 0, 1) for one in members]
    if len(values) == 1:
        return Scores(values[0])
    return Scores(np.mean(values, axis=0), views=np.hstack(values))
