from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from prevalens.service.conditional import ConditionalAnswers


async def _text(request: Request) -> Response:
    return PlainTextResponse(request.query_params.get("text", "hello"))


async def _file(request: Request) -> Response:
    return FileResponse(__file__)


async def _missing(request: Request) -> Response:
    return PlainTextResponse("no", 404)


APP = ConditionalAnswers(
    Starlette(
        routes=[
            Route("/text", _text, methods=["GET", "POST"]),
            Route("/file", _file),
            Route("/missing", _missing),
        ]
    )
)


def _ask(method: str, path: str, tag: str = "") -> httpx.Response:
    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(APP), base_url="http://test"
        ) as client:
            return await client.request(method, path, headers={"if-none-match": tag} if tag else {})

    return asyncio.run(ask())


@pytest.mark.parametrize("path", ["/text", "/file"])
def test_a_client_that_has_an_answer_does_not_get_it_again(path: str) -> None:
    first = _ask("GET", path)
    tag = first.headers["etag"]
    assert tag.startswith('W/"')
    for known in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*"):
        again = _ask("GET", path, known)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
    assert _ask("GET", path, '"other"').content == first.content


def test_another_content_has_another_tag() -> None:
    tags = {_ask("GET", f"/text?text={text}").headers["etag"] for text in "abc"}
    assert len(tags) == 3


@pytest.mark.parametrize("path", ["/text", "/file", "/missing"])
def test_head_is_get_without_the_body(path: str) -> None:
    full, head = _ask("GET", path), _ask("HEAD", path)
    assert (head.status_code, head.content) == (full.status_code, b"")
    assert head.headers == full.headers


def test_only_what_is_there_and_can_be_asked_again_has_a_tag() -> None:
    assert "etag" not in _ask("GET", "/missing").headers
    assert "etag" not in _ask("POST", "/text").headers
