"""Measures: bounds, identities, and the paper's formulas written out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from prevalens import metrics
from prevalens.metrics import MEASURES, ae, concordance, kld, nae, nrae, rae, se, shift, shift_bins
from prevalens.validation import InputError

SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 6))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    shape = draw(SHAPES)
    unit = arrays(np.float64, shape, elements=st.floats(0, 1, width=32))
    return draw(unit), draw(unit)


@given(pairs(), st.integers(1, 1000))
def test_a_perfect_estimate_has_no_error(pair: tuple[np.ndarray, np.ndarray], size: int) -> None:
    true, _ = pair
    for name, measure in MEASURES.items():
        expected = 1.0 if name == "concordance" else 0.0
        np.testing.assert_allclose(measure(true, true, size), expected, atol=1e-12)


@given(pairs(), st.integers(1, 1000))
def test_bounds(pair: tuple[np.ndarray, np.ndarray], size: int) -> None:
    true, estimated = pair
    for name, measure in MEASURES.items():
        values = measure(true, estimated, size)
        assert values.shape == (len(true),)
        assert np.all(values >= -1e-12)
        if name in ("ae", "se", "nae", "nrae", "concordance"):
            assert np.all(values <= 1 + 1e-12)


@given(pairs(), st.integers(1, 1000))
def test_relabelling_positive_and_negative_changes_nothing(
    pair: tuple[np.ndarray, np.ndarray], size: int
) -> None:
    true, estimated = pair
    for name in ("ae", "rae", "se", "nae", "nrae", "kld"):
        measure = MEASURES[name]
        np.testing.assert_allclose(
            measure(true, estimated, size),
            measure(1 - true, 1 - estimated, size),
            rtol=1e-7,
            atol=1e-9,
        )


@given(pairs())
def test_absolute_error_is_a_metric(pair: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = pair
    c = np.full_like(a, 0.5)
    np.testing.assert_array_equal(ae(a, b), ae(b, a))
    assert np.all(ae(a, b) <= ae(a, c) + ae(c, b) + 1e-12)


def test_rae_as_the_paper_writes_it() -> None:
    p, q, size = 0.2, 0.5, 100
    eps = 1 / (2 * size)

    def s(x: float) -> float:
        return (eps + x) / (2 * eps + 1)

    by_hand = 0.5 * (abs(s(p) - s(q)) / s(p) + abs(s(1 - p) - s(1 - q)) / s(1 - p))
    assert rae([[p]], [[q]], size=size)[0] == pytest.approx(by_hand, rel=1e-12)


def test_one_size_per_sample() -> None:
    true, estimated = [[0.0], [0.0]], [[0.5], [0.5]]
    each = rae(true, estimated, size=[10, 1000])
    assert each[0] == pytest.approx(rae([0.0], [0.5], size=10)[0])
    assert each[1] > each[0]


def test_worst_estimates_reach_one() -> None:
    assert nae([[0.0, 1.0, 0.3]], [[1.0, 0.0, 1.0]])[0] == pytest.approx(1.0)
    assert nrae([[0.0, 1.0, 0.3]], [[1.0, 0.0, 1.0]], size=50)[0] == pytest.approx(1.0)


def test_concordance_by_hand() -> None:
    assert concordance([[0.2, 0.0, 0.4]], [[0.4, 0.0, 0.1]])[0] == pytest.approx(
        (0.5 + 1 + 0.25) / 3
    )


def test_kld_by_hand() -> None:
    eps = 1 / 20
    p, q = (0.3 + eps) / (1 + 2 * eps), (0.6 + eps) / (1 + 2 * eps)
    by_hand = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    assert kld([[0.3]], [[0.6]], size=10)[0] == pytest.approx(by_hand)


def test_squared_error() -> None:
    assert se([0.5, 0.5], [0.0, 1.0])[0] == 0.25


def test_one_vector_stands_for_all() -> None:
    true = np.array([[0.1, 0.2], [0.3, 0.4]])
    np.testing.assert_allclose(shift([0.1, 0.2], true), [0.0, 0.2])


@pytest.mark.parametrize(
    ("true", "estimated", "sentence"),
    [
        ([[0.1, 0.2]], [[0.1]], "true has 2 labels but estimated has 1"),
        (np.zeros((2, 1)), np.zeros((3, 1)), "true has 2 samples but estimated has 3"),
        ([[1.2]], [[0.1]], "true must lie between 0 and 1; got 1.2"),
    ],
)
def test_bad_pairs(true: object, estimated: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        ae(true, estimated)


@pytest.mark.parametrize(
    ("size", "sentence"), [(0, "number of items"), ([1, 2, 3], "one per sample")]
)
def test_bad_sizes(size: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        rae([[0.1]], [[0.1]], size=size)


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=50), st.integers(1, 6))
def test_shift_bins_are_equal_width(values: list[float], n_bins: int) -> None:
    bins = shift_bins(values, n_bins)
    low, high = min(values), max(values)
    assert bins.min() >= 0
    assert bins.max() < n_bins
    order = np.argsort(values)
    assert np.all(np.diff(bins[order]) >= 0)
    if high > low:
        assert bins[int(np.argmin(values))] == 0
        assert bins[int(np.argmax(values))] == n_bins - 1


def test_shift_bins_of_nothing_and_of_equals() -> None:
    assert shift_bins([]).tolist() == []
    assert shift_bins([0.3, 0.3]).tolist() == [0, 0]
    assert len(metrics.SHIFT_NAMES) == 3


@given(pairs(), st.integers(1, 1000))
def test_per_label_averages_to_the_measure(pair: tuple[np.ndarray, np.ndarray], size: int) -> None:
    true, estimated = pair
    for name, measure in MEASURES.items():
        each = metrics.per_label(name, true, estimated, size)
        assert each.shape == true.shape
        np.testing.assert_allclose(each.mean(axis=1), measure(true, estimated, size), atol=1e-12)


@pytest.mark.parametrize("metric", MEASURES)
def test_per_label_knows_the_size_of_each_sample(metric: str) -> None:
    true, estimated = np.array([[0.5, 0.0], [0.2, 0.9]]), np.array([[0.4, 0.1], [0.5, 0.8]])
    errors = metrics.per_label(metric, true, estimated, [10, 1000])
    for row, size in enumerate([10, 1000]):
        for label in range(2):
            cell = true[row, label].reshape(1, 1), estimated[row, label].reshape(1, 1)
            assert errors[row, label] == pytest.approx(MEASURES[metric](*cell, size)[0])


def test_a_shift_on_an_edge_belongs_to_the_bin_above() -> None:
    assert shift_bins([0.0, 0.25, 0.5, 0.75, 1.0], 4).tolist() == [0, 1, 2, 3, 3]


@given(pairs(), st.floats(0.05, 0.4), st.sampled_from([0.5, 0.9, 1.0]))
def test_needed_width_is_the_least_that_holds_often_enough(
    pair: tuple[np.ndarray, np.ndarray], half: float, level: float
) -> None:
    true, point = pair
    ends = np.maximum(point - half, -1), point + half
    measures = metrics.interval_measures(true, point, ends, ends, level=level)
    gap = abs(true - point)
    needed = np.quantile(gap, level, method="inverted_cdf")
    widths = np.clip(point + needed, 0, 1) - np.clip(point - needed, 0, 1)
    np.testing.assert_allclose(measures["needed_width"], widths.mean(axis=1), atol=1e-6)
    assert ((measures["band_coverage"] == 1) == (measures["coverage"] == 1)).all()


def test_intervals_of_no_width_cannot_be_stretched() -> None:
    point = np.array([[0.5, 0.5]])
    ends = (point, point)
    measures = metrics.interval_measures([[0.5, 0.4]], point, ends, ends, level=0.9)
    assert measures["coverage"].tolist() == [0.5]
    assert measures["width"].tolist() == [0.0]
    assert np.isnan(measures["needed_width"]).all()
    assert set(measures) == set(metrics.INTERVAL_METRICS)
