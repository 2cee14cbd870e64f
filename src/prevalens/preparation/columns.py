"""Named columns of numbers, categories, dates, texts and vectors, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.preparation.base import Preparation, Unfamiliar
from prevalens.preparation.cells import ColumnKind, encoder_of
from prevalens.validation import InputError

__all__ = ["ColumnPreparation"]


class ColumnPreparation(Preparation):
    """Each column as its cells ask for: numbers scaled, categories one-hot, texts as terms.

    Parameters
    ----------
    columns : sequence of str, optional
        Which to use; all if left out.
    kinds : mapping of column to {"number", "category", "date", "text", "vector"}, optional
        For columns whose cells would be taken for something else.

    Attributes
    ----------
    encoders_ : dict of column to its encoder

    Notes
    -----
    Missing numbers become the median, and a column says that they were missing; categories that
    the training does not have become none of them. Of dates only the month and the day of the week
    are used: the year of a later batch would be beyond everything seen.

    Examples
    --------
    >>> prepared = ColumnPreparation().fit({"age": [20, 40], "ward": ["north", "south"]})
    >>> prepared.transform({"age": [30], "ward": ["east"]}).tolist()
    [[0.0, 0.0, 0.0]]
    """

    kind = "columns"

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        *,
        kinds: Mapping[str, ColumnKind] | None = None,
    ) -> None:
        self.columns = columns
        self.kinds = kinds

    def _learn(self, items: Any) -> Any:
        names = tuple(items) if self.columns is None else tuple(self.columns)
        kinds = self.kinds or {}
        self.encoders_ = {}
        blocks = []
        for name in names:
            encoder = encoder_of(name, _cells(items, name), kinds.get(name))
            block = encoder.fit_transform(_cells(items, name))
            if block.shape[1]:
                self.encoders_[name] = encoder
                blocks.append(block)
        if not blocks:
            raise InputError(
                f"None of the columns {', '.join(map(repr, names))} can be used: each is empty, "
                "has one value only, or a different one in every row."
            )
        self.dropped_ = tuple(name for name in names if name not in self.encoders_)
        matrix = _side_by_side(blocks)
        self.n_features_ = int(matrix.shape[1])
        return matrix

    def _transform(self, items: Any) -> Any:
        blocks = [one.transform(_cells(items, name)) for name, one in self.encoders_.items()]
        return _side_by_side(blocks)

    def unfamiliar(self, items: Any) -> Unfamiliar:
        """The share of cells unlike any of the training: new categories, numbers out of range."""
        found = {name: one.unfamiliar(_cells(items, name)) for name, one in self.encoders_.items()}
        share = float(np.mean([one.share for one in found.values()]))
        usual = float(np.mean([one.usual for one in found.values()]))
        worst = sorted(found, key=lambda name: found[name].usual - found[name].share)
        examples = [f"{name}: {word}" for name in worst for word in found[name].examples]
        return Unfamiliar(share, usual, tuple(examples[:10]))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:  # noqa: ARG002
        """The column's name, with the category, word or position where it has several features."""
        names = [name for one in self.encoders_.values() for name in one.names()]
        return np.array(names, dtype=object)

    def describe(self) -> str:
        """What is done, in a short sentence."""
        kinds = [one.kind for one in self.encoders_.values()]
        counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        return f"{len(kinds)} columns ({counted}), {self.n_features_:,} features"


def _cells(items: Any, name: str) -> Sequence[Any]:
    try:
        return items[name]
    except KeyError:
        raise InputError(f"The items have no column {name!r}.") from None


def _side_by_side(blocks: list[Any]) -> Any:
    if not any(sp.issparse(block) for block in blocks):
        return np.hstack(blocks)
    return sp.csr_matrix(sp.hstack(blocks, format="csr"), dtype=np.float32)
