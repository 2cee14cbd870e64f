"""One tree, or a forest of them, for all labels at once."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.response import response
from prevalens.types import Floats, LabelMatrix

__all__ = ["ExtraTrees", "Forest", "Tree"]


class _MultiOutput(MultiLabelClassifier):
    """A scikit-learn estimator that takes all labels together, with one shape for its answers."""

    @abstractmethod
    def _unfitted(self) -> Any:
        """The scikit-learn estimator with this one's parameters."""

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        # A single label as a flat array: scikit-learn warns of a column.
        self.estimator_ = self._unfitted().fit(X, Y if Y.shape[1] > 1 else Y.ravel())

    def _posteriors(self, X: Any) -> Floats:
        return np.asarray(response(self.estimator_, X, "posteriors", self.n_labels_).values)

    def _votes(self, X: Any) -> npt.NDArray[Any]:
        return np.asarray(response(self.estimator_, X, "votes", self.n_labels_).values)


class Tree(_MultiOutput):
    """A decision tree whose splits serve all labels.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss"}
    max_depth, min_samples_leaf : int
        As in :class:`sklearn.tree.DecisionTreeClassifier`.
    class_weight : str or list, optional
    random_state : int, optional

    Notes
    -----
    O(n_features x n_items log n_items) per level. A full-grown tree answers 0 or 1 only, so that
    its mean posterior is its count; raise `min_samples_leaf` for graded posteriors.

    References
    ----------
    Vens et al., "Decision trees for hierarchical multi-label classification", Machine Learning
    73(2), 2008.

    Examples
    --------
    >>> X, Y = [[0.0], [0.1], [1.0], [1.1]], [[0, 1], [0, 1], [1, 1], [1, 0]]
    >>> Tree(random_state=0).fit(X, Y).predict_proba([[0.0], [1.1]]).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    code = "tree"

    def __init__(
        self,
        criterion: str = "gini",
        max_depth: int | None = None,
        *,
        min_samples_leaf: int | float = 1,
        class_weight: Any = None,
        random_state: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.class_weight = class_weight
        self.random_state = random_state

    def _unfitted(self) -> Any:
        return DecisionTreeClassifier(**self.get_params(deep=False))


class Forest(_MultiOutput):
    """A random forest whose trees split for all labels together.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    criterion : {"gini", "entropy", "log_loss"}
    max_depth, min_samples_leaf, max_features :
        As in :class:`sklearn.ensemble.RandomForestClassifier`.
    class_weight : str or list, optional
    n_jobs : int, optional
    random_state : int, optional

    Notes
    -----
    `n_estimators` times the cost of a `Tree` on a share of the features. Rare labels take part in
    few splits, so that their posteriors stay close to 0.

    References
    ----------
    Breiman, "Random forests", Machine Learning 45(1), 2001.

    Examples
    --------
    >>> X, Y = [[0.0], [0.1], [1.0], [1.1]], [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> Forest(10, random_state=0).fit(X, Y).predict([[0.0], [1.1]]).tolist()
    [[0, 1], [1, 0]]
    """

    code = "forest"

    def __init__(
        self,
        n_estimators: int = 100,
        criterion: str = "gini",
        *,
        max_depth: int | None = None,
        min_samples_leaf: int | float = 1,
        max_features: Any = "sqrt",
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _unfitted(self) -> Any:
        return RandomForestClassifier(**self.get_params(deep=False))


class ExtraTrees(Forest):
    """A forest of trees that see all items and split at random thresholds.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    criterion : {"gini", "entropy", "log_loss"}
    max_depth, min_samples_leaf, max_features :
        As in :class:`sklearn.ensemble.ExtraTreesClassifier`.
    class_weight : str or list, optional
    n_jobs : int, optional
    random_state : int, optional

    Notes
    -----
    Cheaper than `Forest` on dense features, as no threshold is searched for: on Yeast, Birds and
    Emotions a tree took 0.4 to 0.6 of the time.

    References
    ----------
    Geurts, Ernst and Wehenkel, "Extremely randomized trees", Machine Learning 63(1), 2006.

    Examples
    --------
    >>> X, Y = [[0.0], [0.1], [1.0], [1.1]], [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> ExtraTrees(10, random_state=0).fit(X, Y).predict([[0.0], [1.1]]).tolist()
    [[0, 1], [1, 0]]
    """

    code = "extratrees"

    def _unfitted(self) -> Any:
        return ExtraTreesClassifier(**self.get_params(deep=False))
