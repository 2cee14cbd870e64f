"""Warnings in a line, durations."""

from __future__ import annotations

import warnings

import pytest

from prevalens.cli.console import Duration, printed_warnings
from prevalens.errors import InputError, PrevalensWarning


def test_a_warning_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    with printed_warnings():
        for _ in range(3):
            warnings.warn("two\nlines", PrevalensWarning, stacklevel=1)
    assert capsys.readouterr().err == "prevalens: note: two lines\n"


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), (" 2 M ", 120)]
)
def test_durations(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "0", "10x", "-5m", "m"])
def test_no_durations(text: str) -> None:
    with pytest.raises(InputError, match=r"A time is written as 90s, 10m or 1\.5h"):
        Duration().convert(text, None, None)
