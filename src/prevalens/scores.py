"""Scores: what a classifier says about each item, as the aggregators read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from prevalens.validation import InputError, check_choice, count_items, take_items

__all__ = ["Kind", "Scores"]

Kind: TypeAlias = Literal["votes", "posteriors", "features"]
KINDS: tuple[Kind, ...] = ("votes", "posteriors", "features")


@dataclass(frozen=True)
class Scores:
    """Evidence per item, and of which kind it is.

    Parameters
    ----------
    values : array, shape (n_items, n_labels)
        Votes in {0, 1} or posteriors in [0, 1], one column per label. With `states`, one
        column per label state. With kind ``"features"``, the items themselves, for
        quantifiers that need no classifier.
    kind : {"votes", "posteriors", "features"}
    states : array of 0/1, shape (n_states, n_labels), optional
        For label powersets: which labels each column stands for.
    members : array, shape (n_items, n_members * n_labels), optional
        For panels: the posteriors of several classifiers side by side, of which `values` is the
        mean. Aggregators that can weigh them read `evidence`.

    Examples
    --------
    >>> Scores([[0.2, 0.9]], kind="posteriors").n_items
    1
    """

    values: Any
    kind: Kind = "posteriors"
    states: npt.NDArray[Any] | None = None
    members: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", KINDS)
        if self.kind == "features":
            return
        values = self.values if isinstance(self.values, np.ndarray) else np.asarray(self.values)
        if values.ndim != 2:
            raise InputError(f"Scores must have shape (n_items, n_labels); got {values.shape}.")
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float64)
        object.__setattr__(self, "values", values)
        _check_range(values, self.kind)
        if self.states is not None:
            self._check_states()
        if self.members is not None:
            self._check_members()

    def _check_states(self) -> None:
        states = np.asarray(self.states)
        if states.ndim != 2 or states.shape[0] != self.values.shape[1]:
            raise InputError(
                f"There are {self.values.shape[1]} state columns, but the states have shape "
                f"{states.shape}; give one row of 0/1 per column."
            )
        object.__setattr__(self, "states", states)

    def _check_members(self) -> None:
        members = np.asarray(self.members)
        if members.ndim != 2 or len(members) != len(self.values) or members.shape[1] == 0:
            raise InputError(
                f"Views must have a row per item ({len(self.values)}) and columns; got shape "
                f"{members.shape}."
            )
        _check_range(members, self.kind)
        object.__setattr__(self, "members", members)

    @property
    def evidence(self) -> npt.NDArray[Any]:
        """All there is to know of each item: the posteriors of all members, or else the values."""
        evidence: npt.NDArray[Any] = self.values if self.members is None else self.members
        return evidence

    @property
    def n_items(self) -> int:
        """Number of items."""
        return count_items(self.values)

    @classmethod
    def concat(cls, parts: Sequence[Scores]) -> Scores:
        """The scores of several sets of items, one below the other."""
        first = parts[0]
        members = None
        if first.members is not None:
            members = np.concatenate([part.members for part in parts if part.members is not None])
        values = np.concatenate([part.values for part in parts])
        return cls(values, first.kind, first.states, members)

    def take(self, rows: Any) -> Scores:
        """The scores of some items."""
        members = None if self.members is None else self.members[rows]
        return Scores(take_items(self.values, rows), self.kind, self.states, members)

    def labels(self, columns: Any) -> Scores:
        """The scores of some labels."""
        if self.states is not None or self.kind == "features":
            raise InputError("Only scores with one column per label can be taken label by label.")
        return Scores(self.values[:, columns], self.kind, members=self._members_of(columns))

    def _members_of(self, columns: Any) -> npt.NDArray[Any] | None:
        if self.members is None:
            return None
        n_items, n_labels = self.values.shape
        stacked = self.members.reshape(n_items, -1, n_labels)[:, :, columns]
        return stacked.reshape(n_items, -1)


def _check_range(values: npt.NDArray[Any], kind: str) -> None:
    if values.size == 0:
        return
    low, high = values.min(), values.max()
    # Written so that NaN fails too.
    if not (low >= 0 and high <= 1):
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
