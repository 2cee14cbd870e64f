"""The bar of long work, on a terminal."""

from __future__ import annotations

import io
import sys
import time
from typing import Any

import pytest
from tqdm import tqdm

from prevalens.model import progress
from prevalens.model.progress import Step, progress_bar


def test_progress_is_quiet_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as show:
        show(Step("scoring", 1, 3))
        show(Step("waiting"))
    assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    """Somebody looks."""

    def isatty(self) -> bool:
        return True


def test_progress_names_the_stage_and_what_comes_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(**how: Any) -> Any:
        return tqdm(**{**how, "delay": 0, "ascii": True})

    monkeypatch.setattr(progress, "tqdm", at_once)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bar() as show:
        show(Step("reading", 3, 3))
        show(Step("fitting", detail="forest, fold 1 of 5"))
        lines = sys.stderr.getvalue().split("\r")
    assert any(line.startswith("reading |###") for line in lines)
    # How long the fit takes is not known: the bar of the reading is gone.
    assert lines[-1].startswith("fitting: forest, fold 1 of 5 |  ")
    assert "#" not in lines[-1]


@pytest.mark.parametrize(
    ("step", "seconds", "text"),
    [
        (Step("scoring", 1, 4), 60, "about 03:00 left"),
        (Step("scoring", 3, 4), 3600, "about 20:00 left"),
        (Step("scoring", 4, 4), 60, ""),
        (Step("scoring", 0, 4), 60, ""),
        (Step("fitting"), 60, ""),
        # The first moments say little about the rest.
        (Step("scoring", 1, 4), 0.2, ""),
    ],
)
def test_the_time_that_is_left(step: Step, seconds: float, text: str) -> None:
    assert progress.time_left(step, seconds) == text


def test_the_clock_runs_during_a_long_step(monkeypatch: pytest.MonkeyPatch) -> None:
    refreshed: list[float] = []
    monkeypatch.setattr(progress.tqdm, "refresh", lambda *_, **__: refreshed.append(time.time()))
    with progress_bar() as show:
        show(Step("fitting"))
        before = len(refreshed)
        time.sleep(1.2)
    assert len(refreshed) > before


def test_messages_alone_are_shown_too(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, float]] = []
    monkeypatch.setattr(
        progress.tqdm, "refresh", lambda bar, *_, **__: shown.append((bar.desc, bar.n))
    )
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bar() as show:
        show("correcting labels")
        show(Step("scoring", 1, 4))
    assert shown[-2:] == [("correcting labels", 0), ("scoring", 0.25)]
