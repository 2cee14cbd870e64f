"""Stacked generalisation: posteriors of all labels are features of every label."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from prevalens.classifiers.base import CompositeClassifier, append_columns
from prevalens.classifiers.per_label import PerLabel
from prevalens.crossfit import (
    Division,
    LabelledScores,
    fit_settings,
    out_of_fold,
    warn_of_constant_labels,
)
from prevalens.response import offers, response, train
from prevalens.scores import Kind
from prevalens.splits import IterativeStratification
from prevalens.types import LabelMatrix, Settings
from prevalens.validation import InputError, Matrix, check_int

#: Parameters that do not change the first layer.
_SECOND = ("meta", "normalize", "passthrough")
_Composite = TypeVar("_Composite", bound=CompositeClassifier)


@runtime_checkable
class Splitter(Protocol):
    """A splitter of scikit-learn, such as ``KFold(5)``."""

    def split(self, X: Any, y: Any) -> Iterator[Division]:
        """Rows to train on and rows to score, in several ways."""


class Stacked(CompositeClassifier):
    """A second layer that reads the first layer's posteriors of all labels and the features.

    The second layer is trained on out-of-fold posteriors. New items are scored by a first layer
    that was trained on all items.

    Parameters
    ----------
    base : multi-label classifier with posteriors, optional
        The first layer. Default: ``PerLabel()``, one logistic regression per label.
    meta : multi-label classifier, optional
        The second layer. Default: ``PerLabel()``.
    normalize : bool
        Whether the second layer's input is standardised. A sparse matrix is scaled and not centred:
        for a classifier with a free intercept, such as logistic regression, centring makes no
        difference. The input is sparse if the items are.
    passthrough : bool
        Whether the second layer sees the features, and not the posteriors alone.
    cv : int or scikit-learn splitter
        Number of folds, made by iterative stratification; or an object such as ``KFold(5)``, whose
        test parts must cover every item once.
    n_jobs : int, optional
        Folds trained at the same time.
    random_state : int or None
        Of the stratification.

    Attributes
    ----------
    base_, meta_ : fitted classifiers
    scaler_ : StandardScaler or None

    Notes
    -----
    Costs `cv` + 1 trainings of the first layer and one of the second. If the first layer is
    uncertain about rare labels, its noise affects every label.

    References
    ----------
    Wolpert, "Stacked generalization", Neural Networks 5(2), 1992. Esuli, Moreo and Sebastiani,
    "Funnelling", ACM TOIS 37(3), 2019.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(20.0)[:, np.newaxis]
    >>> Y = np.hstack([X >= 10, X < 10])
    >>> Stacked().fit(X, Y).predict([[0.0], [19.0]]).tolist()
    [[0, 1], [1, 0]]
    """

    code = "stack"
    part = "meta"

    def __init__(
        self,
        base: Any = None,
        meta: Any = None,
        *,
        normalize: bool = False,
        passthrough: bool = True,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.base = base
        self.meta = meta
        self.normalize = normalize
        self.passthrough = passthrough
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit_settings(self, settings: Sequence[Settings], X: Any, Y: Any) -> Iterator[Stacked]:
        """Train with each of several settings; the first layer is trained once if it can be.

        Settings that differ only in the second layer (``meta__...``), in `normalize` or in
        `passthrough` share the first layer, and those that differ only in the second are trained
        together where it can.
        """
        first_layers: dict[str, LabelledScores] = {}

        def prepare(model: Stacked, items: Matrix, labels: LabelMatrix, own: Settings) -> Matrix:
            first = repr({name: own[name] for name in own if name not in _SECOND})
            if first not in first_layers:
                first_layers[first] = model._train_base(items, labels)
            model.meta = model._second_layer()
            return model._prepare(items, first_layers[first])

        return fit_part_settings(self, settings, X, Y, prepare)

    def _fit(self, X: Matrix, Y: LabelMatrix) -> None:
        inputs = self._prepare(X, self._train_base(X, Y))
        self.meta_ = train(self._second_layer(), inputs, Y)

    def _second_layer(self) -> Any:
        return PerLabel() if self.meta is None else self.meta

    def _train_base(self, X: Matrix, Y: LabelMatrix) -> LabelledScores:
        base = PerLabel() if self.base is None else self.base
        if "posteriors" not in offers(base):
            raise InputError(
                f"Stacked needs posteriors; {type(base).__name__} offers only votes. Wrap it in "
                "CalibratedClassifierCV."
            )
        divisions = self._divide(X, Y)
        warn_of_constant_labels(Y, divisions)
        return out_of_fold(base, X, Y, divisions, n_jobs=self.n_jobs)[0]

    def _prepare(self, X: Matrix, first_layer: LabelledScores) -> Matrix:
        """Keep the first layer and the scaler; return the second layer's training input."""
        self.base_ = first_layer.classifier
        inputs = self._inputs(X, first_layer.scores.values)
        self.scaler_ = None
        if self.normalize:
            self.scaler_ = StandardScaler(with_mean=not sp.issparse(inputs)).fit(inputs)
        return self._scale(inputs)

    def _divide(self, X: Matrix, Y: LabelMatrix) -> list[Division]:
        splitter = self.cv
        if not isinstance(splitter, Splitter):
            n_folds = check_int(self.cv, "cv", minimum=2)
            splitter = IterativeStratification(n_folds, random_state=self.random_state)
        divisions = list(splitter.split(X, Y))
        scored = np.concatenate([rows for _, rows in divisions])
        if not np.array_equal(np.sort(scored), np.arange(len(Y))):
            raise InputError(
                f"The test parts of cv = {self.cv!r} must cover every item once; use KFold or a "
                "number of folds."
            )
        return divisions

    def _inputs(self, X: Matrix, posteriors: npt.NDArray[Any]) -> Matrix:
        return append_columns(X, posteriors) if self.passthrough else posteriors

    def _scale(self, inputs: Matrix) -> Matrix:
        return inputs if self.scaler_ is None else self.scaler_.transform(inputs)

    def respond(self, X: Matrix, kind: Kind) -> npt.NDArray[Any]:
        """Votes or posteriors of checked items, shape (n_items, n_labels)."""
        posteriors = response(self.base_, X, "posteriors", self.n_labels_).values
        inputs = self._scale(self._inputs(X, posteriors))
        return response(self.meta_, inputs, kind, self.n_labels_).values


