"""An ensemble: several classifiers score the same items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.classifiers.per_label import PerLabel
from prevalens.classifiers.trees import Forest
from prevalens.crossfit import fit_settings
from prevalens.expression import Call, expression_of
from prevalens.response import is_joint, response, train
from prevalens.types import Floats, LabelMatrix


class ClassifierEnsemble(MultiLabelClassifier):
    """Several classifiers, whose posteriors are averaged or used separately.

    Parameters
    ----------
    first, second : classifier, optional
        Default: one logistic regression per label, and a forest.
    more : list of classifiers
        Further members.

    Attributes
    ----------
    members_ : list of fitted classifiers

    Notes
    -----
    `predict_proba` is the mean of the members' posteriors. Aggregators that can weigh them, such as
    `ScenarioMixture`, read `member_posteriors`: classifiers of different kinds err in different
    ways, so that together they contain more information about a sample. The cost is the sum of the
    members' costs.

    The posteriors of members with class weights are not frequencies of the labels. Aggregators read
    them, but the mean leaves them out, unless all members have class weights.

    Examples
    --------
    >>> X, Y = [[0.0], [0.1], [1.0], [1.1]], [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> panel = ClassifierEnsemble(PerLabel(), Forest(10, random_state=0)).fit(X, Y)
    >>> panel.predict([[0.0], [1.1]]).tolist()
    [[0, 1], [1, 0]]
    >>> panel.member_posteriors([[0.0]]).shape
    (1, 4)
    """

    code = "panel"
    takes_texts = True

    def __init__(self, first: Any = None, second: Any = None, *, more: Any = ()) -> None:
        self.first = first
        self.second = second
        self.more = more

    @classmethod
    def of_members(cls, *members: Any, more: Any = ()) -> ClassifierEnsemble:
        """An ensemble of any number of members, as expressions list them."""
        first, second = (*members[:2], None, None)[:2]
        return cls(first, second, more=[*members[2:], *more])

    @property
    def expression(self) -> Call:
        """The code with all members as arguments."""
        given = [member for member in (self.first, self.second) if member is not None]
        return Call(self.code, tuple(map(expression_of, (*given, *self.more))), {})

    @classmethod
    def of_fitted(
        cls, members: Sequence[Any], n_labels: int, n_features: int
    ) -> ClassifierEnsemble:
        """A fitted ensemble of two or more members that are fitted already."""
        first, second, *more = members
        ensemble = cls(first, second, more=more)
        ensemble.members_ = list(members)
        ensemble.n_labels_, ensemble.n_features_in_ = n_labels, n_features
        ensemble.classes_ = np.arange(max(n_labels, 2))
        return ensemble

    def members(self) -> list[Any]:
        """The members, unfitted, with defaults filled in."""
        first = PerLabel() if self.first is None else self.first
        second = Forest(200, random_state=0) if self.second is None else self.second
        return [first, second, *self.more]

    @property
    def joint(self) -> bool:  # type: ignore[override]
        """Whether some member sees labels together."""
        return any(is_joint(member) for member in self.members())

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        self.members_ = train_members(self.members(), X, Y)

    def member_posteriors(self, X: Any) -> Floats:
        """Posteriors of all members side by side, shape (n_items, n_members * n_labels)."""
        return np.hstack(
            [response(part, X, "posteriors", self.n_labels_).values for part in self.members_]
        )

    def mean_of(self, member_posteriors: Floats) -> Floats:
        """The mean posterior of the members without class weights."""
        stacked = member_posteriors.reshape(len(member_posteriors), -1, self.n_labels_)
        return mean_posterior(stacked, [not is_weighted(part) for part in self.members_])

    def _posteriors(self, X: Any) -> Floats:
        return self.mean_of(self.member_posteriors(X))


def train_members(members: Sequence[Any], X: Any, Y: LabelMatrix) -> list[Any]:
    """Trained copies of several classifiers; logistic regressions per label are solved together."""
    together = [m for m in members if type(m) is PerLabel and m.estimator is None]
    settings = [{"C": m.C, "class_weight": m.class_weight} for m in together]
    alike = len({(m.tol, m.max_iter, m.n_jobs) for m in together}) == 1
    if len(together) < 2 or not alike:
        return [train(member, X, Y) for member in members]
    solved = iter(list(fit_settings(together[0], settings, X, Y)))
    known = set(map(id, together))
    return [next(solved) if id(m) in known else train(m, X, Y) for m in members]


def is_weighted(classifier: Any) -> bool:
    """Whether a classifier has class weights, so that its posteriors are not frequencies.

    Examples
    --------
    >>> is_weighted(PerLabel(class_weight="balanced")), is_weighted(PerLabel())
    (True, False)
    """
    while isinstance(classifier, Pipeline):
        classifier = classifier[-1]
    # Wrappers that train one estimator per label keep its settings with it.
    names = ("class_weight", "estimator__class_weight")
    parameters = classifier.get_params() if isinstance(classifier, BaseEstimator) else {}
    return any(parameters.get(name) is not None for name in names)


def mean_posterior(members: Floats, counted: Sequence[bool]) -> Floats:
    """Mean over the members that are counted, or over all if none is.

    Parameters
    ----------
    members : array of float, shape (n_items, n_members, n_labels)
    counted : sequence of bool, one per member

    Returns
    -------
    array of float, shape (n_items, n_labels)
    """
    kept = members[:, np.flatnonzero(counted)] if any(counted) else members
    return np.asarray(kept.mean(axis=1))
