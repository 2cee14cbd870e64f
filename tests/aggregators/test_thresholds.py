"""Forman's and Friedman's thresholds against loops over all thresholds."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prevalens.aggregators import (
    PCC,
    RQ,
    T50,
    Friedman,
    MaxThreshold,
    MedianSweep,
    MedianSweep2,
    XThreshold,
    thresholds,
)
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError


def labelled(seed: int, n_items: int = 90) -> tuple[Scores, np.ndarray]:
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_items, 2)) < [0.3, 0.6]).astype(np.int8)
    Y[:2] = [[0, 0], [1, 1]]
    return Scores(np.round(rng.beta(1 + 2 * Y, 3 - 2 * Y), 2)), Y


def rates(column: np.ndarray, y: np.ndarray) -> list[tuple[float, float, float]]:
    """Threshold, tpr and fpr, for every different score."""
    return [
        (t, np.mean(column[y == 1] >= t), np.mean(column[y == 0] >= t)) for t in np.unique(column)
    ]


CHOICES = {
    T50: lambda tpr, fpr: abs(tpr - 0.5),
    XThreshold: lambda tpr, fpr: abs(1 - tpr - fpr),
    MaxThreshold: lambda tpr, fpr: fpr - tpr,
}


@pytest.mark.parametrize("kind", CHOICES, ids=lambda kind: kind.code)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_threshold_is_that_of_the_loop(kind: type, seed: int) -> None:
    scores, Y = labelled(seed)
    bag = np.random.default_rng(seed).integers(0, 90, 25)
    found = kind(guard=None).fit(scores, Y)
    estimates = found.aggregate(scores, Samples.from_indices([bag], n_items=90))
    for j in range(2):
        column = scores.values[:, j]
        table = rates(column, Y[:, j])
        keys = [(round(CHOICES[kind](tpr, fpr), 9), fpr - tpr) for _, tpr, fpr in table]
        best = min(keys)
        t, tpr, fpr = table[keys.index(best)]
        assert found.threshold_[j] == t
        assert found.tpr_[j] == pytest.approx(tpr)
        assert found.fpr_[j] == pytest.approx(fpr)
        if tpr != fpr:
            expected = (np.mean(column[bag] >= t) - fpr) / (tpr - fpr)
            assert estimates[0, j] == pytest.approx(np.clip(expected, 0, 1))


@pytest.mark.parametrize(("kind", "gap"), [(MedianSweep, None), (MedianSweep2, 0.25)])
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_sweep_is_the_median_of_the_loop(kind: type, gap: float | None, seed: int) -> None:
    scores, Y = labelled(seed)
    bags = np.random.default_rng(seed).integers(0, 90, (3, 25))
    samples = Samples.from_indices(bags, n_items=90)
    estimates = kind().fit(scores, Y).aggregate(scores, samples)
    for j in range(2):
        column = scores.values[:, j]
        usable = [
            row
            for row in rates(column, Y[:, j])
            if (row[1] - row[2] > gap if gap is not None else row[1] != row[2])
        ]
        for i, bag in enumerate(bags):
            each = [
                np.clip((np.mean(column[bag] >= t) - fpr) / (tpr - fpr), 0, 1)
                for t, tpr, fpr in usable
            ]
            assert estimates[i, j] == pytest.approx(np.median(each))


@pytest.mark.skipif(thresholds.numba is None, reason="numba is not installed")
@pytest.mark.parametrize("kind", [MedianSweep, MedianSweep2])
@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_items=st.integers(20, 400),
    decimals=st.sampled_from([1, 2, 9]),
)
def test_compiled_and_not_are_the_same(kind: type, seed: int, n_items: int, decimals: int) -> None:
    scores, Y = labelled(seed, n_items)
    scores = Scores(np.round(np.clip(scores.values + seed % 7 / 1000, 0, 1), decimals))
    rng = np.random.default_rng(seed)
    # Batches of one kind of items too, whose estimates are 0 or 1 at most thresholds.
    bags = [rng.integers(0, n_items, size) for size in (1, 2, 30, 200)]
    bags += [np.flatnonzero(Y[:, 0]), np.flatnonzero(1 - Y[:, 0])]
    samples = Samples.from_indices(bags, n_items=n_items)
    found = kind(int(rng.integers(1, 500))).fit(scores, Y)
    compiled = found.aggregate(scores, samples)
    with mock.patch.object(thresholds, "numba", None):
        np.testing.assert_allclose(compiled, found.aggregate(scores, samples), atol=1e-9)


@pytest.mark.parametrize("values", [[0.0] * 40, [1.0] * 40, [0.5] * 41, [0.0, 1.0] * 20])
def test_the_value_at_a_rank_among_equal_ones(values: list[float]) -> None:
    # Not compiled, so that it runs without numba too.
    find = getattr(thresholds._value_at, "py_func", thresholds._value_at)
    column, zeros = np.array(values), values.count(0.0)
    for rank in range(len(values)):
        for probe in (0.0, 0.3, 1.0):
            found = find(rank, column, probe, zeros, np.empty(len(values) + 1))
            assert found == sorted(values)[rank]


def test_fewer_thresholds_are_spread_over_all() -> None:
    scores, Y = labelled(0)
    every = MedianSweep(1000).fit(scores, Y).edges_[0]
    few = MedianSweep(5).fit(scores, Y).edges_[0]
    assert len(few) == 5 < len(every)
    assert {few[0], few[-1]} == {every[0], every[-1]}
    assert set(few) <= set(every)


def test_friedman_counts_above_the_training_prevalence() -> None:
    scores, Y = labelled(1)
    found = Friedman(guard=None).fit(scores, Y)
    bag = np.arange(0, 90, 2)
    estimate = found.aggregate(scores, Samples.from_indices([bag], n_items=90))[0]
    for j in range(2):
        votes = scores.values[:, j] >= Y[:, j].mean()
        tpr, fpr = votes[Y[:, j] == 1].mean(), votes[Y[:, j] == 0].mean()
        assert estimate[j] == pytest.approx((votes[bag].mean() - fpr) / (tpr - fpr))


def test_a_posterior_equal_to_the_prevalence_is_a_vote() -> None:
    scores = Scores([[0.5], [0.5], [0.25], [0.125]])
    found = Friedman(guard=None).fit(scores, [[1], [1], [0], [0]])
    assert (found.tpr_[0], found.fpr_[0]) == (1.0, 0.0)


@pytest.mark.parametrize("kind", [T50, XThreshold, MaxThreshold, Friedman, MedianSweep2])
def test_noise_and_constant_labels_are_counted(kind: type) -> None:
    rng = np.random.default_rng(2)
    scores, Y = Scores(rng.random((200, 2)) / 2 + 0.25), np.zeros((200, 2), dtype=np.int8)
    Y[::3, 1] = 1
    samples = Samples.from_indices([np.arange(40), np.arange(30, 90)], n_items=200)
    expected = PCC().fit(scores, Y).aggregate(scores, samples)
    np.testing.assert_allclose(kind().fit(scores, Y).aggregate(scores, samples), expected)


@pytest.mark.parametrize("kind", [T50, XThreshold, MaxThreshold, Friedman, MedianSweep])
def test_they_follow_a_shift_and_rq_reads_them(kind: type) -> None:
    scores, Y = labelled(3, n_items=900)
    positives, negatives = np.flatnonzero(Y[:, 0]), np.flatnonzero(1 - Y[:, 0])
    bag = [*positives[:160], *negatives[:40]]
    sample = Samples.from_indices([bag], n_items=900)
    assert kind().fit(scores, Y).aggregate(scores, sample)[0, 0] == pytest.approx(0.8, abs=0.08)
    corrected = RQ(kind(), "ridge").fit(scores, Y).aggregate(scores, sample)
    assert corrected[0, 0] > 0.5 > 1.5 * Y[:, 0].mean()


def test_strange_parameters_are_named() -> None:
    scores, Y = labelled(4)
    with pytest.raises(InputError, match="thresholds must be at least 1; got 0"):
        MedianSweep(0).fit(scores, Y)
    with pytest.raises(InputError, match="guard must be a number of standard errors"):
        T50(-1).fit(scores, Y)
