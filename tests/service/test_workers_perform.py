from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prevalens.errors import InputError
from prevalens.service import workers
from prevalens.service.problems import Problem


def _refuse(task: Any, report: Any) -> Any:
    raise Problem("too_large", "Too much.")


def _complain(task: Any, report: Any) -> Any:
    raise InputError("There is no column 'x'.")


def _swell(task: Any, report: Any) -> Any:
    raise MemoryError


def _fail(task: Any, report: Any) -> Any:
    raise ZeroDivisionError("inner workings")


def _tell(task: Any, report: Any) -> Any:
    for number in range(50):
        report(f"reading {number}", number / 50)
    report("fitting")
    report("fold 1 of 2")
    report("fold 2 of 2")
    return {"fine": True}


def _perform(monkeypatch: pytest.MonkeyPatch, what: Any) -> list[tuple[str, Any]]:
    monkeypatch.setattr(workers, "TASKS", {"it": what})
    sent: list[tuple[str, Any]] = []
    workers.perform({"task": "it"}, sent.append)
    return sent


@pytest.mark.parametrize(
    ("what", "code", "words"),
    [
        (_refuse, "too_large", "Too much."),
        (_complain, "bad_input", "There is no column 'x'."),
        (_swell, "too_large", "more memory"),
        (_fail, "internal", "the server's log says more"),
    ],
)
def test_whatever_happens_becomes_a_sentence(
    what: Any, code: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    ((kind, content),) = _perform(monkeypatch, what)
    assert (kind, content["code"]) == ("problem", code)
    assert words in content["message"]
    assert "inner workings" not in content["message"]
    assert ("ZeroDivisionError" in capsys.readouterr().err) == (what is _fail)


def test_news_are_few_but_every_stage_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = _perform(monkeypatch, _tell)
    stages = [content["stage"] for kind, content in sent if kind == "progress"]
    assert len(stages) < 10
    assert stages[0] == "reading 0"
    assert stages[-3:] == ["fitting", "fold 1 of 2", "fold 2 of 2"]
    assert sent[-1] == ("done", {"fine": True})


def test_messages_name_no_folders_of_the_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    model = "/srv/models/tickets.prevalens"

    def fail(task: Any, report: Any) -> Any:
        raise InputError(f"There is no file {model}; {tmp_path}/0a/plain-0.csv cannot be read.")

    monkeypatch.setattr(workers, "TASKS", {"it": fail})
    sent: list[tuple[str, Any]] = []
    workers.perform({"task": "it", "model": model}, sent.append)
    message = "There is no file tickets.prevalens; a file of the server cannot be read."
    assert sent[0][1]["message"] == message
