"""What every aggregator owes its callers; a new one is appended to CASES."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import NotFittedError

from prevalens.aggregators import (
    ACC,
    CC,
    LPQ,
    PACC,
    PAV,
    PCC,
    PQ,
    RLLS,
    RQ,
    SLD,
    T50,
    Aggregator,
    BayesianCC,
    DyS,
    EDy,
    Friedman,
    HDx,
    HDy,
    KDEyHD,
    KDEyML,
    KMeansClusters,
    MaxThreshold,
    MedianSweep,
    MedianSweep2,
    MulticalibratedPCC,
    RandomClusters,
    ScenarioMixture,
    TrainingPrevalence,
    XThreshold,
)
from prevalens.batches import FINE, ScoredSamples
from prevalens.catalogue import ENTRIES, parse
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.summary import Summary
from prevalens.uncertainty import Bootstrap
from prevalens.validation import InputError

N_ITEMS, N_LABELS = 240, 4


@dataclass(frozen=True)
class Case:
    """An aggregator under contract.

    `permutes` is False for those whose estimates may move, beyond rounding, when labels change
    places (random parts that depend on the order of labels).
    """

    name: str
    make: Callable[[], Aggregator]
    permutes: bool = True


CASES = [
    Case("cc", CC),
    Case("pcc", PCC),
    Case("acc", ACC),
    Case("acc-plain", lambda: ACC(guard=None)),
    Case("pacc", PACC),
    Case("pacc-plain", lambda: PACC(guard=None)),
    Case("sld", SLD),
    Case("sld-em", lambda: SLD(method="em")),
    Case("sld-platt", lambda: SLD("platt")),
    Case("sld-vector", lambda: SLD("vector")),
    Case("sld-prior", lambda: SLD(prior=0.5)),
    Case("hdy", HDy),
    Case("hdy-8", lambda: HDy(bins=8, grid=51)),
    Case("dys", DyS),
    Case("dys-hellinger", lambda: DyS([2, 5], "hellinger")),
    Case("dys-probsymm", lambda: DyS(distance="probsymm")),
    Case("edy", EDy),
    Case("edy-plain", lambda: EDy(guard=None)),
    Case("t50", T50),
    Case("x", XThreshold),
    Case("max", lambda: MaxThreshold(guard=None)),
    Case("friedman", Friedman),
    Case("ms", MedianSweep),
    Case("ms-few", lambda: MedianSweep(7)),
    Case("ms2", MedianSweep2),
    Case("kdey", KDEyML),
    Case("kdey-hd", lambda: KDEyHD(0.2)),
    Case("rlls", RLLS),
    Case("bayescc", BayesianCC),
    Case("pq", PQ),
    Case("pav", PAV),
    Case("pav-unified", lambda: PAV(unify=0.05, prevalence=0.3)),
    Case("mcpcc", MulticalibratedPCC),
    Case("mcpcc-3", lambda: MulticalibratedPCC(3, penalty=0.5)),
    Case("naive", TrainingPrevalence),
    Case("hdx", HDx),
    Case("mixture", lambda: ScenarioMixture(0.1, 1.0)),
    Case("mixture-mean", lambda: ScenarioMixture(0.1, 1.0, point="mean")),
    Case("mixture-chosen", ScenarioMixture, permutes=False),
    Case("rq", lambda: RQ(PCC(), "ridge"), permutes=False),
    Case("rq-kdey", lambda: RQ(KDEyML(), "ridge"), permutes=False),
    Case("rq-acc", lambda: RQ(ACC(), "svr"), permutes=False),
    Case("rq-hdx", lambda: RQ(HDx(), "ridge"), permutes=False),
    Case("lpq", lambda: LPQ(PCC(), RandomClusters(2)), permutes=False),
    Case("lpq-acc", lambda: LPQ(ACC(), KMeansClusters(2)), permutes=False),
    Case("rq-dys", lambda: RQ(DyS(), "ridge"), permutes=False),
    Case("lpq-kdey", lambda: LPQ(KDEyML(), RandomClusters(2)), permutes=False),
    Case("lpq-sld", lambda: LPQ(SLD(), RandomClusters(2)), permutes=False),
]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


def make_data(kind: Kind, n_items: int = N_ITEMS, seed: int = 0) -> tuple[Scores, np.ndarray]:
    """Scores that know something of labels that know something of each other."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n_items, 1)) + rng.normal(size=(n_items, N_LABELS))
    Y = (hidden > np.linspace(-0.8, 1.2, N_LABELS)).astype(np.int8)
    Y[:2] = [[0] * N_LABELS, [1] * N_LABELS]
    features = hidden + rng.normal(size=hidden.shape)
    if kind == "features":
        return Scores(features, kind), Y
    posteriors = 1.0 / (1.0 + np.exp(-features))
    return Scores(posteriors if kind == "posteriors" else (posteriors > 0.5) * 1.0, kind), Y


