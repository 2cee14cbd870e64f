"""Scores: the votes or posteriors of a classifier for each item, the input of aggregators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from prevalens.types import Array, Floats, Items
from prevalens.validation import InputError, check_choice, count_items, take_items

Kind: TypeAlias = Literal["votes", "posteriors", "features"]
KINDS: tuple[Kind, ...] = ("votes", "posteriors", "features")
#: Posteriors may leave [0, 1] by this much, from rounding, and are put back.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Scores:
    """Evidence per item, and of which kind it is.

    Parameters
    ----------
    values : array, shape (n_items, n_labels)
        Votes in {0, 1} or posteriors in [0, 1], one column per label. With kind ``"features"``,
        the items themselves, for quantifiers that need no classifier.
    kind : {"votes", "posteriors", "features"}
    members : array, shape (n_items, n_members * n_labels), optional
        For ensembles: the posteriors of several classifiers side by side, of which `values` is the
        mean. Aggregators that can weigh them read `evidence`.
    prior : array of float, shape (n_labels,), optional
        The prevalences that the posteriors belong to, if class weights in training have moved them
        away from those of the training items; see `prevalens.response.weighted_prior`.

    Examples
    --------
    >>> Scores([[0.2, 0.9]], kind="posteriors").n_items
    1
    """

    values: Items
    kind: Kind = "posteriors"
    members: Array | None = None
    prior: Floats | None = None

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", KINDS)
        if self.kind == "features":
            return
        values = self.values if isinstance(self.values, np.ndarray) else np.asarray(self.values)
        if values.ndim != 2:
            raise InputError(f"Scores must have shape (n_items, n_labels); got {values.shape}.")
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float64)
        object.__setattr__(self, "values", _in_range(values, self.kind))
        if self.members is not None:
            members = np.asarray(self.members)
            if members.ndim != 2 or len(members) != len(values) or members.shape[1] == 0:
                raise InputError(
                    f"members must have a row per item ({len(values)}) and columns; got shape "
                    f"{members.shape}."
                )
            object.__setattr__(self, "members", _in_range(members, self.kind))

    @property
    def evidence(self) -> Array:
        """The posteriors of all members of an ensemble, or the values if there are no members."""
        evidence: Array = self.values if self.members is None else self.members
        return evidence

    @property
    def n_items(self) -> int:
        """Number of items."""
        return count_items(self.values)

    @classmethod
    def concat(cls, parts: Sequence[Scores]) -> Scores:
        """The scores of several sets of items, one below the other."""
        members = [part.members for part in parts if part.members is not None]
        values = np.concatenate([part.values for part in parts])
        joined = np.concatenate(members) if members else None
        return cls(values, parts[0].kind, joined, parts[0].prior)

    def take(self, rows: Array | slice) -> Scores:
        """The scores of some items."""
        members = None if self.members is None else self.members[rows]
        return Scores(take_items(self.values, rows), self.kind, members, self.prior)

    def labels(self, columns: Array | Sequence[int]) -> Scores:
        """The scores of some labels."""
        if self.kind == "features":
            raise InputError("Only scores with one column per label can be taken label by label.")
        members = self.members
        if members is not None:
            n_items, n_labels = self.values.shape
            members = members.reshape(n_items, -1, n_labels)[:, :, columns].reshape(n_items, -1)
        prior = None if self.prior is None else self.prior[columns]
        return Scores(self.values[:, columns], self.kind, members, prior)


def _in_range(values: Array, kind: str) -> Array:
    """Check that values lie between 0 and 1; clip those outside by rounding errors."""
    if values.size == 0:
        return values
    low, high = values.min(), values.max()
    # The comparison is written so that NaN fails too.
    if not (low >= 0 and high <= 1):
        if low >= -_ROUNDING and high <= 1 + _ROUNDING:
            return np.clip(values, 0.0, 1.0)
        bad = np.argwhere(~((values >= 0) & (values <= 1)))[0]
        raise InputError(
            f"{kind.capitalize()} must lie between 0 and 1; got {values[tuple(bad)]} for item "
            f"{bad[0]}, column {bad[1]}."
        )
    if kind == "votes" and not np.all((values == 0) | (values == 1)):
        bad = np.argwhere((values != 0) & (values != 1))[0]
        raise InputError(
            f"Votes must be 0 or 1; got {values[tuple(bad)]} for item {bad[0]}, column {bad[1]}. "
            'Scores between 0 and 1 are kind="posteriors".'
        )
    return values
