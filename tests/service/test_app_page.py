"""The page's files (`prevalens.service.app`)."""

from __future__ import annotations

import re
from importlib.resources import files

import httpx
import pytest

NAMES = sorted(one.name for one in files("prevalens.service").joinpath("static").iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_no_file_asks_anything_of_another_server(name: str) -> None:
    text = files("prevalens.service").joinpath("static", name).read_text(encoding="utf-8")
    addresses = re.findall(r"https?://[^\s\"'`)]+", text)
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}
    for forbidden in ("innerHTML", "insertAdjacentHTML", "document.write", "eval(", "style="):
        assert forbidden not in text
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"\son\w+=\"", text)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html"),
        ("/docs", "text/html"),
        ("/favicon.ico", "image/svg+xml"),
        ("/static/page.js", "text/javascript"),
        ("/static/page.css", "text/css"),
    ],
)
def test_files_are_served_with_their_kind_and_the_policy(
    path: str, kind: str, client: httpx.Client
) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path", ["/static/", "/static/none.js", "/static/%2e%2e%2fapp.py", "/static/..%5capp.py"]
)
def test_nothing_else_is_served(path: str, client: httpx.Client) -> None:
    assert client.get(path).status_code == 404
