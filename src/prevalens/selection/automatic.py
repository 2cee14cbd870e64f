"""The automatic choice: which classifiers and which aggregator ``Quantifier()`` uses.

Classifiers are scored out of fold, each alone and in ensembles; each set of scores is read by the
mixture and by counting; the pair with the least validation loss is fitted on all items. The
validation loss is the error on samples of held-out items under several families of shift.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from prevalens.aggregators import PCC, Aggregator, ScenarioMixture, TrainingPrevalence
from prevalens.classifiers import ClassifierEnsemble, CrossFit, ExtraTrees, Forest, PerLabel
from prevalens.classifiers.ensemble import is_weighted, mean_posterior
from prevalens.crossfit import Division, out_of_fold, warn_of_constant_labels
from prevalens.expression import expression_of, to_text
from prevalens.response import train
from prevalens.scores import Scores
from prevalens.tables.column_guard import ColumnGuard
from prevalens.tables.text import TextPreparation
from prevalens.types import Classifier, Floats, Groups, Ints, Items, LabelMatrix, Progress, Settings
from prevalens.validation import InputError, is_texts
from prevalens.validation_shifts import SIZE, ShiftedSplit, losses, shifted_splits, total_loss

#: Strengths of the logistic regressions, without and with balanced classes; balanced classes raise
#: the scores of rare labels above the noise.
STRENGTHS, BALANCED = (0.1, 1.0, 10.0, 100.0), (0.1, 1.0, 10.0)
#: Trees of a forest; fewer than the second are not worth their noise; the third are timed before
#: the forest is planned.
TREES, FEWEST_TREES, TIMED_TREES = 200, 40, 4
#: The share of the time budget that the logistic regressions may plan for, and each forest.
LINEAR_SHARE, FOREST_SHARE = 0.4, 0.5
#: Bytes that a fitted forest may take, in memory and in a model file that is not compressed. All
#: other parts of a model of usual size stay below.
FOREST_BYTES = 100_000_000
#: Bytes that one tree may take while it is grown, in scikit-learn's form.
TREE_BYTES = 1_000_000_000
#: By how much forests must lower the loss of the best choice without them, as a share: they cost
#: many times the time and the size.
FOREST_GAIN = 0.03
#: The share of the budget that judging pairs of logistic regressions may take, or ensembles of all
#: strengths; and how much longer that takes than judging one alone.
ENSEMBLE_SHARE, PAIR, WIDE = 0.15, 5.0, 6.0
#: Ensembles whose losses differ by less than this share are as good; the one with more members is
#: taken, as validation samples are smaller and less shifted than real samples may be.
CLOSE = 0.005
#: By how much counting must be better than the mixture to be taken, on validation samples of the
#: usual size; the smaller they are, the more noise favours counting, which cannot follow shifts
#: larger than those of the validation samples.
HANDICAP = 0.05


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


def choose(
    X: Items,
    Y: LabelMatrix,
    *,
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
    groups : sequence, one entry per item, optional
        Items of one group are never both trained on and scored.
    time_budget : float
        Seconds to plan with. Small data take a few seconds; with large data, methods that would
        take too long are not tried. The plan is an estimate; the time is not enforced.
    random_state : int
    progress : callable, optional
        Called with a short message before each stage.

    Notes
    -----
    Tried are logistic regressions per label of four strengths, and of three with balanced
    classes, a forest, extra trees on dense features, and ensembles of these; each with the mean
    posterior and with the scenario mixture; and the training prevalence.

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
    return _Search(X, Y, groups, time_budget, random_state, progress or (lambda _: None)).run()


class Budget:
    """Seconds to plan with, counted from now, and notes on what was left out.

    Attributes
    ----------
    seconds : float
    notes : list of str
        One sentence for each thing that was left out.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.notes: list[str] = []
        self._start = time.perf_counter()

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start


@dataclass
class Member:
    """A classifier with its out-of-fold scores; trained on all items only if it is chosen.

    Attributes
    ----------
    name : str
        Its name in the catalogue.
    classifier : classifier
    scores : array of float, shape (n_items, n_labels)
    trained : bool
        Whether the classifier is fitted on all items already.
    """

    name: str
    classifier: Classifier
    scores: Floats
    trained: bool = False

    @property
    def weighted(self) -> bool:
        """Whether class weights were used, so that posteriors are not frequencies."""
        return is_weighted(self.classifier)


