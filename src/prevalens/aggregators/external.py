"""Quantifiers from elsewhere: QuaPy's, per label or over label states, and any other.

QuaPy (the extra ``quapy``) takes three seconds to import, so it is imported only when one of its
quantifiers is requested by name; its objects are recognised by the modules of their classes.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone

from prevalens.aggregators.base import Aggregator
from prevalens.aggregators.counting import PCC
from prevalens.aggregators.multiclass import OneVsRest, StateQuantifier
from prevalens.expression import Call, expression_of
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.types import Floats, Ints, Items, LabelMatrix
from prevalens.validation import InputError, take_items

_MODULES = (
    "quapy.method.aggregative",
    "quapy.method.non_aggregative",
    "quapy.method.confidence",
    "quapy.method.meta",
)


class QuapyPerLabel(Aggregator):
    """One quantifier of QuaPy per label, aggregative or not.

    Parameters
    ----------
    quantifier : str or QuaPy quantifier
        The name of a class of QuaPy such as ``"EMQ"`` or ``"KDEyML"`` (or of a factory method, such
        as ``"DMx.HDx"``), or an object, which is copied. With two classes, 0 and 1, per label.
    classifier : scikit-learn classifier, optional
        Classifier of aggregative quantifiers. Default: QuaPy's, a logistic regression.
    params : mapping, optional
        Further arguments of a quantifier that is given by name.

    Attributes
    ----------
    quantifiers_ : list of fitted quantifiers, None where a label is constant

    Notes
    -----
    Items are classified once per label for all samples; aggregating is QuaPy's, one sample at a
    time. The estimate of a constant label is its constant. Fails where QuaPy does: most of its
    methods cross-validate in five folds and need at least five positives and five negatives.

    References
    ----------
    Moreo, Esuli and Sebastiani, "QuaPy: a Python-based framework for quantification", CIKM 2021.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 40).reshape(-1, 1)
    >>> items = Scores(X, kind="features")
    >>> cc = QuapyPerLabel("CC").fit(items, X > 0.5)
    >>> cc.aggregate(items, Samples.whole(40)).tolist()
    [[0.5]]
    """

    consumes: Kind = "features"
    joint = False

    def __init__(
        self,
        quantifier: Any = "EMQ",
        classifier: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self.quantifier = quantifier
        self.classifier = classifier
        self.params = params

    @property
    def code(self) -> str:
        """Its name in the catalogue."""
        named = isinstance(self.quantifier, str)
        return f"quapy:{self.quantifier if named else type(self.quantifier).__name__}"

    @property
    def expression(self) -> Call:
        """Its expression in the grammar of methods; `params` are not part of it."""
        parts = () if self.classifier is None else (expression_of(self.classifier),)
        return Call(self.code, parts)

    def with_classifier(self, classifier: Any) -> QuapyPerLabel:
        """A copy whose quantifiers use this single-label classifier."""
        return QuapyPerLabel(self.quantifier, classifier, params=self.params)

    def make(self) -> Any:
        """Return a new, unfitted quantifier of QuaPy."""
        own = {} if self.classifier is None else {"classifier": clone(self.classifier)}
        if isinstance(self.quantifier, str):
            maker = _find(self.quantifier)
            try:
                return maker(**{**(self.params or {}), **own})
            except (TypeError, AssertionError) as error:
                raise InputError(f"QuaPy's {self.quantifier} cannot be made: {error}") from error
        if not is_quapy(self.quantifier):
            raise InputError(f"{self.quantifier!r} is no quantifier of QuaPy, nor the name of one.")
        return copy.deepcopy(self.quantifier).set_params(**own)

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        constant = (self.prevalence_ == 0) | (self.prevalence_ == 1)
        self.quantifiers_ = [
            None if constant[j] else self._fit_label(scores.values, Y[:, j].astype(np.int64), j)
            for j in range(self.n_labels_)
        ]

    def _fit_label(self, X: Any, y: Ints, label: int) -> Any:
        quantifier = self.make()
        try:
            quantifier.fit(X, y)
        except (ValueError, AssertionError) as error:
            raise InputError(
                f"{self.code} failed on label {label} ({y.sum()} positives of {len(y)}): {error}"
            ) from error
        return quantifier

    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:
        estimates = np.tile(self.prevalence_, (len(samples), 1))
        for j, quantifier in enumerate(self.quantifiers_):
            if quantifier is not None and len(samples):
                estimates[:, j] = quapy_estimates(quantifier, scores.values, samples)[:, 1]
        return estimates


def is_quapy(value: object) -> bool:
    """Return whether an object is a quantifier of QuaPy or of a class derived from one."""
    home = [kind.__module__.partition(".")[0] for kind in type(value).__mro__]
    return "quapy" in home and "BaseQuantifier" in _ancestors(value)


def quapy_estimates(quantifier: Any, X: Any, samples: Samples) -> Floats:
    """Shares of the classes in each sample, shape (n_samples, n_classes).

    Parameters
    ----------
    quantifier : fitted quantifier of QuaPy
    X : items of the pool
    samples : Samples
    """
    if "AggregativeQuantifier" in _ancestors(quantifier):
        scores = quantifier.classify(X)
        shares = [quantifier.aggregate(scores[rows]) for rows in samples]
    else:
        shares = [quantifier.predict(take_items(X, rows)) for rows in samples]
    return np.asarray(shares, dtype=np.float64).reshape(len(samples), -1)


def _find(name: str) -> Any:
    """Return the class of QuaPy, or the factory method of a class, with this name."""
    first, *rest = name.split(".")
    for module in _MODULES:
        try:
            maker = getattr(importlib.import_module(module), first, None)
        except ImportError as error:
            raise InputError(
                f'{name} is a quantifier of QuaPy: pip install "prevalens[quapy]".'
            ) from error
        for part in rest:
            maker = getattr(maker, part, None)
        if callable(maker):
            return maker
    raise InputError(f"QuaPy has no quantifier called {name!r}.")


class QuapyStates(StateQuantifier):
    """One quantifier of QuaPy over label states.

    Parameters
    ----------
    adapter : QuapyPerLabel
        The quantifier and its classifier.

    Notes
    -----
    A method of QuaPy for two classes is applied to each state in turn if there are more states.

    Examples
    --------
    >>> X = np.repeat([[0.0], [1.0], [2.0]], 10, axis=0)
    >>> states = QuapyStates(QuapyPerLabel("CC")).fit(X, np.repeat([0, 1, 2], 10), 3)
    >>> states.estimate(X, Samples.from_indices([[0, 10, 11, 20]], n_items=30))
    array([[0.25, 0.5 , 0.25]])
    """

    consumes: Kind = "features"
    needs_labelled_scores = True

    def __init__(self, adapter: QuapyPerLabel) -> None:
        self.adapter = adapter

    def _learn(self, values: Any, state_of: npt.NDArray[np.intp]) -> None:
        self.quantifier_ = self.adapter.make()
        if len(self.prior_) > 2 and "BinaryQuantifier" in _ancestors(self.quantifier_):
            self.quantifier_ = OneVsRest(self.adapter)
            self.quantifier_.fit(values, state_of, len(self.prior_))
        else:
            self.quantifier_.fit(values, np.asarray(state_of))

    def estimate(self, values: Any, samples: Samples) -> Floats:
        """See `StateQuantifier`."""
        if isinstance(self.quantifier_, OneVsRest):
            return self.quantifier_.estimate(values, samples)
        return quapy_estimates(self.quantifier_, values, samples)


def _ancestors(value: object) -> list[str]:
    return [kind.__name__ for kind in type(value).__mro__]


@runtime_checkable
class QuantifierLike(Protocol):
    """Methods that RQ and LPQ need of a foreign quantifier; it may also be a `QuantifiesMany`."""

    def fit(self, X: Any, Y: Any) -> Any:
        """Learn from items and their labels, a 0/1 array of shape (n_items, n_labels)."""

    def quantify(self, X: Any) -> Any:
        """Estimate the prevalences in one sample of items, shape (n_labels,)."""


@runtime_checkable
class QuantifiesMany(Protocol):
    """A quantifier that estimates all samples at once."""

    def quantify_many(self, X: Items, samples: Samples) -> Any:
        """Estimate the prevalences in each sample, shape (n_samples, n_labels)."""


@runtime_checkable
class _HasGroup(Protocol):
    """A quantifier with the name of its group, such as ``"BC+BA"``."""

    group: str


class ExternalQuantifier(Aggregator):
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
    Without ``quantify_many`` it calls ``quantify`` once per sample; a quantifier with a classifier
    then classifies every item as often as it is drawn.

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
    >>> external = ExternalQuantifier(Constant()).fit(items, [[1, 0], [1, 0], [0, 0], [0, 1]])
    >>> external.aggregate(items, Samples.whole(4)).tolist()
    [[0.5, 0.25]]
    """

    code = "external"
    consumes: Kind = "features"

    def __init__(self, quantifier: Any) -> None:
        self.quantifier = quantifier

    @property
    def joint(self) -> bool:  # type: ignore[override]
        """False if the group of the quantifier ends with BA; True if it has no group."""
        quantifier = self.quantifier
        return not (isinstance(quantifier, _HasGroup) and str(quantifier.group).endswith("BA"))

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        if not isinstance(self.quantifier, QuantifierLike):
            raise InputError(
                f"A quantifier needs the methods fit(X, Y) and quantify(X); {self.quantifier!r} "
                "has not both."
            )
        self.quantifier_ = without_intervals(clone(self.quantifier, safe=False))
        self.quantifier_.fit(scores.values, Y)

    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:
        if len(samples) == 0:
            return np.empty((0, self.n_labels_))
        if isinstance(self.quantifier_, QuantifiesMany):
            answers = self.quantifier_.quantify_many(scores.values, samples)
        else:
            answers = [self.quantifier_.quantify(take_items(scores.values, s)) for s in samples]
        estimates = np.asarray(answers, dtype=np.float64)
        if estimates.shape != (len(samples), self.n_labels_):
            raise InputError(
                f"{type(self.quantifier_).__name__} answered with shape {estimates.shape} for "
                f"{len(samples)} samples of {self.n_labels_} labels."
            )
        return estimates


_Estimator = TypeVar("_Estimator")


def without_intervals(quantifier: _Estimator) -> _Estimator:
    """The quantifier itself, set to prepare no intervals where nobody will ask for them."""
    if isinstance(quantifier, BaseEstimator):
        names = (name.rpartition("__") for name in quantifier.get_params(deep=True))
        own = {"".join(name): None for name in names if name[2] == "uncertainty"}
        quantifier.set_params(**own)
    return quantifier


def as_aggregator(base: Any) -> Aggregator:
    """Return an aggregator from an aggregator, any quantifier, or None (`PCC`)."""
    if base is None:
        return PCC()
    if isinstance(base, Aggregator):
        return base
    if is_quapy(base):
        return QuapyPerLabel(base)
    if isinstance(base, QuantifierLike) and not isinstance(base, type):
        return ExternalQuantifier(base)
    raise InputError(
        f"The base must be an aggregator such as PCC(), or have fit(X, Y) and quantify(X); got "
        f"{base!r}."
    )
