"""Designs: the matrix of items as the batched linear solvers see it.

A design computes four things for many columns of parameters at once, all as matrix products:
the linear predictor, its transpose, the weighted moments of the features, and the weighted Gram
matrices. It does so a block of rows at a time, so that what is done between two products
stays in the cache, and it knows the cost of each, so that a solver can choose.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from threading import Lock
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.solvers import compiled
from prevalens.types import Floats
from prevalens.validation import Matrix

Array: TypeAlias = npt.NDArray[Any]

#: Predictors per block; in double precision they are a megabyte.
_BLOCK_SIZE = 2**17
#: Rows per parameter in the sample that a dense Gram matrix is computed from. With ten, the
#: eigenvalues of the preconditioned Hessian lie within (1 +- 10 ** -0.5) ** 2 or so.
_ROWS_PER_PARAMETER = 10
#: A sparse design may hold this many products of two entries of a row, for its Gram matrices.
_MOST_PAIRS = 2 * 10**7
#: Gram matrices of more parameters than this are never made.
_MOST_PARAMETERS = 1200
#: What a pair costs in a Gram matrix, and a cubed parameter in its factorisation, in units of an
#: entry in a wide sparse product: pairs are read from afar, entries are shared by all columns.
_PAIR_COST = 14.0
_FACTOR_COST = 0.07
#: Columns whose Gram matrices are made together from a sparse design.
_GRAM_COLUMNS = 16


def visible_only(T: Array, visible: npt.NDArray[np.bool_] | None) -> Array:
    """Set parameters that a column may not use to zero; `visible` is None if all may be used."""
    return T if visible is None else np.where(visible, T, T.dtype.type(0))


def column_dots(A: Array, B: Array) -> Array:
    """Inner products of the columns of two matrices."""
    return np.asarray(np.einsum("ij,ij->j", A, B))


class Design(Protocol):
    """The matrix of items, as a solver uses it.

    Attributes
    ----------
    n_items, n_params, n_entries : int
    dtype : numpy dtype
        Of all arrays that go in and come out.
    rows : list of slice
        The blocks of items.
    penalty : array, shape (n_params, 1)
        Ridge penalty of each parameter; 0 for the intercept.
    gram_cost : float
        Cost of one Gram matrix and its factorisation, in units of one Hessian product.
    """

    n_items: int
    n_params: int
    n_entries: int
    dtype: np.dtype[Any]
    rows: list[slice]
    penalty: Array
    gram_cost: float

    def forward(self, block: int, T: Array) -> Array:
        """The linear predictor of a block's items, shape (n_rows, n_columns)."""

    def adjoint(self, block: int, R: Array, out: Array) -> None:
        """Add the transposed product of a block to `out`, shape (n_params, n_columns)."""

    def moments(self, D: Array) -> tuple[Array, Array]:
        """Sums and sums of squares of the design weighted by `D`, each (n_params, n_columns)."""

    def grams(self, D: Array, columns: Array) -> Iterator[tuple[int, Array]]:
        """Gram matrices weighted by some columns of `D`; only the lower triangle counts."""

    def parameters(self, coef: Array, intercept: Array) -> Array:
        """Coefficients (n_columns, n_features) as the parameters of this design."""

    def coefficients(self, T: Array) -> tuple[Array, Array]:
        """Parameters of this design as coefficients and intercepts of the features."""


def _blocks(n_items: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n_items)) for start in range(0, n_items, size)]


