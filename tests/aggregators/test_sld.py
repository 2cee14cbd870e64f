"""SLD: the exact method is EM's limit, EM is EM, and both engines agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from prevalens.aggregators import sld_blocked, sld_compiled
from prevalens.aggregators.counting import CC, PCC
from prevalens.aggregators.sld import SLD
from prevalens.aggregators.sld_blocked import Rule, poles
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError, PrevalensWarning

needs_numba = pytest.mark.skipif(not sld_compiled.available(), reason="numba is not installed")
EXACT, EM = Rule(True, 1e-9, 1000), Rule(False, 1e-4, 1000)


def problem(seed: int, n_labels: int = 3) -> tuple[np.ndarray, np.ndarray, Samples]:
    """Posteriors from vague to certain, some equal to 0 and 1, priors, and bags of all sizes."""
    rng = np.random.default_rng(seed)
    posteriors = expit(rng.normal(-1, 1, n_labels) + rng.normal(size=(40, n_labels)) * 3)
    posteriors = np.round(posteriors, rng.integers(1, 12))
    prior = rng.uniform(0.05, 0.95, n_labels)
    bags = [rng.integers(0, 40, rng.integers(1, 60)) for _ in range(8)]
    return posteriors, prior, Samples.from_indices(bags, n_items=40)


def estimate(posteriors: np.ndarray, prior: np.ndarray, samples: Samples, **options) -> np.ndarray:
    scores = Scores(posteriors, kind="posteriors")
    Y = np.zeros(posteriors.shape, dtype=int)
    return SLD(prior=prior, **options).fit(scores, Y).aggregate(scores, samples)


def log_likelihood(posteriors: np.ndarray, prior: float, q: float) -> float:
    with np.errstate(divide="ignore"):
        return float(
            np.log(q * posteriors / prior + (1 - q) * (1 - posteriors) / (1 - prior)).sum()
        )


def slow_em(posteriors: np.ndarray, prior: float, tol: float, max_iter: int) -> float:
    """The algorithm as Saerens et al. write it, with QuaPy's rule for stopping."""
    q = prior
    for done in range(1, max_iter + 1):
        for_label = q / prior * posteriors
        against = (1 - q) / (1 - prior) * (1 - posteriors)
        before, q = q, float((for_label / (for_label + against)).mean())
        if abs(q - before) < tol and done >= 12:
            break
    return q


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_em_is_the_textbook_loop(seed: int) -> None:
    posteriors, prior, samples = problem(seed)
    estimates = estimate(posteriors, prior, samples, method="em", max_iter=10**5)
    for i, bag in enumerate(samples):
        for j in range(3):
            slow = slow_em(posteriors[bag, j], prior[j], 1e-4, 10**5)
            assert estimates[i, j] == pytest.approx(slow, abs=1e-9)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_exact_estimate_has_the_greatest_likelihood(seed: int) -> None:
    posteriors, prior, samples = problem(seed)
    estimates = estimate(posteriors, prior, samples)
    for i, bag in enumerate(samples):
        for j in range(3):
            best = log_likelihood(posteriors[bag, j], prior[j], estimates[i, j])
            for rival in [*np.linspace(0, 1, 41), estimates[i, j] + 1e-5, estimates[i, j] - 1e-5]:
                if 0 <= rival <= 1:
                    assert best >= log_likelihood(posteriors[bag, j], prior[j], rival) - 1e-9


def test_em_tends_to_the_exact_estimate() -> None:
    posteriors, prior, samples = problem(7)
    exact = estimate(posteriors, prior, samples)
    patient = estimate(posteriors, prior, samples, method="em", tol=1e-13, max_iter=10**6)
    np.testing.assert_allclose(exact, patient, rtol=0, atol=1e-6)


@needs_numba
@pytest.mark.parametrize("rule", [EXACT, EM], ids=["exact", "em"])
@given(seed=st.integers(0, 2**32 - 1))
def test_both_engines_agree(rule: Rule, seed: int) -> None:
    posteriors, prior, samples = problem(seed)
    table = poles(posteriors.T, prior)
    compiled, blocked = (
        engine.maximise(table, prior, samples, rule) for engine in (sld_compiled, sld_blocked)
    )
    np.testing.assert_allclose(compiled[0], blocked[0], rtol=0, atol=1e-9)
    assert compiled[1] == blocked[1]


def test_the_numpy_engine_takes_over_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    posteriors, prior, samples = problem(8)
    usual = estimate(posteriors, prior, samples)
    monkeypatch.setattr(sld_compiled, "numba", None)
    np.testing.assert_allclose(estimate(posteriors, prior, samples), usual, rtol=0, atol=1e-9)


