"""Windows and periods: the order of time, nothing left to chance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.protocols import ChronologicalWindows, Periods
from prevalens.validation import InputError


def ones(n_items: int) -> np.ndarray:
    return np.ones((n_items, 1))


class TestWindows:
    @given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 25), st.integers(0, 99))
    def test_are_consecutive_in_time(self, n_items: int, size: int, step: int, seed: int) -> None:
        size = min(size, n_items)
        times = np.random.default_rng(seed).permutation(n_items)
        protocol = ChronologicalWindows(times, size=size, step=step)
        samples = protocol.draw(ones(n_items))
        starts = range(0, n_items - size + 1, step)
        assert [times[bag].tolist() for bag in samples] == [
            list(range(start, start + size)) for start in starts
        ]
        assert protocol.count(ones(n_items)) == len(samples)

    def test_do_not_overlap_unless_asked_to(self) -> None:
        samples = ChronologicalWindows(size=3).draw(ones(10))
        assert samples.indices.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]

    def test_items_of_one_time_keep_their_order(self) -> None:
        samples = ChronologicalWindows([1, 0, 1, 0, 1], size=5).draw(ones(5))
        assert samples.indices.tolist() == [[1, 3, 0, 2, 4]]

    def test_dates_and_texts_sort_too(self) -> None:
        dates = np.array(["2020-03-01", "2020-01-01", "2020-02-01"], dtype="datetime64[D]")
        for times in (dates, dates.astype(str), dates.astype(object)):
            assert ChronologicalWindows(times, size=1).draw(ones(3)).flat.tolist() == [1, 2, 0]


class TestPeriods:
    @given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(1, 4))
    def test_hold_all_items_of_a_time(self, times: list[int], min_size: int) -> None:
        kept = [time for time in sorted(set(times)) if times.count(time) >= min_size]
        protocol = Periods(times, min_size=min_size)
        if not kept:
            with pytest.raises(InputError, match="No period has"):
                protocol.draw(ones(len(times)))
            return
        samples = protocol.draw(ones(len(times)))
        assert [bag.tolist() for bag in samples] == [
            [row for row, time in enumerate(times) if time == period] for period in kept
        ]
        assert protocol.count(ones(len(times))) == len(samples)

    def test_dates_are_cut_to_a_unit(self) -> None:
        days = np.arange("2019-12-30", "2020-03-02", dtype="datetime64[D]")
        by_month = Periods(days, unit="M").draw(ones(len(days)))
        assert by_month.sizes.tolist() == [2, 31, 29, 1]
        by_year = Periods(days.astype(str), "Y").draw(ones(len(days)))
        assert by_year.sizes.tolist() == [2, 61]

    def test_what_is_no_date_cannot_be_cut(self) -> None:
        for times, unit in ((["soon", "later"], "M"), (["2020-01-01", "2020-01-02"], "moon")):
            with pytest.raises(InputError, match=f"cannot be cut to periods of {unit!r}"):
                Periods(times, unit=unit).draw(ones(2))


@pytest.mark.parametrize(
    ("protocol", "sentence"),
    [
        (ChronologicalWindows(size=4), "A sample of 4 items cannot be drawn"),
        (ChronologicalWindows(size=1, step=0), "step must be at least 1"),
        (ChronologicalWindows([1, 2], size=1), "times has 2 rows but Y has 3"),
        (ChronologicalWindows([[1, 2, 3]], size=1), "one entry per item; got shape"),
        (ChronologicalWindows([1.0, np.nan, 2.0], size=1), "times is missing for item 1"),
        (
            Periods(np.array(["2020", "2021", "NaT"], dtype="datetime64[Y]")),
            "times is missing for item 2",
        ),
        (Periods(["2020", None, "2021"]), "times is missing for item 1"),
        (ChronologicalWindows(np.array([1, "b", 2], dtype=object), size=1), "put in order"),
        (Periods([1, 2, 2], min_size=3), "No period has 3 items or more; the largest has 2"),
        (Periods([1, 2, 2], min_size=0), "min_size must be at least 1"),
    ],
)
def test_refusals_are_one_sentence(protocol: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        protocol.draw(ones(3))
