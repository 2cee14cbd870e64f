"""The adapter of classifiers: whatever shape a classifier returns becomes `Scores`.

scikit-learn has no single shape for multi-label answers. Trees, neighbours and
`MultiOutputClassifier` return a list with one (n_items, n_classes) array per label,
in which a label that was constant in training has one column; chains, one-vs-rest and
perceptrons return (n_items, n_labels); anything that learnt a single label returns (n_items, 2)
posteriors and flat votes; scikit-multilearn returns sparse matrices.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prevalens.scores import Kind, Scores
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import InputError, check_binary_matrix, count_items

#: Parameters that hold the classifier whose posteriors are the answer.
_ANSWERING = ("meta", "estimator", "classifier")
#: Wrappers that behave like the classifier they hold.
_HOLDERS = (FrozenEstimator, GridSearchCV, RandomizedSearchCV)


@runtime_checkable
class DeclaresJoint(Protocol):
    """A classifier that declares whether it learns labels together."""

    joint: bool


@runtime_checkable
class DeclaresLabelWise(Protocol):
    """A classifier that declares whether it scores each label independently of the others."""

    label_wise: bool


@runtime_checkable
class HasMembers(Protocol):
    """An ensemble of classifiers whose posteriors can be used separately."""

    def member_posteriors(self, X: Any) -> Floats:
        """Posteriors of all members side by side, shape (n_items, n_members * n_labels)."""

    def mean_of(self, posteriors: Floats) -> Floats:
        """One posterior per label from those of all members, shape (n_items, n_labels)."""


@runtime_checkable
class HasMulticlass(Protocol):
    """A classifier that has a counterpart for one target with many classes."""

    def multiclass(self) -> Any:
        """The counterpart, unfitted, with the same settings."""


@runtime_checkable
class HasClassWeights(Protocol):
    """A classifier whose labels have class weights of their own."""

    def label_class_weights(self) -> Sequence[Any]:
        """The class weights of each label, as scikit-learn's `class_weight`; None for none."""


def offers(classifier: Any) -> set[Kind]:
    """The kinds of scores a classifier can give, fitted or not.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> offers(LinearSVC())
    {'votes'}
    """
    kinds: set[Kind] = set()
    if hasattr(classifier, "predict") or hasattr(classifier, "decision_function"):
        kinds.add("votes")
    if hasattr(classifier, "predict_proba"):
        kinds.add("posteriors")
    return kinds


def is_joint(classifier: Any) -> bool:
    """Tell whether a classifier looks at labels together (MLC) or at each alone (BC).

    Classifiers of this package declare it. Of scikit-learn's classifiers, one-vs-rest and
    multi-output train one classifier per label; for a pipeline, a search or a frozen estimator the
    inner classifier counts; a classifier that can learn only one label uses no other labels.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.multioutput import MultiOutputClassifier
    >>> forest = RandomForestClassifier()
    >>> is_joint(forest), is_joint(MultiOutputClassifier(forest))
    (True, False)
    """
    if isinstance(classifier, DeclaresJoint):
        return bool(classifier.joint)
    if isinstance(classifier, (OneVsRestClassifier, MultiOutputClassifier)):
        return False
    if isinstance(classifier, Pipeline):
        return is_joint(classifier.steps[-1][1])
    if isinstance(classifier, _HOLDERS):
        return is_joint(classifier.estimator)
    return takes_several_labels(classifier)


def is_label_wise(classifier: Any) -> bool:
    """Tell whether a label's scores depend on no other label's training values."""
    declared = isinstance(classifier, DeclaresLabelWise) and classifier.label_wise
    return bool(declared or not is_joint(classifier))


def takes_several_labels(classifier: Any) -> bool:
    """Tell whether a classifier says that it can learn several labels at once."""
    if isinstance(classifier, _HOLDERS):
        return takes_several_labels(classifier.estimator)
    tags = get_tags(classifier)
    multi_label = tags.classifier_tags is not None and tags.classifier_tags.multi_label
    return bool(multi_label or tags.target_tags.multi_output)


def response(classifier: Any, X: Any, kind: Kind, n_labels: int) -> Scores:
    """Score items with a fitted classifier.

    Parameters
    ----------
    classifier : fitted multi-label classifier
        Any with scikit-learn's `predict` or `predict_proba`.
    X : items, as the classifier takes them
    kind : {"votes", "posteriors", "features"}
        Votes are the result of `predict`, never posteriors above one half. Features are the
        items themselves; the classifier is not called.
    n_labels : int
        Number of labels it was trained on.

    Returns
    -------
    Scores
        With values of shape (n_items, n_labels).

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier().fit([[0], [1]], [[0, 1], [1, 1]])
    >>> [answer.shape for answer in tree.predict_proba([[1]])]
    [(1, 2), (1, 1)]
    >>> response(tree, [[1]], "posteriors", 2).values.tolist()
    [[1.0, 1.0]]
    """
    if kind == "features":
        return Scores(X, kind)
    if kind not in offers(classifier):
        raise InputError(_not_offered(classifier, kind))
    if kind == "votes":
        return Scores(_votes(classifier, X, n_labels), kind)
    if isinstance(classifier, Pipeline) and isinstance(classifier[-1], HasMembers):
        # A pipeline passes on scikit-learn's methods only, not those of HasMembers.
        X = classifier[:-1].transform(X) if len(classifier) > 1 else X
        return response(classifier[-1], X, kind, n_labels)
    if isinstance(classifier, HasMembers):
        members = classifier.member_posteriors(X)
        return Scores(classifier.mean_of(members), kind, members)
    return Scores(_posteriors(classifier, X, n_labels), kind)


