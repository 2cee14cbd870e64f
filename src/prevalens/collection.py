"""Collection: items and their labels, checked once, and the usual statistics of labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.types import Floats, Items, LabelMatrix, Labels, Times
from prevalens.validation import (
    InputError,
    Matrix,
    check_binary_matrix,
    check_int,
    check_label_names,
    check_matrix,
    check_same_length,
    is_texts,
)


@dataclass(frozen=True)
class Statistics:
    """The usual statistics of a multi-label data set.

    Attributes
    ----------
    cardinality : float
        Mean number of labels per item.
    density : float
        Cardinality divided by the number of labels.
    diversity : int
        Number of distinct labelsets, including the empty labelset.
    normalised_diversity : float
        Diversity divided by the number of labels.
    puniq : float
        Number of labelsets that occur exactly once, divided by the number of items.
    pmax : float
        Number of items with the most frequent labelset, divided by the number of items.
    """

    cardinality: float
    density: float
    diversity: int
    normalised_diversity: float
    puniq: float
    pmax: float


def statistics(Y: Labels, n_reference: int | None = None) -> Statistics:
    """Describe a label matrix.

    Parameters
    ----------
    Y : 0/1 array, shape (n_items, n_labels)
    n_reference : int, optional
        Divisor of `puniq` and `pmax`; default: the number of items. The dataset table of Moreo et
        al. counts over training and test items but divides by the number of training items.

    Notes
    -----
    O(n_items x n_labels + n_items log n_items).

    Examples
    --------
    >>> statistics([[1, 0], [1, 0], [1, 1]]).diversity
    2
    """
    Y = check_binary_matrix(Y)
    n_items, n_labels = Y.shape
    divisor = n_items if n_reference is None else check_int(n_reference, "n_reference", minimum=1)
    # Labelsets are compared as packed bits.
    packed = np.packbits(Y.astype(bool), axis=1)
    rows = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).reshape(-1)
    counts = np.unique(rows, return_counts=True)[1]
    cardinality = float(Y.sum(dtype=np.int64)) / n_items
    return Statistics(
        cardinality=cardinality,
        density=cardinality / n_labels,
        diversity=len(counts),
        normalised_diversity=len(counts) / n_labels,
        puniq=float(np.sum(counts == 1)) / divisor,
        pmax=float(counts.max()) / divisor,
    )


def label_correlation(Y: Labels) -> Floats:
    """Correlation (phi coefficient) between every two labels, shape (n_labels, n_labels).

    A label that never or always occurs has no correlation with another: 0, and 1 with itself.

    Notes
    -----
    One matrix product, O(n_items x n_labels^2).

    Examples
    --------
    >>> label_correlation([[1, 0], [0, 1]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    centred = check_binary_matrix(Y).astype(np.float64)
    centred -= centred.mean(axis=0)
    squares = (centred**2).sum(axis=0)
    # A constant label has no spread: dividing by infinity makes it uncorrelated.
    squares[squares == 0] = np.inf
    correlation = (centred.T @ centred) / np.sqrt(np.outer(squares, squares))
    np.fill_diagonal(correlation, 1.0)
    return np.clip(correlation, -1.0, 1.0)


class Collection:
    """Items with their labels, checked once.

    Parameters
    ----------
    X : array, sparse matrix, data frame or list of str, shape (n_items, n_features)
        Numbers (dense, scipy sparse, or a pandas or polars frame), or one text per item.
    Y : array, sparse matrix, data frame or list of label sets, shape (n_items, n_labels)
        0/1 per item and label, or for each item the names of its labels.
    labels : sequence of str, optional
        One name per column of Y, or with label sets the whole codeframe. Taken from the
        frame or from the label sets (sorted) if left out.
    features : sequence of str, optional
        One name per column of X. Taken from a frame if left out.
    times : sequence of dates, shape (n_items,), optional
        When each item was written: datetime64, `datetime.date`, or texts such as ``"2025-03-18"``.

    Attributes
    ----------
    X : float array, CSR matrix, or 1-D object array of str
    Y : int8 array, shape (n_items, n_labels)
    labels : tuple of str
    features : tuple of str, or None
    times : datetime64 array, shape (n_items,), or None
        In the given unit, else in days.

    Examples
    --------
    >>> tickets = Collection(["printer on fire", "cannot log in"], [{"hardware"}, {"account"}])
    >>> tickets.labels
    ('account', 'hardware')
    >>> tickets.prevalence.tolist()
    [0.5, 0.5]
    """

    def __init__(
        self,
        X: Items,
        Y: Labels,
        labels: Iterable[object] | None = None,
        *,
        features: Iterable[object] | None = None,
        times: npt.ArrayLike | None = None,
    ) -> None:
        self.X, self.features = _items(X, features)
        self.Y, self.labels = label_matrix(Y, labels)
        check_same_length(int(self.X.shape[0]), "X", self.Y.shape[0], "Y")
        self.times: Times | None = None if times is None else _check_times(times, self.n_items)

    def __repr__(self) -> str:
        what = "texts" if self.is_text else f"{self.n_features} features"
        return f"Collection({self.n_items} items, {what}, {self.n_labels} labels)"

    def __len__(self) -> int:
        return self.n_items

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.Y.shape[0])

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.Y.shape[1])

    @property
    def is_text(self) -> bool:
        """Whether the items are texts."""
        return not sp.issparse(self.X) and self.X.ndim == 1

    @property
    def n_features(self) -> int | None:
        """Number of features; None for texts."""
        return None if self.is_text else int(self.X.shape[1])

    @property
    def prevalence(self) -> Floats:
        """Share of items that have each label, shape (n_labels,)."""
        return self.Y.mean(axis=0, dtype=np.float64)

    def statistics(self) -> Statistics:
        """Describe the label matrix."""
        return statistics(self.Y)

    def label_correlation(self) -> Floats:
        """Correlation between every two labels, shape (n_labels, n_labels)."""
        return label_correlation(self.Y)

    def take(self, rows: npt.ArrayLike | slice) -> Collection:
        """The collection of some items, by positions, mask or slice."""
        rows = rows if isinstance(rows, slice) else np.asarray(rows)
        return Collection(
            self.X[rows],
            self.Y[rows],
            self.labels,
            features=self.features,
            times=None if self.times is None else self.times[rows],
        )

    def cut(self, at: str | np.datetime64 | float) -> tuple[Collection, Collection]:
        """The earlier and the later items, divided at an origin; both keep the order of their rows.

        Parameters
        ----------
        at : str, datetime64, int or float
            The date from which items are later, such as ``"1985"`` or ``"2025-06-01"``; or how
            many items are earlier, as a number of items or, below 1, as a share of them. Items of
            the same time stay together, so a number or share is not exceeded but may be missed.

        Notes
        -----
        O(n_items log n_items). Several origins are several cuts of the same collection.

        Examples
        --------
        >>> votes = Collection([[0], [1], [2]], [[1], [0], [1]], times=["1946", "1971", "1986"])
        >>> [len(part) for part in votes.cut("1985")], [len(part) for part in votes.cut(0.5)]
        ([2, 1], [1, 2])
        """
        if self.times is None:
            raise InputError(f"Items without times cannot be cut at {at!r}; give times=.")
        if np.isnat(self.times).any():
            row = int(np.argmax(np.isnat(self.times)))
            raise InputError(f"Item {row} has no time and cannot be on one side of {at!r}.")
        earlier = self.times < _origin(self.times, at)
        if earlier.all() or not earlier.any():
            first, last = self.times.min(), self.times.max()
            raise InputError(
                f"A cut at {at!r} leaves no item on one side; the times run from {first} to {last}."
            )
        return self.take(earlier), self.take(~earlier)

    def keep_labels(self, columns: Sequence[str] | npt.ArrayLike) -> Collection:
        """The collection with some labels only, by names, positions or mask; all items stay."""
        chosen = np.asarray(columns)
        if chosen.dtype.kind in "UO":
            chosen = self._positions([str(name) for name in chosen])
        labels = np.asarray(self.labels, dtype=object)[chosen]
        return Collection(
            self.X, self.Y[:, chosen], labels, features=self.features, times=self.times
        )

    def _positions(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        position = {name: j for j, name in enumerate(self.labels)}
        for name in names:
            if name not in position:
                raise InputError(f"There is no label {name!r}; there are {_some(self.labels)}.")
        return np.array([position[name] for name in names], dtype=np.int64)

    def with_X(self, X: Items, *, features: Iterable[object] | None = None) -> Collection:  # noqa: N802
        """The collection with other features, for example those of a vectoriser."""
        return Collection(X, self.Y, self.labels, features=features, times=self.times)

    @classmethod
    def stack(cls, first: Collection, second: Collection) -> Collection:
        """Concatenate two collections that have the same labels and features.

        The times are kept if both have them.
        """
        if first.labels != second.labels:
            raise InputError("Collections with different labels cannot be stacked.")
        if first.n_features != second.n_features:
            raise InputError(
                f"Collections with {first.n_features} and {second.n_features} features cannot "
                "be stacked."
            )
        sparse = sp.issparse(first.X) or sp.issparse(second.X)
        X = sp.vstack([first.X, second.X]) if sparse else np.concatenate([first.X, second.X])
        Y = np.concatenate([first.Y, second.Y])
        timed = first.times is not None and second.times is not None
        times = np.concatenate([first.times, second.times]) if timed else None
        return cls(X, Y, first.labels, features=first.features, times=times)


def _some(names: Sequence[str], most: int = 8) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def _check_times(times: npt.ArrayLike, n_items: int) -> Times:
    array = np.asarray(times)
    if array.dtype.kind in "biufc":
        # numpy would take numbers for days since 1970.
        raise InputError(f"times must be dates such as '2025-03-18'; got {array.flat[0]!r}.")
    if array.dtype.kind != "M":
        try:
            array = array.astype("datetime64[D]")
        except (TypeError, ValueError) as error:
            raise InputError(f"times must be dates such as '2025-03-18': {error}.") from error
    if array.ndim != 1:
        raise InputError(f"times must have one entry per item; got shape {array.shape}.")
    check_same_length(n_items, "X", len(array), "times")
    return array


def _origin(times: Times, at: str | np.datetime64 | float) -> np.datetime64:
    """The date of a cut; of a number of items, the time of the first item after them."""
    if isinstance(at, (str, np.datetime64)):
        try:
            return np.datetime64(at)
        except ValueError as error:
            raise InputError(f"A cut is a date such as '2025-06-01'; got {at!r}.") from error
    number = int(at * len(times)) if isinstance(at, float) and at < 1 else at
    position: int = check_int(number, "at", minimum=1)
    if position >= len(times):
        raise InputError(f"A cut after {position} items leaves none of {len(times)} for later.")
    return np.sort(times)[position]


def _items(X: Items, features: Iterable[object] | None) -> tuple[Matrix, tuple[str, ...] | None]:
    """Items in one of the three forms, and the names of their features."""
    frame = nw.from_native(X, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(frame, nw.Series):
        X = frame.to_list()
    elif isinstance(frame, nw.DataFrame):
        features = frame.columns if features is None else features
        X = _frame_values(frame, "X")
    names = None if features is None else tuple(str(name) for name in features)
    if _looks_like_texts(X):
        return _texts(X), None
    X = check_matrix(X, columns=names)
    if names is not None and len(names) != X.shape[1]:
        raise InputError(f"X has {X.shape[1]} columns but {len(names)} feature names.")
    return X, names


def _looks_like_texts(X: Items) -> bool:
    if isinstance(X, str):
        raise InputError("X is a single string; give a list with one text per item.")
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype.kind in "OUT"
    return isinstance(X, (list, tuple)) and any(isinstance(x, str) for x in X)


def _texts(X: Items) -> npt.NDArray[np.object_]:
    if len(X) == 0:
        raise InputError("X has no items; give at least one text.")
    if not is_texts(X):
        row = next(i for i, x in enumerate(X) if not isinstance(x, str))
        raise InputError(
            f"X holds texts, but row {row} is {X[row]!r}; fill missing texts with an empty string."
        )
    texts = np.empty(len(X), dtype=object)
    texts[:] = [str(x) for x in X]
    return texts


def _frame_values(frame: nw.DataFrame[Any], name: str) -> Items:
    """Numbers of a frame; a frame of one text column gives its texts."""
    columns = frame.columns
    if len(frame) == 0:
        raise InputError(f"{name} has no items; give at least one row.")
    types = frame.schema.dtypes()
    numeric = [bool(dtype.is_numeric() or dtype == nw.Boolean) for dtype in types]
    if len(columns) == 1 and not numeric[0]:
        return frame[columns[0]].to_list()
    if not all(numeric):
        bad = columns[numeric.index(False)]
        raise InputError(
            f"Column {bad!r} of {name} holds {frame.schema[bad]}, not numbers; encode it, drop it, "
            "or give a text column alone."
        )
    return frame.to_numpy()


def label_matrix(
    Y: Labels, labels: Iterable[object] | None = None
) -> tuple[LabelMatrix, tuple[str, ...]]:
    """Labels in any of the forms a Collection takes, as a 0/1 matrix and the labels' names.

    The columns of a frame that are called like the labels are put into their order; other names
    are replaced.
    """
    frame = nw.from_native(Y, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(frame, nw.Series):
        Y = frame.to_list()
    elif isinstance(frame, nw.DataFrame):
        labels = frame.columns if labels is None else tuple(map(str, labels))
        Y = _frame_values(_in_order(frame, labels), "Y")
    if _looks_like_label_sets(Y):
        return _from_label_sets(Y, labels)
    known = None if labels is None else list(map(str, labels))
    Y = check_binary_matrix(Y, labels=known if known and np.shape(Y)[1:] == (len(known),) else None)
    return Y, check_label_names(known, Y.shape[1])


def _in_order(frame: nw.DataFrame[Any], labels: Sequence[str]) -> nw.DataFrame[Any]:
    """The frame with its columns in the order of the labels, if it has their names."""
    there = set(frame.columns)
    if not there & set(labels):
        return frame
    for name in labels:
        if name not in there:
            raise InputError(
                f"Y has no column for the label {name!r}; it has {_some(frame.columns)}."
            )
    for name in frame.columns:
        if name not in labels:
            raise InputError(f"Y has the column {name!r}, which is no label; leave it out.")
    return frame[list(labels)]


def _looks_like_label_sets(Y: Labels) -> bool:
    if not isinstance(Y, (list, tuple)):
        return isinstance(Y, np.ndarray) and Y.ndim == 1 and Y.dtype == object
    return any(
        isinstance(row, (set, frozenset, str))
        or (isinstance(row, (list, tuple)) and any(isinstance(entry, str) for entry in row))
        for row in Y
    )


def _from_label_sets(
    rows: Sequence[object], labels: Iterable[object] | None
) -> tuple[LabelMatrix, tuple[str, ...]]:
    """0/1 matrix of label sets; each row's labels are named, in any order, repeats allowed."""
    sets = [_label_set(i, row) for i, row in enumerate(rows)]
    if labels is None:
        names: tuple[str, ...] = tuple(sorted(set().union(*sets)))
        if not names:
            raise InputError("No item has a label; name the labels with labels=[...].")
    else:
        names = tuple(str(name) for name in labels)
    names = check_label_names(names, len(names))
    column = {name: j for j, name in enumerate(names)}
    Y = np.zeros((len(sets), len(names)), dtype=np.int8)
    for i, row in enumerate(sets):
        for name in row:
            if name not in column:
                raise InputError(
                    f"Row {i} of Y has the label {name!r}, which is not among the labels "
                    f"{_some(names)}."
                )
            Y[i, column[name]] = 1
    return check_binary_matrix(Y), names


def _label_set(row: int, value: object) -> set[str]:
    if isinstance(value, str):
        raise InputError(
            f"Row {row} of Y is the string {value!r}; give a set of label names per item, "
            f"such as {{{value!r}}}."
        )
    if not isinstance(value, Iterable):
        raise InputError(f"Row {row} of Y is {value!r}; give a set of label names per item.")
    return {str(name) for name in value}
