"""What is remembered of the training, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.errors import FormatError

__all__ = ["TrainingSummary"]


@dataclass(frozen=True)
class TrainingSummary:
    """The training in figures.

    Attributes
    ----------
    n_items, n_features : int
    positives : tuple of int
        Training items that have each label.
    cardinality : float
        Mean number of labels per item.
    method, group : str
        The quantifier's name, and which of its halves see labels together.
    preparation : str
        How items become numbers, in a sentence.
    kind : str
        What the items are: "text", "columns", "array" or "given".
    seconds : float
        What the training took.
    warnings : tuple of str
        What it warned of.
    """

    n_items: int
    n_features: int
    positives: tuple[int, ...]
    cardinality: float
    method: str
    group: str
    preparation: str
    kind: str
    seconds: float
    warnings: tuple[str, ...] = ()

    @property
    def prevalence(self) -> npt.NDArray[np.float64]:
        """Share of training items that have each label."""
        return np.asarray(self.positives, dtype=np.float64) / self.n_items

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainingSummary:
        """From what `to_dict` gave."""
        try:
            known = {one.name: values[one.name] for one in fields(cls)}
        except KeyError as error:
            raise FormatError(f"the training summary lacks {error}.") from None
        for name in ("positives", "warnings"):
            known[name] = tuple(known[name])
        return cls(**known)
