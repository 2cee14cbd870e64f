"""The content of single cells: missing values, numbers, yes or no, dates."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal, TypeAlias

import numpy as np

from prevalens.errors import InputError

#: Texts that mean a missing value.
_MISSING = {"", "na", "n/a", "nan", "null", "none", "-"}
#: Texts that mean a missing value among numbers or dates; elsewhere they are values like others.
_MARKERS = _MISSING | {
    "?", "??", "???", "unknown", "unk", "not known", "missing", "n.a.", "n.a", "n. a.", "n.d.",
    "#n/a", "#na", "#null!", "#value!", "#ref!", "#div/0!", "<na>", "not available", "undefined",
    "tbd", "nil", "k.a.", "s/d", "-nan", ".", "..", "...", "--", "---", "\u2013", "\u2014",
    "\u2026",
}  # fmt: skip
_ANSWERS = {"1": 1, "1.0": 1, "true": 1, "yes": 1, "0": 0, "0.0": 0, "false": 0, "no": 0}
#: The character before the decimals of a number.
DecimalMark: TypeAlias = Literal[".", ","]
_OTHER: dict[DecimalMark, DecimalMark] = {".": ",", ",": "."}
#: Numbers whose digits are grouped by three, by their decimal mark.
_GROUPED = {
    mark: re.compile(
        rf"[+-]?[1-9]\d{{0,2}}(?:([{other}' \u00a0\u2009\u202f])\d{{3}})(?:\1\d{{3}})*"
        rf"(?:[{mark}]\d*)?"
    )
    for mark, other in _OTHER.items()
}


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, or a text that means a missing value."""
    if isinstance(cell, str):
        return cell.strip().lower() in _MISSING
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def is_marker(cell: Any) -> bool:
    """Whether a cell of a column of numbers or dates is missing: also ``?``, ``unknown``, ..."""
    return cell.strip().lower() in _MARKERS if isinstance(cell, str) else is_missing(cell)


def answer_of(cell: Any) -> int | None:
    """1 for a cell that means yes, 0 for one that means no, else None.

    Examples
    --------
    >>> answer_of("Yes"), answer_of(False), answer_of(1.0), answer_of("maybe")
    (1, 0, 1, None)
    """
    return _ANSWERS.get(str(cell).strip().lower())


def number_of(cell: Any, decimal: DecimalMark = ".") -> float | None:
    """The number in a cell, NaN if it is missing, None if it is something else.

    Parameters
    ----------
    cell : any
        Groups of three digits may be separated, and a percent sign at the end is ignored.
    decimal : {".", ","}
        The decimal mark of texts that can be read either way, such as ``1,234``.

    Examples
    --------
    >>> number_of(" 2.5 "), number_of("yes"), number_of("inf"), number_of("north")
    (2.5, 1.0, None, None)
    >>> number_of("12,5"), number_of("12.5 %"), number_of("1 234"), number_of("?")
    (12.5, 12.5, 1234.0, nan)
    >>> number_of("1,234"), number_of("1,234", ",")
    (1234.0, 1.234)
    """
    # The usual way of writing, tried first because it is the fastest; no marker is a number.
    if (decimal == "." or not isinstance(cell, str)) and (number := finite(cell)) is not None:
        return number
    if is_marker(cell):
        return math.nan
    number = written_number(cell, decimal) if isinstance(cell, str) else None
    if number is None and isinstance(cell, str):
        number = written_number(cell, _OTHER[decimal])
    if number is None and (answer := answer_of(cell)) is not None:
        return float(answer)
    return number


def written_number(text: str, decimal: DecimalMark) -> float | None:
    """The number that a text is with this decimal mark, or None."""
    if decimal == "." and (number := finite(text)) is not None:
        return number
    digits = text.strip().removesuffix("%").rstrip().replace("\u2212", "-")
    grouped = _GROUPED[decimal].fullmatch(digits)
    if grouped is not None:
        digits = digits.replace(grouped[1], "")
    elif _OTHER[decimal] in digits:
        return None
    return finite(digits.replace(decimal, "."))


def finite(cell: Any) -> float | None:
    """The finite number in a cell, or None."""
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


@dataclass(frozen=True)
class NumberStyle:
    """How the numbers of a column are written.

    Attributes
    ----------
    decimal : {".", ","}
    grouped, percent : bool
        Whether there are separators of thousands, or percent signs.
    doubtful : str
        A number that the other decimal mark would change relative to others; else empty.
    """

    decimal: DecimalMark = "."
    grouped: bool = False
    percent: bool = False
    doubtful: str = ""


#: Numbers that are looked at to find their style.
_STYLED = 5000


def number_style(cells: Sequence[Any], decimal: DecimalMark | None = None) -> NumberStyle:
    """How numbers are written, from those that can be read in one way only.

    Parameters
    ----------
    cells : sequence
    decimal : {".", ","}, optional
        The decimal mark, if it is known.

    Examples
    --------
    >>> number_style(["12,5", "1,234"]).decimal, number_style(["1,234.5", "1,234"]).decimal
    (',', '.')
    >>> number_style(["999", "1,234"])
    NumberStyle(decimal='.', grouped=True, percent=False, doubtful='1,234')
    """
    texts = [cell.strip() for cell in cells[:: 1 + len(cells) // _STYLED] if isinstance(cell, str)]
    only: Counter[str] = Counter()
    doubtful = []
    for text in texts:
        point, comma = (written_number(text, mark) for mark in _OTHER)
        if point == comma:
            continue
        if point is not None and comma is not None:
            doubtful.append(text)
        else:
            only["," if point is None else "."] += 1
    unknown = decimal is None
    decimal = decimal or ("," if only[","] > only["."] else ".")
    # If all are written alike, the other mark multiplies all by the same factor.
    unsettled = len(only) != 1 and len(doubtful) < len(texts)
    return NumberStyle(
        decimal,
        grouped=any(_GROUPED[decimal].fullmatch(text.removesuffix("%").rstrip()) for text in texts),
        percent=any(text.endswith("%") for text in texts),
        doubtful=doubtful[0] if doubtful and unsettled and unknown else "",
    )


def shown(cell: Any) -> str:
    """The content of a cell for a message, shortened if it is long."""
    text = repr(cell.item() if isinstance(cell, np.generic) else cell)
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
    known = [str(cell).strip() for cell in cells if not is_marker(cell)]
    if known and all(map(_YEAR.fullmatch, known)):
        return "%Y"
    forms = date_forms(cells)
    if len(forms) == 2:
        slashed = next(filter(_slashed, cells))
        raise InputError(
            f"In {slashed!r} of the column {column!r} day and month cannot be told apart; give "
            "the form of the dates, `date_form='%d/%m/%Y'` or `date_form='%m/%d/%Y'`."
        )
    return forms[0] if forms else None


def date_forms(cells: Sequence[Any]) -> list[str]:
    """The formats that fit the dates such as 03/04/2024 among some cells; two if both fit."""
    slashed = [text for text in map(_slashed, cells) if text]
    forms = slashed_forms(slashed) if slashed else []
    same = all(text.split("/")[0] == text.split("/")[1] for text in slashed)
    return forms[:1] if same else forms


def _slashed(cell: Any) -> str:
    """A date such as 03/04/2024 without the time of day; empty if the cell is none."""
    text = _TIME.sub("", cell.strip()) if isinstance(cell, str) else ""
    return text if re.fullmatch(r"\d{1,2}/\d{1,2}/\d{4}", text) else ""


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
