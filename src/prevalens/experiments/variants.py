"""Behaviours of the paper's code that its text does not describe.

Some figures that the paper prints can only be understood through them. They are named variants of
the paper's plan and nothing else: no default uses them, and nobody should count with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone

from prevalens.aggregators import SLD
from prevalens.aggregators.regressors import BatchedLinearSVR
from prevalens.collection import label_matrix
from prevalens.estimate import PrevalenceEstimate
from prevalens.experiments.variant_draws import CoarseAPP
from prevalens.metrics import ae
from prevalens.model_selection import GridSearch
from prevalens.protocols import MLAPP, Protocol
from prevalens.quantifier import Quantifier
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.splits import stratified_holdout
from prevalens.validation import take_items

__all__ = ["VARIANTS", "RejoinedSearch", "SeenItems", "TwiceSLD"]

#: Share of the items held out, as in the paper.
_HELD = 0.4
#: The paper's code balances pairs of labels too when it divides items.
_ORDER = 2
#: Items of a sample, as in the paper.
_SIZE = 100


class _Variant(BaseEstimator):  # type: ignore[misc]
    """What the variants share: they look like the quantifier they wrap."""

    quantifier: Any

    @property
    def prevalence_(self) -> npt.NDArray[np.float64]:
        """Prevalences in the training items."""
        return np.asarray(self.quantifier_.prevalence_)

    @property
    def group(self) -> str:
        """The group of the quantifier inside."""
        return str(self.quantifier.group)

    def _estimate(self, point: npt.NDArray[np.float64]) -> PrevalenceEstimate:
        return PrevalenceEstimate(point, self.quantifier_.labels_)


class TwiceSLD(_Variant):
    """SLD on posteriors that an SLD over the whole pool has already corrected.

    Parameters
    ----------
    quantifier : Quantifier or GridSearch
        With SLD as its aggregator; it is chosen and fitted with SLD run once.
    """

    code = "twice"

    def __init__(self, quantifier: Any) -> None:
        self.quantifier = quantifier

    @property
    def name(self) -> str:
        """The name of the quantifier inside, marked."""
        return f"twice({self.quantifier.name})"

    def fit(self, X: Any, Y: Any, *, labels: Any = None) -> Self:
        """Fit the quantifier inside."""
        self.quantifier_ = clone(self.quantifier).fit(X, Y, labels=labels)
        return self

    def quantify_many(self, X: Any, groups: Samples) -> PrevalenceEstimate:
        """Correct all posteriors by the prevalences of all items, then run SLD per sample."""
        scores = self.quantifier_.score(X)
        Y = np.zeros((2, scores.values.shape[1]), dtype=np.int8)
        prior = np.clip(self.prevalence_, 1e-6, 1 - 1e-6)
        sld = SLD(prior=prior, method="em").fit(Scores(Y, "posteriors"), Y)
        pool = sld.aggregate(scores, Samples.whole(scores.n_items))[0]
        corrected = Scores(_move_prior(scores.values, prior, pool), "posteriors")
        return self._estimate(sld.aggregate(corrected, groups))


def _move_prior(
    posteriors: npt.NDArray[Any], old: npt.NDArray[np.float64], new: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Posteriors that belong to one prior, as they would be under another."""
    positive = posteriors * (new / old)
    negative = (1 - posteriors) * ((1 - new) / (1 - old))
    total = positive + negative
    return np.divide(positive, total, out=np.array(posteriors, dtype=float), where=total > 0)


class SeenItems(_Variant):
    """RQ whose regressor learns, and is chosen, on items that the quantifier inside has seen.

    Parameters
    ----------
    quantifier : Quantifier or GridSearch
        Fitted on all items first.
    Cs : list of float
        Settings of the support vector regression to choose from.
    seed : int
    tol : float
        Relative duality gap at which a regression is finished.

    Notes
    -----
    On its own training items a classifier is surer than on new ones, so the regressor learns to
    correct less than it should.
    """

    code = "seen"

    def __init__(
        self,
        quantifier: Any,
        Cs: Sequence[float] = (0.1, 1.0, 10.0, 100.0, 1000.0),
        *,
        seed: int = 0,
        tol: float = 1e-4,
    ) -> None:
        self.quantifier = quantifier
        self.Cs = Cs
        self.seed = seed
        self.tol = tol

    @property
    def name(self) -> str:
        """The method in words like the catalogue's."""
        return f"seen({self.quantifier.name},svr)"

    @property
    def group(self) -> str:
        """The classifier's half of the quantifier's group, and MLA."""
        return f"{str(self.quantifier.group).split('+', maxsplit=1)[0]}+MLA"

    def fit(self, X: Any, Y: Any, *, labels: Any = None) -> Self:
        """Fit the quantifier on all items, the regressor on some of them, chosen on others."""
        Y, names = label_matrix(Y, labels)
        self.quantifier_ = clone(self.quantifier).fit(X, Y, labels=names)
        rest, validation = stratified_holdout(Y, _HELD, order=_ORDER, seed=self.seed)
        _, training = stratified_holdout(Y[rest], _HELD, order=_ORDER, seed=self.seed)
        learned = self._pairs(X, Y, rest[training], CoarseAPP())
        size = _SIZE if len(validation) >= _SIZE else max(1, len(validation) // 2)
        judged = self._pairs(X, Y, validation, MLAPP(size, repeats=5 if Y.shape[1] < 90 else 1))
        self.regressor_ = self._best_regressor(learned, judged)
        return self

    def _pairs(self, X: Any, Y: npt.NDArray[np.int8], rows: Any, protocol: Protocol) -> Any:
        """Estimated and true prevalences of samples of some items."""
        samples = protocol.draw(Y[rows], self.seed)
        estimated = self.quantifier_.quantify_many(take_items(X, rows), samples)
        return np.asarray(estimated), samples.mean(Y[rows])

    def _best_regressor(self, learned: Any, judged: Any) -> Any:
        settings = [{"C": C} for C in self.Cs]
        fitted = list(BatchedLinearSVR(tol=self.tol).fit_settings(settings, *learned))
        losses = [ae(judged[1], np.clip(one.predict(judged[0]), 0, 1)).mean() for one in fitted]
        return fitted[int(np.argmin(losses))]

    def quantify_many(self, X: Any, groups: Samples) -> PrevalenceEstimate:
        """Estimates of the quantifier, through the regressor."""
        estimated = np.asarray(self.quantifier_.quantify_many(X, groups))
        return self._estimate(np.clip(self.regressor_.predict(estimated), 0, 1))


class RejoinedSearch(GridSearch):
    """A search whose winner is fitted on the items in another order: the rest, then those held.

    Parameters are those of `GridSearch`. The order matters where folds are made of neighbours.
    """

    def _fit_on_all(
        self, quantifier: Quantifier, X: Any, Y: npt.NDArray[np.int8], labels: Any
    ) -> Quantifier:
        rows = np.concatenate(self._divide(Y))
        return quantifier.fit(take_items(X, rows), Y[rows], labels=labels)


#: Variants by name, each built around a quantifier.
VARIANTS: dict[str, type[_Variant]] = {made.code: made for made in (TwiceSLD, SeenItems)}
