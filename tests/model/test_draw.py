"""Draws of items to label: random, complete, weighted right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.errors import InputError
from prevalens.model.draw import draw_items
from prevalens.samples import Samples
from prevalens.scores import Scores


def _posteriors(n_items: int, seed: int = 0) -> Scores:
    return Scores(np.random.default_rng(seed).random((n_items, 3)), "posteriors")


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(1, 60), st.booleans())
def test_every_batch_gives_its_items_once_and_they_stand_for_all(
    sizes: list[int], n: int, stratified: bool
) -> None:
    groups = np.repeat(np.arange(len(sizes)), sizes)
    samples, _ = Samples.by_group(groups)
    scores = _posteriors(len(groups)) if stratified else None
    draw = draw_items(samples, n, scores=scores, random_state=1)
    assert len(np.unique(draw.rows)) == len(draw.rows)
    for batch, size in enumerate(sizes):
        own = groups[draw.rows] == batch
        assert own.sum() == min(n, size)
        assert draw.weights[own].sum() == pytest.approx(size)
        assert draw.weights[own].min() >= 1.0 - 1e-12


def test_every_item_is_drawn_equally_often() -> None:
    counts = np.zeros(20)
    for seed in range(2000):
        counts[draw_items(Samples.whole(20), 5, random_state=seed).rows] += 1
    assert abs(counts / 2000 - 0.25).max() < 0.05


def test_a_larger_draw_begins_with_the_smaller_one_in_every_batch() -> None:
    samples, _ = Samples.by_group(np.arange(90) % 3)
    small, large = (draw_items(samples, n, random_state=4) for n in (5, 12))
    for batch in range(3):
        first = small.rows[small.rows % 3 == batch]
        second = large.rows[large.rows % 3 == batch]
        np.testing.assert_array_equal(first, second[:5])
    assert draw_items(samples, 5, random_state=5).rows.tolist() != small.rows.tolist()


def test_a_stratified_draw_looks_where_scores_are_unsure_and_weights_make_up_for_it() -> None:
    unsure = np.repeat([0.01, 0.5], [800, 200])[:, np.newaxis]
    draw = draw_items(Samples.whole(1000), 50, scores=Scores(unsure, "posteriors"))
    share = (draw.rows >= 800).mean()
    assert 0.3 < share < 0.7
    assert draw.weights[draw.rows >= 800].sum() == pytest.approx(200)
    # The order is random: a first part is a sample of all strata.
    assert 0 < (draw.rows[:15] >= 800).sum() < 15


def test_refusals() -> None:
    with pytest.raises(InputError, match="At least one item must be drawn; got n=0"):
        draw_items(Samples.whole(3), 0)
    with pytest.raises(InputError, match="needs posteriors; the method of this model reads votes"):
        draw_items(Samples.whole(3), 2, scores=Scores(np.eye(3), "votes"))
