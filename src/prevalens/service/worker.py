"""What workers do: look at files, train, and hand on to `estimating`."""

from __future__ import annotations

import gc
import json
import os
import queue
import socket
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Protocol

from prevalens.datasets.tickets import SEPARATOR, tickets, write_tickets
from prevalens.errors import PrevalensError, PrevalensWarning
from prevalens.model.fit import fit_files
from prevalens.model.model import Model
from prevalens.model.progress import Progress, Step
from prevalens.reports.demo import METHOD
from prevalens.service.estimating import estimate
from prevalens.service.problems import Problem
from prevalens.service.screening import opened, preview
from prevalens.service.workers import tend
from prevalens.tables.opening import Reading
from prevalens.tables.table import Table

__all__ = ["TASKS", "Report", "main", "perform", "work"]

Task = Mapping[str, Any]

#: Models a worker keeps at hand.
_AT_HAND = 4
#: As in `prevalens demo`.
_DEMO = {"text": "text", "tags": "tags", "sep": SEPARATOR, "method": METHOD}


class Report(Protocol):
    """Is told how far the work is."""

    def __call__(self, stage: str, share: float | None = None) -> None:
        """Take in a stage, and the share that is done, if known."""


@dataclass(frozen=True)
class _ClientReading(Reading):
    """Opens a file of a client, within the limits and under the client's name for it."""

    name: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict)

    def open(self, path: str | Path) -> Table:
        return opened(Path(path), self.name, self.limits)


def _loaded(path: str) -> Model:
    """A model; a file that was written anew is another one."""
    try:
        written = Path(path).stat().st_mtime_ns
    except OSError:
        written = 0
    return _loaded_as(path, written)


@lru_cache(maxsize=_AT_HAND)
def _loaded_as(path: str, written: int) -> Model:  # noqa: ARG001
    return Model.load(path)


def _told(report: Report) -> Progress:
    """A progress that speaks the workflow's language and is heard in ours."""

    def progress(step: Step) -> None:
        share = min(1.0, step.done / step.total) if step.total else None
        items = f" {step.n_items:,} items" if step.n_items else ""
        report(step.detail or f"{step.stage}{items}", share)

    return progress


def _about(model: Model) -> dict[str, Any]:
    """What clients are told of a model."""
    summary = model.summary.to_dict()
    named = model.columns if model.columns is not None else ("text",)
    return {
        "labels": list(model.labels),
        "training": dict(zip(model.labels, model.prevalence.tolist(), strict=True)),
        "n_items": summary.pop("n_items"),
        "method": summary.pop("method"),
        "kind": summary.pop("kind"),
        "columns": list(named),
        "summary": {**summary, "created": model.provenance.get("created")},
    }


def _describe(task: Task, report: Report) -> dict[str, Any]:
    report("reading the model")
    return _about(_loaded(task["model"]))


def _preview(task: Task, report: Report) -> dict[str, Any]:
    report("reading")
    return preview(opened(Path(task["path"]), task["name"], task["limits"]))


def _train(task: Task, report: Report) -> dict[str, Any]:
    names = ("text", "features", "labels", "tags", "sep", "id", "method", "time_budget")
    asked: dict[str, Any] = {name: task[name] for name in names if task.get(name) is not None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrevalensWarning)
        model = fit_files(
            task["path"],
            **asked,
            reading=_ClientReading(name=task["source"], limits=task["limits"]),
            progress=_told(report),
        )
    report("saving")
    model.save(task["output"])
    about = _about(model)
    said = (str(one.message) for one in caught if issubclass(one.category, PrevalensWarning))
    about["summary"]["warnings"] = list(dict.fromkeys([*about["summary"]["warnings"], *said]))
    return about


def _demo(task: Task, report: Report) -> dict[str, Any]:
    """Write the built-in tickets as files; train on the labelled ones unless that was done."""
    report("writing tickets")
    folder = Path(task["folder"]) / "tickets"
    write_tickets(tickets(), folder)
    months = sorted((folder / "months").iterdir())
    about = None
    if task["train"]:
        train = folder / "train.csv"
        about = _train({**task, **_DEMO, "path": str(train), "source": train.name}, report)
    files = [
        {"path": str(path), "preview": preview(opened(path, path.name, task["limits"]))}
        for path in months
    ]
    return {"about": about, "files": files}


def _quantify(task: Task, report: Report) -> dict[str, Any]:
    return estimate(_loaded(task["model"]), task, _told(report))


TASKS: Mapping[str, Callable[[Task, Report], dict[str, Any]]] = {
    "demo": _demo,
    "describe": _describe,
    "preview": _preview,
    "quantify": _quantify,
    "train": _train,
}


try:
    import resource
except ImportError:  # pragma: no cover - only where there is no fork either.
    resource = None  # type: ignore[assignment]

#: News about progress go out this often at most.
_PAUSE = 0.1
_FAILED = "The work failed; the server's log says more."
_MEMORY = "This needs more memory than the server allows; try a smaller file."

Send = Callable[[str, dict[str, Any]], None]


def main() -> None:
    """Be the nursery; standard input is the line to the server."""
    # The server tells people what matters; a worker's standard error is for failures.
    warnings.simplefilter("ignore")
    tend(socket.socket(fileno=0), work)


def work(line: socket.socket, memory: int) -> None:
    """Work until the server closes the line."""
    _limit_memory(memory)
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(line.makefile("rb"), tasks), daemon=True).start()
    while True:
        perform(json.loads(tasks.get()), _sender(line))
        gc.collect()


def _limit_memory(size: int) -> None:
    """Let an allocation fail before the machine suffers."""
    if size and resource is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _listen(lines: IO[bytes], tasks: queue.SimpleQueue[bytes]) -> None:
    """Take in tasks; when the server is gone, so is the work, in the middle of it if need be."""
    for one in lines:
        tasks.put(one)
    os._exit(0)


def perform(task: dict[str, Any], send: Send) -> None:
    """Do one task; whatever happens becomes one last line."""
    try:
        done = TASKS[task["task"]](task, _throttled(send))
    except Problem as problem:
        send("problem", {"code": problem.code, "message": problem.message})
    except PrevalensError as error:
        send("problem", {"code": "bad_input", "message": str(error)})
    except MemoryError:
        send("problem", {"code": "too_large", "message": _MEMORY})
    except Exception:
        # What nobody foresaw: the log gets all of it, the client a sentence.
        traceback.print_exc()
        send("problem", {"code": "internal", "message": _FAILED})
    else:
        send("done", done)


def _sender(line: socket.socket) -> Send:
    def send(kind: str, content: dict[str, Any]) -> None:
        line.sendall(json.dumps([kind, content]).encode() + b"\n")

    return send


def _throttled(send: Send) -> Report:
    last, before = 0.0, ""

    def report(stage: str, share: float | None = None) -> None:
        nonlocal last, before
        now, word = time.monotonic(), stage.partition(" ")[0]
        # Steps of unknown length are few, and the next may be long in coming.
        if word != before or share is None or now - last >= _PAUSE:
            last, before = now, word
            send("progress", {"stage": stage, "share": share})

    return report


if __name__ == "__main__":
    main()
