from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp

from prevalens.selection.budget import Budget, Costs
from prevalens.validation_shifts import shifted_splits


def test_what_is_allowed_is_planned_and_what_is_not_is_noted():
    budget = Budget(100)
    assert budget.allows(50, "First")
    assert budget.planned == 50
    assert not budget.allows(30, "Second")
    assert budget.allows(10, "Third")
    assert budget.notes == ["Second was left out: it would take about 30 s more."]
    assert budget.left == pytest.approx(10)
    assert not budget.cut_short


def test_the_clock_ends_the_search_for_good(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    budget = Budget(10)
    assert budget.allows(1, "First")
    now[0] = 9.5
    assert not budget.allows(1, "Second")
    assert budget.cut_short
    assert not budget.allows(0.1, "Third")
    assert budget.notes == [
        "Second was left out: the time was over.",
        "Third was left out: the time was over.",
    ]


def test_costs_depend_on_counts_alone_and_grow_with_them():
    rng = np.random.default_rng(0)
    Y = (rng.random((200, 4)) < 0.3).astype(np.int8)
    splits = shifted_splits(Y)
    small = Costs(np.zeros((200, 10)), 4, 5)
    large = Costs(np.ones((400, 20)), 8, 5)
    for count in (
        lambda costs: costs.linear(2),
        lambda costs: costs.trees(100),
        lambda costs: costs.mixture(2, splits),
    ):
        assert 0 < count(small) < count(large)
        assert count(small) == count(Costs(rng.random((200, 10)), 4, 5))
    assert small.mixture(2, splits[: len(splits) // 2]) < small.mixture(2, splits)
    assert small.mixture(1, []) == 0


def test_of_sparse_features_only_the_entries_count():
    few, many = sp.random(300, 50, 0.01, "csr"), sp.random(300, 50, 0.5, "csr")
    assert Costs(few, 3, 5).linear(1) < Costs(many, 3, 5).linear(1)
