"""PAV: the closed form solves the quadratic program; isotonic regression is a case of it.

Multicalibration: posteriors and labels agree in every group, whatever the mix of the groups.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from prevalens.aggregators import Aggregator, calibrated
from prevalens.aggregators.calibrated import PAV, MulticalibratedPCC
from prevalens.aggregators.counting import PCC
from prevalens.metrics import ae
from prevalens.protocols import CovariateTilt, Periods
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError, PrevalensError

needs_clarabel = pytest.mark.skipif(calibrated.clarabel is None, reason="clarabel is missing")


def labelled(seed: int, n_items: int = 60) -> tuple[Scores, np.ndarray]:
    rng = np.random.default_rng(seed)
    Y = rng.integers(0, 2, (n_items, 3))
    return Scores(np.round(np.clip(rng.random(Y.shape) * 0.7 + 0.3 * Y, 0, 1), 2)), Y


def calibrate(pav: Aggregator, scores: Scores) -> np.ndarray:
    """The calibrated posteriors: every item as a sample of its own."""
    every = Samples.from_indices(np.arange(scores.n_items)[:, np.newaxis], n_items=scores.n_items)
    return pav.aggregate(scores, every)


@given(seed=st.integers(0, 2**32 - 1))
def test_without_a_shift_it_is_isotonic_regression(seed: int) -> None:
    scores, Y = labelled(seed)
    fresh = Scores(np.random.default_rng(seed).random((40, 3)))
    answers = calibrate(PAV().fit(scores, Y), fresh)
    for j in range(3):
        oracle = IsotonicRegression(out_of_bounds="clip").fit(scores.values[:, j], Y[:, j])
        np.testing.assert_allclose(answers[:, j], oracle.predict(fresh.values[:, j]), atol=1e-9)


@given(seed=st.integers(0, 2**32 - 1), target=st.floats(0, 1), unify=st.sampled_from([0, 0.05]))
def test_the_mean_over_the_labelled_items_is_the_prevalence_asked_for(
    seed: int, target: float, unify: float
) -> None:
    scores, Y = labelled(seed)
    points = calibrated._unify(scores.values[:, 0], Y[:, 0].astype(np.int8), unify)
    fitted = calibrated._solve_shift(points, target)
    assert np.average(fitted, weights=points.weight) == pytest.approx(target, abs=1e-9)
    assert np.all(np.diff(fitted) >= 0)
    assert np.all((fitted >= 0) & (fitted <= 1))


def test_the_labelled_pool_gets_the_prevalence_asked_for() -> None:
    scores, Y = labelled(1)
    whole = Samples.whole(60)
    np.testing.assert_allclose(PAV().fit(scores, Y).aggregate(scores, whole)[0], Y.mean(axis=0))
    asked = [0.1, 0.5, 0.95]
    pav = PAV(prevalence=asked).fit(scores, Y)
    np.testing.assert_allclose(pav.aggregate(scores, whole)[0], asked)


@needs_clarabel
@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    target=st.floats(0.001, 0.999),
    unify=st.sampled_from([0, 0.02, 0.2]),
)
def test_the_closed_form_solves_the_quadratic_program(
    seed: int, target: float, unify: float
) -> None:
    scores, Y = labelled(seed)
    points = calibrated._unify(scores.values[:, 0], Y[:, 0].astype(np.int8), unify)
    closed, solved = calibrated._solve_shift(points, target), calibrated._solve_qp(points, target)

    def loss(fitted: np.ndarray) -> float:
        return float(points.weight @ (fitted - points.share) ** 2)

    assert loss(closed) <= loss(solved) + 1e-6
    np.testing.assert_allclose(closed, solved, atol=1e-4)


@needs_clarabel
@pytest.mark.parametrize("options", [{}, {"prevalence": 0.8}, {"unify": 0.1, "prevalence": 0.2}])
def test_both_solvers_estimate_the_same(options: dict) -> None:
    scores, Y = labelled(2, n_items=300)
    samples = Samples.from_indices(np.random.default_rng(2).integers(0, 300, (9, 30)), n_items=300)
    by_shift = PAV(**options).fit(scores, Y).aggregate(scores, samples)
    by_qp = PAV(**options, solver="qp").fit(scores, Y).aggregate(scores, samples)
    np.testing.assert_allclose(by_shift, by_qp, atol=1e-5)


def test_unified_items_are_few_weighted_points() -> None:
    scores, Y = labelled(3, n_items=500)
    posteriors, y = scores.values[:, 0], Y[:, 0].astype(np.int8)
    points = calibrated._unify(posteriors, y, 0.1)
    assert len(points.weight) <= 11
    assert points.weight.sum() == 500
    assert points.weight @ points.share == pytest.approx(y.sum())
    assert points.weight @ points.posterior == pytest.approx(posteriors.sum())
    assert np.all(np.diff(points.posterior) > 0)


def test_unifying_moves_the_estimates_little() -> None:
    scores, Y = labelled(4, n_items=2000)
    rng = np.random.default_rng(4)
    samples = Samples.from_indices(rng.integers(0, 2000, (30, 100)), n_items=2000)
    plain = PAV().fit(scores, Y).aggregate(scores, samples)
    unified = PAV(unify=0.05).fit(scores, Y).aggregate(scores, samples)
    assert 0 < np.abs(plain - unified).max() < 0.05


def test_calibrated_posteriors_beat_distorted_ones_without_shift() -> None:
    rng = np.random.default_rng(5)
    true = rng.random((4000, 1))
    Y = (rng.random(true.shape) < true).astype(np.int8)
    distorted = Scores(true**4)
    samples = Samples.from_indices(rng.integers(0, 4000, (50, 200)), n_items=4000)

    def error(aggregator: PAV | PCC) -> float:
        estimates = aggregator.fit(distorted, Y).aggregate(distorted, samples)
        return float(np.abs(estimates - samples.mean(Y)).mean())

    assert error(PAV()) < 0.2 * error(PCC())


def test_constant_labels_stay_constant() -> None:
    scores, Y = labelled(6)
    Y[:, 0], Y[:, 1] = 0, 1
    estimates = PAV().fit(scores, Y).aggregate(scores, Samples.whole(60))
    assert estimates[0, :2].tolist() == [0.0, 1.0]


def test_a_missing_solver_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrated, "clarabel", None)
    scores, Y = labelled(7)
    with pytest.raises(InputError, match=r'pip install "prevalens\[qp\]"'):
        PAV(solver="qp").fit(scores, Y)


@needs_clarabel
def test_an_unsolved_program_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrated, "_QP_ROUNDS", 1)
    scores, Y = labelled(8)
    with pytest.raises(PrevalensError, match="was not solved"):
        PAV(solver="qp").fit(scores, Y)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"unify": 1}, "unify must be a width from 0 to less than 1; got 1"),
        ({"unify": "all"}, "unify must be a width from 0 to less than 1; got 'all'"),
        ({"solver": "simplex"}, "solver must be one of 'shift', 'qp'"),
        ({"prevalence": 1.5}, "prevalence must lie between 0 and 1; got 1.5"),
        ({"prevalence": [0.5, 0.5]}, r"or one per label \(3\); got shape \(2,\)"),
    ],
)
def test_strange_parameters_are_named(options: dict, sentence: str) -> None:
    scores, Y = labelled(9)
    with pytest.raises(InputError, match=sentence):
        PAV(**options).fit(scores, Y)


def regions(seed: int, n_items: int = 1200) -> tuple[Scores, np.ndarray, np.ndarray]:
    """Posteriors that are right on average, and wrong in two regions that the last one tells apart.

    Returns the scores, the labels, and in which region each item is.
    """
    rng = np.random.default_rng(seed)
    region = rng.integers(0, 2, n_items)
    posteriors = rng.uniform(0.2, 0.8, (n_items, 3))
    posteriors[:, 2] = np.where(region == 1, 0.7, 0.3) + rng.uniform(-0.1, 0.1, n_items)
    wrong = np.where(region == 1, 0.9, -0.9)[:, np.newaxis] * [1.0, -1.0, 0.0]
    Y = (rng.random(posteriors.shape) < expit(logit(posteriors) + wrong)).astype(np.int8)
    return Scores(posteriors), Y, region


def test_no_group_is_pcc() -> None:
    scores, Y, _ = regions(0, 200)
    samples = Samples.from_indices([[0, 5, 9], [3, 3]], n_items=200)
    found = MulticalibratedPCC(0).fit(scores, Y)
    expected = PCC().fit(scores, Y).aggregate(scores, samples)
    np.testing.assert_allclose(found.aggregate(scores, samples), expected, rtol=0, atol=1e-15)
    assert found.leaves_ == 0


@given(seed=st.integers(0, 2**32 - 1), penalty=st.floats(0.1, 50))
@settings(max_examples=15)
def test_a_single_group_shifts_log_odds_until_the_penalty_balances(
    seed: int, penalty: float
) -> None:
    scores, Y = labelled(seed)
    found = MulticalibratedPCC(1, penalty=penalty).fit(scores, Y)
    inside = np.clip(scores.values, 1e-15, 1 - 1e-15)
    for j in range(3):

        def slope(shift: float, j: int = j) -> float:
            moved = expit(logit(inside[:, j]) + shift)
            return float((Y[:, j] - moved).sum() - penalty * shift)

        assert found.shifts_[0, j] == pytest.approx(brentq(slope, -50, 50), abs=1e-6)


@pytest.mark.parametrize("leaves", [2, 5, 16])
def test_posteriors_agree_with_labels_in_every_group(leaves: int) -> None:
    scores, Y, _ = regions(1)
    found = MulticalibratedPCC(leaves, penalty=1e-6).fit(scores, Y)
    assert found.leaves_ == leaves
    # Groups by the tree that was grown, read without the aggregator's own code.
    nodes = found._tree.apply(scores.values)
    groups, _ = Samples.by_group(nodes)
    assert len(groups) == leaves
    assert groups.sizes.min() >= 25
    np.testing.assert_allclose(found.aggregate(scores, groups), groups.mean(Y), atol=1e-6)


def test_posteriors_of_zero_and_one_stay() -> None:
    scores = Scores(np.repeat([[0.0], [0.5], [1.0]], 30, axis=0))
    Y = np.tile([[0], [1]], (45, 1))
    answers = calibrate(MulticalibratedPCC(1).fit(scores, Y), scores)
    np.testing.assert_array_equal(answers[:30], 0.0)
    np.testing.assert_array_equal(answers[60:], 1.0)


def test_groups_are_found_and_a_tilt_of_the_features_costs_little() -> None:
    scores, Y, _ = regions(2)
    new, truth, where = regions(3)
    # Features say the region; the tilt mixes both in all proportions.
    tilt = CovariateTilt(where[:, np.newaxis] + 0.0, 200, n_samples=100, scale=2.0)
    samples = tilt.draw(truth, np.random.default_rng(0))
    true = samples.mean(truth)
    found = MulticalibratedPCC().fit(scores, Y)
    assert found.leaves_ >= 2
    plain = ae(true, PCC().fit(scores, Y).aggregate(new, samples)).mean()
    assert ae(true, found.aggregate(new, samples)).mean() < 0.6 * plain
    # A single shift per label cannot do this: both regions together are calibrated.
    single = MulticalibratedPCC(1).fit(scores, Y).aggregate(new, samples)
    assert ae(true, single).mean() > 0.9 * plain


def test_items_are_divided_where_posteriors_are_wrong_not_where_labels_differ() -> None:
    rng = np.random.default_rng(10)
    region = rng.integers(0, 2, 1500)
    # The first label varies most, and its posteriors are right.
    posteriors = np.column_stack([rng.choice([0.05, 0.95], 1500), np.where(region, 0.6, 0.4)])
    wrong = np.where(region, 0.8, -0.8)[:, np.newaxis] * [0.0, 1.0]
    Y = (rng.random(posteriors.shape) < expit(logit(posteriors) + wrong)).astype(np.int8)
    scores, (samples, _) = Scores(posteriors), Samples.by_group(region)
    found = MulticalibratedPCC(2, penalty=1e-6).fit(scores, Y)
    np.testing.assert_allclose(found.aggregate(scores, samples), samples.mean(Y), atol=1e-6)


def test_later_batches_of_a_timeline_whose_regions_change_their_shares() -> None:
    scores, Y, _ = regions(4)
    new, truth, where = regions(5, 4000)
    rng = np.random.default_rng(0)
    # The later an item, the more likely it is of the second region.
    years = 2000 + np.clip(rng.normal(3 + 4 * where, 1.0), 0, 9).astype(int)
    samples = Periods(years, min_size=100).draw(truth, 0)
    true = samples.mean(truth)
    errors = [
        ae(true, each.fit(scores, Y).aggregate(new, samples)).mean()
        for each in (PCC(), MulticalibratedPCC())
    ]
    assert len(samples) >= 6
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize("seed", range(5))
def test_calibrated_posteriors_are_left_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    posteriors = rng.uniform(0.05, 0.95, (600, 3))
    Y = rng.random(posteriors.shape) < posteriors
    found = MulticalibratedPCC().fit(Scores(posteriors), Y)
    # One standard error lets a few groups through by chance, and these hardly shift.
    assert np.abs(calibrate(found, Scores(posteriors)) - posteriors).mean() < 0.02


def test_given_groups_are_told_apart_too() -> None:
    rng = np.random.default_rng(6)
    posteriors = rng.uniform(0.2, 0.8, (800, 2))
    # Two sources that the second posterior tells apart; the first label is as its posterior says
    # in both, so nothing but the groups divides the items there.
    source = np.where(posteriors[:, 1] > 0.63, "web", "mail")
    Y = (rng.random(posteriors.shape) < posteriors).astype(np.int8)
    scores, (samples, _) = Scores(posteriors), Samples.by_group(source)
    found = MulticalibratedPCC(2, penalty=1e-6).fit(scores, Y, groups=source)
    np.testing.assert_allclose(found.aggregate(scores, samples), samples.mean(Y), atol=1e-6)
    without = MulticalibratedPCC(2, penalty=1e-6).fit(scores, Y)
    assert ae(samples.mean(Y), without.aggregate(scores, samples)).mean() > 1e-3


def test_groups_of_few_items_are_not_told_apart() -> None:
    scores, Y, _ = regions(7, 240)
    small = np.arange(240) // 4
    samples = Samples.from_indices([range(0, 240, 3)], n_items=240)
    with_groups = MulticalibratedPCC(4).fit(scores, Y, groups=small)
    without = MulticalibratedPCC(4).fit(scores, Y)
    np.testing.assert_array_equal(
        with_groups.aggregate(scores, samples), without.aggregate(scores, samples)
    )


def test_few_items_are_left_alone() -> None:
    scores, Y, _ = regions(8, 74)
    assert MulticalibratedPCC().fit(scores, Y).leaves_ == 0
    scores, Y, _ = regions(8, 600)
    assert MulticalibratedPCC().fit(scores, Y, groups=np.arange(600) % 2).leaves_ == 0


def test_impossible_multicalibration_is_refused() -> None:
    scores, Y, _ = regions(9, 100)
    with pytest.raises(InputError, match="leaves must be"):
        MulticalibratedPCC(-1).fit(scores, Y)
    with pytest.raises(InputError, match="penalty must be"):
        MulticalibratedPCC(penalty=0).fit(scores, Y)
