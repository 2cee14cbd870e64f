"""Dates in ISO and the usual forms, and the periods they fall into."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any

from prevalens.errors import InputError

__all__ = ["FREQUENCIES", "date_format", "parse_date", "period_of"]

#: Forms that can be read in one way only.
_FORMS = (
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d.%m.%y",
    "%d-%b-%Y",
    "%d %b %Y",
    "%d %B %Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%Y-%m",
    "%b %Y",
    "%B %Y",
)
#: Forms in which day and month may be mistaken for each other.
_DAY_FIRST, _MONTH_FIRST = "%d/%m/%Y", "%m/%d/%Y"
_TIME = re.compile(r"[ T]+\d{1,2}:\d\d(:\d\d([.,]\d+)?)?( ?[AaPp][Mm])?$")
_EPOCH = re.compile(r"\d{10}(\d{3})?")
#: Epochs before 1980 or after 2200 are numbers, not dates.
_EPOCHS = (315_532_800, 7_258_118_400)


def parse_date(cell: Any, form: str | None = None) -> date | None:
    """The date in a cell, or None if there is none.

    Parameters
    ----------
    cell : date, datetime, str or number
        ISO, or one of the usual forms that can be read in one way only; numbers are seconds or
        milliseconds since 1970.
    form : str, optional
        As `datetime.strptime` has it, for other forms.

    Examples
    --------
    >>> parse_date("2024-05-31T10:00:00Z"), parse_date("31.05.2024"), parse_date("31/05/2024")
    (datetime.date(2024, 5, 31), datetime.date(2024, 5, 31), None)
    >>> parse_date("31/05/2024", "%d/%m/%Y")
    datetime.date(2024, 5, 31)
    """
    if isinstance(cell, datetime):
        return cell.date()
    if isinstance(cell, date):
        return cell
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        return _from_epoch(float(cell))
    text = str(cell).strip()
    if form is not None:
        return _by_form(text, form) or _by_form(_TIME.sub("", text), form)
    return _iso(text) or next(filter(None, (_by_form(text, one) for one in _FORMS)), None)


def _iso(text: str) -> date | None:
    if _EPOCH.fullmatch(text):
        return _from_epoch(float(text))
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
        pass
    return None


def _from_epoch(number: float) -> date | None:
    seconds = number / 1000 if number >= 100 * _EPOCHS[0] else number
    if not _EPOCHS[0] <= seconds < _EPOCHS[1]:
        return None
    return datetime.fromtimestamp(seconds, UTC).date()


def _by_form(text: str, form: str) -> date | None:
    try:
        return datetime.strptime(text, form).date()
    except ValueError:
        return None


def date_format(cells: Sequence[Any], column: str) -> str | None:
    """The form to read a column's dates in: None if each tells by itself.

    Dates such as 03/04/2024 are read by the others of the column: a 31/05/2024 among them shows
    that the day comes first.
    """
    texts = [_TIME.sub("", cell.strip()) for cell in cells if isinstance(cell, str)]
    slashed = [text for text in texts if re.fullmatch(r"\d{1,2}/\d{1,2}/\d{4}", text)]
    if not slashed:
        return None
    fitting = [
        form for form in (_DAY_FIRST, _MONTH_FIRST) if all(_by_form(text, form) for text in slashed)
    ]
    if len(fitting) == 2 and any(text.split("/")[0] != text.split("/")[1] for text in slashed):
        raise InputError(
            f"In {slashed[0]!r} of the column {column!r} day and month cannot be told apart; give "
            "the form of the dates, %d/%m/%Y or %m/%d/%Y."
        )
    return fitting[0] if fitting else None


def _week(day: date) -> str:
    year, week, _ = day.isocalendar()
    return f"{year}-W{week:02d}"


#: How days make periods; the names sort in the order of time.
FREQUENCIES: dict[str, Callable[[date], str]] = {
    "D": lambda day: day.isoformat(),
    "W": _week,
    "M": lambda day: f"{day.year:04d}-{day.month:02d}",
    "Q": lambda day: f"{day.year:04d}-Q{(day.month + 2) // 3}",
    "Y": lambda day: f"{day.year:04d}",
}


def period_of(day: date, freq: str) -> str:
    """The name of the period a day falls into: day, ISO week, month, quarter or year.

    Examples
    --------
    >>> [period_of(date(2024, 5, 31), freq) for freq in "DWMQY"]
    ['2024-05-31', '2024-W22', '2024-05', '2024-Q2', '2024']
    """
    if freq not in FREQUENCIES:
        raise InputError(f"A frequency is one of {', '.join(FREQUENCIES)}; got {freq!r}.")
    return FREQUENCIES[freq](day)
