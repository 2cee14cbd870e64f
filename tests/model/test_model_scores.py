"""Scores of chunks put together."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from prevalens.errors import InputError
from prevalens.model.model import joined
from prevalens.scores import Scores


def test_joined_in_order_and_in_single_precision() -> None:
    values = np.random.default_rng(0).random((10, 2))
    found = joined(Scores(part) for part in np.split(values, [3, 4]))
    assert found.values.dtype == np.float32
    np.testing.assert_allclose(found.values, values, rtol=1e-6)


def test_features_stay_as_they_are() -> None:
    parts = [sp.csr_matrix(np.eye(3)[:2]), sp.csr_matrix(np.eye(3)[2:])]
    found = joined(Scores(part, "features") for part in parts)
    assert found.values.toarray().tolist() == np.eye(3).tolist()


def test_views_are_kept() -> None:
    members = np.random.default_rng(0).random((10, 4))
    values = members.reshape(10, 2, 2).mean(axis=1)
    parts = (Scores(values[rows], members=members[rows]) for rows in (slice(0, 3), slice(3, 10)))
    np.testing.assert_allclose(joined(parts).evidence, members, rtol=1e-6)


def test_nothing() -> None:
    with pytest.raises(InputError, match="There are no items to quantify"):
        joined([])
