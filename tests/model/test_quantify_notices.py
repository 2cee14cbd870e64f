"""What passes by is summed and sampled per batch."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from prevalens.model import Model
from prevalens.model.quantify import Observed


def test_numbers_are_summed_by_batch() -> None:
    X = np.arange(12.0).reshape(6, 2) + np.eye(6, 2)
    Y = np.array([[0], [1]] * 3)
    model = Model.fit(np.vstack([X] * 4), np.vstack([Y] * 4), method="lr+pcc")
    for form in (np.asarray, sp.csr_matrix):
        observed = Observed(model)
        observed.add(X[:4], form(X[:4]), np.array([0, 1, 0, 1], dtype=np.int32))
        observed.add(X[4:], form(X[4:]), np.array([1, 1], dtype=np.int32))
        means = observed.feature_means([1, 0])
        np.testing.assert_allclose(means[1], X[[0, 2]].mean(axis=0))
        np.testing.assert_allclose(means[0], X[[1, 3, 4, 5]].mean(axis=0))
        found = observed.notices(["b", "a"], np.array([4, 2]), [1, 0], ["once", "once"])
        assert [one.text for one in found][:2] == [
            "once",
            "b has 4 items only; its estimates are rough.",
        ]
