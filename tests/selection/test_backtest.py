"""Backtests over time: nothing of the future is used, and the same items give the same."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin

from prevalens.aggregators import PCC, SLD, HDx
from prevalens.classifiers import CrossFit, PerLabel
from prevalens.scores import Scores
from prevalens.selection.backtest import (
    Candidates,
    Timeline,
    TooShortError,
    as_read,
    rivals,
    run_backtest,
)
from prevalens.uncertainty.drift import Backtest
from prevalens.validation import InputError


def make_items(n_items: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The first column is the number of the item."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_items, 2)) < [0.5, 0.3]).astype(np.int8)
    X = np.column_stack([np.arange(n_items), Y + rng.normal(size=Y.shape)])
    return X, Y


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    """Items with times of which many are equal."""
    seed, n_items, n_times = (draw(st.integers(*ends)) for ends in ((0, 999), (2, 400), (1, 60)))
    times = np.random.default_rng(seed).integers(0, n_times, n_items)
    try:
        return Timeline.of(times, n_items)
    except TooShortError:
        assume(False)
        raise


@given(timelines())
def test_items_of_one_time_are_never_on_both_sides_of_an_origin(timeline: Timeline) -> None:
    times, n_items = timeline.times, len(timeline.times)
    assert sorted(timeline.order.tolist()) == list(range(n_items))
    assert (timeline.edges[0], timeline.edges[-1]) == (0, n_items)
    assert 3 <= len(timeline.edges) <= 7
    assert np.diff(timeline.edges).min() >= 30
    for block in timeline.origins():
        past = timeline.order[: timeline.edges[block]]
        later = timeline.order[timeline.edges[block] :]
        assert times[past].max() < times[later].min()
        batches = list(timeline.batches(block))
        assert {int(row) for rows, _ in batches for row in rows} == set(later.tolist())
        assert all(len(rows) >= 10 and weight > 0 for rows, weight in batches)


@given(timelines())
def test_origins_come_from_last_to_first(timeline: Timeline) -> None:
    origins = timeline.origins()
    assert all(later > earlier for later, earlier in pairwise(origins))
    n_blocks = len(timeline.edges) - 1
    assert all(1 <= block < n_blocks for block in origins)
    # Two blocks before the first origin, where there are as many.
    assert min(origins) >= min(2, n_blocks - 1)


def test_the_order_of_the_rows_does_not_matter() -> None:
    times = np.random.default_rng(0).permutation(300)
    shuffled, plain = Timeline.of(times, 300), Timeline.of(np.arange(300), 300)
    np.testing.assert_array_equal(times[shuffled.order], plain.order)
    np.testing.assert_array_equal(shuffled.edges, plain.edges)
    assert plain.edges.tolist() == [0, 50, 100, 150, 200, 250, 300]
    assert plain.origins() == [5, 4, 3, 2]
    assert (plain.axis.last, plain.axis.span) == (299.0, 299.0)


def test_later_origins_nearer_and_larger_batches_weigh_more() -> None:
    timeline = Timeline.of(np.arange(600), 600)
    weights = {
        (block, int(rows.min()), len(rows)): weight
        for block in (4, 5)
        for rows, weight in timeline.batches(block)
    }
    assert weights[5, 500, 100] > weights[4, 400, 100] > weights[4, 500, 100]
    assert weights[4, 400, 100] == 2 * weights[4, 400, 50] == 4 * weights[4, 400, 25]


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        (np.ones(300), "all items have the same time"),
        (
            np.arange(59),
            "59 items with 59 different times leave no two periods of 30 items or more",
        ),
        ([1] * 290 + [2] * 10, "300 items with 2 different times leave no two periods"),
        ([1] * 100 + [2] * 100, "the earlier of 2 periods has a single time"),
    ],
)
def test_periods_that_are_too_short(times: Any, sentence: str) -> None:
    with pytest.raises(TooShortError, match=sentence):
        Timeline.of(times, len(times))


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        (["soon"] * 100, "time must be dates such as 2024-05-31, or numbers; got .*soon"),
        ([np.nan] + [1.0] * 99, "time is missing for item 0"),
        (np.arange(99), "time has 99 rows but X has 100"),
        (np.ones((100, 2)), "time must have one entry per item"),
    ],
)
def test_what_is_no_time(times: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as error:
        Timeline.of(times, 100)
    assert not isinstance(error.value, TooShortError)


class Spy(ClassifierMixin, BaseEstimator):
    """A classifier that notes which items it sees; its scores say little."""

    fitted: ClassVar[list[set[int]]] = []
    scored: ClassVar[list[set[int]]] = []

    def fit(self, X: Any, Y: Any) -> Spy:
        Spy.fitted.append(set(X[:, 0].astype(int).tolist()))
        self.n_labels_ = Y.shape[1]
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(self.predict_proba(X) > 0.5).astype(int)

    def predict_proba(self, X: Any) -> Any:
        Spy.scored.append(set(X[:, 0].astype(int).tolist()))
        return 1 / (1 + np.exp(0.5 - X[:, 1 : 1 + self.n_labels_]))


class SpyPCC(PCC):
    """Notes how many items it learns from."""

    n_items: ClassVar[list[int]] = []

    def _fit(self, scores: Scores, Y: Any) -> None:
        SpyPCC.n_items.append(len(Y))
        super()._fit(scores, Y)


def backtest(
    X: Any, Y: Any, times: Any, classifier: Any, *aggregators: Any, **rest: Any
) -> Backtest:
    names = tuple(type(each).__name__ for each in aggregators)
    candidates = Candidates(classifier, aggregators, names, np.ones(len(aggregators)))
    timeline = Timeline.of(times, len(Y))
    return run_backtest(candidates, CrossFit(3), timeline, X, Y, **rest)


def test_nothing_after_an_origin_is_used_before_it() -> None:
    X, Y = make_items()
    times = np.random.default_rng(1).permutation(240) // 3
    timeline = Timeline.of(times, 240)
    Spy.fitted, Spy.scored, SpyPCC.n_items = [], [], []
    found = backtest(X, Y, times, Spy(), SpyPCC())
    edges = [int(timeline.edges[block]) for block in timeline.origins()]
    assert found.n_origins == len(edges) == 4
    assert SpyPCC.n_items == edges
    # Three folds, and all items before the origin.
    for number, edge in enumerate(edges):
        past, later = set(timeline.order[:edge].tolist()), set(timeline.order[edge:].tolist())
        own = Spy.fitted[4 * number : 4 * number + 4]
        assert set.union(*own) == past
        assert past in own
        scored = Spy.scored[4 * number : 4 * number + 4]
        assert scored[-1] == later
        assert set.union(*scored[:-1]) == past


def test_a_preparation_is_told_the_rows_of_both_sides() -> None:
    X, Y = make_items()
    told: list[tuple[int, int]] = []

    def prepare(past: Any, later: Any) -> tuple[Any, Any]:
        assert past.max() < later.min()
        told.append((len(past), len(later)))
        return X[past], X[later]

    prepared = backtest(X, Y, np.arange(240), Spy(), PCC(), prepare=prepare)
    assert told == [(200, 40), (160, 80), (120, 120), (80, 160)]
    plain = backtest(X, Y, np.arange(240), Spy(), PCC())
    np.testing.assert_array_equal(prepared.ratios, plain.ratios)


def test_the_same_items_give_the_same_backtest() -> None:
    X, Y = make_items()
    first, second = (
        backtest(X[:, 1:], Y, np.arange(240), PerLabel(), PCC(), SLD()) for _ in range(2)
    )
    np.testing.assert_array_equal(first.ratios, second.ratios)
    np.testing.assert_array_equal(first.losses, second.losses)
    assert (first.variance, first.slack) == (second.variance, second.slack)
    assert first.names == ("PCC", "SLD")


def test_a_budget_ends_it_after_an_origin_and_progress_is_told() -> None:
    X, Y = make_items()
    messages: list[str] = []
    found = backtest(X, Y, np.arange(240), Spy(), PCC(), seconds=0.0, progress=messages.append)
    assert found.n_origins == 1
    assert found.notes == ("The time budget ended the backtest after 1 of 4 origins.",)
    assert messages == ["backtest over time, origin 1 of 4"]
    assert backtest(X, Y, np.arange(240), Spy(), PCC()).notes == ()


def test_groups_stay_together_before_an_origin() -> None:
    X, Y = make_items()
    groups = np.arange(240) // 4
    Spy.fitted, Spy.scored = [], []
    backtest(X, Y, np.arange(240), Spy(), PCC(), groups=groups)
    for fitted, scored in zip(Spy.fitted[:3], Spy.scored[:3], strict=True):
        assert not {row // 4 for row in fitted} & {row // 4 for row in scored}


def test_aggregators_that_read_items_need_no_classifier() -> None:
    X, Y = make_items()
    found = backtest(X[:, 1:], Y, np.arange(240), None, HDx())
    assert found.n_origins == 4
    assert found.slack == 0.0
    assert np.isfinite(found.variance)


def test_a_label_that_is_absent_before_an_origin_does_not_count() -> None:
    X, Y = make_items()
    X = np.column_stack([X, np.full(240, -9.0)])
    late = np.column_stack([Y, np.arange(240) >= 200]).astype(np.int8)
    found = backtest(X, late, np.arange(240), Spy(), PCC())
    expected = backtest(X, Y, np.arange(240), Spy(), PCC())
    assert found.variance == pytest.approx(expected.variance)
    np.testing.assert_allclose(found.ratios, expected.ratios)


def test_rivals_hold_what_was_chosen_and_know_their_losses() -> None:
    X, Y = make_items(150)
    scores = CrossFit(3).fit(PerLabel(), X[:, 1:], Y, "posteriors").scores
    chosen = SLD().fit(scores, Y)
    found = rivals(chosen, PerLabel(), scores, Y, None)
    assert chosen in found.aggregators
    assert [name.partition("(")[0] for name in found.names] == [
        "naive", "pcc", "mixture", "sld", "rq",
    ]  # fmt: skip
    assert found.drawn[0] == 1.0
    assert np.all(found.drawn[1:3] < 1.0)
    assert np.isfinite(found.drawn).all()


def test_too_few_items_for_drawn_shifts_leave_losses_unknown() -> None:
    X, Y = make_items(40)
    scores = CrossFit(3).fit(PerLabel(), X[:, 1:], Y, "posteriors").scores
    assert np.isnan(rivals(SLD(), PerLabel(), scores, Y, None).drawn).all()


def test_scores_are_handed_over_as_they_are_read() -> None:
    scores = Scores(np.full((3, 2), 0.5))
    assert as_read(PCC(), scores) is scores
    assert as_read(HDx(), scores).kind == "features"
