"""ML-APP: the paper's algorithm, to the letter."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens import datasets
from prevalens.protocols import MLAPP
from prevalens.samples import Samples
from prevalens.validation import InputError


def labels(seed: int, n_items: int = 40, n_labels: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_items, n_labels)) < rng.random(n_labels)).astype(np.int8)
    Y[:, 0] = 0  # a label that nobody has
    return Y


def cells(Y: np.ndarray, size: int, grid: int) -> list[tuple[int, Fraction, int]]:
    """The algorithm in loops: label, grid point and positives of each point that is reachable."""
    cells = []
    for label in range(Y.shape[1]):
        positives = int(Y[:, label].sum())
        for i in range(grid):
            g = Fraction(i, grid - 1)
            wanted = -(-size * i // (grid - 1))
            if positives >= wanted and len(Y) - positives >= size - wanted:
                cells.append((label, g, wanted))
    return cells


def steered_positives(samples: Samples, Y: np.ndarray) -> np.ndarray:
    of_samples = np.arange(len(samples))
    return np.rint(samples.mean(Y)[of_samples, samples.target] * samples.sizes)


def no_index_twice(samples: Samples) -> bool:
    return bool(np.all(np.diff(np.sort(samples.indices, axis=1), axis=1) > 0))


@given(st.integers(0, 50), st.integers(1, 40), st.integers(2, 30), st.integers(1, 3))
def test_is_the_algorithm_of_the_paper(seed: int, size: int, grid: int, repeats: int) -> None:
    Y = labels(seed)
    expected = [cell for cell in cells(Y, size, grid) for _ in range(repeats)]
    protocol = MLAPP(size=size, grid=grid, repeats=repeats)
    if not expected:
        with pytest.raises(InputError, match="No label of the pool can be steered"):
            protocol.draw(Y, seed)
        return
    samples = protocol.draw(Y, seed)
    assert samples.target.tolist() == [label for label, _, _ in expected]
    assert samples.prevalence.tolist() == [float(g) for _, g, _ in expected]
    assert steered_positives(samples, Y).tolist() == [wanted for _, _, wanted in expected]
    assert no_index_twice(samples)
    assert protocol.count(Y) == len(samples) == len(expected)


@given(st.integers(0, 50), st.integers(1, 40), st.integers(2, 30))
def test_every_point_is_either_reachable_or_reported(seed: int, size: int, grid: int) -> None:
    Y = labels(seed)
    protocol = MLAPP(size=size, grid=grid)
    expected = {(label, g) for label, g, _ in cells(Y, size, grid)}
    reported = {(missing.label, missing.prevalence) for missing in protocol.unreachable(Y)}
    assert expected.isdisjoint(reported)
    assert len(expected) + len(reported) == Y.shape[1] * grid
    if expected:
        assert protocol.reachable(Y).sum() == len(expected)


def test_the_report_says_what_is_lacking() -> None:
    Y = np.array([[1], [1], [1], [0]])
    missing = MLAPP(size=4, grid=5).unreachable(Y)
    assert [str(point) for point in missing] == [
        "label 0 at 0: 4 negatives needed, 1 in the pool",
        "label 0 at 0.25: 3 negatives needed, 1 in the pool",
        "label 0 at 0.5: 2 negatives needed, 1 in the pool",
        "label 0 at 1: 4 positives needed, 3 in the pool",
    ]


def test_a_minimum_of_positives_leaves_rare_labels_unsteered() -> None:
    Y = np.zeros((50, 2), dtype=int)
    Y[:5, 0], Y[:4, 1] = 1, 1
    assert set(MLAPP(size=10, grid=11, min_positives=5).draw(Y, 0).target) == {0}
    assert set(MLAPP(size=10, grid=11).draw(Y, 0).target) == {0, 1}
    report = MLAPP(size=10, grid=11, min_positives=5).unreachable(Y)
    rare = [missing for missing in report if missing.label == 1]
    assert len(rare) == 11
    assert (rare[0].lacks, rare[0].needed, rare[0].available) == ("positives", 5, 4)


@given(st.integers(0, 50), st.integers(0, 3000))
def test_repeats_for_is_the_smallest_that_gives_more(seed: int, more_than: int) -> None:
    Y = labels(seed)
    protocol = MLAPP(size=10, grid=11)
    m = protocol.repeats_for(Y, more_than)
    assert MLAPP(size=10, grid=11, repeats=m).count(Y) > more_than
    assert m == 1 or MLAPP(size=10, grid=11, repeats=m - 1).count(Y) <= more_than
    asked = MLAPP(size=10, grid=11, more_than=more_than)
    assert asked.count(Y) == MLAPP(size=10, grid=11, repeats=m).count(Y)


def test_repeats_are_the_least_that_more_than_may_ask_for() -> None:
    Y = labels(1)
    per_repeat = MLAPP(size=10, grid=11).count(Y)
    assert MLAPP(size=10, grid=11, repeats=7, more_than=per_repeat).count(Y) == 7 * per_repeat


@given(st.integers(0, 50), st.integers(1, 200))
def test_a_cap_is_shared_out_evenly(seed: int, max_samples: int) -> None:
    Y = labels(seed)
    free = MLAPP(size=10, grid=11, repeats=3)
    capped = MLAPP(size=10, grid=11, repeats=3, max_samples=max_samples)
    samples = capped.draw(Y, seed)
    assert len(samples) == capped.count(Y) == min(max_samples, free.count(Y))
    _, times = np.unique(
        np.column_stack([samples.target, samples.prevalence]), axis=0, return_counts=True
    )
    assert np.ptp(times) <= 1
    assert no_index_twice(samples)


def test_a_grid_of_floats_is_the_grid_they_stand_for() -> None:
    Y = labels(3, n_items=300)
    exact, floats = MLAPP(), MLAPP(grid=np.linspace(0, 1, 101))
    left, right = exact.draw(Y, 0), floats.draw(Y, 0)
    np.testing.assert_array_equal(left.indices, right.indices)
    np.testing.assert_array_equal(left.prevalence, right.prevalence)


def test_positives_and_negatives_are_drawn_uniformly() -> None:
    Y = np.zeros((30, 1), dtype=int)
    Y[:10] = 1
    samples = MLAPP(size=5, grid=[0.4], repeats=20_000).draw(Y, 0)
    drawn = np.bincount(samples.flat, minlength=30) / 20_000
    assert np.all(np.abs(drawn[:10] - 2 / 10) < 5 * np.sqrt(0.2 * 0.8 / 20_000))
    assert np.all(np.abs(drawn[10:] - 3 / 20) < 5 * np.sqrt(0.15 * 0.85 / 20_000))


@pytest.mark.parametrize(
    ("protocol", "sentence"),
    [
        (MLAPP(size=100), "A sample of 100 items cannot be drawn without replacement"),
        (MLAPP(size=3, repeats=0), "repeats must be at least 1"),
        (MLAPP(size=3, more_than=-1), "more_than must be at least 0"),
        (MLAPP(size=3, max_samples=0), "max_samples must be at least 1"),
        (MLAPP(size=3, min_positives=-1), "min_positives must be at least 0"),
        (MLAPP(size=3, min_positives=99), "No label of the pool can be steered"),
        (MLAPP(size=3, grid=0), "grid must be at least 2"),
    ],
)
def test_refusals_are_one_sentence(protocol: MLAPP, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        protocol.draw(np.eye(10), 0)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "repeats", "per_repeat"),
    [
        ("emotions", 25, 405),
        ("scene", 17, 606),
        ("yeast", 8, 1290),
        ("medical", 15, 682),
        ("bibtex", 2, 5893),
        ("corel5k", 5, 2010),
    ],
)
def test_more_than_ten_thousand_samples_as_in_the_paper(
    name: str, repeats: int, per_repeat: int
) -> None:
    Y = datasets.load(name).test.Y
    protocol = MLAPP(size=100, grid=101)
    assert protocol.count(Y) == per_repeat
    assert protocol.repeats_for(Y, more_than=10_000) == repeats
    samples = MLAPP(size=100, grid=101, more_than=10_000).draw(Y, 0)
    assert len(samples) == repeats * per_repeat > 10_000
    np.testing.assert_array_equal(
        steered_positives(samples, Y), np.ceil(np.round(100 * samples.prevalence, 9))
    )
    assert no_index_twice(samples)
