"""Quantifiers that need no classifier of ours: anything with ``fit`` and ``quantify``."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from prevalens.aggregators.base import Aggregator
from prevalens.aggregators.counting import PCC
from prevalens.aggregators.quapy_adapter import QuapyPerLabel, is_quapy
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.validation import InputError, take_items

__all__ = ["Native", "QuantifierLike", "as_aggregator"]


@runtime_checkable
class QuantifierLike(Protocol):
    """What RQ and LPQ ask of a quantifier of any origin.

    It may also have ``quantify_many(X, samples)``, shape (n_samples, n_labels), which is then
    used for all samples at once.
    """

    def fit(self, X: Any, Y: Any) -> Any:
        """Learn from items and their labels, a 0/1 array of shape (n_items, n_labels)."""

    def quantify(self, X: Any) -> Any:
        """Estimate the prevalences in one sample of items, shape (n_labels,)."""


class Native(Aggregator):
    """Any multi-label quantifier, aggregative or not, as an aggregator that reads the items.

    Parameters
    ----------
    quantifier : QuantifierLike
        An object with ``fit(X, Y)`` and ``quantify(X)``, such as a `prevalens.Quantifier` with a
        classifier of its own. It is cloned.

    Attributes
    ----------
    quantifier_ : fitted quantifier

    Notes
    -----
    Costs what the quantifier costs; without ``quantify_many`` it is asked once per sample, which
    for a quantifier with a classifier means classifying every item as often as it is drawn.

    Examples
    --------
    >>> import numpy as np
    >>> class Constant:
    ...     def fit(self, X, Y):
    ...         self.answer = np.mean(Y, axis=0)
    ...         return self
    ...     def quantify(self, X):
    ...         return self.answer
    >>> items = Scores(np.zeros((4, 1)), kind="features")
    >>> native = Native(Constant()).fit(items, [[1, 0], [1, 0], [0, 0], [0, 1]])
    >>> native.aggregate(items, Samples.whole(4)).tolist()
    [[0.5, 0.25]]
    """

    code = "native"
    consumes: Kind = "features"

    def __init__(self, quantifier: Any) -> None:
        self.quantifier = quantifier

    @property
    def joint(self) -> bool:  # type: ignore[override]
        """What the quantifier says of its group; True if it says nothing."""
        group = getattr(self.quantifier, "group", None)
        return not (isinstance(group, str) and group.split("+")[-1] == "BA")

    def _fit(self, scores: Scores, Y: npt.NDArray[np.int8]) -> None:
        if not isinstance(self.quantifier, QuantifierLike):
            raise InputError(
                f"A quantifier needs the methods fit(X, Y) and quantify(X); {self.quantifier!r} "
                "has not both."
            )
        self.quantifier_ = clone(self.quantifier, safe=False)
        self.quantifier_.fit(scores.values, Y)

    def _aggregate(self, scores: Scores, samples: Samples) -> npt.NDArray[np.float64]:
        if len(samples) == 0:
            return np.empty((0, self.n_labels_))
        if hasattr(self.quantifier_, "quantify_many"):
            found = self.quantifier_.quantify_many(scores.values, samples)
        else:
            found = [self.quantifier_.quantify(take_items(scores.values, s)) for s in samples]
        estimates = np.asarray(found, dtype=np.float64)
        if estimates.shape != (len(samples), self.n_labels_):
            raise InputError(
                f"{type(self.quantifier_).__name__} answered with shape {estimates.shape} for "
                f"{len(samples)} samples of {self.n_labels_} labels."
            )
        return estimates


def as_aggregator(base: Any) -> Aggregator:
    """An aggregator from an aggregator, a quantifier of QuaPy, any other, or None (PCC)."""
    if base is None:
        return PCC()
    if isinstance(base, Aggregator):
        return base
    if is_quapy(base):
        return QuapyPerLabel(base)
    if isinstance(base, QuantifierLike) and not isinstance(base, type):
        return Native(base)
    raise InputError(
        f"The base must be an aggregator such as PCC(), or have fit(X, Y) and quantify(X); got "
        f"{base!r}."
    )