def test_small_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    posteriors, prior, samples = problem(9)
    table = poles(posteriors.T, prior)
    once, _ = sld_blocked.maximise(table, prior, samples, EXACT)
    monkeypatch.setattr(sld_blocked, "_POLES_PER_BLOCK", 50)
    cut, _ = sld_blocked.maximise(table, prior, samples, EXACT)
    np.testing.assert_allclose(once, cut, rtol=0, atol=1e-12)


@needs_numba
@pytest.mark.parametrize("n_labels", [3, 20])
def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch, n_labels: int) -> None:
    posteriors, prior, samples = problem(10, n_labels)
    alone = estimate(posteriors, prior, samples)
    monkeypatch.setattr(sld_compiled, "_WORTH_THREADS", 0)
    monkeypatch.setattr(sld_compiled.numba.config, "NUMBA_NUM_THREADS", 3)
    np.testing.assert_array_equal(estimate(posteriors, prior, samples), alone)


@needs_numba
def test_kernels_compile_where_no_cache_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = sld_compiled.numba

    class Elsewhere:
        @staticmethod
        def njit(*, cache: bool = False, **flags):
            if cache:
                raise RuntimeError("cannot cache function: no locator available")
            return numba.njit(**flags)

    monkeypatch.setattr(sld_compiled, "numba", Elsewhere)
    assert sld_compiled._compiled(lambda x: x + 1)(1) == 2


def test_a_perfect_classifier_makes_sld_equal_cc() -> None:
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (60, 3))
    posteriors, votes = Scores(Y, kind="posteriors"), Scores(Y, kind="votes")
    samples = Samples.from_indices(rng.integers(0, 60, (9, 12)), n_items=60)
    np.testing.assert_allclose(
        SLD().fit(posteriors, Y).aggregate(posteriors, samples),
        CC().fit(votes, Y).aggregate(votes, samples),
        rtol=0,
        atol=1e-9,
    )


@pytest.mark.parametrize("method", ["exact", "em"])
def test_posteriors_that_say_nothing_leave_the_prior(method: str) -> None:
    prior = np.array([0.1 + 0.2, 0.07])
    samples = Samples.from_indices([[0, 1, 2], [4]], n_items=5)
    estimates = estimate(np.tile(prior, (5, 1)), prior, samples, method=method)
    np.testing.assert_allclose(estimates, [prior, prior], rtol=1e-15)


def test_evidence_on_one_side_goes_to_the_end() -> None:
    posteriors = np.array([[0.6, 0.4], [0.55, 0.45], [0.5, 0.5]])
    estimates = estimate(posteriors, np.array([0.5, 0.5]), Samples.whole(3))
    assert estimates.tolist() == [[1.0, 0.0]]


@given(seed=st.integers(0, 2**32 - 1))
def test_label_and_complement_agree(seed: int) -> None:
    posteriors, prior, samples = problem(seed)
    np.testing.assert_allclose(
        estimate(posteriors, prior, samples),
        1 - estimate(1 - posteriors, 1 - prior, samples),
        rtol=0,
        atol=1e-7,
    )


@given(seed=st.integers(0, 2**32 - 1), rise=st.floats(0, 1))
def test_more_evidence_never_lowers_the_estimate(seed: int, rise: float) -> None:
    posteriors, prior, samples = problem(seed)
    higher = posteriors.copy()
    higher[::3] += rise * (1 - higher[::3])
    low, high = (estimate(values, prior, samples) for values in (posteriors, higher))
    assert np.all(high >= low - 1e-7)


def test_only_prior_odds_matter() -> None:
    """Posteriors moved to a prior of 0.5 by Bayes' rule, as balanced class weights do."""
    rng = np.random.default_rng(3)
    Y = (rng.random((300, 2)) < [0.1, 0.4]).astype(np.int8)
    odds = rng.normal(size=Y.shape) + 2 * Y - 1
    prevalence = Y.mean(axis=0)
    natural = Scores(expit(odds + logit(prevalence)))
    balanced = Scores(expit(odds))
    samples = Samples.from_indices(rng.integers(0, 300, (10, 50)), n_items=300)
    np.testing.assert_allclose(
        SLD().fit(natural, Y).aggregate(natural, samples),
        SLD(prior=0.5).fit(balanced, Y).aggregate(balanced, samples),
        rtol=0,
        atol=1e-8,
    )


def test_true_posteriors_find_a_moved_prevalence() -> None:
    rng = np.random.default_rng(4)
    Y = (rng.random((40_000, 1)) < 0.2).astype(np.int8)
    posteriors = Scores(expit(rng.normal(size=Y.shape) * 2 + 4 * Y - 2 + logit(0.2)))
    positives, negatives = np.flatnonzero(Y[:, 0]), np.flatnonzero(1 - Y[:, 0])
    bag = np.concatenate([positives[:6000], negatives[:4000]])
    moved = Samples.from_indices([bag], n_items=len(Y))
    assert SLD().fit(posteriors, Y).aggregate(posteriors, moved)[0, 0] == pytest.approx(
        0.6, abs=0.02
    )


