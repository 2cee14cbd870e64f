"""PAV: the closed form solves the quadratic program; isotonic regression is a case of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from prevalens.aggregators import calibrated
from prevalens.aggregators.calibrated import PAV
from prevalens.aggregators.counting import PCC
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError, PrevalensError

needs_clarabel = pytest.mark.skipif(calibrated.clarabel is None, reason="clarabel is missing")


def labelled(seed: int, n_items: int = 60) -> tuple[Scores, np.ndarray]:
    rng = np.random.default_rng(seed)
    Y = rng.integers(0, 2, (n_items, 3))
    return Scores(np.round(np.clip(rng.random(Y.shape) * 0.7 + 0.3 * Y, 0, 1), 2)), Y


def calibrate(pav: PAV, scores: Scores) -> np.ndarray:
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
