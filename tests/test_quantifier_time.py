"""Times of items: intervals hold under drift, and cost little where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator

from prevalens import Quantifier, Samples
from prevalens import quantifier as module
from prevalens.aggregators import PACC, PCC, HDx
from prevalens.classifiers import CrossFit, HoldOut, PerLabel
from prevalens.estimate import PrevalenceEstimate
from prevalens.selection import automatic
from prevalens.uncertainty import Bootstrap
from prevalens.uncertainty.drift import DEFAULT_DRIFT, mean_times
from prevalens.validation import InputError, PrevalensWarning

QUICK = Bootstrap(replicas=2, resamples=5)


def drifting(
    n_items: int, seed: int, *, slope: float, first: float = 0.0, last: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Items, labels and times; the means of the items given their labels move over time."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(first, last, n_items))
    common = rng.normal(size=(n_items, 1))
    Y = (rng.normal(size=(n_items, 3)) + common > [0.3, 0.9, 1.2]).astype(np.int8)
    directions = np.random.default_rng(0).normal(size=(3, 6))
    phases = np.random.default_rng(1).uniform(0, 2 * np.pi, 3)
    moves = slope * np.sin(7 * times[:, np.newaxis] + phases)
    return (Y + moves) @ directions + rng.normal(size=(n_items, 6)), Y, times


def covered(estimate: PrevalenceEstimate, truth: np.ndarray) -> float:
    return float(np.mean((estimate.lower <= truth) & (truth <= estimate.upper)))


def fit(X: Any, Y: Any, time: Any = None, **options: Any) -> Quantifier:
    return Quantifier(PerLabel(), PCC(), uncertainty=QUICK, **options).fit(X, Y, time=time)


X, Y, TIMES = drifting(600, 0, slope=0.3)
LATER, Y_LATER, TIMES_LATER = drifting(3000, 5, slope=0.3, first=1.0, last=1.4)
BATCHES = Samples.from_indices(np.array_split(np.arange(3000), 10), n_items=3000)


@pytest.fixture(scope="module")
def timed() -> Quantifier:
    return fit(X, Y, TIMES)


@pytest.mark.filterwarnings("ignore:Batches .* differ")
def test_under_drift_intervals_with_times_hold_and_others_do_not(timed: Quantifier) -> None:
    truth = BATCHES.mean(Y_LATER)
    known = timed.quantify_many(LATER, BATCHES, interval=0.9, time=TIMES_LATER)
    unknown = fit(X, Y).quantify_many(LATER, BATCHES, interval=0.9)
    assert 0.8 <= covered(known, truth) <= 1.0
    assert covered(unknown, truth) < covered(known, truth) - 0.2
    np.testing.assert_array_equal(known, unknown)


def test_without_drift_times_cost_little_width() -> None:
    items, labels, times = drifting(600, 0, slope=0.0)
    new, _, later = drifting(500, 5, slope=0.0, first=1.0, last=1.2)
    plain = fit(items, labels).quantify(new, interval=0.9)
    timed = fit(items, labels, times).quantify(new, interval=0.9, time=later)
    np.testing.assert_array_equal(timed, plain)
    assert np.all(timed.upper - timed.lower < 1.5 * (plain.upper - plain.lower))


@pytest.mark.filterwarnings("ignore:The batch differs")
def test_farther_ahead_intervals_are_wider_and_unknown_times_are_the_usual(
    timed: Quantifier,
) -> None:
    near, far = (timed.quantify(LATER, interval=0.9, time=time) for time in (1.01, 9.0))
    assert np.all((far.lower <= near.lower) & (near.upper <= far.upper))
    assert np.all(far.upper - far.lower > near.upper - near.lower)
    unknown = timed.quantify(LATER, interval=0.9)
    axis, reference = timed.backtest_.axis, timed.backtest_.reference
    at = axis.last + reference * axis.span
    known = timed.quantify(LATER, interval=0.9, time=at)
    np.testing.assert_allclose(unknown.upper, known.upper, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.* differ")
def test_a_batch_is_as_old_as_its_items_on_average(timed: Quantifier) -> None:
    each = timed.quantify(LATER, interval=0.9, time=TIMES_LATER)
    mean = timed.quantify(LATER, interval=0.9, time=TIMES_LATER.mean())
    np.testing.assert_allclose(each.upper, mean.upper, rtol=1e-9)
    scores = timed.score(LATER)
    many = timed.quantify_many(LATER, BATCHES, interval=0.9, time=TIMES_LATER)
    own = timed.aggregate(scores, BATCHES, 0.9, time=mean_times(BATCHES, TIMES_LATER))
    np.testing.assert_array_equal(many.lower, own.lower)


def as_dates(times: np.ndarray) -> np.ndarray:
    return np.datetime64("2020-01-01") + (1000 * times).astype("timedelta64[D]")


@pytest.mark.filterwarnings("ignore:.* differ")
@pytest.mark.parametrize("form", [np.asarray, pd.Series, lambda dates: dates.astype(str)])
def test_dates_in_any_form_are_the_same_dates(form: Any) -> None:
    quantifier = fit(X, Y, form(as_dates(TIMES)))
    assert quantifier.backtest_.axis.dates
    found = quantifier.quantify(LATER, interval=0.9, time=form(as_dates(TIMES_LATER)))
    day = mean_times(Samples.whole(3000), as_dates(TIMES_LATER))[0]
    alone = quantifier.quantify(LATER, interval=0.9, time=day)
    np.testing.assert_allclose(found.upper, alone.upper, rtol=1e-6)
    assert "months ahead by" in quantifier.backtest_.describe()
    with pytest.raises(InputError, match="fitted with dates as times; the batch has numbers"):
        quantifier.quantify(LATER, interval=0.9, time=1.2)


def test_refusals(timed: Quantifier) -> None:
    with pytest.raises(InputError, match="fitted with numbers as times; the batch has dates"):
        timed.quantify(LATER, time="2024-05-31")
    with pytest.raises(InputError, match=r"fitted without times.*`time="):
        fit(X, Y).quantify(LATER, time=1.2)
    with pytest.raises(InputError, match="time has 3 rows but X has 3000"):
        timed.quantify_many(LATER, BATCHES, time=[1.0, 1.1, 1.2])
    with pytest.raises(InputError, match="time has 5 rows but X has 600"):
        fit(X, Y, TIMES[:5])
    with pytest.raises(InputError, match="time is missing for item 7"):
        fit(X, Y, np.where(np.arange(600) == 7, np.nan, TIMES))
    with pytest.raises(InputError, match="drift must be a number"):
        fit(X, Y, drift=-1.0)


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        (np.ones(600), "all items have the same time"),
        (np.arange(600) // 580, "600 items with 2 different times leave no two periods"),
    ],
)
def test_times_that_tell_nothing_are_left_out_with_a_warning(times: Any, sentence: str) -> None:
    with pytest.warns(
        PrevalensWarning, match=f"not used: {sentence}.*allow for drift as without times"
    ):
        quantifier = fit(X, Y, times)
    assert quantifier.backtest_ is None
    assert quantifier.drift_ == DEFAULT_DRIFT


class StopError(Exception):
    """The work is no longer wanted."""


def test_an_interrupted_backtest_leaves_the_quantifier_unfitted() -> None:
    def stop(message: str) -> None:
        if message == "backtest over time, origin 2 of 4":
            raise StopError

    quantifier = Quantifier(PerLabel(), PCC(), uncertainty=None)
    with pytest.raises(StopError):
        quantifier.fit(X, Y, time=TIMES, progress=stop)
    assert vars(quantifier) == quantifier.get_params(deep=False)


def test_the_same_items_and_times_give_the_same_answers(timed: Quantifier) -> None:
    order = np.random.default_rng(0).permutation(600)
    again = fit(X, Y, TIMES)
    new, at = LATER[:200], TIMES_LATER[:200]
    first, second = (each.quantify(new, interval=0.9, time=at) for each in (timed, again))
    np.testing.assert_array_equal(first.lower, second.lower)
    np.testing.assert_array_equal(first.band_upper, second.band_upper)
    # The backtest itself does not know in which order the rows were given, except for its folds.
    shuffled = fit(X[order], Y[order], TIMES[order]).backtest_
    assert shuffled.reference == pytest.approx(again.backtest_.reference)
    assert shuffled.variance == pytest.approx(again.backtest_.variance, rel=0.2)


def test_methods_that_read_items_have_backtests_too() -> None:
    quantifier = Quantifier(None, HDx(), uncertainty=Bootstrap(replicas=2, resamples=2))
    quantifier.fit(X[:200], Y[:200], time=TIMES[:200])
    found = quantifier.quantify(LATER[:200], interval=0.9, time=TIMES_LATER[:200])
    assert quantifier.backtest_.names == ("hdx",)
    assert quantifier.misfit_ is None
    assert np.all(found.upper > found.lower)


@pytest.mark.parametrize("scheme", [HoldOut(0.5), CrossFit(3)], ids=repr)
def test_every_scheme_has_backtests(scheme: Any) -> None:
    quantifier = Quantifier(PerLabel(), PACC(), uncertainty=QUICK, scheme=scheme)
    quantifier.fit(X[:300], Y[:300], time=TIMES[:300])
    assert quantifier.backtest_.names == ("pacc",)
    assert quantifier.backtest_.n_origins == 4


@pytest.mark.parametrize(
    ("scheme", "n_folds"), [(None, 3), (CrossFit(random_state=7), 3), (CrossFit(2), 2)]
)
def test_a_backtest_has_at_most_three_folds_with_any_seed(
    scheme: Any, n_folds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    run = module.run_backtest
    monkeypatch.setattr(
        module, "run_backtest", lambda *args, **rest: given.append(args[1]) or run(*args, **rest)
    )
    fit(X[:300], Y[:300], TIMES[:300], scheme=scheme)
    assert [own.n_folds for own in given] == [n_folds]
    assert given[0].random_state == (0 if scheme is None else scheme.random_state)


def test_a_fitted_classifier_stays_as_it_is_in_a_backtest() -> None:
    frozen = FrozenEstimator(PerLabel().fit(X[:100], Y[:100]))
    quantifier = Quantifier(frozen, PCC(), uncertainty=QUICK).fit(X, Y, time=TIMES)
    assert quantifier.backtest_.n_origins == 4


def test_an_allowance_for_drift_that_no_batch_size_removes() -> None:
    items, labels, _ = drifting(600, 0, slope=0.0)
    new = np.tile(drifting(500, 5, slope=0.0)[0], (40, 1))
    found = {}
    for drift in (0.0, None, 0.1):
        quantifier = fit(items, labels, drift=drift)
        estimate = quantifier.quantify(new, interval=0.9)
        found[quantifier.drift_] = estimate.upper - estimate.lower
    assert list(found) == [0.0, DEFAULT_DRIFT, 0.1]
    assert np.all(found[0.0] < found[DEFAULT_DRIFT])
    assert np.all(found[DEFAULT_DRIFT] < found[0.1])
    assert np.all(found[0.1] > 0.08)


def test_drift_between_groups_is_measured_unless_given() -> None:
    rng = np.random.default_rng(0)
    items, labels, _ = drifting(600, 0, slope=0.0)
    groups = np.arange(600) // 30
    moved = items + 1.5 * rng.normal(size=(20, 6))[groups]

    def drift(X: Any, **options: Any) -> float:
        quantifier = Quantifier(PerLabel(), PCC(), uncertainty=QUICK, **options)
        return float(quantifier.fit(X, labels, groups=groups).drift_)

    assert drift(moved) > max(drift(items), 2 * DEFAULT_DRIFT)
    assert drift(moved, drift=0.01) == 0.01


@pytest.fixture(scope="module")
def automatic_pair() -> tuple[Quantifier, Quantifier, np.ndarray]:
    """The automatic quantifier without times, and with times that say nothing."""
    items, labels, _ = drifting(240, 0, slope=0.0)
    new = drifting(400, 5, slope=0.0)[0]
    times = np.random.default_rng(3).random(240)

    def quick(*args: Any, **options: Any) -> Any:
        return automatic.choose(*args, **{**options, "time_budget": 0.01})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prevalens.quantifier.choose", quick)
        plain = Quantifier().fit(items, labels[:, :2])
        timed = Quantifier().fit(items, labels[:, :2], time=times)
    return plain, timed, new


def test_random_times_leave_the_automatic_estimates_close(automatic_pair: tuple) -> None:
    plain, timed, new = automatic_pair
    before, after = plain.quantify(new), timed.quantify(new, time=1.2)
    np.testing.assert_allclose(after, before, atol=0.04)
    assert np.all((after >= 0) & (after <= 1))


def test_the_automatic_estimate_is_the_weighted_median_of_candidates(
    automatic_pair: tuple,
) -> None:
    _, timed, new = automatic_pair
    assert len(timed.candidates_) == len(timed.backtest_.names) == 5
    assert timed.aggregator_ in timed.candidates_
    estimate = timed.quantify(new, time=1.2)
    with_interval = timed.quantify(new, interval=0.9, time=1.2)
    np.testing.assert_array_equal(estimate, with_interval)
    assert np.all((with_interval.lower <= estimate) & (estimate <= with_interval.upper))
    assert np.all(with_interval.band_lower <= with_interval.lower)
    assert with_interval.p_value > 0.01


def test_a_named_method_is_not_shrunk_and_the_automatic_one_is(automatic_pair: tuple) -> None:
    plain, _, new = automatic_pair
    strange = 4.0 * new
    with pytest.warns(PrevalensWarning, match="The batch differs"):
        cautious = plain.quantify(strange, interval=0.9)
    # With intervals or without, the estimate is the same.
    np.testing.assert_array_equal(cautious, plain.quantify(strange))
    scores = plain.score(strange)
    bold = plain.aggregator_.aggregate(scores, Samples.whole(scores.n_items))[0]
    move = np.abs(bold - plain.prevalence_) - np.abs(cautious.point - plain.prevalence_)
    assert np.all(move >= 0)
    assert np.any(move > 0)
    named = fit(*drifting(240, 0, slope=0.0)[:2])
    with pytest.warns(PrevalensWarning, match="The batch differs"):
        warned = named.quantify(strange, interval=0.9)
    np.testing.assert_array_equal(warned, named.quantify(strange))
