from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm

from prevalens.aggregators import PCC, ScenarioMixture
from prevalens.aggregators.counting import binomial_median
from prevalens.datasets import synthetic
from prevalens.protocols import MLAPP, CovariateTilt, LabelTilt, Natural
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError
from prevalens.validation_shifts import shifted_splits


@pytest.fixture(scope="module")
def scored():
    """Labelled scores of training and test items: timid, noisy posteriors of correlated labels."""
    data = synthetic(n_train=1600, n_test=1600, n_labels=6, random_state=3)

    def scores(Y, seed):
        noise = np.random.default_rng(seed).normal(scale=0.8, size=Y.shape)
        return Scores(1 / (1 + np.exp(-(2.0 * Y - 1.4 + noise))))

    return data, scores(data.train.Y, 0), scores(data.test.Y, 1)


@pytest.fixture(scope="module")
def fitted(scored):
    data, train, _ = scored
    return ScenarioMixture().fit(train, data.train.Y)


@pytest.mark.parametrize("size", [1, 2, 7, 100, 1000])
def test_median_is_the_binomial_median(size):
    chances = np.linspace(0, 1, 401)[1:-1]
    assert np.array_equal(binomial_median(chances, size), binom.median(size, chances) / size)


@pytest.mark.parametrize("protocol", [MLAPP(more_than=600), LabelTilt(n_samples=300, scale=1.5)])
def test_shifted_samples_are_estimated_better_than_by_counting(scored, fitted, protocol):
    data, _, test = scored
    samples = protocol.draw(data.test.Y, 0)
    true = samples.mean(data.test.Y)
    counted = PCC().fit(test, data.test.Y).aggregate(test, samples)
    error = np.abs(fitted.aggregate(test, samples) - true).mean()
    assert error < 0.6 * np.abs(counted - true).mean()


def test_without_shift_it_is_close_to_the_training_prevalence(scored, fitted):
    data, _, test = scored
    samples = Natural(n_samples=300).draw(data.test.Y, 0)
    true = samples.mean(data.test.Y)
    naive = np.abs(true - data.train.Y.mean(axis=0)).mean()
    assert np.abs(fitted.aggregate(test, samples) - true).mean() < 1.05 * naive


def test_large_samples_are_nearly_exact(scored, fitted):
    # 800 items with one label, 800 without it: the class means are known well.
    data, _, test = scored
    rows = np.concatenate(
        [np.flatnonzero(data.test.Y[:, 0])[:400], np.flatnonzero(data.test.Y[:, 0] == 0)[:200]]
    )
    sample = Samples.from_indices([rows], n_items=len(data.test.Y))
    assert abs(fitted.aggregate(test, sample)[0, 0] - 400 / len(rows)) < 0.06


@pytest.mark.parametrize(
    "protocol", [MLAPP(more_than=600), Natural(n_samples=300), LabelTilt(n_samples=300)]
)
def test_intervals_cover_about_as_often_as_they_say(scored, fitted, protocol):
    data, _, test = scored
    samples = protocol.draw(data.test.Y, 1)
    true = samples.mean(data.test.Y)
    intervals = fitted.estimate(test, samples, 0.9)[1]
    inside = (intervals.lower <= true) & (true <= intervals.upper)
    assert 0.82 < inside.mean() < 0.98
    together = ((intervals.band_lower <= true) & (true <= intervals.band_upper)).all(axis=1)
    assert together.mean() > 0.75
    assert np.all(
        (intervals.band_lower <= intervals.lower) & (intervals.upper <= intervals.band_upper)
    )


def test_intervals_hold_the_point_and_grow_with_the_level(scored, fitted):
    data, _, test = scored
    samples = MLAPP(more_than=100).draw(data.test.Y, 0)
    point = fitted.aggregate(test, samples)
    half, most = fitted.estimate(test, samples, 0.5)[1], fitted.estimate(test, samples, 0.95)[1]
    assert np.all((half.lower <= point) & (point <= half.upper))
    assert (most.upper - most.lower).mean() > 1.5 * (half.upper - half.lower).mean()


