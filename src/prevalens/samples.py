"""Samples: many bags of items as one linear operator.

A sample is a bag of row numbers of a pool. A set of samples acts on anything that has one
row per item: the mean over each bag of the true labels is the true prevalence, of the votes
it is classify-and-count, of the posteriors it is probabilistic classify-and-count. No part
of the package loops over samples in Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.types import Array, Floats, Ints
from prevalens.validation import InputError, check_int

#: Columns of a float32 or memory-mapped matrix that are widened to float64 at a time.
_BYTES_PER_CHUNK = 64 * 2**20


def index_type(n_items: int) -> type[np.signedinteger[Any]]:
    """The smallest of numpy's 32 and 64 bit integers that counts the items of a pool."""
    return np.int32 if n_items < 2**31 else np.int64


class Samples:
    """A set of bags of row numbers into a pool of items.

    Parameters
    ----------
    flat : array of int, shape (n_indices,)
        The row numbers of all samples, one sample after the other.
    offsets : array of int, shape (n_samples + 1,)
        Sample ``i`` is ``flat[offsets[i]:offsets[i + 1]]``.
    n_items : int
        Number of items in the pool.
    target : array of int, shape (n_samples,) or (n_samples, n_steered), optional
        The label, or labels, that a protocol steered in each sample; -1 where it steered none.
    prevalence : array of float, of the same shape, optional
        The prevalence it steered each of them to; NaN where it steered none.

    Attributes
    ----------
    target, prevalence : array, shape (n_samples,)
        First label that was steered in each sample, and its prevalence.
    targets, prevalences : array, shape (n_samples, n_steered)
        All steered labels; one column unless a protocol steers several at once.

    Notes
    -----
    Memory is linear in the number of indices (4 bytes each below 2**31 items).
    An index may occur several times in a sample (drawing with replacement).

    Examples
    --------
    >>> import numpy as np
    >>> samples = Samples.from_indices([[0, 1], [1, 2]], n_items=3)
    >>> samples.mean(np.array([[1.0], [0.0], [1.0]])).ravel().tolist()
    [0.5, 0.5]
    """

    def __init__(
        self,
        flat: npt.ArrayLike,
        offsets: npt.ArrayLike,
        *,
        n_items: int,
        target: npt.ArrayLike | None = None,
        prevalence: npt.ArrayLike | None = None,
    ) -> None:
        self.n_items = check_int(n_items, "n_items", minimum=1)
        #: Whether this is one sample with every item once, in order; then no operator is needed.
        self.is_whole = False
        self.flat: Array = self._check_flat(flat)
        self.offsets: Ints = np.ascontiguousarray(offsets, dtype=np.int64)
        self._check_offsets()
        self.targets: Ints = self._per_sample(target, -1, np.int64, "target")
        self.prevalences: Floats = self._per_sample(prevalence, np.nan, np.float64, "prevalence")
        if self.targets.shape != self.prevalences.shape:
            raise InputError(
                f"target and prevalence must name as many labels per sample; got "
                f"{self.targets.shape[1]} and {self.prevalences.shape[1]}."
            )

    def _check_flat(self, flat: npt.ArrayLike) -> Array:
        array = np.asarray(flat)
        if array.ndim != 1:
            raise InputError("Samples need a flat list of indices and a list of offsets.")
        if array.dtype.kind not in "iu" and len(array):
            raise InputError(f"Samples need row numbers; got values of type {array.dtype}.")
        # Before the cast, which would fold a number that is too large back into the pool.
        if len(array) and (array.min() < 0 or array.max() >= self.n_items):
            bad = array[(array < 0) | (array >= self.n_items)][0]
            raise InputError(f"A sample names item {bad}, but the pool has {self.n_items} items.")
        return np.ascontiguousarray(array, dtype=index_type(self.n_items))

    def _check_offsets(self) -> None:
        if self.offsets.ndim != 1 or len(self.offsets) == 0:
            raise InputError("Samples need a flat list of indices and a list of offsets.")
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.flat):
            raise InputError("The offsets of samples must start at 0 and end at the last index.")
        empty = np.flatnonzero(np.diff(self.offsets) < 1)
        if len(empty):
            raise InputError(f"Sample {empty[0]} is empty; a sample needs at least one item.")

    def _per_sample(
        self, values: npt.ArrayLike | None, default: float, dtype: Any, name: str
    ) -> Array:
        if values is None:
            return np.full((len(self), 1), default, dtype=dtype)
        array = np.asarray(values, dtype=dtype)
        if array.ndim not in (1, 2) or len(array) != len(self) or 0 in array.shape[1:]:
            raise InputError(f"{name} must have one entry per sample; got shape {array.shape}.")
        return array[:, np.newaxis] if array.ndim == 1 else array

    @classmethod
    def from_indices(
        cls,
        indices: Iterable[Sequence[int]] | Array,
        *,
        n_items: int,
        target: npt.ArrayLike | None = None,
        prevalence: npt.ArrayLike | None = None,
    ) -> Samples:
        """Make samples from a list of index lists, or an int array (n_samples, size)."""
        if isinstance(indices, np.ndarray) and indices.ndim == 2:
            offsets = np.arange(indices.shape[0] + 1, dtype=np.int64) * indices.shape[1]
            flat = indices.reshape(-1)
        else:
            lists = [np.asarray(rows) for rows in indices]
            ends = np.cumsum([len(rows) for rows in lists])
            offsets = np.concatenate([[0], ends]).astype(np.int64)
            # An empty list would turn all others into floats; the check of the offsets reports it.
            filled = [rows for rows in lists if len(rows)]
            flat = np.concatenate(filled) if filled else np.empty(0, dtype=np.int64)
        return cls(flat, offsets, n_items=n_items, target=target, prevalence=prevalence)

    @classmethod
    def whole(cls, n_items: int) -> Samples:
        """A single sample that holds every item of the pool once."""
        n_items = check_int(n_items, "n_items", minimum=1)
        samples = cls(np.arange(n_items), [0, n_items], n_items=n_items)
        samples.is_whole = True
        return samples

    @classmethod
    def by_group(cls, groups: npt.ArrayLike) -> tuple[Samples, Array]:
        """One sample per distinct value of `groups` (one value per item), and those values.

        Examples
        --------
        >>> samples, names = Samples.by_group(["may", "june", "may"])
        >>> names.tolist(), samples.sizes.tolist()
        (['june', 'may'], [1, 2])
        """
        groups = np.asarray(groups)
        if len(groups) and (groups == groups[0]).all():
            # The usual case of a file that is one batch needs no sorting.
            return cls.whole(len(groups)), groups[:1]
        names, codes = np.unique(groups, return_inverse=True)
        codes = codes.reshape(-1)
        if len(names) == 1:
            return cls.whole(len(codes)), names
        order = np.argsort(codes, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(names)))])
        return cls(order, offsets, n_items=len(codes)), names

    @classmethod
    def concat(cls, parts: Sequence[Samples]) -> Samples:
        """Concatenate several sets of samples of the same pool."""
        if not parts:
            raise InputError("There is nothing to concatenate: give at least one set of samples.")
        pools = sorted({part.n_items for part in parts})
        if len(pools) > 1:
            raise InputError(f"Samples of different pools ({pools} items) cannot be put together.")
        sizes = np.concatenate([part.sizes for part in parts])
        return cls(
            np.concatenate([part.flat for part in parts]),
            np.concatenate([[0], np.cumsum(sizes)]),
            n_items=pools[0],
            target=_stack([part.targets for part in parts], -1),
            prevalence=_stack([part.prevalences for part in parts], np.nan),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        low, high = (self.sizes.min(), self.sizes.max()) if len(self) else (0, 0)
        size = str(low) if low == high else f"{low} to {high}"
        return f"Samples({len(self)} of {size} from {self.n_items} items)"

    def __iter__(self) -> Iterator[Array]:
        for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield self.flat[start:stop]

    @overload
    def __getitem__(self, key: int) -> Array: ...

    @overload
    def __getitem__(self, key: slice | Array | list[int]) -> Samples: ...

    def __getitem__(self, key: int | slice | Array | list[int]) -> Samples | Array:
        """Row numbers of one sample, or the samples of a slice, a mask or a list of positions."""
        if isinstance(key, (int, np.integer)):
            position = range(len(self))[key]
            return self.flat[self.offsets[position] : self.offsets[position + 1]]
        return self._choose(key)

    def _choose(self, key: slice | Array | list[int]) -> Samples:
        if isinstance(key, slice) and key.step in (None, 1):
            start, stop, _ = key.indices(len(self))
            stop = max(start, stop)
            first = self.offsets[start]
            flat = self.flat[first : self.offsets[stop]]
            offsets = self.offsets[start : stop + 1] - first
            rows: Any = slice(start, stop)
        else:
            # An empty list would become an array of floats, which cannot choose anything.
            chosen = np.asarray(key, dtype=np.intp) if isinstance(key, list) and not key else key
            rows = np.arange(len(self))[chosen]
            sizes = self.sizes[rows]
            offsets = np.concatenate([[0], np.cumsum(sizes)])
            steps = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
            flat = self.flat[np.repeat(self.offsets[rows], sizes) + steps]
        return Samples(
            flat,
            offsets,
            n_items=self.n_items,
            target=self.targets[rows],
            prevalence=self.prevalences[rows],
        )

    @property
    def target(self) -> Ints:
        """The (first) label steered in each sample, -1 for none; shape (n_samples,)."""
        return self.targets[:, 0]

    @property
    def prevalence(self) -> Floats:
        """The prevalence that label was steered to, NaN for none; shape (n_samples,)."""
        return self.prevalences[:, 0]

    @property
    def sizes(self) -> Ints:
        """Number of items in each sample, shape (n_samples,)."""
        return np.diff(self.offsets)

    @property
    def indices(self) -> Array | list[Array]:
        """Row numbers: an int array (n_samples, size) for equal sizes, else a list of arrays."""
        sizes = self.sizes
        if len(sizes) and np.all(sizes == sizes[0]):
            return self.flat.reshape(len(self), int(sizes[0]))
        return list(self)

    def mean(self, values: Any) -> Floats:
        """Average the rows of `values` over each sample.

        Parameters
        ----------
        values : array, sparse matrix or memmap, shape (n_items, n_columns) or (n_items,)

        Returns
        -------
        array of float64, shape (n_samples, n_columns) or (n_samples,)

        Notes
        -----
        O(n_indices x n_columns) time for dense values, O(n_indices x entries per row) for
        sparse ones. Sums come first, so means of 0/1 values are exact shares. Values that are not
        float64 are widened a chunk of columns at a time, so a memory-mapped float32
        matrix is never in memory as a whole.
        """
        sums = self.sums(values)
        return sums / (self.sizes if sums.ndim == 1 else self.sizes[:, np.newaxis])

    def sums(self, values: Any) -> Floats:
        """Add the rows of `values` over each sample; parameters and result as in `mean`."""
        if not sp.issparse(values):
            values = values if isinstance(values, np.ndarray) else np.asarray(values)
        if values.ndim == 1:
            return self.sums(values[:, np.newaxis])[:, 0]
        if values.shape[0] != self.n_items:
            raise InputError(
                f"The samples are over {self.n_items} items, but the values have "
                f"{values.shape[0]} rows."
            )
        if sp.issparse(values):
            return np.asarray(
                (self._operator() @ sp.csr_matrix(values, dtype=np.float64)).toarray()
            )
        return self._dense_totals(values)

    def _operator(self) -> Any:
        """The samples as a 0/1 matrix, shape (n_samples, n_items); repeated entries add up."""
        ones = np.ones(len(self.flat))
        shape = (len(self), self.n_items)
        return sp.csr_matrix((ones, self.flat, self.offsets), shape=shape, copy=False)

    def _dense_totals(self, values: Array) -> Floats:
        # A product is ten times as fast as a sum over the rows of a narrow matrix.
        operator = np.ones((1, self.n_items)) if self.is_whole else self._operator()
        if values.dtype == np.float64 and not isinstance(values, np.memmap):
            return np.asarray(operator @ values)
        n_columns = values.shape[1]
        totals = np.empty((len(self), n_columns))
        step = max(1, _BYTES_PER_CHUNK // (8 * self.n_items))
        for start in range(0, n_columns, step):
            chunk = np.ascontiguousarray(values[:, start : start + step], dtype=np.float64)
            totals[:, start : start + step] = operator @ chunk
        return totals

    def blocks(self, max_indices: int = 2**16) -> Iterator[tuple[slice, Samples]]:
        """Cut into runs of consecutive samples with at most `max_indices` indices each.

        A larger sample is a block of its own. For computations on items: the rows of a block
        fit into the cache.
        """
        max_indices = check_int(max_indices, "max_indices", minimum=1)
        start = 0
        while start < len(self):
            limit = self.offsets[start] + max_indices
            stop = int(np.searchsorted(self.offsets, limit, side="right")) - 1
            stop = max(start + 1, stop)
            yield slice(start, stop), self[start:stop]
            start = stop


def _stack(parts: Sequence[Array], fill: float) -> Array:
    """Concatenate arrays (n, width); narrower arrays are padded on the right."""
    width = max(part.shape[1] for part in parts)
    padding = [((0, 0), (0, width - part.shape[1])) for part in parts]
    return np.concatenate(
        [np.pad(part, pad, constant_values=fill) for part, pad in zip(parts, padding, strict=True)]
    )
