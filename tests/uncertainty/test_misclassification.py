"""Counts corrected by sensitivity and specificity: oracles, identities and coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.errors import InputError
from prevalens.uncertainty import Rate, adjust_prevalence

shares = st.floats(0.0, 1.0)


def test_published_examples_of_epi_prev() -> None:
    """The manual of epiR: brucellosis 5.1 (0 to 13), Helicobacter pylori 0 (0 to 1.3)."""
    found = adjust_prevalence([23, 6], [150, 151], [0.96, 0.964], [0.89, 0.927])
    assert found.point == pytest.approx([0.051, 0.0], abs=5e-4)
    assert found.lower.tolist() == [0.0, 0.0]
    assert found.upper == pytest.approx([0.13, 0.013], abs=2e-3)


def test_an_exact_test_changes_nothing_but_adds_wilsons_interval() -> None:
    found = adjust_prevalence([10], [100], 1.0, 1.0)
    assert found.point == pytest.approx([0.1])
    # Wilson 1927, by hand.
    assert (found.lower[0], found.upper[0]) == pytest.approx((0.0552, 0.1744), abs=1e-4)


@given(p=shares, se=st.floats(0.55, 1.0), sp=st.floats(0.55, 1.0))
def test_the_expected_count_gives_the_prevalence(p: float, se: float, sp: float) -> None:
    n = 10**9
    expected = n * (p * se + (1 - p) * (1 - sp))
    assert adjust_prevalence([expected], [n], se, sp).point[0] == pytest.approx(p, abs=1e-6)


@given(
    k=st.integers(0, 50),
    se=st.integers(26, 50),
    sp=st.integers(26, 50),
    level=st.floats(0.5, 0.99),
)
def test_intervals_hold_the_estimate_and_stay_within_bounds(
    k: int, se: int, sp: int, level: float
) -> None:
    rates = Rate(se / 50, 50.0), Rate(sp / 50, 50.0)
    found = adjust_prevalence([k], [50], *rates, level=level)
    assert 0 <= found.lower[0] <= found.point[0] <= found.upper[0] <= 1


def test_rates_of_small_studies_widen_the_interval_until_they_are_exact() -> None:
    widths = []
    for n in (50.0, 500.0, 5e4, 5e8):
        found = adjust_prevalence([60], [200], Rate(0.9, n), Rate(0.9, n))
        widths.append(float(found.upper[0] - found.lower[0]))
    assert widths == sorted(widths, reverse=True)
    exact = adjust_prevalence([60], [200], 0.9, 0.9)
    assert widths[-1] == pytest.approx(float(exact.upper[0] - exact.lower[0]), rel=0.02)


@pytest.mark.parametrize("p", [0.02, 0.3])
def test_coverage_with_rates_from_small_studies(p: float) -> None:
    rng = np.random.default_rng(0)
    n, m, se, sp, runs = 200, 80, 0.85, 0.95, 1500
    positives = rng.binomial(n, p * se + (1 - p) * (1 - sp), runs)
    right = [[Rate(k / m, m) for k in rng.binomial(m, rate, runs)] for rate in (se, sp)]
    found = adjust_prevalence(positives, np.full(runs, n), *right, level=0.9)
    covered = np.mean((found.lower <= p) & (p <= found.upper))
    assert 0.88 <= covered <= 0.99
    exact = adjust_prevalence(positives, np.full(runs, n), se, sp, level=0.9)
    assert 0.87 <= np.mean((exact.lower <= p) & (p <= exact.upper)) <= 0.95


@pytest.mark.parametrize(
    ("text", "value", "n"),
    [("170/200", 0.85, 200), ("85 %", 0.85, np.inf), ("0,85", 0.85, np.inf), (1, 1.0, np.inf)],
)
def test_rates_are_read(text: object, value: float, n: float) -> None:
    assert Rate.parse(text) == Rate(value, n)


@given(right=st.integers(30, 100))
def test_a_wilson_interval_gives_back_the_size_of_its_study(right: int) -> None:
    found = adjust_prevalence([right], [100], 1.0, 1.0)
    text = f"{right / 100} ({found.lower[0]:.12f} to {found.upper[0]:.12f})"
    assert Rate.parse(text).n == pytest.approx(100, rel=1e-4)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("85", "between 0 and 1"),
        ("300/200", "part of the second"),
        ("0/0", "part of the second"),
        ("0.95 (0.80-0.90)", "not within its interval"),
        ("0.5 (0-1)", "nothing is known"),
        ("high", "is written 0.85"),
        ("", "is written 0.85"),
    ],
)
def test_bad_rates_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Rate.parse(text)


def test_tests_that_say_nothing_and_impossible_counts_are_refused() -> None:
    with pytest.raises(InputError, match="their sum must exceed 1"):
        adjust_prevalence([5], [10], 0.4, 0.6)
    with pytest.raises(InputError, match=r"got 11 of 10 \(count 2\)"):
        adjust_prevalence([5, 11], [10, 10], 0.9, 0.9)
    with pytest.raises(InputError, match="2 counts but 3 values of sensitivity"):
        adjust_prevalence([5, 6], [10, 10], [0.9] * 3, 0.9)


def test_estimates_that_were_cut_off_say_why() -> None:
    found = adjust_prevalence([8, 1, 150, 60], [151, 151, 151, 151], 0.9, 0.927)
    remarks = [found.remark(i, 0.9, 0.927) for i in range(4)]
    assert "fewer than the 7.3 %" in remarks[0]
    assert "does not hold" not in remarks[0]
    assert "the specificity does not hold for these items" in remarks[1]
    assert "more than the 90.0 %" in remarks[2]
    assert "the sensitivity does not hold" in remarks[2]
    assert remarks[3] == ""
