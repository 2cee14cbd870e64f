from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from prevalens.aggregators.adjusted import ACC, PACC
from prevalens.aggregators.calibrated import PAV
from prevalens.aggregators.counting import CC, PCC
from prevalens.aggregators.kernel_density import KDEyML
from prevalens.aggregators.matching import HDy
from prevalens.aggregators.multiclass import (
    MulticlassACC,
    MulticlassCC,
    MulticlassKDEy,
    MulticlassPACC,
    MulticlassPCC,
    MulticlassSLD,
    OneVsRest,
    minimise_on_simplex,
    multiclass,
)
from prevalens.aggregators.sld import SLD
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError, PrevalensWarning

N_STATES = 4
EVERY = [
    MulticlassCC,
    MulticlassPCC,
    MulticlassACC,
    MulticlassPACC,
    MulticlassSLD,
    MulticlassKDEy,
]


def make_data(n_items=600, seed=0, n_states=N_STATES):
    """Posteriors of a classifier that knows something, and the states of the items."""
    rng = np.random.default_rng(seed)
    state_of = np.concatenate([np.arange(n_states), rng.integers(0, n_states, n_items - n_states)])
    evidence = 1.5 * np.eye(n_states)[state_of] + rng.normal(size=(n_items, n_states))
    logits = 1.5 * evidence  # which makes the posteriors calibrated
    posteriors = np.exp(logits)
    return posteriors / posteriors.sum(axis=1, keepdims=True), state_of


def votes_of(posteriors):
    return np.eye(posteriors.shape[1])[posteriors.argmax(axis=1)]


def values_for(quantifier, posteriors):
    return votes_of(posteriors) if quantifier.consumes == "votes" else posteriors


def make_samples(state_of, seed=1):
    """Bags of different sizes whose shares of states are far from even."""
    rng = np.random.default_rng(seed)
    bags = []
    for size in (50, 80, 50, 120):
        wanted = rng.dirichlet(np.ones(N_STATES))
        bags.append(rng.choice(len(state_of), size, p=_weights(state_of, wanted)))
    return Samples.from_indices([*bags, [3]], n_items=len(state_of))


def _weights(state_of, wanted):
    weights = wanted[state_of] / np.bincount(state_of)[state_of]
    return weights / weights.sum()


@pytest.mark.parametrize("maker", EVERY)
def test_shares_sum_to_one(maker):
    posteriors, state_of = make_data()
    quantifier = maker()
    values = values_for(quantifier, posteriors)
    shares = quantifier.fit(values, state_of, N_STATES).estimate(values, make_samples(state_of))
    assert shares.shape == (5, N_STATES)
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


@pytest.mark.parametrize("maker", EVERY)
def test_samples_together_equal_samples_one_by_one(maker):
    posteriors, state_of = make_data()
    quantifier = maker()
    values = values_for(quantifier, posteriors)
    quantifier.fit(values, state_of, N_STATES)
    samples = make_samples(state_of)
    together = quantifier.estimate(values, samples)
    for i in range(len(samples)):
        alone = quantifier.estimate(values, samples[i : i + 1])
        np.testing.assert_allclose(together[i], alone[0], atol=1e-9)


def test_counting_is_the_mean():
    posteriors, state_of = make_data()
    samples = make_samples(state_of)
    for maker in (MulticlassCC, MulticlassPCC):
        estimates = maker().fit(None, state_of, N_STATES).estimate(posteriors, samples)
        np.testing.assert_allclose(estimates, samples.mean(posteriors))


def test_with_a_perfect_classifier_acc_is_cc():
    _, state_of = make_data()
    votes = np.eye(N_STATES)[state_of]
    samples = make_samples(state_of)
    for guard in (None, 4.0):
        acc = MulticlassACC(guard).fit(votes, state_of, N_STATES)
        np.testing.assert_allclose(acc.rates_, np.eye(N_STATES))
        np.testing.assert_allclose(acc.estimate(votes, samples), samples.mean(votes), atol=1e-6)


