"""Every part gives the same estimates from run to run, unless it is told otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.aggregators.external import without_intervals
from prevalens.catalogue import ENTRIES, parse
from prevalens.datasets import synthetic

DATA = synthetic(n_train=120, n_test=60, n_labels=3, n_features=4, random_state=0)
#: Where a part of each role stands in a method.
PLACES = {
    "classifier": "{}+pcc",
    "aggregator": "lr+{}",
    "regressor": "lr+rq(pcc,{})",
    "clusterer": "lpq(pcc,{})",
    "scheme": "lr+pacc@{}",
    "quantifier": "{}",
}


def method_with(code: str) -> str:
    entry = ENTRIES[code]
    if entry.role == "aggregator" and entry.make().consumes == "features":
        return code
    return PLACES[entry.role].format("br(tree)" if code == "br" else code)


@pytest.mark.parametrize("code", ENTRIES)
def test_random_states_are_0_by_default(code: str) -> None:
    parameters = ENTRIES[code].parameters
    assert "seed" not in parameters
    if "random_state" in parameters:
        assert parameters["random_state"].default == 0


@pytest.mark.parametrize("method", [method_with(code) for code in ENTRIES])
def test_two_fits_give_equal_estimates(method: str) -> None:
    estimates = []
    for state in (0, 1):
        # What a part without a random state of its own would draw from.
        np.random.seed(state)  # noqa: NPY002
        train, batch = DATA.train.X, DATA.test.X
        if method.startswith("given"):
            # Its items are scores, one per label.
            train, batch = (X[:, : DATA.train.n_labels] > 0 for X in (train, batch))
        quantifier = without_intervals(parse(method)).fit(train, DATA.train.Y)
        estimates.append(quantifier.quantify(batch).point)
    np.testing.assert_array_equal(*estimates)
