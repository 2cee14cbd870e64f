"""What an automatic choice answers: the chosen method, and what it was chosen from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.aggregators import Aggregator
from prevalens.scores import Scores

__all__ = ["Candidate", "Choice"]


@dataclass(frozen=True)
class Candidate:
    """One method that was tried.

    Attributes
    ----------
    name : str
    loss : float
        Mean absolute error in rehearsal, as a ratio to that of the training prevalence.
    by_family : dict of str to float
        The same by family of shift.
    """

    name: str
    loss: float
    by_family: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """What was chosen, fitted on all items, and what it was chosen from.

    Attributes
    ----------
    classifier, aggregator : fitted
    candidates : tuple of Candidate
        The best first.
    seconds : float
    notes : tuple of str
        What was left out for lack of time, one sentence each.
    scores : Scores or None
        Out-of-fold scores the aggregator was fitted on; a quantifier does not keep them.
    folds : array of int, shape (n_items,), or None
        Which items were scored by the same classifier.
    """

    classifier: Any
    aggregator: Aggregator
    candidates: tuple[Candidate, ...]
    seconds: float
    notes: tuple[str, ...]
    scores: Scores | None = None
    folds: npt.NDArray[np.intp] | None = None

    @property
    def name(self) -> str:
        """The chosen method in the words of the catalogue."""
        return self.candidates[0].name

    def table(self) -> str:
        """The candidates, one line each, as text."""
        families = list(self.candidates[0].by_family)
        head = f"{'method':42} {'all':>6} " + " ".join(f"{name:>10}" for name in families)
        lines = [
            f"{one.name:42} {one.loss:6.3f} "
            + " ".join(f"{one.by_family.get(name, float('nan')):10.3f}" for name in families)
            for one in self.candidates
        ]
        return "\n".join([head, *lines])
