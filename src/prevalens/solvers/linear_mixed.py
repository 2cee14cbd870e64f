"""The design that suits a matrix: dense, sparse, or sparse with some full columns.

A sparse matrix with full columns (words beside posteriors, codes beside measurements) is taken
apart: a product with the full columns as a dense matrix costs a fraction of one entry by entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.solvers import _sparse_compiled as compiled
from prevalens.solvers.linear_design import Array, DenseDesign, Design, SparseDesign
from prevalens.validation import Matrix

__all__ = ["MixedDesign", "linear_predictor", "make_design"]

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

    It is for so many problems, of which up to `width` columns are in work at a time.
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


def linear_predictor(X: Matrix, coef: Array, intercept: Array) -> npt.NDArray[np.float64]:
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
        other: MixedDesign = object.__new__(MixedDesign)
        other._thin, other._thick = self._thin, self._thick
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
        """Nothing: `gram_cost` is infinite, so that no solver asks."""
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
