"""HDy against the loop it replaces, and where its answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prevalens.aggregators.counting import PCC
from prevalens.aggregators.matching import HDy
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError

#: Numbers of bins of the original paper.
PAPER_BINS = range(10, 111, 10)


def labelled(seed: int, n_items: int = 120) -> tuple[Scores, np.ndarray]:
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_items, 2)) < [0.3, 0.6]).astype(np.int8)
    Y[:2] = [[0, 0], [1, 1]]
    return Scores(np.round(rng.beta(1 + 2 * Y, 3 - 2 * Y), 3)), Y


def slow(
    posteriors: np.ndarray, y: np.ndarray, sample: np.ndarray, bins: list[int], grid: int
) -> float:
    """Search one prevalence after the other, one histogram after the other."""

    def histogram(values: np.ndarray, b: int) -> np.ndarray:
        return np.histogram(values, bins=b, range=(0, 1))[0] / len(values)

    best = []
    for b in bins:
        positives, negatives = histogram(posteriors[y == 1], b), histogram(posteriors[y == 0], b)
        target = histogram(sample, b)
        distances = [
            np.sum((np.sqrt(p * positives + (1 - p) * negatives) - np.sqrt(target)) ** 2)
            for p in np.linspace(0, 1, grid)
        ]
        # The loop takes the first of equal distances; equal up to rounding is equal here.
        distances = np.asarray(distances)
        best.append(
            np.linspace(0, 1, grid)[np.flatnonzero(distances <= distances.min() + 1e-12)[0]]
        )
    return float(np.median(best))


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_hdy_is_the_loop(seed: int) -> None:
    scores, Y = labelled(seed)
    rng = np.random.default_rng(seed)
    bags = [rng.integers(0, 120, rng.integers(5, 60)) for _ in range(4)]
    hdy = HDy(bins=[10, 30, 70], grid=101).fit(scores, Y)
    estimates = hdy.aggregate(scores, Samples.from_indices(bags, n_items=120))
    for i, bag in enumerate(bags):
        for j in range(2):
            column = scores.values[:, j]
            assert estimates[i, j] == pytest.approx(
                slow(column, Y[:, j], column[bag], [10, 30, 70], 101)
            )


def test_the_labelled_pool_gets_its_own_prevalence() -> None:
    scores, Y = labelled(1, n_items=200)
    estimates = HDy(PAPER_BINS, grid=201).fit(scores, Y).aggregate(scores, Samples.whole(200))
    np.testing.assert_allclose(estimates[0], Y.mean(axis=0), atol=0.5 / 200)


def test_all_positives_and_all_negatives_are_recognised() -> None:
    scores, Y = labelled(2)
    bags = [np.flatnonzero(Y[:, 0]), np.flatnonzero(1 - Y[:, 0])]
    estimates = (
        HDy(PAPER_BINS).fit(scores, Y).aggregate(scores, Samples.from_indices(bags, n_items=120))
    )
    assert estimates[:, 0].tolist() == [1.0, 0.0]


def test_edges_belong_to_the_bins_of_numpy() -> None:
    values = np.array([0.0, 0.1, 0.3, 0.7, 1.0, 0.6, 0.2])
    Y = np.array([[0], [0], [1], [1], [1], [0], [1]])
    hdy = HDy(bins=10).fit(Scores(values[:, np.newaxis]), Y)
    expected = np.histogram(values[Y[:, 0] == 1], bins=10, range=(0, 1))[0] / 4
    np.testing.assert_allclose(hdy.positives_[0][0], expected)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, Y = labelled(3)
    samples = Samples.from_indices(np.random.default_rng(3).integers(0, 120, (9, 20)), n_items=120)
    hdy = HDy(PAPER_BINS).fit(scores, Y)
    once = hdy.aggregate(scores, samples)
    monkeypatch.setattr("prevalens.aggregators.binned._BLOCK", 45)
    np.testing.assert_array_equal(hdy.aggregate(scores, samples), once)


def test_a_constant_label_is_counted() -> None:
    scores, Y = labelled(4)
    Y[:, 0] = 0
    whole = Samples.whole(120)
    estimates = HDy(PAPER_BINS).fit(scores, Y).aggregate(scores, whole)
    assert estimates[0, 0] == PCC().fit(scores, Y).aggregate(scores, whole)[0, 0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"bins": 1}, "bins must be at least 2; got 1"),
        ({"bins": [10, 2.5]}, "bins must be a whole number; got 2.5"),
        ({"bins": []}, "bins must name at least one number of bins"),
        ({"grid": 1}, "grid must be at least 2; got 1"),
    ],
)
def test_strange_parameters_are_named(options: dict, sentence: str) -> None:
    scores, Y = labelled(5)
    with pytest.raises(InputError, match=sentence):
        HDy(**options).fit(scores, Y)


def test_a_posterior_on_an_edge_belongs_to_the_bin_above() -> None:
    Y = np.array([[1], [1], [0], [0]])
    hdy = HDy(bins=2).fit(Scores([[0.5], [0.5], [0.25], [0.25]], kind="posteriors"), Y)
    np.testing.assert_array_equal(hdy.positives_[0], [[0, 1]])
    np.testing.assert_array_equal(hdy.negatives_[0], [[1, 0]])
    asked = Scores([[0.5], [0.1]], kind="posteriors")
    each = Samples.from_indices([[0], [1]], n_items=2)
    np.testing.assert_array_equal(hdy.aggregate(asked, each), [[1], [0]])


def test_equal_histograms_of_one_set_count_as_a_tie() -> None:
    """With two bins all scores are in one; ties go to the smallest prevalence."""
    scores, Y = Scores([[0.1], [0.2], [0.3], [0.4]]), [[0], [0], [1], [1]]
    whole = Samples.whole(4)
    fine = HDy(20).fit(scores, Y).aggregate(scores, whole)[0, 0]
    both = HDy([2, 20]).fit(scores, Y).aggregate(scores, whole)[0, 0]
    assert (fine, both) == (0.5, 0.25)
