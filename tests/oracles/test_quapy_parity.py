"""Label by label, the binary aggregators are QuaPy's, where it has them."""

from __future__ import annotations

import warnings
from types import ModuleType

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin

from prevalens.aggregators.adjusted import ACC, PACC
from prevalens.aggregators.counting import CC, PCC
from prevalens.aggregators.energy import EDy
from prevalens.aggregators.kernel_density import KDEyHD, KDEyML
from prevalens.aggregators.label_shift import RLLS
from prevalens.aggregators.matching import DyS, HDy
from prevalens.aggregators.sld import SLD
from prevalens.aggregators.thresholds import MaxThreshold, MedianSweep, MedianSweep2, XThreshold
from prevalens.samples import Samples
from prevalens.scores import Scores

PREVALENCES = [0.04, 0.2, 0.5, 0.85]
N_LABELS = len(PREVALENCES)


@pytest.fixture(scope="module")
def quapy() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("quapy.method.aggregative")


class Echo(ClassifierMixin, BaseEstimator):
    """A binary classifier whose one feature is its posterior."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Echo:
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.column_stack([1 - X[:, 0], X[:, 0]])

    def predict(self, X: np.ndarray) -> np.ndarray:
        return (X[:, 0] > 0.5).astype(int)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray, Samples]:
    """Posteriors and truth of labelled items, posteriors of a pool, samples with moved labels."""
    rng = np.random.default_rng(0)

    def draw(n_items: int) -> tuple[np.ndarray, np.ndarray]:
        Y = (rng.random((n_items, N_LABELS)) < PREVALENCES).astype(np.int8)
        return expit(1.5 * rng.normal(size=Y.shape) + 3 * Y - 2), Y

    posteriors, Y = draw(500)
    pool, truth = draw(600)
    bags = []
    for share in np.linspace(0.1, 0.9, 5):
        label = rng.integers(1, N_LABELS)
        with_label, without = np.flatnonzero(truth[:, label]), np.flatnonzero(1 - truth[:, label])
        many = int(80 * share)
        bags.append([*rng.choice(with_label, many), *rng.choice(without, 80 - many)])
    return posteriors, Y, pool, Samples.from_indices(bags, n_items=600)


def theirs(make, data) -> np.ndarray:
    """One QuaPy quantifier per label, one call per sample."""
    posteriors, Y, pool, samples = data
    estimates = np.empty((len(samples), N_LABELS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for j in range(N_LABELS):
            echo = Echo().fit(posteriors, Y)
            quantifier = make(echo).fit(posteriors[:, [j]], Y[:, j])
            for i, bag in enumerate(samples):
                estimates[i, j] = quantifier.predict(pool[bag][:, [j]])[1]
    return estimates


def ours(aggregator, data) -> np.ndarray:
    posteriors, Y, pool, samples = data
    if aggregator.consumes == "votes":
        posteriors, pool = posteriors > 0.5, pool > 0.5
    kind = aggregator.consumes
    return aggregator.fit(Scores(posteriors, kind), Y).aggregate(Scores(pool, kind), samples)


@pytest.mark.parametrize("aggregator", [CC(), PCC()], ids=str)
def test_counting(quapy: ModuleType, data, aggregator) -> None:
    rival = getattr(quapy, type(aggregator).__name__)
    expected = theirs(lambda echo: rival(echo, fit_classifier=False), data)
    np.testing.assert_allclose(ours(aggregator, data), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("aggregator", [ACC(), PACC(), ACC(guard=None), PACC(guard=None)], ids=str)
def test_adjusting_with_the_exact_solver(quapy: ModuleType, data, aggregator) -> None:
    rival = getattr(quapy, type(aggregator).__name__)
    expected = theirs(
        lambda echo: rival(echo, fit_classifier=False, val_split=None, solver="exact-cc"), data
    )
    np.testing.assert_allclose(ours(aggregator, data), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("aggregator", [ACC(), PACC()], ids=str)
def test_adjusting_with_the_default_solver(quapy: ModuleType, data, aggregator) -> None:
    """QuaPy minimises numerically, to about this precision, where the classes separate."""
    rival = getattr(quapy, type(aggregator).__name__)
    expected = theirs(lambda echo: rival(echo, fit_classifier=False, val_split=None), data)
    np.testing.assert_allclose(ours(aggregator, data), expected, rtol=0, atol=1e-3)


def test_sld_with_the_same_rule_for_stopping(quapy: ModuleType, data) -> None:
    expected = theirs(lambda echo: quapy.EMQ(echo, fit_classifier=False), data)
    np.testing.assert_allclose(ours(SLD(method="em"), data), expected, rtol=0, atol=1e-9)


def test_the_exact_sld_is_where_emq_goes(
    quapy: ModuleType, data, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, Y, pool, samples = data
    monkeypatch.setattr(quapy.EMQ, "MAX_ITER", 100_000)
    estimates = ours(SLD(), data)
    for j in range(N_LABELS):
        prior = np.array([1 - Y[:, j].mean(), Y[:, j].mean()])
        for i, bag in enumerate(samples):
            both = np.column_stack([1 - pool[bag, j], pool[bag, j]])
            limit, _ = quapy.EMQ.EM(prior, both, epsilon=1e-12)
            assert estimates[i, j] == pytest.approx(limit[1], abs=1e-6)


def test_hdy_on_the_same_grid(quapy: ModuleType, data) -> None:
    posteriors, Y, pool, samples = data
    few = posteriors, Y, pool, samples[:2]
    expected = theirs(lambda echo: quapy.HDy(echo, fit_classifier=False, val_split=None), few)
    found = ours(HDy(range(10, 111, 10), grid=100), few)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("aggregator", [ACC(guard=None), PACC(guard=None), RLLS(alpha=0)], ids=str)
@pytest.mark.parametrize("solver", ["exact-cc", "minimize"])
def test_bbse_is_adjusted_counting(quapy: ModuleType, data, aggregator, solver) -> None:
    rival = quapy.BBSEhard if aggregator.consumes == "votes" else quapy.BBSEsoft
    expected = theirs(
        lambda echo: rival(echo, fit_classifier=False, val_split=None, solver=solver), data
    )
    precision = 1e-9 if solver == "exact-cc" else 2e-3
    np.testing.assert_allclose(ours(aggregator, data), expected, rtol=0, atol=precision)


@pytest.mark.parametrize(
    ("aggregator", "name"),
    [
        (MaxThreshold(guard=None), "MAX"),
        (XThreshold(guard=None), "X"),
        (MedianSweep(1000), "MS"),
        (MedianSweep2(1000), "MS2"),
    ],
)
def test_thresholds(quapy: ModuleType, data, aggregator, name) -> None:
    rival = getattr(quapy, name)

    class Votes(rival):  # type: ignore[misc, valid-type]
        """QuaPy's threshold methods read decision scores; here these are the posteriors."""

        def classify(self, X):
            return X[:, 0]

        def classifier_fit_predict(self, X, y):
            return X[:, 0], y

    expected = theirs(lambda echo: Votes(echo, fit_classifier=False, val_split=None), data)
    np.testing.assert_allclose(ours(aggregator, data), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("distance", "name"), [("hellinger", "HD"), ("topsoe", "topsoe")])
