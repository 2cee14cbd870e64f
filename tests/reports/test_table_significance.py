from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from prevalens.reports.table import DAGGER_BELOW, WORSE_BELOW, SeedSamples, mark, p_value, pair


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("n", [8, 30, 500])
@pytest.mark.parametrize("gap", [0.0, 0.001, 0.005, 0.05])
def test_p_values_are_those_of_scipy(rng: np.random.Generator, n: int, gap: float) -> None:
    best = rng.random(n) * 0.1
    other = best + gap + rng.normal(0, 0.02, n)
    assert p_value(best, other) == wilcoxon(best, other).pvalue


def test_p_value_does_not_depend_on_the_side(rng: np.random.Generator) -> None:
    left, right = rng.random((2, 100))
    assert p_value(left, right) == pytest.approx(p_value(right, left))


def test_equal_errors_are_not_different() -> None:
    errors = np.linspace(0, 1, 10)
    assert p_value(errors, errors) == 1.0
    assert mark(p_value(errors, errors.copy())) == "ddagger"


def test_few_samples_with_ties_do_not_warn() -> None:
    best, other = np.array([0.1, 0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3, 0.3])
    assert 0.05 < p_value(best, other) <= 1


def test_single_precision_is_compared_in_double() -> None:
    best = np.linspace(0, 0.1, 50, dtype=np.float32)
    assert p_value(best, best + np.float32(0.01)) < WORSE_BELOW


@given(st.floats(0, 1))
def test_marks_follow_the_two_thresholds(p: float) -> None:
    expected = "" if p <= WORSE_BELOW else "dagger" if p < DAGGER_BELOW else "ddagger"
    assert mark(p) == expected


def test_marks_at_the_thresholds_of_the_paper() -> None:
    assert [mark(p) for p in (0.001, 0.0011, 0.0499, 0.05)] == ["", "dagger", "dagger", "ddagger"]
    assert mark(None) == "untested"


def part(shift: list[float], errors: list[float]) -> SeedSamples:
    return SeedSamples(np.array(shift), np.array(errors))


def test_pairs_are_of_common_seeds_in_order() -> None:
    best = {0: part([0.1, 0.2], [1, 2]), 1: part([0.3], [3])}
    other = {1: part([0.3], [30]), 0: part([0.1, 0.2], [10, 20]), 2: part([0.5], [50])}
    paired = pair(best, other)
    assert paired is not None
    assert paired[0].tolist() == [1, 2, 3]
    assert paired[1].tolist() == [10, 20, 30]


@pytest.mark.parametrize(
    "other",
    [
        {1: part([0.1, 0.2], [1, 2])},
        {0: part([0.1], [1])},
        {0: part([0.1, 0.21], [1, 2])},
        {},
    ],
)
def test_other_samples_are_no_pairs(other: dict[int, SeedSamples]) -> None:
    assert pair({0: part([0.1, 0.2], [1, 2])}, other) is None


def test_rounded_shifts_are_the_same_samples() -> None:
    shift = np.linspace(0, 0.3, 9)
    rounded = shift.astype(np.float32).astype(np.float64)
    assert pair({0: SeedSamples(shift, shift)}, {0: SeedSamples(rounded, shift)}) is not None