def make_samples(n_items: int = N_ITEMS, seed: int = 1) -> Samples:
    """Bags of different sizes, one of a single item, one with an item repeated."""
    rng = np.random.default_rng(seed)
    bags = [rng.choice(n_items, size) for size in (40, 1, 17, 40, 93)]
    return Samples.from_indices([*bags, [3, 3, 3, 5]], n_items=n_items)


@cache
def fitted(case: Case) -> tuple[Aggregator, Scores]:
    """Trained once for all tests that only look at it, and scores of other items."""
    aggregator = case.make()
    scores, Y = make_data(aggregator.consumes)
    return aggregator.fit(scores, Y), make_data(aggregator.consumes, seed=2)[0]


def assert_same(left: np.ndarray, right: np.ndarray, atol: float = 1e-9) -> None:
    np.testing.assert_allclose(left, right, rtol=0, atol=atol)


def with_columns(scores: Scores, columns: Any) -> Scores:
    """The same items seen for some labels; features belong to all labels."""
    return scores if scores.kind == "features" else scores.labels(columns)


def test_estimates_are_shares_of_the_right_shape(case: Case) -> None:
    aggregator, scores = fitted(case)
    samples = make_samples()
    estimates = aggregator.aggregate(scores, samples)
    assert estimates.shape == (len(samples), N_LABELS)
    assert estimates.dtype == np.float64
    assert np.all((estimates >= 0) & (estimates <= 1))


