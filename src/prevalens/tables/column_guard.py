"""Detection of feature columns that have drifted further than any change of the labels explains.

A new footer in all texts, a sensor that got stuck, a column that was recoded: the features change
whatever the labels are, and every score is wrong. A change of the label mix alone moves the mean of
a column, too, but not far beyond its means over the items with and without each label.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from prevalens.errors import InputError, PrevalensWarning
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import check_binary_matrix, check_matrix, check_same_length

#: Columns adrift, and their means in the batch.
Drift: TypeAlias = dict[int, float]
#: Fewer rows are not checked: their mean is too uncertain.
FEWEST_ROWS = 30
#: Items of the overall mean that are added to those with a label, and to those without it, so that
#: the mean of a few items does not set the range.
_PSEUDO_ITEMS = 10
_STANDARD_ERRORS = 10
#: Least share and number of rows that must have drifted; fewer are outliers, or a rare word that is
#: frequent for a short time.
_SHARE, _CARRIERS = 0.1, 10
#: Changes up to this share of the mean count as rounding; for columns that were constant.
_ROUNDING = 1e-3
#: Largest number of values of a temporary block.
_BLOCK = 2_000_000
_NAMED = 3


class DriftWarning(PrevalensWarning):
    """Some columns of a batch are held at their training mean.

    Attributes
    ----------
    columns : tuple of int
    """

    def __init__(self, text: str, columns: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.columns = tuple(columns)


class ColumnGuard(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Hold columns at their training mean if no label mix explains their mean in a batch.

    Parameters
    ----------
    tolerance : float
        How far beyond the explained range a mean may lie, in standard deviations of an item.
        ``float("inf")`` switches the guard off.

    Attributes
    ----------
    mean_ : array of float, shape (n_features,)
        Mean of the training items.
    deviation_ : array of float, shape (n_features,)
        Standard deviation of a training item.
    lowest_, highest_ : array of float, shape (n_features,)
        The range that labels can explain: means over the items with a label, and without it, of all
        labels, each with ten items more of the overall mean.
    n_items_ : int
        Training items.
    unit_rows_ : bool
        Whether all training items have length 1, as tf-idf gives them, or are empty.

    Notes
    -----
    A column is adrift in a batch of 30 rows or more if its mean lies outside the range by more
    than `tolerance` standard deviations of an item, by more than ten standard errors, and by so
    much that a tenth of the rows, and ten of them, must have moved. A column of ones and zeros
    that is 1 in half of the items can hardly be adrift; a rare one is if it is 1 in many more rows
    than among the items of any label. A column that was 0 in all training items has no effect on a
    classifier and is left alone.

    A column adrift gets the mean of the training items in every row. In a sparse matrix that would
    store a number per row; if the mean of the column has grown, its stored entries share the sum
    of the training means instead, which is the same if every row has an entry. If it has shrunk,
    the column is filled: at least a fifth of the training items had an entry then. If all training
    items have length 1, the rest of a row is scaled to that length again, because words that were
    added to all texts lower the weights of the other words.

    Fitting takes one product of labels and items, O(stored entries x labels per item), and holds
    a bounded block of labels x columns; a batch takes one pass. It does not detect a drift that the
    labels can explain, one that does not change the means, or one of a few rows among many: pass
    the items of one batch together.

    Examples
    --------
    >>> import warnings
    >>> X, Y = 2 * np.eye(4)[np.arange(200) % 4], np.eye(2, dtype=int)[np.arange(200) % 2]
    >>> X[4:, 3] = 0  # one item of 200 has the last column
    >>> guard = ColumnGuard().fit(X, Y)
    >>> guard.transform(X) is X
    True
    >>> stuck = X.copy()
    >>> stuck[:, 3] = 2
    >>> guard.adrift(stuck).tolist()
    [3]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", DriftWarning)
    ...     print(guard.transform(stuck)[:2])
    [[2.   0.   0.   0.01]
     [0.   2.   0.   0.01]]
    """

    def __init__(self, tolerance: float = 1.0) -> None:
        self.tolerance = tolerance

    def fit(self, X: Any, Y: Any, *, names: Sequence[str] | None = None) -> Self:
        """Learn how far labels move the means of the columns.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_items, n_features)
        Y : 0/1 matrix of shape (n_items, n_labels)
        names : sequence of str, optional
            Names of the columns, for the warning; those of a data frame are known.
        """
        if not self.tolerance > 0:
            raise InputError(f"tolerance must be above 0; got {self.tolerance!r}.")
        matrix, Y = _canonical(check_matrix(X)), check_binary_matrix(Y)
        check_same_length(matrix.shape[0], "X", len(Y), "Y")
        self.n_items_, self.n_features_in_ = matrix.shape
        self._learn_names(X, names)
        self.mean_ = _sums(matrix) / self.n_items_
        self.deviation_ = np.sqrt(_variances(matrix, self.mean_))
        self.lowest_, self.highest_ = _range(matrix, Y, self.mean_)
        lengths = _lengths(matrix)
        self.unit_rows_ = bool(np.all((np.abs(lengths - 1) < _ROUNDING) | (lengths == 0)))
        return self

    def transform(self, X: Any) -> Any:
        """The batch itself, or if columns are adrift a copy without their drift, and a warning."""
        mended, drift = self.mend(X)
        if drift:
            warnings.warn(self._warning(drift), stacklevel=2)
        return mended

    def transform_many(self, parts: Iterable[Any], names: Any = None) -> Iterator[Any]:
        """As `transform`, for parts of one batch one by one, with one warning after the last.

        Parameters
        ----------
        parts : iterable of matrices
        names : sequence of str, optional
            Names of the columns, for the warning.
        """
        drift: Drift = {}
        for part in parts:
            mended, own = self.mend(part)
            drift = own | drift
            yield mended
        if drift:
            warnings.warn(self._warning(drift, names), stacklevel=2)

    def mend(self, X: Any) -> tuple[Any, Drift]:
        """As `transform`, with the columns adrift and their means in place of the warning."""
        matrix = self._checked(X)
        columns = self._adrift(matrix)
        if not len(columns):
            return X, {}
        means = _sums(matrix[:, columns]) / matrix.shape[0]
        drift = dict(zip(columns.tolist(), means.tolist(), strict=True))
        return self._without(matrix, columns), drift

    def adrift(self, X: Any) -> npt.NDArray[np.intp]:
        """Positions of the columns that are adrift in a batch, ascending."""
        return self._adrift(self._checked(X))

    def sentence(self, drift: Drift, names: Any = None, *, where: str = "this batch") -> str:
        """A sentence on the columns that have drifted and what was done about it.

        Parameters
        ----------
        drift : dict of int to float
            Columns and their means, as `mend` gives them.
        names : sequence of str, optional
            Names of all columns; those known from training if omitted.
        where : str
            Name of the batch in the sentence.
        """
        names = getattr(self, "feature_names_in_", None) if names is None else names
        moved = [
            f"{j if names is None else repr(str(names[j]))} "
            f"(mean {self.mean_[j]:.3g} in training, {mean:.3g} now)"
            for j, mean in sorted(drift.items(), key=self._nearness)[:_NAMED]
        ]
        more = f" and {len(drift) - _NAMED} more" if len(drift) > _NAMED else ""
        what, are = ("column", "is") if len(drift) == 1 else ("columns", "are")
        return (
            f"In {where}, {len(drift)} feature {what} moved further than any change of the labels "
            f"can explain and {are} held at the training mean: {', '.join(moved)}{more}; if that "
            "is wrong, train anew with such items or without ColumnGuard (named methods have none)."
        )

    def _nearness(self, moved: tuple[int, float]) -> float:
        """Minus the number of standard deviations by which a column has moved."""
        column, mean = moved
        return -abs(mean - self.mean_[column]) / max(self.deviation_[column], 1e-9)

    def _warning(self, drift: Drift, names: Any = None) -> DriftWarning:
        return DriftWarning(self.sentence(drift, names), sorted(drift))

    def _learn_names(self, X: Any, names: Sequence[str] | None) -> None:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if names is None and isinstance(frame, nw.DataFrame):
            names = frame.columns
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
                f"The items have {matrix.shape[1]} features, but there were "
                f"{self.n_features_in_} in training; give the same columns in the same order."
            )
        return matrix

    def _adrift(self, matrix: Any) -> npt.NDArray[np.intp]:
        n_rows = matrix.shape[0]
        if n_rows < FEWEST_ROWS or np.isinf(self.tolerance):
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
        # By chance, few training items may all lack a feature that many other items have.
        share = max(_SHARE, _CARRIERS / min(n_rows, self.n_items_))
        return suspects[beyond[suspects] > share * farthest]

    def _beyond(self, values: Any, columns: Any = slice(None)) -> Any:
        """How far values lie outside the explained range."""
        below, above = self.lowest_[columns] - values, values - self.highest_[columns]
        return np.maximum(np.maximum(below, above), 0)

    def _farthest(self, part: Any, columns: npt.NDArray[np.intp]) -> Floats:
        """The largest distance of a row from the explained range, by column."""
        ends = [part.min(axis=0), part.max(axis=0)]
        low, high = (end.toarray().ravel() if sp.issparse(end) else end for end in ends)
        return np.asarray(np.maximum(self._beyond(low, columns), self._beyond(high, columns)))

    def _without(self, matrix: Any, columns: npt.NDArray[np.intp]) -> Any:
        """A copy in which some columns have the mean of the training items."""
        if sp.issparse(matrix):
            return self._sparse_without(_canonical(matrix), columns)
        held = matrix.copy()
        held[:, columns] = 0
        self._lengthen(held)
        held[:, columns] = self.mean_[columns]
        return held

    def _sparse_without(self, matrix: Any, columns: npt.NDArray[np.intp]) -> Any:
        n_rows = matrix.shape[0]
        grown = np.abs(_sums(matrix)[columns]) >= np.abs(self.mean_[columns]) * n_rows
        spread, filled = columns[grown], columns[~grown]
        kept, shared = np.ones((2, matrix.shape[1]), dtype=matrix.dtype)
        kept[columns], shared[:] = 0, 0
        # A column whose mean has grown has stored entries.
        stored = np.bincount(matrix.indices, minlength=matrix.shape[1])
        shared[spread] = self.mean_[spread] * n_rows / stored[spread]
        held = matrix.copy()
        held.data *= kept[matrix.indices]
        self._lengthen(held)
        held.data += shared[matrix.indices]
        return held if not len(filled) else type(matrix)(held + self._full(filled, held))

    def _lengthen(self, matrix: Any) -> None:
        """Scale rows that are not empty to length 1 in place, if the training items have it."""
        if not self.unit_rows_:
            return
        lengths = _lengths(matrix)
        factors = np.divide(1.0, lengths, out=np.ones_like(lengths), where=lengths > 0)
        factors = factors.astype(matrix.dtype)
        if sp.issparse(matrix):
            matrix.data *= np.repeat(factors, np.diff(matrix.indptr))
        else:
            matrix *= factors[:, np.newaxis]

    def _full(self, columns: npt.NDArray[np.intp], like: Any) -> Any:
        """A sparse matrix of the training means in every row of some columns."""
        n_rows = like.shape[0]
        rows = np.repeat(np.arange(n_rows), len(columns))
        values = np.tile(self.mean_[columns], n_rows).astype(like.dtype)
        return type(like)((values, (rows, np.tile(columns, n_rows))), shape=like.shape)