def test_dys_to_the_precision_of_its_search(quapy: ModuleType, data, distance, name) -> None:
    def rival(echo):
        return quapy.DyS(echo, fit_classifier=False, val_split=None, n_bins=8, divergence=name)

    found = ours(DyS(8, distance), data)
    np.testing.assert_allclose(found, theirs(rival, data), rtol=0, atol=2e-5)


def test_kdey_is_the_most_likely_mixture(quapy: ModuleType, data) -> None:
    """QuaPy stops where the likelihood hardly rises; both likelihoods are compared."""
    posteriors, Y, pool, samples = data
    found = ours(KDEyML(), data)
    expected = theirs(lambda echo: quapy.KDEyML(echo, fit_classifier=False, val_split=None), data)
    assert np.median(np.abs(found - expected)) < 1e-3
    for j in range(N_LABELS):
        both = np.column_stack([1 - posteriors[:, j], posteriors[:, j]])
        densities = []
        for y in (1, 0):
            centres = both[Y[:, j] == y]
            target = np.column_stack([1 - pool[:, j], pool[:, j]])
            squares = ((target[:, np.newaxis] - centres) ** 2).sum(axis=2)
            densities.append(np.exp(-squares / (2 * 0.1**2)).mean(axis=1))
        for i, bag in enumerate(samples):
            f, g = densities[0][bag], densities[1][bag]
            ours_, theirs_ = (
                np.log(q * f + (1 - q) * g).sum() for q in (found[i, j], expected[i, j])
            )
            assert ours_ > theirs_ - 1e-4


def test_kdey_hd_up_to_its_random_points(quapy: ModuleType, data) -> None:
    posteriors, Y, pool, samples = data
    few = posteriors, Y, pool, samples[:2]
    expected = theirs(
        lambda echo: quapy.KDEyHD(echo, fit_classifier=False, val_split=None, random_state=0), few
    )
    np.testing.assert_allclose(ours(KDEyHD(), few), expected, rtol=0, atol=0.03)


def test_edy(quapy: ModuleType, data) -> None:
    pytest.importorskip("quadprog")
    expected = theirs(lambda echo: quapy.EDy(echo, fit_classifier=False, val_split=None), data)
    np.testing.assert_allclose(ours(EDy(guard=None), data), expected, rtol=0, atol=1e-9)
