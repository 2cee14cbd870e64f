"""Run the server: listen, announce the address, shut down gracefully."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any
from urllib.parse import quote

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from prevalens.errors import InputError, counted
from prevalens.service.app import create_app
from prevalens.service.problems import Problem
from prevalens.service.settings import Settings
from prevalens.service.state import ServerState

try:
    import resource
except ImportError:  # pragma: no cover - only where there is no fork either.
    resource = None  # type: ignore[assignment]

#: Seconds that a client may take to send the head of a request.
_HEAD_SECONDS = 15.0
#: Files that the server has open whatever it does.
_FILES = 64
_BUSY = json.dumps(Problem("busy", "The server has enough connections; try again soon.").body())
_FULL = (
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
    f"Content-Length: {len(_BUSY)}\r\nRetry-After: 5\r\nConnection: close\r\n\r\n{_BUSY}"
).encode()


class _HeadTimeoutProtocol(H11Protocol):
    """An HTTP protocol that also closes connections on which no complete request head arrives.

    Without it, a client that sends one letter per minute would hold its connection for ever.
    """

    most_connections = 10**6
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            transport.write(_FULL)
            transport.close()
        else:
            self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._head_timer is None:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # From here on uvicorn's own time limit for idle connections holds.
        self._stop_waiting()

    def _wait_for_head(self) -> None:
        self._head_timer = self.loop.call_later(_HEAD_SECONDS, self._close_connection)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close_connection(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


class Server(uvicorn.Server):
    """A server that says at the first Ctrl-C what it waits for, and ends at the second.

    Parameters
    ----------
    config : uvicorn.Config
    state : ServerState
    say : callable
        Called with sentences for the person at the terminal.
    """

    def __init__(
        self, config: uvicorn.Config, state: ServerState, say: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._state = state
        self._say = say

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal comes."""
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish or cancel what runs; uvicorn alone would not end the application if forced to."""
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Note a signal, and act on it as soon as nothing else is in the middle of its work."""
        if not self.should_exit:
            self.should_exit = True
            self._loop.call_soon_threadsafe(self._announce_end)
        elif sig == signal.SIGINT:
            self.force_exit = True
            self._loop.call_soon_threadsafe(self._end_at_once)

    def _announce_end(self) -> None:
        # Estimates that a request waits for are among the jobs.
        requests = sum(map(_is_answering, self.server_state.connections))
        unfinished = self._state.stop_soon() or (counted(requests, "request") if requests else "")
        if unfinished:
            seconds = self._state.limits.grace_seconds
            self._say(
                f"Stopping: waiting up to {seconds:g} s for {unfinished}; press Ctrl-C again to "
                "end at once."
            )

    def _end_at_once(self) -> None:
        self._state.jobs.hurry()
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def _is_answering(connection: object) -> bool:
    """Whether a request of the connection has no complete answer yet.

    The task of a request lives a little longer than that, and nobody waits for its end.
    """
    cycle = connection.cycle if isinstance(connection, H11Protocol) else None
    return cycle is not None and not cycle.response_complete


def server_for(state: ServerState, say: Callable[[str], None] = print) -> Server:
    """Make a uvicorn server for a state; `say` gets sentences for the person at the terminal."""
    limits = state.limits
    protocol = type("Protocol", (_HeadTimeoutProtocol,), {"most_connections": limits.connections})
    config = uvicorn.Config(
        create_app(state=state),
        http=protocol,
        ws="none",
        lifespan="on",
        log_level="warning",
        server_header=False,
        # RequestGuard checks the Host header itself; no proxy is trusted to say otherwise.
        proxy_headers=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=max(1, int(limits.grace_seconds)),
        h11_max_incomplete_event_size=32 * 1024,
    )
    return Server(config, state, say)


def serve(
    settings: Settings, ready: Callable[[str], None], say: Callable[[str], None] = print
) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    settings : Settings
    ready : callable
        Called with the address to open, as soon as the server answers.
    say : callable
        Called with what the end of the server waits for.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        raise InputError(
            "The page needs a system that can fork processes, such as Linux or macOS; on Windows "
            "run it in WSL."
        )
    _check_open_files(settings)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(ServerState(settings), ready, say))


def _check_open_files(settings: Settings) -> None:
    """Raise the limit on open files if need be, or say how to."""
    limits = settings.limits
    needed = limits.connections + 8 * (3 * limits.workers + limits.trainings) + _FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise InputError(
            f"The system lets this process open {hard} files, and the server may need {needed}; "
            f"raise the limit with `ulimit -n {needed}`."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


async def _serve(
    state: ServerState, ready: Callable[[str], None], say: Callable[[str], None]
) -> None:
    listening = _listen(state.settings)
    try:
        await state.start()
        server = server_for(state, say)
        announcing = asyncio.create_task(
            _announce(server, _address(state.settings, listening), ready)
        )
        await server.serve(sockets=[listening])
        announcing.cancel()
    finally:
        await state.close()
        listening.close()


def _listen(settings: Settings) -> socket.socket:
    """Open the port before anything else, so that a port in use is refused at once."""
    try:
        address = (settings.host, settings.port)
        family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server(address, family=family, backlog=128)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"Cannot listen on {settings.host} port {settings.port}: {error}; choose another with "
            "--port, or 0 for a free one."
        ) from error
    # Connections inherit it. asyncio sets it only on sockets that name their protocol; without it
    # the body of an answer waits 40 ms for the acknowledgement of its head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _address(settings: Settings, listening: socket.socket) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    shown = f"[{host}]" if ":" in host else host
    # In the fragment, which browsers do not send.
    secret = f"#token={quote(settings.token, safe='')}" if settings.token else ""
    return f"http://{shown}:{listening.getsockname()[1]}/{secret}"


async def _announce(server: uvicorn.Server, address: str, ready: Callable[[str], None]) -> None:
    while not server.started:
        await asyncio.sleep(0.02)
    ready(address)
