"""What a reader should know before trusting a number, gathered while items pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.model import Model
from prevalens.reporting.batch_data import Notice

__all__ = ["Observed"]

#: Items of each batch whose words are looked at.
_LOOKED_AT = 300
#: A batch smaller than this is named.
_TINY = 50
#: Sums of features are kept up to this many numbers.
_MOST_SUMS = 20_000_000


class Observed:
    """Samples and sums of what passes by, per batch.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._texts: dict[int, list[Any]] = {}
        self._sums: dict[int, npt.NDArray[np.float64]] = {}
        self._counts: dict[int, int] = {}
        self._empty: dict[int, int] = {}

    def add(self, items: Any, X: Any, codes: npt.NDArray[np.int32]) -> None:
        """Note a chunk of items, their matrix and the numbers of their batches."""
        found, inverse = np.unique(codes, return_inverse=True)
        pick = sp.csr_matrix(
            (np.ones(len(codes)), (inverse.ravel(), np.arange(len(codes)))),
            shape=(len(found), len(codes)),
        )
        sums = pick @ X
        sums = sums.toarray() if sp.issparse(sums) else np.asarray(sums)
        empty = _empty_rows(X)
        for row, code in enumerate(found.tolist()):
            rows = np.flatnonzero(codes == code) if len(found) > 1 else np.arange(len(codes))
            self._counts[code] = self._counts.get(code, 0) + len(rows)
            self._empty[code] = self._empty.get(code, 0) + int(empty[rows].sum())
            self._keep(code, items, rows)
            if (len(self._sums) + 1) * X.shape[1] <= _MOST_SUMS or code in self._sums:
                self._sums[code] = self._sums.get(code, 0) + sums[row]

    def _keep(self, code: int, items: Any, rows: npt.NDArray[np.intp]) -> None:
        if self.model.summary.kind != "text":
            return
        kept = self._texts.setdefault(code, [])
        kept += [items[row] for row in rows[: _LOOKED_AT - len(kept)].tolist()]

    def feature_means(self, order: Sequence[int]) -> npt.NDArray[np.float32] | None:
        """Means of the prepared items of each batch; None if there were too many numbers."""
        if any(code not in self._sums for code in order):
            return None
        means = [self._sums[code] / self._counts[code] for code in order]
        return np.asarray(means, dtype=np.float32)

    def notices(
        self,
        names: Sequence[str],
        sizes: npt.NDArray[np.int64],
        order: Sequence[int],
        warned: Sequence[str],
    ) -> tuple[Notice, ...]:
        """All that is worth knowing, batch by batch."""
        found = [Notice(text) for text in dict.fromkeys(warned)]
        for name, size, code in zip(names, sizes.tolist(), order, strict=True):
            found += self._of_batch(name, size, code)
        return tuple(found)

    def _of_batch(self, name: str, size: int, code: int) -> list[Notice]:
        found = []
        if size < _TINY:
            items = "item" if size == 1 else "items"
            found.append(
                Notice(f"{name} has {size} {items} only; its estimates are rough.", "note", name)
            )
        empty = self._empty[code] / size
        if empty > 0.05:
            found.append(
                Notice(
                    f"{empty:.0%} of the items of {name} hold nothing the model knows.",
                    "warning",
                    name,
                )
            )
        unfamiliar = self._unfamiliar(name, code)
        return found if unfamiliar is None else [*found, unfamiliar]

    def _unfamiliar(self, name: str, code: int) -> Notice | None:
        kept = self._texts.get(code)
        found = self.model.preparation.unfamiliar(kept) if kept else None
        if found is None or found.share < 2 * found.usual + 0.05:
            return None
        words = ", ".join(found.examples[:5])
        return Notice(
            f"{found.share:.0%} of the words in {name} were not seen in training (usual: "
            f"{found.usual:.0%}), such as {words}; estimates may be off.",
            "warning",
            name,
        )


def _empty_rows(X: Any) -> npt.NDArray[np.bool_]:
    if sp.issparse(X):
        return np.diff(X.indptr) == 0
    return np.zeros(X.shape[0], dtype=bool)
