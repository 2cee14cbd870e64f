"""Calibrated intervals of any aggregator."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone

from prevalens import Quantifier
from prevalens.aggregators import CC, PACC, PCC, RQ, SLD, Aggregator, HDx
from prevalens.batches import ScoredSamples
from prevalens.classifiers import HoldOut, PerLabel
from prevalens.datasets import synthetic
from prevalens.protocols import MLAPP, LabelTilt, Natural
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.uncertainty import Bootstrap
from prevalens.validation import InputError

DATA = synthetic(n_train=500, n_test=800, n_labels=4, n_features=8, random_state=3)
TRAIN, TEST = DATA.train, DATA.test


def fit(aggregator: object, **options: object) -> Quantifier:
    quantifier = Quantifier(PerLabel(), aggregator, uncertainty=Bootstrap(replicas=8), **options)
    return quantifier.fit(TRAIN.X, TRAIN.Y)


@pytest.mark.parametrize("aggregator", [PCC(), PACC(), SLD(), RQ(PCC(), "moments")], ids=repr)
def test_covers_under_several_shifts(aggregator: object) -> None:
    quantifier = fit(aggregator)
    for protocol in (MLAPP(100, max_samples=300), Natural(100, 300), LabelTilt(100, 300)):
        samples = protocol.draw(TEST.Y, 1)
        truth = samples.mean(TEST.Y)
        scores = quantifier.score(TEST.X)
        _, intervals = quantifier.uncertainty_.estimate(
            quantifier.aggregator_, ScoredSamples(scores, samples), 0.9
        )
        inside = (intervals.lower <= truth) & (truth <= intervals.upper)
        # ML-APP drives four labels further than 500 labelled items let calibration go.
        assert inside.mean() > (0.75 if isinstance(protocol, MLAPP) else 0.8)
        assert (intervals.upper - intervals.lower).mean() < 0.35


def test_calibration_is_needed_for_pcc() -> None:
    quantifier = fit(PCC())
    samples = MLAPP(100, max_samples=300).draw(TEST.Y, 1)
    truth, scores = samples.mean(TEST.Y), quantifier.score(TEST.X)
    point, known = quantifier.uncertainty_.estimate(
        quantifier.aggregator_, ScoredSamples(scores, samples), 0.9
    )
    # The noise of the items alone, which is what percentiles over resampled items would show.
    spread = samples.mean(scores.values**2) - point**2
    half = 1.645 * np.sqrt(spread / samples.sizes[:, np.newaxis])
    assert (np.abs(truth - point) <= half).mean() < 0.7
    assert ((known.lower <= truth) & (truth <= known.upper)).mean() > 0.7


def test_wider_levels_hold_narrower_ones_and_seeds_repeat() -> None:
    quantifier = fit(PACC())
    low, high = (quantifier.quantify(TEST.X, interval=level) for level in (0.5, 0.95))
    assert np.all((high.lower <= low.lower) & (low.upper <= high.upper))
    again = quantifier.quantify(TEST.X, interval=0.5)
    np.testing.assert_array_equal(again.upper, low.upper)
    assert low.p_value == again.p_value > 0.01


def test_counting_is_not_refitted_but_still_calibrated() -> None:
    quantifier = fit(CC())
    assert quantifier.uncertainty_.replicas_ == []
    assert quantifier.misfit_ is None
    assert quantifier.quantify(TEST.X, interval=0.9).p_value is None


def test_every_scheme_and_items_without_classifier() -> None:
    assert fit(PACC(), scheme=HoldOut(0.4)).quantify(TEST.X, interval=0.9).level == 0.9
    quantifier = Quantifier(None, HDx(), uncertainty=Bootstrap(replicas=2, resamples=5))
    intervals = quantifier.fit(TRAIN.X[:150], TRAIN.Y[:150]).quantify(TEST.X[:60], interval=0.9)
    assert np.all(intervals.lower <= intervals.upper)
    again = clone(quantifier).set_params(uncertainty=None).fit(TRAIN.X, TRAIN.Y)
    assert again.uncertainty_ is None


def test_rare_and_constant_labels() -> None:
    Y = TRAIN.Y.copy()
    Y[:, 0] = 0
    Y[:, 1] = 0
    Y[3, 1] = 1
    with pytest.warns(UserWarning, match="without both a positive and a negative"):
        quantifier = Quantifier(PerLabel(), PACC(), uncertainty=Bootstrap(replicas=4)).fit(
            TRAIN.X, Y
        )
    intervals = quantifier.quantify(TEST.X, interval=0.9)
    assert intervals.upper[0] < 0.01
    assert np.all(np.isfinite(intervals.upper))


@pytest.mark.parametrize(("size", "items"), [(50, 1 / 50), (1_600, 1 / 400)])
def test_a_label_without_errors_leaves_room_for_one_odd_item(size: int, items: float) -> None:
    Y = (np.random.default_rng(0).random((400, 2)) < 0.3).astype(np.int8)
    scores = Scores(Y.astype(float), kind="posteriors")
    pcc = PCC().fit(scores, Y)
    bag = Samples.from_indices([np.arange(size) % 400], n_items=400)
    prepared = Bootstrap(resamples=4).fit(pcc, scores, Y)
    _, intervals = prepared.estimate(pcc, ScoredSamples(scores, bag), 0.9)
    truth = bag.mean(Y)
    np.testing.assert_allclose(truth - intervals.lower, 1 / size, atol=1e-4)
    np.testing.assert_allclose(intervals.upper - truth, 1 / size, atol=1e-4)
    np.testing.assert_allclose(truth - intervals.band_lower, items, atol=1e-4)
    np.testing.assert_allclose(intervals.band_upper - truth, items, atol=1e-4)


@pytest.mark.parametrize("name", ["replicas", "resamples"])
def test_refuses_a_single_draw(name: str) -> None:
    scores = Scores(np.full((20, 1), 0.5))
    with pytest.raises(InputError, match=f"{name} must be at least 2"):
        Bootstrap(**{name: 1}).fit(PCC(), scores, np.eye(20, 1, dtype=np.int8))


class Memory(Aggregator):
    """Knows the labels of the items it was fitted on, and says one half of all others.

    Items are known by the value of their score.
    """

    consumes = "posteriors"
    joint = False

    def _fit(self, scores: Scores, Y: np.ndarray) -> None:
        self.known_ = dict(zip(scores.values[:, 0].tolist(), Y.tolist(), strict=True))

    def _aggregate(self, scores: Scores, samples: Samples) -> np.ndarray:
        unknown = [0.5] * self.n_labels_
        answers = [self.known_.get(value, unknown) for value in scores.values[:, 0].tolist()]
        return samples.mean(np.array(answers, dtype=float))


def items(n_items: int, seed: int) -> tuple[Scores, np.ndarray]:
    """Scores that say nothing but which item it is, and rare labels."""
    rng = np.random.default_rng(seed)
    return Scores(rng.random((n_items, 1))), (rng.random((n_items, 1)) < 0.1).astype(np.int8)


def test_intervals_are_calibrated_on_items_that_a_replica_has_not_seen() -> None:
    scores, Y = items(300, 0)
    memory = Memory().fit(scores, Y)
    prepared = Bootstrap(replicas=4, resamples=5).fit(memory, scores, Y)
    test, Y_test = items(100, 1)
    point, intervals = prepared.estimate(memory, ScoredSamples(test, Samples.whole(100)), 0.9)
    assert point == 0.5
    # On items it had seen, it would have erred by nothing.
    assert intervals.lower[0, 0] < Y_test.mean() < intervals.upper[0, 0]


class Watched(PACC):
    """Counts the items of each pool it is asked about that it was fitted on."""

    shared: ClassVar[list[int]] = []

    def _fit(self, scores: Scores, Y: np.ndarray) -> None:
        super()._fit(scores, Y)
        self.seen_ = set(scores.values[:, 0].tolist())

    def _aggregate(self, scores: Scores, samples: Samples) -> np.ndarray:
        pool = set(scores.values[:, 0].tolist())
        self.shared.append(len(pool & self.seen_))
        return super()._aggregate(scores, samples)


@pytest.mark.parametrize("grouped", [False, True])
def test_rq_inside_a_replica_never_validates_on_copies(grouped: bool) -> None:
    scores, Y = items(400, 2)
    groups = np.arange(400) // 2 if grouped else None
    Watched.shared = []
    replicas = Bootstrap(replicas=3, resamples=2)
    replicas.fit(RQ(Watched(), "ridge"), scores, Y, groups=groups)
    # Two folds of each replica; what follows asks about all labelled items.
    assert Watched.shared[:2] == [0, 0]
    assert [shared for shared in Watched.shared if shared == 0] == [0] * 6


def test_groups_are_drawn_together() -> None:
    scores, Y = items(60, 3)
    groups = np.repeat(np.arange(20), 3)
    prepared = Bootstrap(replicas=3, resamples=2).fit(Memory(), scores, Y, groups=groups)
    for replica in prepared.replicas_:
        seen = np.isin(scores.values[:, 0], list(replica.known_)).reshape(20, 3)
        assert set(seen.sum(axis=1).tolist()) == {0, 3}
