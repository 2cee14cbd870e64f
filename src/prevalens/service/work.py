"""A worker process: tasks come as lines of JSON, answers go as lines of JSON."""

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
from collections.abc import Callable
from typing import IO, Any

from prevalens.errors import PrevalensError
from prevalens.service.nursery import tend
from prevalens.service.problems import Problem
from prevalens.service.tasks import TASKS, Report

try:
    import resource
except ImportError:  # pragma: no cover - only where there is no fork either.
    resource = None  # type: ignore[assignment]

__all__ = ["main", "perform", "work"]

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