class DenseDesign:
    """A dense matrix, centred and scaled inside; the solution is that of the matrix as given.

    With a free intercept, centring a feature moves only the intercept. Scaling a feature is undone
    by scaling its penalty. Both make the products harmless in single precision.
    """

    def __init__(
        self, X: Array, *, intercept: bool, width: int, rows: list[slice] | None = None
    ) -> None:
        n_items, self.n_features = X.shape
        self._intercept = intercept
        self.rows = _blocks(n_items, _BLOCK_SIZE // width + 1) if rows is None else rows
        self.centre = X.mean(axis=0, dtype=np.float64) if intercept else np.zeros(self.n_features)
        self._matrix = np.ones((n_items, self.n_features + intercept))
        features = self._matrix[:, : self.n_features]
        np.subtract(X, self.centre, out=features)
        self.scale = np.sqrt(np.einsum("ij,ij->j", features, features) / n_items)
        self.scale[self.scale == 0] = 1.0
        features /= self.scale
        self._set_up()

    def _set_up(self) -> None:
        self.n_items, self.n_params = self._matrix.shape
        self.dtype = self._matrix.dtype
        self.n_entries = self._matrix.size
        self.penalty = np.zeros((self.n_params, 1), dtype=self.dtype)
        self.penalty[: self.n_features, 0] = self.scale**-2
        self._n_chosen = min(self.n_items, _ROWS_PER_PARAMETER * self.n_params)
        self.gram_cost = self._gram_cost()

    def _gram_cost(self) -> float:
        if self.n_params > _MOST_PARAMETERS:
            return np.inf
        work = self._n_chosen * self.n_params**2 + self.n_params**3 / 3
        return work / (4 * self.n_items * self.n_params)

    def single(self) -> DenseDesign:
        """The same design in single precision."""
        other = copy(self)
        other._matrix = self._matrix.astype(np.float32)
        other._set_up()
        return other

    def forward(self, block: int, T: Array) -> Array:
        """The linear predictor of a block's items."""
        return self._matrix[self.rows[block]] @ T

    def adjoint(self, block: int, R: Array, out: Array) -> None:
        """Add the transposed product of a block to `out`."""
        out += self._matrix[self.rows[block]].T @ R

    def moments(self, D: Array) -> tuple[Array, Array]:
        """Weighted sums and sums of squares of the design."""
        squares = np.zeros((self.n_params, D.shape[1]), dtype=self.dtype)
        for rows in self.rows:
            squares += np.square(self._matrix[rows]).T @ D[rows]
        return self._matrix.T @ D, squares

    def grams(self, D: Array, columns: Array) -> Iterator[tuple[int, Array]]:
        """Weighted Gram matrices, from a sample of the rows if there are many.

        The sample takes rows with probability proportional to their weight, systematically: at
        equal steps of the cumulated weight. It needs no random numbers.
        """
        everything = self._n_chosen == self.n_items
        for column in columns:
            weight = D[:, column]
            chosen = (
                self._matrix * np.sqrt(weight)[:, None] if everything else self._sampled(weight)
            )
            yield column, chosen.T @ chosen

    def _sampled(self, weight: Array) -> Array:
        total = np.cumsum(weight, dtype=np.float64)
        step = total[-1] / self._n_chosen
        places = np.searchsorted(total, (np.arange(self._n_chosen) + 0.5) * step)
        chosen = self._matrix[np.minimum(places, self.n_items - 1)]
        chosen *= np.sqrt(step).astype(self.dtype)
        return np.asarray(chosen)

    def parameters(self, coef: Array, intercept: Array) -> Array:
        """Coefficients as parameters of the centred and scaled features."""
        T = np.empty((self.n_params, len(coef)))
        T[: self.n_features] = (coef * self.scale).T
        if self._intercept:
            T[-1] = intercept + coef @ self.centre
        return T

    def coefficients(self, T: Array) -> tuple[Array, Array]:
        """Parameters of the centred and scaled features as coefficients of the given ones."""
        coef = T[: self.n_features].T / self.scale
        if not self._intercept:
            return coef, np.zeros(len(coef))
        return coef, T[-1] - coef @ self.centre


class SparseDesign:
    """A sparse matrix; nothing of its size is ever dense. `fast` takes compiled products."""

    def __init__(self, X: Matrix, *, intercept: bool, width: int, fast: bool) -> None:
        self.n_features = X.shape[1]
        self._intercept, self._width, self._fast = intercept, width, fast
        parts = [X, np.ones((X.shape[0], 1))] if intercept else [X]
        matrix = sp.csr_matrix(sp.hstack(parts, format="csr", dtype=np.float64))
        matrix.sum_duplicates()
        self._pairs: Any = None
        self._lock = Lock()
        self._set_up(matrix)

    def _set_up(self, matrix: Any) -> None:
        self._matrix = matrix
        self.n_items, self.n_params = matrix.shape
        self.dtype = matrix.dtype
        # A block's transposed product touches all parameters, so a block has many entries for each.
        self.n_entries = matrix.nnz
        enough = int(16 * self.n_params * self.n_items / max(1, matrix.nnz))
        self.rows = _blocks(self.n_items, max(_BLOCK_SIZE // self._width, enough) + 1)
        self._blocks = [matrix[rows] for rows in self.rows]
        self._transposed = [block.T.tocsr() if self._fast else block.T for block in self._blocks]
        self._squared = None if np.all(matrix.data == 1) else matrix.multiply(matrix).T
        self.penalty = np.ones((self.n_params, 1), dtype=self.dtype)
        if self._intercept:
            self.penalty[-1] = 0.0
        self.gram_cost = self._gram_cost()

    def _gram_cost(self) -> float:
        entries = np.diff(self._matrix.indptr).astype(np.float64)
        n_pairs = float(np.sum(entries * (entries + 1) / 2))
        if n_pairs > _MOST_PAIRS or self.n_params > _MOST_PARAMETERS:
            return np.inf
        work = _PAIR_COST * n_pairs + _FACTOR_COST * self.n_params**3
        return work / (2 * max(1, self._matrix.nnz))

    def single(self) -> SparseDesign:
        """The same design in single precision."""
        other = copy(self)
        other._pairs, other._lock = None, Lock()
        other._set_up(self._matrix.astype(np.float32))
        return other

    def forward(self, block: int, T: Array) -> Array:
        """The linear predictor of a block's items."""
        if not self._fast:
            return np.asarray(self._blocks[block] @ T)
        out = np.zeros((self._blocks[block].shape[0], T.shape[1]), dtype=self.dtype)
        compiled.add_product(self._blocks[block], np.ascontiguousarray(T), out)
        return out

    def adjoint(self, block: int, R: Array, out: Array) -> None:
        """Add the transposed product of a block to `out`."""
        if self._fast:
            compiled.add_product(self._transposed[block], R, out)
        else:
            out += self._transposed[block] @ R

    def moments(self, D: Array) -> tuple[Array, Array]:
        """Weighted sums and sums of squares of the design."""
        sums = np.zeros((self.n_params, D.shape[1]), dtype=self.dtype)
        for block, rows in enumerate(self.rows):
            self.adjoint(block, D[rows], sums)
        return sums, sums if self._squared is None else np.asarray(self._squared @ D)

    def grams(self, D: Array, columns: Array) -> Iterator[tuple[int, Array]]:
        """Weighted Gram matrices, all rows counted.

        Each row's products of two entries are kept as one sparse matrix with a column per pair of
        parameters, so that many Gram matrices are one product with the weights.
        """
        pairs = self._row_pairs()
        lower = np.flatnonzero(np.tri(self.n_params, dtype=bool))
        for start in range(0, len(columns), _GRAM_COLUMNS):
            part = columns[start : start + _GRAM_COLUMNS]
            sums = pairs @ np.ascontiguousarray(D[:, part])
            for position, column in enumerate(part):
                gram = np.zeros(self.n_params**2, dtype=self.dtype)
                gram[lower] = sums[:, position]
                yield column, gram.reshape(self.n_params, self.n_params)

    def _row_pairs(self) -> Any:
        """Products of two entries of each row, shape (n_params * (n_params + 1) / 2, n_items)."""
        with self._lock:
            if self._pairs is None:
                blocks = [_pairs_of_rows(block) for block in self._blocks]
                self._pairs = sp.vstack(blocks, format="csr").T
        return self._pairs

    def parameters(self, coef: Array, intercept: Array) -> Array:
        """Coefficients and intercepts side by side."""
        return np.vstack([coef.T, intercept]) if self._intercept else coef.T.copy()

    def coefficients(self, T: Array) -> tuple[Array, Array]:
        """Parameters taken apart."""
        coef = np.ascontiguousarray(T[: self.n_features].T)
        return coef, T[-1].copy() if self._intercept else np.zeros(len(coef))


def _pairs_of_rows(block: Any) -> Any:
    """Products of two entries of a row, in the order of a packed lower triangle."""
    indptr, indices = block.indptr, block.indices.astype(np.int64)
    n_entries = len(indices)
    # Entry e of a row pairs with itself and all entries before it in that row.
    begin = np.repeat(indptr[:-1], np.diff(indptr))
    partners = np.arange(n_entries) - begin + 1
    first = np.repeat(np.arange(n_entries), partners)
    ends = np.cumsum(partners)
    second = np.arange(len(first)) - np.repeat(ends - partners - begin, partners)
    packed = indices[first] * (indices[first] + 1) // 2 + indices[second]
    limits = np.concatenate([[0], ends])[indptr]
    n_params = block.shape[1]
    return sp.csr_matrix(
        (block.data[first] * block.data[second], packed, limits),
        shape=(block.shape[0], n_params * (n_params + 1) // 2),
    )


#: Entries times problems from which compiled products are worth the second that loading them takes.
_WORTH_COMPILING = 2 * 10**7
#: Share of filled cells from which a column, or a whole matrix, costs less as a dense one.
_FULL = 1 / 3
#: With fewer full columns a dense product is too narrow to gain much, with fewer cells in them too
#: small to pay for taking the matrix apart.
_LEAST_FULL = 16
_LEAST_CELLS = 2**15
#: Up to so many parameters, Gram matrices are worth more than fast products.
_FEW_PARAMETERS = 128


def make_design(
    X: Matrix, *, intercept: bool, width: int, n_problems: int = 1
) -> tuple[Design, Design]:
    """The design of `X` in single and in double precision.

    It serves `n_problems` problems; up to `width` columns are in work at a time.
    """
    double: Any
    if not sp.issparse(X):
        double = DenseDesign(X, intercept=intercept, width=width)
        return double.single(), double
    fast = compiled.available() and X.nnz * n_problems >= _WORTH_COMPILING
    full = _full_columns(X)
    if X.shape[1] > _FEW_PARAMETERS and _is_worth_parting(X, full):
        double = MixedDesign(X, full, intercept=intercept, width=width, fast=fast)
    elif full.sum() >= _LEAST_FULL and X.nnz >= _FULL * X.shape[0] * X.shape[1]:
        double = DenseDesign(X.toarray(), intercept=intercept, width=width)
    else:
        double = SparseDesign(X, intercept=intercept, width=width, fast=fast)
    return double.single(), double


def linear_predictor(X: Matrix, coef: Array, intercept: Array) -> Floats:
    """Items times coefficients plus intercepts, shape (n_items, n_labels).

    Parameters
    ----------
    X : array or sparse matrix, shape (n_items, n_features)
    coef : array, shape (n_labels, n_features)
    intercept : array, shape (n_labels,)

    Notes
    -----
    O(entries of X x labels). Full columns of a sparse matrix are multiplied as a dense one.

    Examples
    --------
    >>> linear_predictor(np.eye(2), np.array([[2.0, 3.0]]), np.array([1.0])).tolist()
    [[3.0], [4.0]]
    """
    full = _full_columns(X) if sp.issparse(X) else None
    if full is None or not _is_worth_parting(X, full):
        return np.asarray(X @ coef.T + intercept)
    out = X[:, np.flatnonzero(full)].toarray() @ coef[:, full].T
    out += X[:, np.flatnonzero(~full)] @ coef[:, ~full].T
    out += intercept
    return np.asarray(out)


def _full_columns(X: Any) -> npt.NDArray[np.bool_]:
    """Which columns of a sparse matrix (CSR) have entries in at least a third of the rows."""
    entries = np.bincount(X.indices, minlength=X.shape[1])
    return np.asarray(entries >= _FULL * max(1, X.shape[0]))


def _is_worth_parting(X: Any, full: npt.NDArray[np.bool_]) -> bool:
    n_full = int(full.sum())
    return n_full >= _LEAST_FULL and n_full * X.shape[0] >= _LEAST_CELLS


class MixedDesign:
    """A sparse matrix some of whose columns are full; see `Design`.

    The parameters are in the order of the features, the intercept last. Gram matrices are not
    offered: with so many parameters they cost more than they save.
    """

    def __init__(
        self,
        X: Any,
        full: npt.NDArray[np.bool_],
        *,
        intercept: bool,
        width: int,
        fast: bool,
    ) -> None:
        thin, thick = np.flatnonzero(~full), np.flatnonzero(full)
        sparse = SparseDesign(X[:, thin], intercept=False, width=width, fast=fast)
        dense = DenseDesign(
            X[:, thick].toarray(), intercept=intercept, width=width, rows=sparse.rows
        )
        self._thin = thin
        self._thick = np.concatenate([thick, np.arange(len(full), len(full) + intercept)])
        self._set_up(sparse, dense)

    def _set_up(self, sparse: SparseDesign, dense: DenseDesign) -> None:
        self._sparse, self._dense = sparse, dense
        self.n_items, self.dtype, self.rows = dense.n_items, dense.dtype, dense.rows
        self.n_params = sparse.n_params + dense.n_params
        self.n_entries = sparse.n_entries + dense.n_entries
        self.penalty = self._joined(sparse.penalty, dense.penalty)
        self.gram_cost = np.inf

    def single(self) -> MixedDesign:
        """The same design in single precision."""
        other = copy(self)
        other._set_up(self._sparse.single(), self._dense.single())
        return other

    def _joined(self, of_sparse: Array, of_dense: Array) -> Array:
        """Parameters of both parts, each with a row per parameter, in the order of the features."""
        out = np.empty((self.n_params, of_sparse.shape[1]), dtype=of_dense.dtype)
        out[self._thin], out[self._thick] = of_sparse, of_dense
        return out

    def forward(self, block: int, T: Array) -> Array:
        """The linear predictor of a block's items."""
        out = self._dense.forward(block, T[self._thick])
        out += self._sparse.forward(block, T[self._thin])
        return out

    def adjoint(self, block: int, R: Array, out: Array) -> None:
        """Add the transposed product of a block to `out`."""
        for part, places in ((self._sparse, self._thin), (self._dense, self._thick)):
            product = np.zeros((len(places), R.shape[1]), dtype=self.dtype)
            part.adjoint(block, R, product)
            out[places] += product

    def moments(self, D: Array) -> tuple[Array, Array]:
        """Weighted sums and sums of squares of the design."""
        thin_sums, thin_squares = self._sparse.moments(D)
        thick_sums, thick_squares = self._dense.moments(D)
        return self._joined(thin_sums, thick_sums), self._joined(thin_squares, thick_squares)

    def grams(self, D: Array, columns: Array) -> Iterator[tuple[int, Array]]:
        """Not available: `gram_cost` is infinite, so that no solver calls this."""
        raise NotImplementedError("A mixed design makes no Gram matrices.")

    def parameters(self, coef: Array, intercept: Array) -> Array:
        """Coefficients as parameters, those of full columns centred and scaled."""
        n_thick = self._dense.n_features
        thick = self._dense.parameters(coef[:, self._thick[:n_thick]], intercept)
        return self._joined(coef[:, self._thin].T, thick)

    def coefficients(self, T: Array) -> tuple[Array, Array]:
        """Parameters as coefficients of the features as given."""
        thick, intercept = self._dense.coefficients(T[self._thick])
        coef = np.empty((T.shape[1], len(self._thin) + thick.shape[1]))
        coef[:, self._thin] = T[self._thin].T
        coef[:, self._thick[: thick.shape[1]]] = thick
        return coef, intercept