def _not_offered(classifier: Any, kind: Kind) -> str:
    name = type(classifier).__name__
    if kind == "posteriors" and offers(classifier):
        return f"{name} offers only votes, no posteriors; wrap it in CalibratedClassifierCV."
    return f"{name} offers no {kind}; it is not a classifier."


def _votes(classifier: Any, X: Any, n_labels: int) -> npt.NDArray[Any]:
    if hasattr(classifier, "predict"):
        votes = _dense(classifier.predict(X))
    else:
        votes = _dense(classifier.decision_function(X)) > 0
    if votes.ndim == 1 and n_labels == 1:
        votes = votes[:, np.newaxis]
    _check_shape(classifier, votes, n_labels, "votes")
    return votes.astype(np.float64)


def _posteriors(classifier: Any, X: Any, n_labels: int) -> npt.NDArray[Any]:
    answer = classifier.predict_proba(X)
    if isinstance(answer, (list, tuple)) or np.ndim(answer) == 3:
        return _from_list(classifier, X, list(answer), n_labels)
    answer = _dense(answer)
    if n_labels == 1:
        return _of_one_label(classifier, X, answer, 0, 1)[:, np.newaxis]
    _check_shape(classifier, answer, n_labels, "posteriors")
    return answer


def _from_list(classifier: Any, X: Any, answers: list[Any], n_labels: int) -> Floats:
    if len(answers) != n_labels:
        raise InputError(
            f"{type(classifier).__name__} gave posteriors of {len(answers)} labels, but there are "
            f"{n_labels}."
        )
    columns = [
        _of_one_label(classifier, X, _dense(answer), label, n_labels)
        for label, answer in enumerate(answers)
    ]
    return np.column_stack(columns)


def _of_one_label(
    classifier: Any, X: Any, answer: npt.NDArray[Any], label: int, n_labels: int
) -> npt.NDArray[Any]:
    """The column of the positive class; a label has one or two classes."""
    if answer.ndim == 1:
        return answer
    classes = _classes(classifier, label, n_labels)
    if classes is not None and len(classes) == answer.shape[1]:
        positive = np.flatnonzero(np.asarray(classes) == 1)
        return answer[:, positive[0]] if len(positive) else np.zeros(len(answer))
    if answer.shape[1] == 1 and classes is None and n_labels > 1:
        # The label has a single class; the votes show which.
        return _votes(classifier, X, n_labels)[:, label]
    return answer[:, -1]


def _classes(classifier: Any, label: int, n_labels: int) -> Any:
    """The classes of a label; None if the classifier has no such attribute."""
    classes = getattr(classifier, "classes_", None)
    if classes is None:
        return None
    if len(classes) == n_labels and np.ndim(classes[label]) == 1:
        return classes[label]
    return classes if n_labels == 1 and np.ndim(classes[0]) == 0 else None


def _dense(answer: Any) -> npt.NDArray[Any]:
    return np.asarray(answer.toarray() if sp.issparse(answer) else answer)


def _check_shape(classifier: Any, values: npt.NDArray[Any], n_labels: int, what: str) -> None:
    if values.ndim != 2 or values.shape[1] != n_labels:
        raise InputError(
            f"{type(classifier).__name__} gave {what} of shape {values.shape} for {n_labels} "
            "labels; it is not a multi-label classifier, or it was trained on other labels. "
            "A classifier of one label is wrapped in PerLabel."
        )


def weighted_prior(classifier: Any, Y: LabelMatrix) -> Floats | None:
    """Return the prevalences that the posteriors of a classifier with class weights belong to.

    Weights w0 and w1 of negatives and positives turn a training prevalence p into
    ``p w1 / (p w1 + (1 - p) w0)``; balanced weights make it one half.

    Parameters
    ----------
    classifier : classifier, fitted or not
        For a stack or a pipeline the last classifier counts, for a wrapper the one inside.
    Y : 0/1 array, shape (n_items, n_labels)
        What it is trained on.

    Returns
    -------
    array of float, shape (n_labels,), or None
        None without class weights. Constant labels keep their 0 or 1.

    References
    ----------
    Elkan, "The foundations of cost-sensitive learning", IJCAI 2001.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> weighted = LogisticRegression(class_weight={0: 1, 1: 3})
    >>> weighted_prior(weighted, np.array([[1], [0], [0], [0]])).tolist()
    [0.5]
    """
    weights = class_weight_of(classifier)
    if weights is None:
        return None
    shares = np.asarray(Y.mean(axis=0), dtype=np.float64)
    if isinstance(weights, (str, Mapping)):
        weights = [weights] * len(shares)
    pairs = zip(shares, weights, strict=True)
    return np.array([_under_weight(share, weight) for share, weight in pairs])


