"""Splits that keep the prevalence of every label: multi-label iterative stratification.

The items of the rarest label (with ``order=2``, also of the rarest pair of labels) are assigned
first, one at a time, each to the part that lacks that label most. Parts have exactly the requested
sizes. At the end, items are swapped until every part has a positive of every label that has enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.model_selection import BaseCrossValidator

from prevalens.types import Array, Ints, LabelMatrix
from prevalens.validation import (
    InputError,
    check_binary_matrix,
    check_fraction,
    check_int,
    check_rng,
    check_same_length,
)

#: Marks a column without remaining items; larger than any number of items.
_NONE_LEFT = np.iinfo(np.int64).max

#: How many items are tried for a swap before a part is left without a label.
_MAX_GIVERS = 5

#: Maximum number of attempts, in all, to bring a label into a part by swaps.
_MAX_TRIES = 2000


def stratified_folds(
    Y: Any, n_folds: int = 5, *, order: int = 1, seed: object = 0, groups: Any = None
) -> Ints:
    """Divide items into folds of equal size with equally many positives of every label.

    Parameters
    ----------
    Y : 0/1 array or sparse matrix, shape (n_items, n_labels)
    n_folds : int
    order : {1, 2}
        1 balances labels, 2 balances pairs of labels as well: better for methods that model how
        labels occur together, at the cost of slightly less even single labels.
    seed : int, numpy Generator or None
    groups : array, shape (n_items,), optional
        Items with the same value always share a fold: copies of one item, items of one patient.
        Folds then hold equally many groups, and a group has every label that one of its items has.

    Returns
    -------
    array of int, shape (n_items,)
        The fold of each item. Sizes differ by one at most, and a label with at least
        `n_folds` positives has a positive in every fold, unless several labels occur on the
        same few items and no swap of items helps.

    Notes
    -----
    O(entries of Y x n_folds) time for order 1, and the sum of squared label set sizes in place of
    the entries for order 2. Labels with fewer positives than folds are missing in some.

    References
    ----------
    Sechidis, Tsoumakas and Vlahavas, "On the stratification of multi-label data", ECML PKDD
    2011. Szymański and Kajdanowicz, "A network perspective on stratification of multi-label
    data", LIDTA 2017 (PMLR 74).

    Examples
    --------
    >>> Y = [[1, 0], [1, 0], [0, 1], [0, 1], [1, 1], [1, 1]]
    >>> folds = stratified_folds(Y, 2)
    >>> [np.sum(np.array(Y)[folds == fold], axis=0).tolist() for fold in (0, 1)]
    [[2, 2], [2, 2]]
    """
    Y = check_binary_matrix(Y)
    n_folds = check_int(n_folds, "n_folds", minimum=2)
    if groups is not None:
        Y, group_of = _merge_groups(Y, groups)
        if n_folds > len(Y):
            raise InputError(f"{len(Y)} groups cannot be cut into {n_folds} folds; ask for fewer.")
        return stratified_folds(Y, n_folds, order=order, seed=seed)[group_of]
    if n_folds > len(Y):
        raise InputError(f"{len(Y)} items cannot be cut into {n_folds} folds; ask for fewer.")
    sizes = np.full(n_folds, len(Y) // n_folds)
    sizes[: len(Y) % n_folds] += 1
    return _stratify(Y, sizes, np.ones_like(sizes), order=order, rng=check_rng(seed))


def stratified_holdout(
    Y: Any, fraction: float = 0.4, *, order: int = 1, seed: object = 0, groups: Any = None
) -> tuple[Ints, Ints]:
    """Hold out a fraction of the items with the same prevalences as the rest.

    Parameters
    ----------
    Y : 0/1 array or sparse matrix, shape (n_items, n_labels)
    fraction : float
        Share of the items to hold out, rounded to whole items and never none or all of them.
    order : {1, 2}
        As in `stratified_folds`.
    seed : int, numpy Generator or None
    groups : array, shape (n_items,), optional
        As in `stratified_folds`; `fraction` is then the share of the groups.

    Returns
    -------
    rest, held_out : arrays of int
        Row numbers, ascending. A label with two positives or more has one in either, where the
        size of the smaller part allows it.

    Examples
    --------
    >>> rest, held_out = stratified_holdout([[1], [1], [1], [1], [0]], 0.4)
    >>> len(rest), len(held_out)
    (3, 2)
    """
    Y = check_binary_matrix(Y)
    fraction = check_fraction(fraction, "fraction")
    group_of = None
    if groups is not None:
        Y, group_of = _merge_groups(Y, groups)
    if len(Y) < 2:
        raise InputError(
            f"A single {'item' if groups is None else 'group'} cannot be split; give at least two."
        )
    n_held_out = min(max(round(fraction * len(Y)), 1), len(Y) - 1)
    sizes = np.array([len(Y) - n_held_out, n_held_out])
    parts = _stratify(Y, sizes, sizes, order=order, rng=check_rng(seed))
    if group_of is not None:
        parts = parts[group_of]
    return np.flatnonzero(parts == 0), np.flatnonzero(parts == 1)


class IterativeStratification(BaseCrossValidator):  # type: ignore[misc]
    """`stratified_folds` as a scikit-learn splitter, for ``cross_validate`` and grid searches.

    Parameters
    ----------
    n_splits : int
        Number of folds.
    order : {1, 2}
        1 balances labels, 2 balances pairs of labels as well.
    random_state : int, numpy Generator or None

    Notes
    -----
    Items with the same value in ``split(X, Y, groups)`` share a fold.

    Examples
    --------
    >>> Y = np.tile(np.eye(2), (4, 1))
    >>> [Y[test].sum(axis=0).tolist() for _, test in IterativeStratification(4).split(Y, Y)]
    [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    """

    def __init__(self, n_splits: int = 5, order: int = 1, random_state: object = 0) -> None:
        self.n_splits = n_splits
        self.order = order
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: ARG002
        """Number of folds."""
        return self.n_splits

    def _iter_test_indices(
        self,
        X: Any = None,  # noqa: ARG002 - scikit-learn's signature
        y: Any = None,
        groups: Any = None,
    ) -> Iterator[Ints]:
        if y is None:
            raise InputError("Stratification needs the labels: call split(X, Y).")
        folds = stratified_folds(
            y, self.n_splits, order=self.order, seed=self.random_state, groups=groups
        )
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds == fold)


def _merge_groups(Y: LabelMatrix, groups: Any) -> tuple[LabelMatrix, npt.NDArray[np.intp]]:
    """The labels of each group, shape (n_groups, n_labels), and the group of each item."""
    values = np.asarray(groups)
    if values.ndim != 1:
        raise InputError(f"groups must have one value per item; got shape {values.shape}.")
    check_same_length(len(values), "groups", len(Y), "Y")
    names, group_of = np.unique(values, return_inverse=True)
    merged = np.zeros((len(names), Y.shape[1]), dtype=Y.dtype)
    np.maximum.at(merged, group_of, Y)
    return merged, group_of


def _stratify(
    Y: LabelMatrix,
    sizes: Ints,
    dues: Ints,
    *,
    order: int,
    rng: np.random.Generator,
) -> Ints:
    """The part of each item.

    Part p gets exactly ``sizes[p]`` items, and of each label its due: ``dues[p]`` of
    ``dues.sum()`` positives. Folds have equal dues even if their sizes differ by one, or the
    larger ones would come first in every tie.
    """
    if order not in (1, 2):
        raise InputError(f"order must be 1 (labels) or 2 (labels and pairs); got {order!r}.")
    shuffle = rng.permutation(len(Y))
    shuffled = Y[shuffle]
    evidence = _pairs_of_labels(shuffled) if order == 2 else sp.csr_array(shuffled)
    shuffled_parts = _distribute(evidence, _OpenParts(evidence, sizes, dues, rng))
    _Exchange(shuffled, shuffled_parts, rng).run()
    parts = np.empty_like(shuffled_parts)
    parts[shuffle] = shuffled_parts
    return parts


def _pairs_of_labels(Y: LabelMatrix) -> Any:
    """Which labels and which pairs of labels each item has, as a 0/1 CSR matrix."""
    n_items, n_labels = Y.shape
    cardinality = Y.sum(axis=1, dtype=np.int64)
    rows, codes = [], []
    # Items with equally many labels at a time: their pairs are columns of one array.
    for n_own in np.unique(cardinality[cardinality > 0]):
        items = np.flatnonzero(cardinality == n_own)
        own = np.nonzero(Y[items])[1].reshape(len(items), n_own)
        first, second = np.triu_indices(n_own)
        codes.append((own[:, first] * n_labels + own[:, second]).reshape(-1))
        rows.append(np.repeat(items, len(first)))
    if not rows:
        return sp.csr_array((n_items, 0), dtype=np.int8)
    names, columns = np.unique(np.concatenate(codes), return_inverse=True)
    ones = np.ones(len(columns), dtype=np.int8)
    where = (np.concatenate(rows), columns.reshape(-1))
    return sp.csr_array((ones, where), shape=(n_items, len(names)))


def _distribute(evidence: Any, parts: _OpenParts) -> Ints:
    """Assign the items to parts, those of the rarest remaining label or pair first."""
    by_column = sp.csc_array(evidence)
    left = np.diff(by_column.indptr).astype(np.int64)
    left[left == 0] = _NONE_LEFT
    while len(left) and left[column := int(left.argmin())] != _NONE_LEFT:
        items = by_column.indices[by_column.indptr[column] : by_column.indptr[column + 1]]
        touched = [parts.put(item, column) for item in items[parts.of_item[items] < 0].tolist()]
        columns, times = np.unique(np.concatenate(touched), return_counts=True)
        left[columns] -= times
        left[columns[left[columns] == 0]] = _NONE_LEFT
    # The items without evidence fill the room that is left.
    parts.of_item[parts.of_item < 0] = np.repeat(np.arange(len(parts.room)), parts.room)
    return parts.of_item


class _OpenParts:
    """Parts that are not full yet, and the items they have.

    The number of items of a column that a part lacks is counted in units of ``1 / dues.sum()``, so
    that it is a whole number and rounding cannot decide between two parts.
    """

    def __init__(
        self,
        evidence: Any,
        sizes: Ints,
        dues: Ints,
        rng: np.random.Generator,
    ) -> None:
        n_items, n_columns = evidence.shape
        totals = np.bincount(evidence.indices, minlength=n_columns)
        self._starts, self._columns = evidence.indptr.tolist(), evidence.indices
        self._lack = np.outer(totals, dues)
        self._item = int(dues.sum())
        self._rarity = 1.0 / np.maximum(totals, 1)[:, np.newaxis]
        self.room = sizes.tolist()
        self._open = list(range(len(sizes)))
        self._chance = rng.random((n_items, len(sizes)))
        self.of_item = np.full(n_items, -1, dtype=np.int64)

    def put(self, item: int, column: int) -> Array:
        """Give an item to the part with room that most lacks `column`; return its columns.

        Ties go to the part that most lacks what else the item has, as a share of all there is of
        it, then to the part with most room, then to chance.
        """
        columns = self._columns[self._starts[item] : self._starts[item + 1]]
        lack = self._lack[column].tolist()
        lack_of_all = (self._lack[columns] * self._rarity[columns]).sum(axis=0).tolist()
        room, chance = self.room, self._chance[item].tolist()
        part = max(self._open, key=lambda p: (lack[p], lack_of_all[p], room[p], chance[p]))
        self._lack[columns, part] -= self._item
        self.of_item[item] = part
        room[part] -= 1
        if not room[part]:
            self._open.remove(part)
        return columns


class _Exchange:
    """Swaps of items between parts until no part lacks a label that could be there.

    Only labels with at least as many positives as parts are considered. A gap is a label that a
    part lacks; a swap never increases the number of gaps. An item moves at most once per round, so
    that a round ends; later rounds choose more at random, to leave local optima.
    """

    def __init__(self, Y: LabelMatrix, parts: Ints, rng: np.random.Generator) -> None:
        n_parts = int(parts.max()) + 1
        positives = Y.sum(axis=0, dtype=np.int64)
        # Rarest labels first: the fewest swaps can help them.
        owed = np.flatnonzero(positives >= n_parts)
        self._Y = Y[:, owed[np.argsort(positives[owed], kind="stable")]] == 1
        self._parts, self._rng = parts, rng
        self._free = np.ones(len(Y), dtype=bool)
        self._counts = np.zeros((n_parts, len(owed)), dtype=np.int64)
        for part in range(n_parts):
            self._counts[part] = self._Y[parts == part].sum(axis=0)

    def run(self) -> None:
        """Fill gaps while any swap helps; `parts` is changed in place."""
        noise, tries = 0, _MAX_TRIES
        while tries > 0 and not self._counts.all():
            self._free[:] = True
            # Labels, rarest first, and the parts that lack them.
            while tries > 0 and (gaps := np.argwhere(self._counts.T == 0).tolist()):
                filled = [self._fill(label, part, noise) for label, part in gaps[:tries]]
                tries -= len(filled)
                if not any(filled):
                    break
            noise += 1

    def _fill(self, label: int, part: int, noise: float) -> bool:
        """Bring a positive of `label` into `part`, in exchange for the item most like it."""
        if self._counts[part, label]:
            return True
        givers = np.flatnonzero(self._Y[:, label] & (self._parts != part) & self._free)
        takers = np.flatnonzero((self._parts == part) & self._free)
        if not len(givers) or not len(takers):
            return False
        harm = self._harm(self._counts, givers, part)
        order = np.argsort(harm + noise * self._rng.random(len(givers)), kind="stable")
        for best in order[:_MAX_GIVERS]:
            giver, home = int(givers[best]), int(self._parts[givers[best]])
            total = harm[best] + self._harm(self._after(giver, part), takers, home)
            unlike = (self._Y[takers] != self._Y[giver]).sum(axis=1)
            choice = np.lexsort((unlike, total))[0]
            if total[choice] <= 0:
                self._move(giver, part)
                self._move(int(takers[choice]), home)
                return True
        return False

    def _harm(self, counts: Ints, items: Ints, target: int) -> Ints:
        """Gaps opened minus gaps closed if one of the items moved to `target`, for each."""
        opened = self._Y[items] & (counts[self._parts[items]] == 1)
        closed = self._Y[items] & (counts[target] == 0)
        return opened.sum(axis=1) - closed.sum(axis=1)

    def _after(self, item: int, target: int) -> Ints:
        counts = self._counts.copy()
        counts[self._parts[item]] -= self._Y[item]
        counts[target] += self._Y[item]
        return counts

    def _move(self, item: int, target: int) -> None:
        self._counts = self._after(item, target)
        self._parts[item] = target
        self._free[item] = False
