"""Limits on what a client sends: how much, and how slowly."""

from __future__ import annotations

import asyncio
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from prevalens.service.guard import send_problem
from prevalens.service.problems import Problem
from prevalens.service.settings import Limits

__all__ = ["Bodies"]


class Bodies:
    """Refuse bodies that are too large, before or while they arrive, and clients that stall.

    Parameters
    ----------
    app : ASGI application
    limits : Limits
    """

    def __init__(self, app: ASGIApp, *, limits: Limits) -> None:
        self.app = app
        self.limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            self._check_declared(Headers(scope=scope))
        except Problem as problem:
            await send_problem(problem, send)
        else:
            await self.app(scope, _Meter(receive, self.limits), send)

    def _check_declared(self, headers: Headers) -> None:
        declared = headers.get("content-length", "0")
        if not declared.isascii() or not declared.isdigit():
            raise Problem("bad_request", "The Content-Length header is not a number.")
        if int(declared) > self.limits.upload_bytes:
            raise _too_large(self.limits)


class _Meter:
    """A `receive` that counts bytes and time.

    Once the body has arrived, waiting means waiting for the end of the connection, which may take
    as long as the answer does.
    """

    def __init__(self, receive: Receive, limits: Limits) -> None:
        self._receive = receive
        self._limits = limits
        self._left = limits.upload_bytes
        self._until = time.monotonic() + limits.body_seconds
        self._arrived = False

    async def __call__(self) -> Message:
        if self._arrived:
            return await self._receive()
        message = await self._in_time()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise _too_large(self._limits)
        self._arrived = not message.get("more_body", False)
        return message

    async def _in_time(self) -> Message:
        wait = min(self._limits.stall_seconds, self._until - time.monotonic())
        try:
            return await asyncio.wait_for(self._receive(), max(wait, 0))
        except TimeoutError:
            raise Problem(
                "slow_client", "The request did not arrive in time.", {"connection": "close"}
            ) from None


def _too_large(limits: Limits) -> Problem:
    return Problem(
        "too_large",
        f"A request may have up to {limits.upload_bytes / 1e6:,.0f} MB; raise it with "
        "--max-upload, or split the file.",
        {"connection": "close"},
    )
