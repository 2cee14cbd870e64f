"""Logistic regression of many labels on one design, for many settings, at once.

For each label the solution minimises scikit-learn's objective
``0.5 |w|^2 + C sum_i s_i log(1 + exp(-y_i (x_i w + b)))`` with y in {-1, 1}, the intercept ``b``
free. All labels and class weights share their products with the items; along rising C the solution
for one value is the start for the next. The solver is in `newton` and `path`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from prevalens.solvers.design import Array
from prevalens.solvers.losses import (
    BinaryLoss,
    check_sample_weight,
    check_stopping,
    check_strengths,
)
from prevalens.solvers.path import LinearFit, Problems, solve_path
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import (
    InputError,
    Matrix,
    check_binary_matrix,
    check_matrix,
    check_same_length,
)

#: None, "balanced", or the weights of both classes, {0: ..., 1: ...}.
ClassWeight: TypeAlias = str | Mapping[int, float] | None


@dataclass(frozen=True, kw_only=True)
class LogisticPath(LinearFit):
    """Logistic regressions of shape (n_settings, n_labels).

    Attributes
    ----------
    settings : tuple of (C, class weight)
    """

    settings: tuple[tuple[float, ClassWeight], ...]


def fit_logistic(
    X: Matrix,
    Y: Any,
    *,
    C: float | Array = 1.0,
    class_weight: ClassWeight | Sequence[ClassWeight] = None,
    sample_weight: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
    fit_intercept: bool = True,
    visible: Any = None,
) -> LinearFit:
    """Fit one logistic regression per label.

    Parameters
    ----------
    X : array or sparse matrix, shape (n_items, n_features)
    Y : 0/1 array, shape (n_items, n_labels)
    C : float or array of float, shape (n_labels,)
        Weight of the loss against the ridge penalty, for all labels or for each.
    class_weight : None, "balanced", dict, or a list of these with one entry per label
    sample_weight : array, shape (n_items,), optional
    tol : float
        A label is finished when the predicted decrease of its next Newton step is no more than this
        share of the objective. That step is still taken.
    max_iter : int
        Newton steps per label at most.
    fit_intercept : bool
    visible : array of bool, shape (n_labels, n_features), optional
        The features that each label may use; all by default. The coefficients of others are zero.

    Returns
    -------
    LinearFit
        Of shape (n_labels,).

    Notes
    -----
    Time O(passes x entries of X x labels), as matrix products, with 10 to 60 passes; memory bounded
    by chunks of labels. Badly scaled sparse features need many passes.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> fit = fit_logistic(X, [[0, 1], [0, 1], [1, 0], [1, 0]], C=[1.0, 100.0])
    >>> fit.coef.round(2).ravel().tolist()
    [0.96, -5.65]
    """
    X, Y, sample_weight = _check_data(X, Y, sample_weight)
    n_labels = Y.shape[1]
    problem = _LabelColumns(
        Y,
        labels=np.arange(n_labels),
        class_weights=_one_per_label(class_weight, n_labels),
        Cs=check_strengths(C, n_labels)[np.newaxis],
        sample_weight=sample_weight,
        visible=_check_visible(visible, (n_labels, X.shape[1]), intercept=fit_intercept),
    )
    return _solve(X, problem, tol, max_iter, fit_intercept=fit_intercept)[0]


def fit_logistic_path(
    X: Matrix,
    Y: Any,
    *,
    Cs: Sequence[float] = (0.1, 1.0, 10.0, 100.0, 1000.0),
    class_weights: Sequence[ClassWeight] = (None, "balanced"),
    sample_weight: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
    fit_intercept: bool = True,
) -> LogisticPath:
    """Fit one logistic regression per label for every pair of C and class weight.

    Parameters
    ----------
    X, Y, sample_weight, tol, max_iter, fit_intercept
        As for `fit_logistic`.
    Cs : list of float
    class_weights : list of {None, "balanced", dict}

    Returns
    -------
    LogisticPath
        Settings are ordered by class weight, then C, as given.

    Examples
    --------
    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0], [0], [1], [1]]
    >>> path = fit_logistic_path(X, Y, Cs=[1, 10], class_weights=[None])
    >>> path.settings
    ((1.0, None), (10.0, None))
    >>> path.coef.shape
    (2, 1, 1)
    """
    X, Y, sample_weight = _check_data(X, Y, sample_weight)
    n_labels, n_weights = Y.shape[1], len(class_weights)
    if not len(Cs) or not n_weights:
        raise InputError("A path needs at least one value in Cs and one in class_weights.")
    C = check_strengths(Cs, len(Cs))
    order = np.argsort(C, kind="stable")
    problem = _LabelColumns(
        Y,
        labels=np.tile(np.arange(n_labels), n_weights),
        class_weights=[weight for weight in class_weights for _ in range(n_labels)],
        Cs=np.broadcast_to(C[order, np.newaxis], (len(C), n_labels * n_weights)),
        sample_weight=sample_weight,
    )
    solution = _solve(X, problem, tol, max_iter, fit_intercept=fit_intercept)
    settings = tuple((float(c), weight) for weight in class_weights for c in C)
    arrays = (_by_setting(part, order, n_weights, n_labels) for part in vars(solution).values())
    return LogisticPath(*arrays, settings=settings)


def fit_logistic_folds(
    X: Matrix,
    Y: Any,
    rows: Sequence[Array],
    *,
    Cs: Sequence[float],
    class_weight: ClassWeight = None,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> list[LinearFit]:
    """Fit one logistic regression per label and C to each of several subsets of the items.

    Parameters
    ----------
    X, Y, Cs, tol, max_iter
        As for `fit_logistic_path`.
    rows : list of int arrays
        The items of each subset.
    class_weight : None, "balanced" or dict

    Returns
    -------
    list of LinearFit
        One per subset, of shape (n_settings, n_labels).

    Notes
    -----
    The same as `fit_logistic_path` on each subset, up to `tol`. All subsets are solved
    together, with weight 0 for the items they lack: the products are larger by the share of these
    items, but there are fewer of them, which pays if they are small.
    """
    X, Y, _ = _check_data(X, Y, None)
    n_labels, n_subsets = Y.shape[1], len(rows)
    C = check_strengths(Cs, len(Cs))
    order = np.argsort(C, kind="stable")
    inside = np.zeros((len(Y), n_subsets))
    for subset, chosen in enumerate(rows):
        inside[chosen, subset] = 1.0
    problem = _LabelColumns(
        Y,
        labels=np.tile(np.arange(n_labels), n_subsets),
        class_weights=[class_weight] * (n_labels * n_subsets),
        Cs=np.broadcast_to(C[order, np.newaxis], (len(C), n_labels * n_subsets)),
        sample_weight=np.repeat(inside, n_labels, axis=1),
    )
    solution = _solve(X, problem, tol, max_iter, fit_intercept=True)
    arrays = (_by_setting(part, order, n_subsets, n_labels) for part in vars(solution).values())
    whole = LinearFit(*arrays)
    return [whole[start : start + len(C)] for start in range(0, n_subsets * len(C), len(C))]


def _by_setting(array: Array, order: Array, n_weights: int, n_labels: int) -> Array:
    """From (sorted C, class weight and label, ...) to (class weight and C as given, label, ...)."""
    back = np.argsort(order)
    rest = array.shape[2:]
    by_weight = array[back].reshape(len(back), n_weights, n_labels, *rest).swapaxes(0, 1)
    return by_weight.reshape(len(back) * n_weights, n_labels, *rest)


class _LabelColumns:
    """All problems on one design: a label, a class weight and rising values of C each.

    Parameters
    ----------
    Y : array of int8, shape (n_items, n_labels)
    labels : array of int, shape (n_columns,)
    class_weights : list, one entry per column
    Cs : array, shape (n_steps, n_columns)
    sample_weight : array, shape (n_items,) or (n_items, n_columns), or None
    visible : array of bool, shape (n_params, n_columns), or None
    """

    def __init__(
        self,
        Y: LabelMatrix,
        *,
        labels: Array,
        class_weights: Sequence[ClassWeight],
        Cs: Array,
        sample_weight: Array | None,
        visible: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self.Y, self.labels, self.Cs, self.sample_weight = Y, labels, Cs, sample_weight
        self.visible = visible
        self.positives, total = _weighted_counts(Y, labels, sample_weight)
        self.negatives = total - self.positives
        counts = zip(class_weights, self.positives, self.negatives, strict=True)
        pairs = [_class_weights(*column) for column in counts]
        self.negative_weight, self.positive_weight = np.array(pairs, dtype=np.float64).T

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def constant(self) -> npt.NDArray[np.bool_]:
        """Whether no item (of positive weight) is in one of the classes."""
        return np.minimum(self.positives, self.negatives) <= 0

    def log_odds(self) -> Array:
        """The intercepts that fit best without features; infinite for constant columns."""
        with np.errstate(divide="ignore"):
            positive = np.log(self.positives * self.positive_weight)
            return np.asarray(positive - np.log(self.negatives * self.negative_weight))

    def in_order(self, chosen: Array) -> list[Array]:
        """Columns one by one, the rarest class first: these take the most steps."""
        rarity = np.minimum(self.positives, self.negatives)[chosen]
        return [chosen[[place]] for place in np.argsort(rarity, kind="stable")]

    def loss(self, chosen: Array, C: Array, curvature_type: npt.DTypeLike) -> BinaryLoss:
        """The loss of some columns."""
        Y = self.Y[:, self.labels[chosen]]
        visible = None if self.visible is None else self.visible[:, chosen]
        return BinaryLoss(1 - 2 * Y, self._weights(chosen, Y) * C, curvature_type, visible)

    def _weights(self, chosen: Array, Y: LabelMatrix) -> Array:
        """Weights without C, shape (n_items, n_chosen); one row if all items weigh the same."""
        negative, positive = self.negative_weight[chosen], self.positive_weight[chosen]
        if self.sample_weight is None and np.array_equal(negative, positive):
            return positive[np.newaxis]
        weights = np.where(Y > 0, positive, negative)
        if self.sample_weight is not None:
            each = self.sample_weight
            weights *= each[:, np.newaxis] if each.ndim == 1 else each[:, chosen]
        return np.asarray(weights)


def _solve(
    X: Matrix,
    columns: _LabelColumns,
    tol: float,
    max_iter: int,
    *,
    fit_intercept: bool,
) -> LinearFit:
    """Solve all columns at all steps; the shape is (n_steps, n_columns)."""
    tol, max_iter = check_stopping(tol, max_iter)
    everything = np.arange(len(columns))
    constant = columns.constant & fit_intercept
    intercept = columns.log_odds() if fit_intercept else np.zeros(len(columns))
    problems = Problems(
        groups=columns.in_order(everything[~constant]),
        C=columns.Cs,
        make_loss=columns.loss,
        start=(np.zeros((len(columns), X.shape[1])), intercept),
    )
    solution = solve_path(X, problems, fit_intercept=fit_intercept, tol=tol, max_iter=max_iter)
    solution.intercept[:, constant] = intercept[constant]
    return solution


def _weighted_counts(
    Y: LabelMatrix, labels: Array, sample_weight: Array | None
) -> tuple[Floats, Floats | float]:
    """Weight of the positives of each column, and of all items."""
    if sample_weight is None:
        return Y.sum(axis=0, dtype=np.float64)[labels], float(len(Y))
    if sample_weight.ndim == 1:
        return np.asarray(sample_weight @ Y, dtype=np.float64)[labels], float(sample_weight.sum())
    return np.asarray((sample_weight * Y[:, labels]).sum(axis=0)), sample_weight.sum(axis=0)


def _class_weights(weight: ClassWeight, positives: float, negatives: float) -> tuple[float, float]:
    """Weights of the negative and the positive class."""
    if weight is None:
        return 1.0, 1.0
    if isinstance(weight, str) and weight == "balanced":
        if min(positives, negatives) <= 0:
            return 1.0, 1.0
        half = 0.5 * (positives + negatives)
        return half / negatives, half / positives
    if isinstance(weight, Mapping) and set(weight) <= {0, 1}:
        pair = float(weight.get(0, 1.0)), float(weight.get(1, 1.0))
        if min(pair) > 0:
            return pair
    raise InputError(
        "class_weight must be None, 'balanced', or {0: weight, 1: weight} with positive weights; "
        f"got {weight!r}."
    )


def _one_per_label(
    class_weight: ClassWeight | Sequence[ClassWeight], n_labels: int
) -> Sequence[ClassWeight]:
    if class_weight is None or isinstance(class_weight, (str, Mapping)):
        return [class_weight] * n_labels
    if len(class_weight) != n_labels:
        raise InputError(
            f"class_weight has {len(class_weight)} entries but there are {n_labels} labels; give "
            "one for all or one per label."
        )
    return class_weight


def _check_visible(
    visible: Any, shape: tuple[int, int], *, intercept: bool
) -> npt.NDArray[np.bool_] | None:
    """The features that labels may use, one column per label; all may use the intercept."""
    if visible is None:
        return None
    allowed = np.asarray(visible, dtype=bool)
    if allowed.shape != shape:
        raise InputError(
            f"visible must have one row per label and one column per feature, {shape}; its shape "
            f"is {allowed.shape}."
        )
    return np.vstack([allowed.T, np.ones((int(intercept), shape[0]), dtype=bool)])


def _check_data(X: Matrix, Y: Any, sample_weight: Any) -> tuple[Matrix, LabelMatrix, Floats | None]:
    X, Y = check_matrix(X), check_binary_matrix(Y)
    check_same_length(X.shape[0], "X", Y.shape[0], "Y")
    return X, Y, check_sample_weight(sample_weight, X.shape[0])
