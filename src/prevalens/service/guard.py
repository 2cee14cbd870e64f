"""Checks before any route: the origin of requests, their size, and security headers.

A server on loopback is reachable by every web page the user has open. Three checks keep them out:
the Host header (a foreign name that was rebound to 127.0.0.1), the Origin and Sec-Fetch-Site
headers (a foreign page that posts a form), and the token, if there is one.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import time
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from prevalens.service.metrics import Metrics
from prevalens.service.problems import PROBLEM_TYPE, Problem
from prevalens.service.settings import Limits
from prevalens.service.workers import CLIENT

# Trusted types: the page builds every node itself, so no string ever becomes markup.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "no-store",
}
_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
_API = "/v1"
#: Paths behind the token.
_SECRET = (_API, "/metrics")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?")


class RequestGuard:
    """Refuses requests that were not meant for this server.

    Parameters
    ----------
    app : ASGI application
    token : str, optional
        Secret that requests to the interface must carry as ``Authorization: Bearer ...``.
    hosts : iterable of str
        Names allowed in the Host header, in addition to ``localhost`` and numeric addresses, which
        no foreign name server can rebind.
    metrics : Metrics
        Counts the refusals.
    """

    def __init__(
        self, app: ASGIApp, *, token: str | None, hosts: Iterable[str], metrics: Metrics
    ) -> None:
        self.app = app
        self.token = None if token is None else token.encode()
        self.metrics = metrics
        self.hosts = {"localhost", *(name.lower() for name in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = _with_headers(send)
        CLIENT.set((scope.get("client") or ("",))[0])
        try:
            headers = Headers(scope=scope)
            self._check_host(headers)
            _check_origin(scope, headers)
            self._check_token(scope["path"], headers)
        except Problem as problem:
            await refusal(problem, self.metrics)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _check_host(self, headers: Headers) -> None:
        values = headers.getlist("host")
        match = _HOST.fullmatch(values[0]) if len(values) == 1 else None
        if match is None or not self._serves(match[1].lower()):
            raise Problem(
                "misdirected",
                "This server does not answer under that name; use localhost or its address, or "
                "start it with --allow-host.",
            )

    def _serves(self, name: str) -> bool:
        if name in self.hosts:
            return True
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True

    def _check_token(self, path: str, headers: Headers) -> None:
        if self.token is None or not _below(path, _SECRET):
            return
        # The bytes that came: to decode them could make two tokens equal, or fail.
        sent = dict(headers.raw).get(b"authorization", b"")
        scheme, _, given = sent.partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self.token):
            raise Problem(
                "unauthorised",
                "This server asks for its token; send it as Authorization: Bearer TOKEN.",
                {"www-authenticate": "Bearer"},
            )


def _below(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(place + "/") for place in places)


def _check_origin(scope: Scope, headers: Headers) -> None:
    """Refuse requests of foreign pages, even if the browser would hide the answer from them."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != headers["host"].lower():
        raise Problem("forbidden", "Pages of other servers may not use this one.")
    changes = scope["method"] not in _SAFE_METHODS or _below(scope["path"], (_API,))
    if changes and headers.get("sec-fetch-site") in {"cross-site", "same-site"}:
        raise Problem("forbidden", "Pages of other servers may not use this one.")


def _with_headers(send: Send) -> Send:
    """Add the security headers to every answer that does not bring its own."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


def refusal(problem: Problem, metrics: Metrics) -> JSONResponse:
    """The answer to a request that is refused, which is counted."""
    metrics.add("prevalens_problems_total", code=problem.code)
    return JSONResponse(problem.body(), problem.status, problem.headers, PROBLEM_TYPE)


class BodyLimits:
    """Refuses bodies that are too large, before or while they arrive, and clients that stall.

    Parameters
    ----------
    app : ASGI application
    limits : Limits
    metrics : Metrics
        Counts the refusals.
    """

    def __init__(self, app: ASGIApp, *, limits: Limits, metrics: Metrics) -> None:
        self.app = app
        self.limits = limits
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            self._check_declared(Headers(scope=scope))
        except Problem as problem:
            await refusal(problem, self.metrics)(scope, receive, send)
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