def scores_of(members: Sequence[Member]) -> Scores:
    """Scores of a member, or of several members with the mean of those with plain posteriors."""
    values = [np.clip(member.scores, 0, 1) for member in members]
    if len(values) == 1:
        return Scores(values[0])
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

    Attributes
    ----------
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
    ) -> None:
        self.X, self.Y, self.divisions = X, Y, divisions
        self.budget, self.random_state, self.progress = budget, random_state, progress
        self.left_out: list[Candidate] = []

    def linear(self, *, alone: bool = False) -> list[Member]:
        """Logistic regressions per label with as many settings as there is time for.

        Only the default one if `alone`; it is always among them, trained on all items.
        """
        self.progress("training logistic regressions")
        began = time.perf_counter()
        first = train(PerLabel(), self.X, self.Y)
        settings = [{}] if alone else self._settings(time.perf_counter() - began)
        scores = self._out_of_fold(PerLabel(), "logistic regressions", settings)
        members = []
        for setting, values in zip(settings, scores, strict=True):
            classifier = PerLabel(**setting)
            default = classifier.get_params() == first.get_params()
            kept = first if default else classifier
            members.append(Member(_text(classifier), kept, values, trained=default))
        return members

    def _settings(self, seconds: float) -> list[Settings]:
        """The settings that there is time for if a setting takes so many seconds."""
        plain: list[Settings] = [{"C": strength} for strength in STRENGTHS]
        balanced = [{"C": strength, "class_weight": "balanced"} for strength in BALANCED]
        left_out = "Logistic regressions with balanced classes were left out."
        for settings, notes in ((plain + balanced, []), (plain, [left_out])):
            # All settings are solved together, which saves about half.
            planned = seconds * len(self.divisions) * len(settings) / 2
            if planned <= LINEAR_SHARE * self.budget.seconds:
                self.budget.notes += notes
                return settings
        self.budget.notes.append("Only one strength of the logistic regression was tried.")
        return [{}]

    def _out_of_fold(
        self, classifier: Classifier, name: str, settings: Sequence[Settings] = ({},)
    ) -> list[Floats]:
        """Posteriors of all items, for each setting, by classifiers that have not seen them."""
        labelled = out_of_fold(
            classifier,
            self.X,
            self.Y,
            self.divisions,
            settings=settings,
            refit=False,
            progress=lambda fold: self.progress(f"{name}, {fold}"),
        )
        return [labelled_scores.scores.values for labelled_scores in labelled]

    def trees(self) -> list[Member]:
        """A forest, and on dense features one of extra trees, if there is time for enough trees."""
        kinds = [Forest] if sp.issparse(self.X) else [Forest, ExtraTrees]
        return [member for kind in kinds if (member := self._forest(kind)) is not None]

    def _forest(self, kind: type[Forest]) -> Member | None:
        """As many trees as there is time and memory for; None if they would be too few."""
        name = _text(kind())
        if (largest := self._largest(kind, name)) < FEWEST_TREES:
            return None
        self.progress(f"timing {name}")
        began = time.perf_counter()
        train(kind(TIMED_TREES, random_state=self.random_state), self.X, self.Y)
        # Each tree is trained once per fold, and once on all items.
        per_tree = (time.perf_counter() - began) / TIMED_TREES * (len(self.divisions) + 1)
        left = self.budget.seconds - self.budget.spent
        affordable = int(FOREST_SHARE * left / max(per_tree, 1e-9))
        if affordable < FEWEST_TREES:
            self.budget.notes.append(
                f"{name} was left out: {FEWEST_TREES} trees would take "
                f"{per_tree * FEWEST_TREES:.0f} s."
            )
            return None
        forest = kind(min(largest, affordable), random_state=self.random_state)
        (scores,) = self._out_of_fold(forest, name)
        return Member(_text(kind(forest.n_estimators)), forest, scores)

    def _largest(self, kind: type[Forest], name: str) -> int:
        """The most trees that fit into the budget of bytes; 0, with a note, if they are too few."""
        n_items, n_labels = self.Y.shape
        # Twice as many nodes as items, each with two counts of eight bytes for every label.
        tree_bytes = 32 * n_items * n_labels
        per_item = max(1.0, float(self.Y.sum(axis=1).mean()))
        expected = kind(TREES).expected_bytes(n_items, n_labels, labels_per_item=per_item)
        largest = min(TREES, int(TREES * FOREST_BYTES / max(expected, 1)))
        if tree_bytes <= TREE_BYTES and largest >= FEWEST_TREES:
            return largest
        why = (
            f"a tree takes about {tree_bytes / 1e9:.1f} GB while it is grown"
            if tree_bytes > TREE_BYTES
            else f"{TREES} trees take about {expected / 1e6:.0f} MB"
        )
        self.budget.notes.append(f"{name} was left out: {why}.")
        self.left_out.append(Candidate(f"{name}+mixture", float("nan"), note=f"left out: {why}"))
        return 0

    def on_all_items(self, member: Member) -> Classifier:
        """The member's classifier, trained on all items."""
        if member.trained:
            return member.classifier
        self.progress(f"{member.name}, all items")
        return train(member.classifier, self.X, self.Y)


