from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest

from prevalens.experiments import Cell, MethodSpec
from prevalens.experiments.runner import Durations, Progress

Make = Callable[..., Cell]


@pytest.fixture
def named(make_cell: Make) -> Callable[[str, str], Cell]:
    return lambda dataset, method: make_cell(dataset, method=MethodSpec(method, "lr+cc"))


def test_nothing_known_nothing_expected(named: Callable[[str, str], Cell]) -> None:
    assert Durations().expected([named("a", "x")]) is None


def test_dataset_and_method_multiply(named: Callable[[str, str], Cell]) -> None:
    durations = Durations()
    for dataset, factor in (("a", 1.0), ("b", 5.0), ("c", 20.0)):
        for method, seconds in (("x", 1.0), ("y", 3.0), ("z", 9.0)):
            if (dataset, method) != ("c", "z"):
                durations.add(named(dataset, method), factor * seconds)
    assert durations.expected([named("c", "z")]) == pytest.approx(180, rel=0.2)
    assert durations.expected([named("a", "x"), named("a", "y")]) == pytest.approx(4, rel=0.2)
    assert durations.expected([]) == 0


def test_an_unknown_method_is_an_average_one(named: Callable[[str, str], Cell]) -> None:
    durations = Durations()
    for method in "xy":
        durations.add(named("a", method), 10.0)
    assert durations.expected([named("a", "new")]) == pytest.approx(10)
    assert durations.expected([named("new", "new")]) == pytest.approx(10)


def test_lines_tell_how_far_it_is(
    named: Callable[[str, str], Cell], capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [named("a", method) for method in "xyz"]
    with Progress(cells, Durations(), n_jobs=2, enabled=True) as progress:
        progress.done(cells[0], 8.0)
        progress.failed(cells[2])
    first, second = capsys.readouterr().err.splitlines()
    assert first == "1/3 a, x, ml-app, seed 0: 8.0 s; about 8.0 s left"
    assert second == "2/3 a, z, ml-app, seed 0: failed; about 4.0 s left"


def test_the_speed_of_an_executor_is_that_of_the_cells_done(
    named: Callable[[str, str], Cell],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    cells = [named("a", method) for method in "wxyz"]
    with Progress(cells, Durations(), n_jobs=None, enabled=True) as progress:
        progress.failed(cells[0])
        clock[0] = 2.0
        progress.done(cells[1], 8.0)
    # Eight seconds of work in two: four at a time.
    assert [line.rpartition("; ")[2] for line in capsys.readouterr().err.splitlines()] == [
        "about ? left",
        "about 4.0 s left",
    ]


def test_quiet_is_quiet(
    named: Callable[[str, str], Cell], capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress([named("a", "x")], Durations(), n_jobs=1, enabled=False) as progress:
        progress.done(named("a", "x"), 1.0)
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar(
    named: Callable[[str, str], Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress([named("a", "x")], Durations(), n_jobs=1, enabled=True) as progress:
        progress.done(named("a", "x"), 1.0)
    assert "1/1" in terminal.getvalue()
    assert "\r" in terminal.getvalue()
