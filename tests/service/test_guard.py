from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from prevalens.service.guard import SECURITY_HEADERS, RequestGuard
from prevalens.service.metrics import Metrics
from prevalens.service.workers import CLIENT

TOKEN = "a-long-enough-token"
METRICS = Metrics()


async def _hello(scope: Any, receive: Any, send: Any) -> None:
    start = {"type": "http.response.start", "status": 200, "headers": [(b"x-frame-options", b"A")]}
    await send(start)
    await send({"type": "http.response.body", "body": b"hello"})


def _ask(
    path: str = "/v1/models",
    headers: dict[str, Any] | None = None,
    *,
    method: str = "GET",
    token: str | None = None,
    hosts: tuple[str, ...] = (),
    base: str = "http://localhost:8321",
) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(
            RequestGuard(_hello, token=token, hosts=hosts, metrics=METRICS)
        )
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(ask())


@pytest.mark.parametrize("host", ["localhost:8321", "127.0.0.1", "[::1]:80", "192.168.0.7:1"])
def test_own_names_and_addresses_are_served(host: str) -> None:
    assert _ask(headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "", "a b", "@localhost"]
)
def test_a_rebound_name_is_refused(host: str) -> None:
    answer = _ask(headers={"host": host})
    assert answer.status_code == 421
    assert answer.json()["error"]["code"] == "misdirected"


def test_a_named_host_is_served() -> None:
    assert _ask(headers={"host": "Stats.intra:80"}, hosts=("stats.intra",)).status_code == 200


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:9999", "http://localhost"]
)
def test_pages_of_other_origins_are_refused(method: str, origin: str) -> None:
    answer = _ask(headers={"origin": origin}, method=method)
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "forbidden"


def test_the_own_page_may_ask() -> None:
    headers = {"origin": "http://localhost:8321", "sec-fetch-site": "same-origin"}
    assert _ask(headers=headers, method="POST").status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_form_of_another_site_is_refused_even_without_origin(site: str) -> None:
    assert _ask(headers={"sec-fetch-site": site}, method="POST").status_code == 403
    assert _ask(headers={"sec-fetch-site": site}).status_code == 403
    # A link from elsewhere to the page itself is no danger.
    assert _ask("/", headers={"sec-fetch-site": site}).status_code == 200


@pytest.mark.parametrize("path", ["/v1", "/v1/models", "/metrics"])
def test_the_interface_is_behind_the_token(path: str) -> None:
    refused = _ask(path, token=TOKEN)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert _ask(path, {"authorization": f"Bearer {TOKEN}"}, token=TOKEN).status_code == 200
    for wrong in (f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer", "Bearer ü"):
        assert _ask(path, {"authorization": wrong.encode()}, token=TOKEN).status_code == 401


@pytest.mark.parametrize("path", ["/", "/static/page.js", "/healthz", "/v10", "/metricsx"])
def test_the_page_itself_holds_no_secret(path: str) -> None:
    assert _ask(path, token=TOKEN).status_code == 200


@pytest.mark.parametrize("host", ["localhost", "evil.example"])
def test_every_answer_carries_the_headers(host: str) -> None:
    answer = _ask(headers={"host": host})
    for name, value in SECURITY_HEADERS.items():
        if name != "x-frame-options" or host != "localhost":
            assert answer.headers[name] == value


def test_refusals_are_counted() -> None:
    def count() -> float:
        lines = METRICS.text().splitlines()
        found = [line for line in lines if line.startswith('prevalens_problems_total{code="misd')]
        return float(found[0].split()[1]) if found else 0.0

    before = count()
    _ask(headers={"host": "evil.example"})
    assert count() == before + 1


def test_an_answer_may_bring_its_own_header() -> None:
    assert _ask().headers.get_list("x-frame-options") == ["A"]


def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere() -> None:
    policy = SECURITY_HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "default-src 'none'" in policy


def test_work_is_known_by_the_address_of_its_client() -> None:
    seen = []

    async def look(scope: Any, receive: Any, send: Any) -> None:
        seen.append(CLIENT.get())
        await _hello(scope, receive, send)

    async def ask(address: str) -> None:
        guard = RequestGuard(look, token=None, hosts=(), metrics=METRICS)
        transport = httpx.ASGITransport(guard, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await client.get("/")

    for address in ("10.0.0.1", "10.0.0.2"):
        asyncio.run(ask(address))
    assert seen == ["10.0.0.1", "10.0.0.2"]
