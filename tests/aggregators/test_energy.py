"""EDy against the energy distance that it minimises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prevalens.aggregators import PCC, energy
from prevalens.aggregators.energy import EDy
from prevalens.samples import Samples
from prevalens.scores import Scores


def labelled(seed: int, n_items: int = 80) -> tuple[Scores, np.ndarray]:
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_items, 2)) < [0.3, 0.6]).astype(np.int8)
    Y[:2] = [[0, 0], [1, 1]]
    return Scores(np.round(rng.beta(1 + Y, 2 - Y), 2)), Y


def distance(sample: np.ndarray, column: np.ndarray, y: np.ndarray, share: float) -> float:
    """Energy distance of the sample from the mixture with this share of positives."""
    weights = np.where(y == 1, share / (y == 1).sum(), (1 - share) / (y == 0).sum())
    apart = np.abs(sample[:, np.newaxis] - column)
    within = np.abs(column[:, np.newaxis] - column)
    return 2 * (apart @ weights).mean() - weights @ within @ weights


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_other_share_is_nearer(seed: int) -> None:
    scores, Y = labelled(seed)
    bag = np.random.default_rng(seed).integers(0, 80, 20)
    estimate = EDy(guard=None).fit(scores, Y)
    found = estimate.aggregate(scores, Samples.from_indices([bag], n_items=80))[0]
    for j in range(2):
        column = scores.values[:, j]
        near = distance(column[bag], column, Y[:, j], found[j])
        others = [distance(column[bag], column, Y[:, j], s) for s in np.linspace(0, 1, 41)]
        assert near <= min(others) + 1e-12


def test_the_labelled_pool_gets_its_own_prevalence() -> None:
    scores, Y = labelled(1)
    whole = EDy(guard=None).fit(scores, Y).aggregate(scores, Samples.whole(80))
    np.testing.assert_allclose(whole[0], Y.mean(axis=0), atol=1e-12)


def test_values_outside_the_labelled_range() -> None:
    scores = Scores([[0.7], [0.6], [0.4], [0.3]])
    edy = EDy(guard=None).fit(scores, [[1], [1], [0], [0]])
    far, near = Scores([[1.0], [0.0]]), Scores([[0.7], [0.3]])
    each = Samples.from_indices([[0], [1]], n_items=2)
    np.testing.assert_allclose(edy.aggregate(far, each), edy.aggregate(near, each))


def test_fewer_knots_change_little(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    Y = (rng.random((2000, 1)) < 0.3).astype(np.int8)
    scores = Scores(rng.beta(1 + Y, 2 - Y))
    samples = Samples.from_indices(rng.integers(0, 2000, (5, 100)), n_items=2000)
    exact = EDy().fit(scores, Y).aggregate(scores, samples)
    monkeypatch.setattr(energy, "_KNOTS", 100)
    coarse = EDy().fit(scores, Y)
    assert len(coarse.knots_[0][0]) == 100
    np.testing.assert_allclose(coarse.aggregate(scores, samples), exact, atol=2e-3)


def test_labels_that_cannot_be_told_apart_are_counted() -> None:
    rng = np.random.default_rng(2)
    scores, Y = Scores(rng.random((100, 2))), np.zeros((100, 2), dtype=np.int8)
    Y[::3, 1] = 1
    samples = Samples.from_indices([np.arange(40)], n_items=100)
    expected = PCC().fit(scores, Y).aggregate(scores, samples)
    np.testing.assert_allclose(EDy().fit(scores, Y).aggregate(scores, samples), expected)


def test_the_guard_lets_informative_labels_through() -> None:
    scores, Y = labelled(6, n_items=300)
    edy = EDy().fit(scores, Y)
    assert edy.adjusted_.all()
    assert np.all(edy.tpr_ > edy.fpr_)
    bag = Samples.from_indices([np.flatnonzero(Y[:, 0])], n_items=300)
    assert edy.aggregate(scores, bag)[0, 0] == pytest.approx(1.0, abs=1e-9)