def test_more_views_are_used(scored):
    data, train, test = scored
    noise = np.random.default_rng(5).normal(scale=0.15, size=(2, *train.values.shape))

    def panel(scores, blur):
        other = np.clip(scores.values + blur, 0, 1)
        both = np.hstack([scores.values, other])
        return Scores((scores.values + other) / 2, members=both)

    fitted = ScenarioMixture().fit(panel(train, noise[0]), data.train.Y)
    assert fitted.moments_.mean.shape == (12,)
    samples = MLAPP(more_than=100).draw(data.test.Y, 0)
    assert fitted.aggregate(panel(test, noise[1]), samples).shape == (len(samples), 6)


def test_given_settings_are_kept(scored):
    data, train, _ = scored
    fitted = ScenarioMixture(0.2, 0.7).fit(train, data.train.Y)
    assert (fitted.shrinkage_, fitted.evidence_weights_) == (0.2, (0.7,))


def test_the_loss_of_rehearsal_is_told_by_family(fitted):
    assert set(fitted.losses_) == {"ml-app", "natural", "label-tilt", "labelset-weights"}
    assert 0 < fitted.loss_ < 1


def test_few_items_are_answered_without_rehearsal():
    rng = np.random.default_rng(0)
    Y = (rng.random((20, 3)) < 0.4).astype(int)
    scores = Scores(rng.random((20, 3)))
    fitted = ScenarioMixture().fit(scores, Y)
    assert np.isnan(fitted.loss_)
    intervals = fitted.estimate(scores, Samples.whole(20), 0.9)[1]
    assert intervals.p_value is None
    assert np.all(intervals.lower <= intervals.upper)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"shrinkage": 0}, "shrinkage must be above 0"),
        ({"evidence_weight": -1}, "evidence_weight must be above 0"),
        ({"point": "mode"}, "point"),
        ({"prior": (1, 1)}, "four weights"),
        ({"prior": (0, 0, 0)}, "four weights"),
        ({"scales": ()}, "scales must be numbers above 0"),
    ],
)
def test_bad_parameters_are_named(parameters, sentence):
    Y = np.array([[0], [1]])
    with pytest.raises(InputError, match=sentence):
        ScenarioMixture(**parameters).fit(Scores(Y), Y)


def test_labels_that_follow_drifting_items_are_followed(scored):
    data, train, test = scored
    samples = CovariateTilt(test.values, 100, n_samples=300).draw(data.test.Y, 0)
    true = samples.mean(data.test.Y)
    errors = [
        np.abs(
            ScenarioMixture(0.1, prior=prior).fit(train, data.train.Y).aggregate(test, samples)
            - true
        ).mean()
        for prior in ((1.0, 1.0, 0.2, 1.0), (1.0, 1.0, 0.2, 0.0))
    ]
    assert errors[0] < errors[1]


def test_losses_can_be_had_without_a_fit(scored, fitted):
    data, scores, _ = scored
    Y = data.train.Y
    mixture = ScenarioMixture()
    losses = mixture.validation_losses(scores, Y, splits=shifted_splits(Y))
    assert not hasattr(mixture, "shrinkage_")
    # A fit draws fewer samples, at several sizes; its losses are those of the usual size.
    assert losses == pytest.approx(fitted.losses_, rel=0.2)
    assert ScenarioMixture().validation_losses(scores, Y, splits=[]) == {}


def test_without_rehearsal_bands_are_those_of_independent_gaussians():
    rng = np.random.default_rng(0)
    Y = (rng.random((30, 4)) < 0.5).astype(int)
    scores = Scores(0.2 + 0.6 * Y, kind="posteriors")
    mixture = ScenarioMixture().fit(scores, Y)
    intervals = mixture.estimate(scores, Samples.from_indices([np.arange(20)], n_items=30), 0.9)[1]
    half, band = intervals.upper - intervals.lower, intervals.band_upper - intervals.band_lower
    inside = (intervals.band_lower > 0) & (intervals.band_upper < 1)
    assert inside.any()
    wider = norm.ppf((1 + 0.9**0.25) / 2) / norm.ppf(0.95)
    np.testing.assert_allclose((band / half)[inside], wider, rtol=1e-6)
