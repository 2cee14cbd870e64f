"""A guard against columns that have drifted beyond anything the labels can explain.

A new footer in all texts, a sensor that got stuck, a column that was recoded: the items look
different whatever their labels are, and every score is off. A change of the label mix alone moves
the mean of a column, too, but not far beyond its means with and without each label.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from prevalens.errors import InputError, PrevalensWarning
from prevalens.validation import check_binary_matrix, check_matrix, check_same_length

__all__ = ["ColumnGuard", "DriftWarning"]

_Means = npt.NDArray[np.float64]
#: Rows below which a mean says too little.
_FEWEST_ROWS = 30
#: Items of the overall mean that are added to those with a label, and to those without it: two
#: items must not span the whole column.
_PSEUDO_ITEMS = 10
_STANDARD_ERRORS = 10
#: Least share and number of rows that must carry the drift; fewer are outliers, or a rare word that
#: comes in a burst.
_SHARE, _CARRIERS = 0.1, 10
#: What counts as no move at all, as a share of the mean; for columns that were constant.
_ROUNDING = 1e-3
#: Numbers that are held at once beyond the items.
_BLOCK = 4_000_000
_NAMED = 3


class DriftWarning(PrevalensWarning):
    """Columns of a batch were set aside.

    Attributes
    ----------
    columns : tuple of int
    """

    def __init__(self, text: str, columns: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.columns = tuple(columns)


class ColumnGuard(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Set columns aside whose mean in a batch no mix of the labels can explain.

    Parameters
    ----------
    tolerance : float
        How far beyond the explained range a mean may lie, in standard deviations of an item.
        ``float("inf")`` switches the guard off.
    names : sequence of str, optional
        Of the columns, to name them in the warning; those of a data frame are known.

    Attributes
    ----------
    mean_ : array of float, shape (n_features,)
        Of the training items.
    deviation_ : array of float, shape (n_features,)
        Standard deviation of a training item.
    lowest_, highest_ : array of float, shape (n_features,)
        The range that labels can explain: means over the items with a label, and without it, of all
        labels, each with ten items more of the overall mean.
    n_items_ : int
        Training items.

    Notes
    -----
    A column is adrift in a batch of 30 rows or more if its mean lies outside the range by more
    than `tolerance` standard deviations of an item, by more than ten standard errors, and by so
    much that a tenth of the rows, and ten of them, must have moved. A column of ones and zeros
    that half of the items have can hardly be adrift; a rare one is if many more rows have it than
    any label's items. A column that was 0 in all training items has taught a classifier nothing
    and is left alone.

    A column adrift gets the mean of the training items in every row. In a sparse matrix that would
    store a number per row; where the column has grown, its stored entries share the training
    mean instead, which is the same if every row has one. Where it has shrunk, it is filled: to
    shrink by that much, a fifth of the training items at least had it.

    Fitting takes one product of labels and items, O(stored entries x labels per item), and holds
    a bounded block of labels x columns; a batch takes one pass. Does not see a drift that lies
    within what the labels can explain, one that leaves the means alone, or one of a few rows among
    many: hand in batches that belong together.

    Examples
    --------
    >>> import warnings
    >>> X, Y = np.eye(4)[np.arange(200) % 4], np.eye(2, dtype=int)[np.arange(200) % 2]
    >>> X[4:, 3] = 0  # one item of 200 has the last column
    >>> guard = ColumnGuard().fit(X, Y)
    >>> guard.transform(X) is X
    True
    >>> stuck = X.copy()
    >>> stuck[:, 3] = 1
    >>> guard.adrift(stuck).tolist()
    [3]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", DriftWarning)
    ...     print(guard.transform(stuck)[:2])
    [[1.    0.    0.    0.005]
     [0.    1.    0.    0.005]]
    """

    def __init__(self, tolerance: float = 1.0, *, names: Sequence[str] | None = None) -> None:
        self.tolerance = tolerance
        self.names = names

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn how far labels move the means of the columns.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_items, n_features)
        Y : 0/1 matrix of shape (n_items, n_labels)
        """
        if not self.tolerance > 0:
            raise InputError(f"tolerance must be above 0; got {self.tolerance!r}.")
        matrix, Y = _canonical(check_matrix(X)), check_binary_matrix(Y)
        check_same_length(matrix.shape[0], "X", len(Y), "Y")
        self.n_items_, self.n_features_in_ = matrix.shape
        self._learn_names(X)
        self.mean_ = _sums(matrix) / self.n_items_
        self.deviation_ = np.sqrt(_variances(matrix, self.mean_))
        self.lowest_, self.highest_ = _range(matrix, Y, self.mean_)
        return self

    def transform(self, X: Any) -> Any:
        """The batch itself, or if columns are adrift a copy without their drift, and a warning."""
        matrix = self._checked(X)
        columns = self._adrift(matrix)
        if not len(columns):
            return X
        warnings.warn(DriftWarning(self.sentence(matrix, columns), columns.tolist()), stacklevel=2)
        return self.without(matrix, columns)

    def adrift(self, X: Any) -> npt.NDArray[np.intp]:
        """Positions of the columns that are adrift in a batch, ascending."""
        return self._adrift(self._checked(X))

    def without(self, X: Any, columns: npt.NDArray[np.intp]) -> Any:
        """A copy of a batch in which some columns have the mean of the training items."""
        matrix = self._checked(X)
        if sp.issparse(matrix):
            return self._sparse_without(matrix, columns)
        matrix = matrix.copy()
        matrix[:, columns] = self.mean_[columns]
        return matrix

    def sentence(
        self, X: Any, columns: npt.NDArray[np.intp], names: Any = None, *, where: str = "this batch"
    ) -> str:
        """What has happened to columns of a batch, and what is done about it.

        Parameters
        ----------
        X : the batch
        columns : array of int
        names : sequence of str, optional
            Of all columns; those the guard knows if left out.
        where : str
            What to call the batch.
        """
        names = getattr(self, "feature_names_in_", None) if names is None else names
        means = _sums(X[:, columns]) / X.shape[0]
        moved = [
            f"{j if names is None else repr(str(names[j]))} "
            f"(mean {_short(self.mean_[j])} in training, {_short(mean)} now)"
            for j, mean in zip(columns[:_NAMED].tolist(), means.tolist(), strict=False)
        ]
        more = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
        what, are, they = (
            ("column", "is", "it") if len(columns) == 1 else ("columns", "are", "they")
        )
        return (
            f"In {where} {len(columns)} feature {what} moved further than any change of the labels "
            f"can explain and {are} held at the training mean: {', '.join(moved)}{more}; if {they} "
            f"moved for a good reason, train anew with such items, or switch this off with "
            "ColumnGuard(tolerance=inf)."
        )

    def _learn_names(self, X: Any) -> None:
        names = self.names if self.names is not None else getattr(X, "columns", None)
        if names is None:
            return
        if len(names) != self.n_features_in_:
            raise InputError(f"There are {self.n_features_in_} columns but {len(names)} names.")
        self.feature_names_in_ = np.array([str(name) for name in names], dtype=object)

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "mean_")
        matrix = check_matrix(X)
        if matrix.shape[1] != self.n_features_in_:
            raise InputError(
                f"The guard was fitted on {self.n_features_in_} features, but the items have "
                f"{matrix.shape[1]}."
            )
        return matrix

    def _adrift(self, matrix: Any) -> npt.NDArray[np.intp]:
        n_rows = matrix.shape[0]
        if n_rows < _FEWEST_ROWS or np.isinf(self.tolerance):
            return np.empty(0, dtype=np.intp)
        beyond = self._beyond(_sums(matrix) / n_rows)
        errors = self.deviation_ * np.sqrt(1 / n_rows + 1 / self.n_items_)
        least = np.maximum(self.tolerance * self.deviation_, _STANDARD_ERRORS * errors)
        learnt = (self.mean_ != 0) | (self.deviation_ > 0)
        suspects = np.flatnonzero(
            learnt & (beyond > np.maximum(least, _ROUNDING * abs(self.mean_)))
        )
        if not len(suspects):
            return suspects
        farthest = self._farthest(matrix[:, suspects], suspects)
        return suspects[beyond[suspects] > max(_SHARE, _CARRIERS / n_rows) * farthest]

    def _beyond(self, values: Any, columns: Any = slice(None)) -> Any:
        """How far values lie outside the explained range."""
        below, above = self.lowest_[columns] - values, values - self.highest_[columns]
        return np.maximum(np.maximum(below, above), 0)

    def _farthest(self, part: Any, columns: npt.NDArray[np.intp]) -> _Means:
        """How far the row that lies farthest outside does so, by column."""
        ends = [part.min(axis=0), part.max(axis=0)]
        low, high = (end.toarray().ravel() if sp.issparse(end) else end for end in ends)
        found: _Means = np.maximum(self._beyond(low, columns), self._beyond(high, columns))
        return found

    def _sparse_without(self, matrix: Any, columns: npt.NDArray[np.intp]) -> Any:
        matrix = _canonical(matrix)
        n_rows = matrix.shape[0]
        stored = np.bincount(matrix.indices, minlength=matrix.shape[1])
        grown = abs(_sums(matrix)[columns]) >= abs(self.mean_[columns]) * n_rows
        shares = np.ones(matrix.shape[1])
        shares[columns] = 0
        target = np.zeros(matrix.shape[1])
        spread = columns[grown & (stored[columns] > 0)]
        target[spread] = self.mean_[spread] * n_rows / stored[spread]
        data = matrix.data * shares[matrix.indices] + target[matrix.indices]
        found = type(matrix)(
            (data.astype(matrix.dtype), matrix.indices, matrix.indptr), matrix.shape
        )
        filled = np.setdiff1d(columns, spread)
        if not len(filled):
            return found
        rows = np.repeat(np.arange(n_rows), len(filled))
        values = np.tile(self.mean_[filled], n_rows).astype(matrix.dtype)
        added = sp.csr_array((values, (rows, np.tile(filled, n_rows))), shape=matrix.shape)
        return type(matrix)(found + added)


def _short(value: float) -> str:
    return f"{value:.3g}"


def _canonical(matrix: Any) -> Any:
    """No entry of a sparse matrix is stored in two parts."""
    if sp.issparse(matrix) and not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _sums(matrix: Any) -> _Means:
    """Sums of the columns in double precision."""
    if sp.issparse(matrix):
        return np.asarray(
            np.bincount(matrix.indices, matrix.data, minlength=matrix.shape[1]), dtype=np.float64
        )
    return np.asarray(matrix.sum(axis=0, dtype=np.float64))


def _variances(matrix: Any, mean: _Means) -> _Means:
    n_items = matrix.shape[0]
    if sp.issparse(matrix):
        squares = np.bincount(
            matrix.indices, np.square(matrix.data, dtype=np.float64), minlength=matrix.shape[1]
        )
        found = squares / n_items - mean**2
        # What rounding leaves of a constant column is none.
        return np.where(found > 1e-12 * mean**2, found, 0.0)
    total = np.zeros(len(mean))
    for rows in _blocks(n_items, len(mean)):
        total += np.square(matrix[rows] - mean).sum(axis=0)
    return total / n_items


def _range(matrix: Any, Y: npt.NDArray[np.int8], mean: _Means) -> tuple[_Means, _Means]:
    """Lowest and highest mean with a label or without it, over all labels."""
    n_items, lowest, highest = len(Y), mean.copy(), mean.copy()
    # The product of two sparse matrices costs the labels that items have, not all there are.
    for labels in _blocks(Y.shape[1], len(mean)):
        having = sp.csr_array(Y[:, labels].T.astype(np.float64))
        sums = having @ matrix
        sums = sums.toarray() if sp.issparse(sums) else np.asarray(sums)
        counts = Y[:, labels].sum(axis=0, dtype=np.int64)[:, np.newaxis]
        for total, count in ((sums, counts), (n_items * mean - sums, n_items - counts)):
            means = (total + _PSEUDO_ITEMS * mean) / (count + _PSEUDO_ITEMS)
            lowest = np.minimum(lowest, means.min(axis=0))
            highest = np.maximum(highest, means.max(axis=0))
    return lowest, highest


def _blocks(count: int, width: int) -> Iterator[slice]:
    """Cut so that a block's numbers stay within bounds."""
    step = max(1, _BLOCK // max(1, width))
    for start in range(0, count, step):
        yield slice(start, start + step)
