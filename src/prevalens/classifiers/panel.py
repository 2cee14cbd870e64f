"""A panel: several classifiers asked about the same items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.classifiers.constant import train
from prevalens.classifiers.per_label import PerLabel
from prevalens.classifiers.response import is_joint, response
from prevalens.classifiers.trees import Forest

__all__ = ["Panel"]


class Panel(MultiLabelClassifier):
    """Several classifiers, whose posteriors are averaged, or read side by side.

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
    `ScenarioMixture`, read those of all members (`views`): classifiers of different kinds err
    in different ways, and say more of a sample together. Costs the sum of its members.

    Examples
    --------
    >>> X, Y = [[0.0], [0.1], [1.0], [1.1]], [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> panel = Panel(PerLabel(), Forest(10, random_state=0)).fit(X, Y)
    >>> panel.predict([[0.0], [1.1]]).tolist()
    [[0, 1], [1, 0]]
    >>> panel.views([[0.0]]).shape
    (1, 4)
    """

    code = "panel"
    takes_texts = True

    def __init__(self, first: Any = None, second: Any = None, *, more: Any = ()) -> None:
        self.first = first
        self.second = second
        self.more = more

    @classmethod
    def of_fitted(cls, members: Sequence[Any], n_labels: int) -> Panel:
        """A fitted panel of two or more members that are fitted already."""
        first, second, *more = members
        panel = cls(first, second, more=more)
        panel.members_ = list(members)
        panel.n_labels_ = n_labels
        panel.classes_ = np.arange(max(n_labels, 2))
        if hasattr(first, "n_features_in_"):
            panel.n_features_in_ = first.n_features_in_
        return panel

    def members(self) -> list[Any]:
        """The members, unfitted, with defaults filled in."""
        first = PerLabel() if self.first is None else self.first
        second = Forest(200, random_state=0) if self.second is None else self.second
        return [first, second, *self.more]

    @property
    def joint(self) -> bool:  # type: ignore[override]
        """Whether some member sees labels together."""
        return any(is_joint(member) for member in self.members())

    def _fit(self, X: Any, Y: npt.NDArray[np.int8]) -> None:
        self.members_ = [train(member, X, Y) for member in self.members()]

    def views(self, X: Any) -> npt.NDArray[np.float64]:
        """Posteriors of all members side by side, shape (n_items, n_members * n_labels)."""
        return np.hstack(
            [response(one, X, "posteriors", self.n_labels_).values for one in self.members_]
        )

    def _posteriors(self, X: Any) -> npt.NDArray[np.float64]:
        views = self.views(X)
        return views.reshape(len(views), -1, self.n_labels_).mean(axis=1)