def fit_part_settings(
    classifier: _Composite,
    settings: Sequence[Settings],
    X: Any,
    Y: Any,
    prepare: Callable[[_Composite, Any, LabelMatrix, Settings], Any],
) -> Iterator[_Composite]:
    """Train a composite classifier with several settings; settings of its part share the rest.

    Parameters
    ----------
    classifier : CompositeClassifier
        Its parameter `classifier.part` holds the part.
    settings : list of dict
        Parameters by name; those of the part have its prefix, such as ``meta__C``.
    X, Y
        Labelled items.
    prepare : callable
        Called with a clone, the checked items and labels, and the parameters that are not those
        of the part; sets the part's default and returns the inputs on which it is trained.

    Yields
    ------
    CompositeClassifier
        Fitted, one per setting, in the order given.
    """
    part, prefix = classifier.part, f"{classifier.part}__"
    groups: dict[str, tuple[Settings, list[tuple[int, Settings]]]] = {}
    for number, setting in enumerate(settings):
        own = {name: value for name, value in setting.items() if not name.startswith(prefix)}
        change = {
            name.removeprefix(prefix): value
            for name, value in setting.items()
            if name.startswith(prefix)
        }
        _, members = groups.setdefault(repr(sorted(own.items())), (own, []))
        members.append((number, change))
    fitted: dict[int, _Composite] = {}
    for shared, members in groups.values():
        model = clone(classifier).set_params(**shared)
        items, labels = model._check_training(X, Y)
        inputs, inner = prepare(model, items, labels, shared), vars(model)[part]
        trained = fit_settings(inner, [change for _, change in members], inputs, labels)
        for (number, setting), fitted_part in zip(members, trained, strict=True):
            fitted[number] = copy(model)
            setattr(fitted[number], part, clone(inner).set_params(**setting))
            setattr(fitted[number], f"{part}_", fitted_part)
    yield from (fitted[number] for number in range(len(settings)))