def guard_of(classifier: Any) -> ColumnGuard | None:
    """The `ColumnGuard` that is the first step of a pipeline, or None."""
    first = classifier[0] if isinstance(classifier, Pipeline) else None
    return first if isinstance(first, ColumnGuard) else None


def _canonical(matrix: Any) -> Any:
    """The matrix, without duplicate entries if it is sparse."""
    if sp.issparse(matrix) and not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _sums(matrix: Any) -> Floats:
    """Sums of the columns in double precision."""
    if sp.issparse(matrix):
        return np.asarray(
            np.bincount(matrix.indices, matrix.data, minlength=matrix.shape[1]), dtype=np.float64
        )
    return np.asarray(matrix.sum(axis=0, dtype=np.float64))


def _lengths(matrix: Any) -> Floats:
    """Euclidean lengths of the rows."""
    if not sp.issparse(matrix):
        return np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    squares = np.square(matrix.data, dtype=np.float64)
    return np.sqrt(np.bincount(rows, squares, minlength=matrix.shape[0]))


def _variances(matrix: Any, mean: Floats) -> Floats:
    n_items = matrix.shape[0]
    if sp.issparse(matrix):
        squares = np.bincount(
            matrix.indices, np.square(matrix.data, dtype=np.float64), minlength=matrix.shape[1]
        )
        variances = squares / n_items - mean**2
        # The remainder of rounding in a constant column is no variance.
        return np.where(variances > 1e-12 * mean**2, variances, 0.0)
    total = np.zeros(len(mean))
    for rows in _blocks(n_items, len(mean)):
        total += np.square(matrix[rows] - mean).sum(axis=0)
    return total / n_items


def _range(matrix: Any, Y: LabelMatrix, mean: Floats) -> tuple[Floats, Floats]:
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
    """Slices of at most `_BLOCK` values, if each row has `width` of them."""
    return gen_batches(count, max(1, _BLOCK // max(1, width)))