def class_weight_of(classifier: Any) -> Any:
    """The class weights of the classifier that answers; None if there are none.

    A list has those of each label.
    """
    if isinstance(classifier, Pipeline):
        return class_weight_of(classifier.steps[-1][1])
    if isinstance(classifier, HasClassWeights):
        weights = list(classifier.label_class_weights())
        return None if all(weight is None for weight in weights) else weights
    if not isinstance(classifier, BaseEstimator) or isinstance(classifier, CalibratedClassifierCV):
        # Calibration on items without weights undoes the weights.
        return None
    parameters = classifier.get_params(deep=False)
    inside = [parameters[name] for name in _ANSWERING if parameters.get(name) is not None]
    return class_weight_of(inside[0]) if inside else parameters.get("class_weight")


def _under_weight(share: float, weight: Any) -> float:
    if weight is None or share in (0, 1):
        return float(share)
    if isinstance(weight, str):
        return 0.5
    positive, negative = share * weight.get(1, 1.0), (1 - share) * weight.get(0, 1.0)
    return float(positive / (positive + negative))


def constant_labels(Y: LabelMatrix) -> npt.NDArray[np.bool_]:
    """Tell for each label whether all items agree on it."""
    return np.asarray(Y.min(axis=0) == Y.max(axis=0))


def train(classifier: Any, X: Any, Y: LabelMatrix) -> Any:
    """Fit a clone of `classifier`; if it refuses constant labels, fit it on the other labels.

    Returns
    -------
    fitted classifier
        A `VaryingLabels` around it if constant labels had to be kept from it.
    """
    if not constant_labels(Y).any():
        return _fit_quietly(clone(classifier), X, Y)
    try:
        return _fit_quietly(clone(classifier), X, Y)
    except ValueError:
        # If the constant labels were not the reason, this raises the same error again.
        return VaryingLabels(classifier).fit(X, Y)


class VaryingLabels(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is trained on the labels that vary; the others keep their constant value.

    Parameters
    ----------
    classifier : multi-label classifier

    Attributes
    ----------
    varying_ : array of int
        Positions of the labels the classifier is trained on.
    constants_ : array of int8, shape (n_labels,)
        The first item's labels: the answer where a label does not vary.
    classifier_ : fitted classifier, or None if no label varies

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multioutput import MultiOutputClassifier
    >>> refusing = MultiOutputClassifier(LogisticRegression())
    >>> VaryingLabels(refusing).fit([[0], [1]], [[0, 1], [1, 1]]).predict([[1]]).tolist()
    [[1, 1]]
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    @property
    def joint(self) -> bool:
        """Whether the classifier looks at labels together."""
        return is_joint(self.classifier)

    def fit(self, X: Any, Y: Any) -> Self:
        """Train on the labels that vary."""
        Y = check_binary_matrix(Y)
        self.varying_ = np.flatnonzero(~constant_labels(Y))
        self.constants_ = Y[0].copy()
        self.classifier_ = None
        if len(self.varying_):
            self.classifier_ = _fit_quietly(clone(self.classifier), X, Y[:, self.varying_])
        return self

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Votes, shape (n_items, n_labels)."""
        return self._spread(X, "votes").astype(np.int64)

    @available_if(lambda self: "posteriors" in offers(self.classifier))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Posteriors, shape (n_items, n_labels)."""
        return self._spread(X, "posteriors")

    def _spread(self, X: Any, kind: Kind) -> Floats:
        check_is_fitted(self)
        values = np.tile(self.constants_.astype(np.float64), (count_items(X), 1))
        if self.classifier_ is not None:
            scores = response(self.classifier_, X, kind, len(self.varying_))
            values[:, self.varying_] = scores.values
        return values


def _fit_quietly(classifier: Any, X: Any, Y: LabelMatrix) -> Any:
    """Fit without the warnings about single columns and constant labels."""
    with warnings.catch_warnings():
        # A single label is a column on purpose, and constant labels were warned of before.
        warnings.simplefilter("ignore", DataConversionWarning)
        warnings.filterwarnings("ignore", "Label .* is present in all training examples")
        try:
            return classifier.fit(X, Y)
        except ValueError as error:
            if Y.shape[1] == 1 or isinstance(error, InputError) or takes_several_labels(classifier):
                raise
            name = type(classifier).__name__
            raise InputError(
                f"{name} refused {Y.shape[1]} labels at once; wrap it: PerLabel({name}(...)). "
                f"It said: {error}"
            ) from error
