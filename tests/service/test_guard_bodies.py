from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from prevalens.service.guard import BodyLimits
from prevalens.service.metrics import Metrics
from prevalens.service.problems import Problem
from prevalens.service.settings import Limits

LIMITS = Limits(upload_bytes=100, stall_seconds=0.05, body_seconds=0.2)


async def _reader(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the number of bytes, or with the problem that reading them made."""
    size, more = 0, True
    try:
        while more:
            message = await receive()
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
        text = str(size)
    except Problem as problem:
        text = problem.code
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text.encode()})


def _send(
    pieces: list[bytes], *, declared: bytes | None = None, pause: float = 0.0, end: bool = True
) -> tuple[int, bytes]:
    sent: list[Any] = []

    async def run() -> None:
        left = list(pieces)

        async def receive() -> Any:
            await asyncio.sleep(pause)
            if not left:
                await asyncio.sleep(5)
            body = left.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(left) or not end}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [] if declared is None else [(b"content-length", declared)]
        await BodyLimits(_reader, limits=LIMITS, metrics=Metrics())(
            {"type": "http", "headers": headers}, receive, send
        )

    asyncio.run(run())
    return sent[0]["status"], sent[1]["body"]


def test_a_body_within_the_limits_passes() -> None:
    assert _send([b"x" * 60, b"x" * 40], declared=b"100") == (200, b"100")


def test_a_declared_size_is_refused_before_anything_is_read() -> None:
    status, body = _send([], declared=b"10000000000")
    assert status == 413
    assert json.loads(body)["error"]["code"] == "too_large"


@pytest.mark.parametrize("declared", [b"ten", b"-1", b"1e3", "²".encode("latin-1")])
def test_a_size_that_is_no_number_is_refused(declared: bytes) -> None:
    assert _send([b""], declared=declared)[0] == 400


def test_a_body_that_grows_beyond_the_limit_is_cut() -> None:
    assert _send([b"x" * 60, b"x" * 41])[1] == b"too_large"


def test_a_client_that_stalls_is_given_up() -> None:
    assert _send([b"x"], end=False)[1] == b"slow_client"


def test_a_client_that_drips_is_given_up() -> None:
    assert _send([b"x"] * 60, pause=0.01)[1] == b"slow_client"
