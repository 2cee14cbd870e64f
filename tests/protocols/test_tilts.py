"""Tilts: which prevalences move, how far, and what stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from prevalens.protocols import CovariateTilt, LabelsetWeights, LabelTilt, Natural, Protocol
from prevalens.validation import InputError

RNG = np.random.default_rng(0)
#: 600 items, 4 labels, 16 label sets; the first two features follow the first two labels.
Y = (RNG.random((600, 4)) < [0.5, 0.3, 0.2, 0.1]).astype(np.int8)
X = np.column_stack([Y[:, :2] + 0.3 * RNG.normal(size=(600, 2)), RNG.normal(size=(600, 2))])


def deviation(protocol: Protocol, seed: int = 0) -> np.ndarray:
    """How far the prevalence of each label strays from that of the pool."""
    return protocol.draw(Y, seed).mean(Y).std(axis=0)


def natural() -> np.ndarray:
    return deviation(Natural(size=50, n_samples=500))


class TestLabelsetWeights:
    def test_moves_every_label_more_than_chance_does(self) -> None:
        tilted = deviation(LabelsetWeights(size=50, n_samples=500))
        assert np.all(tilted > 1.5 * natural())

    def test_a_large_concentration_comes_close_to_chance(self) -> None:
        mild = deviation(LabelsetWeights(size=50, n_samples=500, concentration=1e4))
        np.testing.assert_allclose(mild, natural(), rtol=0.15)

    def test_a_tiny_concentration_lets_few_label_sets_rule(self) -> None:
        """Factors far below the smallest float still tell label sets apart."""
        samples = LabelsetWeights(size=10, n_samples=50, concentration=1e-3).draw(Y, 0)
        sets = [len(np.unique(Y[bag], axis=0)) for bag in samples]
        n_largest = [np.unique(Y[bag], axis=0, return_counts=True)[1].max() for bag in samples]
        assert np.median(sets) <= 2
        assert np.median(n_largest) >= 8

    def test_within_a_label_set_all_items_are_alike(self) -> None:
        one_set = np.ones((30, 2))
        samples = LabelsetWeights(size=3, n_samples=20_000).draw(one_set, 0)
        drawn = np.bincount(samples.flat, minlength=30)
        assert np.all(np.abs(drawn - 2000) < 5 * np.sqrt(20_000 * 0.1 * 0.9))


class TestLabelTilt:
    def test_moves_every_label_more_than_chance_does(self) -> None:
        assert np.all(deviation(LabelTilt(size=50, n_samples=500)) > 1.5 * natural())

    def test_moves_further_with_a_larger_scale(self) -> None:
        mild, strong = (LabelTilt(size=50, n_samples=500, scale=scale) for scale in (0.1, 2.0))
        np.testing.assert_allclose(deviation(mild), natural(), rtol=0.2)
        assert np.all(deviation(strong) > deviation(LabelTilt(size=50, n_samples=500)))

    def test_multiplies_the_odds_by_a_log_normal_factor(self) -> None:
        """Of single draws from one label, the mean prevalence is that of tilted odds."""
        y = np.repeat([[1], [0]], [30, 70], axis=0)
        samples = LabelTilt(size=1, n_samples=40_000, scale=1.5).draw(y, 0)
        factors = np.exp(1.5 * np.random.default_rng(1).normal(size=400_000))
        expected = (30 * factors / (30 * factors + 70)).mean()
        assert samples.mean(y).mean() == pytest.approx(expected, abs=0.012)


class TestCovariateTilt:
    def test_moves_the_labels_that_features_follow_and_no_others(self) -> None:
        ratio = deviation(CovariateTilt(X, size=50, n_samples=500)) / natural()
        assert np.all(ratio[:2] > 1.5)
        assert np.all(ratio[2:] < 1.25)

    def test_sparse_and_dense_features_give_the_same_samples(self) -> None:
        dense = np.where(X > 0, X, 0.0)
        drawn = [
            CovariateTilt(form, size=50, n_samples=20).draw(Y, 0).indices
            for form in (dense, sp.csr_matrix(dense), sp.csr_array(dense), dense.tolist())
        ]
        for other in drawn[1:]:
            np.testing.assert_array_equal(drawn[0], other)

    def test_neither_units_nor_origin_of_a_feature_matter(self) -> None:
        moved = X * [1.0, 1e-3, 1e4, 1.0] + [0.0, 5.0, -7.0, 1.0]
        left = CovariateTilt(X, size=50, n_samples=20).draw(Y, 0)
        right = CovariateTilt(moved, size=50, n_samples=20).draw(Y, 0)
        np.testing.assert_array_equal(left.indices, right.indices)

    def test_features_that_do_not_vary_tilt_nothing(self) -> None:
        flat = CovariateTilt(np.full((600, 3), 0.1), size=50, n_samples=500)
        np.testing.assert_allclose(deviation(flat), natural(), rtol=0.2)

    def test_is_told_the_items_later_but_keeps_its_own_covariates(self) -> None:
        planned = CovariateTilt(size=50, n_samples=20, scale=2.0)
        with pytest.raises(InputError, match=r"CovariateTilt\(X\) or call with_items"):
            planned.draw(Y, 0)
        with_features = planned.with_items(X)
        direct = CovariateTilt(X, size=50, n_samples=20, scale=2.0)
        np.testing.assert_array_equal(with_features.draw(Y, 0).indices, direct.draw(Y, 0).indices)
        assert direct.with_items(X[:, :1]) is direct
        assert planned.X is None

    def test_features_of_another_pool_are_refused(self) -> None:
        with pytest.raises(InputError, match="X has 5 rows but Y has 600"):
            CovariateTilt(X[:5]).draw(Y, 0)


@pytest.mark.parametrize(
    ("protocol", "sentence"),
    [
        (LabelsetWeights(concentration=0.0), "concentration must be a number above 0; got 0.0"),
        (LabelTilt(scale=-1.0), "scale must be a number above 0; got -1.0"),
        (LabelTilt(scale=float("nan")), "scale must be a number above 0; got nan"),
        (CovariateTilt(X, scale=True), "scale must be a number above 0; got True"),
        (LabelTilt(size=601), "A sample of 601 items cannot be drawn"),
        (LabelTilt(n_samples=0), "n_samples must be at least 1"),
    ],
)
def test_refusals_are_one_sentence(protocol: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        protocol.draw(Y, 0)
