"""Objects from a file whose compiled code trusts them: decision trees and sparse matrices.

scikit-learn follows the nodes of a tree and scipy the indices of a matrix without looking; a file
that was made to harm could lead them out of their memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.tree._tree import Tree

from prevalens.errors import FormatError

__all__ = ["check_sound"]

_LEAF = -1


def check_sound(parts: Any, name: str) -> None:
    """Refuse objects that hold a tree or a sparse matrix which leads out of itself."""
    for one in _delicate(parts, set()):
        if isinstance(one, Tree) and not _is_sound(one):
            raise FormatError(f"{name}: a decision tree in it is damaged.")
        if sp.issparse(one):
            _check_sparse(one, name)


def _check_sparse(matrix: Any, name: str) -> None:
    try:
        if not hasattr(matrix, "check_format"):
            matrix = matrix.tocsr()
        matrix.check_format(full_check=True)
    except ValueError:
        raise FormatError(f"{name}: a sparse matrix in it is damaged.") from None


def _delicate(found: Any, seen: set[int]) -> Iterator[Any]:
    """Every tree and sparse matrix among objects, their attributes and what they hold."""
    if isinstance(found, Tree) or sp.issparse(found):
        yield found
        return
    if id(found) in seen or isinstance(found, (str, bytes, int, float, type(None))):
        return
    seen.add(id(found))
    inside: Any = ()
    if isinstance(found, dict):
        inside = found.values()
    elif isinstance(found, (list, tuple, set)):
        inside = found
    elif isinstance(found, np.ndarray):
        inside = found.ravel().tolist() if found.dtype == object else ()
    elif hasattr(found, "__dict__"):
        inside = vars(found).values()
    for one in list(inside):
        yield from _delicate(one, seen)


def _is_sound(tree: Any) -> bool:
    left, right = np.asarray(tree.children_left), np.asarray(tree.children_right)
    numbers = np.arange(tree.node_count)
    inner = left != _LEAF
    feature = np.asarray(tree.feature)[inner]
    # Children come after their parent, so no path can turn round.
    after = all(
        np.all((side[inner] > numbers[inner]) & (side[inner] < tree.node_count))
        for side in (left, right)
    )
    return bool(
        tree.node_count > 0
        and after
        and np.all((right == _LEAF) == ~inner)
        and np.all((feature >= 0) & (feature < tree.n_features))
    )
