"""Hold out labelled items, to test how far a model that is fitted on the others can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prevalens.errors import InputError
from prevalens.model.evaluate import FEWEST_ITEMS, evaluate_model
from prevalens.model.items import take_rows
from prevalens.model.labelled import Labelled
from prevalens.model.model import Model
from prevalens.model.trust import TrustReport
from prevalens.splits import stratified_holdout
from prevalens.tables.preparation import Preparation
from prevalens.types import Array, Ints
from prevalens.uncertainty.drift import as_numbers
from prevalens.validation import check_fraction


@dataclass(frozen=True)
class Holdout:
    """Labelled items, divided into some to fit on and some to test on.

    Attributes
    ----------
    rest, held_out : array of int
        Row numbers.
    how : str
        How they were divided, for people.
    """

    rest: Ints
    held_out: Ints
    how: str

    @classmethod
    def of(cls, data: Labelled, share: float, random_state: int) -> Holdout:
        """Hold out a share of the items: the latest if they have times, else a random part.

        At random, groups stay together, and the parts have similar prevalences.
        """
        share = check_fraction(share, "`holdout=`")
        if data.times is None:
            rest, held = stratified_holdout(data.Y, share, seed=random_state, groups=data.groups)
            how = "drawn at random"
        else:
            rest, held = _latest(data.times, share)
            how = "the latest"
        if len(held) < FEWEST_ITEMS or len(rest) < FEWEST_ITEMS:
            raise InputError(
                f"`holdout={share:g}` leaves {len(rest)} labelled items to fit on and {len(held)} "
                f"to test on; at least {FEWEST_ITEMS} of each are needed."
            )
        return cls(rest, held, how)

    @property
    def sentence(self) -> str:
        """What the test was made with."""
        return (
            f"Tested on {len(self.held_out):,} items that were held out ({self.how}), with a model "
            f"fitted on the other {len(self.rest):,}; this model is fitted on all of them."
        )

    def fit(self, data: Labelled, kept: Sequence[int], **settings: Any) -> Model:
        """A model that is fitted on the rest.

        Parameters
        ----------
        data : Labelled
        kept : sequence of int
            Numbers of the labels to use; those that no item of the rest has, or all, are left out.
        **settings
            As in `Model.fit`.
        """
        counts = data.Y[self.rest].sum(axis=0, dtype=np.int64)
        usable = [j for j in kept if 0 < counts[j] < len(self.rest)]
        if not usable:
            raise InputError("no label varies among the items that are not held out.")
        own = settings["preparation"]
        if isinstance(own, Preparation):
            # A transformer is copied before it is fitted, a preparation is not.
            settings["preparation"] = own.for_labels([kept.index(j) for j in usable])
        columns = take_rows(data.items.columns, self.rest)
        return Model.fit(
            replace(data.items, columns=columns, n_rows=len(self.rest)),
            data.Y[self.rest][:, usable],
            labels=[data.labels[j] for j in usable],
            groups=None if data.groups is None else data.groups[self.rest],
            time=None if data.times is None else data.times[self.rest],
            **settings,
        )

    def evaluate(self, trial: Model, data: Labelled, **settings: Any) -> TrustReport:
        """Evaluate a model that `fit` made on the items that were held out.

        `settings` are those of `evaluate_model`.
        """
        columns = [data.labels.index(name) for name in trial.labels]
        held = take_rows(data.items.columns, self.held_out)
        report = evaluate_model(trial, held, data.Y[self.held_out][:, columns], **settings)
        return replace(
            report,
            notices=(self.sentence,),
            provenance={"labelled items": data.file_names, **report.provenance},
        )


def _latest(times: Array, share: float) -> tuple[Ints, Ints]:
    """The earlier and the latest items; those of one time stay together."""
    numbers, _ = as_numbers(times)
    cut = np.sort(numbers)[-max(round(share * len(numbers)), 1)]
    if cut == numbers.min():
        raise InputError(
            f"`holdout={share:g}` leaves no earlier items to fit on, since items of one time stay "
            "together; hold out a smaller share."
        )
    return np.flatnonzero(numbers < cut), np.flatnonzero(numbers >= cut)
