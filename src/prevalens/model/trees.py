"""Decision trees from a file: their nodes must stay inside the tree.

The compiled code of scikit-learn follows the nodes without looking; a file that was made to harm
could lead it out of the tree's memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.tree._tree import Tree

from prevalens.errors import FormatError

__all__ = ["check_trees"]

_LEAF = -1


def check_trees(parts: Any, name: str) -> None:
    """Refuse objects with a decision tree in them whose nodes lead anywhere else."""
    for tree in _trees(parts, set()):
        if not _is_sound(tree):
            raise FormatError(f"{name}: a decision tree in it is damaged.")


def _trees(found: Any, seen: set[int]) -> Iterator[Any]:
    """Every decision tree among objects, their attributes and what they hold."""
    if isinstance(found, Tree):
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
        yield from _trees(one, seen)


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
