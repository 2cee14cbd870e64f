"""The classifiers that an automatic choice is made from, with their out-of-fold scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from prevalens.classifiers import ExtraTrees, Forest, PerLabel
from prevalens.classifiers.ensemble import is_weighted, mean_posterior
from prevalens.crossfit import Division, out_of_fold
from prevalens.expression import expression_of, to_text
from prevalens.response import train
from prevalens.scores import Scores
from prevalens.types import Classifier, Floats, LabelMatrix, Settings

__all__ = ["Budget", "Member", "Trainer", "scores_of"]

STRENGTHS = (0.1, 1.0, 10.0, 100.0)
#: Strengths with balanced classes: they raise what is said of rare labels above the noise.
BALANCED = (0.1, 1.0, 10.0)
TREES = 200
#: A forest with fewer trees than this is not worth its noise.
FEWEST_TREES = 40
#: Trees whose training is timed before the forest is planned.
TIMED_TREES = 4
#: The share of the budget that the logistic regressions may plan for, and the forest.
LINEAR_SHARE, FOREST_SHARE = 0.4, 0.5


class Budget:
    """Seconds to plan with, from now on, and what they were too short for."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.notes: list[str] = []
        self._start = time.perf_counter()

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start

    @property
    def left(self) -> float:
        """Seconds that remain; below 0 if it took longer than planned."""
        return self.seconds - self.spent


@dataclass
class Member:
    """A classifier with its out-of-fold scores; trained on all items only if it is chosen.

    Attributes
    ----------
    name : str
        In the words of the catalogue.
    classifier : classifier
    scores : array of float, shape (n_items, n_labels)
    trained : bool
        Whether the classifier is fitted on all items already.
    """

    name: str
    classifier: Any
    scores: Floats
    trained: bool = False

    @property
    def weighted(self) -> bool:
        """Whether its posteriors are no frequencies, because classes were weighed."""
        return is_weighted(self.classifier)


def scores_of(members: Sequence[Member]) -> Scores:
    """Scores of one member, or of several side by side with the mean of those that count."""
    values = [np.clip(one.scores, 0, 1) for one in members]
    if len(values) == 1:
        return Scores(values[0])
    mean = mean_posterior(np.stack(values, axis=1), [not one.weighted for one in members])
    return Scores(mean, members=np.hstack(values))


class Trainer:
    """Trains what there is time for.

    Parameters
    ----------
    X : matrix of features
    Y : 0/1 array of int8, shape (n_items, n_labels)
    divisions : sequence of Division
        Rows to train on and rows to score, for out-of-fold scores.
    budget : Budget
    random_state : int
    tell : callable
        Told in a few words what comes next.
    """

    def __init__(
        self,
        X: Any,
        Y: LabelMatrix,
        divisions: Sequence[Division],
        budget: Budget,
        random_state: int,
        tell: Callable[[str], None],
    ) -> None:
        self.X, self.Y, self.divisions = X, Y, divisions
        self.budget, self.random_state, self.tell = budget, random_state, tell

    def linear(self, *, alone: bool = False) -> list[Member]:
        """Logistic regressions per label with as many settings as there is time for.

        Only the default one if `alone`; it is always among them, trained on all items.
        """
        self.tell("training logistic regressions")
        began = time.perf_counter()
        first = train(PerLabel(), self.X, self.Y)
        settings = [{}] if alone else self._settings(time.perf_counter() - began)
        members = []
        for setting, scores in zip(
            settings,
            self._out_of_fold(PerLabel(), "logistic regressions", settings),
            strict=True,
        ):
            member = PerLabel(**setting)
            default = member.get_params() == first.get_params()
            name = to_text(expression_of(member))
            members.append(Member(name, first if default else member, scores, trained=default))
        return members

    def _settings(self, seconds: float) -> list[dict[str, Any]]:
        """What there is time for if one setting takes so many seconds."""
        plain: list[dict[str, Any]] = [{"C": strength} for strength in STRENGTHS]
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
            progress=lambda fold: self.tell(f"{name}, {fold}"),
        )
        return [found.scores.values for found in labelled]

    def trees(self) -> list[Member]:
        """A forest, and on dense features one of extra trees, if there is time for enough trees."""
        kinds = [Forest] if sp.issparse(self.X) else [Forest, ExtraTrees]
        found = [self._forest(kind) for kind in kinds]
        return [one for one in found if one is not None]

    def _forest(self, kind: type[Forest]) -> Member | None:
        """As many trees as there is time for; None if they would be too few."""
        name = to_text(expression_of(kind()))
        self.tell(f"timing {name}")
        began = time.perf_counter()
        train(kind(TIMED_TREES, random_state=self.random_state), self.X, self.Y)
        per_tree = (time.perf_counter() - began) / TIMED_TREES
        rounds = len(self.divisions) + 1
        affordable = int(FOREST_SHARE * self.budget.left / max(per_tree * rounds, 1e-9))
        if affordable < FEWEST_TREES:
            self.budget.notes.append(
                f"{name} was left out: {FEWEST_TREES} trees would take "
                f"{per_tree * rounds * FEWEST_TREES:.0f} s."
            )
            return None
        forest = kind(min(TREES, affordable), random_state=self.random_state)
        (scores,) = self._out_of_fold(forest, name)
        return Member(to_text(expression_of(kind(forest.n_estimators))), forest, scores)

    def on_all_items(self, member: Member) -> Any:
        """The member's classifier, trained on all items."""
        if member.trained:
            return member.classifier
        self.tell(f"{member.name}, all items")
        return train(member.classifier, self.X, self.Y)
