"""What passes by is summed and sampled per batch."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from prevalens.model import Model
from prevalens.model.quantify import BatchMonitor


def test_numbers_are_summed_by_batch() -> None:
    X = np.arange(12.0).reshape(6, 2) + np.eye(6, 2)
    Y = np.array([[0], [1]] * 3)
    model = Model.fit(np.vstack([X] * 4), np.vstack([Y] * 4), method="lr+pcc")
    for form in (np.asarray, sp.csr_matrix):
        monitor = BatchMonitor(model)
        monitor.add(X[:4], form(X[:4]), np.array([0, 1, 0, 1], dtype=np.int32))
        monitor.add(X[4:], form(X[4:]), np.array([1, 1], dtype=np.int32))
        means = monitor.feature_means([1, 0])
        np.testing.assert_allclose(means[1], X[[0, 2]].mean(axis=0))
        np.testing.assert_allclose(means[0], X[[1, 3, 4, 5]].mean(axis=0))
        notices = monitor.notices(["b", "a"], [1, 0], ["once", "once"])
        assert [notice.text for notice in notices][:2] == [
            "once",
            "b: 4 items only; the estimates are rough.",
        ]


def test_the_same_of_many_batches_is_said_once() -> None:
    X = np.arange(24.0).reshape(12, 2)
    model = Model.fit(np.vstack([X] * 4), np.array([[0], [1]] * 24), method="lr+pcc")
    monitor = BatchMonitor(model)
    monitor.add(X, X, np.repeat(np.arange(6, dtype=np.int32), 2))
    names = list("abcdef")
    (notice,) = monitor.notices(names, range(6))
    assert notice.text.startswith("6 batches (the first is a) have fewer than 50 items;")
    assert (notice.batch, notice.batches, notice.level) == ("", tuple(names), "note")
    assert len(monitor.notices(names[:5], range(5))) == 5
