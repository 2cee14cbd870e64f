"""Leaderboard: methods compared on one user's data, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from prevalens.charts import Dots, draw, frame, table

__all__ = ["Leaderboard", "Place"]

Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Place:
    """One method's place.

    Attributes
    ----------
    rank : int
    method : str
    error : float
        Mean absolute error over kinds of shift and folds.
    spread : float
        Standard deviation of that error over the folds.
    by_protocol : mapping of str to float
    behind : float
        How far behind the first, on average.
    tied : bool
        Whether that is within two standard errors of chance.
    seconds : float
        Training and estimating, per fold.
    """

    rank: int
    method: str
    error: float
    spread: float
    by_protocol: Mapping[str, float]
    behind: float
    tied: bool
    seconds: float


@dataclass(frozen=True)
class Leaderboard:
    """Errors of several methods in cross-validation.

    Attributes
    ----------
    methods, protocols : tuple of str
    errors : array of float, shape (n_methods, n_folds, n_protocols)
        Mean absolute errors.
    seconds : array of float, shape (n_methods, n_folds)
    n_items, n_labels, size : int
        Labelled items, labels, and items per sample.
    failures : mapping of str to str
        Methods that could not be trained, and why.
    provenance : mapping of str to str
    title : str
    """

    methods: tuple[str, ...]
    protocols: tuple[str, ...]
    errors: Array
    seconds: Array
    n_items: int
    n_labels: int
    size: int
    failures: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    title: str = "Methods compared on this data"

    @property
    def by_fold(self) -> Array:
        """Error of each method in each fold, over kinds of shift, shape (n_methods, n_folds)."""
        return self.errors.mean(axis=2)

    @property
    def best(self) -> str:
        """The method with the smallest error."""
        return self.places()[0].method

    def places(self) -> list[Place]:
        """The methods from best to worst."""
        by_fold = self.by_fold
        means = by_fold.mean(axis=1)
        order = np.argsort(means, kind="stable")
        best = by_fold[order[0]]
        return [
            Place(
                rank=rank,
                method=self.methods[i],
                error=float(means[i]),
                spread=_deviation(by_fold[i]),
                by_protocol=dict(
                    zip(self.protocols, self.errors[i].mean(axis=0).tolist(), strict=True)
                ),
                behind=float(means[i] - means[order[0]]),
                tied=_tied(by_fold[i] - best),
                seconds=float(self.seconds[i].mean()),
            )
            for rank, i in enumerate(order.tolist(), start=1)
        ]

    def to_dict(self) -> dict[str, Any]:
        """The figures, as JSON takes them."""
        return {
            "n_items": self.n_items,
            "n_labels": self.n_labels,
            "n_folds": self.errors.shape[1],
            "size": self.size,
            "places": [
                {**vars(one), "by_protocol": dict(one.by_protocol)} for one in self.places()
            ],
            "failures": dict(self.failures),
            "provenance": dict(self.provenance),
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One flat row per method."""
        return [
            {name: value for name, value in vars(one).items() if name != "by_protocol"}
            | {f"error_{name}": value for name, value in one.by_protocol.items()}
            for one in self.places()
        ]

    def to_frame(self, backend: str = "pandas") -> Any:
        """One row per method, as a pandas or polars frame."""
        rows = self.to_rows()
        return frame({name: [row[name] for row in rows] for name in rows[0]}, backend)

    def dots(self) -> Dots:
        """The errors with their spread over the folds, the best first."""
        places = self.places()
        error = np.array([one.error for one in places])
        spread = np.array([one.spread for one in places])
        names = [one.method for one in places]
        low = np.maximum(error - spread, 0.0)
        return Dots(names, error, low, error + spread, axis="mean absolute error", title=self.title)

    def plot(self, backend: str = "matplotlib", *, ax: Any = None) -> Any:
        """Draw the errors with their spread in matplotlib or altair."""
        return draw(self.dots(), backend, ax=ax)

    def _repr_html_(self) -> str:
        return table(self.dots())


def _deviation(values: Array) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _tied(differences: Array) -> bool:
    """Whether a mean difference over folds is within two standard errors of zero.

    Folds share most of their training items, so their variance is enlarged as Nadeau and Bengio
    (2003) do it.
    """
    n = len(differences)
    if n < 2 or not differences.any():
        return True
    variance = differences.var(ddof=1) * (1 / n + 1 / (n - 1))
    return bool(abs(differences.mean()) <= 2 * np.sqrt(variance))
