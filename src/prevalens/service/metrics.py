"""Counters of the server, in the text format that Prometheus reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest
from prometheus_client.metrics_core import Metric
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from prevalens._version import __version__

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_KNOWN_METHODS = {"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"}

#: Meaning and labels of every counter.
COUNTERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "prevalens_requests_total": ("Requests answered.", ("route", "method", "status")),
    "prevalens_items_total": ("Items whose prevalence was estimated.", ()),
    "prevalens_upload_bytes_total": ("Bytes of uploaded files.", ()),
    "prevalens_jobs_total": ("Jobs by kind and how they ended.", ("kind", "state")),
    "prevalens_problems_total": ("Refusals by code.", ("code",)),
    "prevalens_workers_started_total": ("Worker processes started.", ()),
}


class Metrics:
    r"""What one server has done so far, in a registry of its own.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.add("prevalens_problems_total", 3, code="busy")
    >>> [line for line in metrics.text().split("\n") if "busy" in line]
    ['prevalens_problems_total{code="busy"} 3.0']
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        # Of their own: the library takes a gauge `x` and a counter `x_total` for the same metric.
        self._gauges = CollectorRegistry()
        self._counters = {
            name: Counter(name, meaning, labels, registry=self._registry)
            for name, (meaning, labels) in COUNTERS.items()
        }
        self._times = Histogram(
            "prevalens_request_seconds",
            "Time from request to the end of the answer.",
            ("route",),
            buckets=BUCKETS,
            registry=self._registry,
        )
        about = Info("prevalens", "Version of the package.", registry=self._registry)
        about.info({"version": __version__})

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Count an event; `name` is one of `COUNTERS`."""
        counter = self._counters[name]
        (counter.labels(**labels) if labels else counter).inc(amount)

    def gauge(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """Declare a level that is read for each answer."""
        Gauge(name, meaning, registry=self._gauges).set_function(read)

    def observe(self, seconds: float, route: str) -> None:
        """Add the time of one request to the histogram."""
        self._times.labels(route).observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """All metrics, without the times at which the counters were created."""
        for metric in chain(self._registry.collect(), self._gauges.collect()):
            metric.samples = [s for s in metric.samples if not s.name.endswith("_created")]
            yield metric

    def text(self) -> str:
        """All metrics in the text format."""
        return generate_latest(self).decode()


class ObserveRequests:
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

        async def send_observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self.app(scope, receive, send_observed)
        finally:
            route: Any = scope.get("route")
            path = route.path if isinstance(route, Route) else "other"
            method = scope["method"] if scope["method"] in _KNOWN_METHODS else "other"
            self.metrics.add("prevalens_requests_total", route=path, method=method, status=status)
            self.metrics.observe(time.perf_counter() - start, path)
