"""The guard of a model's columns, batch by batch, while items pass in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.model import Model
from prevalens.preparation import guard_of
from prevalens.preparation.column_guard import FEWEST_ROWS, Drift
from prevalens.reporting.batch_data import Notice

__all__ = ["Guarding"]


class Guarding:
    """Lets chunks of prepared items pass the model's guard, and remembers what it has found.

    The classifier's own guard sees a chunk as a whole, in which a batch that has drifted may drown
    among others; here each batch is looked at alone, and then the chunk, for batches too small to
    tell. The classifier's guard finds nothing more after that.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._guard = guard_of(getattr(model.quantifier, "classifier_", None))
        self._drifts: dict[int, Drift] = {}

    def mend(self, X: Any, codes: npt.NDArray[np.int32]) -> Any:
        """The chunk, with columns that are adrift in a batch of it held at the training mean."""
        if self._guard is None:
            return X
        found, counts = np.unique(codes, return_counts=True)
        if len(found) > 1:
            X = self._by_batch(X, codes, found[counts >= FEWEST_ROWS].tolist())
        X, drift = self._guard.mend(X)
        for code in found.tolist():
            self._note(code, drift)
        return X

    def _by_batch(self, X: Any, codes: npt.NDArray[np.int32], large: Sequence[int]) -> Any:
        assert self._guard is not None
        rows, parts = [], []
        for code in large:
            mine = np.flatnonzero(codes == code)
            part, drift = self._guard.mend(X[mine])
            if drift:
                self._note(code, drift)
                rows.append(mine)
                parts.append(part)
        return _replaced(X, rows, parts) if rows else X

    def _note(self, code: int, drift: Drift) -> None:
        if drift:
            self._drifts[code] = drift | self._drifts.get(code, {})

    def notices(self, names: Sequence[str], order: Sequence[int]) -> list[Notice]:
        """A sentence for every set of columns that were adrift, and the batches they were so in."""
        together: dict[tuple[int, ...], list[int]] = {}
        for place, code in enumerate(order):
            if code in self._drifts:
                together.setdefault(tuple(sorted(self._drifts[code])), []).append(place)
        return [
            self._notice(columns, [names[i] for i in places], [order[i] for i in places])
            for columns, places in together.items()
        ]

    def _notice(self, columns: Sequence[int], names: Sequence[str], codes: Sequence[int]) -> Notice:
        assert self._guard is not None
        means = np.mean([[self._drifts[code][j] for j in columns] for code in codes], axis=0)
        drift = dict(zip(columns, means.tolist(), strict=True))
        where = names[0] if len(names) == 1 else f"{len(names)} batches (the first is {names[0]})"
        features = self.model.preparation.get_feature_names_out()
        text = self._guard.sentence(drift, features, where=where)
        return Notice(text, "warning", names[0] if len(names) == 1 else "")


def _replaced(X: Any, rows: Sequence[npt.NDArray[np.intp]], parts: Sequence[Any]) -> Any:
    """A copy of a matrix with other rows in some places."""
    kept = np.setdiff1d(np.arange(X.shape[0]), np.concatenate(rows))
    blocks = [X[kept], *parts]
    joined = sp.vstack(blocks, format="csr") if sp.issparse(X) else np.concatenate(blocks)
    return joined[np.argsort(np.concatenate([kept, *rows]))]
