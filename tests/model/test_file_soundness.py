"""Trees and sparse matrices that lead out of themselves are refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from prevalens.classifiers import Forest
from prevalens.errors import FormatError
from prevalens.model.file import check_sound


def fitted() -> DecisionTreeClassifier:
    X = np.arange(20.0)[:, np.newaxis]
    return DecisionTreeClassifier().fit(X, (X[:, 0] // 3).astype(int) % 2)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left_child", 10_000),
        ("left_child", 0),
        ("right_child", -1),
        ("feature", 7),
        ("feature", -2),
    ],
)
def test_nodes_that_lead_astray(field: str, value: int) -> None:
    tree = fitted()
    state = tree.tree_.__getstate__()
    state["nodes"][field][0] = value
    tree.tree_.__setstate__(state)
    with pytest.raises(FormatError, match="a decision tree in it is damaged"):
        check_sound({"deep": [(tree,)]}, "m.prevalens")


def test_a_forest_of_this_package_that_leads_astray() -> None:
    forest = Forest(2).fit(np.arange(20.0)[:, np.newaxis], np.arange(20)[:, np.newaxis] // 3 % 2)
    check_sound([forest], "m.prevalens")
    forest.trees_.left[0] = 0
    with pytest.raises(FormatError, match="a decision tree in it is damaged"):
        check_sound([forest], "m.prevalens")


def test_sound_trees_pass() -> None:
    forest = RandomForestClassifier(5).fit(np.eye(4), [0, 1, 0, 1])
    check_sound({"a": [fitted(), forest], "b": np.array([fitted()], dtype=object)}, "m")


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, sp.csc_matrix])
def test_indices_that_lead_astray(form: type) -> None:
    matrix = form(np.eye(4))
    check_sound([matrix], "m.prevalens")
    matrix.indices[1] = 1000
    with pytest.raises(FormatError, match="a sparse matrix in it is damaged"):
        check_sound([matrix], "m.prevalens")
