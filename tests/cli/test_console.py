"""Warnings in a line, ticking progress, durations."""

from __future__ import annotations

import time
import warnings

import pytest

from prevalens.cli import console
from prevalens.cli.console import Duration, printed_warnings, progress_bar
from prevalens.errors import InputError, PrevalensWarning
from prevalens.model.progress import Step


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


def test_the_clock_runs_during_a_long_step(monkeypatch: pytest.MonkeyPatch) -> None:
    refreshed: list[float] = []
    monkeypatch.setattr(console.tqdm, "refresh", lambda *_, **__: refreshed.append(time.time()))
    with progress_bar() as show:
        show(Step("fitting"))
        before = len(refreshed)
        time.sleep(1.2)
    assert len(refreshed) > before