@pytest.mark.parametrize(("maker", "guard"), [(MulticlassACC, None), (MulticlassPACC, 2.0)])
def test_adjustment_is_the_constrained_least_squares_it_says(maker, guard):
    posteriors, state_of = make_data()
    quantifier = maker(guard)
    values = values_for(quantifier, posteriors)
    quantifier.fit(values, state_of, N_STATES)
    samples = make_samples(state_of)
    estimates = quantifier.estimate(values, samples)
    resist = np.square((guard or 0.0) * quantifier.error_)
    for seen, ours in zip(samples.mean(values), estimates, strict=True):

        def cost(p, seen=seen):
            miss = quantifier.rates_ @ p - seen
            return miss @ miss + resist @ np.square(p - seen)

        slow = minimize(
            cost,
            np.full(N_STATES, 1 / N_STATES),
            bounds=[(0, 1)] * N_STATES,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert cost(ours) <= slow.fun + 1e-9
        np.testing.assert_allclose(ours, slow.x, atol=1e-4)


def test_rates_and_their_errors():
    posteriors, state_of = make_data()
    pacc = MulticlassPACC().fit(posteriors, state_of, N_STATES)
    scatter = 0.0
    for state in range(N_STATES):
        own = posteriors[state_of == state]
        np.testing.assert_allclose(pacc.rates_[:, state], own.mean(axis=0))
        scatter += np.square(own - own.mean(axis=0)).sum()
    counts = np.bincount(state_of)
    np.testing.assert_allclose(pacc.error_, np.sqrt(scatter / (600 - N_STATES) / counts))


def test_the_guard_leaves_a_state_of_one_item_nearly_unadjusted():
    posteriors, state_of = make_data()
    state_of = np.where(state_of == 3, 0, state_of)
    state_of[0] = 3
    samples = make_samples(np.where(state_of == 3, 0, state_of))
    seen = samples.mean(posteriors)[:, 3]

    def off(guard):
        pacc = MulticlassPACC(guard).fit(posteriors, state_of, N_STATES)
        return np.abs(pacc.estimate(posteriors, samples)[:, 3] - seen).max()

    assert off(30.0) < off(4.0) < off(None)


def test_adjustment_corrects_a_shift():
    posteriors, state_of = make_data(n_items=4000)
    fresh, truth = make_data(n_items=4000, seed=5)
    rng = np.random.default_rng(0)
    wanted = np.array([0.7, 0.1, 0.1, 0.1])
    rows = rng.choice(4000, 3000, p=_weights(truth, wanted))
    sample = Samples.from_indices([rows], n_items=4000)
    counted = MulticlassPCC().fit(None, state_of, N_STATES).estimate(fresh, sample)
    for maker in (MulticlassPACC, MulticlassSLD, MulticlassKDEy):
        estimates = maker().fit(posteriors, state_of, N_STATES).estimate(fresh, sample)
        assert np.abs(estimates - wanted).max() < 0.05 < np.abs(counted - wanted).max()


def test_sld_is_quapys_em():
    quapy = pytest.importorskip("quapy")
    posteriors, state_of = make_data()
    samples = make_samples(state_of)
    estimates = MulticlassSLD().fit(None, state_of, N_STATES).estimate(posteriors, samples)
    prior = np.bincount(state_of) / len(state_of)
    for rows, ours in zip(samples, estimates, strict=True):
        theirs, _ = quapy.method.aggregative.EMQ.EM(prior, posteriors[rows])
        np.testing.assert_allclose(ours, theirs, atol=2e-4)


def test_sld_over_two_states_is_sld_of_the_label():
    posteriors, state_of = make_data(n_states=2)
    samples = Samples.from_indices([np.arange(40), np.flatnonzero(state_of)[:60]], n_items=600)
    label = SLD().fit(Scores(posteriors[:, [1]]), state_of[:, np.newaxis])
    states = MulticlassSLD(1e-10, max_iter=100_000).fit(None, state_of, 2)
    np.testing.assert_allclose(
        states.estimate(posteriors, samples)[:, [1]],
        label.aggregate(Scores(posteriors[:, [1]]), samples),
        atol=1e-5,
    )


def test_sld_says_when_it_was_stopped():
    posteriors, state_of = make_data()
    sld = MulticlassSLD(1e-12, max_iter=13).fit(None, state_of, N_STATES)
    with pytest.warns(PrevalensWarning, match="had not settled after 13 rounds in [1-5] of 5"):
        sld.estimate(posteriors, make_samples(state_of))


def test_sld_with_posteriors_of_exactly_zero():
    state_of = np.array([0, 1, 2, 2])
    posteriors = np.eye(3)[[0, 0, 1, 1]]
    estimates = MulticlassSLD().fit(None, state_of, 3).estimate(posteriors, Samples.whole(4))
    np.testing.assert_allclose(estimates, [[0.5, 0.5, 0.0]])


@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.5])
def test_kdey_has_the_greatest_likelihood(bandwidth):
    posteriors, state_of = make_data()
    fresh, _ = make_data(seed=7)
    samples = make_samples(state_of)
    kdey = MulticlassKDEy(bandwidth, tol=1e-9).fit(posteriors, state_of, N_STATES)
    estimates = kdey.estimate(fresh, samples)
    squares = np.square(fresh[:, np.newaxis] - posteriors).sum(axis=2)
    kernels = np.exp(-squares / (2 * bandwidth**2))
    densities = np.stack([kernels[:, state_of == s].mean(axis=1) for s in range(N_STATES)], axis=1)
    for rows, shares in zip(samples, estimates, strict=True):
        within = densities[rows] / densities[rows].max(axis=1, keepdims=True)
        # Conditions of the optimum of a concave function on the simplex.
        slopes = (within / (within @ shares)[:, np.newaxis]).mean(axis=0)
        assert np.all(slopes < 1 + 1e-3)
        np.testing.assert_allclose(slopes[shares > 0.01], 1.0, atol=1e-3)


