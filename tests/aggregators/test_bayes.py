"""BayesianCC and PQ against the sum over all ways to assign the items of a sample."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.special import betaln, gammaln

from prevalens.aggregators import PQ, BayesianCC
from prevalens.aggregators import bayes as module
from prevalens.aggregators.bayes import posterior
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError

rng = np.random.default_rng(0)
Y = (rng.random((400, 2)) < [0.15, 0.5]).astype(np.int8)
POSTERIORS = Scores(rng.beta(1 + 3 * Y, 4 - 3 * Y))
VOTES = Scores(POSTERIORS.values > 0.5, kind="votes")


def log_dirichlet(counts: np.ndarray) -> float:
    """Logarithm of the integral of prod p^counts over the simplex, up to a constant."""
    return gammaln(counts + 1.0).sum() - gammaln(counts.sum() + len(counts))


def enumerated(counts: list[int], labelled: np.ndarray, prior: float) -> np.ndarray:
    """Probabilities of 0, ..., n positives, from every split of every bin."""
    size = sum(counts)
    found = np.zeros(size + 1)
    for split in product(*(range(n + 1) for n in counts)):
        k, n = np.array(split), np.array(counts)
        ways = np.prod([comb(int(a), int(b)) for a, b in zip(n, k, strict=True)])
        total = int(k.sum())
        logs = log_dirichlet(labelled[0] + k) + log_dirichlet(labelled[1] + n - k)
        found[total] += ways * np.exp(logs + betaln(prior + total, prior + size - total))
    return found / found.sum()


@pytest.mark.parametrize("prior", [1.0, 0.5, 3.0])
@pytest.mark.parametrize(
    ("counts", "labelled"),
    [
        ([3, 4], [[2, 5], [9, 1]]),
        ([0, 7], [[1, 0], [30, 2]]),
        ([2, 3, 1, 2], [[0, 1, 2, 4], [9, 5, 1, 0]]),
    ],
)
def test_it_is_the_sum_over_all_assignments(counts, labelled, prior) -> None:
    table = np.array(labelled, dtype=float)
    prevalences, weights = posterior(np.array([counts], dtype=float), table, prior)
    np.testing.assert_allclose(prevalences, np.arange(sum(counts) + 1) / sum(counts))
    np.testing.assert_allclose(weights[0], enumerated(counts, table, prior), rtol=1e-9)


def test_parameters_drawn_from_the_model_agree() -> None:
    """The integral over tpr, fpr and the prevalence, by their prior and importance weights."""
    labelled, votes, size = np.array([[4.0, 12.0], [50.0, 6.0]]), 9, 30
    draws = np.random.default_rng(1)
    tpr, fpr = draws.beta(13, 5, 400_000), draws.beta(7, 51, 400_000)
    share = draws.random(400_000)
    vote = share * tpr + (1 - share) * fpr
    weight = vote**votes * (1 - vote) ** (size - votes)
    positive = votes * share * tpr / vote + (size - votes) * share * (1 - tpr) / (1 - vote)
    expected = np.average(positive / size, weights=weight)
    counts = np.array([[size - votes, votes]], dtype=float)
    prevalences, weights = posterior(counts, labelled, 1.0)
    assert (prevalences * weights).sum() == pytest.approx(expected, abs=2e-3)


def test_samples_of_different_histograms_do_not_disturb_each_other() -> None:
    labelled = np.array([[3.0, 1.0, 20.0], [80.0, 4.0, 2.0]])
    counts = np.array([[10.0, 0.0, 30.0], [40.0, 0.0, 0.0], [0.0, 1.0, 39.0], [20.0, 10.0, 10.0]])
    together = posterior(counts, labelled, 1.0)[1]
    for row in range(len(counts)):
        alone = posterior(counts[row : row + 1], labelled, 1.0)[1]
        np.testing.assert_allclose(together[row], alone[0], atol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.002, 0.3, 1.0])
def test_floating_point_holds_out_for_many_items(share: float) -> None:
    """Votes that are almost always right leave no doubt, whatever the size."""
    labelled = np.array([[0.0, 5000.0], [5000.0, 0.0]])
    counts = np.array([[1000 * (1 - share), 1000 * share]])
    prevalences, weights = posterior(counts, labelled, 1.0)
    assert np.isfinite(weights).all()
    assert (prevalences * weights).sum() == pytest.approx(share, abs=2e-3)


def log_convolved(counts: list[int], labelled: np.ndarray) -> np.ndarray:
    """Logarithms all the way, one item after the other."""
    total = np.zeros(1)
    for n, a, b in zip(counts, *labelled, strict=True):
        k = np.arange(n + 1)
        own = gammaln(a + 1 + k) - gammaln(k + 1) + gammaln(b + 1 + n - k) - gammaln(n - k + 1)
        longer = np.full(len(total) + n, -np.inf)
        for i in k:
            longer[i : i + len(total)] = np.logaddexp(longer[i : i + len(total)], total + own[i])
        total = longer
    size, n_bins = sum(counts), len(counts)
    K, (positives, negatives) = np.arange(size + 1), labelled.sum(axis=1)
    total += betaln(1 + K, 1 + size - K) - gammaln(positives + n_bins + K)
    total -= gammaln(negatives + n_bins + size - K)
    found = np.exp(total - total.max())
    return found / found.sum()


@pytest.mark.parametrize(
    ("counts", "labelled"),
    [
        ([700, 320], [[2.0, 9.0], [80.0, 5.0]]),
        ([1013, 7], [[1.0, 1.0], [3.0, 2.0]]),
        ([2, 98], [[1.0, 0.0], [900.0, 2.0]]),
        ([300, 0, 500, 224], [[1.0, 0.0, 2.0, 9.0], [9000.0, 5.0, 1.0, 0.0]]),
    ],
)
def test_few_labelled_and_many_other_items(counts, labelled) -> None:
    table = np.array(labelled)
    _, weights = posterior(np.array([counts], dtype=float), table, 1.0)
    np.testing.assert_allclose(weights[0], log_convolved(counts, table), atol=1e-9)


def test_large_samples_count_as_smaller_ones_with_the_same_shares(monkeypatch) -> None:
    fitted = PQ().fit(POSTERIORS, Y)
    point, found = fitted.estimate(POSTERIORS, Samples.whole(400), 0.9)
    monkeypatch.setattr(module, "_MOST", 100)
    thinned, wider = fitted.estimate(POSTERIORS, Samples.whole(400), 0.9)
    np.testing.assert_allclose(thinned, point, atol=0.02)
    assert np.all(wider.upper - wider.lower >= found.upper - found.lower)


@pytest.mark.parametrize(("kind", "scores"), [(BayesianCC, VOTES), (PQ, POSTERIORS)])
def test_intervals_cover(kind: type, scores: Scores) -> None:
    """Samples of known prevalence, drawn from the items that were not counted."""
    fitted = kind().fit(scores.take(slice(200)), Y[:200])
    pool, truth = scores.take(slice(200, 400)), Y[200:]
    draws = np.random.default_rng(2)
    bags = []
    for share in draws.random(150):
        positive = draws.random(40) < share
        members = [np.flatnonzero(truth[:, 1] == y) for y in (0, 1)]
        bags.append([draws.choice(members[int(y)]) for y in positive])
    samples = Samples.from_indices(bags, n_items=200)
    point, found = fitted.estimate(pool, samples, 0.9)
    true = samples.mean(truth)[:, 1]
    inside = (found.lower[:, 1] <= true) & (true <= found.upper[:, 1])
    assert 0.82 < inside.mean() <= 1.0
    assert np.abs(point[:, 1] - true).mean() < 0.1
    assert (found.upper - found.lower)[:, 1].mean() < 0.6


def test_levels_are_quantiles_and_bands_are_wider() -> None:
    fitted = PQ().fit(POSTERIORS, Y)
    samples = Samples.from_indices([np.arange(30), np.arange(50, 90)], n_items=400)
    _, narrow = fitted.estimate(POSTERIORS, samples, 0.5)
    _, wide = fitted.estimate(POSTERIORS, samples, 0.95)
    assert np.all(narrow.upper - narrow.lower < wide.upper - wide.lower)
    own = np.histogram(POSTERIORS.values[:30, 0], [0.0, *fitted.edges_[0], 1.0])[0]
    shares, weights = posterior(own[np.newaxis].astype(float), fitted.counts_[0], 1.0)
    below = np.cumsum(weights[0])
    assert wide.lower[0, 0] == shares[np.argmax(below >= 0.025)]
    assert wide.upper[0, 0] == shares[np.argmax(below >= 0.975)]
    assert wide.band_lower[0, 0] == shares[np.argmax(below >= (1 - 0.95**0.5) / 2)]


def test_bands_are_intervals_that_hold_for_all_labels_together() -> None:
    samples = Samples.from_indices([np.arange(60), np.arange(30, 150)], n_items=400)
    found = PQ().fit(POSTERIORS, Y)
    _, together = found.estimate(POSTERIORS, samples, 0.81)
    # Two independent labels: each must hold with the root of the level.
    _, each = found.estimate(POSTERIORS, samples, 0.9)
    np.testing.assert_array_equal(together.band_lower, each.lower)
    np.testing.assert_array_equal(together.band_upper, each.upper)
    assert np.all(together.band_upper - together.band_lower > together.upper - together.lower)


def test_numbers_of_items_are_recovered_from_shares() -> None:
    sizes = np.arange(1, 400)
    counts = np.array([np.diff([0, size // 7, size // 3, size]) for size in sizes])
    shares = counts / sizes[:, np.newaxis]
    np.testing.assert_array_equal(module._counts(shares, sizes), counts)


def test_bins_are_quantiles_of_the_labelled_posteriors() -> None:
    fitted = PQ(5).fit(POSTERIORS, Y)
    for j in range(2):
        assert fitted.counts_[j].shape == (2, 5)
        assert fitted.counts_[j].sum(axis=1).tolist() == [Y[:, j].sum(), 400 - Y[:, j].sum()]
        np.testing.assert_allclose(fitted.counts_[j].sum(axis=0), 80, atol=1)


def test_votes_are_two_bins() -> None:
    counts = BayesianCC().fit(VOTES, Y).counts_[0]
    y, votes = Y[:, 0] == 1, VOTES.values[:, 0] == 1
    expected = [[(y & ~votes).sum(), (y & votes).sum()], [(~y & ~votes).sum(), (~y & votes).sum()]]
    np.testing.assert_array_equal(counts, expected)


def test_a_constant_label_is_counted_and_its_interval_is_everything() -> None:
    truth = Y.copy()
    truth[:, 0] = 0
    point, found = BayesianCC().fit(VOTES, truth).estimate(VOTES, Samples.whole(400), 0.9)
    assert point[0, 0] == VOTES.values[:, 0].mean()
    assert (found.lower[0, 0], found.upper[0, 0]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("aggregator", "sentence"),
    [
        (PQ(bins=1), "bins must be at least 2; got 1"),
        (PQ(prior=0), "prior must be a number, 0.01 or more; got 0"),
        (BayesianCC(prior=None), "prior must be a number, 0.01 or more; got None"),
    ],
    ids=repr,
)
def test_strange_parameters_are_named(aggregator, sentence: str) -> None:
    scores = VOTES if aggregator.consumes == "votes" else POSTERIORS
    with pytest.raises(InputError, match=sentence):
        aggregator.fit(scores, Y)
