"""The content of single cells: missing values, numbers, yes or no, dates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any

from prevalens.errors import InputError

#: Texts that mean a missing value.
_MISSING = {"", "na", "n/a", "nan", "null", "none", "-"}
_ANSWERS = {"1": 1, "1.0": 1, "true": 1, "yes": 1, "0": 0, "0.0": 0, "false": 0, "no": 0}


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, or a text that means a missing value."""
    if isinstance(cell, str):
        return cell.strip().lower() in _MISSING
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def answer_of(cell: Any) -> int | None:
    """1 for a cell that means yes, 0 for one that means no, else None.

    Examples
    --------
    >>> answer_of("Yes"), answer_of(False), answer_of(1.0), answer_of("maybe")
    (1, 0, 1, None)
    """
    return _ANSWERS.get(str(cell).strip().lower())


def number_of(cell: Any) -> float | None:
    """The number in a cell, NaN if it is missing, None if it is something else.

    Examples
    --------
    >>> number_of(" 2.5 "), number_of("yes"), number_of("inf"), number_of("north")
    (2.5, 1.0, None, None)
    """
    if is_missing(cell):
        return math.nan
    number = finite(cell)
    if number is None and (answer := answer_of(cell)) is not None:
        return float(answer)
    return number


def finite(cell: Any) -> float | None:
    """The finite number in a cell, or None."""
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def shown(cell: Any) -> str:
    """The content of a cell for a message, shortened if it is long."""
    text = repr(cell)
    return text if len(text) <= 42 else f"{text[:40]}..."


#: Unambiguous formats of dates.
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
#: Formats in which day and month may be confused.
_SLASHED = ("%d/%m/%Y", "%m/%d/%Y")
_TIME = re.compile(r"[ T]+\d{1,2}:\d\d(:\d\d([.,]\d+)?)?( ?[AaPp][Mm])?$")
_EPOCH = re.compile(r"\d{10}(\d{3})?")
_YEAR = re.compile(r"[12]\d{3}(\.0)?")
#: Epochs before 1980 or after 2200 are numbers, not dates.
_EPOCHS = (315_532_800, 7_258_118_400)


def parse_date(cell: Any, form: str | None = None) -> date | None:
    """The date in a cell, or None if there is none.

    Parameters
    ----------
    cell : date, datetime, str or number
        ISO, or one of the usual unambiguous formats; numbers are seconds or milliseconds since
        1970.
    form : str, optional
        Another format, in the notation of `datetime.strptime`.

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
    text = str(cell).strip()
    if form is not None:
        text = text.removesuffix(".0")
        return _by_form(text, form) or _by_form(_TIME.sub("", text), form)
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        return _from_epoch(float(cell))
    return _iso(text) or next(filter(None, (_by_form(text, usual) for usual in _FORMS)), None)


def _iso(text: str) -> date | None:
    if _EPOCH.fullmatch(text):
        return _from_epoch(float(text))
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
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


def slashed_forms(cells: Sequence[str]) -> list[str]:
    """The formats, day first or month first, that fit all dates such as 03/04/2024."""
    texts = [_TIME.sub("", cell.strip()) for cell in cells]
    return [form for form in _SLASHED if all(_by_form(text, form) for text in texts)]


def date_format(cells: Sequence[Any], column: str) -> str | None:
    """The format of a column's dates for `datetime.strptime`; None if all are unambiguous.

    Dates such as 03/04/2024 depend on the other dates of the column: 31/05/2024 shows that the
    day comes first. A column of whole numbers from 1000 to 2999 holds years.
    """
    known = [str(cell).strip() for cell in cells if not is_missing(cell)]
    if known and all(map(_YEAR.fullmatch, known)):
        return "%Y"
    texts = [_TIME.sub("", cell.strip()) for cell in cells if isinstance(cell, str)]
    slashed = [text for text in texts if re.fullmatch(r"\d{1,2}/\d{1,2}/\d{4}", text)]
    forms = slashed_forms(slashed) if slashed else []
    if len(forms) == 2 and any(text.split("/")[0] != text.split("/")[1] for text in slashed):
        raise InputError(
            f"In {slashed[0]!r} of the column {column!r} day and month cannot be told apart; give "
            "the form of the dates, %d/%m/%Y or %m/%d/%Y."
        )
    return forms[0] if forms else None


def _week(day: date) -> str:
    year, week, _ = day.isocalendar()
    return f"{year}-W{week:02d}"


#: The period of a day, by frequency; the names sort in chronological order.
FREQUENCIES: dict[str, Callable[[date], str]] = {
    "D": lambda day: day.isoformat(),
    "W": _week,
    "M": lambda day: f"{day.year:04d}-{day.month:02d}",
    "Q": lambda day: f"{day.year:04d}-Q{(day.month + 2) // 3}",
    "Y": lambda day: f"{day.year:04d}",
}


_PERIOD = re.compile(r"\d{4}(-(\d{2}|Q[1-4]|W\d{2}|\d{2}-\d{2}))?")


def is_period(name: str) -> bool:
    """Whether a name is one that `period_of` gives.

    Examples
    --------
    >>> is_period("2024-W22"), is_period("Norway")
    (True, False)
    """
    return _PERIOD.fullmatch(name) is not None


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
