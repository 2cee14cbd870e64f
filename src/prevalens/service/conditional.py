"""Conditional answers: HEAD like GET without the body, ETags, and 304 for what a client has."""

from __future__ import annotations

import hashlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class ConditionalAnswers:
    """Gives answers to GET and HEAD an ETag, and none again to a client that has them.

    Parameters
    ----------
    app : ASGI application
        It needs routes for GET only.

    Notes
    -----
    The tag of an answer in one piece is made from its content; files have one of their own. Tags
    are weak, because an answer may be compressed on its way.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self.app(scope, receive, send)
            return
        inner = {**scope, "method": "GET"}
        known = Headers(scope=scope).get("if-none-match", "")
        try:
            await self.app(inner, receive, _Tagging(send, known, scope["method"] == "HEAD"))
        finally:
            # Where the metrics look for it.
            scope["route"] = inner.get("route")


class _Tagging:
    """A `send` that holds back the head of an answer until it has seen the first of its body."""

    def __init__(self, send: Send, known: str, bodiless: bool) -> None:
        self._send = send
        self._known = {tag.strip().removeprefix("W/") for tag in known.split(",") if tag.strip()}
        self._bodiless = bodiless
        self._head: Message | None = None
        self._over = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._head = message
            return
        if self._head is not None:
            head, self._head = self._head, None
            self._over = self._tag(head, message) or self._bodiless
            await self._send(head)
            if self._over:
                await self._send({"type": "http.response.body"})
        if not self._over:
            await self._send(message)

    def _tag(self, head: Message, first: Message) -> bool:
        """Whether the client has this answer; then its head says so."""
        headers = MutableHeaders(scope=head)
        if head["status"] != 200:
            return False
        tag = headers.get("etag", "").removeprefix("W/")
        if not tag and not first.get("more_body", False):
            tag = f'"{hashlib.sha256(first.get("body", b"")).hexdigest()[:32]}"'
        if not tag:
            return False
        headers["etag"] = f"W/{tag}"
        if tag not in self._known and "*" not in self._known:
            return False
        head["status"] = 304
        for name in ("content-length", "content-type"):
            del headers[name]
        return True