@settings(max_examples=max(20, settings().max_examples // 5))
@given(seed=st.integers(0, 2**32 - 1), sizes=st.lists(st.integers(1, 30), min_size=1, max_size=5))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_estimates_are_shares_whatever_the_scores(case: Case, seed: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    aggregator = case.make()
    values = np.round(rng.random((25, 3)) ** rng.integers(1, 9), rng.integers(0, 4))
    if aggregator.consumes == "votes":
        values = np.round(values)
    scores = Scores(values, aggregator.consumes)
    aggregator.fit(scores, rng.random((25, 3)) < rng.random(3))
    samples = Samples.from_indices([rng.integers(0, 25, size) for size in sizes], n_items=25)
    estimates = aggregator.aggregate(scores, samples)
    assert np.all((estimates >= 0) & (estimates <= 1))


def test_samples_together_equal_samples_one_by_one(case: Case) -> None:
    aggregator, scores = fitted(case)
    samples = make_samples()
    together = aggregator.aggregate(scores, samples)
    for i in range(len(samples)):
        alone = aggregator.aggregate(scores, samples[i : i + 1])
        assert_same(together[i], alone[0], atol=1e-12)


def test_order_of_items_in_a_sample_does_not_matter(case: Case) -> None:
    aggregator, scores = fitted(case)
    samples = make_samples()
    turned = Samples.from_indices([bag[::-1] for bag in samples], n_items=N_ITEMS)
    assert_same(aggregator.aggregate(scores, samples), aggregator.aggregate(scores, turned))


def test_order_of_the_pool_does_not_matter(case: Case) -> None:
    aggregator, scores = fitted(case)
    samples = make_samples()
    order = np.random.default_rng(3).permutation(N_ITEMS)
    place = np.argsort(order)
    moved = Samples.from_indices([place[bag] for bag in samples], n_items=N_ITEMS)
    assert_same(
        aggregator.aggregate(scores, samples), aggregator.aggregate(scores.take(order), moved)
    )


def test_labels_may_change_places(case: Case) -> None:
    if not case.permutes:
        pytest.skip("has random parts that depend on the order of labels")
    aggregator = case.make()
    scores, Y = make_data(aggregator.consumes)
    samples, order = make_samples(), np.array([2, 0, 3, 1])
    straight = aggregator.fit(scores, Y).aggregate(scores, samples)
    moved = with_columns(scores, order)
    turned = case.make().fit(moved, Y[:, order]).aggregate(moved, samples)
    assert_same(straight[:, order], turned)


def test_labels_alone_equal_labels_together_unless_joint(case: Case) -> None:
    aggregator = case.make()
    if aggregator.joint:
        pytest.skip("labels inform each other")
    scores, Y = make_data(aggregator.consumes)
    samples = make_samples()
    together = aggregator.fit(scores, Y).aggregate(scores, samples)
    for j in range(N_LABELS):
        one = with_columns(scores, [j])
        alone = case.make().fit(one, Y[:, [j]]).aggregate(one, samples)
        assert_same(together[:, [j]], alone, atol=1e-12)


def test_constant_labels_give_shares(case: Case) -> None:
    aggregator = case.make()
    scores, Y = make_data(aggregator.consumes)
    Y[:, 0], Y[:, 1] = 0, 1
    estimates = aggregator.fit(scores, Y).aggregate(scores, make_samples())
    assert np.all((estimates >= 0) & (estimates <= 1))


def test_constant_scores_give_shares(case: Case) -> None:
    aggregator = case.make()
    scores, Y = make_data(aggregator.consumes)
    values = np.zeros_like(scores.values)
    values[:, 1] = 1.0
    scores = Scores(values, scores.kind)
    estimates = aggregator.fit(scores, Y).aggregate(scores, make_samples())
    assert np.all((estimates >= 0) & (estimates <= 1))


def test_one_item_is_a_sample(case: Case) -> None:
    aggregator, scores = fitted(case)
    every = Samples.from_indices(np.arange(N_ITEMS).reshape(-1, 1), n_items=N_ITEMS)
    estimates = aggregator.aggregate(scores, every)
    assert estimates.shape == (N_ITEMS, N_LABELS)
    assert np.all((estimates >= 0) & (estimates <= 1))


def test_no_samples_give_no_estimates(case: Case) -> None:
    aggregator, scores = fitted(case)
    none = Samples(np.empty(0, dtype=int), [0], n_items=N_ITEMS)
    assert aggregator.aggregate(scores, none).shape == (0, N_LABELS)


def test_float32_scores_mean_the_same_numbers(case: Case) -> None:
    aggregator = case.make()
    scores, Y = make_data(aggregator.consumes)
    single = Scores(scores.values.astype(np.float32), scores.kind)
    double = Scores(single.values.astype(np.float64), scores.kind)
    samples = make_samples()
    first = case.make().fit(single, Y).aggregate(single, samples)
    second = case.make().fit(double, Y).aggregate(double, samples)
    if case.name.startswith("lpq"):
        # scikit-learn's classifier inside trains in the precision of the features.
        np.testing.assert_allclose(first, second, atol=0.01)
    else:
        assert_same(first, second)


def test_scores_may_live_on_disk(case: Case, tmp_path: Any) -> None:
    aggregator, scores = fitted(case)
    np.save(tmp_path / "scores.npy", scores.values)
    mapped = Scores(np.load(tmp_path / "scores.npy", mmap_mode="r"), scores.kind)
    samples = make_samples()
    assert_same(
        aggregator.aggregate(mapped, samples), aggregator.aggregate(scores, samples), atol=1e-12
    )


def test_nothing_handed_in_is_changed(case: Case) -> None:
    aggregator = case.make()
    scores, Y = make_data(aggregator.consumes)
    samples = make_samples()
    before = scores.values.copy(), Y.copy(), samples.flat.copy()
    aggregator.fit(scores, Y).aggregate(scores, samples)
    for old, new in zip(before, (scores.values, Y, samples.flat), strict=True):
        np.testing.assert_array_equal(old, new)


def test_the_constructor_only_remembers(case: Case) -> None:
    aggregator = case.make()
    copy = clone(aggregator)
    assert type(copy) is type(aggregator)
    assert repr(copy.get_params()) == repr(aggregator.get_params())
    assert not [name for name in vars(copy) if name.endswith("_")]


def test_fitting_again_forgets(case: Case) -> None:
    aggregator = case.make()
    scores, Y = make_data(aggregator.consumes)
    samples = make_samples()
    once = aggregator.fit(scores, Y).aggregate(scores, samples)
    fewer = with_columns(scores, [0, 1])
    aggregator.fit(fewer, Y[:, :2])
    assert aggregator.aggregate(fewer, samples).shape == (len(samples), 2)
    again = aggregator.fit(scores, Y).aggregate(scores, samples)
    assert_same(once, again, atol=1e-12)


def test_a_fitted_aggregator_survives_pickling(case: Case) -> None:
    aggregator, scores = fitted(case)
    samples = make_samples()
    copy = pickle.loads(pickle.dumps(aggregator))
    np.testing.assert_array_equal(
        aggregator.aggregate(scores, samples), copy.aggregate(scores, samples)
    )


def test_what_fit_learns_is_declared(case: Case) -> None:
    aggregator = case.make()
    if aggregator.consumes == "features":
        pytest.skip("no classifier whose scores could be held out")
    scores, Y = make_data(aggregator.consumes)
    samples = make_samples()
    other = Scores(Y.astype(float), aggregator.consumes)
    usual = case.make().fit(scores, Y).aggregate(scores, samples)
    blind = case.make().fit(other, Y).aggregate(scores, samples)
    assert np.allclose(usual, blind, rtol=0, atol=1e-12) == (not aggregator.needs_labelled_scores)


@pytest.mark.parametrize("constant", [False, True])
def test_no_interval_claims_certainty(case: Case, constant: bool) -> None:
    aggregator, scores = fitted(case)
    if constant:
        scores = Scores(np.zeros_like(scores.values), scores.kind)
    samples = make_samples()
    point, found = aggregator.estimate(scores, samples, 0.9)
    assert (found is not None) == aggregator.has_intervals
    if found is None:
        prepared = Bootstrap(replicas=2, resamples=5).fit(
            aggregator, *make_data(aggregator.consumes)
        )
        _, found = prepared.estimate(aggregator, ScoredSamples(scores, samples), 0.9)
    np.testing.assert_array_equal(point, aggregator.aggregate(scores, samples))
    assert np.all(found.upper - found.lower > 1e-9)
    assert np.all(found.band_upper - found.band_lower > 1e-9)
    assert np.all((found.lower <= point) & (point <= found.upper))
    assert np.all((found.band_lower <= found.lower) & (found.upper <= found.band_upper))


def test_sums_over_parts_estimate_as_the_items_do(case: Case) -> None:
    aggregator, scores = fitted(case)
    statistic = aggregator.statistic
    if statistic is None:
        pytest.skip("reads the items themselves")
    n_items, rng = scores.n_items, np.random.default_rng(3)
    batch, part = rng.integers(0, 3, n_items), rng.integers(0, 4, n_items)
    summaries = []
    for number in rng.permutation(4):
        rows = np.flatnonzero(part == number)
        samples, names = Samples.by_group(batch[rows])
        named = [str(name) for name in names]
        summaries.append(Summary.of(scores.take(rows), samples, named, [statistic], fingerprint=""))
    whole = sum(summaries)
    whole = whole[np.argsort(whole.names)]
    expected = aggregator.aggregate(scores, Samples.by_group(batch)[0])
    # SLD reads histograms whose bins are coarser than what it computes.
    tolerance = 5e-4 if statistic is FINE else 1e-9
    np.testing.assert_allclose(aggregator.read(whole), expected, rtol=0, atol=tolerance)


def test_without_a_level_there_are_no_intervals(case: Case) -> None:
    aggregator, scores = fitted(case)
    point, found = aggregator.estimate(scores, make_samples())
    assert found is None
    np.testing.assert_array_equal(point, aggregator.aggregate(scores, make_samples()))


def test_settings_fitted_together_equal_settings_fitted_alone(case: Case) -> None:
    aggregator = case.make()
    scores, Y = make_data(aggregator.consumes)
    samples = make_samples()
    parameters = aggregator.get_params(deep=False)
    settings = [{}, dict(list(parameters.items())[:1])]
    for setting, found in zip(settings, aggregator.fit_settings(settings, scores, Y), strict=True):
        alone = case.make().set_params(**setting).fit(scores, Y)
        assert_same(found.aggregate(scores, samples), alone.aggregate(scores, samples))


def test_an_unfitted_aggregator_says_so(case: Case) -> None:
    aggregator = case.make()
    scores, _ = make_data(aggregator.consumes)
    with pytest.raises(NotFittedError):
        aggregator.aggregate(scores, make_samples())


def test_the_wrong_kind_of_scores_is_named(case: Case) -> None:
    aggregator, _ = fitted(case)
    wrong: Kind = "posteriors" if aggregator.consumes == "votes" else "votes"
    scores, Y = make_data(wrong)
    sentence = f"{type(aggregator).__name__} needs {aggregator.consumes}; it was given {wrong}"
    with pytest.raises(InputError, match=sentence):
        aggregator.aggregate(scores, make_samples())
    with pytest.raises(InputError, match=sentence):
        case.make().fit(scores, Y)


def test_the_wrong_number_of_columns_is_named(case: Case) -> None:
    aggregator, scores = fitted(case)
    if scores.kind == "features":
        pytest.skip("features have columns of their own")
    with pytest.raises(InputError, match=f"knows {N_LABELS} labels, but the scores have 2 col"):
        aggregator.aggregate(scores.labels([0, 1]), make_samples())


def test_scores_of_another_pool_are_refused(case: Case) -> None:
    aggregator, scores = fitted(case)
    with pytest.raises(InputError, match="has 100 rows but the samples' pool has 240"):
        aggregator.aggregate(scores.take(slice(100)), make_samples())


def test_scores_and_truth_of_different_length_are_refused(case: Case) -> None:
    aggregator = case.make()
    scores, Y = make_data(aggregator.consumes)
    with pytest.raises(InputError, match="has 240 rows but Y has 200"):
        aggregator.fit(scores, Y[:200])


def test_empty_scores_are_refused(case: Case) -> None:
    aggregator, scores = fitted(case)
    nothing = scores.take(slice(0))
    with pytest.raises(InputError, match="no items"):
        aggregator.aggregate(nothing, make_samples())
    with pytest.raises(InputError, match="no items"):
        case.make().fit(nothing, np.empty((0, N_LABELS), dtype=np.int8))


def test_usual_data_cause_no_warning(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        aggregator, scores = fitted.__wrapped__(case)
        estimates = aggregator.aggregate(scores, make_samples())
    assert np.isfinite(estimates).all()


#: Every aggregator of the catalogue, as a base of others.
BASES = [code for code, entry in ENTRIES.items() if entry.role == "aggregator"]


class Unchanged(RegressorMixin, BaseEstimator):
    """A regressor that predicts what it is given."""

    def fit(self, X: Any, y: Any) -> Unchanged:
        self.fitted_ = True
        return self

    def predict(self, X: Any) -> Any:
        return X


@pytest.mark.parametrize("code", BASES)
def test_rq_takes_every_aggregator(code: str) -> None:
    base: Aggregator = ENTRIES[code].make()
    text = f"rq({code},ridge)" if base.consumes == "features" else f"lr+rq({code},ridge)"
    method = parse(text)
    assert method.name == text
    scores, Y = make_data(base.consumes)
    samples = make_samples()
    corrected = method.aggregator.fit(scores, Y).aggregate(scores, samples)
    assert corrected.shape == (len(samples), N_LABELS)
    assert np.all((corrected >= 0) & (corrected <= 1))
    plain = base.fit(scores, Y).aggregate(scores, samples)
    same = RQ(clone(base), Unchanged()).fit(scores, Y).aggregate(scores, samples)
    np.testing.assert_allclose(same, plain, rtol=0, atol=1e-12)
    # The base and its parameters survive the name.
    assert type(method.aggregator.base) is type(base)


@pytest.mark.parametrize("code", BASES)
def test_lpq_takes_every_aggregator(code: str) -> None:
    text = f"lpq({code},random(2))"
    method = parse(text)
    assert parse(method.name).name == method.name
    scores, Y = make_data("features")
    estimates = method.aggregator.fit(scores, Y).aggregate(scores, make_samples())
    assert np.all((estimates >= 0) & (estimates <= 1))
    # It knows something of the labels it was fitted to.
    whole = method.aggregator.aggregate(scores, Samples.whole(N_ITEMS))
    assert np.abs(whole - Y.mean(axis=0)).max() < 0.2
