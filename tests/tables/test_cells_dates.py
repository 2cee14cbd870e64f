"""Dates in the usual forms, and the periods they fall into."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.errors import InputError
from prevalens.tables.cells import FREQUENCIES, date_format, parse_date, period_of

DAY = date(2024, 5, 31)


@pytest.mark.parametrize(
    "cell",
    [
        "2024-05-31",
        "20240531",
        "2024-05-31 10:20:30",
        "2024-05-31T10:20:30.123+02:00",
        "2024-05-31T10:20:30Z",
        "2024/05/31",
        "31.05.2024",
        "31.5.2024",
        "31-May-2024",
        "31 May 2024",
        "May 31, 2024",
        DAY,
        datetime(2024, 5, 31, 10, tzinfo=UTC),
        1717143630,
        1717143630000,
        "1717143630",
    ],
)
def test_usual_forms(cell: object) -> None:
    assert parse_date(cell) == DAY


@pytest.mark.parametrize("cell", ["", "soon", "2024-13-01", "31/05/2024", 17, True, "2024-02-30"])
def test_no_dates(cell: object) -> None:
    assert parse_date(cell) is None


@given(st.dates(date(1970, 1, 2), date(2100, 1, 1)), st.sampled_from(sorted(FREQUENCIES)))
def test_periods_sort_in_the_order_of_time(day: date, freq: str) -> None:
    later = date.fromordinal(day.toordinal() + 40)
    assert period_of(day, freq) <= period_of(later, freq)
    assert parse_date(day.isoformat()) == parse_date(day.strftime("%d.%m.%Y")) == day


def test_the_column_tells_day_from_month() -> None:
    assert date_format(["03/04/2024", "31/05/2024"], "when") == "%d/%m/%Y"
    assert date_format(["03/04/2024 10:00", "05/31/2024"], "when") == "%m/%d/%Y"
    assert date_format(["2024-05-31", None], "when") is None
    assert parse_date("31/05/2024 10:00", "%d/%m/%Y") == DAY
    with pytest.raises(InputError, match="day and month cannot be told apart; give the form"):
        date_format(["03/04/2024"], "when")


def test_unknown_frequency() -> None:
    with pytest.raises(InputError, match="A frequency is one of D, W, M, Q, Y; got 'H'"):
        period_of(DAY, "H")
