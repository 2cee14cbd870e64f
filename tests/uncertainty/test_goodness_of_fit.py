"""Goodness of fit: quiet under label shift, loud when items look otherwise."""

from __future__ import annotations

import numpy as np

from prevalens.protocols import MLAPP, LabelTilt, Natural
from prevalens.uncertainty.goodness_of_fit import fit_misfit


def items(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    Y = (rng.normal(size=(n, 4)) + rng.normal(size=(n, 1)) > 0.7).astype(np.int8)
    logits = 2.0 * Y - 1.0 + rng.normal(0, 1.2, Y.shape)
    return 1 / (1 + np.exp(-logits)), Y


TRAIN, Y_TRAIN = items(1000, 0)
POOL, Y_POOL = items(3000, 1)
MISFIT = fit_misfit(TRAIN, Y_TRAIN, np.arange(1000) % 5, np.random.default_rng(0))


def test_quiet_under_label_shift() -> None:
    for protocol in (Natural(100, 400), MLAPP(100, max_samples=400), LabelTilt(100, 400)):
        p = MISFIT.p_value(POOL, protocol.draw(Y_POOL, 0))
        assert np.all((p > 0) & (p <= 1))
        assert np.mean(p < 0.01) < 0.04
        assert np.mean(p < 0.1) < 0.2
    # Not so quiet that it says nothing.
    assert np.mean(MISFIT.p_value(POOL, Natural(100, 400).draw(Y_POOL, 0)) < 0.5) > 0.2


def test_loud_when_scores_change_their_look() -> None:
    samples = MLAPP(100, max_samples=200).draw(Y_POOL, 0)
    logits = np.log(POOL / (1 - POOL))
    for changed in (0.4 * logits, 2.5 * logits):
        p = MISFIT.p_value(1 / (1 + np.exp(-changed)), samples)
        assert np.mean(p < 0.01) > 0.9


def test_constant_labels_and_scores_do_no_harm() -> None:
    posteriors, Y = TRAIN.copy(), Y_TRAIN.copy()
    posteriors[:, 0], Y[:, 0] = 0.0, 0
    intervals = fit_misfit(posteriors, Y, np.arange(1000) % 5, np.random.default_rng(0))
    p = intervals.p_value(posteriors, Natural(100, 50).draw(Y, 0))
    assert np.all(np.isfinite(p))
    assert p.mean() > 0.2