def test_a_constant_label_is_counted_unless_a_prior_is_given() -> None:
    rng = np.random.default_rng(5)
    posteriors, Y = Scores(rng.random((30, 2))), np.tile([0, 1], (30, 1))
    whole = Samples.whole(30)
    counted = PCC().fit(posteriors, Y).aggregate(posteriors, whole)
    np.testing.assert_array_equal(SLD().fit(posteriors, Y).aggregate(posteriors, whole), counted)
    given_prior = SLD(prior=0.5).fit(posteriors, Y).aggregate(posteriors, whole)
    assert not np.allclose(given_prior, counted)


def test_em_that_does_not_settle_warns() -> None:
    posteriors, prior, samples = problem(11)
    with pytest.warns(PrevalensWarning, match=r"after max_iter=5 rounds in \d+ of 24 estimates"):
        estimate(posteriors, prior, samples, method="em", max_iter=5)


def test_only_calibration_learns_from_scores() -> None:
    assert not SLD().needs_labelled_scores
    assert SLD("platt").needs_labelled_scores


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"calibrate": "isotonic"}, "calibrate must be one of 'platt'"),
        ({"method": "newton"}, "method must be one of 'exact', 'em'"),
        ({"tol": 0}, "tol must be a positive number or None; got 0"),
        ({"tol": "small"}, "tol must be a positive number or None; got 'small'"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"prior": "balanced"}, "prior must be one of 'training'"),
        ({"prior": 1.0}, "prior must lie strictly between 0 and 1; got 1.0"),
        ({"prior": [0.5, 0.5, 0.5]}, r"one per label \(2\); got shape \(3,\)"),
    ],
)
def test_strange_parameters_are_named(options: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        SLD(**options).fit(Scores([[0.5, 0.5]]), [[0, 1]])


def test_calibration_undoes_a_distortion() -> None:
    rng = np.random.default_rng(7)
    odds = 2 * rng.normal(size=(20_000, 1)) - 1
    Y = (rng.random(odds.shape) < expit(odds)).astype(np.int8)
    true, distorted = Scores(expit(odds)), Scores(expit(3 * odds + 2))
    samples = Samples.from_indices(rng.integers(0, 20_000, (20, 500)), n_items=20_000)
    straight = SLD().fit(true, Y).aggregate(true, samples)
    for calibrate in ("platt", "vector"):
        undone = SLD(calibrate).fit(distorted, Y).aggregate(distorted, samples)
        np.testing.assert_allclose(undone, straight, atol=0.02)


def test_calibrated_noise_answers_the_prior() -> None:
    rng = np.random.default_rng(8)
    Y = (rng.random((400, 5)) < 0.05).astype(np.int8)
    noise = Scores(rng.random(Y.shape))
    sld = SLD("platt").fit(noise, Y)
    assert sld.slope_.tolist() == [[0.0] * 5]
    estimates = sld.aggregate(noise, Samples.from_indices([np.arange(50)], n_items=400))
    np.testing.assert_allclose(estimates[0], sld.prior_, rtol=1e-12)
    np.testing.assert_allclose(sld.prior_, sld.prevalence_, atol=0.01)


def test_calibration_leaves_a_constant_label_alone() -> None:
    rng = np.random.default_rng(9)
    posteriors, Y = Scores(rng.random((50, 2))), np.tile([0, 1], (50, 1))
    sld = SLD("platt").fit(posteriors, Y)
    assert (sld.slope_.tolist(), sld.intercept_.tolist()) == ([[1.0, 1.0]], [0.0, 0.0])
    whole = Samples.whole(50)
    np.testing.assert_array_equal(
        sld.aggregate(posteriors, whole), PCC().fit(posteriors, Y).aggregate(posteriors, whole)
    )


def test_a_prior_that_comes_with_the_scores_is_the_one_used() -> None:
    rng = np.random.default_rng(0)
    prevalence, Y = 0.2, np.repeat([[1], [0]], [10, 40], axis=0)
    posteriors = rng.random((50, 1))
    # The same evidence, stated under the prior 1/2 and under the prevalence of Y.
    moved = Scores(expit(logit(posteriors) + logit(prevalence)))
    balanced = Scores(posteriors, prior=np.array([0.5]))
    samples = Samples.from_indices(rng.integers(0, 50, (6, 30)), n_items=50)
    expected = SLD().fit(moved, Y).aggregate(moved, samples)
    np.testing.assert_allclose(
        SLD().fit(balanced, Y).aggregate(balanced, samples), expected, atol=1e-7
    )
    ignoring = SLD(prior="training").fit(balanced, Y)
    assert ignoring.prior_.tolist() == [prevalence]
    assert np.abs(ignoring.aggregate(balanced, samples) - expected).max() > 0.05
