"""Counters in the text format that Prometheus reads."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from prevalens._version import __version__

__all__ = ["Metrics", "Observe"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_KNOWN_METHODS = {"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"}

#: What is counted.
HELP = {
    "prevalens_requests_total": "Requests answered.",
    "prevalens_request_seconds": "Time from request to the end of the answer.",
    "prevalens_items_total": "Items whose prevalence was estimated.",
    "prevalens_upload_bytes_total": "Bytes of uploaded files.",
    "prevalens_jobs_total": "Jobs by kind and how they ended.",
    "prevalens_problems_total": "Refusals by code.",
    "prevalens_workers_started_total": "Worker processes started.",
}

Labels = tuple[tuple[str, str], ...]


class Metrics:
    r"""What the server has done so far.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.add("prevalens_items_total", 3, model="a")
    >>> print("\n".join(metrics.lines()).split("\n")[2])
    prevalens_items_total{model="a"} 3
    """

    def __init__(self) -> None:
        self._counters: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._times: dict[Labels, list[float]] = {}
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Count something that happened; `name` is one of `HELP`."""
        self._counters[name][tuple(sorted(labels.items()))] += amount

    def gauge(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """Declare a level that is read when somebody asks."""
        self._gauges[name] = (meaning, read)

    def observe(self, seconds: float, **labels: str) -> None:
        """Add one request's time to the histogram."""
        key = tuple(sorted(labels.items()))
        counts = self._times.setdefault(key, [0.0] * (len(BUCKETS) + 2))
        counts[bisect_left(BUCKETS, seconds)] += 1
        counts[-1] += seconds

    def lines(self) -> Iterator[str]:
        """The text form, line by line."""
        for name, series in self._counters.items():
            yield from _head(name, HELP[name], "counter")
            for labels, value in series.items():
                yield f"{name}{_labels(labels)} {_number(value)}"
        if self._times:
            yield from self._histogram("prevalens_request_seconds")
        for name, (meaning, read) in self._gauges.items():
            yield from _head(name, meaning, "gauge")
            yield f"{name} {_number(read())}"
        yield from _head("prevalens_info", "Version of the package.", "gauge")
        yield f"prevalens_info{_labels((('version', __version__),))} 1"

    def _histogram(self, name: str) -> Iterator[str]:
        yield from _head(name, HELP[name], "histogram")
        for labels, counts in self._times.items():
            below = 0.0
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=False):
                below += count
                yield f"{name}_bucket{_labels((*labels, ('le', bound)))} {_number(below)}"
            yield f"{name}_sum{_labels(labels)} {_number(counts[-1])}"
            yield f"{name}_count{_labels(labels)} {_number(below)}"

    def text(self) -> str:
        """The text form."""
        return "\n".join(self.lines()) + "\n"


def _head(name: str, meaning: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def _labels(pairs: Labels) -> str:
    if not pairs:
        return ""
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in pairs) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


class Observe:
    """Count requests by route, and time them.

    Routes, not paths: a client must not be able to make new series.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        status = "500"

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            self._count(scope, status, time.perf_counter() - start)

    def _count(self, scope: Scope, status: str, seconds: float) -> None:
        route: Any = scope.get("route")
        place = getattr(route, "path", "other")
        method = scope["method"] if scope["method"] in _KNOWN_METHODS else "other"
        self.metrics.add("prevalens_requests_total", route=place, method=method, status=status)
        self.metrics.observe(seconds, route=place)