class _Tried(NamedTuple):
    """A candidate with its parts."""

    candidate: Candidate
    aggregator: Aggregator
    scores: Scores
    members: list[Member]

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
        self.splits = shifted_splits(Y, random_state=random_state, stratified=False, groups=groups)
        divisions = self._divide()
        self.trainer = Trainer(X, Y, divisions, self.budget, random_state, progress)

    def run(self) -> Choice:
        plain, balanced = self._linear()
        # Without validation there is nothing to compare.
        trees = self.trainer.trees() if self.splits else []
        return self._decide(_ensembles(plain, balanced, trees))

    def _divide(self) -> list[Division]:
        n_parts = len(self.Y if self.groups is None else np.unique(self.groups))
        scheme = CrossFit(min(5, max(2, n_parts)), random_state=self.random_state)
        divisions = scheme.divide(self.Y, self.groups)
        warn_of_constant_labels(self.Y, divisions)
        self.folds = np.empty(len(self.Y), dtype=np.int64)
        for number, (_, held) in enumerate(divisions):
            self.folds[held] = number
        return divisions

    def _linear(self) -> tuple[list[Member], list[Member]]:
        """Logistic regressions without and with balanced classes, the most promising first.

        Those that there is no time to judge in ensembles are left out.
        """
        members = self.trainer.linear(alone=not self.splits)
        if len(members) == 1:
            return members, []
        began = time.perf_counter()
        plain = self._ranked([[member] for member in members if not member.weighted])
        each = (time.perf_counter() - began) / len(plain)
        allowed = ENSEMBLE_SHARE * self.budget.seconds
        balanced: list[Member] = []
        if each * PAIR <= allowed:
            balanced = self._ranked([[plain[0], member] for member in members if member.weighted])
        else:
            self.budget.notes.append("Logistic regressions were not joined in pairs.")
        if each * WIDE > allowed:
            self.budget.notes.append("Logistic regressions of all strengths were not joined.")
            plain = plain[:1]
        return plain, balanced[:1]

    def _ranked(self, ensembles: list[list[Member]]) -> list[Member]:
        """The last members of the ensembles, those of the most promising ensembles first."""
        expected = [self._expected_loss(members) for members in ensembles]
        return [ensembles[number][-1] for number in np.argsort(expected, kind="stable")]

    def _expected_loss(self, members: list[Member]) -> float:
        """The loss to expect of an ensemble: the smaller of counting's and a simple mixture's."""
        self.progress(f"comparing logistic regressions, {_name(members)}")
        scores = scores_of(members)
        mixture = ScenarioMixture(0.1, random_state=self.random_state)
        return min(self._loss(each, scores)[0] for each in [mixture, *_counting(members)])

    def _decide(self, ensembles: list[list[Member]]) -> Choice:
        self.progress("choosing")
        tried: list[_Tried] = []
        for members in ensembles:
            self.progress(f"choosing, {_name(members)}")
            scores = scores_of(members)
            mixture = ScenarioMixture(random_state=self.random_state)
            for aggregator in [mixture, *_counting(members)]:
                loss, by_family = self._loss(aggregator, scores)
                candidate = Candidate(f"{_name(members)}+{_text(aggregator)}", loss, by_family)
                tried.append(_Tried(candidate, aggregator, scores, members))
        # Losses are ratios to that of the training prevalence, which has nothing to compute.
        constant = Candidate("naive", 1.0, dict.fromkeys(tried[0].candidate.by_family, 1.0))
        tried.append(_Tried(constant, TrainingPrevalence(), Scores(self.X, "features"), []))
        # Without validation there is nothing to compare; the mixture is the safest guess.
        handicap = HANDICAP * max([1.0, *(SIZE / split.size for split in self.splits)])
        best = _best(tried, handicap) if self.splits else tried[0]
        rest = sorted(
            (each for each in tried if each is not best), key=lambda each: each.loss(handicap)
        )
        others = [_explained(each, best, handicap) for each in rest]
        return self._choice(best, (best.candidate, *others, *self.trainer.left_out))

    def _choice(self, best: _Tried, candidates: tuple[Candidate, ...]) -> Choice:
        self.progress("fitting the aggregator")
        best.aggregator.fit(best.scores, self.Y, groups=self.groups)
        fitted = [self.trainer.on_all_items(member) for member in best.members]
        classifier = fitted[0] if fitted else None
        if len(fitted) > 1:
            n_labels, n_features = self.Y.shape[1], self.X.shape[1]
            classifier = ClassifierEnsemble.of_fitted(fitted, n_labels, n_features)
        if fitted:
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
        )

    def _loss(self, aggregator: Aggregator, scores: Scores) -> tuple[float, dict[str, float]]:
        """Validation loss, in all and by family; the mixture computes its own."""
        if not self.splits:
            return float("nan"), {}
        if isinstance(aggregator, ScenarioMixture):
            by_family = aggregator.validation_losses(scores, self.Y, groups=self.groups)
            return total_loss(by_family), by_family

        def estimate(split: ShiftedSplit) -> Floats:
            fitted = clone(aggregator).fit(scores.take(split.rest), self.Y[split.rest])
            estimated: Floats = fitted.aggregate(scores.take(split.held), split.samples)
            return estimated

        by_family = losses(self.splits, estimate)
        return total_loss(by_family), by_family


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
    """The mean posterior; nothing if class weights distort the posteriors of some members."""
    return [] if any(member.weighted for member in members) else [PCC(point="median")]


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
