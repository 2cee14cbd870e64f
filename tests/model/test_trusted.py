"""Every part of the catalogue can be saved and loaded: none is forgotten in the list."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from skops.io import dumps, get_untrusted_types

from prevalens.catalogue import ENTRIES, parse
from prevalens.datasets import synthetic
from prevalens.model.file import TRUSTED, from_bytes, to_bytes
from prevalens.quantifier import Quantifier

DATA = synthetic(n_train=40, n_test=20, n_labels=2, random_state=0)


def method_of(code: str) -> str:
    """A method with the part in it."""
    entry = ENTRIES[code]
    if entry.role == "aggregator":
        return code if entry.make().consumes == "features" else f"lr+{code}"
    forms = {
        "classifier": f"{code}+pcc",
        "regressor": f"lr+rq(pcc,{code})",
        "clusterer": f"lr+lpq(pcc,{code})",
        "scheme": f"lr+pacc@{code}",
        "quantifier": f"{code}(time_budget=1)",
    }
    return forms[entry.role]


METHODS = {code: method_of(code) for code in ENTRIES if ENTRIES[code].role in (
    "aggregator", "classifier", "regressor", "clusterer", "scheme", "quantifier"
)}  # fmt: skip
MORE = {"of states": "lr+lpq(pacc)", "of features": "rq(hdx)", "in another": "stack+rq(pacc)"}


@pytest.mark.parametrize("name", [*METHODS, *MORE])
def test_a_part_goes_through_a_file(name: str) -> None:
    quantifier = parse((METHODS | MORE)[name])
    with warnings.catch_warnings():
        # So few items leave some folds without a label.
        warnings.simplefilter("ignore")
        quantifier.fit(DATA.train.X, DATA.train.Y)
        expected = quantifier.quantify(DATA.test.X).point
        again = from_bytes("m", to_bytes({"quantifier": quantifier}))["quantifier"]
        np.testing.assert_array_equal(again.quantify(DATA.test.X).point, expected)


def test_the_walk_covers_every_part() -> None:
    assert set(METHODS) == set(ENTRIES)


def test_foreign_types_are_those_of_decision_trees_only() -> None:
    foreign = [name for name in TRUSTED if not name.startswith("prevalens.")]
    assert foreign == ["sklearn.tree._tree.Tree"]
    assert len(set(TRUSTED)) == len(TRUSTED)


def test_an_unfitted_quantifier_needs_nothing_more() -> None:
    assert set(get_untrusted_types(data=dumps(Quantifier()))) <= set(TRUSTED)
