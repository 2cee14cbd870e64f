"""Errors of annotators: what two of them show, identities, and estimates of the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.aggregators import PACC
from prevalens.classifiers import PerLabel
from prevalens.datasets import synthetic
from prevalens.errors import InputError
from prevalens.quantifier import Quantifier
from prevalens.types import Floats, LabelMatrix
from prevalens.uncertainty import LabelNoise

KINDS = ("balanced", "symmetric", "misses")


def answers(truth: LabelMatrix, hit: Floats, alarm: Floats, seed: int) -> LabelMatrix:
    """What an annotator of this sensitivity and rate of false alarms says."""
    draw = np.random.default_rng(seed).random(truth.shape)
    return np.asarray(draw < np.where(truth == 1, hit, alarm)).astype(np.int8)


def rates(kind: str, p: Floats) -> tuple[Floats, Floats]:
    hit = {"balanced": 0.8, "symmetric": 0.93, "misses": 0.7}[kind]
    alarm = {"balanced": p * 0.2 / (1 - p), "symmetric": 0.07 + 0 * p, "misses": 0 * p}[kind]
    return np.full_like(p, hit), alarm


@pytest.mark.parametrize("kind", KINDS)
def test_two_annotators_show_prevalence_and_error_rates(kind: str) -> None:
    p = np.array([0.1, 0.3, 0.5])
    truth = (np.random.default_rng(0).random((60_000, 3)) < p).astype(np.int8)
    hit, alarm = rates(kind, p)
    pair = [answers(truth, hit, alarm, seed) for seed in (1, 2)]
    noise = LabelNoise.from_second(*pair, errors=kind)  # type: ignore[arg-type]
    assert noise.prevalence == pytest.approx(p, abs=0.012)
    assert noise.sensitivity == pytest.approx(hit, abs=0.02)
    assert 1 - noise.specificity == pytest.approx(alarm, abs=0.012)
    assert noise.agreement == pytest.approx((pair[0] == pair[1]).mean())


@given(q=st.floats(0.001, 0.999), kappa=st.floats(0.1, 1.0), kind=st.sampled_from(KINDS))
def test_every_assumption_reproduces_share_and_disagreement(
    q: float, kappa: float, kind: str
) -> None:
    found = LabelNoise(np.array([kappa]), np.zeros(1), np.array([q]), kind)  # type: ignore[arg-type]
    p, hit, alarm = found.prevalence[0], found.sensitivity[0], 1 - found.specificity[0]
    assert 0 <= p <= 1
    assert -1e-9 <= alarm <= hit <= 1 + 1e-9
    assert p * hit + (1 - p) * alarm == pytest.approx(q, abs=1e-6)
    apart = 2 * (p * hit * (1 - hit) + (1 - p) * alarm * (1 - alarm))
    assert apart == pytest.approx(2 * q * (1 - q) * (1 - kappa), abs=1e-4)


def test_rare_labels_are_drawn_to_the_others() -> None:
    rng = np.random.default_rng(0)
    p = np.array([0.3] * 5 + [0.004])
    truth = (rng.random((800, 6)) < p).astype(np.int8)
    first = answers(truth, *rates("balanced", p), seed=1)
    second = answers(truth, *rates("balanced", p), seed=2)
    noise = LabelNoise.from_second(first, second)
    q = (first.mean(axis=0) + second.mean(axis=0)) / 2
    raw = 1 - (first != second).mean(axis=0) / (2 * q * (1 - q))
    common = noise.kappa[:5].mean()
    assert abs(noise.kappa[5] - common) < abs(raw[5] - common)
    assert noise.deviation[5] > noise.deviation[0]


def test_stated_agreement_and_kappa_are_two_spellings() -> None:
    Y = (np.random.default_rng(0).random((500, 3)) < [0.1, 0.2, 0.5]).astype(np.int8)
    by_kappa = LabelNoise.from_kappa(Y, 0.7)
    by_share = LabelNoise.from_agreement(Y, by_kappa.agreement)
    assert by_share.kappa == pytest.approx(by_kappa.kappa)
    assert by_kappa.deviation.max() == 0
    assert LabelNoise.from_kappa(Y, "0.7 (0.6-0.8)").deviation.min() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_estimates_come_closer_to_the_truth_and_intervals_hold(kind: str) -> None:
    data = synthetic(n_train=800, n_test=3000, n_labels=4, signal=1.5, random_state=0)
    truth, items = np.asarray(data.train.Y), data.train.X
    first, second = (answers(truth, *rates(kind, truth.mean(axis=0)), seed=k) for k in (1, 2))
    twice = np.where(np.arange(800)[:, np.newaxis] < 400, second, np.nan)
    noise = LabelNoise.from_second(first, twice, errors=kind)  # type: ignore[arg-type]
    test = np.asarray(data.test.Y)
    # Batches of items with and without the first label, in other shares than in training.
    rng = np.random.default_rng(3)
    shares = [0.2, 0.5, 0.8]
    bags = [
        np.concatenate(
            [
                rng.choice(np.flatnonzero(test[:, 0] == value), round(400 * weight))
                for value, weight in ((1, share), (0, 1 - share))
            ]
        )
        for share in shares
    ]
    true = np.array([test[bag].mean(axis=0) for bag in bags])
    plain = Quantifier(PerLabel(), PACC(), uncertainty=None).fit(items, first)
    raw = [plain.quantify(data.test.X[bag]).point for bag in bags]
    corrected = Quantifier(PerLabel(), PACC()).fit(items, first, noise=noise)
    found = [corrected.quantify(data.test.X[bag], interval=0.9) for bag in bags]
    point = np.array([each.point for each in found])
    assert np.abs(point - true).mean() < 0.75 * np.abs(raw - true).mean()
    lower, upper = (np.array([each.ends[0][side] for each in found]) for side in (0, 1))
    assert np.mean((lower <= true) & (true <= upper)) >= 0.75


def test_labels_of_the_batch_are_taken_with_the_same_errors() -> None:
    data = synthetic(n_train=400, n_test=800, n_labels=3, signal=1.5, random_state=0)
    truth, test = np.asarray(data.train.Y), np.asarray(data.test.Y)
    zero = np.zeros(3)
    first = answers(truth, zero + 0.6, zero, seed=1)
    noise = LabelNoise.from_second(first, answers(truth, zero + 0.6, zero, seed=2), errors="misses")
    quantifier = Quantifier(PerLabel(), PACC()).fit(data.train.X, first, noise=noise)
    rows = np.arange(800)
    labelled = (rows, answers(test, zero + 0.6, zero, seed=3))
    found = quantifier.quantify(data.test.X, interval=0.9, labelled=labelled)
    assert found.point == pytest.approx(test.mean(axis=0), abs=0.06)
    assert np.all(found.point > labelled[1].mean(axis=0) + 0.03)


def test_bad_input_is_refused() -> None:
    rng = np.random.default_rng(0)
    Y = (rng.random((200, 2)) < 0.3).astype(np.int8)
    with pytest.raises(InputError, match="hardly more than chance"):
        LabelNoise.from_second(Y, rng.permutation(Y))
    with pytest.raises(InputError, match="No item is labelled by both"):
        LabelNoise.from_second(Y, np.full(Y.shape, np.nan))
    with pytest.raises(InputError, match="annotators who give labels at random"):
        LabelNoise.from_agreement(Y, 0.5)
    with pytest.raises(InputError, match=r"A kappa of 0\.05 is hardly"):
        LabelNoise.from_kappa(Y, 0.05)
    with pytest.raises(InputError, match="errors must be"):
        LabelNoise.from_kappa(Y, 0.5, errors="none")  # type: ignore[arg-type]