def test_kdey_over_two_states_is_kdey_of_the_label():
    posteriors, state_of = make_data(n_states=2)
    samples = Samples.from_indices([np.arange(40), np.flatnonzero(state_of)[:60]], n_items=600)
    label = KDEyML(0.2).fit(Scores(posteriors[:, [1]]), state_of[:, np.newaxis])
    states = MulticlassKDEy(0.2, tol=1e-9).fit(posteriors, state_of, 2)
    np.testing.assert_allclose(
        states.estimate(posteriors, samples)[:, [1]],
        label.aggregate(Scores(posteriors[:, [1]]), samples),
        atol=1e-4,
    )


def test_kdey_of_items_far_from_all_labelled_ones():
    posteriors = np.repeat(np.eye(3)[:2], 5, axis=0)
    kdey = MulticlassKDEy(0.01).fit(posteriors, np.repeat([0, 1], 5), 2)
    # The nearest state counts, however far it is.
    estimates = kdey.estimate(np.array([[0.0, 0.2, 0.8]]), Samples.whole(1))
    np.testing.assert_allclose(estimates, [[0.0, 1.0]], atol=1e-4)


def test_kdey_is_quapys():
    quapy = pytest.importorskip("quapy")
    posteriors, state_of = make_data(300)
    fresh, _ = make_data(600, seed=5)
    samples = make_samples(np.arange(600) % N_STATES)
    theirs = quapy.method.aggregative.KDEyML(bandwidth=0.1, random_state=0)
    theirs.classifier = SimpleNamespace(classes_=np.arange(N_STATES))
    theirs.aggregation_fit(posteriors, state_of)
    kdey = MulticlassKDEy(0.1, tol=1e-8).fit(posteriors, state_of, N_STATES)
    for rows, ours in zip(samples, kdey.estimate(fresh, samples), strict=True):
        np.testing.assert_allclose(ours, theirs.aggregate(fresh[rows]), atol=5e-3)


def test_one_versus_rest_scales_to_one():
    posteriors, state_of = make_data()
    samples = make_samples(state_of)
    for aggregator in (HDy(bins=10), PAV(), PACC()):
        quantifier = OneVsRest(aggregator)
        assert quantifier.consumes == aggregator.consumes
        estimates = quantifier.fit(posteriors, state_of, N_STATES).estimate(posteriors, samples)
        np.testing.assert_allclose(estimates.sum(axis=1), 1.0)


def test_one_versus_rest_without_any_share_answers_the_prior():
    state_of = np.array([0, 1, 1, 1])
    votes = np.zeros((4, 2))
    estimates = OneVsRest(CC()).fit(votes, state_of, 2).estimate(votes, Samples.whole(4))
    np.testing.assert_array_equal(estimates, [[0.25, 0.75]])


def test_names_of_labels_stand_for_states():
    assert type(multiclass(CC())) is MulticlassCC
    assert type(multiclass(PCC())) is MulticlassPCC
    assert type(multiclass(ACC())) is MulticlassACC
    assert multiclass(PACC(guard=None)).guard is None
    assert multiclass(ACC()).guard == MulticlassACC().guard
    assert multiclass(SLD(tol=1e-3)).tol == 1e-3
    assert multiclass(KDEyML(0.3)).bandwidth == 0.3
    assert type(multiclass(HDy())) is OneVsRest
    with pytest.raises(InputError, match="no version over label states"):
        multiclass(SLD("platt"))


def test_refusals():
    posteriors, state_of = make_data()
    with pytest.raises(InputError, match="guard must be zero or positive, or None; got -1"):
        MulticlassACC(-1).fit(posteriors, state_of, N_STATES)
    with pytest.raises(InputError, match="bandwidth must"):
        MulticlassKDEy(0.001).fit(posteriors, state_of, N_STATES)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), rank=st.integers(0, 12))
def test_least_squares_on_the_simplex_meets_its_conditions(seed, n, rank):
    """No share can be moved to a state of smaller slope, whatever the conditioning."""
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(min(rank, n), n)) * 10.0 ** rng.uniform(-4, 1)
    curve = design.T @ design
    pull = rng.normal(size=(5, n)) @ (curve + 1e-3 * np.eye(n))
    shares = minimise_on_simplex(curve, pull)
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    slope = shares @ curve - pull
    waste = (shares * (slope - slope.min(axis=1, keepdims=True))).sum(axis=1)
    assert (waste <= 1e-7 * max(1.0, np.abs(slope).max())).all()
