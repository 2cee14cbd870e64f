"""The mix of shifts that intervals are calibrated on."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.validation_shifts import draw_shifts


def test_four_kinds_of_shift_in_two_sizes() -> None:
    rng = np.random.default_rng(0)
    Y = (rng.random((400, 5)) < 0.3).astype(np.int8)
    samples, family = draw_shifts(Y, 20, rng)
    assert np.bincount(family).tolist() == [40] * 4
    assert sorted(set(samples.sizes)) == [30, 100]
    moved = np.abs(samples.mean(Y) - Y.mean(axis=0)).mean(axis=1)
    large = samples.sizes == 100
    assert np.all([moved[large & (family == kind)].mean() for kind in (1, 2, 3)] > 1.2 * moved[
        large & (family == 0)
    ].mean())  # fmt: skip


@pytest.mark.parametrize("n_items", [1, 2, 7])
def test_tiny_pools_give_tiny_samples(n_items: int) -> None:
    samples, family = draw_shifts(np.ones((n_items, 2), dtype=np.int8), 3, np.random.default_rng(0))
    assert len(samples) == len(family) >= 18
    assert samples.sizes.max() <= max(1, n_items // 2)
